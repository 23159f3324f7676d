"""Launches from threads of a Python that has no GIL; needs python3.13t or newer, but not torch."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

# Each thread adds its own number to its own vector. A launch that got another thread's arguments would
# leave two vectors with other sums; all of them are whole numbers below 2**24.
CODE = """if True:
    import ctypes, sys, threading
    from sample_ext import kernels_cuda

    assert not sys._is_gil_enabled()
    N, THREADS, LAUNCHES = 256, 8, 125_000
    driver = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        code = getattr(driver, name)(*arguments)
        assert code == 0, (name, code)

    class Vector:
        def __init__(self, value):
            address = ctypes.c_uint64()
            call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(4 * N))
            data = (ctypes.c_float * N)(*[value] * N)
            call("cuMemcpyHtoD_v2", address, data, ctypes.c_size_t(4 * N))
            self.address = address.value
            self.__cuda_array_interface__ = {
                "shape": (N,), "typestr": "<f4", "data": (self.address, False), "version": 3,
            }

        def values(self):
            data = (ctypes.c_float * N)()
            call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(self.address), ctypes.c_size_t(4 * N))
            return set(data)

    kernels_cuda.load(0)
    context = ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    x = Vector(1.0)
    sums = [Vector(0.0) for _ in range(THREADS)]
    launch = kernels_cuda.saxpy[1, 64]
    barrier = threading.Barrier(THREADS)

    def work(number):
        barrier.wait()
        for _ in range(LAUNCHES):
            launch(float(number), x, sums[number])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    call("cuCtxSynchronize")
    assert [one.values() for one in sums] == [{float(number * LAUNCHES)} for number in range(THREADS)]
    print("right")
"""


def test_a_million_launches_from_threads_without_gil_never_mix_arguments(
    tmp_path: Path, kernels_cuda: Any
) -> None:
    python = next(filter(None, map(shutil.which, ("python3.14t", "python3.13t"))), None)
    if python is None:
        pytest.skip("no Python without GIL: neither python3.14t nor python3.13t")
    folder = Path(kernels_cuda.__file__).parent
    # The package alone: what lies beside it may be for another Python.
    (tmp_path / folder.name).mkdir()
    (tmp_path / folder.name / "__init__.py").touch()
    for name in ("kernels_cuda.py", "kernels_cuda.fatbin"):
        shutil.copy(folder / name, tmp_path / folder.name)
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([python, "-c", CODE], env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("right\n", 0), done.stderr
