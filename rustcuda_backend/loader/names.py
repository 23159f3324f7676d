"""Which names kernels and parameters may have in Python."""

from __future__ import annotations

import builtins
import functools
import keyword
import symtable
import unicodedata
from typing import TYPE_CHECKING

from rustcuda_backend.errors import SignatureError
from rustcuda_backend.loader import carried
from rustcuda_backend.loader.launcher import PREFIX
from rustcuda_backend.loader.stub import STUB_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rustcuda_backend.constants import ConstantSymbol
    from rustcuda_backend.signature import KernelSignature
    from rustcuda_backend.structs import Struct


@functools.cache
def reserved_names() -> frozenset[str]:
    """Names that no kernel may have. To be called from one thread first: ast.parse of 3.11 needs that."""
    # Also where the install is no editable one: a kernel's name must not depend on that.
    return _taken_names(carried.runtime_code()) | _taken_names(
        carried.editable_code() + "_editable = globals()\n"
    )


def check_names(
    signatures: Iterable[KernelSignature],
    constants: Iterable[ConstantSymbol] = (),
    structs: Iterable[Struct] = (),
) -> None:
    """Makes sure that kernels, constants and structs can be reached from Python by their names.

    Raises:
        SignatureError: A name is a keyword, no Python name, Python's or the loader's own, or given twice.
    """
    signatures, constants = tuple(signatures), tuple(constants)
    for signature in signatures:
        _check_name("kernel", signature.name, reserved_names())
    for constant in constants:
        _check_name("constant", constant.name, reserved_names())
    taken = {each.name: "kernel" for each in signatures} | {each.name: "constant" for each in constants}
    for struct in structs:
        _check_name("struct", struct.name, reserved_names())
        _check_fields(struct)
        if struct.name in taken:
            other = taken[struct.name]
            raise SignatureError(
                f"two structs of different fields are called '{struct.name}'"
                if other == "struct"
                else f"a {other} and a struct are both called '{struct.name}'",
                where=f"struct '{struct.name}'",
                hint="give each a name of its own: Python knows them by it",
            )
        taken[struct.name] = "struct"


def _taken_names(runtime_code: str) -> frozenset[str]:
    """Names that no kernel may have: the module's own, and the builtins that its code uses."""
    table = symtable.symtable(runtime_code, "runtime.py", "exec")
    own = {name for name in table.get_identifiers() if not hasattr(builtins, name)}
    stub = symtable.symtable(STUB_TYPES, "stub", "exec").get_identifiers()
    return frozenset(own | _builtins_used(table) | set(stub) | {"load", "unload"})


def _builtins_used(table: symtable.SymbolTable) -> set[str]:
    used = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_global() and hasattr(builtins, symbol.get_name())
    }
    for child in table.get_children():
        used |= _builtins_used(child)
    return used


def _check_fields(struct: Struct) -> None:
    for field in struct.fields:
        name = field.name
        if name.startswith("_rustcuda_") or _is_python_own(name):
            raise SignatureError(
                f"field '{name}' of struct '{struct.name}' cannot be reached from Python: "
                "Python and the loader keep such names for themselves",
                where=f"struct '{struct.name}'",
                hint=f"rename the field in Rust, e.g. to '{name.strip('_') or 'field'}'",
            )


def _is_python_own(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _check_name(what: str, name: str, taken: frozenset[str]) -> None:
    if keyword.iskeyword(name):
        why = "is a Python keyword"
    # Python reads names in their NFKC form.
    elif not name.isidentifier() or name != unicodedata.normalize("NFKC", name):
        why = "is no Python name"
    elif name in taken or _is_python_own(name) or name.startswith(PREFIX):
        why = "is a name that the generated loader needs for itself"
    else:
        return
    cannot = "cannot be called" if what == "kernel" else "cannot be reached"
    raise SignatureError(
        f"{what} '{name}' {cannot} from Python: '{name}' {why}",
        where=f"{what} '{name}'",
        hint=f"rename the {what} in Rust, e.g. to '{name.strip('_')}_{what}'",
    )
