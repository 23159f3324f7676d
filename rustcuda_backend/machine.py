"""What a machine lacks, told as errors of the user's: room, rights, or the right kind of file in a place."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from pathlib import Path

from rustcuda_backend import cache
from rustcuda_backend.errors import RustcudaError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_RIGHTS = (errno.EROFS, errno.EACCES, errno.EPERM)
_KINDS = (errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG)

# How temporary folders of this package and of pip begin.
_TEMPORARY = ("rustcuda-", "pip-")

# What other programs say of a full disk.
_SAID_FULL = re.compile(r"No space left on device|Disk quota exceeded|os error 28\b")


def told(error: OSError, *places: Path) -> RustcudaError | None:
    """An operating system's error as the user's; None where it looks like a fault of ours.

    Args:
        error: The error.
        places: Folders that were written to, for errors that name no file, as writing's do not.
    """
    number, name = _number_and_name(error)
    if number == errno.ENOENT and name is None and "temporary directory" in (error.strerror or ""):
        # Python tries to write into each.
        return RustcudaError(
            "no folder for temporary files takes any",
            where=(error.strerror or "").partition(" in ")[2],
            hint="make room there (df -h), or set TMPDIR to a folder with room",
        )
    if number not in (*_FULL, *_RIGHTS, *_KINDS, errno.EFBIG):
        return None
    if name is not None:
        place = Path(os.fsdecode(name))
    elif number in _FULL:
        place = fullest(*places, Path(tempfile.gettempdir()), cache.directory())
    else:
        return None
    what = os.strerror(number).lower()
    if place.is_relative_to(cache.directory()):
        what = f"the cache folder cannot be written: {what}"
    return RustcudaError(what, where=str(place), hint=_hint(place, number))


def _number_and_name(error: OSError) -> tuple[int | None, str | bytes | None]:
    """The error's number and the file that it is about."""
    if isinstance(error, shutil.Error) and isinstance(error.args[0], list):
        # Copying a folder goes on to its end and collects what failed, as text.
        _, name, why = error.args[0][0]
        found = re.match(r"\[Errno (\d+)\]", str(why))
        return (int(found[1]) if found else None), str(name)
    # Copying names the source first.
    name = error.filename2 or error.filename
    return error.errno, name if isinstance(name, (str, bytes)) else None


def fullest(*places: Path) -> Path:
    """The place on the disk with the least room."""
    return min(places, key=lambda place: shutil.disk_usage(_existing(place)).free)


def _existing(place: Path) -> Path:
    """The place, or the nearest folder above it that is there, since failed builds clean up."""
    return next(each for each in (place, *place.parents) if each.exists())


def _disk(place: Path) -> Path:
    """The folder that the place's disk is mounted at."""
    found = _existing(place.absolute())
    while found != found.parent and not found.is_mount():
        found = found.parent
    return found


def hint_if_full(said: str, *places: Path) -> str:
    """What to do where a program has said that a disk is full; "" where it has not.

    Args:
        said: What it printed.
        places: Where it writes to, beside the folder for temporary files.
    """
    if not _SAID_FULL.search(said):
        return ""
    return _hint(fullest(*places, Path(tempfile.gettempdir())), errno.ENOSPC)


def _hint(place: Path, number: int) -> str:
    variable = _variable(place)
    if number in _FULL:
        other = f",\nor set {variable} to a folder on another disk" if variable else ""
        return f"make room on the disk that is mounted at {_disk(place)}{other}"
    if number == errno.EFBIG:
        return "raise the limit of files' sizes (ulimit -f)"
    if variable:
        return f"set {variable} to a folder that can be written"
    if number not in _RIGHTS:
        return ""
    folder = place if place.is_dir() else place.parent
    return f"make {folder} writable, or name another folder"


def _variable(place: Path) -> str:
    """The variable that says where a place is."""
    if place.is_relative_to(cache.directory()):
        return cache.DIRECTORY_VARIABLE
    temporary = Path(tempfile.gettempdir())
    # Others' folders may lie there, whatever the variable says.
    ours = place.is_relative_to(temporary) and place.relative_to(temporary).parts[:1]
    return "TMPDIR" if ours == () or (ours and ours[0].startswith(_TEMPORARY)) else ""
