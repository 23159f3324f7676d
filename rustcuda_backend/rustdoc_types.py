"""Types in rustdoc's JSON: without the aliases in them, and in Rust syntax."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# core::ffi's aliases on this target: 64 bits, not Windows, and char is signed (core/src/ffi/primitives.rs).
_C_TYPES = {
    "c_char": "i8", "c_schar": "i8", "c_uchar": "u8", "c_short": "i16", "c_ushort": "u16",
    "c_int": "i32", "c_uint": "u32", "c_long": "i64", "c_ulong": "u64", "c_longlong": "i64",
    "c_ulonglong": "u64", "c_float": "f32", "c_double": "f64",
    "c_size_t": "usize", "c_ssize_t": "isize", "c_ptrdiff_t": "isize",
}  # fmt: skip


def resolved(
    rust_type: Mapping[str, Any], document: Mapping[str, Any], bound: Mapping[str, Any]
) -> Mapping[str, Any]:
    """A type without the aliases in it; `bound` has the types of the generics of the alias around it."""
    match rust_type:
        case {"generic": name}:
            found: Mapping[str, Any] = bound.get(name, rust_type)
            return found
        case {"resolved_path": path}:
            return _alias(path, document, bound) or rust_type
        case {"slice": element}:
            return {"slice": resolved(element, document, bound)}
        # No kernel takes tuples. Only generics in them count, for messages: pairs of aliases for pairs of
        # aliases would double with each.
        case {"tuple": elements} if bound:
            return {"tuple": [resolved(element, document, bound) for element in elements]}
        case {"raw_pointer": inner} | {"borrowed_ref": inner} | {"array": inner}:
            (kind,) = rust_type
            return {kind: {**inner, "type": resolved(inner["type"], document, bound)}}
    return rust_type


def _alias(
    path: Mapping[str, Any], document: Mapping[str, Any], bound: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """What a path stands for, if it is an alias of this crate or of core::ffi."""
    match document["index"].get(str(path["id"])):
        case {"inner": {"type_alias": {"type": meant, "generics": {"params": params}}}}:
            given = [resolved(argument, document, bound) for argument in type_arguments(path)]
            types = [parameter for parameter in params if "type" in parameter["kind"]]
            meanings: dict[str, Any] = {}
            for index, parameter in enumerate(types):
                default = parameter["kind"]["type"]["default"]
                meaning = given[index] if index < len(given) else resolved(default, document, meanings)
                meanings[parameter["name"]] = meaning
            return resolved(meant, document, meanings)
    match document["paths"].get(str(path["id"])):
        case {"path": ["core", "ffi", *_, name]} if name in _C_TYPES:
            return {"primitive": _C_TYPES[name]}
    return None


def type_arguments(path: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The types in a path's `<…>`, without its lifetimes and constants."""
    match path:
        case {"args": {"angle_bracketed": {"args": arguments}}}:
            return [argument["type"] for argument in arguments if "type" in argument]
    return []


def spelled(rust_type: Mapping[str, Any]) -> str:
    """A type in Rust syntax, for messages; `_` for what no kernel takes."""
    match rust_type:
        case {"primitive": name} | {"generic": name}:
            return str(name)
        case {"resolved_path": path}:
            arguments = ", ".join(map(spelled, type_arguments(path)))
            return f"{path['path']}<{arguments}>" if arguments else str(path["path"])
        case {"raw_pointer": {"is_mutable": mutable, "type": pointee}}:
            return f"*{'mut' if mutable else 'const'} {spelled(pointee)}"
        case {"borrowed_ref": {"is_mutable": mutable, "type": pointee}}:
            return f"&{'mut ' if mutable else ''}{spelled(pointee)}"
        case {"slice": element}:
            return f"[{spelled(element)}]"
        case {"array": {"type": element, "len": length}}:
            return f"[{spelled(element)}; {length}]"
        case {"tuple": elements}:
            return f"({', '.join(map(spelled, elements))})"
    return "_"
