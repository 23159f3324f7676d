"""The files that device code comes in: what kind a file is, and the fatbins, cubins and PTX inside it."""

from __future__ import annotations

import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from rustcuda_backend import ar_reader, elf_reader, named_file, oxart
from rustcuda_backend.errors import FormatError
from rustcuda_backend.generated import MARK

if TYPE_CHECKING:
    from collections.abc import Iterator

# Where nvcc puts fatbins, those that are ready and those that are still to be linked, and cuda-oxide bundles.
_SECTIONS = {b".nv_fatbin": "fatbin", b"__nv_relfatbin": "fatbin", oxart.SECTION: "oxart"}
_FATBIN_MAGIC = b"\x50\xed\x55\xba"
_MAGICS = (_FATBIN_MAGIC, elf_reader.MAGIC, ar_reader.MAGIC)
# CUDA has no other hosts.
_ELF64_LITTLE = b"\2\1"
_ZIP_MAGIC = b"PK\x03\x04"
# No text has zeros before its end.
_PTX = re.compile(rb"\A[^\0]*?^[ \t]*\.version[ \t]+\d+\.\d+\s", re.MULTILINE)
# PTX begins with comments, then its version; a few KiB tell whether it is one.
_PTX_HEAD = 1 << 14


@dataclass(frozen=True)
class Piece:
    """Device code as it was found in a file.

    Attributes:
        place: Where in the file, e.g. a wheel's member or an ELF section; `""` for the file itself.
        kind: `"fatbin"`, `"cubin"`, `"ptx"` or `"oxart"`.
        data: Its bytes.
        loader: The text of the generated loader beside it; `""` without one.
    """

    place: str
    kind: str
    data: bytes
    loader: str = ""


def pieces(path: Path) -> list[Piece]:
    """All device code in a file.

    Raises:
        FormatError: The file is of no kind that can hold device code, damaged, or has none.
    """
    data = named_file.read(path)
    if data.startswith(_ZIP_MAGIC):
        found = list(_of_archive(path))
    elif data.startswith(_MAGICS) or _PTX.search(data[:_PTX_HEAD]):
        found = list(_located(_of_file(data, _text(_loader_beside(path))), str(path)))
    else:
        raise FormatError(
            "this is no wheel, fatbin, cubin, PTX, ELF file or rlib",
            where=str(path),
            hint="name one of these, e.g. the wheel that a build has written",
        )
    if not found:
        raise FormatError("there is no device code in this file", where=str(path))
    return found


def bundles(data: bytes) -> tuple[oxart.Bundle, ...]:
    """What cuda-oxide has embedded in an ELF file of the host; nothing in any other file.

    Raises:
        FormatError: It is damaged.
    """
    # Libraries without any need not be read further, nor understood.
    if not data.startswith(elf_reader.MAGIC + _ELF64_LITTLE) or oxart.MAGIC not in data:
        return ()
    found = [piece for piece in _of_elf(data, "", "") if piece.kind == "oxart"]
    return tuple(bundle for piece in found for bundle in oxart.read(piece.data))


def _loader_beside(path: Path) -> bytes:
    """The generated loader of the same name, if there is one."""
    try:
        return named_file.read(path.with_suffix(".py"))
    except FormatError:
        return b""


def _text(loader: bytes) -> str:
    return loader.decode("utf-8", "replace") if loader.startswith(MARK) else ""


def _of_file(data: bytes, loader: str, place: str = "") -> Iterator[Piece]:
    """The device code in a file that is no archive; none where it is a host's without any."""
    if data.startswith(_FATBIN_MAGIC):
        yield Piece(place, "fatbin", data, loader)
    elif data.startswith(ar_reader.MAGIC):
        yield from _of_library(data, place)
    elif not data.startswith(elf_reader.MAGIC):
        yield Piece(place, "ptx", data, loader)
    elif data[4:6] == _ELF64_LITTLE:
        yield from _of_elf(data, loader, place)


def _of_elf(data: bytes, loader: str, place: str) -> Iterator[Piece]:
    header = elf_reader.read_header(data, "file")
    if header.machine == elf_reader.EM_CUDA:
        yield Piece(place, "cubin", data, loader)
    else:
        found = [each for each in elf_reader.read(data, header, "file").sections if each.name in _SECTIONS]
        for section in found:
            content = data[section.span]
            # What has been stripped is all zeros.
            if content.count(0) < len(content):
                name = section.name.decode()
                kind = _SECTIONS[section.name]
                yield Piece(f"{place}, {name}" if place else name, kind, content, loader)


def _of_library(data: bytes, place: str) -> Iterator[Piece]:
    """The device code in the object files of a static library or rlib."""
    for member in ar_reader.members(data, "file"):
        if member.data.startswith(elf_reader.MAGIC + _ELF64_LITTLE):
            yield from _of_elf(member.data, "", f"{place}, {member.name}" if place else member.name)


def _of_archive(path: Path) -> Iterator[Piece]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            for member in archive.infolist():
                if member.is_dir():
                    continue
                with archive.open(member) as stream:
                    head = stream.read(len(ar_reader.MAGIC))
                if not head.startswith(_MAGICS) and not member.filename.endswith(".ptx"):
                    continue
                beside = str(Path(member.filename).with_suffix(".py").as_posix())
                place = f"{path}, {member.filename}"
                for read in (member, *((archive.getinfo(beside),) if beside in names else ())):
                    named_file.check_size(read.file_size, read.filename, place)
                loader = _text(archive.read(beside)) if beside in names else ""
                inside = _of_file(archive.read(member), loader, member.filename)
                yield from _located(inside, place)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        # The last two: encrypted, or compressed in a way that this Python lacks.
        raise FormatError(f"the archive cannot be read: {error}", where=str(path)) from None


def _located(found: Iterator[Piece], place: str) -> Iterator[Piece]:
    """The same pieces; what goes wrong says where."""
    try:
        yield from found
    except FormatError as error:
        error.where = f"{place}, {error.where}" if error.where else place
        raise


# What only device code is called.
_NAMES = {".cubin": "cubin", ".fatbin": "fatbin", ".ptx": "PTX"}


def device_file(name: str, data: bytes) -> str:
    """What kind of device code a file is all of, e.g. `"PTX"`; `""` for any other file.

    The first bytes tell, or else the name: what is damaged is still no host's file.
    """
    if data.startswith(_FATBIN_MAGIC):
        return "fatbin"
    # The machine stands in bytes 18 and 19.
    if data.startswith(elf_reader.MAGIC) and data[18:20] == elf_reader.EM_CUDA.to_bytes(2, "little"):
        return "cubin"
    return _NAMES.get(PurePosixPath(name).suffix.lower(), "")
