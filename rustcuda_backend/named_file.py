"""Reading a file that the user has named: a plain file, of a size that can be held in memory."""

from __future__ import annotations

import stat
from pathlib import Path

from rustcuda_backend.errors import FormatError

# More than the largest libraries that wheels carry, which have 1 to 2 GiB.
MOST_BYTES = 4 << 30

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def check(path: Path) -> None:
    """Checks that a file can be read to its end.

    Raises:
        FormatError: It is not there, no plain file, or larger than `MOST_BYTES`.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from None
    kind = next((noun for is_kind, noun in _KINDS if is_kind(found.st_mode)), "")
    if kind:
        raise FormatError(f"this is {kind}, not a file", where=str(path), hint="name a plain file")
    check_size(found.st_size, "the file", str(path))


def check_size(size: int, noun: str, where: str) -> None:
    """Keeps a size that a file only claims from filling the memory.

    Raises:
        FormatError: It is larger than `MOST_BYTES`.
    """
    if size > MOST_BYTES:
        raise FormatError(
            f"{noun} has {size} bytes, more than can be looked into ({MOST_BYTES})", where=where
        )


def read(path: Path) -> bytes:
    """The file's content.

    Raises:
        FormatError: See `check`, or it cannot be read.
    """
    check(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> FormatError:
    return FormatError(f"the file cannot be read: {error.strerror}", where=str(path))
