"""What is in a file with device code: its images, their kernels, and what these need."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rustcuda_backend import containers, cubin, cubin_resources, driver_floor, fatbin, oxart, ptx_outline
from rustcuda_backend.capability import Capability
from rustcuda_backend.containers import Piece
from rustcuda_backend.cuda_versions import DriverFloor
from rustcuda_backend.errors import FormatError
from rustcuda_backend.loader import tables


@dataclass(frozen=True)
class InspectedKernel:
    """One kernel of an image; memory in bytes, None where the image does not say.

    Attributes:
        name: The PTX entry.
        registers: Registers of each thread.
        shared: Static shared memory of each block.
        local: Local memory of each thread outside the stack.
        stack: Stack of each thread.
        signature: As the loader beside it has it; `""` without one.
    """

    name: str
    registers: int | None = None
    shared: int | None = None
    local: int | None = None
    stack: int | None = None
    signature: str = ""


@dataclass(frozen=True)
class InspectedImage:
    """One image.

    Attributes:
        capability: `"9.0a"`.
        kind: `"SASS"`, `"PTX"`, or what else nvcc has put there.
        compression: `"none"`, `"LZ4"` or `"zstd"`.
        size: Bytes, as they stand in the file.
        driver: The oldest driver branch that loads it; None where that is not known.
        driver_source: What the driver floor follows from, or why it is not known.
        kernels: Its kernels; None where they are not known: it is compressed, or of another kind.
    """

    capability: str
    kind: str
    compression: str
    size: int
    driver: int | None
    driver_source: str
    kernels: tuple[InspectedKernel, ...] | None


@dataclass(frozen=True)
class InspectedBundle:
    """What cuda-oxide says of the code that it embedded for one crate.

    Attributes:
        name: The cargo package.
        target: What it was compiled for, e.g. `"sm_80"`.
        version: Of the format.
        options: What compiling it further must keep to, e.g. `"no FMA"`.
        payloads: The files that it was written to.
        entries: Its functions.
    """

    name: str
    target: str
    version: int
    options: tuple[str, ...]
    payloads: tuple[str, ...]
    entries: tuple[oxart.Entry, ...]


@dataclass(frozen=True)
class InspectedPart:
    """A fatbin, cubin, PTX or bundle of cuda-oxide.

    Attributes:
        place: Where in the file, e.g. a wheel's member; `""` for all of it.
        images: Its images.
        bundle: What is known of a bundle; None for other parts.
    """

    place: str
    images: tuple[InspectedImage, ...]
    bundle: InspectedBundle | None = None


def inspect(path: Path) -> tuple[InspectedPart, ...]:
    """Looks into a wheel, fatbin, cubin, PTX, or an ELF file or rlib of the host.

    Raises:
        FormatError: There is no device code in the file, or it is damaged.
    """
    return tuple(part for piece in containers.pieces(path) for part in _parts(piece, path))


def _parts(piece: Piece, path: Path) -> Iterator[InspectedPart]:
    try:
        if piece.kind == "oxart":
            for bundle in oxart.read(piece.data):
                yield _bundle(bundle, piece.place)
            return
        kernels = tables.read(piece.loader).kernels if piece.loader else ()
        signatures = {kernel.name: kernel.signature for kernel in kernels}
        yield InspectedPart(piece.place, _images(piece, signatures))
    except FormatError as error:
        places = (str(path), piece.place, error.where)
        error.where = ", ".join(place for place in places if place)
        raise


_TARGET = re.compile(r"(?:sm|compute)_(\d{1,2})(\d)([af]?)")


def _bundle(bundle: oxart.Bundle, place: str) -> InspectedPart:
    try:
        images = tuple(_payload(payload, bundle.target) for payload in bundle.payloads)
    except FormatError as error:
        error.where = f"bundle {bundle.name}" + (f", {error.where}" if error.where else "")
        raise
    about = InspectedBundle(
        bundle.name,
        bundle.target,
        bundle.version,
        bundle.options,
        tuple(payload.name for payload in bundle.payloads),
        bundle.entries,
    )
    return InspectedPart(f"{place}, bundle {bundle.name}", images, about)


def _payload(payload: oxart.Payload, target: str) -> InspectedImage:
    if payload.kind == oxart.PTX:
        return _ptx(payload.data, None, {})
    if payload.kind == oxart.CUBIN:
        return _sass(payload.data, cubin.read_capability(payload.data), {})
    named = _TARGET.fullmatch(target)
    capability = Capability(int(named[1]), int(named[2]), named[3]).name if named else target
    return InspectedImage(capability, payload.kind, "none", len(payload.data), None, "not code", None)


def _images(piece: Piece, signatures: Mapping[str, str]) -> tuple[InspectedImage, ...]:
    if piece.kind == "cubin":
        return (_sass(piece.data, cubin.read_capability(piece.data), signatures),)
    if piece.kind == "ptx":
        return (_ptx(piece.data, None, signatures),)
    images = fatbin.read(piece.data, every_kind=True).images
    return tuple(_image(image, signatures) for image in images)


def _image(image: fatbin.Image, signatures: Mapping[str, str]) -> InspectedImage:
    if image.compressed or image.kind == "other":
        return _closed(image)
    if image.kind == "sass":
        return _sass(image.data, image.capability, signatures)
    return _ptx(image.data, image.capability, signatures)


# nvcc's intermediate code, which is compiled when it is linked.
_LTO = 8


def _closed(image: fatbin.Image) -> InspectedImage:
    """An image that cannot be looked into."""
    kinds = {"sass": "SASS", "ptx": "PTX", "other": "LTO-IR" if image.number == _LTO else f"{image.number}"}
    zstd = driver_floor.of_zstd().branch if image.method == "zstd" else None
    return InspectedImage(
        image.capability.name,
        kinds[image.kind],
        image.method or ("unknown" if image.compressed else "none"),
        len(image.data),
        None,
        f"compressed; reading zstd takes {zstd}"
        if zstd
        else "compressed"
        if image.compressed
        else "not code",
        None,
    )


def _sass(data: bytes, capability: Capability, signatures: Mapping[str, str]) -> InspectedImage:
    toolkit = cubin_resources.read_toolkit(data)
    if toolkit:
        floor = driver_floor.of_sass(capability, toolkit.cuda)
        source = f"CUDA {toolkit.cuda[0]}.{toolkit.cuda[1]} by {toolkit.source}"
    else:
        # ptxas 13 writes ABI 8; ptxas 12 only for GPUs from 10.0 on.
        abi = cubin.read(data).header.abi
        newer = abi == 8 and capability.base < (10, 0)
        floor = driver_floor.of_sass(capability, (13, 0) if newer else (12, 0))
        source = f"ELF ABI {abi}"
    kernels = tuple(
        InspectedKernel(
            kernel.name,
            kernel.registers,
            kernel.shared,
            kernel.local,
            kernel.stack,
            signatures.get(kernel.name, ""),
        )
        for kernel in cubin_resources.read_kernels(data)
    )
    return _open("SASS", capability, data, floor, source, kernels)


def _ptx(data: bytes, named: Capability | None, signatures: Mapping[str, str]) -> InspectedImage:
    outline = ptx_outline.read(data)
    capability = named or outline.capability
    kernels = tuple(InspectedKernel(name, signature=signatures.get(name, "")) for name in outline.kernels)
    floor = driver_floor.of_ptx(capability, outline.version)
    return _open("PTX", capability, data, floor, f"PTX ISA {outline.version}", kernels)


def _open(
    kind: str,
    capability: Capability,
    data: bytes,
    floor: DriverFloor | None,
    source: str,
    kernels: tuple[InspectedKernel, ...],
) -> InspectedImage:
    branch = floor.branch if floor else None
    return InspectedImage(capability.name, kind, "none", len(data), branch, source, kernels)
