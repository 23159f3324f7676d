"""Programs: what they print comes back whole, and none outlives an interruption."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from rustcuda_backend import process


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_output_status_folder_and_environment(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd(), os.environ['X']); sys.stderr.write('ü'); sys.exit(3)"
    finished = process.run(python(code), cwd=tmp_path, env={"X": "y", "PYTHONUTF8": "1"})
    assert (finished.returncode, finished.ok) == (3, False)
    assert finished.stdout.split() == [str(tmp_path), "y"]
    assert finished.stderr == "ü"


def test_bytes_that_are_no_text_do_not_break_it() -> None:
    finished = process.run(python(r"import sys; sys.stdout.buffer.write(b'a\xffb')"))
    assert finished.ok
    assert finished.stdout == "a\ufffdb"


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        process.run(["/nonexistent/program"])


# A child that starts a grandchild; both hold the pipe open, and both say who they are.
_FAMILY = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open(sys.argv[1], "w") as stream:
    stream.write(f"{os.getpid()} {child.pid}\\n")
os.rename(sys.argv[1], sys.argv[1] + ".done")
child.wait()
"""


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def _start_family(folder: Path) -> tuple[threading.Thread, list[int], list[process.Finished]]:
    mark = folder / "pids"
    results: list[process.Finished] = []
    argv = [*python(_FAMILY), str(mark)]

    def work() -> None:
        with contextlib.suppress(process.EndedError):
            results.append(process.run(argv))

    thread = threading.Thread(target=work)
    thread.start()
    done = folder / "pids.done"
    while not done.exists():
        thread.join(0.01)
    return thread, [int(pid) for pid in done.read_text(encoding="ascii").split()], results


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_ending_all_ends_the_programs_and_what_they_started(tmp_path: Path) -> None:
    with process.ending_children():
        thread, pids, results = _start_family(tmp_path)
        process.end_all()
        thread.join()
        with pytest.raises(process.EndedError):
            process.run(python("print()"))
    assert results == []
    assert process.run(python("print()")).ok
    while any(_alive(pid) for pid in pids):
        thread.join(0.01)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_the_programs(tmp_path: Path, number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt), process.ending_children():  # noqa: PT012
        thread, pids, _ = _start_family(tmp_path)
        os.kill(os.getpid(), number)
        thread.join()
    thread.join()
    while any(_alive(pid) for pid in pids):
        thread.join(0.01)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_an_interruption_while_waiting_ends_that_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import subprocess

    def interrupted(_child: object, *_arguments: object) -> None:
        raise KeyboardInterrupt

    started: list[int] = []
    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    original = subprocess.Popen.__init__

    def remembering(self: subprocess.Popen[bytes], *arguments: object, **options: object) -> None:
        original(self, *arguments, **options)  # type: ignore[arg-type]
        started.append(self.pid)

    monkeypatch.setattr(subprocess.Popen, "__init__", remembering)
    with pytest.raises(KeyboardInterrupt):
        process.run(python("import time; time.sleep(600)"), cwd=tmp_path)
    assert not _alive(started[0])


def test_outside_the_main_thread_signals_are_left_alone() -> None:
    outcome: list[object] = []

    def work() -> None:
        with process.ending_children():
            outcome.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert outcome == [signal.SIG_DFL]
