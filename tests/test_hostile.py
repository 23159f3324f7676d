"""Nothing that reads a file takes time that grows with the square of its length."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="Windows has no limit on a program's processor time")

from hostile import READERS, archives, elf_files, read_elf

from rustcuda_backend import ar_reader, cubin_resources, process
from rustcuda_backend.errors import FormatError


@pytest.mark.parametrize("reader", READERS)
def test_long_inputs_are_read_in_time_and_memory_that_their_length_bounds(reader: str) -> None:
    finished = process.run([sys.executable, Path(__file__).with_name("hostile.py"), reader])
    assert finished.ok, f"input {finished.stdout.split()[-1:]}: {finished.stderr}"


def test_what_is_said_of_names_and_sections_that_overlap() -> None:
    names, sections, kernels = elf_files()
    with pytest.raises(FormatError, match="the names in the file overlap"):
        read_elf(names)
    with pytest.raises(FormatError, match="the file's sections overlap"):
        read_elf(sections)
    read_elf(kernels)
    with pytest.raises(FormatError, match="the names in the cubin overlap"):
        cubin_resources.read_kernels(kernels)


def test_a_name_in_an_archive_that_does_not_end() -> None:
    (archive,) = archives()
    _, *members = ar_reader.members(archive, "file")
    assert {member.name for member in members} == {"a" * 1024}
