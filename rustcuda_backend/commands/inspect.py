"""`inspect`: prints what is in a file with device code."""

from __future__ import annotations

import argparse
import dataclasses
import json

from rustcuda_backend import inspection
from rustcuda_backend.commands import path_argument
from rustcuda_backend.inspection import InspectedPart
from rustcuda_backend.report import table_lines

NAME = "inspect"
SUMMARY = "list the images and kernels in a wheel, fatbin, cubin, PTX, ELF file or rlib"
DESCRIPTION = """\
List the images and kernels in a file, also one that nvcc has made: a wheel (.whl), a fatbin, a cubin, PTX,
or an object file, shared library or executable with a section .nv_fatbin. Of those that cuda-oxide has made,
and of rlibs, the bundles in sections .oxart: package, target, code and entries. Registers, stack and local
memory are per thread, shared memory per block, without what a launch adds. Memory is in bytes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `Command`."""
    parser.add_argument("file", metavar="FILE", type=path_argument, help="the file to look into")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """See `Command`."""
    parts = inspection.inspect(arguments.file)
    if arguments.json:
        content = {"file": str(arguments.file), "parts": [dataclasses.asdict(part) for part in parts]}
        print(json.dumps(content, indent=2))
        return 0
    for number, part in enumerate(parts):
        print(("\n" if number else "") + (part.place or str(arguments.file)))
        for line in [*_bundle(part), *_images(part), *_kernels(part), *_signatures(part), *_entries(part)]:
            print(f"  {line}".rstrip())
    return 0


def _bundle(part: InspectedPart) -> list[str]:
    if not part.bundle:
        return []
    more = "".join(f", {option}" for option in part.bundle.options)
    return [f"made by cuda-oxide for {part.bundle.target}, bundle format {part.bundle.version}{more}"]


def _entries(part: InspectedPart) -> list[str]:
    if not part.bundle or not part.bundle.entries:
        return []
    rows = [[entry.name, entry.kind, _shown(entry.metadata)] for entry in part.bundle.entries]
    return ["", *table_lines(_ENTRIES, rows)]


_ENTRIES = ("entry", "kind", "metadata")
_IMAGES = ("capability", "image", "compression", "bytes", "kernels", "driver from", "known by")
_KERNELS = ("kernel", "capability", "registers", "shared", "local", "stack")


def _images(part: InspectedPart) -> list[str]:
    rows = [
        [
            image.capability,
            image.kind,
            image.compression,
            str(image.size),
            _shown(None if image.kernels is None else len(image.kernels)),
            _shown(image.driver),
            image.driver_source,
        ]
        for image in part.images
    ]
    return table_lines(_IMAGES, rows)


def _kernels(part: InspectedPart) -> list[str]:
    rows = [
        [
            kernel.name,
            image.capability,
            *(_shown(number) for number in (kernel.registers, kernel.shared, kernel.local, kernel.stack)),
        ]
        for image in part.images
        if image.kind == "SASS"
        for kernel in image.kernels or ()
    ]
    # All capabilities of a kernel beside each other; Python's sort keeps their order.
    rows.sort(key=lambda row: row[0])
    return ["", *table_lines(_KERNELS, rows)] if rows else []


def _signatures(part: InspectedPart) -> list[str]:
    kernels = [kernel for image in part.images for kernel in image.kernels or ()]
    found = dict.fromkeys(sorted(kernel.signature for kernel in kernels if kernel.signature))
    return ["", *found] if found else []


def _shown(number: int | None) -> str:
    return "-" if number is None else str(number)
