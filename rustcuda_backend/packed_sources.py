"""What an sdist lacks although builds need it: left out by MANIFEST.in, or named by source code only."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from rustcuda_backend import dep_info
from rustcuda_backend.cargo_files import entry_sources, target_directory, workspace_root
from rustcuda_backend.generated import is_generated

# Of what lies in a crate's folder, what every build needs; the rest may be documents and tests.
_NEEDED_NAMES = ("Cargo.toml", "Cargo.lock", "build.rs")
_NEEDED_FOLDERS = ("src", ".cargo")
# How many files a warning names.
_MOST = 5


def warnings(project: Path, crate: str, sources: Collection[str], packed: Collection[str]) -> Iterator[str]:
    """A warning for each reason.

    Args:
        project: The folder of pyproject.toml.
        crate: The crate's folder, relative to it.
        sources: The files of the crate and of all that it names, relative to the project.
        packed: What the sdist holds, likewise.
    """
    held = {os.path.normpath(name) for name in packed}
    roots = list(_roots(project, crate))
    left_out = sorted(
        name for name in sources if _is_needed(name, roots) and os.path.normpath(name) not in held
    )
    if left_out:
        yield (
            f"MANIFEST.in leaves {_listed(left_out)} out of the sdist, which builds of the crate need; "
            "take the line away that excludes or prunes it"
        )
    read = sorted(name for name in _read(project, crate) if os.path.normpath(name) not in held)
    unknown = [name for name in read if name not in left_out]
    if unknown:
        yield (
            f"the last build read {_listed(unknown)}, which the sdist lacks; "
            f'write "include {unknown[0]}" into MANIFEST.in'
        )


def _roots(project: Path, crate: str) -> Iterator[Path]:
    """The sources that the manifest names, or their folders, where modules lie beside them."""
    root = project.resolve()
    directory = (root / crate).resolve()
    for source in entry_sources(directory):
        needed = source if source.parent == directory else source.parent
        if needed.is_relative_to(root):
            yield needed.relative_to(root)


def _is_needed(name: str, roots: Collection[Path]) -> bool:
    path = Path(name)
    if path.name in _NEEDED_NAMES or any(folder in path.parts for folder in _NEEDED_FOLDERS):
        return True
    return any(Path(os.path.normpath(name)).is_relative_to(root) for root in roots)


def _read(project: Path, crate: str) -> Iterator[str]:
    """What earlier builds have read in the project, where cargo has its target directory."""
    root = project.resolve()
    directory = (root / crate).resolve()
    workspace = workspace_root(directory) or directory
    target = target_directory(directory, workspace, os.environ)
    for file in sorted((target / "rustcuda").glob("*/*/*/*.d")):
        for path in sorted(dep_info.without(dep_info.read(file), [target, workspace / "target"])):
            if path.is_relative_to(root) and not is_generated(path):
                yield path.relative_to(root).as_posix()


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_MOST])
    return shown if len(names) <= _MOST else f"{shown} and {len(names) - _MOST} more files"
