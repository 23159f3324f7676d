"""rustcuda_device::debug, and panics, on a GPU. What kernels print, another process has to say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("intrinsics")

HEAD = """\
import torch
from rustcuda_intrinsics import kernels_cuda, panics_cuda
x = torch.full((8,), 1.5, device="cuda")
"""


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a Python of its own, which waits for the GPU at its end."""
    return subprocess.run(
        [sys.executable, "-c", f"{HEAD}{code}\ntorch.cuda.synchronize()\n"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def printed(folder: Path, code: str) -> list[str]:
    done = run(folder, code)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_format_is_printed(tmp_path: Path) -> None:
    code = """
out = torch.zeros(1, dtype=torch.int32, device="cuda")
kernels_cuda.debug_printf[1, 1](x, out)
torch.cuda.synchronize()
assert out.item() == 4, out.item()
"""
    assert printed(tmp_path, code) == [
        "-1 200 -9223372036854775808 18446744073709551615",
        "ffff 0xFF 10 -0000042 [7     ] [     7] +7",
        "1.500 1.234500e+03 1     1.50 0.25",
        "100 % {braces} text",
        "plain",
        "0 0",
    ]


def test_formats_mean_what_they_mean_in_rust(tmp_path: Path) -> None:
    assert printed(tmp_path, "kernels_cuda.debug_printf_shapes[1, 1]()") == [
        "[ab] b1c-2 [0x0] [0x00002a] [0o7   ] +ff +5",
        "[left    ] [   right] 0.500",
    ]


def test_each_thread_prints_its_own_line(tmp_path: Path) -> None:
    lines = printed(tmp_path, "kernels_cuda.debug_printf_threads[2, 64]()")
    assert sorted(lines) == sorted(f"thread {number}" for number in range(128))


def test_an_assertion_that_holds_says_nothing(tmp_path: Path) -> None:
    assert printed(tmp_path, "kernels_cuda.debug_assert[1, 8](x)") == []


def test_an_assertion_that_fails_says_where(tmp_path: Path) -> None:
    done = run(tmp_path, "x[3] = -1\nkernels_cuda.debug_assert[1, 8](x)")
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert "src/debug.rs:" in said
    assert "no root of a negative number" in said
    assert "[3,0,0]" in said


def test_a_trap_ends_the_launch_in_an_error(tmp_path: Path) -> None:
    assert run(tmp_path, "kernels_cuda.debug_trap[1, 1](False)").returncode == 0
    assert run(tmp_path, "kernels_cuda.debug_trap[1, 1](True)").returncode != 0


def test_a_breakpoint_that_is_not_reached_does_nothing(intrinsics: Any, torch: Any) -> None:
    intrinsics.debug_breakpoint[1, 32](False)
    torch.cuda.synchronize()


def test_clocks_go_forward(intrinsics: Any, torch: Any) -> None:
    x = torch.ones(1, device="cuda")
    out = torch.zeros(4, dtype=torch.uint64, device="cuda")
    intrinsics.debug_clocks[1, 1](x, out)
    cycles, nanoseconds, later_cycles, later_nanoseconds = out.tolist()
    assert later_cycles - cycles > 1000
    assert 0 <= later_nanoseconds - nanoseconds < 10**9


def test_an_index_out_of_bounds_ends_the_launch(tmp_path: Path) -> None:
    for module, kernel in (("kernels_cuda", "debug_out_of_bounds"), ("panics_cuda", "panic_index")):
        code = f"{module}.{kernel}[1, 1](x, torch.empty_like(x), "
        assert printed(tmp_path, code + "7)") == []
        assert run(tmp_path, code + "8)").returncode != 0


def test_a_panic_says_what_and_where(tmp_path: Path) -> None:
    done = run(tmp_path, "panics_cuda.panic_index[1, 1](x, torch.empty_like(x), 9)")
    assert done.returncode != 0
    assert "block (0, 0, 0), thread (0, 0, 0) panicked at src/lib.rs:" in done.stdout
    assert "index out of bounds: the len is 8 but the index is 9\n" in done.stdout


def test_an_assertion_of_rust_prints_its_message(tmp_path: Path) -> None:
    assert printed(tmp_path, "panics_cuda.panic_assert[1, 1](99)") == []
    done = run(tmp_path, "panics_cuda.panic_assert[1, 1](100)")
    assert done.returncode != 0
    assert "100 is not small\n" in done.stdout


def test_too_little_shared_memory_is_a_panic(tmp_path: Path) -> None:
    code = """
out = torch.zeros(1, dtype=torch.uint32, device="cuda")
panics_cuda.panic_shared[1, 1, {}](out)
torch.cuda.synchronize()
print(out.tolist())
"""
    assert printed(tmp_path, code.format(16)) == ["[16]"]
    done = run(tmp_path, code.format(15))
    assert done.returncode != 0
    assert "the launch has given too little shared memory\n" in done.stdout
