"""The JSON schema of `[tool.rustcuda]`, made from the settings; editors and validate-pyproject read it.

usage: python -m rustcuda_backend.settings_schema   (writes the file that is shipped)
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rustcuda_backend.settings import CRATE_FIELDS, SETTING_FIELDS
from rustcuda_backend.settings_values import spelled

FILE = Path(__file__).with_name("rustcuda.schema.json")

# What a setting that cannot be set to nothing has in it.
_NOT_EMPTY = {"crate": ".", "kernels": ".", "capabilities": "[^ ;,]"}


def tool_schema(_tool: str = "rustcuda") -> dict[str, Any]:
    """The shipped schema; the entry point `validate_pyproject.tool_schema` names this function."""
    content: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return content


def make_schema() -> dict[str, Any]:
    """The schema as the settings have it now."""
    properties = _properties(SETTING_FIELDS)
    properties["crates"] = {
        "description": "several kernel crates; each has its own settings, or else those of the table",
        "type": "array",
        "minItems": 1,
        "items": {
            "type": "object",
            "additionalProperties": False,
            # One of the two, and not both.
            "oneOf": [{"required": [name]} for name in ("crate", "kernels")],
            "properties": _properties(CRATE_FIELDS),
        },
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "urn:rustcuda-backend:settings",
        "title": "[tool.rustcuda]",
        "description": "Settings of rustcuda-backend, which builds GPU kernels written in Rust.",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "dependencies": {
            "crates": {"properties": dict.fromkeys(("crate", "kernels", "module"), False)},
            "crate": {"properties": {"kernels": False}},
        },
    }


def text(schema: Mapping[str, Any]) -> str:
    """A schema as the file has it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _properties(fields: Mapping[str, dataclasses.Field[Any]]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for name, item in fields.items():
        group, _, key = spelled(name).rpartition(".")
        if group:
            table = {"type": "object", "additionalProperties": False, "properties": {}}
            properties.setdefault(group, table)["properties"][key] = _property(item)
        else:
            properties[key] = _property(item)
    return properties


def _property(item: dataclasses.Field[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"description": item.metadata["help"]}
    default: Any = item.default
    least, pattern = item.metadata["least"], item.metadata["pattern"]
    text_type: dict[str, Any] = {"type": "string"}
    if pattern:
        text_type["pattern"] = f"^(?:{pattern})$"
    list_type: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
    if item.name in _NOT_EMPTY:
        text_type["pattern"] = _NOT_EMPTY[item.name]
        list_type["contains"] = {"pattern": _NOT_EMPTY[item.name]}
    if isinstance(default, tuple):
        return {**found, "anyOf": [text_type, list_type]}
    if isinstance(default, bool):
        return {**found, "type": "boolean", "default": default}
    if isinstance(default, int):
        # A default below the least value stands for "not set".
        shown: dict[str, Any] = {"default": default} if default >= least else {}
        return {**found, "type": "integer", "minimum": least, **shown}
    if item.metadata["choices"]:
        return {**found, "enum": list(item.metadata["choices"]), "default": default}
    return {**found, **text_type, **({"default": default} if default else {})}


if __name__ == "__main__":
    FILE.write_text(text(make_schema()), encoding="utf-8", newline="\n")
