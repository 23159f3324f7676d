"""Writes files into somebody's project: all of them or none, and says beforehand what is in their way."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from rustcuda_backend import cache
from rustcuda_backend.errors import SettingsError

_HINT = "rename or remove it first"
_REPOSITORIES = (".git", ".hg")


def check(folder: Path, names: Iterable[str]) -> None:
    """Checks that files can be written, or can stay where they are there.

    Args:
        folder: The project's folder, which may be missing.
        names: The files, relative to it.

    Raises:
        SettingsError: Something else is in the place of a file or of its folder, or cannot be written.
    """
    for name in names:
        path = folder / name
        nearest = next(place for place in path.parents if os.path.lexists(place))
        if not nearest.is_dir():
            raise SettingsError(
                f"{_kind(nearest)} where '{name}' needs a folder", where=str(nearest), hint=_HINT
            )
        if os.path.lexists(path) and not path.is_file():
            raise SettingsError(f"{_kind(path)} where the file '{name}' goes", where=str(path), hint=_HINT)
        if not path.exists():
            _check_writable(nearest)


def check_edit(path: Path) -> None:
    """Checks that a file which is there can be changed; that of a link is the one it leads to.

    Raises:
        SettingsError: It cannot be written, or belongs to another project.
    """
    target = path.resolve()
    if not target.is_relative_to(_top(path.parent.resolve())):
        raise SettingsError(
            f"{path.name} is a link to a file outside of this project, which others may use as well",
            where=str(target),
            hint="put a file of its own in the link's place",
        )
    for place in (target, target.parent):
        _check_writable(place)


def write(folder: Path, files: Mapping[str, str], last: str, before_last: Callable[[], object]) -> None:
    """Writes files; where that fails, removes what it has written.

    Args:
        folder: The project's folder; made where it is missing.
        files: Contents by path relative to it.
        last: The file that is written last. It alone may be there already; it then keeps its mode.
        before_last: Called once all but the last are there.

    Raises:
        SettingsError: The machine does not let it write all.
    """
    with contextlib.ExitStack() as undo:
        try:
            for name in sorted(files, key=lambda name: name == last):
                if name == last:
                    before_last()
                _write(folder / name, files[name].encode(), undo)
        except OSError as error:
            raise SettingsError(
                f"the files cannot be written: {error.strerror or error}",
                where=str(error.filename2 or error.filename or folder),
                hint="nothing has been changed; make room (df -h) or make the place writable, then repeat",
            ) from None
        undo.pop_all()


def _write(path: Path, data: bytes, undo: contextlib.ExitStack) -> None:
    _make_folder(path.parent, undo)
    if path.exists():
        target = path.resolve()
        cache.write_atomically(target, data, mode=target.stat().st_mode & 0o7777)
        return
    undo.callback(path.unlink, missing_ok=True)
    cache.write_atomically(path, data)


def _make_folder(folder: Path, undo: contextlib.ExitStack) -> None:
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    for place in reversed(missing):
        # All that is in it then is ours.
        undo.callback(shutil.rmtree, place, ignore_errors=True)
        place.mkdir()


def _kind(path: Path) -> str:
    if path.is_symlink() and not path.exists():
        return "there is a link that leads nowhere"
    return "there is a folder" if path.is_dir() else "there is a file"


def _check_writable(place: Path) -> None:
    if not os.access(place, os.W_OK):
        noun = "folder" if place.is_dir() else "file"
        raise SettingsError(f"the {noun} cannot be written", where=str(place), hint="make it writable first")


def _top(project: Path) -> Path:
    """The repository that a project is in; without one, the project itself."""
    places = (project, *project.parents)
    return next(
        (place for place in places if any((place / name).exists() for name in _REPOSITORIES)), project
    )
