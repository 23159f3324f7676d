"""Adding LLVM bitcode to an rlib, so that fat LTO links it as if rustc had compiled it into the crate.

An rlib is an `ar` archive of object files, here bitcode, and the crate's metadata. rustc takes the members
for its own whose names end in `.rcgu.o`; from 1.97 on those that the member `lib.rmeta-link` lists.
"""

from __future__ import annotations

from collections.abc import Mapping

from rustcuda_backend import ar_reader
from rustcuda_backend.errors import FormatError

_LIST = "lib.rmeta-link"
# What rustc's metadata has after each string.
_STRING_END = 0xC1


def add_members(rlib: bytes, members: Mapping[str, bytes]) -> bytes:
    """The rlib with more object files in it; spares users binutils.

    Args:
        rlib: The content of the rlib.
        members: Bitcode by name; names end in `.rcgu.o` and have at most 15 bytes.

    Raises:
        FormatError: It is no archive, or its list of object files is of an unknown form.
    """
    written = [
        _written(_LIST, _listed(member.data, list(members)))
        if member.name == _LIST
        else member.header + _padded(member.data)
        for member in ar_reader.members(rlib, "rlib of the sysroot")
    ]
    return b"".join([ar_reader.MAGIC, *written, *(_written(name, data) for name, data in members.items())])


def _written(name: str, data: bytes) -> bytes:
    # Name, date, owner, group, mode, size, end mark.
    header = f"{name + '/':<16}{0:<12}{0:<6}{0:<6}{'644':<8}{len(data):<10}`\n"
    return header.encode("ascii") + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + b"\n" * (len(data) % 2)


def _listed(content: bytes, names: list[str]) -> bytes:
    """`lib.rmeta-link` with more names in its list of object files.

    It begins with the number of names; each is its length, itself and an end mark. What follows does not
    concern us. Numbers are LEB128, as everywhere in rustc's metadata.
    """
    count, start = _number(content, 0)
    position = start
    for _ in range(count):
        length, position = _number(content, position)
        position += length + 1
        if content[position - 1 : position] != bytes([_STRING_END]):
            raise _unknown_form()
    added = b"".join(_leb128(len(name)) + name.encode() + bytes([_STRING_END]) for name in names)
    return _leb128(count + len(names)) + content[start:position] + added + content[position:]


def _unknown_form() -> FormatError:
    return FormatError(
        "this rustc lists the object files of an rlib in an unknown form",
        hint="use another version of Rust; 1.96 to 1.99 are known to work",
    )


def _number(content: bytes, position: int) -> tuple[int, int]:
    """A LEB128 number and the position after it."""
    number = shift = 0
    while position < len(content):
        byte = content[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, position
    raise _unknown_form()


def _leb128(number: int) -> bytes:
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])
