"""What a kernel promises of its launches: whether any GPU can keep it, and the PTX that says it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rustcuda_backend.errors import SignatureError

if TYPE_CHECKING:
    from rustcuda_backend.capability import Capability
    from rustcuda_backend.signature import Extents, KernelSignature

# Limits of every GPU so far: CUDA C++ programming guide, "Technical Specifications per Compute Capability".
_MOST_THREADS = 1024
_MOST_BLOCKS = 32
_MOST_RESIDENT_THREADS = 2048
# (blocks, threads) of a multiprocessor of the capabilities that have less room than that.
_LESS_ROOM = {
    (7, 5): (16, 1024),
    (8, 6): (16, 1536),
    (8, 7): (16, 1536),
    (8, 8): (16, 1536),
    (8, 9): (24, 1536),
    (10, 1): (24, 1536),
    (11, 0): (24, 1536),
    (12, 0): (24, 1536),
    (12, 1): (24, 1536),
}
_MOST_IN_Z = 64
# Of every GPU that has clusters; more needs an attribute that a launch would have to set.
_MOST_IN_CLUSTER = 8
_CLUSTERS_FROM = (9, 0)


def check(signature: KernelSignature, capability: Capability) -> None:
    """Makes sure that a kernel can be launched as it promises.

    Raises:
        SignatureError: No GPU of the capability could launch it.
    """
    where = f"kernel '{signature.name}'"
    if signature.block:
        _check_block(signature.block, where)
    if signature.launch_bounds:
        _check_bounds(*signature.launch_bounds, where)
    if signature.cluster:
        _check_cluster(signature.cluster, capability, where)


def _check_block(block: Extents, where: str) -> None:
    if min(block) < 1 or math.prod(block) > _MOST_THREADS or block[2] > _MOST_IN_Z:
        raise SignatureError(
            f"block asks for blocks of {_shown(block)} threads",
            where=where,
            hint=f"use 1 to {_MOST_THREADS} threads, and along z at most {_MOST_IN_Z}",
        )


def _check_bounds(threads: int, blocks: int, where: str) -> None:
    if not 1 <= threads <= _MOST_THREADS:
        raise SignatureError(
            f"launch_bounds asks for blocks of at most {threads} threads",
            where=where,
            hint=f"use 1 to {_MOST_THREADS}",
        )
    if blocks > _MOST_BLOCKS or blocks * threads > _MOST_RESIDENT_THREADS:
        raise SignatureError(
            f"launch_bounds asks for {_shown_bounds((threads, blocks))}",
            where=where,
            hint=f"a multiprocessor has at most {_MOST_BLOCKS} blocks and {_MOST_RESIDENT_THREADS} threads",
        )


def without_room(kernels: Iterable[tuple[KernelSignature, Capability]]) -> list[str]:
    """Warnings of kernels whose fewest blocks have no room on a multiprocessor of some capabilities.

    ptxas ignores that number there: a crate for many capabilities may still ask for what suits most.

    Args:
        kernels: Every kernel with every capability that it is built for.

    Raises:
        SignatureError: None of a kernel's capabilities has the room.
    """
    by_name: dict[str, list[tuple[KernelSignature, Capability]]] = {}
    for signature, capability in kernels:
        by_name.setdefault(signature.name, []).append((signature, capability))
    warnings = []
    for name, built in by_name.items():
        lacking = [each for each in built if _lacks(*each)]
        if not lacking:
            continue
        # Bounds may differ between capabilities.
        for bounds in dict.fromkeys(signature.launch_bounds for signature, _ in lacking):
            of_bounds = [capability for signature, capability in lacking if signature.launch_bounds == bounds]
            what = f"launch_bounds asks for {_shown_bounds(bounds or (0, 0))}, but {_shown_room(of_bounds)}"
            if len(lacking) == len(built):
                raise SignatureError(what, where=f"kernel '{name}'", hint=_FULL)
            warnings.append(f"kernel '{name}': {what}; it is ignored there")
    return warnings


_FULL = (
    "ask for fewer blocks; thread::RESIDENT_THREADS of rustcuda-device is what the capability has room for:\n"
    "#[kernel(launch_bounds(256, thread::RESIDENT_THREADS / 256))]"
)


def _lacks(signature: KernelSignature, capability: Capability) -> bool:
    threads, fewest = signature.launch_bounds or (0, 0)
    blocks, resident = room(capability)
    return fewest > blocks or fewest * threads > resident


def room(capability: Capability) -> tuple[int, int]:
    """Blocks and threads that a multiprocessor of the capability has room for."""
    return _LESS_ROOM.get(capability.base, (_MOST_BLOCKS, _MOST_RESIDENT_THREADS))


def _shown_room(capabilities: Iterable[Capability]) -> str:
    """`7.5 has 16 blocks and 1024 threads, 8.9 and 12.0 have 24 blocks and 1536 threads`."""
    alike: dict[tuple[int, int], list[str]] = {}
    for capability in capabilities:
        alike.setdefault(room(capability), []).append(capability.name)
    return ", ".join(
        f"{' and '.join(names)} {'have' if len(names) > 1 else 'has'} "
        f"at most {blocks} blocks and {threads} threads"
        for (blocks, threads), names in alike.items()
    )


def _shown_bounds(bounds: tuple[int, int]) -> str:
    threads, blocks = bounds
    return f"at least {blocks} blocks of {threads} threads per multiprocessor"


def _check_cluster(cluster: Extents, capability: Capability, where: str) -> None:
    if not 1 <= math.prod(cluster) <= _MOST_IN_CLUSTER:
        raise SignatureError(
            f"cluster asks for clusters of {_shown(cluster)} blocks",
            where=where,
            hint=f"use 1 to {_MOST_IN_CLUSTER} blocks; larger clusters are not portable",
        )
    if capability.base < _CLUSTERS_FROM:
        raise SignatureError(
            f"clusters need capability 9.0, but the pass is for {capability.name}",
            where=where,
            hint='put the kernel under #[cfg(cuda_arch = "90")]',
        )


def _shown(extents: Extents) -> str:
    return " x ".join(map(str, extents))


def directives(signature: KernelSignature) -> str:
    """The lines between a PTX entry's parameters and its body; empty where nothing is promised."""
    lines = []
    if signature.block:
        lines.append(f".reqntid {_listed(signature.block)}")
    elif signature.launch_bounds:
        lines.append(f".maxntid {signature.launch_bounds[0]}")
    if signature.launch_bounds and signature.launch_bounds[1]:
        lines.append(f".minnctapersm {signature.launch_bounds[1]}")
    if signature.cluster:
        lines += [".explicitcluster", f".reqnctapercluster {_listed(signature.cluster)}"]
    return "".join(f"{line}\n" for line in lines)


def _listed(extents: Extents) -> str:
    return ", ".join(map(str, extents))
