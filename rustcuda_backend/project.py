"""A project as the commands see it: its folder, config settings typed after a command, its settings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from rustcuda_backend.errors import SettingsError
from rustcuda_backend.pyproject import TABLE, read_table
from rustcuda_backend.session import SETUPTOOLS_KEYS
from rustcuda_backend.settings import Settings, read_settings


def config_settings(texts: Sequence[str]) -> dict[str, str | list[str] | None]:
    """Reads `key=value` texts as front ends do: a bare key is a switch, a repeated one makes a list.

    Raises:
        SettingsError: A text without a key, or a setting of setuptools, which no command calls.
    """
    found: dict[str, str | list[str] | None] = {}
    for text in texts:
        key, _, value = text.partition("=")
        if not key or key in SETUPTOOLS_KEYS:
            raise SettingsError(
                f"'{text}' is no setting of ours", where=f"-C {text}", hint="write -C key=value"
            )
        known = found.get(key)
        if known is None:
            found[key] = value
        else:
            found[key] = [*(known if isinstance(known, list) else [known]), value]
    return found


def read_project(
    project: Path, config: Sequence[str], environ: Mapping[str, str] = os.environ
) -> Settings | None:
    """A project's settings from all sources; None where there is no project of ours.

    Raises:
        SettingsError: The folder does not exist, or a setting is wrong.
    """
    if not project.is_dir():
        raise SettingsError("the project's folder does not exist", where=str(project))
    table, given = read_table(project), config_settings(config)
    if table is None and not given:
        return None
    return read_settings(table or {}, given, environ)


def no_project(project: Path) -> SettingsError:
    """The error for a folder without a project of ours."""
    return SettingsError(
        f"there is no project with kernels here: no {TABLE} in pyproject.toml",
        where=str(project / "pyproject.toml"),
        hint="run this in a project's folder, or name it by --project",
    )
