"""Structs by value from rustdoc's JSON, for kernels that are plain functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rustcuda_backend.errors import SignatureError
from rustcuda_backend.rustdoc_types import resolved, spelled
from rustcuda_backend.scalars import SCALAR_BYTES
from rustcuda_backend.structs import Struct, StructField


def read(path: Mapping[str, Any], document: Mapping[str, Any]) -> Struct | None:
    """Reads the struct that a path names.

    Args:
        path: What rustdoc calls a `resolved_path`.
        document: rustdoc's JSON of the crate, private items included.

    Returns:
        The struct; None where the path names something else.

    Raises:
        SignatureError: Python cannot make one; the message says why.
    """
    key = str(path["id"])
    match document["index"].get(key):
        case {"inner": {"struct": inner}} as item:
            return _struct(item, inner, document)
    match document["paths"].get(key):
        case {"kind": "struct", "path": [crate, *_, name]}:
            raise SignatureError(
                f"struct '{name}' is in the crate '{crate}', whose fields rustdoc does not show"
            )
    return None


def _struct(item: Mapping[str, Any], inner: Mapping[str, Any], document: Mapping[str, Any]) -> Struct:
    name = str(item["name"]).removeprefix("r#")
    if inner["generics"]["params"]:
        raise SignatureError(f"struct '{name}' is generic")
    if not _lies_as_in_c(item):
        raise SignatureError(f"struct '{name}' is not #[repr(C)], or has another layout besides")
    match inner["kind"]:
        case {"plain": {"fields": [_, *_] as ids, "has_stripped_fields": False}}:
            fields = (document["index"][str(each)] for each in ids)
            return Struct(name, tuple(_field(name, field, document) for field in fields), doc=_doc(item))
    raise SignatureError(f"struct '{name}' has no named fields")


def _lies_as_in_c(item: Mapping[str, Any]) -> bool:
    """Whether it has `#[repr(C)]` and nothing that changes alignments."""
    layouts = [attribute["repr"] for attribute in item["attrs"] if "repr" in attribute]
    return bool(layouts) and all(
        layout["kind"] == "c" and not (layout["align"] or layout["packed"]) for layout in layouts
    )


def _field(struct: str, item: Mapping[str, Any], document: Mapping[str, Any]) -> StructField:
    name, doc = str(item["name"]).removeprefix("r#"), _doc(item)
    rust_type = resolved(item["inner"]["struct_field"], document, {})
    match rust_type:
        case {"primitive": scalar} if scalar in SCALAR_BYTES:
            return StructField(name, scalar, doc=doc)
        case {"array": {"type": {"primitive": scalar}, "len": str(length)}} if (
            scalar in SCALAR_BYTES and length.isdecimal() and int(length)
        ):
            return StructField(name, scalar, int(length), doc=doc)
        case {"resolved_path": path}:
            inner = read(path, document)
            if inner:
                return StructField(name, struct=inner, doc=doc)
    raise SignatureError(f"struct '{struct}' holds '{name}: {spelled(rust_type)}'")


def _doc(item: Mapping[str, Any]) -> str:
    return (item["docs"] or "").strip()
