"""Constant memory: what `#[constant]` records of a static, and the variable that the PTX declares."""

from __future__ import annotations

from dataclasses import dataclass

from rustcuda_backend import records
from rustcuda_backend.errors import SignatureError
from rustcuda_backend.scalars import SCALAR_BYTES


@dataclass(frozen=True)
class ConstantSymbol:
    """A variable in constant memory, zero until somebody writes it.

    Attributes:
        name: The Rust name.
        rust_type: Its type in Rust syntax, e.g. `"[f32; 64]"`.
        dtype: The Rust scalar that all of it consists of; `""` where it is of several, or a struct.
        size: Bytes.
        alignment: In bytes.
        doc: The Rust doc comment, without the comment marks.
    """

    name: str
    rust_type: str
    dtype: str
    size: int
    alignment: int
    doc: str = ""

    @property
    def symbol(self) -> str:
        """Its name in PTX and cubin, by which the driver finds it."""
        return f"__constant_{self.name}"

    @property
    def count(self) -> int:
        """The number of scalars, where `dtype` says of which kind; else 0."""
        return self.size // SCALAR_BYTES[self.dtype] if self.dtype else 0

    @property
    def declaration(self) -> str:
        """The PTX that declares it, so that other modules and the driver see it."""
        return f".visible .const .align {self.alignment} .b8 {self.symbol}[{self.size}];\n"


def parse_record(data: bytes) -> ConstantSymbol:
    """Reads a record of `#[constant]`.

    Raises:
        LookupError, ValueError: A damaged record.
        SignatureError: A record of another version, or of a number that is not known.
    """
    fields = {line[0]: line[1:] for line in records.lines(data)}
    size, alignment = map(int, fields["storage"])
    scalar = fields["scalar"][0]
    if min(size, alignment) < 0:
        raise ValueError(size, alignment)
    if scalar and scalar not in SCALAR_BYTES:
        raise SignatureError(f"a constant of '{scalar}' cannot be written from Python")
    return ConstantSymbol(
        name=fields["constant"][0],
        rust_type=fields["type"][0],
        dtype=scalar,
        size=size,
        alignment=alignment,
        doc=records.clean_doc("".join(fields.get("doc", []))),
    )
