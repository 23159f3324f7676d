"""Reading `ar` archives, which static libraries and Rust's rlibs are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rustcuda_backend.errors import FormatError

MAGIC = b"!<arch>\n"
_HEADER_BYTES = 60
_END = b"`\n"
_NAMES = "//"
# Bytes, more than file systems allow; bounds the time that a damaged list of names can take.
_LONGEST_NAME = 1 << 10
_LONG_NAME = re.compile(r"/(\d{1,15})")


@dataclass(frozen=True)
class Member:
    """One file in an archive.

    Attributes:
        name: Its name; of the archive's own members `"/"` and `"//"`.
        header: The bytes before it.
        data: Its content.
    """

    name: str
    header: bytes
    data: bytes


def members(archive: bytes, noun: str) -> Iterator[Member]:
    """The members of an archive, in its order.

    Args:
        archive: The file.
        noun: What to call it in messages.

    Raises:
        FormatError: It is no archive, or a member is malformed or cut off.
    """
    if not archive.startswith(MAGIC):
        raise FormatError(f"the {noun} is no ar archive")
    position, names = len(MAGIC), b""
    while position < len(archive):
        header = archive[position : position + _HEADER_BYTES]
        size, start = header[48:58].rstrip(), position + _HEADER_BYTES
        if header[58:] != _END or not size.isdigit() or start + int(size) > len(archive):
            raise FormatError(f"the {noun} is a malformed ar archive, at byte {position}")
        end = start + int(size)
        name = header[:16].decode("latin-1").rstrip()
        yield Member(_name(name, names), header, archive[start:end])
        if name == _NAMES:
            names = archive[start:end]
        position = end + end % 2


def _name(name: str, names: bytes) -> str:
    """A member's name, which stands among the long ones where the header gives a place there."""
    place = _LONG_NAME.fullmatch(name)
    if place:
        start = min(int(place[1]), len(names))
        end = names.find(b"\n", start, start + _LONGEST_NAME)
        name = names[start : end if end >= 0 else start + _LONGEST_NAME].decode("utf-8", "replace")
    return name.rstrip("/") or name
