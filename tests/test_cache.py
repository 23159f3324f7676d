"""The store: whole or not there, made once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import platformdirs
import pytest

from rustcuda_backend import cache, doctor, session


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.DIRECTORY_VARIABLE, str(tmp_path / "störe"))
    return tmp_path / "störe"


def test_digests_keep_parts_apart() -> None:
    assert cache.digest("ab", "c") != cache.digest("a", "bc")
    assert cache.digest("a") == cache.digest(b"a")
    assert len(cache.digest()) == 32


def test_the_platforms_folder_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(cache.DIRECTORY_VARIABLE)
    assert cache.directory().name == "rustcuda"
    assert cache.directory().is_absolute()


def test_a_folder_is_made_once(store: Path) -> None:
    made = []

    def make(folder: Path) -> None:
        (folder / "x").write_text("content", encoding="utf-8")
        made.append(folder)

    first = cache.folder("kind", "key", make)
    assert cache.folder("kind", "key", make) == first == store / "kind" / "key"
    assert (first / "x").read_text(encoding="utf-8") == "content"
    assert len(made) == 1


@pytest.mark.parametrize("damage", ["truncate", "change", "delete", "add", "break", "forget"])
def test_a_damaged_folder_is_made_again(damage: str) -> None:
    made = []

    def make(folder: Path) -> None:
        (folder / "sub").mkdir()
        (folder / "sub/x").write_text("content", encoding="utf-8")
        made.append(folder)

    stored = cache.folder("kind", "key", make)
    assert cache.is_whole(stored)
    if damage == "truncate":
        (stored / "sub/x").write_text("cont", encoding="utf-8")
    elif damage == "change":
        times = (stored / "sub/x").stat()
        (stored / "sub/x").write_text("CONTENT", encoding="utf-8")
        os.utime(stored / "sub/x", ns=(times.st_atime_ns, times.st_mtime_ns))
    elif damage == "delete":
        (stored / "sub/x").unlink()
    elif damage == "add":
        (stored / "y").touch()
    elif damage == "break":
        (stored / "sub/x").unlink()
        (stored / "sub/x").symlink_to("nowhere")
    else:
        (stored / ".files.json").write_text("{", encoding="utf-8")
    assert not cache.is_whole(stored)
    assert cache.folder("kind", "key", make) == stored
    assert (stored / "sub/x").read_text(encoding="utf-8") == "content"
    assert cache.is_whole(stored)
    assert len(made) == 2


def test_contents_are_read_only_where_times_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Path
) -> None:
    """Also of a store that was copied here, which then is read once."""
    read = []

    def checksum(path: Path) -> int:
        read.append(path.name)
        return zlib.crc32(path.read_bytes())

    monkeypatch.setattr(cache, "_checksum", checksum)

    def make(folder: Path) -> None:
        (folder / "x").write_text("content", encoding="utf-8")

    cache.folder("kind", "key", make)
    assert read.count("x") == 1
    cache.folder("kind", "key", make)
    assert read.count("x") == 1
    shutil.copytree(store, tmp_path / "copied")
    monkeypatch.setenv(cache.DIRECTORY_VARIABLE, str(tmp_path / "copied"))
    cache.folder("kind", "key", print)
    seen = read.count("x")
    assert seen > 1
    cache.folder("kind", "key", print)
    assert read.count("x") == seen


def test_several_threads_make_a_folder_once() -> None:
    made = []
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait()
        cache.folder("kind", "key", made.append)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_a_folder_half_made_is_not_there(store: Path) -> None:
    def make(folder: Path) -> None:
        (folder / "x").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.folder("kind", "key", make)
    assert [path.name for path in (store / "kind").iterdir()] == ["key.lock"]


def test_a_file_is_made_once(store: Path) -> None:
    assert cache.file("kind", "key", lambda: b"one") == b"one"
    assert cache.file("kind", "key", lambda: b"two") == b"one"
    assert [path.name for path in (store / "kind").iterdir()] == ["key"]


@pytest.mark.parametrize("damage", [b"", b"x", b"one"])
def test_a_damaged_file_is_made_again(store: Path, damage: bytes) -> None:
    cache.file("kind", "key", lambda: b"one")
    (store / "kind" / "key").write_bytes(damage)
    assert cache.file("kind", "key", lambda: b"two") == b"two"
    assert cache.file("kind", "key", lambda: b"three") == b"two"


def test_a_file_half_written_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_path: Path, _mode: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "chmod", interrupted)
    (tmp_path / "x").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        cache.write_atomically(tmp_path / "x", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_bytes() == b"old"


# Each with what must be there for it.
IMPOSSIBLE = {
    "a file": "file",
    "below a file": "file/x",
    "a link to nowhere": "dangling",
    "below a link to nowhere": "dangling/x",
    "a link to itself": "loop/x",
    "a long name": "n" * 300,
    "a long path": "/n" * 3000,
    "a folder of the kernel's": "/proc/self/x",
}


@pytest.mark.parametrize("place", IMPOSSIBLE)
@pytest.mark.parametrize(
    "make", [lambda: cache.file("kind", "key", bytes), lambda: cache.folder("k", "k", print)]
)
def test_a_store_that_cannot_be_written_names_itself(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    make: Callable[[], object],
    place: str,
) -> None:
    if place == "a folder of the kernel's" and not Path("/proc/self").is_dir():
        pytest.skip("needs /proc")
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    chosen = tmp_path / IMPOSSIBLE[place]
    monkeypatch.setenv(cache.DIRECTORY_VARIABLE, str(chosen))
    with pytest.raises(SystemExit), session.user_errors():
        make()
    what, where, hint = capsys.readouterr().err.splitlines()
    assert what.startswith("rustcuda: error: the cache folder cannot be written: ")
    assert where.startswith(f"rustcuda:   where: {chosen}")
    assert hint == "rustcuda:   what to do: set RUSTCUDA_CACHE_DIR to a folder that can be written"
    assert doctor._cache().state == "missing"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling", "file", "loop"]


@pytest.mark.parametrize("name", ["", " ", "a b", "ü", "a\nb", "~", "-x", "a/../b"])
def test_any_other_name_is_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda *_: str(tmp_path / "default"))
    monkeypatch.setenv(cache.DIRECTORY_VARIABLE, name)
    cache.file("kind", "key", lambda: b"one")
    assert (tmp_path / (name or "default") / "kind" / "key").is_file()
    assert doctor._cache().state == "ok"


FULL = """\
import pathlib, resource, sys
from rustcuda_backend import cache, session
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
# Python ignores the signal, so that writing fails as it does on a full disk.
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
try:
    with session.user_errors():
        cache.write_atomically(pathlib.Path(sys.argv[1]), bytes(2000))
finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)  # for what the measuring of coverage writes
"""


@pytest.mark.skipif(os.name == "nt", reason="limits the size of files as POSIX does")
def test_a_disk_that_takes_no_more_is_named_with_the_file(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", FULL, tmp_path / "x"]
    done = subprocess.run(argv, capture_output=True, check=False)
    assert done.stderr.decode().splitlines() == [
        "rustcuda: error: file too large",
        f"rustcuda:   where: {tmp_path / 'x'}",
        "rustcuda:   what to do: raise the limit of files' sizes (ulimit -f)",
    ]
    assert done.returncode == 1
    assert list(tmp_path.iterdir()) == []
