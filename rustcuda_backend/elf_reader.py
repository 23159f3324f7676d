"""Reading ELF: the sections of 64-bit little-endian files, both cubins and those of the host.

Our own: pyelftools drops the bit of st_other that tells kernels from the functions they call, and takes
27 ms for a cubin of 108 kernels.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rustcuda_backend.errors import FormatError

MAGIC = b"\x7fELF"
EM_CUDA = 190
SHT_SYMTAB = 2

_HEADER = struct.Struct("<4sBBxxB7xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SHT_NOBITS = 8
# Bounds the time that a damaged string table can take.
_LONGEST_NAME = 1 << 16
_XINDEX = 0xFFFF


@dataclass(frozen=True)
class Header:
    """What an ELF header says.

    Attributes:
        abi: The version of the ABI.
        machine: What the code is for, e.g. `EM_CUDA`.
        flags: The machine's own flags.
        offset, entry_size, count, names: Where the section table is, the bytes of an entry and their
            number, and which section has the names.
    """

    abi: int
    machine: int
    flags: int
    offset: int
    entry_size: int
    count: int
    names: int


@dataclass(frozen=True)
class Section:
    """One section.

    Attributes:
        name: Its name.
        kind: Its type, e.g. `SHT_SYMTAB`.
        span: Where its content is in the file; empty where it has none there.
        size: The bytes that it has when it is loaded.
        link: The section that belongs to it, e.g. a symbol table's names.
    """

    name: bytes
    kind: int
    span: slice
    size: int
    link: int


@dataclass(frozen=True)
class Elf:
    """An ELF file.

    Attributes:
        data: The file.
        header: Its header.
        sections: All of them, in the order of the file.
    """

    data: bytes
    header: Header
    sections: tuple[Section, ...]

    @functools.cached_property
    def _by_name(self) -> Mapping[bytes, Section]:
        return {section.name: section for section in reversed(self.sections)}

    def section(self, name: bytes) -> Section | None:
        """The first section of that name."""
        return self._by_name.get(name)

    def content(self, name: bytes) -> bytes:
        """The bytes of the first section of that name; none where there is none."""
        section = self.section(name)
        return self.data[section.span] if section else b""


def read_header(data: bytes, noun: str) -> Header:
    """Reads the header.

    Args:
        data: The file.
        noun: What to call it in messages.

    Raises:
        FormatError: No ELF header, or not a 64-bit little-endian one.
    """
    if len(data) < _HEADER.size or not data.startswith(MAGIC):
        raise FormatError(f"this is no {noun}: it does not begin with an ELF header")
    fields = _HEADER.unpack_from(data)
    _, bits, order, abi, _, machine, _, _, _, offset, flags, _, _, _, size, count, names = fields
    if (bits, order) != (2, 1):
        raise FormatError(f"this {noun} is not a 64-bit little-endian ELF file")
    return Header(abi, machine, flags, offset, size, count, names)


def read(data: bytes, header: Header, noun: str) -> Elf:
    """Reads the sections.

    Raises:
        FormatError: The section table, a section or its name reaches beyond the end, or many sections
            overlap.
    """
    if not header.offset:
        return Elf(data, header, ())
    count, names = header.count, header.names
    if header.entry_size == _SECTION.size and header.offset + _SECTION.size <= len(data):
        # Numbers that are too large for the header stand in the first entry.
        first = _SECTION.unpack_from(data, header.offset)
        count, names = count or first[5], first[6] if names == _XINDEX else names
    end = header.offset + _SECTION.size * count
    if header.entry_size != _SECTION.size or names >= count or end > len(data):
        raise FormatError(f"the {noun}'s section table is malformed or cut off")
    entries = tuple(_SECTION.iter_unpack(data[header.offset : end]))
    spans = [_span(data, entry, noun) for entry in entries]
    # ptxas lets `.nv.merc.*` sections lie where the ones that they repeat do.
    if sum(span.stop - (span.start or 0) for span in spans) > 2 * len(data):
        raise FormatError(f"the {noun}'s sections overlap")
    named = strings(data[spans[names]], (entry[0] for entry in entries), 2 * len(data), noun)
    sections = tuple(
        Section(name, entry[1], span, entry[5], entry[6])
        for name, entry, span in zip(named, entries, spans, strict=True)
    )
    return Elf(data, header, sections)


def strings(table: bytes, offsets: Iterable[int], most: int, noun: str) -> Iterator[bytes]:
    """The strings that begin at these offsets of a string table; one may be the end of another.

    Args:
        table: The table.
        offsets: Where they begin.
        most: Bytes that all of them may have together.
        noun: What to call the file in messages.

    Raises:
        FormatError: One does not end, or they are longer than that.
    """
    for offset in offsets:
        end = table.find(b"\0", offset, offset + _LONGEST_NAME)
        if end < 0:
            raise FormatError(f"a name in the {noun} is cut off")
        most -= end - offset
        if most < 0:
            raise FormatError(f"the names in the {noun} overlap")
        yield table[offset:end]


def _span(data: bytes, entry: tuple[int, ...], noun: str) -> slice:
    kind, offset, size = entry[1], entry[4], entry[5]
    # The first entry is none, whatever it holds.
    if kind in (0, _SHT_NOBITS):
        return slice(0)
    if offset + size > len(data):
        raise FormatError(f"a section of the {noun} reaches beyond its end")
    return slice(offset, offset + size)
