"""The sample's wheel on a GPU: each way to the driver, and the errors that users meet first."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("kernels_cuda")

SAMPLE_TESTS = Path(__file__).parents[2] / "sample_ext" / "tests"


def has_bindings() -> bool:
    try:
        return importlib.util.find_spec("cuda.bindings.driver") is not None
    except ModuleNotFoundError:
        return False


def run(arguments: list[str], folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Runs this Python in a folder where the checkout's sources do not hide the installed wheel."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("driver", ["ctypes", "cuda-bindings"])
def test_the_samples_own_tests_pass_on_each_driver(driver: str, tmp_path: Path) -> None:
    if driver == "cuda-bindings" and not has_bindings():
        pytest.skip("cuda-bindings is not installed")
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-c", os.devnull]
    done = run([*arguments, str(SAMPLE_TESTS)], tmp_path, RUSTCUDA_DRIVER=driver)
    assert done.returncode == 0, done.stdout + done.stderr
    closing = done.stdout.strip().splitlines()[-1]
    assert "passed" in closing
    assert "skipped" not in closing


def test_the_wheel_runs_where_cuda_python_cannot_be_imported(tmp_path: Path) -> None:
    """Nothing but torch: an import of `cuda` fails, and no variable names the driver."""
    code = """
import sys
sys.modules["cuda"] = None  # as if it were not installed
import torch, sample_ext
y = sample_ext.saxpy(2.0, torch.ones(1000, device="cuda"), torch.ones(1000, device="cuda"))
assert y.eq(3).all()
print("ran")
"""
    done = run(["-c", code], tmp_path, RUSTCUDA_DRIVER="")
    assert done.stdout.strip() == "ran", done.stderr


def test_a_tensor_on_the_host_is_refused(torch: Any, kernels_cuda: Any) -> None:
    x, y = torch.ones(8), torch.ones(8, device="cuda")
    with pytest.raises(kernels_cuda.ArgumentValueError, match=r"kernel 'saxpy', argument 'x'.*cpu"):
        kernels_cuda.saxpy[1, 32](1.0, x, y)


def test_a_tensor_of_another_dtype_is_refused(torch: Any, kernels_cuda: Any) -> None:
    x, y = torch.ones(8, device="cuda", dtype=torch.float64), torch.ones(8, device="cuda")
    with pytest.raises(kernels_cuda.ArgumentTypeError, match=r"kernel 'saxpy', argument 'x'.*float64"):
        kernels_cuda.saxpy[1, 32](1.0, x, y)
    assert y.eq(1).all()


def test_a_strided_tensor_is_refused_for_a_slice(torch: Any, kernels_cuda: Any) -> None:
    x, y = torch.ones(16, device="cuda")[::2], torch.ones(8, device="cuda")
    with pytest.raises(kernels_cuda.ArgumentValueError, match=r"argument 'x'.*contiguous"):
        kernels_cuda.saxpy[1, 32](1.0, x, y)


def test_too_large_a_block_is_refused(torch: Any, kernels_cuda: Any) -> None:
    x, y = torch.ones(8, device="cuda"), torch.ones(8, device="cuda")
    with pytest.raises(kernels_cuda.LaunchTooLarge, match="2048 threads"):
        kernels_cuda.saxpy[1, 2048](1.0, x, y)


def test_too_few_arguments_are_refused(kernels_cuda: Any) -> None:
    with pytest.raises(kernels_cuda.ArgumentTypeError, match=r"wanted 3 arguments \(a, x, y\)"):
        kernels_cuda.saxpy[1, 32](1.0)
