"""The Rust crates that come with this package, lent to the kernel crates that are built."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import filelock

from rustcuda_backend import cache
from rustcuda_backend.cargo_files import LENT

DEVICE_CRATE = "rustcuda-device"
_DEVICE_SOURCES = Path(__file__).parent / "device"
_DEVICE_CRATES = (DEVICE_CRATE, "rustcuda-macros")


def device_version() -> str:
    """The version of the device crates, which is one for both."""
    manifest = (_DEVICE_SOURCES / DEVICE_CRATE / "Cargo.toml").read_text(encoding="utf-8")
    return next(line.split('"')[1] for line in manifest.splitlines() if line.startswith("version = "))


def lend_device_crate(workspace: Path, directory: Path) -> tuple[str, ...]:
    """Copies the device crates into the workspace; returns the arguments that patch them in."""
    lent = workspace.joinpath(*LENT)
    lend(lent.parent)
    patch = Path(os.path.relpath(lent, directory)).as_posix()
    return ("--config", f"patch.crates-io.{DEVICE_CRATE}.path='{patch}'")


def lend(target: Path, crates: Sequence[str] = _DEVICE_CRATES) -> None:
    """Makes a folder in a target directory hold crates of ours and nothing else, beside other builds.

    Cargo writes the place of a crate outside the workspace into symbol names, so wheels would differ
    from machine to machine; a relative place inside is the same everywhere.
    """
    make_ignored(target.parent)
    with filelock.FileLock(target.with_name(".device.lock")):
        if _files_in(target) != sources(crates):
            copy(target, crates)


def copy(target: Path, crates: Sequence[str] = _DEVICE_CRATES) -> None:
    """Makes a folder that nobody else uses hold crates of ours and nothing else."""
    target.parent.mkdir(parents=True, exist_ok=True)
    _copy_whole(sources(crates), target)


def is_ours(folder: Path) -> bool:
    """Whether a folder holds the device crate just as we bring it."""
    ours = {folder / path.relative_to(DEVICE_CRATE): data for path, data in sources((DEVICE_CRATE,)).items()}
    return all(path.is_file() and path.read_bytes() == data for path, data in ours.items())


def sources(crates: Sequence[str]) -> dict[Path, bytes]:
    """The files of crates of ours, by their paths from a folder that holds them."""
    return {
        path.relative_to(_DEVICE_SOURCES): path.read_bytes()
        for name in crates
        for path in sorted((_DEVICE_SOURCES / name).rglob("*"))
        if path.suffix in (".rs", ".toml") and "target" not in path.parts[len(_DEVICE_SOURCES.parts) :]
    }


def make_ignored(folder: Path) -> None:
    """Makes a folder for what builds leave, which git is to ignore whatever the project's .gitignore says."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ".gitignore").exists():
        cache.write_atomically(folder / ".gitignore", b"*\n")


def _files_in(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _copy_whole(sources: Mapping[Path, bytes], target: Path) -> None:
    """Puts all of the sources in place at once: another build may be reading the old ones."""
    scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=".device."))
    try:
        for path, data in sources.items():
            (scratch / path).parent.mkdir(parents=True, exist_ok=True)
            (scratch / path).write_bytes(data)
        scratch.chmod(0o755)
        if target.exists():
            old = Path(tempfile.mkdtemp(dir=target.parent, prefix=".old."))
            target.replace(old / "device")
            shutil.rmtree(old, ignore_errors=True)
        scratch.replace(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
