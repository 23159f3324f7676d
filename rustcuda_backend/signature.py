"""Kernel signatures: what a launch must pass, as recorded by `#[kernel]` or read from PTX."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from struct import calcsize
from typing import TypeAlias

from rustcuda_backend import records, structs
from rustcuda_backend.errors import SignatureError
from rustcuda_backend.scalars import SCALAR_BYTES
from rustcuda_backend.structs import Struct

# Sizes along x, y and z.
Extents: TypeAlias = "tuple[int, int, int]"

# What records of kernels written for cuda-oxide say of types that Python does not know.
_UNKNOWN = "_"

# Each form of a parameter's type, with its kind and whether the kernel may write through it.
_FORMS = (
    (re.compile(r"&\[(\w+)\]"), "slice", False),
    (re.compile(r"DisjointSlice<(\w+)>"), "slice", True),
    (re.compile(r"DisjointSlice<(\w+), Runtime2DIndex>"), "rows", True),
    (re.compile(r"\*const (\w+)"), "pointer", False),
    (re.compile(r"\*mut (\w+)"), "pointer", True),
    (re.compile(r"&(\w+)"), "pointer", False),
    (re.compile(r"&mut (\w+)"), "pointer", True),
    (re.compile(r"\[(\w+); [1-9]\d{0,8}\]"), "array", False),
    (re.compile(r"(\w+)"), "scalar", False),
)


_ARRAY = re.compile(r"\[\w+; (\d+)\]")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel as its author wrote it.

    Attributes:
        name: The Rust name.
        kind: `"scalar"`, `"pointer"` (8 bytes), `"slice"` (a pointer and a length, 8 bytes each) or `"rows"`
            (a slice followed by the elements of a row, 4 bytes), `"array"` (`[T; N]`, whose N is read from
            `rust_type`), `"struct"`; from rustdoc also `"whole_slice"` (a slice as one parameter of 16
            bytes), and `"value"`, of a type whose size only the PTX entry knows, never in a finished
            module.
        dtype: Rust scalar: of the value, of what is pointed to, or of the slice's elements.
            `""` where the source does not tell (a pointer read from PTX). Of a struct, how Python's
            `struct` packs it.
        mutable: Whether the kernel may write through it.
        rust_type: The type in Rust syntax, for messages and the stub.
        struct: The struct, where it is known.
        refused: Why a struct of kind `"value"` is not of kind `"struct"`.
    """

    name: str
    kind: str
    dtype: str
    mutable: bool = False
    rust_type: str = ""
    struct: Struct | None = None
    refused: str = ""

    @property
    def abi_bytes(self) -> tuple[int, ...]:
        """Size in bytes of each PTX parameter this one becomes; 0 where it is not known."""
        if self.kind == "slice":
            return (8, 8)
        if self.kind == "rows":
            return (8, 8, 4)
        if self.kind == "whole_slice":
            return (16,)
        if self.kind == "array":
            return (self.count * SCALAR_BYTES[self.dtype],)
        if self.kind == "struct":
            return (calcsize(f"<{self.dtype}"),)
        if self.kind == "value":
            return (0,)
        return (8,) if self.kind == "pointer" else (SCALAR_BYTES[self.dtype],)

    @property
    def count(self) -> int:
        """The N of `[T; N]`; 1 for other types."""
        match = _ARRAY.fullmatch(self.rust_type) if self.kind == "array" else None
        return int(match[1]) if match else 1


@dataclass(frozen=True)
class KernelSignature:
    """A kernel's name and everything its launcher needs.

    Attributes:
        name: The PTX entry, which is also the Python name.
        parameters: In order.
        doc: The Rust doc comment, without the comment marks.
        launch_bounds: (most threads per block, fewest blocks per multiprocessor or 0), or None.
        block: The only size of block that it can be launched with, or None; `launch_bounds` then has its
            threads.
        cluster: Blocks of a cluster, or None.
        source: `"record"` (`#[kernel]`), `"rustdoc"` or `"ptx"`.
    """

    name: str
    parameters: tuple[Parameter, ...]
    doc: str = ""
    launch_bounds: tuple[int, int] | None = None
    block: Extents | None = None
    cluster: Extents | None = None
    source: str = "record"

    @property
    def abi_bytes(self) -> tuple[int, ...]:
        """Size in bytes of each PTX parameter, in order."""
        return tuple(size for parameter in self.parameters for size in parameter.abi_bytes)

    @property
    def is_launchable(self) -> bool:
        """Whether Python can pass all parameters; of what a pointer points to it need not know."""
        return all(parameter.dtype or parameter.kind == "pointer" for parameter in self.parameters)


def parse_type(name: str, rust_type: str) -> Parameter:
    """Reads a parameter's type in the canonical Rust syntax of records.

    Raises:
        SignatureError: A type that cannot be passed from Python.
    """
    struct = structs.parse(rust_type)
    if struct:
        return Parameter(name, "struct", struct.format, rust_type=struct.name, struct=struct)
    for form, kind, mutable in _FORMS:
        match = form.fullmatch(rust_type)
        if match and match[1] in SCALAR_BYTES:
            return Parameter(name, kind, match[1], mutable, rust_type)
        if match and match[1] == _UNKNOWN:
            return Parameter(name, "value" if kind == "scalar" else kind, "", mutable, rust_type)
    raise SignatureError(
        f"parameter '{name}: {rust_type}' cannot be passed from Python",
        hint="take numbers, bool, arrays of them, raw pointers to them, &[T], or DisjointSlice<T>",
    )


def parse_record(data: bytes) -> KernelSignature:
    """Reads the record that `#[kernel]` leaves in the PTX.

    Raises:
        LookupError, ValueError: A damaged record.
        SignatureError: A record of another version, or a parameter that cannot be passed.
    """
    lines = records.lines(data)
    fields = {line[0]: line[1:] for line in lines if line[0] != "parameter"}
    (name,) = fields["name"]
    parameters = []
    for line in lines:
        if line[0] == "parameter":
            try:
                parameters.append(parse_type(line[1], line[2]))
            except SignatureError as error:
                error.where = f"kernel '{name}'"
                raise
    bounds = fields.get("launch_bounds")
    block = _extents(fields.get("block"))
    if block:
        threads = math.prod(block)
        if bounds and threads > int(bounds[0]):
            raise SignatureError(
                f"block asks for blocks of {threads} threads, but launch_bounds for at most {bounds[0]}",
                where=f"kernel '{name}'",
                hint="leave launch_bounds out, or give it the threads of the block",
            )
        bounds = [str(threads), bounds[1] if bounds else "0"]
    return KernelSignature(
        name,
        tuple(parameters),
        doc=records.clean_doc("".join(fields.get("doc", []))),
        launch_bounds=(int(bounds[0]), int(bounds[1])) if bounds else None,
        block=block,
        cluster=_extents(fields.get("cluster")),
    )


def _extents(fields: list[str] | None) -> Extents | None:
    if fields is None:
        return None
    x, y, z = map(int, fields)
    return x, y, z
