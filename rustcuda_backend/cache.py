"""A content-addressed store shared by all builds of a user: a key names what made the content."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import filelock
import platformdirs

DIRECTORY_VARIABLE = "RUSTCUDA_CACHE_DIR"

# In each stored folder: its files' sizes, by which a damaged one is found.
_SIZES = ".sizes.json"

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
                (scratch / _SIZES).write_text(json.dumps(_sizes(scratch)), encoding="utf-8")
                scratch.replace(final)
    return final


def is_whole(stored: Path) -> bool:
    """Whether a stored folder is there with all files that it had when it was built."""
    try:
        expected = json.loads((stored / _SIZES).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(expected == _sizes(stored))


def _sizes(folder: Path) -> dict[str, int]:
    """Bytes of each file, by its path in the folder; folders that are links are not looked into."""
    return {
        Path(parent, name).relative_to(folder).as_posix(): Path(parent, name).stat().st_size
        for parent, _, names in os.walk(folder)
        for name in names
        if name != _SIZES
    }


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
    """The folder of one kind of content, made where it is missing."""
    path = directory() / kind
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def _scratch(final: Path) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(dir=final.parent, prefix=f".{final.name}."))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
