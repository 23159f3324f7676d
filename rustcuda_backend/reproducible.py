"""What makes the same sources give the same bytes: SOURCE_DATE_EPOCH, and sdists of no machine."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from rustcuda_backend import cache
from rustcuda_backend.errors import SettingsError

EPOCH_VARIABLE = "SOURCE_DATE_EPOCH"

# gzip has 32 bits for a time, and zip ends a year later.
_LAST_EPOCH = (1 << 32) - 1


def source_date_epoch(environ: Mapping[str, str]) -> int | None:
    """The time that all files in wheel and sdist get, in seconds since 1970; None where none is set.

    Raises:
        SettingsError: SOURCE_DATE_EPOCH is no such time.
    """
    text = environ.get(EPOCH_VARIABLE)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and int(text) <= _LAST_EPOCH):
        raise SettingsError(
            f"{EPOCH_VARIABLE} must be a whole number of seconds from 0 to {_LAST_EPOCH}, not '{text}'",
            where=f"environment variable {EPOCH_VARIABLE}",
            hint=f"for the last commit's time: {EPOCH_VARIABLE}=$(git log -1 --format=%ct)",
        )
    return int(text)


def normalise_sdist(path: Path, epoch: int | None) -> None:
    """Rewrites an sdist without owner, umask and order of the machine that made it.

    Args:
        path: The `.tar.gz`.
        epoch: The time for all members; None leaves their own.
    """
    plain = io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            content = old.extractfile(member) if member.isfile() else None
            new.addfile(_normal(member, epoch), content)
    cache.write_atomically(path, gzip.compress(plain.getvalue(), mtime=epoch or 0))


def _normal(member: tarfile.TarInfo, epoch: int | None) -> tarfile.TarInfo:
    normal = tarfile.TarInfo(member.name)
    normal.type, normal.linkname, normal.size = member.type, member.linkname, member.size
    normal.mtime = int(member.mtime) if epoch is None else epoch
    normal.mode = 0o755 if member.isdir() or member.mode & 0o111 else 0o644
    return normal
