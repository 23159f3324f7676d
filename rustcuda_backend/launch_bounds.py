"""What a kernel promises of its launches: whether any GPU can keep it, and the PTX that says it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rustcuda_backend.errors import SignatureError

if TYPE_CHECKING:
    from rustcuda_backend.capability import Capability
    from rustcuda_backend.signature import Extents, KernelSignature

# Limits of every GPU so far: CUDA C++ programming guide, "Technical Specifications per Compute Capability".
_MOST_THREADS = 1024
_MOST_BLOCKS = 32
_MOST_RESIDENT_THREADS = 2048
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
            f"launch_bounds asks for at least {blocks} blocks of {threads} threads per multiprocessor",
            where=where,
            hint=f"a multiprocessor has at most {_MOST_BLOCKS} blocks and {_MOST_RESIDENT_THREADS} threads",
        )


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
