"""The files that a kernel crate is built from, for sdists, which are made without cargo."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rustcuda_backend.errors import SettingsError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Files above a crate that its build reads, up to the project's folder.
_CARGO_FILES = (
    *("Cargo.toml", "Cargo.lock", "rust-toolchain", "rust-toolchain.toml"),
    *(".cargo/config.toml", ".cargo/config"),
)
_DEPENDENCIES = ("dependencies", "dev-dependencies", "build-dependencies")
_SKIPPED_FOLDERS = ("target", "__pycache__", "node_modules")
# What makes a folder one that programs fill: cargo's and others' caches, virtual environments.
_MARKS = ("CACHEDIR.TAG", "pyvenv.cfg")
# Where Python's tools build, beside pyproject.toml.
_BUILD_FOLDERS = ("build", "dist")


def source_files(project: Path, crate: str, *, complete: bool = True) -> list[Path]:
    """The files of the crate, of the crates that it names by path, and of its workspace.

    Args:
        project: The folder of pyproject.toml.
        crate: The crate's folder, relative to it.
        complete: Whether crates outside the project, which cannot be in an sdist, are an error.

    Returns:
        Files relative to the project, sorted.

    Raises:
        SettingsError: The crate depends on one outside the project.
    """
    root = project.resolve()
    waiting = [(root / crate).resolve()]
    crates: set[Path] = set()
    while waiting:
        folder = waiting.pop()
        if folder in crates:
            continue
        crates.add(folder)
        for named, manifest in _named_crates(root, folder):
            if named.is_relative_to(root):
                waiting.append(named)
            elif complete:
                raise SettingsError(
                    f"the crate in '{named}' is outside the project, so an sdist would lack it",
                    where=str(manifest),
                    hint="move it inside, or depend on a version from a registry or git",
                )
        for named in _named_sources(folder):
            if named.is_relative_to(root):
                waiting.append(named.parent)
            elif complete:
                raise SettingsError(
                    f"the source '{named}' is outside the project, so an sdist would lack it",
                    where=str(folder / "Cargo.toml"),
                    hint="move it inside",
                )
    files = {path for folder in crates if folder.is_relative_to(root) for path in _files_of(root, folder)}
    return sorted(path.relative_to(root) for path in files)


def _named_crates(root: Path, folder: Path) -> Iterator[tuple[Path, Path]]:
    """The crates that a crate's manifest, or its workspace's above it, names; with that manifest."""
    for place in (folder, *_above(root, folder)):
        manifest = place / "Cargo.toml"
        content = _read(manifest)
        if place != folder and "workspace" not in content:
            continue
        for path in _paths(content):
            yield Path(os.path.normpath(place / path)), manifest
        for pattern in _table(content, "workspace").get("members", []):
            for member in glob.glob(pattern, root_dir=place):  # noqa: PTH207 (Path's takes no absolute one)
                if (place / member / "Cargo.toml").is_file():
                    yield Path(os.path.normpath(place / member)), manifest


def _named_sources(folder: Path) -> Iterator[Path]:
    """Sources elsewhere than in the crate's folder that its manifest names; modules may lie beside them."""
    content = _read(folder / "Cargo.toml")
    for named in (_table(content, "lib").get("path"), _table(content, "package").get("build")):
        path = Path(os.path.normpath(folder / named)) if isinstance(named, str) else folder
        if not path.is_relative_to(folder):
            yield path


def _above(root: Path, folder: Path) -> list[Path]:
    return [place for place in folder.parents if place.is_relative_to(root)]


def _read(manifest: Path) -> dict[str, Any]:
    """A manifest's content; one that is missing or broken is for cargo to complain about."""
    try:
        content: dict[str, Any] = tomllib.loads(manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content


def _paths(content: Mapping[str, Any]) -> Iterator[str]:
    """Every `path` of a manifest's dependencies and patches."""
    holders = [content, _table(content, "workspace"), *_tables(_table(content, "target"))]
    dependencies = [_table(holder, kind) for holder in holders for kind in _DEPENDENCIES]
    for table in (*dependencies, *_tables(_table(content, "patch"))):
        yield from (item["path"] for item in _tables(table) if isinstance(item.get("path"), str))


def _table(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = content.get(key)
    return value if isinstance(value, dict) else {}


def _tables(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [value for value in content.values() if isinstance(value, dict)]


def _files_of(root: Path, crate: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(crate, followlinks=True):
        here = Path(place)
        folders[:] = [
            name
            for name in folders
            if _is_source(here / name, at_top=here == root) and _may_be_followed(root, here, name)
        ]
        yield from (here / name for name in names if not name.startswith("."))
    for above in (crate, *_above(root, crate)):
        yield from (above / name for name in _CARGO_FILES if (above / name).is_file())


def _may_be_followed(root: Path, here: Path, name: str) -> bool:
    """Whether a folder is none that a link leads to out of the project or round in a circle."""
    folder = here / name
    if not folder.is_symlink():
        return True
    target = folder.resolve()
    on_the_way = (here, *_above(root, here))
    return target.is_relative_to(root) and not any(
        place.resolve().is_relative_to(target) for place in on_the_way
    )


def _is_source(folder: Path, *, at_top: bool) -> bool:
    """Whether a folder may hold sources, rather than what some program has made or keeps."""
    name = folder.name
    if name in _SKIPPED_FOLDERS or name.startswith(".") or name.endswith(".egg-info"):
        return False
    if at_top and name in _BUILD_FOLDERS:
        return False
    return not any((folder / mark).is_file() for mark in _MARKS)
