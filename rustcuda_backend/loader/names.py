"""Which names kernels and parameters may have in Python."""

from __future__ import annotations

import builtins
import functools
import keyword
import re
import symtable
import unicodedata
from typing import TYPE_CHECKING

from rustcuda_backend.errors import SignatureError
from rustcuda_backend.loader import carried
from rustcuda_backend.loader.launcher import PREFIX
from rustcuda_backend.loader.stub import LAUNCH_PREFIX, STUB_IMPORTS, STUB_TYPES
from rustcuda_backend.scalars import SCALAR_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rustcuda_backend.constants import ConstantSymbol
    from rustcuda_backend.signature import KernelSignature
    from rustcuda_backend.structs import Struct

_OF_PYTHON = re.compile(r"__\w*__")
# LLVM and ptxas take kernels of these names for the functions that they, libdevice or the sysroot bring, and
# calls of those for calls of the kernel. `#[kernel]` has the same list (rustcuda-macros/src/expand.rs).
_OF_CUDA = re.compile(r"__\w*|vprintf|malloc|free|memcmp|bcmp|WARP_SZ")


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
        SignatureError: A name is a keyword, no Python name, one of the loader's own, given twice, a kernel's
            that CUDA or the compiler gives a meaning, or a struct's that is a number's.
    """
    named = [
        *(("kernel", signature.name) for signature in signatures),
        *(("constant", constant.name) for constant in constants),
        *(("struct", struct.name) for struct in structs),
    ]
    taken: dict[str, str] = {}
    for what, name in named:
        _check_name(what, name, reserved_names())
        if name in taken:
            both = f"a {taken[name]} and a {what} are both"
            raise SignatureError(
                f"{'two structs of different fields are' if what == taken[name] else both} called '{name}'",
                where=f"{what} '{name}'",
                hint="give each a name of its own: Python knows them by it",
            )
        taken[name] = what


def _taken_names(runtime_code: str) -> frozenset[str]:
    """Names that no kernel may have: the module's own, and the builtins that its code uses."""
    table = symtable.symtable(runtime_code, "runtime.py", "exec")
    own = {name for name in table.get_identifiers() if not hasattr(builtins, name)}
    stub = symtable.symtable(STUB_IMPORTS + STUB_TYPES, "stub", "exec").get_identifiers()
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


def _check_name(what: str, name: str, taken: frozenset[str]) -> None:
    if keyword.iskeyword(name):
        why = "is a Python keyword"
    # Python reads names in their NFKC form.
    elif not name.isidentifier() or name != unicodedata.normalize("NFKC", name):
        why = "is no Python name"
    elif name in taken or _OF_PYTHON.fullmatch(name) or name.startswith((PREFIX, LAUNCH_PREFIX)):
        why = "is a name that the generated loader needs for itself"
    elif what == "kernel" and _OF_CUDA.fullmatch(name):
        why = "is a name that CUDA or the compiler keeps for itself"
    elif what == "struct" and name in SCALAR_BYTES:
        why = "is a number's name"
    else:
        return
    cannot = "cannot be called" if what == "kernel" else "cannot be reached"
    raise SignatureError(
        f"{what} '{name}' {cannot} from Python: '{name}' {why}",
        where=f"{what} '{name}'",
        hint=f"rename the {what} in Rust, e.g. to '{name.strip('_')}_{what}'",
    )
