"""cargo's and rustup's files above a project: builds in the tree obey them, and no sdist can have them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from rustcuda_backend.cargo_files import configs
from rustcuda_backend.rust import toolchain_file

# Tables of cargo's configuration that decide nothing about what is built.
_ABOUT_NOTHING_BUILT = frozenset(
    (
        *("alias", "cache", "cargo-new", "credential-alias", "doc", "future-incompat-report", "http"),
        *("install", "net", "term"),
    )
)


def warnings(project: Path, crate: str, toolchain: str, environ: Mapping[str, str]) -> Iterator[str]:
    """What an sdist will be built without, a warning for each file.

    Args:
        project: The folder of pyproject.toml.
        crate: The crate's folder, relative to it.
        toolchain: The setting, which overrules rust-toolchain files.
        environ: The environment.
    """
    root = project.resolve()
    home = Path(environ.get("CARGO_HOME") or Path.home() / ".cargo").resolve()
    for place in root.parents:
        # That of its home cargo reads anywhere; it is the user's, not the project's.
        if (place / ".cargo").resolve() != home:
            for config in configs(place):
                if set(config.content) - _ABOUT_NOTHING_BUILT - {"include"}:
                    yield _lacking(config.path, ".cargo/config.toml")
    file = toolchain_file((root / crate).resolve())
    if file and not file.is_relative_to(root) and not toolchain:
        yield _lacking(file, file.name)


def _lacking(file: Path, name: str) -> str:
    # In a copy that stands in for a tree that cannot be written, these are links.
    return (
        f"builds here obey {os.path.realpath(file)}, which is above the project, so the sdist lacks it; "
        f"put what they need of it into {name} beside pyproject.toml"
    )
