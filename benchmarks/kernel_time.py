"""Times the sample's kernels beside nvcc's build of the same code, on this machine's GPU.

Both builds run on the same geometry and the same tensors: what `sample_ext` launches is recorded, then
launched from the wheel and from kernels.cu in turn. Needs torch, nvcc, and the sample's wheel installed
for this GPU:

    python benchmarks/kernel_time.py [--nvcc /usr/local/cuda/bin/nvcc] [--mib 256] [--pairs 60]
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch

from sample_ext import demo, kernels_cuda

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE = Path(__file__).with_name("kernels.cu")
# The parameters of each kernel in kernels.cu. A slice is a pointer and its length, as in the Rust ABI.
PARAMETERS = {
    "saxpy": ("f32", "slice", "slice"),
    "rmsnorm": ("pointer", "u64", "slice", "pointer", "f32"),
    "rmsnorm_bf16": ("pointer", "u64", "slice", "pointer", "f32"),
    "softmax": ("pointer", "pointer", "u64"),
    "softmax_bf16": ("pointer", "pointer", "u64"),
    "silu_and_mul_f16": ("pointer", "pointer", "u64"),
    "silu_and_mul_bf16": ("pointer", "pointer", "u64"),
    "transpose": ("pointer", "u64", "pointer", "u64", "u64"),
    "reduce_sum": ("slice", "slice"),
    "histogram": ("slice", "f32", "f32", "pointer", "u32"),
    "sgemm": ("pointer", "pointer", "pointer", "u32", "u32", "u32"),
}
SCALARS: dict[str, Any] = {"f32": ctypes.c_float, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64}
DRIVER = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"


@dataclass(frozen=True)
class Launch:
    """What `sample_ext` launched.

    Attributes:
        kernel: The kernel's name.
        geometry: Grid, block, and the bytes of dynamic shared memory where there are any.
        arguments: The kernel's arguments as Python has them.
    """

    kernel: str
    geometry: tuple[Any, ...]
    arguments: tuple[Any, ...]


class Recorder:
    """Keeps what is launched instead of launching it."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []

    def record(self, kernel: Any, geometry: tuple[Any, ...]) -> Callable[..., None]:
        """What `kernel[geometry]` is meanwhile."""
        return lambda *arguments: self.launches.append(Launch(kernel.__name__, geometry, arguments))


class Cubin:
    """The kernels of a cubin, launched through the driver on torch's context and stream."""

    def __init__(self, image: bytes) -> None:
        torch.zeros(1, device="cuda")  # makes torch's context, and makes it this thread's
        self._driver = ctypes.CDLL(DRIVER)
        self._module = ctypes.c_void_p()
        self._check(self._driver.cuModuleLoadData(ctypes.byref(self._module), image))
        self._functions: dict[str, ctypes.c_void_p] = {}

    def launch(self, launch: Launch) -> None:
        """Launches the kernel of the same name."""
        grid, block, *rest = launch.geometry
        values = _flatten(PARAMETERS[launch.kernel], launch.arguments)
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        shared = rest[0] if rest else 0
        function = self._function(launch.kernel)
        self._check(
            self._driver.cuLaunchKernel(
                function, *_axes(grid), *_axes(block), shared, stream, pointers, ctypes.c_void_p()
            )
        )

    def _function(self, kernel: str) -> ctypes.c_void_p:
        if kernel not in self._functions:
            function = ctypes.c_void_p()
            name = kernel.encode()
            self._check(self._driver.cuModuleGetFunction(ctypes.byref(function), self._module, name))
            self._functions[kernel] = function
        return self._functions[kernel]

    @staticmethod
    def _check(status: int) -> None:
        if status:
            raise RuntimeError(f"the CUDA driver returned error {status}")


def _axes(size: Any) -> tuple[int, int, int]:
    x, y, z = (*(size if isinstance(size, tuple) else (size,)), 1, 1)[:3]
    return x, y, z


def _flatten(parameters: tuple[str, ...], arguments: tuple[Any, ...]) -> list[Any]:
    values: list[Any] = []
    for parameter, argument in zip(parameters, arguments, strict=True):
        if parameter in SCALARS:
            values.append(SCALARS[parameter](argument))
            continue
        values.append(ctypes.c_void_p(argument.data_ptr()))
        if parameter == "slice":
            values.append(ctypes.c_uint64(argument.numel()))
    return values


def record(case: demo.Case, size: int) -> Launch:
    """What the case's function launches on new inputs of about that many bytes; the first of several."""
    recorder = Recorder()

    def recorded(kernel: Any, geometry: tuple[Any, ...]) -> Callable[..., None]:
        return recorder.record(kernel, geometry)

    with mock.patch.object(type(kernels_cuda.saxpy), "__getitem__", recorded):
        case.run(*case.inputs(size))
    return recorder.launches[0]


def launch_wheel(launch: Launch) -> None:
    """Launches the wheel's kernel."""
    getattr(kernels_cuda, launch.kernel)[launch.geometry](*launch.arguments)


def compile_cuda(nvcc: str, flags: list[str]) -> bytes:
    """kernels.cu as a cubin for this GPU."""
    major, minor = torch.cuda.get_device_capability()
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernels.cubin"
        command = [nvcc, "-cubin", "-O3", f"-arch=sm_{major}{minor}", *flags, "-o", str(cubin), str(SOURCE)]
        subprocess.run(command, check=True)
        return cubin.read_bytes()


def difference(launch: Launch, other: Callable[[Launch], None]) -> float:
    """The largest difference between what both builds write, relative to the largest value."""
    results = []
    for run in (launch_wheel, other):
        arguments = [value.clone() if torch.is_tensor(value) else value for value in launch.arguments]
        run(Launch(launch.kernel, launch.geometry, tuple(arguments)))
        results.append([value.float() for value in arguments if torch.is_tensor(value)])
    return max(
        float((mine - theirs).abs().max() / theirs.abs().max()) for mine, theirs in zip(*results, strict=True)
    )


def paired(
    first: Callable[[Launch], None], second: Callable[[Launch], None], launches: list[Launch], pairs: int
) -> list[tuple[float, float]]:
    """Times both in turn; returns seconds on the GPU for every pair.

    Who goes first alternates, and no two launches in a row use the same tensors, so that neither gets
    from the L2 cache what the other left there.
    """
    for run in (first, second) * 3:  # warm-up
        run(launches[0])
    marks: list[dict[str, Any]] = []
    turn = 0
    for pair in range(pairs):
        order = [("first", first), ("second", second)]
        mark = {}
        for name, run in order if pair % 2 else reversed(order):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            run(launches[turn % len(launches)])
            end.record()
            mark[name] = (start, end)
            turn += 1
        marks.append(mark)
    torch.cuda.synchronize()
    return [
        (mark["first"][0].elapsed_time(mark["first"][1]) / 1e3,
         mark["second"][0].elapsed_time(mark["second"][1]) / 1e3)
        for mark in marks
    ]  # fmt: skip


def find_nvcc(given: str | None) -> str:
    """The nvcc named, or that of CUDA_HOME, PATH or /usr/local/cuda."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    in_home = str(Path(home) / "bin" / "nvcc") if home else None
    for candidate in (given, in_home, "nvcc", "/usr/local/cuda/bin/nvcc"):
        found = shutil.which(candidate) if candidate else None
        if found:
            return found
    sys.exit("no nvcc was found: name one with --nvcc")


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nvcc", help="the nvcc to compare with")
    parser.add_argument("--nvcc-flag", action="append", default=[], help="a further flag for nvcc")
    parser.add_argument("--mib", type=int, default=256, help="size of a kernel's first tensor (default 256)")
    parser.add_argument("--pairs", type=int, default=60, help="launches of each build (default 60)")
    args = parser.parse_args()
    size = args.mib * demo.MIB

    torch.manual_seed(0)
    nvcc = find_nvcc(args.nvcc)
    cuda = Cubin(compile_cuda(nvcc, args.nvcc_flag))
    version = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    print(f"{torch.cuda.get_device_name()}; {nvcc}: {version.strip().splitlines()[-1]}")
    copy = demo.copy_bandwidth(size, args.pairs)
    print(f"{'kernel':<18} {'differ':>8} {'Rust us':>9} {'nvcc us':>9} {'speed':>7} {'of copy':>8}")
    for case in demo.CASES:
        launches = [record(case, size) for _ in range(3)]
        differ = difference(launches[0], cuda.launch)
        times = paired(launch_wheel, cuda.launch, launches, args.pairs)
        rust, nvcc_time = (statistics.median(column) for column in zip(*times, strict=True))
        speed = statistics.median(theirs / ours for ours, theirs in times)
        moved = f"{case.traffic * size / rust / copy:8.0%}" if case.traffic else f"{'-':>8}"
        micros = f"{rust * 1e6:9.1f} {nvcc_time * 1e6:9.1f}"
        print(f"{case.name:<18} {differ:8.0e} {micros} {speed:7.3f} {moved}")
    print("speed: nvcc's time by Rust's, median of the pairs; of copy: bandwidth beside a copy on the device")
    print(f"device copy of {args.mib} MiB: {copy / 1e9:.0f} GB/s")


if __name__ == "__main__":
    main()
