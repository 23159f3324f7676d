"""Object files that carry a fatbin: relocatable ELF64 with the section where CUDA's tools look for it."""

from __future__ import annotations

import struct

SECTION = ".nv_fatbin"

# e_machine and such must be one that tools know; the file holds no code for it, so it fits any machine.
_MACHINE = 62  # EM_X86_64
_RELOCATABLE = 1  # ET_REL
_PROGBITS, _STRTAB = 1, 3
_ALLOC = 2

# ident, type, machine, version, entry, phoff, shoff, flags,
# ehsize, phentsize, phnum, shentsize, shnum, shstrndx
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
# name, type, flags, addr, offset, size, link, info, addralign, entsize
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_IDENT = b"\x7fELF\x02\x01\x01" + bytes(9)  # 64 bits, little-endian, version 1, System V

# The driver reads 8-byte fields of a fatbin.
_ALIGNMENT = 8

# Where the fatbin begins in every such file: right behind the header.
OFFSET = _HEADER.size


def object_file(fatbin: bytes) -> bytes:
    """A relocatable object with one section `.nv_fatbin`; the same fatbin gives the same bytes.

    Args:
        fatbin: The section's content, which begins at byte `OFFSET` of the file.
    """
    names = b"\0" + SECTION.encode() + b"\0.shstrtab\0"
    names_offset = OFFSET + len(fatbin)
    end = names_offset + len(names)
    table_offset = -(-end // _ALIGNMENT) * _ALIGNMENT
    header = _HEADER.pack(
        *(_IDENT, _RELOCATABLE, _MACHINE, 1, 0, 0, table_offset, 0),
        *(_HEADER.size, 0, 0, _SECTION_HEADER.size, 3, 2),
    )
    sections = (
        bytes(_SECTION_HEADER.size),
        _SECTION_HEADER.pack(
            names.index(SECTION.encode()), _PROGBITS, _ALLOC, 0, OFFSET, len(fatbin), 0, 0, _ALIGNMENT, 0
        ),
        _SECTION_HEADER.pack(names.index(b".shstrtab"), _STRTAB, 0, 0, names_offset, len(names), 0, 0, 1, 0),
    )
    return b"".join((header, fatbin, names, bytes(table_offset - end), *sections))
