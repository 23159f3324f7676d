"""What the machine lacks, in the words of errors that the user can mend."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from disks import read_only, small

from rustcuda_backend import cache, machine, session
from rustcuda_backend.errors import RustcudaError


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.DIRECTORY_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def told(number: int, *names: str | int) -> RustcudaError:
    error = OSError(number, os.strerror(number), *names)
    found = machine.told(error)
    assert found
    return found


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk(store: Path, number: int) -> None:
    in_cache = told(number, str(store / "cubins/x"))
    assert in_cache.what == f"the cache folder cannot be written: {os.strerror(number).lower()}"
    assert in_cache.where == str(store / "cubins/x")
    assert in_cache.hint.endswith(",\nor set RUSTCUDA_CACHE_DIR to a folder on another disk")
    for name in ("rustcuda-1/x", "pip-1/x"):
        temporary = told(number, str(Path(tempfile.gettempdir(), name)))
        assert temporary.hint.endswith(",\nor set TMPDIR to a folder on another disk")
    other = told(number, str(store.parent / "out/x"))
    assert other.what == os.strerror(number).lower()
    assert "\n" not in other.hint


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_what_may_not_be_written(store: Path, number: int) -> None:
    assert told(number, str(store / "x")).hint == "set RUSTCUDA_CACHE_DIR to a folder that can be written"
    inside = str(Path(tempfile.gettempdir(), "rustcuda-1/x"))
    assert told(number, inside).hint == "set TMPDIR to a folder that can be written"
    (store.parent / "out").mkdir()
    for place in ("out", "out/x"):
        hint = told(number, str(store.parent / place)).hint
        assert hint == f"make {store.parent / 'out'} writable, or name another folder"


def test_other_kinds(store: Path) -> None:
    assert told(errno.EISDIR, str(store.parent)).hint == ""
    assert told(errno.ENAMETOOLONG, str(store.parent / ("a" * 300))).what == "file name too long"
    assert told(errno.EFBIG, str(store.parent)).hint == "raise the limit of files' sizes (ulimit -f)"
    for error in (
        OSError(errno.ENOENT, "x", "/x"),
        OSError(errno.EACCES, "x"),
        OSError(errno.EACCES, "x", 3),
    ):
        assert machine.told(error) is None


def test_an_error_without_a_name_is_on_the_fullest_disk(store: Path) -> None:
    folder = store.parent / "small"
    with small(folder, 4096):
        found = machine.told(OSError(errno.ENOSPC, "x"), store.parent, folder / "not/there")
    assert found
    assert found.where == str(folder / "not/there")


def test_copies_name_what_they_write(store: Path) -> None:
    source, folder = store.parent / "source", store.parent / "small"
    source.mkdir()
    (source / "x").write_bytes(bytes(20000))
    with small(folder, 8192):
        for copy in (shutil.copyfile, shutil.copy2):
            with pytest.raises(OSError, match="No space") as raised:
                copy(source / "x", folder / "x")
            found = machine.told(raised.value)
            assert found
            assert found.where == str(folder / "x")
        with pytest.raises(shutil.Error) as collected:
            shutil.copytree(source, folder / "tree")
        found = machine.told(collected.value)
    assert found
    assert found.where == str(folder / "tree/x")
    assert found.what == "no space left on device"
    assert machine.told(shutil.Error("same file")) is None
    assert machine.told(shutil.Error([("a", "b", "is what it is")])) is None


def test_no_folder_takes_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp', '/x']")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with pytest.raises(FileNotFoundError) as raised:
        tempfile.gettempdir()
    found = machine.told(raised.value)
    assert found
    assert found.where == "['/tmp', '/x']"
    assert "set TMPDIR" in found.hint


@pytest.mark.parametrize(
    "said",
    [
        "error: failed to write: No space left on device (os error 28)",
        "rustc-LLVM ERROR: IO failure on output stream: Disk quota exceeded",
    ],
)
def test_programs_that_say_it(store: Path, said: str) -> None:
    folder = store.parent / "small"
    with small(folder, 4096):
        hint = machine.hint_if_full(f"x\n{said}\n", store.parent, folder / "target")
    assert hint == f"make room on the disk that is mounted at {folder}"
    assert machine.hint_if_full("it is not so", folder) == ""


@pytest.mark.parametrize("kind", ["file", "folder"])
@pytest.mark.parametrize("full", [True, False])
def test_a_store_on_such_a_disk(
    store: Path, capsys: pytest.CaptureFixture[str], kind: str, full: bool
) -> None:
    def make_folder(folder: Path) -> None:
        (folder / "x").write_bytes(bytes(20000))

    def make() -> object:
        if kind == "file":
            return cache.file("kind", "key", lambda: bytes(20000))
        return cache.folder("kind", "key", make_folder)

    store.mkdir()
    with small(store, 8192) if full else read_only(store), pytest.raises(SystemExit), session.user_errors():
        make()
    what, where, *hint = capsys.readouterr().err.splitlines()
    assert what.startswith("rustcuda: error: the cache folder cannot be written: ")
    assert where.startswith(f"rustcuda:   where: {store}")
    assert "RUSTCUDA_CACHE_DIR" in hint[-1]
    assert (f"make room on the disk that is mounted at {store}" in hint[0]) == full


@pytest.mark.parametrize("code", ["error: x", 1])
def test_other_ends_of_setuptools_stay_as_they_are(code: str | int) -> None:
    with pytest.raises(SystemExit) as raised, session.setuptools_errors():
        raise SystemExit(code)
    assert raised.value.code == code
    fault = OSError(errno.ENOENT, "x", "/x")

    def as_setuptools_does() -> None:
        try:
            raise fault
        except OSError as error:
            raise SystemExit(f"error: {error}")  # noqa: B904

    with pytest.raises(SystemExit) as raised, session.setuptools_errors():
        as_setuptools_does()
    assert raised.value.code == "error: [Errno 2] x: '/x'"
    with pytest.raises(FileNotFoundError), session.setuptools_errors():
        raise fault
