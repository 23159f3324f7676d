"""Takes kernels out of a library that goes into the wheel, where the wheel has them as a fatbin."""

from __future__ import annotations

import os
from pathlib import Path

from rustcuda_backend import cache, elf_reader, oxart
from rustcuda_backend.elf_reader import Elf
from rustcuda_backend.errors import FormatError

# Nanoseconds; some file systems keep times to two seconds only.
_OLDER = 2_000_000_000


def strip(path: Path) -> int:
    """Takes out of an ELF file all that cuda-oxide embedded.

    The sections stay, and their bytes become zeros. Nothing in the file moves, so that it loads and runs as
    before, and the symbols that cuda-oxide's host code has in a section still lead into it; also
    `objcopy --remove-section` zeroes a section that is loaded. cuda-oxide's own reader takes a section of
    zeros for one without bundles (`parse_artifact_section` in its crate `oxide-artifacts`), as it takes the
    zeros that linkers fill up with. To remove or rename the section's header would save a few bytes more,
    but leave the kernels in the file. In a wheel, which is compressed, the zeros take no room.

    Returns:
        How many bytes have become zeros.

    Raises:
        FormatError: The file is damaged, or something else is in the same place.
    """
    data = path.read_bytes()
    if not data.startswith(elf_reader.MAGIC):
        return 0  # as an rlib, which nobody loads
    header = elf_reader.read_header(data, "library")
    elf = elf_reader.read(data, header, "library")
    stripped = bytearray(data)
    count = 0
    for section in elf.sections:
        content = data[section.span]
        if section.name == oxart.SECTION and any(content):
            _check_alone(section.span, elf, path)
            stripped[section.span] = bytes(len(content))
            count += len(content)
    if count:
        status = path.stat()
        # A new file: this one may be a link to the library that the project builds from.
        cache.write_atomically(path, bytes(stripped), mode=status.st_mode & 0o7777)
        # Older than that library, which setuptools else takes for copied already when it builds here again.
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - _OLDER))
    return count


def _check_alone(span: slice, elf: Elf, path: Path) -> None:
    for section in elf.sections:
        if section.name != oxart.SECTION and _overlap(section.span, span):
            raise FormatError(
                f"the section .oxart overlaps the section '{section.name.decode('utf-8', 'replace')}'",
                where=str(path),
            )


def _overlap(first: slice, second: slice) -> bool:
    shared: int = min(first.stop, second.stop) - max(first.start or 0, second.start)
    return shared > 0
