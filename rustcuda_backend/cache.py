"""A content-addressed store shared by all builds of a user: a key names what made the content."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import filelock
import platformdirs

from rustcuda_backend.errors import RustcudaError

DIRECTORY_VARIABLE = "RUSTCUDA_CACHE_DIR"

# In each stored folder: each file's size, times and checksum, by which a damaged one is found.
_RECORD = ".files.json"
_Files: TypeAlias = "dict[str, list[int]]"

_CHECKSUM_BYTES = hashlib.sha256().digest_size


def digest(*parts: str | bytes) -> str:
    """A key from the things that decide a content, as 32 hexadecimal digits."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        # The length keeps ("a", "bc") and ("ab", "c") apart.
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()[:32]


def directory() -> Path:
    """The store's folder: RUSTCUDA_CACHE_DIR, else the platform's cache folder for the user."""
    chosen = os.environ.get(DIRECTORY_VARIABLE)
    return Path(chosen).absolute() if chosen else Path(platformdirs.user_cache_dir("rustcuda", False))


def folder(kind: str, key: str, build: Callable[[Path], None]) -> Path:
    """The folder stored under a key, built first where it is missing or has lost a file.

    `build` fills an empty folder, which takes its final name only when all of it is there. Of several
    builds that need it at once, one builds and the others wait.
    """
    final = kind_directory(kind) / key
    with filelock.FileLock(final.with_name(f"{key}.lock")):
        if not is_whole(final):
            shutil.rmtree(final, ignore_errors=True)
            with _naming(final), _scratch(final) as scratch:
                build(scratch)
                _write_record(scratch, _files(scratch, {}))
                scratch.replace(final)
        else:
            # Where the store was copied here, the next build need not read the contents again.
            known = _recorded(final) or {}
            if known != (found := _files(final, known)):
                _write_record(final, found)
    return final


def is_whole(stored: Path) -> bool:
    """Whether a stored folder is there with all files as they were when it was built.

    Only files whose size or times have changed are read: `core` has 100 MB.
    """
    recorded = _recorded(stored)
    try:
        return recorded is not None and _contents(recorded) == _contents(_files(stored, recorded))
    except OSError:
        return False


def _recorded(stored: Path) -> _Files | None:
    """What was recorded of a folder's files; None where that cannot be read."""
    try:
        return dict(json.loads((stored / _RECORD).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def _write_record(folder: Path, files: _Files) -> None:
    write_atomically(folder / _RECORD, json.dumps(files).encode())


def _files(folder: Path, known: _Files) -> _Files:
    """Each file's size, times and checksum, by its path in the folder; linked folders are not looked into.

    The checksum is the known one where size and times are.
    """
    files = {}
    for parent, _, names in os.walk(folder):
        for path in (Path(parent, name) for name in names if name != _RECORD):
            key, status = path.relative_to(folder).as_posix(), path.stat()
            seen = [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
            before = known.get(key, [])
            files[key] = before if before[:-1] == seen else [*seen, _checksum(path)]
    return files


def _contents(files: _Files) -> dict[str, tuple[int, int]]:
    return {path: (size, checksum) for path, (size, *_, checksum) in files.items()}


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            checksum = zlib.crc32(piece, checksum)
    return checksum


def file(kind: str, key: str, build: Callable[[], bytes]) -> bytes:
    """The bytes stored under a key, made first where they are missing or damaged."""
    final = kind_directory(kind) / key
    stored = final.read_bytes() if final.is_file() else b""
    checksum, data = stored[:_CHECKSUM_BYTES], stored[_CHECKSUM_BYTES:]
    if checksum == hashlib.sha256(data).digest():
        return data
    data = build()
    write_atomically(final, hashlib.sha256(data).digest() + data)
    return data


def write_atomically(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Writes a file that is either whole or not there, also when interrupted."""
    temporary = None
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        temporary.chmod(mode)
        temporary.replace(path)
    except BaseException as error:
        if temporary:
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename, error.filename2 = str(path), None
        raise


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Names a path in errors that name none, as those of writing do, which ends where the disk is full."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def kind_directory(kind: str) -> Path:
    """The folder of one kind of content, made where it is missing.

    Raises:
        RustcudaError: There can be none.
    """
    path = directory() / kind
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        error.filename = str(path)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        # Of folders in /proc, and of links that lead nowhere, the system says all kinds of things.
        raise RustcudaError(
            f"the cache folder cannot be written: {(error.strerror or '').lower()}",
            where=str(path),
            hint=f"set {DIRECTORY_VARIABLE} to a folder that can be written",
        ) from None
    return path


@contextlib.contextmanager
def _scratch(final: Path) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(dir=final.parent, prefix=f".{final.name}."))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
