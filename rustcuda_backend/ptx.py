"""PTX as the compilers write it: its kernels, what `#[kernel]` left in it, and its finishing."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rustcuda_backend import constants, launch_bounds, shared_memory
from rustcuda_backend.constants import ConstantSymbol
from rustcuda_backend.errors import FormatError, SignatureError
from rustcuda_backend.signature import Extents, KernelSignature, Parameter, parse_record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rustcuda_backend.capability import Capability

RECORD_PREFIX = "__rustcuda_kernel_"
CONSTANT_PREFIX = "__rustcuda_constant_"

_NAME = r"[\w$%]+"
_TARGET = re.compile(r"^\.target\s+(\w+)", re.MULTILINE)
_VERSION = re.compile(r"^\.version\s+(\d+\.\d+)", re.MULTILINE)
# The `{` tells a definition from a declaration, which ends in `;`.
_ENTRY = re.compile(
    rf"^(?:\.\w+\s+)*?\.entry\s+(?P<name>{_NAME})\s*\((?P<parameters>[^)]*)\)(?P<directives>[^{{;]*)\{{",
    re.MULTILINE,
)
_PARAMETER = re.compile(
    rf"\.param\s+(?:\.align\s+\d+\s+)?\.(?P<type>\w+)\s+"
    rf"(?P<pointer>\.ptr\s+(?:\.[a-z]+\s+)?(?:\.align\s+\d+\s+)?)?{_NAME}(?:\[(?P<bytes>\d+)\])?"
)
_BOUND = re.compile(
    r"\.(?P<directive>maxntid|reqntid|minnctapersm|reqnctapercluster)\s+(?P<numbers>\d+(?:\s*,\s*\d+)*)"
)
_MARKER = re.compile(
    rf"^(?:\.\w+\s+)*?\.global\s+\.align\s+\d+\s+\.b8\s+"
    rf"(?P<name>(?:{RECORD_PREFIX}|{CONSTANT_PREFIX}){_NAME})\[(?P<size>\d+)\](?:\s*=\s*\{{(?P<bytes>[^}}]*)\}})?;\n",
    re.MULTILINE,
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_AFTER_FUNCTIONS = re.compile(r"\.address_size\s|\t\.(?:file|loc|section)\s")
_HINT = (
    "mark the function with #[kernel] from rustcuda-device, which takes slices apart,\n"
    "or take a raw pointer and a length instead"
)
_HINT_OF_STRUCTS = (
    "take a #[repr(C)] struct of this crate whose named fields are numbers, bool, arrays of them,\n"
    "or such structs; take pointers as parameters of their own"
)
_DEBUG_SECTION = "\n\t.section\t.debug_"
# Characters; comments after the last function are far shorter.
_TAIL = 1 << 14

# How Rust spells the types of PTX parameters; LLVM prints every integer as unsigned and f16 as .b16.
_RUST_SCALARS = {
    "u8": "u8", "u16": "u16", "u32": "u32", "u64": "u64",
    "s8": "i8", "s16": "i16", "s32": "i32", "s64": "i64",
    "b8": "u8", "b16": "f16", "f16": "f16", "b32": "u32", "b64": "u64", "f32": "f32", "f64": "f64",
}  # fmt: skip


@dataclass(frozen=True)
class PtxEntry:
    """One kernel as its PTX parameter list shows it.

    Attributes:
        name: The entry's name.
        abi_bytes: Size in bytes of each parameter.
        types: PTX type of each: `"u32"`, `"ptr"`, or `"b8[]"` for a value that has no PTX type.
        launch_bounds: (most threads per block, fewest blocks per multiprocessor or 0), or None.
        block: The only size of block that it can be launched with, or None.
        cluster: Blocks of a cluster, or None.
    """

    name: str
    abi_bytes: tuple[int, ...]
    types: tuple[str, ...]
    launch_bounds: tuple[int, int] | None = None
    block: Extents | None = None
    cluster: Extents | None = None


@dataclass(frozen=True)
class PtxModule:
    """The finished PTX of one pass.

    Attributes:
        capability: What it was compiled for.
        text: PTX that ptxas takes as it is.
        signatures: Its kernels, in the order of the text.
        version: The PTX ISA version, e.g. `"8.0"`.
        constants: Its variables in constant memory, in the order of their names.
        unlaunchable: Names of further kernels, which take what Python cannot pass.
        ptxas_arguments: What ptxas must be told so that it keeps to what the compiler was asked for.
    """

    capability: Capability
    text: str
    signatures: tuple[KernelSignature, ...]
    version: str
    constants: tuple[ConstantSymbol, ...] = ()
    unlaunchable: tuple[str, ...] = ()
    ptxas_arguments: tuple[str, ...] = ()


def parse_entries(text: str) -> tuple[PtxEntry, ...]:
    """Reads the kernels that a PTX text defines, in its order.

    Raises:
        FormatError: A parameter list that cannot be read.
    """
    return tuple(_entry(match) for match in _ENTRY.finditer(text))


def is_whole(raw: str) -> bool:
    """Whether a PTX text goes on to the end of a function or declaration, as a file that is cut off does not.

    LLVM indents what is within functions. Braces are not counted: those in `asm!` are the user's.
    """
    last = _COMMENT.sub("", raw[-_TAIL:]).rstrip().rpartition("\n")[2]
    if not raw.endswith("\n"):
        return False
    if last.startswith("}") or (last.startswith(".") and last.endswith(";")):
        return True
    return _AFTER_FUNCTIONS.match(last) is not None or (last == "\t}" and _DEBUG_SECTION in raw)


def has_plain_kernels(raw: str) -> bool:
    """Whether a PTX text as the compiler wrote it has kernels that `#[kernel]` did not record."""
    markers = [match["name"] for match in _MARKER.finditer(raw)]
    recorded: int = sum(name.startswith(RECORD_PREFIX) for name in markers)
    return sum(1 for _ in _ENTRY.finditer(raw)) > recorded


def finish(
    raw: str, capability: Capability, described: Mapping[str, KernelSignature] | None = None
) -> PtxModule:
    """Makes PTX for ptxas of what the compiler wrote, and reads its kernels' signatures.

    Takes the records of `#[kernel]` out, applies their launch bounds, and declares shared and constant
    memory.

    Args:
        raw: The PTX text.
        capability: The capability that it must be for.
        described: What rustdoc knows of kernels, for those without a record.

    Raises:
        FormatError: Text that is no PTX, or for another target.
        SignatureError: A record or rustdoc contradicts the PTX, or a kernel cannot be launched from Python.
    """
    version = _checked_version(raw, capability)
    markers = {match["name"]: _marker_bytes(match) for match in _MARKER.finditer(raw)}
    entries = parse_entries(raw)
    records = _records(markers)
    _check_records(records, entries)
    sources = {**(described or {}), **records}
    signatures = tuple(_signature(entry, sources.get(entry.name)) for entry in entries)
    for signature in signatures:
        launch_bounds.check(signature, capability)
    symbols = {
        name: constants.parse_record(data)
        for name, data in markers.items()
        if name.startswith(CONSTANT_PREFIX)
    }
    text = _MARKER.sub(lambda match: _declaration(match["name"], symbols), raw)
    promises = {
        signature.name: launch_bounds.directives(signature)
        for signature, entry in zip(signatures, entries, strict=True)
        if not entry.launch_bounds
    }
    text = shared_memory.declared(_with_directives(text, promises))
    return PtxModule(
        capability,
        text,
        tuple(signature for signature in signatures if signature.is_launchable),
        version,
        tuple(symbols[name] for name in sorted(symbols)),
        tuple(signature.name for signature in signatures if not signature.is_launchable),
    )


def header(raw: str) -> tuple[str, str]:
    """The PTX ISA version and the target that a PTX text names, e.g. `("8.0", "sm_90a")`.

    Raises:
        FormatError: It names none.
    """
    target, version = _TARGET.search(raw), _VERSION.search(raw)
    if not target or not version:
        raise FormatError("the compiler's output is not PTX: it has no .version and .target")
    return version[1], target[1]


def with_header(raw: str, version: str, target: str) -> str:
    """A PTX text under another PTX ISA version and target."""
    text = _VERSION.sub(f".version {version}", raw, count=1)
    return _TARGET.sub(f".target {target}", text, count=1)


def _checked_version(raw: str, capability: Capability) -> str:
    version, target = header(raw)
    if target != capability.sm:
        raise FormatError(
            f"the PTX is for {target}, but the pass is for {capability.sm}",
            hint="remove target-cpu from your own RUSTFLAGS; capabilities come from the settings",
        )
    return version


def _entry(match: re.Match[str]) -> PtxEntry:
    sizes, types = [], []
    for declaration in filter(str.strip, match["parameters"].split(",")):
        parameter = _PARAMETER.fullmatch(declaration.strip())
        if not parameter:
            raise FormatError(
                f"cannot read the PTX parameter '{declaration.strip()}'", where=f"kernel '{match['name']}'"
            )
        bits = int(re.sub(r"\D", "", parameter["type"]))
        sizes.append(int(parameter["bytes"] or bits // 8))
        types.append("ptr" if parameter["pointer"] else parameter["type"] + "[]" * bool(parameter["bytes"]))
    found = {bound["directive"]: _extents(bound["numbers"]) for bound in _BOUND.finditer(match["directives"])}
    block = found.get("reqntid")
    threads = math.prod(found.get("maxntid", block or (0,)))
    fewest, *_ = found.get("minnctapersm", (0,))
    return PtxEntry(
        match["name"],
        tuple(sizes),
        tuple(types),
        (threads, fewest) if threads else None,
        block,
        found.get("reqnctapercluster"),
    )


def _extents(numbers: str) -> Extents:
    x, y, z = (*map(int, numbers.split(",")), 1, 1)[:3]
    return x, y, z


def _marker_bytes(match: re.Match[str]) -> bytes:
    written = bytes(int(number) for number in (match["bytes"] or "0").split(","))
    # LLVM leaves trailing zeros out.
    return written.ljust(int(match["size"]), b"\0")


def _records(markers: Mapping[str, bytes]) -> dict[str, KernelSignature]:
    records = [parse_record(data) for name, data in markers.items() if name.startswith(RECORD_PREFIX)]
    return {record.name: record for record in records}


def _check_records(records: Mapping[str, KernelSignature], entries: tuple[PtxEntry, ...]) -> None:
    sizes = {entry.name: entry.abi_bytes for entry in entries}
    for name, record in records.items():
        where = f"kernel '{name}'"
        if name not in sizes:
            raise SignatureError(
                "#[kernel] recorded this kernel, but the PTX does not define it",
                where=where,
                hint="use the rustcuda-device crate that comes with this rustcuda-backend",
            )
        if not _fits(record, sizes[name]):
            raise SignatureError(
                f"the recorded parameters take {shown_bytes(record.abi_bytes)} bytes, "
                f"but those in the PTX take {shown_bytes(sizes[name])}",
                where=where,
                hint="use the rustcuda-device crate that comes with this rustcuda-backend",
            )


def _fits(record: KernelSignature, sizes: tuple[int, ...]) -> bool:
    """Whether a record agrees with the PTX, as far as it knows sizes; a value of size 0 has no parameter."""
    if record.abi_bytes == sizes:
        return True
    pairs = zip(record.abi_bytes, sizes, strict=False)
    return 0 in record.abi_bytes and (
        len(record.abi_bytes) > len(sizes) or all(known in (0, actual) for known, actual in pairs)
    )


def shown_bytes(sizes: tuple[int, ...]) -> str:
    """Sizes for a message: `(8, 8, 4)`."""
    return "(" + ", ".join(map(str, sizes)) + ")"


def _signature(entry: PtxEntry, source: KernelSignature | None) -> KernelSignature:
    if source and source.source == "record":
        return replace(source, launch_bounds=source.launch_bounds or entry.launch_bounds)
    if source and _same_count(entry, source):
        return _described(entry, source)
    parameters = tuple(read_parameter(entry, index) for index in range(len(entry.types)))
    doc = source.doc if source else ""
    return KernelSignature(entry.name, parameters, doc, entry.launch_bounds, source="ptx")


def _same_count(entry: PtxEntry, source: KernelSignature) -> bool:
    """Whether parameters and PTX parameters pair up; a value may have no size, and then none."""
    kinds = {parameter.kind for parameter in source.parameters}
    return len(source.parameters) == len(entry.types) or "value" not in kinds


def _described(entry: PtxEntry, source: KernelSignature) -> KernelSignature:
    """The signature that rustdoc shows, with the PTX's types for the values that it tells no size of."""
    # rustc passes a slice as one parameter, cuda-oxide as two.
    apart = replace(source, parameters=tuple(map(taken_apart, source.parameters)))
    if apart.abi_bytes == entry.abi_bytes:
        source = apart
    sizes = tuple(
        known or actual for known, actual in itertools.zip_longest(source.abi_bytes, entry.abi_bytes)
    )
    if sizes != entry.abi_bytes:
        shown = ", ".join(f"{parameter.name}: {parameter.rust_type}" for parameter in source.parameters)
        raise SignatureError(
            f"rustdoc shows the parameters ({shown}) of {shown_bytes(source.abi_bytes)} bytes, "
            f"but those in the PTX take {shown_bytes(entry.abi_bytes)}",
            where=f"kernel '{entry.name}'",
            hint="give the function the same parameters under cfg(doc) and cfg(not(doc))",
        )
    parameters = tuple(
        read_parameter(entry, index, parameter) if parameter.kind == "value" else parameter
        for index, parameter in enumerate(source.parameters)
    )
    return replace(source, parameters=parameters, launch_bounds=entry.launch_bounds)


def taken_apart(parameter: Parameter) -> Parameter:
    """A parameter of rustdoc's as cuda-oxide and `#[kernel]` pass it: a slice as pointer and length."""
    return replace(parameter, kind="slice") if parameter.kind == "whole_slice" else parameter


def read_parameter(entry: PtxEntry, index: int, described: Parameter | None = None) -> Parameter:
    """One parameter as far as its PTX tells, with the name and type of the Rust one if they are known.

    Raises:
        SignatureError: It has no PTX type, as values that are no numbers have none.
    """
    name = described.name if described else f"arg{index}"
    rust_type = described.rust_type if described else ""
    ptx_type = entry.types[index]
    if ptx_type == "ptr":
        return Parameter(name, "pointer", "", mutable=True, rust_type=rust_type or "*mut _")
    if ptx_type not in _RUST_SCALARS:
        shown = f"'{name}: {rust_type}'" if described else str(index)
        why = described.refused if described else ""
        raise SignatureError(
            f"parameter {shown}, a value of {entry.abi_bytes[index]} bytes, cannot be passed from Python"
            + (f": {why}" if why else ""),
            where=f"kernel '{entry.name}'",
            hint=_HINT_OF_STRUCTS if why else _HINT,
        )
    scalar = _RUST_SCALARS[ptx_type]
    return Parameter(name, "scalar", scalar, rust_type=rust_type or scalar)


def _declaration(marker: str, symbols: Mapping[str, ConstantSymbol]) -> str:
    """What stands for a marker in the finished text."""
    return symbols[marker].declaration if marker in symbols else ""


def _with_directives(text: str, promises: Mapping[str, str]) -> str:
    def bounded(match: re.Match[str]) -> str:
        directives = promises.get(match["name"])
        return match[0].removesuffix("{").rstrip() + f"\n{directives}{{" if directives else match[0]

    return _ENTRY.sub(bounded, text)
