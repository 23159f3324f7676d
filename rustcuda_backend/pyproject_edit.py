"""Adds the backend to a pyproject.toml that somebody wrote, and leaves all else as it is."""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rustcuda_backend.errors import SettingsError
from rustcuda_backend.pyproject import parse_pyproject

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BACKEND = "rustcuda_backend"
REQUIREMENT = "rustcuda-backend"
_SETUPTOOLS = ("setuptools.build_meta", "setuptools.build_meta:__legacy__", BACKEND)
_REQUIRES = f'requires = ["{REQUIREMENT}"]\n'
_BUILD_BACKEND = f'build-backend = "{BACKEND}"\n'
_BUILD_SYSTEM = f"[build-system]\n{_REQUIRES}{_BUILD_BACKEND}"


def with_kernels(text: str, path: Path, tables: str, uv: str) -> str:
    """The text with our backend and tables.

    It is edited as text, so that comments and layout stay. What has come out is held against what was
    meant, since TOML has more layouts than an edit can know.

    Args:
        text: A valid pyproject.toml.
        path: Where it stands, for messages.
        tables: Our own tables.
        uv: The table `[tool.uv]`, whose cache-keys join those of the project.

    Raises:
        SettingsError: The project has kernels already, is built by another backend than setuptools, or has
            a layout that cannot be edited.
    """
    content = parse_pyproject(text, path)
    tools, build_system = table_of(content, "tool", path), table_of(content, "build-system", path)
    if "rustcuda" in tools:
        raise SettingsError("the project has a table [tool.rustcuda] already", where=str(path))
    _check_backend(build_system, path)
    if not isinstance(table_of(tools, "uv", path).get("cache-keys", []), list):
        raise SettingsError("'cache-keys' must be a list", where=f"[tool.uv] in {path}")
    meant = _meant(content, tomllib.loads(tables), _missing_keys(tools.get("uv", {}), uv))
    for edited in _with_build_system(_ended(text), content):
        whole = _ended(edited.rstrip("\n"))
        whole = _with_cache_keys(f"{whole}\n{tables}" if whole else tables, tools, uv)
        if _is(whole, meant):
            return whole
    raise SettingsError(
        "this pyproject.toml has a layout that cannot be edited automatically",
        where=str(path),
        hint=f"write into it by hand\n{_BUILD_SYSTEM}{tables}{uv}",
    )


def table_of(content: dict[str, Any], key: str, path: Path) -> dict[str, Any]:
    """A table in a table; empty if it is not there.

    Raises:
        SettingsError: It is no table.
    """
    value = content.get(key, {})
    if not isinstance(value, dict):
        raise SettingsError(f"'{key}' must be a table, not {value!r}", where=str(path))
    return value


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _is(text: str, meant: dict[str, Any]) -> bool:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    # As text: nan equals nothing, and true equals 1.
    return _canonical(content) == _canonical(meant)


def _canonical(content: dict[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, default=repr)


def _meant(content: dict[str, Any], tables: dict[str, Any], keys: list[tuple[str, Any]]) -> dict[str, Any]:
    """The content that an edit must have led to."""
    required = content.get("build-system", {}).get("requires", [])
    added = [] if _is_required(required) else [REQUIREMENT]
    cache_keys = content.get("tool", {}).get("uv", {}).get("cache-keys", [])
    ours = {
        "build-system": {"requires": [*added, *required], "build-backend": BACKEND},
        "tool": {"uv": {"cache-keys": [*(key for _, key in keys), *cache_keys]}},
    }
    return _merged(_merged(content, tables), ours)


def _merged(table: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Both tables in one; where neither is a table, the other's value."""
    merged = copy.copy(table)
    for key, value in other.items():
        both = isinstance(value, dict) and isinstance(table.get(key), dict)
        merged[key] = _merged(table[key], value) if both else value
    return merged


# --- [build-system] ---------------------------------------------------------------------------------------


def _check_backend(build_system: dict[str, Any], path: Path) -> None:
    backend = build_system.get("build-backend", _SETUPTOOLS[1])
    required = build_system.get("requires", [])
    if not isinstance(required, list) or not all(isinstance(item, str) for item in required):
        raise SettingsError(f"'requires' must be a list of texts, not {required!r}", where=_place(path))
    if backend not in _SETUPTOOLS or "backend-path" in build_system:
        raise SettingsError(
            f"the project is built by '{backend}', and kernels join only what setuptools builds"
            if backend not in _SETUPTOOLS
            else "the project is built by a backend of its own, in 'backend-path'",
            where=_place(path),
            hint="start a package for the kernels alone, which yours then requires:\n"
            f"python -m {BACKEND} init NAME",
        )


def _place(path: Path) -> str:
    return f"[build-system] in {path}"


def _is_required(requires: list[str]) -> bool:
    return any(re.match(rf"{REQUIREMENT}(?![\w.-])", re.sub(r"[-_.]+", "-", item)) for item in requires)


def _with_build_system(text: str, content: dict[str, Any]) -> Iterator[str]:
    """The text with our backend, in every way that may suit its layout."""
    if "build-system" not in content:
        yield f"{_BUILD_SYSTEM}\n{text}"
        # Keys without a table must stay first.
        yield f"{text}\n{_BUILD_SYSTEM}"
        return
    found = re.search(r"^[ \t]*\[[ \t]*build-system[ \t]*\][^\n]*\n", text, re.MULTILINE)
    if not found:
        return  # an inline table, say
    build_system = content["build-system"]
    head, rest = text[: found.end()], text[found.end() :]
    body, end = re.split(r"(?=^[ \t]*\[)|\Z", rest, maxsplit=1, flags=re.MULTILINE)
    if "build-backend" in build_system:
        pattern = r"^([ \t]*build-backend\s*=\s*)([\"'])[^\"'\n]*\2"
        body = re.sub(pattern, rf'\1"{BACKEND}"', body, count=1, flags=re.MULTILINE)
    else:
        body = f"{_BUILD_BACKEND}{body}"
    if "requires" not in build_system:
        body = f"{_REQUIRES}{body}"
    elif not _is_required(build_system["requires"]):
        pattern = r"^([ \t]*requires\s*=\s*\[)(\s*)(?=(\]?))"
        body = re.sub(pattern, _with_requirement, body, count=1, flags=re.MULTILINE)
    yield head + body + end


def _with_requirement(found: re.Match[str]) -> str:
    """The beginning of a list of requirements, one a line where the others are."""
    start, space, end = found.groups()
    return f'{start}{space}"{REQUIREMENT}"' + ("" if end else f",{space or ' '}")


# --- [tool.uv] --------------------------------------------------------------------------------------------


# The table's header; and its list of keys up to the bracket, and what is left of that line.
_UV = r"^[ \t]*\[[ \t]*tool[ \t]*\.[ \t]*uv[ \t]*\][^\n]*\n"
_LIST = r"(?:(?![ \t]*\[)[^\n]*\n)*?[ \t]*cache-keys\s*=\s*\["
_CACHE_KEYS = rf"({_UV}{_LIST})(?:([ \t]*(?:#[^\n]*)?\n)|[ \t]*(\])?)"


def _missing_keys(table: dict[str, Any], uv: str) -> list[tuple[str, Any]]:
    """The cache-keys that a project's `[tool.uv]` lacks, as lines and as values."""
    known = table.get("cache-keys", [])
    there = [{"file": key} if isinstance(key, str) else key for key in known] if known else []
    lines = [line for line in uv.splitlines() if line.startswith(" ")]
    values = tomllib.loads(uv)["tool"]["uv"]["cache-keys"]
    return [(line, value) for line, value in zip(lines, values, strict=True) if value not in there]


def _with_cache_keys(text: str, tools: dict[str, Any], uv: str) -> str:
    table = tools.get("uv")
    if table is None:
        return f"{text}\n{uv}"
    if "cache-keys" not in table:
        keys = uv.partition("\n")[2]
        edited, count = re.subn(_UV, lambda found: found[0] + keys, text, flags=re.MULTILINE)
        # Tables below [tool.uv], as [tool.uv.sources], need none above them.
        return edited if count else f"{text}\n{uv}"
    lines = "".join(f"{line}\n" for line, _ in _missing_keys(table, uv))
    if not lines:
        return text

    def with_lines(found: re.Match[str]) -> str:
        start, line_end, empty = found.groups()
        # The first of the project's own may stand on the line of the bracket.
        return start + (f"{line_end}{lines}" if line_end else f"\n{lines}{empty or '  '}")

    return re.sub(_CACHE_KEYS, with_lines, text, count=1, flags=re.MULTILINE)
