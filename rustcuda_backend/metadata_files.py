"""The files that a project's metadata is read from must be in the project, or no sdist could have them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rustcuda_backend.errors import SettingsError


def check(project: Path, content: Mapping[str, Any]) -> None:
    """Looks at the readme, licence and other files that pyproject.toml names.

    setuptools would refuse some of them with a traceback, and leave others out.

    Args:
        project: The folder of pyproject.toml.
        content: What is in it.

    Raises:
        SettingsError: One is outside the project.
    """
    root = project.resolve()
    for key, name in _named(content):
        # Not resolved: a link inside the project to a file outside is followed, and is the way out.
        if not Path(os.path.normpath(root / name)).is_relative_to(root):
            raise SettingsError(
                f"the file '{name}' is outside the project, so an sdist would lack it",
                where=f"{key} in {project / 'pyproject.toml'}",
                hint=f"copy or link it beside pyproject.toml, and name it '{Path(name).name}'",
            )


def _named(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every file or pattern that the metadata names, with its key."""
    project = _table(content, "project")
    for key in ("readme", "license"):
        value = project.get(key)
        # A licence that is text is an expression, or the licence itself.
        if key == "readme" and isinstance(value, str):
            yield f"[project] {key}", value
        elif isinstance(value, dict):
            yield from ((f"[project] {key}", name) for name in _texts(value.get("file")))
    yield from (("[project] license-files", name) for name in _texts(project.get("license-files")))
    setuptools = _table(_table(content, "tool"), "setuptools")
    yield from (("[tool.setuptools] license-files", name) for name in _texts(setuptools.get("license-files")))
    for key, value in _table(setuptools, "dynamic").items():
        if isinstance(value, dict):
            yield from ((f"[tool.setuptools.dynamic] {key}", name) for name in _texts(value.get("file")))


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [item for item in values if isinstance(item, str)]


def _table(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = content.get(key)
    return value if isinstance(value, dict) else {}
