"""PTX as LLVM writes it: its header, its kernels, and what they take."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rustcuda_backend.errors import FormatError, SignatureError
from rustcuda_backend.signature import Extents, KernelSignature, Parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rustcuda_backend.capability import Capability
    from rustcuda_backend.constants import ConstantSymbol

# These patterns take time in proportion to the text, also where it is made to be slow: what they skip ends at
# the line's end, or where the next of its kind begins. Numbers have no more digits than any of theirs needs.
NAME = r"[\w$%]+"
_NUMBER = "[0-9]{1,9}"
_TARGET = re.compile(r"^\.target[ \t]+(\w+)", re.MULTILINE)
_GPU = re.compile(r"sm_[0-9]{2,3}[af]?")
_VERSION = re.compile(r"^\.version[ \t]+([0-9]{1,3}\.[0-9]{1,3})\b", re.MULTILINE)
# The `{` tells a definition from a declaration, which ends in `;`.
_ENTRY = re.compile(
    rf"^(?:\.\w+[ \t]+)*?\.entry\s+(?P<name>{NAME})\s*"
    r"\((?P<parameters>[^()]*)\)(?P<directives>[^({;]*)\{",
    re.MULTILINE,
)
_PARAMETER = re.compile(
    rf"\.param\s+(?:\.align\s+{_NUMBER}\s+)?\.(?P<type>\w+)\s+"
    rf"(?P<pointer>\.ptr\s+(?:\.[a-z]+\s+)?(?:\.align\s+{_NUMBER}\s+)?)?{NAME}(?:\[(?P<count>{_NUMBER})\])?"
)
_BOUND = re.compile(
    r"\.(?P<directive>maxntid|reqntid|minnctapersm|reqnctapercluster)\s+"
    rf"(?P<numbers>{_NUMBER}(?:\s*,\s*{_NUMBER})*)\b"
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

# A parameter in a message.
_SHOWN = 80

TYPE_BYTES = {
    "b8": 1, "b16": 2, "b32": 4, "b64": 8, "b128": 16, "u8": 1, "u16": 2, "u32": 4, "u64": 8,
    "s8": 1, "s16": 2, "s32": 4, "s64": 8, "f16": 2, "f16x2": 4, "f32": 4, "f64": 8,
}  # fmt: skip
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
        FormatError: A parameter list that cannot be read, or two kernels of one name.
    """
    found: dict[str, PtxEntry] = {}
    for match in _ENTRY.finditer(text):
        if match["name"] in found:
            raise FormatError("the PTX defines a kernel twice", where=f"kernel '{match['name']}'")
        found[match["name"]] = _entry(match)
    return tuple(found.values())


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


def header(raw: str, where: str = "") -> tuple[str, str]:
    """The PTX ISA version and the target that a PTX text names, e.g. `("8.0", "sm_90a")`.

    Args:
        raw: The text.
        where: Its place, for errors.

    Raises:
        FormatError: It names none, or its target is no GPU.
    """
    target, version = _TARGET.search(raw), _VERSION.search(raw)
    if not target or not version:
        raise FormatError("the compiler's output is not PTX: it has no .version and .target", where=where)
    if not _GPU.fullmatch(target[1]):
        raise FormatError(f"the PTX is for no GPU: its .target is '{target[1][:_SHOWN]}'", where=where)
    return version[1], target[1]


def with_header(raw: str, version: str, target: str) -> str:
    """A PTX text under another PTX ISA version and target."""
    text = _VERSION.sub(f".version {version}", raw, count=1)
    return _TARGET.sub(f".target {target}", text, count=1)


def with_directives(text: str, promises: Mapping[str, str]) -> str:
    """A PTX text with lines between the parameters and the body of kernels, by their names."""

    def bounded(match: re.Match[str]) -> str:
        directives = promises.get(match["name"])
        return match[0].removesuffix("{").rstrip() + f"\n{directives}{{" if directives else match[0]

    return _ENTRY.sub(bounded, text)


def _entry(match: re.Match[str]) -> PtxEntry:
    sizes, types = [], []
    for declaration in filter(str.strip, match["parameters"].split(",")):
        parameter = _PARAMETER.fullmatch(declaration.strip())
        if not parameter or parameter["type"] not in TYPE_BYTES:
            raise FormatError(
                f"cannot read the PTX parameter '{declaration.strip()[:_SHOWN]}'",
                where=f"kernel '{match['name']}'",
            )
        sizes.append(int(parameter["count"] or 1) * TYPE_BYTES[parameter["type"]])
        types.append("ptr" if parameter["pointer"] else parameter["type"] + "[]" * bool(parameter["count"]))
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
    x, y, z = (*map(int, re.findall(_NUMBER, numbers)), 1, 1)[:3]
    return x, y, z


def shown_bytes(sizes: tuple[int, ...]) -> str:
    """Sizes for a message: `(8, 8, 4)`."""
    return "(" + ", ".join(map(str, sizes)) + ")"


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
