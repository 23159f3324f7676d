"""What a cubin itself says of its kernels: registers, memory, parameters, and the toolkit that wrote it.

NVIDIA does not document the attributes of `.nv.info`; their numbers are those that cuobjdump -elf names, and
tests hold the outcome against cuobjdump -res-usage and ptxas -v for both CUDA versions.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rustcuda_backend import cubin

if TYPE_CHECKING:
    from rustcuda_backend.elf_reader import Elf


@dataclass(frozen=True)
class CubinKernel:
    """One kernel of a cubin; memory in bytes.

    Attributes:
        name: The PTX entry.
        registers: Registers of each thread; None where the cubin does not say.
        stack: Stack of each thread, with that of the functions that it calls as far as the cubin knows them.
        shared: Static shared memory of each block, without what the system keeps for itself.
        local: Local memory of each thread outside the stack.
        parameters: Size of each PTX parameter, in order; None where the cubin does not say.
    """

    name: str
    registers: int | None
    stack: int
    shared: int
    local: int
    parameters: tuple[int, ...] | None


@dataclass(frozen=True)
class Toolkit:
    """The CUDA version whose ptxas wrote a cubin.

    Attributes:
        cuda: `(12, 9)`.
        source: How it is known.
    """

    cuda: tuple[int, int]
    source: str


_PAIR = struct.Struct("<II")
_PARAMETER = struct.Struct("<IHHI")
_FRAME_SIZE = 0x11
_MIN_STACK_SIZE = 0x12
_KPARAM_INFO = 0x17
_CBANK_PARAM_SIZE = 0x19
_REGCOUNT = 0x2F
_CUDA_API_VERSION = 0x37

# From 9.0 on, a block's first KiB of shared memory is the system's; a kernel's section counts it in.
_SYSTEM_SHARED = 1024
_RELEASE = re.compile(rb"\brelease (\d{1,4})\.(\d{1,4})\b")


def read_kernels(data: bytes) -> tuple[CubinKernel, ...]:
    """A cubin's kernels, in the order of its symbol table.

    Raises:
        FormatError: No cubin, a damaged one, or one of an unknown ELF ABI version.
    """
    elf = cubin.read(data)
    registers: dict[int, int] = {}
    frames: dict[int, int] = {}
    stacks: dict[int, int] = {}
    by_tag = {_REGCOUNT: registers, _FRAME_SIZE: frames, _MIN_STACK_SIZE: stacks}
    for tag, _, value in cubin.attributes(elf.content(b".nv.info")):
        if tag in by_tag and len(value) == _PAIR.size:
            symbol, number = _PAIR.unpack(value)
            by_tag[tag][symbol] = number
    kernels = cubin.kernel_symbols(elf)
    parameters = {name: _parameters(elf.content(f".nv.info.{name}".encode())) for name in {*kernels.values()}}
    return tuple(
        CubinKernel(
            name,
            registers.get(symbol),
            stacks.get(symbol, frames.get(symbol, 0)),
            _shared(elf, name),
            _size(elf, f".nv.local.{name}"),
            parameters[name],
        )
        for symbol, name in kernels.items()
    )


def read_toolkit(data: bytes) -> Toolkit | None:
    """The CUDA version of the ptxas that wrote a cubin; None where nothing in the cubin tells.

    Raises:
        FormatError: No cubin, a damaged one, or one of an unknown ELF ABI version.
    """
    elf = cubin.read(data)
    noted = [(int(major), int(minor)) for major, minor in _RELEASE.findall(elf.content(b".note.nv.tkinfo"))]
    if noted:
        return Toolkit(max(noted), "toolkit note")
    versions = [
        int.from_bytes(value, "little")
        for section in elf.sections
        if section.name.startswith(b".nv.info.")
        for tag, _, value in cubin.attributes(data[section.span])
        if tag == _CUDA_API_VERSION and len(value) == 4
    ]
    if versions:
        return Toolkit((max(versions) // 10, max(versions) % 10), "API version")
    return None


def _shared(elf: Elf, name: str) -> int:
    size = _size(elf, f".nv.shared.{name}")
    if size >= _SYSTEM_SHARED and elf.section(b".nv.shared.reserved.0"):
        return size - _SYSTEM_SHARED
    return size


def _size(elf: Elf, name: str) -> int:
    section = elf.section(name.encode())
    return section.size if section else 0


def _parameters(content: bytes) -> tuple[int, ...] | None:
    sizes: dict[int, int] = {}
    total = None
    for tag, value, more in cubin.attributes(content):
        if tag == _KPARAM_INFO and len(more) == _PARAMETER.size:
            _, ordinal, _, packed = _PARAMETER.unpack(more)
            sizes[ordinal] = packed >> 18
        elif tag == _CBANK_PARAM_SIZE:
            total = value
    if not sizes:
        # A kernel without parameters, or one whose parameters are not described one by one.
        return None if total else ()
    return tuple(sizes[ordinal] for ordinal in sorted(sizes))
