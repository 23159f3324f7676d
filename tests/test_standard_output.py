"""Output that does not arrive; what whole commands say then is in test_cli."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rustcuda_backend.errors import RustcudaError
from rustcuda_backend.standard_output import arriving


class Refusing(io.RawIOBase):
    """A file into which nothing can be written for a reason, until that is 0."""

    def __init__(self, path: Path, reason: int) -> None:
        super().__init__()
        self.file = path.open("wb")
        self.reason = reason

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.file.fileno()

    def write(self, data: Any, /) -> int:
        if self.reason:
            raise OSError(self.reason, os.strerror(self.reason))
        return len(data)


@contextlib.contextmanager
def refusing(path: Path, reason: int) -> Iterator[None]:
    """Within it, standard output takes nothing."""
    raw = Refusing(path, reason)
    with contextlib.redirect_stdout(
        io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", write_through=True)
    ):
        yield
    # What was not written is written when the stream is closed.
    raw.reason = 0
    raw.file.close()


def print_and_swallow() -> None:
    with contextlib.suppress(OSError):
        print("x" * 100_000, flush=True)


def test_a_failure_that_the_printing_code_swallows(tmp_path: Path) -> None:
    with (
        refusing(tmp_path / "x", errno.ENOSPC),
        pytest.raises(RustcudaError) as raised,
        arriving(),
    ):
        print_and_swallow()
    assert raised.value.what == f"the output cannot be written: {os.strerror(errno.ENOSPC).lower()}"


def test_a_reader_that_is_gone_is_no_error_to_speak_of(tmp_path: Path) -> None:
    with refusing(tmp_path / "x", errno.EPIPE), pytest.raises(SystemExit) as ended, arriving():
        print_and_swallow()
    assert ended.value.code == 1


def test_no_output_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(RustcudaError, match="it is closed"), arriving():
        pass


def test_what_fails_otherwise_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "x").open("w", encoding="ascii") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(FileNotFoundError), arriving():
            (tmp_path / f"gone{print('größe')}").read_bytes()
        assert sys.stdout is stream
    assert (tmp_path / "x").read_bytes() == b"gr\\xf6\\xdfe" + os.linesep.encode()
