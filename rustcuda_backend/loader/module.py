"""Writes the generated module."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from rustcuda_backend.loader.carried import runtime_code
from rustcuda_backend.loader.content import (
    LOAD_DOC,
    UNLOAD_DOC,
    docstring,
    items,
    module_doc,
    python_names,
    rust_type,
)
from rustcuda_backend.loader.known_in_c import known_in_c
from rustcuda_backend.loader.launcher import launcher, launcher_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rustcuda_backend.constants import ConstantSymbol
    from rustcuda_backend.loader.content import LoaderContent
    from rustcuda_backend.signature import KernelSignature
    from rustcuda_backend.structs import Struct


def module(content: LoaderContent) -> str:
    """The module's text, but for its header."""
    parts = [
        docstring(module_doc(content), ""),
        "\nfrom __future__ import annotations\n\n",
        runtime_code(),
        "\n\n# ---- What this package brings ----\n\n",
        _library(content),
        _structs(content.structs),
        "\n\n",
        _function("load", LOAD_DOC),
        _function("unload", UNLOAD_DOC),
    ]
    parts += [_kernel(signature, content) for signature in content.signatures]
    parts += [_constant(constant) for constant in content.constants]
    parts.append(f"\n__all__ = [\n{items(content.names)}    *_ERRORS,\n]\n")
    return "".join(parts)


def _structs(structs: Sequence[Struct]) -> str:
    """The table of the structs, and how the module finds their types; nothing where there are none."""
    if not structs:
        return ""
    rows = "".join(
        f"    {struct.name!r}: ({struct.doc!r}, (\n{_fields(struct)}    )),\n" for struct in structs
    )
    return (
        f"_library.structs = _Structs(_library, __name__, {{\n{rows}}})\n\n\n"
        "def __getattr__(name):\n    return _library.structs.attribute(name)\n\n\n"
        "def __dir__():\n    return [*globals(), *_library.structs]\n"
    )


def _fields(struct: Struct) -> str:
    named = zip(struct.fields, python_names(struct.fields), strict=True)
    rows = (
        (field.name, name, field.struct.name if field.struct else field.dtype, field.count, field.doc)
        for field, name in named
    )
    return "".join(f"        {row!r},\n" for row in rows)


def _constant(constant: ConstantSymbol) -> str:
    fields = (constant.symbol, constant.rust_type, constant.dtype, constant.size, constant.doc)
    return f"{constant.name} = _Constant(_library, {constant.name!r}, {', '.join(map(repr, fields))})\n"


def _function(name: str, doc: str) -> str:
    """One of the module's functions, which do what the library's methods do."""
    return f'def {name}(device: object = None) -> None:\n    """{doc}"""\n    _library.{name}(device)\n\n\n'


def _library(content: LoaderContent) -> str:
    images = "".join(
        f"        _Image({capability.major}, {capability.minor}, {capability.suffix!r}, {capability.ptx}, "
        f"{floor.branch}, {floor.cuda}),\n"
        for capability in content.capabilities
        for floor in (content.version.driver_floor(capability),)
    )
    return (
        "_library = _Library(\n"
        f'    _os.path.splitext(__file__)[0] + "{content.suffix}",\n'
        f"    {len(content.fatbin)},\n"
        f"    {hashlib.sha256(content.fatbin).hexdigest()!r},\n"
        f"    (\n{images}    ),\n"
        f"    {content.version.name!r},\n" + (f"    {content.offset},\n" if content.offset else "") + ")\n"
    )


def _kernel(signature: KernelSignature, content: LoaderContent) -> str:
    parameters = "".join(
        f"        {(p.name, name, p.kind, p.dtype, p.mutable, rust_type(p))!r},\n"
        for p, name in zip(signature.parameters, python_names(signature.parameters), strict=True)
    )
    lacking = tuple(capability.name for capability in content.lacking.get(signature.name, ()))
    most_threads = signature.launch_bounds[0] if signature.launch_bounds else 0
    return (
        f"{launcher(signature)}{signature.name} = _Kernel(\n"
        f"    _library,\n    {signature.name!r},\n    {signature.doc!r},\n"
        f"    (\n{parameters}    ),\n    {most_threads},\n    {lacking!r},\n"
        f"    {launcher_name(signature)},\n    {known_in_c(signature)!r},\n)\n"
    )
