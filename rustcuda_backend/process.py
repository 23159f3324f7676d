"""The one place that starts other programs: argument lists only, no shell, none left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_POSIX = os.name == "posix"
_live: set[subprocess.Popen[bytes]] = set()
_lock = threading.Lock()
_ending = threading.Event()


class EndedError(Exception):
    """The program was ended, or not even started, since the build is over; nobody's failure."""


@dataclass(frozen=True)
class Finished:
    """What a program that has ended left behind.

    Attributes:
        argv: The command as it was started.
        returncode: Its exit status.
        stdout, stderr: All that it printed, as UTF-8 with undecodable bytes replaced.
    """

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        """Whether the exit status is 0."""
        return self.returncode == 0


def run(
    argv: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Finished:
    """Runs a program to its end and returns what it printed; its failure is the caller's to judge.

    Args:
        argv: Program and arguments.
        cwd: Folder to run in; None for this process's own.
        env: The whole environment; None for this process's own.

    Raises:
        OSError: The program could not be started.
        EndedError: `end_all` was called meanwhile.
        KeyboardInterrupt: The user's; the program has been ended by then.
    """
    command = tuple(str(argument) for argument in argv)
    with _start(command, cwd, env) as child:
        try:
            stdout, stderr = child.communicate()
        except BaseException:
            _end(child)
            raise
        finally:
            with _lock:
                _live.discard(child)
    if _ending.is_set():
        raise EndedError(command[0])
    return Finished(
        command, child.returncode, stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace")
    )


def path(printed: str) -> Path:
    """A path out of what a program has printed: UTF-8, which this process's locale need not be."""
    return Path(os.fsdecode(printed.encode()))


def _start(
    command: tuple[str, ...], cwd: Path | None, env: Mapping[str, str] | None
) -> subprocess.Popen[bytes]:
    # Under the lock, so that no program starts behind the back of `end_all`.
    with _lock:
        if _ending.is_set():
            raise EndedError(command[0])
        child = subprocess.Popen(
            command,
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A group of its own: ending the program also ends what it started (cargo's rustc's).
            start_new_session=_POSIX,
        )
        _live.add(child)
        return child


def end_all() -> None:
    """Ends every program that is still running, with all that it started; no other can start.

    That holds until the block of `ending_children` is left.
    """
    with _lock:
        _ending.set()
        children = tuple(_live)
    for child in children:
        _end(child)


@contextlib.contextmanager
def ending_children() -> Iterator[None]:
    """Ends all programs when the block is left by an exception; SIGTERM counts as Ctrl-C in it."""
    previous = None
    if threading.current_thread() is threading.main_thread():
        previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    except BaseException:
        end_all()
        raise
    finally:
        _ending.clear()
        if previous is not None:
            signal.signal(signal.SIGTERM, previous)


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _end(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        if _POSIX:
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    child.wait()
