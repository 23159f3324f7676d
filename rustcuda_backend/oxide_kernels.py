"""The kernels of a crate that cuda-oxide has compiled: their names, their signatures, their constants.

cuda-oxide passes a slice as pointer and length, a value that is no scalar as one array of bytes, and a
value of no size not at all. Its PTX says how large parameters are, but not which pointer begins a slice;
that is in rustdoc's JSON of the crate, where its macros have left a function for each kernel.
"""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rustcuda_backend import launch_bounds, ptx, rustdoc, rustdoc_types
from rustcuda_backend.capability import Capability
from rustcuda_backend.constants import ConstantSymbol
from rustcuda_backend.errors import FormatError, SignatureError
from rustcuda_backend.ptx import PtxEntry, PtxModule
from rustcuda_backend.scalars import SCALAR_BYTES
from rustcuda_backend.signature import KernelSignature, Parameter

# What cuda-oxide's `#[kernel]` puts before a kernel's name: since 2026-08, and in version 0.2.1.
_KERNEL = re.compile(r"(?:cuda_oxide_codegen_v1_)?cuda_oxide_kernel_246e25db_(?P<name>\w+)")
# An instance of a generic kernel: the hash depends on the compiler and on the crate.
_INSTANCE = re.compile(r"(?P<base>\w+)_TID_[0-9a-f]{32}")
# A whole PTX symbol: an instance, or what is named after it, a parameter or its dynamic shared memory.
_OF_INSTANCE = re.compile(
    r"(?<![\w$%])(?P<before>__dynamic_smem_)?(?P<name>\w+?_TID_[0-9a-f]{32})(?P<after>_param_\d+)?(?![\w$%])"
)
# These take time in proportion to the text, as those of `ptx`.
_FUNCTION = re.compile(r"^(?:\.\w+[ \t]+)*?\.func\s+(?:\([^()]*\)\s*)?(\w+)", re.MULTILINE)
_CONSTANT = re.compile(
    r"^(?:\.visible[ \t]+)?\.const[ \t]+\.align[ \t]+(?P<alignment>[0-9]{1,9})[ \t]+\.(?P<type>\w+)[ \t]+"
    r"(?P<symbol>cuda_oxide_const_246e25db_(?P<rest>\w+))(?:\[(?P<count>[0-9]{1,9})\])?[ \t]*[;=]",
    re.MULTILINE,
)
# Before a constant's name stand its module and its place in the source, where that is a `#[cuda_module]`.
_PLACED = re.compile(r"(?:\w+_L[0-9]{1,9}C[0-9]{1,9}_)?(\w+)")
_SYMBOL = re.compile(r"(?<![\w$%])cuda_oxide_const_246e25db_\w+(?![\w$%])")

# Index spaces whose slices bring the length of their rows along.
_WITH_ROWS = ("Runtime2DIndex", "RuntimeRowMajorTiles")


@dataclasses.dataclass(frozen=True)
class Instances:
    """Generic kernels in a PTX text.

    Attributes:
        text: The text, in which kernels with one instance have their own names.
        left_out: Names of the kernels with several, which nothing stable tells apart.
    """

    text: str
    left_out: tuple[str, ...]

    @property
    def warning(self) -> str:
        """What to say of those left out; empty where none is."""
        if not self.left_out:
            return ""
        return (
            "generic kernels with several instances have no stable names and are left out of the module: "
            f"{', '.join(self.left_out)}; write a kernel for each type that calls the generic function"
        )


def with_stable_names(raw: str) -> Instances:
    """Gives instances of generic kernels their kernels' names, where that is possible."""
    names = [entry.name for entry in ptx.parse_entries(raw)]
    found = {name: match["base"] for name in names if (match := _INSTANCE.fullmatch(name))}
    counts = collections.Counter(found.values())
    taken = {*names, *_FUNCTION.findall(raw)}
    alone = {name: base for name, base in found.items() if counts[base] == 1 and base not in taken}

    def stable(match: re.Match[str]) -> str:
        name = match["name"]
        return f"{match['before'] or ''}{alone.get(name, name)}{match['after'] or ''}"

    text = _OF_INSTANCE.sub(stable, raw)
    return Instances(text, tuple(dict.fromkeys(base for name, base in found.items() if name not in alone)))


def is_instance(name: str) -> bool:
    """Whether a kernel is an instance of a generic one, under a name that the next build does not have."""
    return _INSTANCE.fullmatch(name) is not None


def finish(raw: str, capability: Capability, described: Mapping[str, KernelSignature]) -> PtxModule:
    """Reads the kernels of a PTX text whose target has been checked.

    Args:
        raw: The text, with stable names; instances that have none cannot be launched.
        capability: The capability that it is for.
        described: What rustdoc knows of the kernels, by name.

    Raises:
        FormatError: Text that is no PTX.
        SignatureError: rustdoc contradicts the PTX, or no GPU can launch a kernel as it promises.
    """
    version, _ = ptx.header(raw)
    signatures: list[KernelSignature] = []
    unlaunchable: list[str] = []
    for entry in ptx.parse_entries(raw):
        signature = None if is_instance(entry.name) else _signature(entry, described.get(entry.name))
        if signature is None or not signature.is_launchable:
            unlaunchable.append(entry.name)
        else:
            launch_bounds.check(signature, capability)
            signatures.append(signature)
    text, constants = _with_constants(raw)
    return PtxModule(capability, text, tuple(signatures), version, constants, tuple(unlaunchable))


def _signature(entry: PtxEntry, described: KernelSignature | None) -> KernelSignature | None:
    """The signature of a kernel; None if it takes a value that Python cannot pass."""
    doc, source = (described.doc, "rustdoc") if described else ("", "ptx")
    given = _fitting(entry, described.parameters) if described else [None] * len(entry.types)
    if given is None:
        return None
    parameters = []
    index = 0
    for parameter in given:
        if parameter and parameter.kind != "value":
            parameters.append(parameter)
            index += len(parameter.abi_bytes)
        elif entry.types[index].endswith("[]"):
            return None
        else:
            parameters.append(ptx.read_parameter(entry, index, parameter))
            index += 1
    promises = (entry.launch_bounds, entry.block, entry.cluster)
    return KernelSignature(entry.name, tuple(parameters), doc, *promises, source=source)


def _fitting(entry: PtxEntry, parameters: Sequence[Parameter]) -> Sequence[Parameter | None] | None:
    """The Rust parameters that have PTX parameters; None if some have no size and it is not clear which.

    Raises:
        SignatureError: They do not fit the PTX.
    """
    for candidate in (parameters, [item for item in parameters if item.kind != "value"]):
        sizes = [size for item in candidate for size in item.abi_bytes]
        if len(sizes) == len(entry.abi_bytes) and all(
            size in (0, actual) for size, actual in zip(sizes, entry.abi_bytes, strict=True)
        ):
            return candidate
    if any(item.kind == "value" for item in parameters):
        return None
    shown = ", ".join(f"{item.name}: {item.rust_type}" for item in parameters)
    sizes = [size for item in parameters for size in item.abi_bytes]
    raise SignatureError(
        f"rustdoc shows the parameters ({shown}) of {ptx.shown_bytes(tuple(sizes))} bytes, "
        f"but those in the PTX take {ptx.shown_bytes(entry.abi_bytes)}",
        where=f"kernel '{entry.name}'",
        hint="use the cuda-device of the same commit as cuda-oxide's backend library",
    )


def find(document: Mapping[str, Any]) -> Iterator[KernelSignature]:
    """Finds the kernels that are not generic in rustdoc's JSON, by the names of their PTX entries."""
    for item in document["index"].values():
        match item:
            case {"inner": {"function": {"sig": {"inputs": inputs}}}}:
                name = _KERNEL.fullmatch(rustdoc.exported_name(item))
                if name:
                    read = (
                        _parameter(pattern, index, kind, document)
                        for index, (pattern, kind) in enumerate(inputs)
                    )
                    parameters = tuple(parameter for parameter in read if parameter)
                    yield KernelSignature(
                        name["name"], parameters, (item["docs"] or "").strip(), source="rustdoc"
                    )


def _parameter(
    pattern: str, index: int, written: Mapping[str, Any], document: Mapping[str, Any]
) -> Parameter | None:
    """A parameter as rustdoc shows it; None for what surely has no size."""
    name = rustdoc.parameter_name(pattern, index)
    rust_type = rustdoc_types.resolved(written, document, {})
    match rust_type:
        case {"tuple": []} | {"array": {"len": "0"}}:
            return None
        case {"borrowed_ref": {"is_mutable": mutable, "type": {"slice": element}}}:
            return _slice(name, "slice", element, mutable, rustdoc_types.spelled(rust_type))
        case {"resolved_path": path}:
            crate, *_, last = document["paths"].get(str(path["id"]), {}).get("path", ("", ""))
            if (crate, last) == ("core", "PhantomData"):
                return None
            if (crate, last) == ("cuda_device", "DisjointSlice"):
                return _disjoint_slice(name, path, document)
    return rustdoc.parameter(name, rust_type, document)


def _disjoint_slice(name: str, path: Mapping[str, Any], document: Mapping[str, Any]) -> Parameter:
    element, *space = rustdoc_types.type_arguments(path)
    element = rustdoc_types.resolved(element, document, {})
    spaces = [rustdoc_types.spelled(each).split("<")[0].rpartition("::")[2] for each in space]
    rows = bool(spaces) and spaces[0] in _WITH_ROWS
    inner = ", ".join([rustdoc_types.spelled(element), *(["Runtime2DIndex"] if rows else [])])
    return _slice(
        name, "rows" if rows else "slice", element, mutable=True, rust_type=f"DisjointSlice<{inner}>"
    )


def _slice(name: str, kind: str, element: Mapping[str, Any], mutable: bool, rust_type: str) -> Parameter:
    """A slice; Python passes those of scalars."""
    scalar = element.get("primitive", "")
    return Parameter(name, kind, scalar if scalar in SCALAR_BYTES else "", mutable, rust_type)


def _with_constants(raw: str) -> tuple[str, tuple[ConstantSymbol, ...]]:
    """The text with constant memory under the names that loaders know, and what it is."""
    found: dict[str, ConstantSymbol] = {}
    symbols: dict[str, str] = {}
    for match in _CONSTANT.finditer(raw):
        (name,) = _PLACED.findall(match["rest"])
        # One number, as of ConstantMemory<f32>, may be declared by its type.
        if match["type"] not in ptx.TYPE_BYTES:
            raise FormatError(f"the PTX has the constant '{name}' of an unknown type", where=match["symbol"])
        size = int(match["count"] or 1) * ptx.TYPE_BYTES[match["type"]]
        if name in found:
            raise SignatureError(
                f"two constants are called '{name}'",
                hint="give every #[constant] a name of its own, also in other modules",
            )
        found[name] = ConstantSymbol(name, f"[u8; {size}]", "", size, int(match["alignment"]))
        symbols[match["symbol"]] = found[name].symbol
    text = _SYMBOL.sub(lambda match: symbols.get(match[0], match[0]), raw)
    return text, tuple(found[name] for name in sorted(found))
