"""Writes the generated module's stub."""

from __future__ import annotations

import ast
import builtins
import functools
import re
from typing import TYPE_CHECKING

from rustcuda_backend.loader.carried import runtime_code
from rustcuda_backend.loader.content import (
    LOAD_DOC,
    UNLOAD_DOC,
    docstring,
    items,
    module_doc,
    python_names,
    rust_text,
)
from rustcuda_backend.loader.runtime.errors import _ERRORS

if TYPE_CHECKING:
    from rustcuda_backend.constants import ConstantSymbol
    from rustcuda_backend.loader.content import LoaderContent
    from rustcuda_backend.signature import KernelSignature, Parameter
    from rustcuda_backend.structs import Struct, StructField

# Begins other names for what a struct's fields hide in its class.
_FREE = "_rustcuda_"
_FLOATS = ("f16", "bf16", "f32", "f64")

# How the names of the kernels' own types begin.
LAUNCH_PREFIX = "_Launch_"

STUB_IMPORTS = """\
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, SupportsFloat, SupportsIndex, TypeAlias, TypeVar
"""

# The stub's own names, beside the exceptions' and `load`.
STUB_TYPES = '''\
class _Tensor(Protocol):
    """A torch tensor on a GPU."""

    @property
    def is_cuda(self) -> bool: ...
    @property
    def dtype(self) -> object: ...
    def data_ptr(self) -> int: ...
    def get_device(self) -> int: ...

class _CudaArray(Protocol):
    """A GPU array of another library, e.g. CuPy or Numba."""

    @property
    def __cuda_array_interface__(self) -> Mapping[str, Any]: ...

class _DlpackArray(Protocol):
    """A GPU array that DLPack exports, e.g. JAX's."""

    def __dlpack__(self) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, Any]: ...

class _TorchDevice(Protocol):
    @property
    def type(self) -> str: ...
    @property
    def index(self) -> int | None: ...

class _TorchStream(Protocol):
    @property
    def cuda_stream(self) -> int: ...

class _CudaStream(Protocol):
    def __cuda_stream__(self) -> tuple[int, int]: ...

_ArrayLike: TypeAlias = _Tensor | _CudaArray | _DlpackArray
_PointerLike: TypeAlias = _ArrayLike | SupportsIndex | None
_IntLike: TypeAlias = SupportsIndex
_FloatLike: TypeAlias = SupportsFloat | SupportsIndex
_Extent: TypeAlias = (
    SupportsIndex
    | tuple[SupportsIndex]
    | tuple[SupportsIndex, SupportsIndex]
    | tuple[SupportsIndex, SupportsIndex, SupportsIndex]
    | list[int]
)
_Stream: TypeAlias = _TorchStream | _CudaStream | int | None
_Configuration: TypeAlias = (
    tuple[_Extent, _Extent]
    | tuple[_Extent, _Extent, SupportsIndex]
    | tuple[_Extent, _Extent, SupportsIndex, _Stream]
)
_DeviceLike: TypeAlias = _TorchDevice | str | int | None
_Launch_co = TypeVar("_Launch_co", covariant=True)

class _AttributesType(Protocol):
    """A kernel on one GPU."""

    most_threads: int
    shared_bytes: int
    constant_bytes: int
    local_bytes: int
    registers: int
    ptx_version: int
    binary_version: int
    most_dynamic_shared_bytes: int

class _KernelType(Protocol[_Launch_co]):
    """A kernel: `kernel[grid, block](...)` launches it."""

    __name__: str
    def __getitem__(self, launch: _Configuration, /) -> _Launch_co: ...
    def launch(
        self,
        *,
        grid: _Extent,
        block: _Extent,
        shared: SupportsIndex = 0,
        stream: _Stream = None,
        cluster: _Extent | None = None,
        cooperative: bool = False,
    ) -> _Launch_co:
        """The same as `kernel[grid, block, shared, stream]`, with clusters and cooperative launches."""
        ...
    def torch_op(
        self,
        name: str,
        *,
        grid: _Extent | Callable[..., _Extent],
        block: _Extent | Callable[..., _Extent],
        shared: int | Callable[..., int] = 0,
    ) -> _Launch_co:
        """Registers the kernel as a custom operator of torch, which takes the kernel's arguments."""
        ...
    def occupancy(self, block: _Extent, shared: int = 0) -> int:
        """How many blocks of this size one multiprocessor of the current GPU runs at once."""
        ...
    def suggest_block(self, shared: int = 0) -> int:
        """The number of threads of a block with which the kernel fills the current GPU best."""
        ...
    @property
    def attributes(self) -> _AttributesType:
        """Registers, memory and limits of the kernel on the current GPU."""
        ...

class _ConstantType(Protocol):
    """A variable in constant memory."""

    __name__: str
    def set(self, value: object, device: _DeviceLike = None) -> None:
        """Copies numbers, or an array's bytes, to a GPU in the order of torch's current stream there."""
        ...
'''


def stub(content: LoaderContent) -> str:
    """The stub's text, but for its header."""
    parts = [
        docstring(module_doc(content), ""),
        f"\n{STUB_IMPORTS}\n",
        STUB_TYPES,
        "\n",
        _exceptions(),
        "\ndef load(device: _DeviceLike = None) -> None:\n    ",
        f'"""{LOAD_DOC}"""\n\n',
        "def unload(device: _DeviceLike = None) -> None:\n    ",
        f'"""{UNLOAD_DOC}"""\n\n',
    ]
    hidden = sorted({name for struct in content.structs for name in _hidden(struct)})
    parts += [
        f"from builtins import {name} as {_FREE}{name}\n"
        if hasattr(builtins, name)
        else f"{_FREE}{name} = {name}\n"
        for name in hidden
    ]
    parts += [_struct_stub(struct) for struct in content.structs]
    parts += [_kernel_stub(signature) for signature in content.signatures]
    parts += [_constant_stub(constant) for constant in content.constants]
    names = [*content.names, *_ERRORS]
    parts.append(f"__all__ = [\n{items(names)}]\n")
    return "".join(parts)


@functools.cache
def _exceptions() -> str:
    """The runtime's exceptions as stub classes, taken from its source so that they stay the same."""
    parts = []
    for node in ast.parse(runtime_code()).body:
        if not (isinstance(node, ast.ClassDef) and node.name in _ERRORS):
            continue
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        parts.append(f"class {node.name}({bases}):\n{docstring(ast.get_docstring(node) or '', '    ')}")
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                fields = [argument for argument in method.args.args if argument.arg != "self"]
                parts += [f"    {ast.unparse(field)}\n" for field in fields]
                parts.append(f"    def __init__({ast.unparse(method.args)}) -> None: ...\n")
        parts.append("\n")
    return "".join(parts)


def _kernel_stub(signature: KernelSignature) -> str:
    name = signature.name
    takes = "".join(
        f", {python_name}: {_python_type(parameter)}"
        for parameter, python_name in zip(
            signature.parameters, python_names(signature.parameters), strict=True
        )
    )
    text = rust_text(signature) + (f"\n\n{signature.doc}" if signature.doc else "")
    launcher = f"{LAUNCH_PREFIX}{name}"
    return (
        f"class {launcher}(Protocol):\n{docstring(text, '    ')}\n"
        f"    def __call__(self{takes}) -> None:\n{docstring(text, '        ')}        ...\n\n"
        f"{name}: _KernelType[{launcher}]\n{docstring(text, '')}\n"
    )


def _hidden(struct: Struct) -> set[str]:
    """The names that the stub's class needs, but that mean a field in it."""
    types = "".join(f" {_field_type(field)} {_read_type(field)}" for field in struct.fields)
    return {"property", *re.findall(r"\w+", types)} & {*python_names(struct.fields)}


def _freed(hidden: set[str], text: str) -> str:
    """The text with other names for those that are hidden."""
    return re.sub(r"\w+", lambda word: _FREE * (word[0] in hidden) + word[0], text)


def _struct_stub(struct: Struct) -> str:
    fields = list(zip(struct.fields, python_names(struct.fields), strict=True))
    free = functools.partial(_freed, _hidden(struct))
    rust = "".join(f"\n    {field.name}: {field.rust_type}," for field in struct.fields)
    takes = "".join(f", {name}: {free(_field_type(field))}" for field, name in fields)
    text = f"{struct.doc}\n\n" if struct.doc else ""
    text += "A struct that kernels take by value; it does not change once it is made.\n\n"
    text += f"    {struct.name} {{" + rust.replace("\n", "\n    ") + "\n    }"
    members = "".join(
        f"    @{free('property')}\n    def {name}(self) -> {free(_read_type(field))}:{_field_end(field)}\n"
        for field, name in fields
    )
    return (
        f"class {struct.name}:\n{docstring(text, '    ')}\n"
        f"    __match_args__ = {tuple(name for _, name in fields)!r}\n"
        f"    def __init__(self{takes}) -> None: ...\n{members}\n"
    )


def _field_end(field: StructField) -> str:
    return f"\n{docstring(field.doc, '        ')}        ..." if field.doc else " ..."


def _field_type(field: StructField) -> str:
    if field.struct:
        return field.struct.name
    return _number_type(field.dtype, is_array=field.count > 0)


def _read_type(field: StructField) -> str:
    """What a field's value is, whatever it was made of."""
    if field.struct:
        return field.struct.name
    number = "float" if field.dtype in _FLOATS else "bool" if field.dtype == "bool" else "int"
    return f"tuple[{number}, ...]" if field.count else number


def _constant_stub(constant: ConstantSymbol) -> str:
    text = f"{constant.name}: {constant.rust_type}" + (f"\n\n{constant.doc}" if constant.doc else "")
    return f"{constant.name}: _ConstantType\n{docstring(text, '')}\n"


def _python_type(parameter: Parameter) -> str:
    if parameter.kind == "pointer":
        return "_ArrayLike | SupportsIndex" if parameter.rust_type.startswith("&") else "_PointerLike"
    if parameter.kind == "struct":
        return parameter.rust_type
    if parameter.kind not in ("scalar", "array"):
        return "_ArrayLike"
    return _number_type(parameter.dtype, is_array=parameter.kind == "array")


def _number_type(dtype: str, *, is_array: bool) -> str:
    number = "_FloatLike" if dtype in _FLOATS else "bool" if dtype == "bool" else "_IntLike"
    return f"Sequence[{number}]" if is_array else number
