"""Tells folders that programs fill from folders of sources, by what is in and beside them.

A name alone says little: `mod target;` and `mod node_modules;` are fine names of Rust modules.
"""

from __future__ import annotations

import os
from pathlib import Path

# What makes a folder one that programs fill: cargo's and others' caches, virtual environments.
_MARKS = ("CACHEDIR.TAG", "pyvenv.cfg")
# What npm, yarn and pnpm leave in the folder of what they install.
_OF_PACKAGE_MANAGERS = (".bin", ".package-lock.json", ".yarn-integrity", ".yarn-state.yml", ".modules.yaml")


def is_filled(folder: Path) -> bool:
    """Whether a program has made what is in a folder, or keeps it there.

    Raises:
        PermissionError: The folder may not be looked into.
    """
    name = folder.name
    if name == "target" and (folder.parent / "Cargo.toml").is_file():
        # cargo marks what it makes itself, but finds it made where a build has lent it crates. Also a link.
        return True
    if not folder.is_dir():
        return False
    if name == "node_modules":
        beside = (folder.parent / "package.json").is_file()
        return beside or any((folder / mark).exists() for mark in _OF_PACKAGE_MANAGERS)
    if name == "__pycache__":
        names = os.listdir(folder)  # noqa: PTH208 (names are enough)
        return not names or any(".pyc" in each for each in names)
    # With the mark also a `target` elsewhere, where cargo's configuration has it.
    return any((folder / mark).is_file() for mark in _MARKS)


def is_of_setuptools(folder: Path) -> bool:
    """Whether a folder beside pyproject.toml is where Python's tools build, rather than a Rust module."""
    return folder.name in ("build", "dist") and not any(folder.glob("*.rs"))
