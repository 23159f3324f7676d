"""Reading a generated loader's tables from its text: nothing in it is run."""

from __future__ import annotations

import ast
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rustcuda_backend.capability import Capability
from rustcuda_backend.errors import FormatError
from rustcuda_backend.scalars import SCALAR_BYTES
from rustcuda_backend.signature import Parameter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True)
class LoaderImage:
    """One capability that a loader says its fatbin has.

    Attributes:
        capability: With `ptx` set where there is PTX beside the SASS.
        branch: The driver floor's branch.
    """

    capability: Capability
    branch: int


@dataclass(frozen=True)
class LoaderKernel:
    """One kernel that a loader launches.

    Attributes:
        name: The PTX entry.
        parameters: With their Rust types.
        lacking: Names of the capabilities whose image lacks it.
    """

    name: str
    parameters: tuple[Parameter, ...]
    lacking: tuple[str, ...]

    @property
    def signature(self) -> str:
        """`saxpy(a: f32, x: &[f32])`."""
        takes = ", ".join(f"{parameter.name}: {parameter.rust_type}" for parameter in self.parameters)
        return f"{self.name}({takes})"

    @property
    def abi_bytes(self) -> tuple[int, ...]:
        """Size in bytes of each PTX parameter, in order."""
        return tuple(size for parameter in self.parameters for size in parameter.abi_bytes)


@dataclass(frozen=True)
class LoaderConstant:
    """A variable in constant memory; see `constants.ConstantSymbol` for the attributes."""

    name: str
    symbol: str
    rust_type: str
    dtype: str
    size: int
    doc: str


@dataclass(frozen=True)
class LoaderTables:
    """What a generated loader says.

    Attributes:
        suffix: What the name of the file with the fatbin ends in; it lies beside the loader.
        offset: The byte of that file at which the fatbin begins.
        size, sha256: The fatbin's.
        images: The capabilities in it.
        cuda: The CUDA version whose ptxas wrote its cubins, e.g. `"12.9"`.
        kernels: The kernels.
        constants: The variables in constant memory.
    """

    suffix: str
    offset: int
    size: int
    sha256: str
    images: tuple[LoaderImage, ...]
    cuda: str
    kernels: tuple[LoaderKernel, ...]
    constants: tuple[LoaderConstant, ...] = ()


# What damaged text can make of reading it.
_DAMAGED = (
    *(SyntaxError, ValueError, TypeError, IndexError, KeyError, RecursionError, MemoryError),
    struct.error,
)


def read(text: str) -> LoaderTables:
    """Reads the tables from a loader's text.

    Raises:
        FormatError: It is no generated loader, or a damaged one.
    """
    try:
        body = ast.parse(text).body
        calls = {name: list(_calls(body, name)) for name in ("_Library", "_Kernel", "_Constant")}
        (library,) = calls["_Library"]
        return _tables(library, calls["_Kernel"], calls["_Constant"])
    except (
        SyntaxError,
        ValueError,
        TypeError,
        IndexError,
        KeyError,
        RecursionError,
        MemoryError,
        struct.error,
    ) as error:
        raise FormatError(f"the generated loader is damaged: {error}") from None


def _calls(body: Sequence[ast.stmt], name: str) -> Iterator[Sequence[ast.expr]]:
    """The arguments of every `something = name(…)`."""
    for node in body:
        value = node.value if isinstance(node, ast.Assign) else None
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == name:
            yield value.args


def _tables(
    library: Sequence[ast.expr],
    kernels: Sequence[Sequence[ast.expr]],
    constants: Sequence[Sequence[ast.expr]],
) -> LoaderTables:
    file, size, sha256, images, cuda, *offset = library
    if not isinstance(file, ast.BinOp) or not isinstance(images, ast.Tuple):
        raise TypeError("its fatbin is not named as the generator does")
    return LoaderTables(
        suffix=_literal(file.right, str),
        offset=_literal(offset[0], int) if offset else 0,
        size=_literal(size, int),
        sha256=_literal(sha256, str),
        images=tuple(_image(node) for node in images.elts),
        cuda=_literal(cuda, str),
        kernels=tuple(_kernel(arguments) for arguments in kernels),
        constants=tuple(_constant(arguments) for arguments in constants),
    )


def _image(node: ast.expr) -> LoaderImage:
    if not isinstance(node, ast.Call):
        raise TypeError("an image is not given as the generator does")
    major, minor, suffix, ptx, branch, _ = node.args
    capability = Capability(
        _literal(major, int), _literal(minor, int), _literal(suffix, str), _literal(ptx, bool)
    )
    return LoaderImage(capability, _literal(branch, int))


def _kernel(arguments: Sequence[ast.expr]) -> LoaderKernel:
    _, name, _, parameters, _, lacking, *_ = arguments
    return LoaderKernel(
        _literal(name, str),
        tuple(_parameter(*parameter) for parameter in _literal(parameters, tuple)),
        tuple(str(capability) for capability in _literal(lacking, tuple)),
    )


def _constant(arguments: Sequence[ast.expr]) -> LoaderConstant:
    _library, name, symbol, rust_type, dtype, size, doc = arguments
    return LoaderConstant(
        name=_literal(name, str),
        symbol=_literal(symbol, str),
        rust_type=_literal(rust_type, str),
        dtype=_literal(dtype, str),
        size=_literal(size, int),
        doc=_literal(doc, str),
    )


_KINDS = ("scalar", "pointer", "slice", "whole_slice", "rows", "array", "struct")


def _parameter(name: str, _python: str, kind: str, dtype: str, mutable: bool, rust_type: str) -> Parameter:
    sized = kind in ("scalar", "array")
    if kind not in _KINDS or (sized and dtype not in SCALAR_BYTES):
        raise ValueError(f"parameter {name!r} has the unknown type {kind!r} of {dtype!r}")
    if kind == "struct":
        struct.calcsize(f"<{dtype}")
    return Parameter(str(name), kind, dtype, mutable, str(rust_type))


def _literal(node: ast.expr, wanted: type) -> Any:
    value = ast.literal_eval(node)
    if type(value) is not wanted:
        raise TypeError(f"{value!r} stands where the generator writes {wanted.__name__}")
    return value
