"""Cubins: what ptxas says of their kernels, and what their ELF headers say of their capability."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rustcuda_backend import elf_reader
from rustcuda_backend.capability import Capability
from rustcuda_backend.elf_reader import Elf
from rustcuda_backend.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class KernelResources:
    """What one kernel needs on the GPU, in bytes except for the registers.

    Attributes:
        name: The PTX entry.
        registers: Registers of each thread.
        spill_stores, spill_loads: Register spills, with those of the functions that it calls.
        stack: Stack of each thread, with that of the functions that it calls.
        shared: Static shared memory of each block.
    """

    name: str
    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared: int


@dataclass(frozen=True)
class Cubin:
    """SASS for one capability.

    Attributes:
        capability: What it was assembled for.
        data: The ELF file.
        kernels: Its kernels, in the order of the PTX.
        messages: What ptxas said that is no plain report: warnings, and notes on lost performance.
    """

    capability: Capability
    data: bytes
    kernels: tuple[KernelResources, ...]
    messages: tuple[str, ...] = ()


_ENTRY = re.compile(r"ptxas info\s*: Compiling entry function '([^']+)' for '\w+'")
_PROPERTIES = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"ptxas info\s*: Used (\d+) registers")
_STACK = re.compile(r"(\d+) bytes cumulative stack size")
_SHARED = re.compile(r"(\d+) bytes smem")
_PLAIN_REPORT = re.compile(
    r"ptxas info\s*: (\d+ bytes gmem|Compiling entry function|Function properties for"
    r"|Used \d+ registers|Compile time)|\s|$"
)


def parse_ptxas_report(text: str) -> tuple[KernelResources, ...]:
    """Reads what `ptxas -v` prints.

    Returns:
        The kernels in the order of the report; none for a text without kernels.

    Raises:
        FormatError: A kernel whose report lacks its registers or its stack frame.
    """
    # Each part begins with a name and holds that kernel's report up to the next kernel's.
    parts = _ENTRY.split(text)[1:]
    return tuple(_resources(name, report) for name, report in zip(parts[::2], parts[1::2], strict=True))


def report_messages(text: str) -> tuple[str, ...]:
    """The lines of what `ptxas -v` prints that are no plain report on resources."""
    return tuple(line for line in text.splitlines() if not _PLAIN_REPORT.match(line))


def _resources(name: str, report: str) -> KernelResources:
    registers = _REGISTERS.search(report)
    # The kernel's own properties come first, then those of the functions it calls.
    functions = [[int(number) for number in match] for match in _PROPERTIES.findall(report)]
    if not registers or not functions:
        raise FormatError(f"ptxas's report on kernel '{name}' is incomplete", where=report.strip())
    stack = _STACK.search(report)
    shared = _SHARED.search(report)
    return KernelResources(
        name,
        registers=int(registers[1]),
        spill_stores=sum(stores for _, stores, _ in functions),
        spill_loads=sum(loads for _, _, loads in functions),
        stack=int(stack[1]) if stack else functions[0][0],
        shared=int(shared[1]) if shared else 0,
    )


_SYMBOL = struct.Struct("<IBBHQQ")
_ATTRIBUTE = struct.Struct("<BBH")
_STT_FUNC = 2
_STO_CUDA_ENTRY = 0x10
# An attribute of this format has as many more bytes as its value says.
_FORMAT_SIZED = 4
_TAG_ARCHITECTURE_SPECIFIC = 9
_NOTED_ARCH = re.compile(rb"-arch sm_(\d+)([af]?)[ \0]")


_NOUN = "cubin"


def read_capability(data: bytes) -> Capability:
    """The capability that a cubin was assembled for.

    The number stands in the header's flags. So does `a`, except that ptxas 13 writes it to
    `.nv.compat` only. No flag tells `f` (a family's cubin) from the plain capability: it is read from
    the command line that ptxas notes in the cubin.

    Raises:
        FormatError: No cubin, a damaged one, or one of an unknown ELF ABI version.
    """
    elf = read(data)
    flags = elf.header.flags
    if elf.header.abi == 7:
        number, specific = flags & 0xFF, bool(flags & 0x800)
    else:
        number, specific = flags >> 8 & 0xFF, bool(flags & 0x8)
    if number < 10:
        raise FormatError(f"the cubin's flags 0x{flags:08x} name no capability")
    if specific or _is_architecture_specific(elf.content(b".nv.compat")):
        suffix = "a"
    else:
        suffix = _noted_suffix(elf.content(b".note.nv.tkinfo"), number)
    return Capability(number // 10, number % 10, suffix)


def _noted_suffix(note: bytes, number: int) -> str:
    """The suffix of the last `-arch` in ptxas's noted command line."""
    noted = _NOTED_ARCH.findall(note)
    return noted[-1][1].decode() if noted and noted[-1][0] == b"%d" % number else ""


def _is_architecture_specific(content: bytes) -> bool:
    return any(tag == _TAG_ARCHITECTURE_SPECIFIC and value & 0xFF for tag, value, _ in attributes(content))


def attributes(content: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Tag, value, and the further bytes of the attributes of an `.nv.info` or `.nv.compat` section.

    Raises:
        FormatError: One is cut off.
    """
    offset = 0
    while offset < len(content):
        if offset + _ATTRIBUTE.size > len(content):
            raise FormatError("an attribute in the cubin is cut off")
        form, tag, value = _ATTRIBUTE.unpack_from(content, offset)
        offset += _ATTRIBUTE.size
        more = value if form == _FORMAT_SIZED else 0
        if offset + more > len(content):
            raise FormatError("an attribute in the cubin is cut off")
        yield tag, value, content[offset : offset + more]
        offset += more


def kernel_names(data: bytes) -> tuple[str, ...]:
    """The names of a cubin's kernels, in the order of its symbol table.

    Raises:
        FormatError: No cubin, a damaged one, or one of an unknown ELF ABI version.
    """
    return tuple(kernel_symbols(read(data)).values())


def kernel_symbols(elf: Elf) -> dict[int, str]:
    """A cubin's kernels by the numbers of their symbols, in the order of the symbol table.

    Raises:
        FormatError: The symbol table is damaged.
    """
    table = next((section for section in elf.sections if section.kind == elf_reader.SHT_SYMTAB), None)
    if table is None:
        return {}
    symbols = elf.data[table.span]
    if table.link >= len(elf.sections) or len(symbols) % _SYMBOL.size:
        raise FormatError("the cubin's symbol table is malformed")
    return dict(_entries(symbols, elf.data[elf.sections[table.link].span]))


def _entries(symbols: bytes, strings: bytes) -> Iterator[tuple[int, str]]:
    kernels = {
        number: name
        for number, (name, info, other, *_) in enumerate(_SYMBOL.iter_unpack(symbols))
        if info & 0xF == _STT_FUNC and other & _STO_CUDA_ENTRY
    }
    named = elf_reader.strings(strings, kernels.values(), 2 * len(strings), _NOUN)
    for number, name in zip(kernels, named, strict=True):
        yield number, _text(name)


def _text(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError("a kernel's name in the cubin is not UTF-8") from error


def read(data: bytes) -> Elf:
    """The sections of a cubin.

    Raises:
        FormatError: No cubin, a damaged one, or one of an unknown ELF ABI version.
    """
    header = elf_reader.read_header(data, _NOUN)
    if header.machine != elf_reader.EM_CUDA:
        raise FormatError(
            f"this ELF file is no cubin: its machine is {header.machine}, not {elf_reader.EM_CUDA}"
        )
    if header.abi not in (7, 8):
        raise FormatError(f"the cubin has the unknown ELF ABI version {header.abi}")
    return elf_reader.read(data, header, _NOUN)
