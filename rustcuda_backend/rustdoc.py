"""Kernel signatures from rustdoc's JSON, for kernels that are plain functions and left no record."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from rustcuda_backend import process, rustdoc_structs
from rustcuda_backend.errors import FormatError, SignatureError, ToolError
from rustcuda_backend.report import Report
from rustcuda_backend.rustdoc_types import resolved, spelled
from rustcuda_backend.scalars import SCALAR_BYTES
from rustcuda_backend.signature import KernelSignature, Parameter

# 57 is what rustdoc 1.96 writes, and the tests read what it wrote. 58 to 61 only add fields to items and
# functions (stability, const_stability, default_unstable): by comparison of the definitions in the
# rustdoc-types crate, 0.57.4 with 0.61.0, whose version numbers are the format's.
FORMAT_VERSIONS = frozenset(range(57, 62))

# Private and hidden functions are kernels too; with a crate's lints at deny, its documentation need not be.
FLAGS = (
    *("-Zunstable-options", "--output-format=json", "--document-private-items", "--document-hidden-items"),
    "--cap-lints=allow",
)

# Finds kernels in rustdoc's JSON.
Finder: TypeAlias = "Callable[[Mapping[str, Any]], Iterable[KernelSignature]]"

# Pointers to these carry a length or a vtable.
_UNSIZED = ("slice", "dyn_trait")

_IDENTIFIER = re.compile(r"(?:r#)?(?P<name>(?!_$)\w+)")


@dataclass(frozen=True)
class RustdocCall:
    """One call of rustdoc through cargo.

    Attributes:
        rustdoc: The program.
        argv: The command.
        directory: Where it runs.
        environ: The whole environment.
        variables: What of it was set for this call, for messages.
        output: The JSON that it writes.
        compiled: The PTX of the same pass; rustc writes it anew whenever the crate has changed.
    """

    rustdoc: Path
    argv: Sequence[str | Path]
    directory: Path
    environ: Mapping[str, str]
    variables: Mapping[str, str]
    output: Path
    compiled: Path


def cfg_flags(rustflags: Sequence[str]) -> tuple[str, ...]:
    """Those of somebody's rustc flags that decide what there is; rustdoc does not take all others."""
    joined = re.findall(r"(?:^|\x1f)--(cfg|check-cfg)[=\x1f]([^\x1f]*)", "\x1f".join(rustflags))
    return tuple(f"--{flag}={value}" for flag, value in joined)


def describe(call: RustdocCall, report: Report, find: Finder | None = None) -> dict[str, KernelSignature]:
    """The kernels of a crate as rustdoc knows them; none, with a warning, where it cannot be asked.

    Args:
        call: How to run rustdoc. It does not run if it has run for the same PTX before.
        report: Where the warning goes.
        find: Finds the kernels in rustdoc's JSON; those of stock rustc by default.
    """
    try:
        return signatures(_document(call, report), find)
    except (ToolError, FormatError) as error:
        report.warn(
            "kernels without #[kernel] keep the names and types that their PTX tells "
            f"(arg0, no element types): {error.what}"
        )
        return {}


def _document(call: RustdocCall, report: Report) -> dict[str, Any]:
    # cargo never finds rustdoc's JSON fresh, since it looks for index.html; the PTX's time tells.
    time = call.compiled.stat().st_mtime_ns
    kept = call.output.with_suffix(".rustdoc.json")
    if not (kept.is_file() and kept.stat().st_mtime_ns == time):
        _run(call, report)
        os.utime(call.output, ns=(time, time))
        # Whole or not at all: a build may be interrupted.
        call.output.replace(kept)
    try:
        content: dict[str, Any] = json.loads(kept.read_bytes())
    except ValueError as error:
        kept.unlink()  # so that the next build asks again
        raise FormatError(f"{kept} is not JSON: {error}") from error
    return content


def _run(call: RustdocCall, report: Report) -> None:
    if not call.rustdoc.is_file():
        raise ToolError(f"there is no rustdoc beside rustc ({call.rustdoc})")
    report.command(call.argv, call.variables)
    finished = process.run(call.argv, cwd=call.directory, env=call.environ)
    report.said(finished.stderr)
    if not (finished.ok and call.output.is_file()):
        errors = re.findall(r"^error.*", finished.stderr, re.MULTILINE)
        raise ToolError(f"rustdoc failed: {errors[0] if errors else f'status {finished.returncode}'}")


def signatures(document: Mapping[str, Any], find: Finder | None = None) -> dict[str, KernelSignature]:
    """Reads the kernels that a crate defines, by the names that their PTX entries have.

    A parameter whose size only the PTX entry knows is of kind `"value"`.

    Args:
        document: rustdoc's JSON of the crate, private items included.
        find: Finds the kernels in it; those of stock rustc by default.

    Raises:
        FormatError: A format version that is not known.
    """
    version = document.get("format_version")
    if version not in FORMAT_VERSIONS:
        known = f"{min(FORMAT_VERSIONS)} to {max(FORMAT_VERSIONS)}"
        raise FormatError(f"this rustdoc writes JSON of format {version}; known are {known}")
    return {signature.name: signature for signature in (find or _kernels)(document)}


def _kernels(document: Mapping[str, Any]) -> Iterator[KernelSignature]:
    for item in document["index"].values():
        match item:
            case {"inner": {"function": {"header": {"abi": {"Other": abi}}, "sig": {"inputs": inputs}}}}:
                name = exported_name(item)
                # rustdoc keeps the quotes around the names of ABIs that it has no word for.
                if name and abi.strip('"') == "ptx-kernel":
                    parameters = tuple(
                        parameter(parameter_name(pattern, index), resolved(rust_type, document, {}), document)
                        for index, (pattern, rust_type) in enumerate(inputs)
                    )
                    doc = (item["docs"] or "").strip()
                    yield KernelSignature(name, parameters, doc=doc, source="rustdoc")


def exported_name(item: Mapping[str, Any]) -> str:
    """The symbol's name; empty if rustc makes one up, which nobody can launch by."""
    for attribute in item["attrs"]:
        match attribute:
            case {"export_name": str(name)}:
                return name
            case "no_mangle":
                return str(item["name"]).removeprefix("r#")
    return ""


def parameter_name(pattern: str, index: int) -> str:
    """A parameter's name; a pattern such as `_` or `(a, b)` has none."""
    identifier = _IDENTIFIER.fullmatch(pattern)
    return identifier["name"] if identifier else f"arg{index}"


def parameter(name: str, rust_type: Mapping[str, Any], document: Mapping[str, Any]) -> Parameter:
    """A parameter by its type without aliases; of kind `"value"` where only the PTX tells its size."""
    text = spelled(rust_type)
    match rust_type:
        case {"primitive": scalar} if scalar in SCALAR_BYTES:
            return Parameter(name, "scalar", scalar, rust_type=text)
        case {"raw_pointer": to} | {"borrowed_ref": to} if _is_sized(to["type"]):
            scalar = to["type"].get("primitive", "")
            dtype = scalar if scalar in SCALAR_BYTES else ""
            return Parameter(name, "pointer", dtype, mutable=to["is_mutable"], rust_type=text)
        case {"borrowed_ref": {"is_mutable": mutable, "type": {"slice": {"primitive": scalar}}}} if (
            scalar in SCALAR_BYTES
        ):
            return Parameter(name, "whole_slice", scalar, mutable=mutable, rust_type=text)
        case {"array": {"type": {"primitive": scalar}, "len": str(length)}} if (
            scalar in SCALAR_BYTES and length.isdecimal() and int(length)
        ):
            return Parameter(name, "array", scalar, rust_type=text)
        case {"resolved_path": path}:
            return _struct_parameter(name, path, text, document)
    return Parameter(name, "value", "", rust_type=text)


def _struct_parameter(
    name: str, path: Mapping[str, Any], text: str, document: Mapping[str, Any]
) -> Parameter:
    try:
        struct = rustdoc_structs.read(path, document)
    except SignatureError as error:
        # Only the PTX tells whether it is passed as a struct: one around a number may be that number.
        return Parameter(name, "value", "", rust_type=text, refused=error.what)
    if struct is None:
        return Parameter(name, "value", "", rust_type=text)
    return Parameter(name, "struct", struct.format, rust_type=struct.name, struct=struct)


def _is_sized(rust_type: Mapping[str, Any]) -> bool:
    return not any(kind in rust_type for kind in _UNSIZED) and rust_type.get("primitive") != "str"
