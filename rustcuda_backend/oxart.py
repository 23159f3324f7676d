"""Reading `.oxart`: the section of host files in which cuda-oxide embeds the device code of each crate.

It holds a blob for each crate, one behind another as linkers put them. Its format is that of cuda-oxide's
crate `oxide-artifacts`; all numbers are little-endian, and offsets count from the blob's first byte:

    blob     magic "OXIDEART", u16 version, u16 bytes of this header, u32 bytes of the blob, u16 bytes of
             the name, u16 bytes of the target, u16 payloads, u16 entries, u64 options (0 in version 1);
             name and target follow, then a record for each payload and for each entry, then what these name
    payload  u16 kind, u16, u32 offset and u32 bytes of data, u32 offset and u16 bytes of the name, 6 bytes
    entry    u16 kind, u16 flags, u64 metadata, u32 offset and u16 bytes of the symbol, 6 bytes
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from rustcuda_backend.errors import FormatError

SECTION = b".oxart"
MAGIC = b"OXIDEART"

PTX = "PTX"
CUBIN = "cubin"
KERNEL = "kernel"

_HEADER = struct.Struct("<8sHHIHHHHQ")
_PAYLOAD = struct.Struct("<HHIIIH6x")
_ENTRY = struct.Struct("<HHQIH6x")
_VERSIONS = (1, 2)
_PAYLOADS = {0x100: PTX, 0x110: "NVVM IR", 0x120: "LTO-IR", 0x200: CUBIN}
_ENTRIES = {1: KERNEL, 2: "device function"}
# Bit of the options to what it asks of whoever compiles the payload further. Line tables and full debug
# information exclude each other.
_OPTIONS = {1: "no FMA", 2: "line tables", 4: "full debug"}
_BOTH_DEBUGS = 6
_HAS_METADATA = 1
# Far more than any program has; they bound what a damaged or hostile file can make of the memory.
_MOST_BUNDLES = 1 << 12
_MOST_ENTRIES = 1 << 17
_ZEROS = re.compile(rb"\0*")


@dataclass(frozen=True)
class Payload:
    """Device code of one crate.

    Attributes:
        kind: `"PTX"`, `"NVVM IR"`, `"LTO-IR"` or `"cubin"`.
        name: The file that cuda-oxide wrote it to.
        data: The code.
    """

    kind: str
    name: str
    data: bytes


@dataclass(frozen=True)
class Entry:
    """A function of the device code.

    Attributes:
        name: Its symbol.
        kind: `"kernel"` or `"device function"`.
        metadata: A number that cuda-oxide keeps with it, if any.
    """

    name: str
    kind: str
    metadata: int | None = None


@dataclass(frozen=True)
class Bundle:
    """What cuda-oxide embedded for one crate.

    Attributes:
        name: The cargo package.
        target: What it was compiled for, e.g. `"sm_80"`.
        version: Of the format.
        options: What compiling it further must keep to: `"no FMA"`, `"line tables"`, `"full debug"`.
        payloads: The code; so far always one.
        entries: Its functions.
    """

    name: str
    target: str
    version: int
    options: tuple[str, ...]
    payloads: tuple[Payload, ...]
    entries: tuple[Entry, ...]


def read(data: bytes) -> tuple[Bundle, ...]:
    """Reads a section; none where it is all zeros, as after stripping.

    Raises:
        FormatError: A blob is damaged, of an unknown version, or asks for options that are unknown; or there
            are more of them than any program has.
    """
    bundles: list[Bundle] = []
    entries = 0
    offset = _end_of_zeros(data, 0)
    while offset < len(data):
        where = f"blob at byte {offset}"
        try:
            blob, header = _blob(data, offset)
            entries += header.entries
            _check_numbers(len(bundles) + 1, entries)
            bundles.append(_bundle(blob, header))
        except FormatError as error:
            error.where = where
            raise
        # Linkers fill up with zeros to the next blob's alignment.
        offset = _end_of_zeros(data, offset + len(blob))
    return tuple(bundles)


def _check_numbers(bundles: int, entries: int) -> None:
    if bundles > _MOST_BUNDLES or entries > _MOST_ENTRIES:
        raise FormatError(
            f"the section holds more than {_MOST_BUNDLES} bundles or {_MOST_ENTRIES} entries; no program does"
        )


def _end_of_zeros(data: bytes, offset: int) -> int:
    zeros = _ZEROS.match(data, offset)
    return zeros.end() if zeros else offset


@dataclass(frozen=True)
class _Header:
    """A blob's header: version and options, bytes of name and target, how many payloads and entries."""

    version: int
    options: tuple[str, ...]
    name: int
    target: int
    payloads: int
    entries: int

    @property
    def end_of_records(self) -> int:
        records = self.payloads * _PAYLOAD.size + self.entries * _ENTRY.size
        return _HEADER.size + self.name + self.target + records


def _blob(data: bytes, offset: int) -> tuple[bytes, _Header]:
    """The blob that begins at an offset, and its header; both fit into the data."""
    if offset + _HEADER.size > len(data):
        raise FormatError("the header of an embedded bundle is cut off")
    magic, version, size, total, *counts, bits = _HEADER.unpack_from(data, offset)
    if magic != MAGIC:
        raise FormatError("there is no bundle of cuda-oxide where one should begin")
    if version not in _VERSIONS or size != _HEADER.size:
        raise FormatError(
            f"the bundle has the unknown version {version}, with a header of {size} bytes",
            hint="use a newer rustcuda-backend, or the cuda-oxide that its documentation names",
        )
    header = _Header(version, _options(bits) if version > 1 else (), *counts)
    if offset + total > len(data):
        raise FormatError(f"the bundle is cut off: it claims {total} bytes, {len(data) - offset} are there")
    if header.end_of_records > total:
        raise FormatError(
            f"the bundle's records reach beyond its end: it claims {header.payloads} payloads and "
            f"{header.entries} entries in {total} bytes"
        )
    return data[offset : offset + total], header


def _options(bits: int) -> tuple[str, ...]:
    if bits & ~sum(_OPTIONS) or bits & _BOTH_DEBUGS == _BOTH_DEBUGS:
        raise FormatError(
            f"the bundle asks for unknown compile options (0x{bits:x})",
            hint="use a newer rustcuda-backend, or the cuda-oxide that its documentation names",
        )
    return tuple(name for bit, name in _OPTIONS.items() if bits & bit)


def _bundle(blob: bytes, header: _Header) -> Bundle:
    start = _HEADER.size + header.name
    name = _text(blob, _HEADER.size, header.name, "name")
    target = _text(blob, start, header.target, "target")
    records = memoryview(blob)[start + header.target : header.end_of_records]
    split = header.payloads * _PAYLOAD.size
    payloads = list(_PAYLOAD.iter_unpack(records[:split]))
    entries = list(_ENTRY.iter_unpack(records[split:]))
    # Before anything is copied: parts that overlap could fill the memory.
    _check_apart(
        [
            *((offset, size) for _, _, offset, size, _, _ in payloads),
            *((offset, size) for _, _, _, _, offset, size in payloads),
            *((offset, size) for _, _, _, offset, size in entries),
        ],
        header.end_of_records,
        len(blob),
    )
    return Bundle(
        name,
        target,
        header.version,
        header.options,
        tuple(_payload(blob, *record) for record in payloads),
        tuple(_entry(blob, *record) for record in entries),
    )


def _check_apart(spans: list[tuple[int, int]], begin: int, end: int) -> None:
    """Makes sure that what records name is there, and that no byte has two meanings."""
    for offset, size in sorted(spans):
        if not size:
            raise FormatError(f"a part of the bundle at byte {offset} is empty")
        if offset < begin:
            raise FormatError(f"parts of the bundle overlap at byte {offset}")
        begin = offset + size
        if begin > end:
            raise FormatError(
                f"a part of the bundle reaches beyond its end: {size} bytes at byte {offset} of {end}"
            )


def _payload(
    blob: bytes, kind: int, _flags: int, offset: int, size: int, name_offset: int, name_size: int
) -> Payload:
    if kind not in _PAYLOADS:
        raise FormatError(f"the bundle has a payload of the unknown kind 0x{kind:x}")
    name = _text(blob, name_offset, name_size, "payload's name")
    return Payload(_PAYLOADS[kind], name, blob[offset : offset + size])


def _entry(blob: bytes, kind: int, flags: int, metadata: int, offset: int, size: int) -> Entry:
    if kind not in _ENTRIES:
        raise FormatError(f"the bundle has an entry of the unknown kind {kind}")
    symbol = _text(blob, offset, size, "entry's symbol")
    return Entry(symbol, _ENTRIES[kind], metadata if flags & _HAS_METADATA else None)


def _text(blob: bytes, offset: int, size: int, noun: str) -> str:
    try:
        text = blob[offset : offset + size].decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    # Names in a file must not steer the terminal.
    if not text or not text.isprintable():
        raise FormatError(f"the bundle's {noun}, at byte {offset}, is no printable UTF-8 text")
    return text
