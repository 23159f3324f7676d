"""Files that `inspect` and `check` cannot look into: what is no plain file, and what is too large."""

from __future__ import annotations

import errno
import os
import re
import socket
import zipfile
from pathlib import Path

import pytest

from rustcuda_backend import named_file
from rustcuda_backend.cli import main

COMMANDS = pytest.mark.parametrize("command", ["inspect", "check"])


def said(command: str, path: Path | str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What a command that cannot look into a file prints."""
    with pytest.raises(SystemExit) as ended:
        main([command, str(path)])
    assert ended.value.code == 1
    return capsys.readouterr().err.splitlines()


@COMMANDS
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
@pytest.mark.parametrize("kind", ["folder", "device", "pipe", "socket", "link to a device"])
def test_no_plain_file(
    command: str,
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # A socket's name may not be long.
    monkeypatch.chdir(tmp_path)
    path, noun = Path("x"), kind
    if kind == "folder":
        path.mkdir()
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind("x")
    else:
        path.symlink_to("/dev/zero")
        noun = "device"
    assert said(command, path, capsys) == [
        f"rustcuda: error: this is a {noun}, not a file",
        f"rustcuda:   where: {path}",
        "rustcuda:   what to do: name a plain file",
    ]


@pytest.mark.parametrize(
    "arguments", [["inspect", ""], ["check", ""], ["build", "--output", ""], ["doctor", "--project", ""]]
)
def test_an_empty_name(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(": it is empty\n")


@COMMANDS
def test_too_large(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # It takes no space on the disk.
    with (tmp_path / "x.whl").open("wb") as stream:
        stream.truncate(1 << 40)
    what, where = said(command, tmp_path / "x.whl", capsys)
    assert f"the file has {1 << 40} bytes, more than can be looked into" in what
    assert str(tmp_path / "x.whl") in where


@COMMANDS
@pytest.mark.parametrize("member", ["pkg/k.fatbin", "pkg/k.py"])
def test_too_large_when_unpacked(
    command: str,
    member: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(named_file, "MOST_BYTES", 100_000)
    path = tmp_path / "x.whl"
    content = {"pkg/k.fatbin": b"", member: bytes(100_000)}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, b"\x50\xed\x55\xba" + data)
    assert path.stat().st_size < 10_000
    what, where = said(command, path, capsys)
    assert re.search(r"has 10000\d bytes, more than can be looked into", what)
    assert str(path) in where


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
def test_a_pipe_beside_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Where a fatbin's generated loader would be.
    (tmp_path / "k.ptx").write_text(".version 8.0\n.target sm_80\n", encoding="utf-8")
    os.mkfifo(tmp_path / "k.py")
    assert main(["inspect", str(tmp_path / "k.ptx")]) == 0
    assert "PTX ISA 8.0" in capsys.readouterr().out


@COMMANDS
@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="everything can be read here")
def test_no_right_to_read(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").touch(mode=0)
    assert "cannot be read: Permission denied" in said(command, tmp_path / "x", capsys)[0]


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="there is no file that fails when it is read")
def test_a_file_that_fails_when_it_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    what, where = said("inspect", "/proc/self/mem", capsys)
    assert what == f"rustcuda: error: the file cannot be read: {os.strerror(errno.EIO)}"
    assert where.endswith("/proc/self/mem")
