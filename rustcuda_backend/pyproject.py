"""Reads pyproject.toml, and the backend's own table in it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rustcuda_backend.errors import SettingsError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = "[tool.rustcuda]"


def read_pyproject(project: Path) -> dict[str, Any]:
    """A project's pyproject.toml; empty where there is none.

    Raises:
        SettingsError: It is no TOML.
    """
    path = project / "pyproject.toml"
    if not path.is_file():
        return {}
    return parse_pyproject(path.read_bytes(), path)


def parse_pyproject(text: bytes | str, path: Path) -> dict[str, Any]:
    """What is in a pyproject.toml.

    Raises:
        SettingsError: It is no TOML.
    """
    try:
        decoded = text.decode() if isinstance(text, bytes) else text
        if decoded.startswith("\ufeff"):
            raise SettingsError(
                "pyproject.toml begins with a byte-order mark (BOM), which TOML does not have",
                where=str(path),
                hint="save it as UTF-8 without BOM",
            )
        content: dict[str, Any] = tomllib.loads(decoded)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"pyproject.toml is not valid TOML: {error}", where=str(path)) from None
    return content


def read_table(project: Path) -> dict[str, Any] | None:
    """The table `[tool.rustcuda]` of a project, or None where there is none.

    Raises:
        SettingsError: pyproject.toml is no TOML, or `tool.rustcuda` is no table.
    """
    tools = read_pyproject(project).get("tool", {})
    table = tools.get("rustcuda") if isinstance(tools, dict) else tools
    if table is not None and not isinstance(table, dict):
        place = str(project / "pyproject.toml")
        raise SettingsError("tool.rustcuda must be a table", where=place, hint=f"write {TABLE}")
    return table
