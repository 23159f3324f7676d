"""The files that a kernel crate is built from, for sdists, which are made without cargo."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rustcuda_backend.cargo_files import CONFIGS, above, is_lent, named_folders, named_sources
from rustcuda_backend.errors import SettingsError

# Files above a crate that its build reads, up to the project's folder.
_CARGO_FILES = (
    *("Cargo.toml", "Cargo.lock", "rust-toolchain", "rust-toolchain.toml", *CONFIGS),
    ".cargo/cuda-oxide.toml",
)
_SKIPPED_FOLDERS = ("target", "__pycache__", "node_modules")
# What makes a folder one that programs fill: cargo's and others' caches, virtual environments.
_MARKS = ("CACHEDIR.TAG", "pyvenv.cfg")
# Where Python's tools build, beside pyproject.toml.
_BUILD_FOLDERS = ("build", "dist")
# In a folder with it cargo asks for all files of a vendored crate, hidden ones too.
_VENDORED = ".cargo-checksum.json"


def source_files(project: Path, crate: str, *, complete: bool = True) -> list[Path]:
    """The files of the crate, of the crates that it names by path, and of its workspace.

    Symbolic links stand for what they lead to.

    Args:
        project: The folder of pyproject.toml.
        crate: The crate's folder, relative to it.
        complete: Whether crates outside the project, which cannot be in an sdist, are an error, and
            likewise links that lead outside or nowhere.

    Returns:
        Files relative to the project, sorted.

    Raises:
        SettingsError: Something that the crate needs is outside the project.
    """
    root = project.resolve()
    sources = _Sources(root, complete)
    files = {path for folder in _crates(root, crate, complete)[0] for path in sources.of(folder)}
    return sorted(path.relative_to(root) for path in files)


def device_folders(project: Path, crate: str) -> list[Path]:
    """Where cargo, told by a patch of the project, looks for the crates that builds lend.

    Args:
        project: The folder of pyproject.toml.
        crate: The crate's folder, relative to it.

    Returns:
        Folders that are to hold the device crates, relative to the project, sorted.
    """
    root = project.resolve()
    return sorted(folder.parent.relative_to(root) for folder in _crates(root, crate, complete=False)[1])


def _crates(root: Path, crate: str, complete: bool) -> tuple[set[Path], set[Path]]:
    """The folders in the project of all crates that one names, and of those among them that are lent."""
    start = Path(os.path.normpath(root / crate))
    # cargo is called where a link leads, and the settings name the link.
    waiting = [start, start.resolve()]
    crates: set[Path] = set()
    lent: set[Path] = set()
    while waiting:
        folder = waiting.pop()
        if folder in crates:
            continue
        crates.add(folder)
        for named, namer in named_folders(root, folder):
            if not named.is_relative_to(root):
                if complete:
                    raise SettingsError(
                        f"the crate in '{named}' is outside the project, so an sdist would lack it",
                        where=str(namer),
                        hint="move it inside, or depend on a version from a registry or git",
                    )
            elif is_lent(named):
                lent.add(named)
            else:
                waiting.append(named)
        for source in named_sources(folder):
            if source.is_relative_to(root):
                waiting.append(source.parent)
            elif complete:
                raise SettingsError(
                    f"the source '{source}' is outside the project, so an sdist would lack it",
                    where=str(folder / "Cargo.toml"),
                    hint="move it inside",
                )
    return {folder for folder in crates if folder.is_relative_to(root)}, lent


@dataclass(frozen=True)
class _Sources:
    """Finds the files of crates.

    Attributes:
        root: The project, resolved.
        complete: Whether links must lead to something in the project.
    """

    root: Path
    complete: bool

    def of(self, crate: Path) -> Iterator[Path]:
        """The files of one crate, and cargo's in it and in the folders above."""
        if os.path.lexists(crate) and self._leads_inside(crate):
            holders = (crate, *above(self.root, crate))
            yield from self._below(crate, tuple(os.path.realpath(folder) for folder in holders))
        for folder in (crate, *above(self.root, crate)):
            yield from (path for name in _CARGO_FILES if self._is_file(path := folder / name))

    def _below(self, folder: Path, holders: tuple[str, ...], *, whole: bool = False) -> Iterator[Path]:
        """The files below a folder; a link to one of the folders that hold it would lead on for ever."""
        if not (self.complete or os.access(folder, os.R_OK)):
            return
        whole = whole or (folder / _VENDORED).is_file()
        for path in sorted(folder.iterdir()):
            if not whole and path.name.startswith("."):
                continue
            if not path.is_dir():
                if self._is_file(path):
                    yield path
            elif (whole or _is_source(path, at_top=folder == self.root)) and self._leads_inside(path):
                real = os.path.realpath(path)
                if real not in holders:
                    yield from self._below(path, (*holders, real), whole=whole)

    def _is_file(self, path: Path) -> bool:
        # A build may read files from elsewhere, which an sdist must not.
        if self.complete and os.path.lexists(path):
            self._leads_inside(path)
        return path.is_file()

    def _leads_inside(self, path: Path) -> bool:
        """Whether something is in the project also when links are followed."""
        real = Path(os.path.realpath(path))
        inside = real.is_relative_to(self.root) and os.path.exists(real)  # noqa: PTH110 (no error in loops)
        if not inside and self.complete:
            raise self._misled(path)
        return inside

    def _misled(self, path: Path) -> SettingsError:
        """The error for a path with a link that leads outside, or nowhere."""
        link = next(place for place in (path, *path.parents) if place.is_symlink())
        real = os.path.realpath(link)
        outside = "is outside the project, so an sdist would lack it"
        why = outside if os.path.exists(real) else "does not exist"  # noqa: PTH110 (no error in loops)
        return SettingsError(
            f"the link '{link.relative_to(self.root)}' leads to '{real}', which {why}",
            where=str(link),
            hint="put what it is to lead to into the project, or remove the link if no build needs it",
        )


def _is_source(folder: Path, *, at_top: bool) -> bool:
    """Whether a folder may hold sources, rather than what some program has made or keeps."""
    name = folder.name
    if name in _SKIPPED_FOLDERS or name.endswith(".egg-info"):
        return False
    if at_top and name in _BUILD_FOLDERS:
        return False
    return not any((folder / mark).is_file() for mark in _MARKS)
