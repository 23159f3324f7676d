"""Object files that carry a fatbin: relocatable ELF64 with the section where CUDA's tools look for it."""

from __future__ import annotations

import struct

SECTION = ".nv_fatbin"
# Linkers give programs an executable stack for objects that do not say, by this section, that they need none.
_STACK = ".note.GNU-stack"

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
    """A relocatable object with its content in `.nv_fatbin`; the same fatbin gives the same bytes.

    Args:
        fatbin: The section's content, which begins at byte `OFFSET` of the file.
    """
    names = b"\0".join(name.encode() for name in ("", SECTION, _STACK, ".shstrtab", ""))
    names_offset = OFFSET + len(fatbin)
    end = names_offset + len(names)
    table_offset = -(-end // _ALIGNMENT) * _ALIGNMENT

    def section(name: str, kind: int, flags: int, offset: int, size: int, alignment: int) -> bytes:
        return _SECTION_HEADER.pack(
            *(names.index(name.encode()), kind, flags, 0, offset, size, 0, 0, alignment, 0)
        )

    sections = (
        bytes(_SECTION_HEADER.size),
        section(SECTION, _PROGBITS, _ALLOC, OFFSET, len(fatbin), _ALIGNMENT),
        section(_STACK, _PROGBITS, 0, names_offset, 0, 1),
        section(".shstrtab", _STRTAB, 0, names_offset, len(names), 1),
    )
    header = _HEADER.pack(
        *(_IDENT, _RELOCATABLE, _MACHINE, 1, 0, 0, table_offset, 0),
        *(_HEADER.size, 0, 0, _SECTION_HEADER.size, len(sections), len(sections) - 1),
    )
    return b"".join((header, fatbin, names, bytes(table_offset - end), *sections))
