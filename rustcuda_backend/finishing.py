"""Makes PTX for ptxas of what stock rustc wrote: reads what `#[kernel]` left in it, and declares memory."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from rustcuda_backend import constants, launch_bounds, ptx, shared_memory
from rustcuda_backend.constants import ConstantSymbol
from rustcuda_backend.errors import FormatError, SignatureError
from rustcuda_backend.ptx import NAME, PtxEntry, PtxModule, parse_entries, read_parameter, shown_bytes
from rustcuda_backend.signature import KernelSignature, Parameter, parse_record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rustcuda_backend.capability import Capability

RECORD_PREFIX = "__rustcuda_kernel_"
CONSTANT_PREFIX = "__rustcuda_constant_"

# It takes time in proportion to the text, as those of `ptx`.
_MARKER = re.compile(
    r"^(?:\.\w+[ \t]+)*?\.global[ \t]+\.align[ \t]+[0-9]+[ \t]+\.b8[ \t]+"
    rf"(?P<name>(?:{RECORD_PREFIX}|{CONSTANT_PREFIX}){NAME})\[(?P<size>[0-9]{{1,9}})\]"
    r"(?:\s*=\s*\{(?P<bytes>[0-9,\s]*)\})?;\n",
    re.MULTILINE,
)
# Bytes, far more than a doc comment has.
_LONGEST_RECORD = 1 << 20
_T = TypeVar("_T")


def has_plain_kernels(raw: str) -> bool:
    """Whether a PTX text as the compiler wrote it has kernels that `#[kernel]` did not record."""
    markers = [match["name"] for match in _MARKER.finditer(raw)]
    recorded: int = sum(name.startswith(RECORD_PREFIX) for name in markers)
    return len(parse_entries(raw)) > recorded


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
        FormatError: Text that is no PTX, or for another target, or a damaged record.
        SignatureError: A record or rustdoc contradicts the PTX, or a kernel cannot be launched from Python.
    """
    version = _checked_version(raw, capability)
    markers = {match["name"]: match for match in _MARKER.finditer(raw)}
    entries = parse_entries(raw)
    records = {record.name: record for record in _read(markers, RECORD_PREFIX, parse_record).values()}
    _check_records(records, entries)
    sources = {**(described or {}), **records}
    signatures = tuple(_signature(entry, sources.get(entry.name)) for entry in entries)
    for signature in signatures:
        launch_bounds.check(signature, capability)
    symbols = _read(markers, CONSTANT_PREFIX, constants.parse_record)
    text = _MARKER.sub(lambda match: _declaration(match["name"], symbols), raw)
    promises = {
        signature.name: launch_bounds.directives(signature)
        for signature, entry in zip(signatures, entries, strict=True)
        if not entry.launch_bounds
    }
    text = shared_memory.declared(ptx.with_directives(text, promises))
    return PtxModule(
        capability,
        text,
        tuple(signature for signature in signatures if signature.is_launchable),
        version,
        tuple(symbols[name] for name in sorted(symbols)),
        tuple(signature.name for signature in signatures if not signature.is_launchable),
    )


def _checked_version(raw: str, capability: Capability) -> str:
    version, target = ptx.header(raw)
    if target != capability.sm:
        raise FormatError(
            f"the PTX is for {target}, but the pass is for {capability.sm}",
            hint="remove target-cpu from your own RUSTFLAGS; capabilities come from the settings",
        )
    return version


def _read(markers: Mapping[str, re.Match[str]], prefix: str, parse: Callable[[bytes], _T]) -> dict[str, _T]:
    """What the records of one kind say, by the names of their variables."""
    found = {}
    for name, match in markers.items():
        if name.startswith(prefix):
            try:
                found[name] = parse(_bytes_of(match))
            except (LookupError, ValueError) as error:
                raise FormatError(
                    "a record in the PTX cannot be read",
                    where=name,
                    hint="use the rustcuda-device crate that comes with this rustcuda-backend",
                ) from error
    return found


def _bytes_of(match: re.Match[str]) -> bytes:
    written = bytes(int(number) for number in (match["bytes"] or "0").split(","))
    size = int(match["size"])
    if size > _LONGEST_RECORD:
        raise ValueError(size)
    # LLVM leaves trailing zeros out.
    return written.ljust(size, b"\0")


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


def _declaration(marker: str, symbols: Mapping[str, ConstantSymbol]) -> str:
    """What stands for a marker in the finished text."""
    return symbols[marker].declaration if marker in symbols else ""
