"""One build at a time in one target folder, which several packages and several processes may share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from rustcuda_backend.report import Report


@contextlib.contextmanager
def alone_in(directory: Path, report: Report) -> Iterator[None]:
    """Waits until no other build works in the passes' folder, and keeps others out meanwhile.

    cargo locks its own target folders only, and passes copy parts of them to each other.
    """
    lock = FileLock(directory / ".lock")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        report.note(f"waiting for another build in {directory}")
        lock.acquire()
    except OSError:
        pass  # cargo says what is wrong with the folder
    try:
        yield
    finally:
        lock.release()
