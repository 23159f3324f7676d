"""Structs that kernels take by value: their fields, and where these lie, as in C."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from rustcuda_backend import records
from rustcuda_backend.errors import SignatureError
from rustcuda_backend.scalars import SCALAR_BYTES, SCALAR_FORMATS

# A doc comment stands between two of these, which never occur in Rust source text.
_DOC = r"(?:\x1d(?P<doc>[^\x1d]*)\x1d)?"
_HEAD = re.compile(rf"{_DOC}(?P<name>\w+)\{{")
_FIELD = re.compile(rf"{_DOC}(?P<name>\w+): ")
_SCALAR = re.compile(r"\[(\w+); ([1-9]\d{0,8})\]|(\w+)")
# Structs in structs; each level is a call of Python's.
_DEEPEST = 100


@dataclass(frozen=True)
class StructField:
    """A field.

    Attributes:
        name: The Rust name, without `r#`.
        dtype: The Rust scalar that it consists of; `""` where it is a struct.
        count: The N of `[T; N]`; 0 where it is one value.
        struct: The struct that it is.
        doc: The Rust doc comment, without the comment marks.
    """

    name: str
    dtype: str = ""
    count: int = 0
    struct: Struct | None = None
    doc: str = dataclasses.field(default="", compare=False)

    @property
    def alignment(self) -> int:
        """In bytes."""
        return self.struct.alignment if self.struct else SCALAR_BYTES[self.dtype]

    @property
    def size(self) -> int:
        """In bytes."""
        return self.struct.size if self.struct else SCALAR_BYTES[self.dtype] * max(self.count, 1)

    @property
    def format(self) -> str:
        """As Python's `struct` packs it."""
        return self.struct.format if self.struct else f"{self.count or ''}{SCALAR_FORMATS[self.dtype]}"

    @property
    def rust_type(self) -> str:
        """The type in Rust syntax."""
        if self.struct:
            return self.struct.name
        return f"[{self.dtype}; {self.count}]" if self.count else self.dtype


@dataclass(frozen=True)
class Struct:
    """A struct with `#[repr(C)]`.

    Attributes:
        name: Its Rust name, which is also that of its Python type.
        fields: In order, at least one.
        doc: The Rust doc comment, without the comment marks.
    """

    name: str
    fields: tuple[StructField, ...]
    doc: str = dataclasses.field(default="", compare=False)

    @functools.cached_property
    def alignment(self) -> int:
        """In bytes."""
        return max(field.alignment for field in self.fields)

    @functools.cached_property
    def size(self) -> int:
        """In bytes, with the padding at its end."""
        return sum(padding + field.size for padding, field in self._laid_out()) + self._end

    @property
    def format(self) -> str:
        """As Python's `struct` packs it in standard sizes, with all padding."""
        pieces = [_padding(padding) + field.format for padding, field in self._laid_out()]
        return "".join(pieces) + _padding(self._end)

    def all_structs(self) -> Iterator[Struct]:
        """Those inside it, then itself."""
        for field in self.fields:
            if field.struct:
                yield from field.struct.all_structs()
        yield self

    @property
    def _end(self) -> int:
        return -sum(padding + field.size for padding, field in self._laid_out()) % self.alignment

    def _laid_out(self) -> Iterator[tuple[int, StructField]]:
        """Each field, with the padding before it."""
        end = 0
        for field in self.fields:
            padding = -end % field.alignment
            yield padding, field
            end += padding + field.size


def _padding(size: int) -> str:
    return f"{size}x" if size else ""


def parse(text: str) -> Struct | None:
    r"""Reads how records spell a struct, `Params{scale: f32, weights: [f32; 3], inner: Inner{a: u8}}`.

    Doc comments stand before the names, between two `\x1d`.

    Returns:
        The struct; None for what does not begin as one.

    Raises:
        SignatureError: It begins as one, and goes on otherwise.
    """
    if not _HEAD.match(text):
        return None
    struct, end = _struct(text, 0, 1)
    if end != len(text):
        raise _unreadable(text)
    return struct


def _struct(text: str, start: int, depth: int) -> tuple[Struct, int]:
    head = _HEAD.match(text, start)
    if not head or depth > _DEEPEST:
        raise _unreadable(text)
    fields = []
    end = head.end()
    while True:
        found, end = _field(text, end, depth)
        fields.append(found)
        if text.startswith(", ", end):
            end += 2
        elif text.startswith("}", end):
            return Struct(head["name"], tuple(fields), _doc(head)), end + 1
        else:
            raise _unreadable(text)


def _field(text: str, start: int, depth: int) -> tuple[StructField, int]:
    named = _FIELD.match(text, start)
    if not named:
        raise _unreadable(text)
    if _HEAD.match(text, named.end()):
        struct, end = _struct(text, named.end(), depth + 1)
        return StructField(named["name"], struct=struct, doc=_doc(named)), end
    scalar = _SCALAR.match(text, named.end())
    if not scalar or (scalar[1] or scalar[3]) not in SCALAR_BYTES:
        raise _unreadable(text)
    dtype, count = scalar[1] or scalar[3], int(scalar[2] or 0)
    return StructField(named["name"], dtype, count, doc=_doc(named)), scalar.end()


def _doc(found: re.Match[str]) -> str:
    return records.clean_doc(found["doc"] or "")


def _unreadable(text: str) -> SignatureError:
    return SignatureError(
        f"a record in the PTX spells a struct that cannot be read: {text!r}",
        hint="use the rustcuda-device crate that comes with this rustcuda-backend",
    )
