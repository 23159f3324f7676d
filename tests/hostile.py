"""Inputs made to take long, and what reads them. As a program it lets one reader read all of its inputs.

The program may use a minute of the processor and a gigabyte of memory, and has no clock besides: a reader
that looks at each byte a few times needs seconds, and one whose time grows with the square of the input needs
hours.
"""

from __future__ import annotations

import contextlib
import resource
import struct
import sys
from collections.abc import Callable, Iterator

from rustcuda_backend import (
    ar_reader,
    cubin_resources,
    cuda,
    elf_reader,
    fatbin,
    finishing,
    oxart,
    oxide_kernels,
    ptx,
    ptx_outline,
    shared_memory,
)
from rustcuda_backend.capability import Capability
from rustcuda_backend.errors import RustcudaError

BYTES = 1 << 21
SECONDS = 60
MEMORY = 1 << 30
HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
RECORD = ".global .align 1 .b8 __rustcuda_kernel_a"
PIECES = (
    "\n", " ", "(", "{", ".a\n", ".a ", ".a\n\n", "/*", "/*/", '"', ".version\n", ".target\n", ".entry\n",
    ".entry a\n", ".entry a(\n", ".entry a()\n", ".entry a(.param\n", ".visible .entry a(.param .u32 a)\n",
    ".maxntid 1, ", ".global\n", ".global .align ", f"{RECORD}[1]\n",
    f"{RECORD}[1] = {{\n", f"{RECORD}[1] = {{1, \n",
)  # fmt: skip
# What stands before and after the pieces.
PLACES = ((HEADER, ""), (f"{HEADER}.entry k(", ")\n{}\n"), (f"{HEADER}.entry k()\n", "{}\n"))


def texts(*pieces: str) -> Iterator[str]:
    for piece in pieces or PIECES:
        for before, after in PLACES:
            yield before + piece * (BYTES // len(piece)) + after


def headers() -> Iterator[str]:
    """Where the header comes last."""
    for piece in ("\n", " ", ".a\n", ".version\n", ".target\n", ".target ", ".version 1\n"):
        yield piece * (BYTES // len(piece)) + "\n" + HEADER


def shared() -> Iterator[str]:
    return texts(
        "_", "__shared_", "__shared_a__1_1_1", "__shared_a__1_", "__shared_a__1_1_1 ", ".address_size\n"
    )


def numbered() -> Iterator[str]:
    """Where every piece is another."""
    count = BYTES // 32
    yield HEADER + "".join(f"__shared_a__1_1_{number}\n" for number in range(count))
    yield HEADER + "".join(f".entry k{number}()\n{{}}\n" for number in range(count))


def of_oxide() -> Iterator[str]:
    """What only cuda-oxide writes: instances of generic kernels, and constants."""
    constant, symbol = ".const .align 4 .b8 ", "cuda_oxide_const_246e25db_"
    yield from texts(".visible\n", ".func (\n", ".func ", constant, f"{constant}{symbol}\n", f"{symbol}a ")
    for piece in ("m_L1C1_", "_TID_" + "0" * 32):
        for before, after in (("_", "[4];\n"), ("_", "\n"), ("_L", "[4];\n")):
            yield f"{HEADER}{constant}{symbol}{before}{piece * (BYTES // len(piece))}{after}"
    yield f"{HEADER}{constant}{symbol}m_L{'1' * BYTES}[4];\n"
    count = BYTES // 64
    yield HEADER + "".join(f"{constant}{symbol}m_L{number}C1_X{number}[4];\n" for number in range(count))
    for name in ("k", "k{0}"):
        kernels = (f".entry {name.format(number)}_TID_{number:032x}()\n{{}}\n" for number in range(count))
        yield HEADER + "".join(kernels)


def finish_oxide(text: str) -> None:
    named = oxide_kernels.with_stable_names(text)
    oxide_kernels.finish(named.text, Capability(9, 0), {})


def read_errors(text: str) -> None:
    cuda._enclosing_kernels(text, range(1, text.count("\n") + 1))


def section(name: int, kind: int, offset: int, size: int, link: int = 0) -> bytes:
    return struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, size, link, 0, 0, 0)


def elf(content: bytes, sections: list[bytes], names: int) -> bytes:
    """A cubin of these sections."""
    fields = (b"\x7fELF", 2, 1, 1, 0, 8, 1, 190, 1, 0, 0, 64 + len(content), 90 << 8, 64, 0, 0, 64)
    header = struct.pack(
        "<4sBBBBB7xHHIQQQIHHHHHH", *fields, len(sections) if len(sections) < 0xFF00 else 0, names
    )
    first = section(0, 0, 0, len(sections))
    return header + content + b"".join([first, *sections[1:]])


def elf_files() -> Iterator[bytes]:
    name = b"a" * 65000 + b"\0"
    none, table = section(0, 0, 0, 0), section(0, 3, 64, len(name))
    count = BYTES // 64
    # Names that are the ends of each other; sections in the same place; kernels of one name.
    yield elf(name, [none, table, *(section(number % 60000, 1, 0, 0) for number in range(count))], 1)
    info = b".nv.info.a\0" + b"\4\x37\4\0" + bytes(4)
    names = section(10, 3, 64, 11)
    long = info + info[11:] * (BYTES // 16)
    yield elf(long, [none, names, *(section(0, 1, 75, len(long) - 11) for _ in range(count // 2))], 1)
    symbol = struct.pack("<IBBHQQ", 9, 2, 0x10, 0, 0, 0)
    content = info * (BYTES // 19) + symbol * (BYTES // 24)
    start = 64 + 19 * (BYTES // 19)
    parts = [section(0, 1, 75, 8 * (BYTES // 8) // 2), section(10, 2, start, len(content) - start + 64, 1)]
    yield elf(content, [none, names, *parts, *(section(0, 1, 0, 0) for _ in range(count))], 1)


def read_elf(data: bytes) -> None:
    elf_reader.read(data, elf_reader.read_header(data, "file"), "file")


def archives() -> Iterator[bytes]:
    def member(name: str, data: bytes) -> bytes:
        return f"{name:<16}{0:<12}{0:<6}{0:<6}{'644':<8}{len(data):<10}`\n".encode() + data

    names = member("//", b"a" * (BYTES // 2))
    yield ar_reader.MAGIC + names + member("/0", b"") * (BYTES // 120)


def sections() -> Iterator[bytes]:
    header = struct.pack("<8sHHIHHHHQ", b"OXIDEART", 1, 32, 40, 1, 1, 0, 0, 0) + b"ab" + bytes(6)
    yield header * 4096
    yield header + bytes(BYTES)


def fatbins() -> Iterator[bytes]:
    for piece in (b".target ", b".target sm_1", b"1", b"\n"):
        text = piece * (BYTES // len(piece))
        entry = struct.pack("<HHIQI4x4xI8xQ8xQ", 1, 1, 64, len(text), 0, 90, 0, 0)
        yield struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 64 + len(text)) + entry + text


def ptx_bytes() -> Iterator[bytes]:
    yield from (text.encode() for text in texts())
    yield from (text.encode() for text in headers())


READERS: dict[str, tuple[Callable[[], Iterator[object]], Callable[..., object]]] = {
    "header": (headers, ptx.header),
    "new header": (headers, lambda text: ptx.with_header(text, "8.0", "sm_90")),
    "whole": (texts, ptx.is_whole),
    "outline": (ptx_bytes, ptx_outline.read),
    "entries and records": (texts, finishing.has_plain_kernels),
    "finishing": (numbered, lambda text: finishing.finish(text, Capability(9, 0))),
    "cuda-oxide's": (of_oxide, finish_oxide),
    "shared memory": (shared, shared_memory.declared),
    "errors of ptxas": (numbered, read_errors),
    "elf": (elf_files, read_elf),
    "kernels of cubins": (elf_files, cubin_resources.read_kernels),
    "toolkits of cubins": (elf_files, cubin_resources.read_toolkit),
    "ar": (archives, lambda data: list(ar_reader.members(data, "file"))),
    "oxart": (sections, oxart.read),
    "fatbin": (fatbins, fatbin.read),
}


def main(name: str) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    inputs, reader = READERS[name]
    for number, each in enumerate(inputs()):
        print(number, flush=True)
        with contextlib.suppress(RustcudaError):
            reader(each)


if __name__ == "__main__":
    main(sys.argv[1])
