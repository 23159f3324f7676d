"""All that a generated loader is made from, and the texts about it that module and stub share."""

from __future__ import annotations

import keyword
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rustcuda_backend.loader.runtime.structs import _StructValue
from rustcuda_backend.structs import StructField

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rustcuda_backend.capability import Capability
    from rustcuda_backend.constants import ConstantSymbol
    from rustcuda_backend.cuda_versions import CudaVersion
    from rustcuda_backend.signature import KernelSignature, Parameter
    from rustcuda_backend.structs import Struct

_KERNELS_OWN = re.compile("self")
_STRUCTS_OWN = re.compile("|".join(("self", r"__\w*[^_]__", *_StructValue.__annotations__)))


@dataclass(frozen=True)
class LoaderContent:
    """All that a generated loader is made from.

    Attributes:
        module: Its full name, e.g. `"pkg.kernels_cuda"`.
        signatures: The kernels of all capabilities together.
        lacking: Kernel to the capabilities whose image lacks it.
        capabilities: Those in the fatbin.
        version: The CUDA version whose ptxas made the fatbin; gives the driver floors.
        fatbin: The fatbin's bytes, which the loader will insist on.
        generator: Who generates, e.g. `"rustcuda-backend 0.1.0"`.
        suffix: What the name of the file with the fatbin ends in; it lies beside the loader.
        offset: The byte of that file at which the fatbin begins; 0 where it is the whole file.
        constants: The variables in constant memory.
    """

    module: str
    signatures: tuple[KernelSignature, ...]
    lacking: Mapping[str, tuple[Capability, ...]]
    capabilities: tuple[Capability, ...]
    version: CudaVersion
    fatbin: bytes
    generator: str
    suffix: str = ".fatbin"
    offset: int = 0
    constants: tuple[ConstantSymbol, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What the module offers, but for its exceptions."""
        kernels = (signature.name for signature in self.signatures)
        constants = (constant.name for constant in self.constants)
        return ("load", "unload", *kernels, *constants, *(struct.name for struct in self.structs))

    @property
    def structs(self) -> tuple[Struct, ...]:
        """The structs that kernels take, each after those inside it."""
        parameters = (parameter for signature in self.signatures for parameter in signature.parameters)
        structs = (each for item in parameters if item.struct for each in item.struct.all_structs())
        return tuple(dict.fromkeys(structs))


LOAD_DOC = (
    "Loads the kernels on a GPU now, not at the first launch: an index, 'cuda:1' or torch.device; "
    "None for the current one."
)
UNLOAD_DOC = (
    "Unloads the kernels from a GPU, or from all; the next launch loads them again. Nothing that was "
    "launched may still be running."
)


def module_doc(content: LoaderContent) -> str:
    """The docstring of module and stub."""
    short = content.module.rpartition(".")[2]
    capabilities = ", ".join(f"{capability}" for capability in content.capabilities)
    lines = [
        f"GPU kernels written in Rust, for compute capability {capabilities}.",
        "",
        "Launch a kernel with its grid and block, and if wanted with dynamic shared memory in bytes and a",
        "stream; by default that is torch's current stream of the arguments' GPU:",
        "",
        f"    from {content.module.rpartition('.')[0] or '.'} import {short}",
        f"    {short}.kernel[grid, block](...)",
        f"    {short}.kernel[grid, block, shared_bytes, stream](...)",
        "",
        "Grid and block are ints or tuples of up to three. Arguments go by position or by their Rust names",
        "(with `_` after a name that is a Python keyword). Kernels:",
        "",
    ]
    lines += [f"    {rust_text(signature)}" for signature in content.signatures]
    return "\n".join(lines)


def rust_text(signature: KernelSignature) -> str:
    """How a kernel is launched, in one line."""
    takes = ", ".join(f"{parameter.name}: {rust_type(parameter)}" for parameter in signature.parameters)
    return f"{signature.name}[grid, block]({takes})"


def rust_type(parameter: Parameter) -> str:
    """The type as the author wrote it, or as much of it as PTX tells."""
    if parameter.rust_type:
        return parameter.rust_type
    return parameter.dtype if parameter.kind == "scalar" else "a pointer"


def python_names(parameters: Sequence[Parameter | StructField]) -> tuple[str, ...]:
    """The parameters' names in Python: the Rust names, with `_` after those that Python keeps for itself.

    So do the types of structs with what they have beside their fields. In their NFKC form, as Python reads
    what is written in its source text.
    """
    names: list[str] = []
    for parameter in parameters:
        name = unicodedata.normalize("NFKC", parameter.name.removeprefix("r#"))
        own = _STRUCTS_OWN if isinstance(parameter, StructField) else _KERNELS_OWN
        while keyword.iskeyword(name) or own.fullmatch(name) or name in names:
            name += "_"
        names.append(name)
    return tuple(names)


def items(names: Sequence[str]) -> str:
    """The lines of a list of names, as in `__all__`."""
    return "".join(f"    {name!r},\n" for name in names)


def docstring(text: str, indent: str) -> str:
    """A docstring literal, whatever is in the text."""
    safe = text.replace("\\", "\\\\")
    if '"""' in safe or safe.endswith('"'):
        safe = safe.replace('"', '\\"')
    safe = "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in safe)
    first, *rest = safe.split("\n")
    lines = [f'{indent}"""{first}', *(f"{indent}{line}".rstrip() for line in rest)]
    end = '"""\n' if not rest else f'\n{indent}"""\n'
    return "\n".join(lines) + end
