"""Adds the backend to a pyproject.toml that somebody wrote, and leaves all else as it is."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from rustcuda_backend.errors import SettingsError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BACKEND = "rustcuda_backend"
REQUIREMENT = "rustcuda-backend"
_SETUPTOOLS = ("setuptools.build_meta", "setuptools.build_meta:__legacy__", BACKEND)
_BUILD_SYSTEM = f'[build-system]\nrequires = ["{REQUIREMENT}"]\nbuild-backend = "{BACKEND}"\n'


def with_kernels(text: str, path: Path, tables: str, uv: str) -> str:
    """The text with our backend and tables.

    Args:
        text: A valid pyproject.toml.
        path: Where it stands, for messages.
        tables: Our own tables.
        uv: The table `[tool.uv]`, for projects whose own has no cache-keys.

    Raises:
        SettingsError: The project has kernels already, or is built by another backend than setuptools.
    """
    content = parsed(text, path)
    tools = content.get("tool", {})
    if "rustcuda" in tools:
        raise SettingsError("the project has a table [tool.rustcuda] already", where=str(path))
    edited = _with_backend(text, content.get("build-system"), path)
    edited = edited.rstrip("\n") + f"\n\n{tables}" if edited.strip() else tables
    if "uv" not in tools:
        edited = f"{edited}\n{uv}"
    elif "cache-keys" not in tools["uv"]:
        header, _, keys = uv.partition("\n")
        edited = re.sub(
            rf"^{re.escape(header)}[^\n]*\n", lambda found: found[0] + keys, edited, flags=re.MULTILINE
        )
    return _checked(edited, content, path)


def parsed(text: str, path: Path) -> dict[str, Any]:
    """The content of a pyproject.toml.

    Raises:
        SettingsError: It is no TOML.
    """
    try:
        content: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"pyproject.toml is not valid TOML: {error}", where=str(path)) from None
    return content


def _with_backend(text: str, build_system: dict[str, Any] | None, path: Path) -> str:
    if build_system is None:
        return f"{_BUILD_SYSTEM}\n{text}"
    backend = build_system.get("build-backend", _SETUPTOOLS[1])
    if backend not in _SETUPTOOLS:
        raise SettingsError(
            f"the project is built by '{backend}', and kernels join only what setuptools builds",
            where=f"[build-system] in {path}",
            hint="start a package for the kernels alone, which yours then requires:\n"
            f"python -m {BACKEND} init NAME",
        )
    found = re.search(r"^\[build-system\][^\n]*\n", text, re.MULTILINE)
    if not found:
        return text  # an inline table, say
    head, header, rest = text[: found.start()], found[0], text[found.end() :]
    body, end = re.split(r"(?=^\[(?!build-system)\w)|\Z", rest, maxsplit=1, flags=re.MULTILINE)
    if not any(re.match(rf"{REQUIREMENT}\b", item) for item in build_system.get("requires", [])):
        body = re.sub(r"^requires\s*=\s*\[(\s*)", _with_requirement, body, count=1, flags=re.MULTILINE)
    if "build-backend" in build_system:
        body = re.sub(
            r"^(build-backend\s*=\s*)([\"'])[^\"']*\2", rf'\1"{BACKEND}"', body, count=1, flags=re.MULTILINE
        )
    else:
        body = f'build-backend = "{BACKEND}"\n{body}'
    return head + header + body + end


def _with_requirement(found: re.Match[str]) -> str:
    """The beginning of a list of requirements, one a line where the others are."""
    return f'{found[0]}"{REQUIREMENT}",{found[1] or " "}'


def _checked(edited: str, before: dict[str, Any], path: Path) -> str:
    """Makes sure that TOML of any layout has become what was meant, and nothing else has changed."""
    try:
        after = tomllib.loads(edited)
        build_system = after.get("build-system", {})
        required = [re.split(r"[^\w-]", item)[0] for item in build_system["requires"]]
        done = (
            build_system["build-backend"] == BACKEND
            and REQUIREMENT in required
            and "rustcuda" in after["tool"]
            and "cache-keys" in after["tool"]["uv"]
            and {**after, "build-system": 0, "tool": 0} == {**before, "build-system": 0, "tool": 0}
        )
    except (tomllib.TOMLDecodeError, KeyError):
        done = False
    if not done:
        raise SettingsError(
            "this pyproject.toml has a layout that cannot be edited automatically",
            where=str(path),
            hint=f"write its table [build-system] as\n{_BUILD_SYSTEM}",
        )
    return edited
