"""Calling NVIDIA's packer, as a library or as a program, and checking what it wrote."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rustcuda_backend import fatbin, process, ptx_outline
from rustcuda_backend.errors import AssembleError, FormatError, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rustcuda_backend.capability import Capability
    from rustcuda_backend.cubin import Cubin
    from rustcuda_backend.ptx import PtxModule

# The name of every image in the fatbin; cuobjdump makes its file names of it.
IDENTIFIER = "kernels"


class _Input(NamedTuple):
    """One image as the packer gets it."""

    kind: fatbin.Kind
    capability: Capability
    data: bytes
    compressed: bool = False


def pack(packer: Path, cubins: Sequence[Cubin], ptx: Sequence[PtxModule]) -> bytes:
    """Packs cubins and PTX into one fatbin, uncompressed: older drivers cannot read zstd.

    The same images give the same bytes: nothing in them tells of files or places.

    Args:
        packer: The shared library libnvfatbin, or the executable fatbinary.
        cubins: The SASS, in the order wanted.
        ptx: The PTX to ship besides.

    Raises:
        AssembleError: The packer refuses an image, or writes something else than was asked for.
        ToolError: The packer does not start.
    """
    images = [_Input("sass", cubin.capability, cubin.data) for cubin in cubins]
    images += [_Input("ptx", module.capability, _bare_ptx(module.text)) for module in ptx]
    if packer.stem.startswith("fatbinary"):
        data = _pack_by_executable(packer, images)
    else:
        data = _pack_by_library(packer, images)
    _check_images(data, images, packer)
    return data


def _bare_ptx(text: str) -> bytes:
    """PTX without comments, beginning with a line end.

    libnvfatbin 12.9 loses a `.version` that is the very first thing, does not find one that a comment
    also mentions, and takes out comments only in part.
    """
    return f"\n{ptx_outline.without_comments(text).strip()}\n".encode()


def _check_images(data: bytes, asked: Sequence[_Input], packer: Path) -> None:
    try:
        written = fatbin.read(data).images
    except FormatError as error:
        raise AssembleError(
            f"the packer wrote a fatbin that cannot be read: {error.what}", where=str(packer)
        ) from error
    if [_comparable(image) for image in written] != [_comparable(image) for image in asked]:
        raise AssembleError(
            f"the packer was given {_listed(asked)}, but it wrote {_listed(written)}",
            where=str(packer),
            hint="use the packer of a supported CUDA version",
        )


def _comparable(image: _Input | fatbin.Image) -> tuple[object, ...]:
    # The packer pads cubins, and takes spaces out of PTX.
    content = image.data.split() if image.kind == "ptx" else image.data.rstrip(b"\0")
    return image.kind, image.capability.number, content, image.compressed


def _listed(images: Iterable[_Input | fatbin.Image]) -> str:
    return ", ".join(f"{image.kind} {image.capability.name} ({len(image.data)} bytes)" for image in images)


def _pack_by_library(path: Path, images: Sequence[_Input]) -> bytes:
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ToolError(f"libnvfatbin cannot be loaded: {error}", where=str(path)) from error
    library.nvFatbinGetErrorString.restype = ctypes.c_char_p

    def call(function: str, doing: str, *arguments: object) -> None:
        status = library[function](*arguments)
        if status:
            message = library.nvFatbinGetErrorString(status).decode("utf-8", "replace")
            raise AssembleError(f"libnvfatbin failed to {doing}: {message}", where=str(path))

    handle, size = ctypes.c_void_p(), ctypes.c_size_t()
    options = (ctypes.c_char_p * 2)(b"-64", b"-compress=false")
    call("nvFatbinCreate", "start", ctypes.byref(handle), options, ctypes.c_size_t(len(options)))
    try:
        for image in images:
            arch = image.capability.number.encode()
            given = (handle, image.data, ctypes.c_size_t(len(image.data)), arch, IDENTIFIER.encode())
            if image.kind == "sass":
                call("nvFatbinAddCubin", f"add the cubin for {image.capability.sm}", *given)
            else:
                call("nvFatbinAddPTX", f"add the PTX for {image.capability.sm}", *given, None)
        call("nvFatbinSize", "pack", handle, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        call("nvFatbinGet", "pack", handle, buffer)
    finally:
        library.nvFatbinDestroy(ctypes.byref(handle))
    return buffer.raw


def _pack_by_executable(path: Path, images: Sequence[_Input]) -> bytes:
    # Relative names only: a comma in a path would end the value of --image3.
    argv = ["-64", "--compress-mode=none", f"--ident={IDENTIFIER}", "--create=fatbin"]
    with tempfile.TemporaryDirectory(prefix="rustcuda-") as folder:
        for index, image in enumerate(images):
            Path(folder, str(index)).write_bytes(image.data)
            kind = "elf" if image.kind == "sass" else "ptx"
            argv.append(f"--image3=kind={kind},sm={image.capability.number},file={index}")
        try:
            finished = process.run([path, *argv], cwd=Path(folder))
        except OSError as error:
            raise ToolError(f"fatbinary does not start: {error.strerror}", where=str(path)) from error
        if not finished.ok:
            said = (finished.stdout + finished.stderr).strip() or f"exit status {finished.returncode}"
            raise AssembleError(f"fatbinary failed to pack: {said}", where=str(path))
        return Path(folder, "fatbin").read_bytes()
