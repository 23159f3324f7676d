"""Whether a crate is written for cuda-oxide, read without cargo."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rustcuda_backend.cargo_files import read_toml

DEVICE = "cuda-device"

_KINDS = ("dependencies", "build-dependencies")


def depends_on_device(directory: Path) -> bool:
    """Whether cuda-oxide's device crate is in the graph of a crate.

    Manifests say so for the crate and for those that it names by path; beyond these, Cargo.lock does.

    Args:
        directory: The crate's folder.
    """
    seen: set[Path] = set()
    named: set[str] = set()
    waiting = [directory]
    while waiting:
        folder = waiting.pop()
        if folder in seen:
            continue
        seen.add(folder)
        for name, path in _dependencies(folder):
            named.add(name)
            if path:
                waiting.append(path)
    return DEVICE in named or DEVICE in _below(named, _lock(directory))


def _dependencies(folder: Path) -> Iterator[tuple[str, Path | None]]:
    """Name of each package that a crate depends on, and its folder where that is named by path."""
    manifest = read_toml(folder / "Cargo.toml")
    shared, root = _shared(folder)
    targets = manifest.get("target", {})
    for holder in (manifest, *(targets.values() if isinstance(targets, dict) else ())):
        for kind in _KINDS:
            table = holder.get(kind, {}) if isinstance(holder, dict) else {}
            for key, written in table.items() if isinstance(table, dict) else ():
                inherited = isinstance(written, dict) and written.get("workspace") is True
                entry, place = (shared.get(key), root) if inherited else (written, folder)
                entry = entry if isinstance(entry, dict) else {}
                path = entry.get("path")
                found = Path(os.path.normpath(place / path)) if isinstance(path, str) else None
                yield str(entry.get("package", key)), found


def _shared(folder: Path) -> tuple[Mapping[str, Any], Path]:
    """The dependencies that the workspace around a crate keeps for its members, and its folder."""
    for place in (folder, *folder.parents):
        workspace = read_toml(place / "Cargo.toml").get("workspace")
        if isinstance(workspace, dict):
            shared = workspace.get("dependencies")
            return (shared if isinstance(shared, dict) else {}), place
    return {}, folder


def _lock(directory: Path) -> Mapping[str, set[str]]:
    """What Cargo.lock says: the names of the packages that each package depends on."""
    for place in (directory, *directory.parents):
        if (place / "Cargo.lock").is_file():
            graph: dict[str, set[str]] = {}
            for package in read_toml(place / "Cargo.lock").get("package", []):
                below = graph.setdefault(package["name"], set())
                # "name", or "name version" where there are several versions.
                below.update(text.split()[0] for text in package.get("dependencies", []))
            return graph
    return {}


def _below(names: set[str], graph: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting |= graph.get(name, set())
    return found
