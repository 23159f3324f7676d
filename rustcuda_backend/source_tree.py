"""Lets a source tree that cannot be written build: a copy stands in for it.

The copy lies under the same path below a temporary folder, and what programs look for in the folders above
a project (git, cargo, rustup) is linked there, so that a build in the copy gives what one in the tree would.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from rustcuda_backend.errors import RustcudaError
from rustcuda_backend.filled_folders import is_filled

# What programs look for from a project's folder upwards.
_LOOKED_FOR = (".git", ".hg", ".cargo", "rust-toolchain", "rust-toolchain.toml")
_NOT_COPIED = (".git", ".hg", ".tox", ".nox")
_MANIFESTS = ("Cargo.toml", "*/Cargo.toml", "*/*/Cargo.toml")


def is_writable(project: Path) -> bool:
    """Whether setuptools and cargo can write where they do: beside pyproject.toml, packages and crates."""
    return all(os.access(folder, os.W_OK) for folder in _written_to(project))


def _written_to(project: Path) -> Iterator[Path]:
    crates = [manifest.parent for manifest in _manifests(project)]
    for folder in (project, project / "src", *crates):
        yield from (path for path in (folder, folder / "target") if path.is_dir())
        yield from folder.glob("*.egg-info")


@contextlib.contextmanager
def working_in_copy(project: Path, scratch: Path) -> Iterator[Path]:
    """Copies the project into an empty folder and makes that copy the current folder.

    The workspace that the project belongs to comes along.
    """
    top = _top(project)
    mirrored = scratch / top.relative_to(top.anchor)
    _copy(top, mirrored)
    for place in (project, *project.parents):
        _link_looked_for(place, scratch / place.relative_to(place.anchor))
    copy = scratch / project.relative_to(project.anchor)
    os.chdir(copy)
    try:
        yield copy
    finally:
        os.chdir(project)


def _manifests(project: Path) -> list[Path]:
    return [manifest for pattern in _MANIFESTS for manifest in sorted(project.glob(pattern))]


def _top(project: Path) -> Path:
    """The project, or the folder above it whose workspace its crates belong to."""
    if not any(_has_workspace(manifest) for manifest in _manifests(project)):
        for place in project.parents:
            if _has_workspace(place / "Cargo.toml"):
                return place
    return project


def _has_workspace(manifest: Path) -> bool:
    try:
        text = manifest.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
    return re.search(r"^\s*\[workspace[].]", text, re.MULTILINE) is not None


def _copy(tree: Path, copy: Path) -> None:
    try:
        shutil.copytree(tree, copy, symlinks=True, ignore=_ignored)
    except shutil.Error as error:
        # What may not be read is hardly a source; if it is one, the build says that it is missing.
        others = [(source, why) for source, _, why in error.args[0] if "[Errno 13]" not in why]
        if others:
            source, why = others[0]
            raise RustcudaError(
                f"the source tree cannot be written, and copying it fails: {why}",
                where=str(source),
                hint="set TMPDIR to a folder with room for it",
            ) from None
    for place, _, names in os.walk(copy):
        _allow_writing(Path(place, name) for name in ("", *names))


def _ignored(folder: str, names: list[str]) -> set[str]:
    """What no build reads: folders that programs fill; pipes, sockets and devices."""
    needless = {name for name in names if _is_needless(Path(folder, name)) or _is_special(Path(folder, name))}
    return needless | set(_NOT_COPIED).intersection(names)


def _is_needless(folder: Path) -> bool:
    # One that may not be looked into is left for copying to complain of.
    with contextlib.suppress(PermissionError):
        return is_filled(folder)
    return False


def _is_special(path: Path) -> bool:
    mode = path.lstat().st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


def _allow_writing(paths: Iterable[Path]) -> None:
    for path in paths:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o700 if path.is_dir() else 0o600))


def _link_looked_for(place: Path, mirrored: Path) -> None:
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo").absolute()
    for name in _LOOKED_FOR:
        # cargo reads its home's configuration anyway, and would read the link as another one.
        if (place / name).exists() and not (mirrored / name).exists() and place / name != home:
            mirrored.mkdir(parents=True, exist_ok=True)
            (mirrored / name).symlink_to(place / name)
