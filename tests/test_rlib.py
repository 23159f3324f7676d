"""Adding bitcode to rlibs, as rustc up to 1.96 and from 1.97 on reads them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rustcuda_backend import process
from rustcuda_backend.errors import FormatError
from rustcuda_backend.rlib import add_members


def member(name: str, data: bytes) -> bytes:
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'644':<8}{len(data):<10}`\n".encode()
    return header + data + b"\n" * (len(data) % 2)


def string(text: str) -> bytes:
    """A string as rustc's metadata has it, of fewer than 128 bytes."""
    return bytes([len(text)]) + text.encode() + b"\xc1"


def archive(*members: bytes) -> bytes:
    return b"!<arch>\n" + b"".join(members)


ADDED = {"mem.rcgu.o": b"odd", "nv.rcgu.o": b"even"}
WRITTEN = member("mem.rcgu.o/", b"odd") + member("nv.rcgu.o/", b"even")


def test_members_are_appended_and_the_others_left_as_they_are() -> None:
    present = (member("/", b"sym"), member("//", b"a-long-name.rcgu.o/\n"), member("/0", b"BC"))
    assert add_members(archive(*present), ADDED) == archive(*present, WRITTEN)


@pytest.mark.parametrize("rest", [b"rust-end-file", b"\x00rust-end-file"])
def test_they_enter_the_list_of_object_files(rest: bytes) -> None:
    before = bytes([2]) + string("core.0.rcgu.o") + string("core.1.rcgu.o")
    after = bytes([4]) + before[1:] + string("mem.rcgu.o") + string("nv.rcgu.o")
    rlib = archive(member("/0", b"BC"), member("lib.rmeta-link/", before + rest), member("x/", b""))
    expected = archive(
        member("/0", b"BC"), member("lib.rmeta-link/", after + rest), member("x/", b""), WRITTEN
    )
    assert add_members(rlib, ADDED) == expected


def test_a_list_of_many_and_long_names() -> None:
    name = "n" * 300
    names = (b"\xac\x02" + name.encode() + b"\xc1") * 127
    added = add_members(archive(member("lib.rmeta-link/", b"\x7f" + names)), ADDED)
    assert (
        member("lib.rmeta-link/", b"\x81\x01" + names + string("mem.rcgu.o") + string("nv.rcgu.o")) in added
    )


@pytest.mark.parametrize("content", [b"", b"\x01", b"\x01\x03abc", b"\x01\x03abcd", b"\xff\xff"])
def test_a_list_of_another_form_is_an_error(content: bytes) -> None:
    with pytest.raises(FormatError, match="unknown form"):
        add_members(archive(member("lib.rmeta-link/", content)), ADDED)


@pytest.mark.parametrize("content", [b"", b"BC\xc0\xde", archive(b"x" * 60)])
def test_what_is_no_archive_is_an_error(content: bytes) -> None:
    with pytest.raises(FormatError, match="ar archive"):
        add_members(content, ADDED)


@pytest.mark.skipif(not shutil.which("ar"), reason="binutils' ar is not installed")
def test_ar_reads_it(tmp_path: Path) -> None:
    (tmp_path / "x.rlib").write_bytes(add_members(archive(member("a/", b"1")), ADDED))
    assert process.run(["ar", "t", tmp_path / "x.rlib"]).stdout.split() == ["a", *ADDED]
    assert process.run(["ar", "p", tmp_path / "x.rlib", "mem.rcgu.o"]).stdout == "odd"
