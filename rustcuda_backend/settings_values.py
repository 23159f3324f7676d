"""Reads single values of settings, from TOML and from text, and says what is wrong with them."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from rustcuda_backend.errors import SettingsError

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")

_NAMES = {str: "a string", bool: "true or false", int: "a whole number"}


def setting(
    default: Any,
    help_text: str,
    *,
    choices: Sequence[str] = (),
    arguments: bool = False,
    least: int = 0,
    pattern: str = "",
    of_crate: bool = False,
) -> Any:
    """A field of the dataclass of settings.

    Args:
        default: Its default; the type of the setting is the default's.
        help_text: What it means, for the documentation.
        choices: The values it can have, if not all.
        arguments: Whether text is split as a shell would, not at `;`.
        least: The least number it can be set to.
        pattern: A regular expression, as JavaScript reads it too, that matches all of what a text can be;
            one in a list, if it is a list.
        of_crate: Whether each of several crates can have its own.
    """
    metadata = {
        "help": help_text,
        "choices": tuple(choices),
        "arguments": arguments,
        "least": least,
        "pattern": pattern,
        "of_crate": of_crate,
    }
    return field(default=default, metadata=metadata)


# Settings that have a table of their own: `editable_rebuild` is `rebuild` in `[tool.rustcuda.editable]`.
GROUPS = ("editable",)


def spelled(name: str) -> str:
    """A setting's name as users write it: `cuda-version`, `editable.rebuild`."""
    group, _, rest = name.partition("_")
    return f"{group}.{spelled(rest)}" if group in GROUPS else name.replace("_", "-")


def typed(item: dataclasses.Field[Any], value: Any, where: str) -> Any:
    """Checks a value that has a type of its own, as TOML's have.

    Raises:
        SettingsError: It is of another type than the setting.
    """
    if isinstance(item.default, tuple):
        if isinstance(value, str):
            return parsed(item, [value], where)
        if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
            return _checked(item, tuple(value), where)
        raise _wrong_type(item, value, "a list of strings", where)
    wanted = type(item.default)
    if isinstance(value, wanted) and not (wanted is int and isinstance(value, bool)):
        return _checked(item, value, where)
    raise _wrong_type(item, value, _NAMES[wanted], where)


def parsed(item: dataclasses.Field[Any], texts: list[str], where: str) -> Any:
    """Reads a value from text, as the environment and config settings give it.

    Raises:
        SettingsError: It cannot be read as what the setting is.
    """
    default = item.default
    if isinstance(default, tuple):
        split = tuple(entry for text in texts for entry in _split(item, text, where))
        return _checked(item, split, where)
    text = texts[-1].strip()
    if isinstance(default, bool):
        if text.lower() in (*_TRUE, ""):
            return True  # a bare `-C locked`
        if text.lower() in _FALSE:
            return False
        raise _wrong_type(item, text, _NAMES[bool], where)
    if isinstance(default, int):
        try:
            return _checked(item, int(text), where)
        except ValueError:
            raise _wrong_type(item, text, _NAMES[int], where) from None
    return _checked(item, text, where)


def _split(item: dataclasses.Field[Any], text: str, where: str) -> list[str]:
    if not item.metadata["arguments"]:
        return [entry.strip() for entry in text.split(";") if entry.strip()]
    try:
        return shlex.split(text)
    except ValueError as error:
        raise SettingsError(f"'{text}' cannot be split into arguments: {error}", where=where) from None


def _wrong_type(item: dataclasses.Field[Any], value: Any, wanted: str, where: str) -> SettingsError:
    return SettingsError(f"'{spelled(item.name)}' must be {wanted}, not {value!r}", where=where)


def _checked(item: dataclasses.Field[Any], value: Any, where: str) -> Any:
    """A value of the right type, if it is in the setting's range."""
    key, choices, least = spelled(item.name), item.metadata["choices"], item.metadata["least"]
    if choices and value not in choices:
        hint = f"use one of {', '.join(choices)}"
        raise SettingsError(f"'{key}' cannot be '{value}'", where=where, hint=hint)
    if isinstance(value, int) and value < least:
        raise SettingsError(f"'{key}' must be at least {least}, not {value}", where=where)
    # No file's name and no argument of a program can have one.
    if isinstance(value, (str, tuple)) and any("\0" in text for text in value):
        raise SettingsError(f"'{key}' has a NUL character in it", where=where)
    return value
