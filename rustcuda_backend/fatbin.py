"""Reading fatbins: the container of cubins and PTX that libnvfatbin and fatbinary write.

NVIDIA documents the outer header only (fatbinary_section.h). The rest was learned from what the tools of
CUDA 12.9 and 13.0 write; all numbers are little-endian:

    fatbin   u32 magic, u16 version, u16 bytes of this header, u64 bytes of all entries
    entry    u16 kind, u16 version, u32 bytes of this header, u64 bytes of the payload with its padding,
             u32 bytes of compressed data or 0, u32, u16 and u16 version of the code, u32 capability,
             u32 offset and u32 length of the identifier, u64 flags, u64, u64 bytes when decompressed or 0,
             then identifier and options up to the end of the header; the payload follows
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from rustcuda_backend import cubin
from rustcuda_backend.capability import Capability
from rustcuda_backend.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["sass", "ptx", "other"]


@dataclass(frozen=True)
class Image:
    """One entry of a fatbin.

    Attributes:
        kind: `"sass"` (a cubin) or `"ptx"`; also `"other"` where everything was asked for.
        capability: What it is for; its `ptx` is never set.
        data: The cubin or the PTX text; as it stands in the fatbin if it is compressed.
        compressed: Whether `data` is compressed.
        method: How: `"LZ4"` (CUDA 12's default), `"zstd"` (CUDA 13's), or `""`.
        number: The format's number for the kind.
    """

    kind: Kind
    capability: Capability
    data: bytes
    compressed: bool
    method: str = field(default="", compare=False)
    number: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Fatbin:
    """The images of one or several fatbins that follow each other, in their order."""

    images: tuple[Image, ...]


_MAGIC = 0xBA55ED50
_FATBIN = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQI4x4xI8xQ8xQ")
_KINDS: dict[int, Kind] = {1: "ptx", 2: "sass"}
_FLAG_LZ4 = 0x2000
_FLAG_ZSTD = 0x8000
_FLAG_ARCHITECTURE = 0x100000
_FLAG_FAMILY = 0x200000
_ZEROS = re.compile(rb"\0*")
_TARGET = re.compile(rb"(?:^|\s)\.target\s+sm_(\d+)([af]?)\b")


def read(data: bytes, *, every_kind: bool = False) -> Fatbin:
    """Reads a fatbin, or several that follow each other with or without zeros between them.

    Args:
        data: The fatbin.
        every_kind: Whether entries may also be of other kinds, e.g. nvcc's intermediate code for linking.

    Raises:
        FormatError: No fatbin, a damaged one, one of an unknown version, or one that holds anything but
            cubins and PTX unless that was asked for.
    """
    images: list[Image] = []
    offset = 0
    while offset < len(data):
        begin, end = _entries_of(data, offset)
        images += _images(data, begin, end, every_kind)
        offset = _end_of_zeros(data, end)
    if not images:
        raise FormatError("the fatbin holds no image")
    return Fatbin(tuple(images))


def _end_of_zeros(data: bytes, offset: int) -> int:
    zeros = _ZEROS.match(data, offset)
    return zeros.end() if zeros else offset


def _entries_of(data: bytes, offset: int) -> tuple[int, int]:
    """Where a fatbin's entries begin and end."""
    if offset + _FATBIN.size > len(data):
        raise FormatError(f"the fatbin's header at byte {offset} is cut off")
    magic, version, header_size, size = _FATBIN.unpack_from(data, offset)
    if magic != _MAGIC:
        raise FormatError(f"there is no fatbin at byte {offset}: it begins with 0x{magic:08x}")
    if version != 1 or header_size < _FATBIN.size:
        raise FormatError(f"the fatbin at byte {offset} has the unknown version {version}")
    begin = offset + header_size
    if begin + size > len(data):
        raise FormatError(f"the fatbin at byte {offset} is cut off: its entries have {size} bytes")
    return begin, begin + size


def _images(data: bytes, offset: int, end: int, every_kind: bool) -> Iterator[Image]:
    while offset < end:
        where = f"entry at byte {offset}"
        if offset + _ENTRY.size > end:
            raise FormatError("the header of a fatbin's entry is cut off", where=where)
        kind, _, header_size, size, packed, number, flags, unpacked = _ENTRY.unpack_from(data, offset)
        payload = offset + header_size
        if header_size < _ENTRY.size or payload + size > end or packed > size:
            raise FormatError("the fatbin's entry reaches beyond its end", where=where)
        if kind not in _KINDS and not every_kind:
            raise FormatError(
                f"the fatbin holds an entry of the kind {kind}, which is neither SASS nor PTX", where=where
            )
        # Either number alone tells that the payload is compressed.
        compressed = bool(packed or unpacked)
        content = data[payload : payload + (packed or size)]
        capability = _capability(number, flags, where)
        method = "zstd" if flags & _FLAG_ZSTD else "LZ4" if flags & _FLAG_LZ4 else ""
        named = _KINDS.get(kind, "other")
        if not compressed and named != "other":
            content, capability = _checked(named, content, capability, where)
        yield Image(named, capability, content, compressed, method, kind)
        offset = payload + size


def _capability(number: int, flags: int, where: str) -> Capability:
    if not 10 <= number < 1000 or (flags & _FLAG_ARCHITECTURE and flags & _FLAG_FAMILY):
        raise FormatError(
            f"the fatbin's entry names no capability (number {number}, flags 0x{flags:x})", where=where
        )
    suffix = "a" if flags & _FLAG_ARCHITECTURE else "f" if flags & _FLAG_FAMILY else ""
    return Capability(number // 10, number % 10, suffix)


def _checked(kind: Kind, content: bytes, named: Capability, where: str) -> tuple[bytes, Capability]:
    """The content without padding and its capability, which may say more than the entry does."""
    if kind == "ptx":
        content = content.rstrip(b"\0")
        target = _TARGET.search(content)
        if not target or len(target[1]) > 3:
            raise FormatError("the PTX in the fatbin has no .target", where=where)
        number = int(target[1])
        found = Capability(number // 10, number % 10, target[2].decode())
    else:
        try:
            found = cubin.read_capability(content)
        except FormatError as error:
            error.where = where
            raise
    if found.base != named.base or (found.suffix and named.suffix and found.suffix != named.suffix):
        raise FormatError(
            f"the fatbin's entry is for {named.name}, but what it holds is for {found.name}", where=where
        )
    return content, found if found.suffix else named
