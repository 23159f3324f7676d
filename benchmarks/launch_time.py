"""Times launches of one kernel: the generated loader beside a loop in C and other ways from Python.

Everybody launches a kernel of four parameters (n: u32, x: *const f32, y: *mut f32, eps: f32) with the same
torch tensors on torch's current stream, taking turns within one run. Needs a GPU, torch and a C compiler; who
is not installed is left out (ours in C: `pip install ./launcher`). Nothing of Rust is needed: the kernel is
PTX, compiled by the driver.

    python benchmarks/launch_time.py [--rounds 41] [--launches 300]
"""

from __future__ import annotations

import argparse
import array
import ctypes
import importlib.util
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import timeit
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from rustcuda_backend.capability import parse_list
from rustcuda_backend.cuda_versions import cuda_version
from rustcuda_backend.loader.content import LoaderContent
from rustcuda_backend.loader.generate import generate
from rustcuda_backend.signature import KernelSignature, parse_type

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    # Launches that often, and returns how many seconds that took, without waiting for the GPU.
    Contender = Callable[[int], float]

N, EPS, BLOCK = 256, 1e-5, 256

# A kernel that ends at once: what is timed is the way to it.
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry four(.param .u32 n, .param .u64 x, .param .u64 y, .param .f32 eps)
{
    ret;
}
\0"""

C_LOOP = r"""
#include <time.h>
#include <stddef.h>
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                   void **, void **);
double loop(void *function, void *stream, unsigned n, void *x, void *y, float eps, int times) {
    struct timespec begin, end;
    int failed = 0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < times; i++) {
        void *parameters[] = {&n, &x, &y, &eps};
        failed |= cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, stream, parameters, NULL);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return failed ? -1.0 : (end.tv_sec - begin.tv_sec) + (end.tv_nsec - begin.tv_nsec) * 1e-9;
}
int cuLaunchKernelEx(const void *, void *, void **, void **);
struct config { unsigned grid[3], block[3], shared; void *stream, *attributes; unsigned count; };
double loop_ex(void *function, void *stream, unsigned n, void *x, void *y, float eps, int times) {
    struct timespec begin, end;
    struct config config = {{1, 1, 1}, {256, 1, 1}, 0, stream, NULL, 0};
    int failed = 0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < times; i++) {
        void *parameters[] = {&n, &x, &y, &eps};
        failed |= cuLaunchKernelEx(&config, function, parameters, NULL);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return failed ? -1.0 : (end.tv_sec - begin.tv_sec) + (end.tv_nsec - begin.tv_nsec) * 1e-9;
}
"""

EXTENSION = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda.h>
void launch(int64_t function, int64_t n, const torch::Tensor &x, torch::Tensor y, double eps) {
    TORCH_CHECK(x.is_cuda() && y.is_cuda(), "tensors must be on a GPU");
    TORCH_CHECK(x.scalar_type() == torch::kFloat && y.scalar_type() == torch::kFloat, "tensors must be f32");
    TORCH_CHECK(x.device() == y.device(), "tensors must be on one GPU");
    TORCH_CHECK(x.is_contiguous() && y.is_contiguous(), "tensors must be contiguous");
    TORCH_CHECK(n >= 0 && n <= 0xffffffffLL, "n is out of range");
    unsigned count = n;
    float small = eps;
    void *from = x.data_ptr(), *to = y.data_ptr();
    void *parameters[] = {&count, &from, &to, &small};
    CUstream stream = c10::cuda::getCurrentCUDAStream(x.get_device()).stream();
    CUfunction kernel = (CUfunction)function;
    CUresult result = cuLaunchKernel(kernel, 1, 1, 1, 256, 1, 1, 0, stream, parameters, nullptr);
    TORCH_CHECK(result == CUDA_SUCCESS, "cuLaunchKernel failed: ", (int)result);
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("launch", &launch); }
"""


class NotHereError(Exception):
    """A contender that cannot run on this machine; the text says why."""


@dataclass(frozen=True)
class Bench:
    """What the contenders share.

    Attributes:
        folder: A temporary folder.
        x, y: The tensors.
        function: The kernel's handle, loaded through ctypes.
    """

    folder: Path
    x: torch.Tensor
    y: torch.Tensor
    function: int


def load_function() -> int:
    """The kernel in torch's context."""
    driver = ctypes.CDLL("libcuda.so.1")
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    for code in (
        driver.cuModuleLoadData(ctypes.byref(module), PTX),
        driver.cuModuleGetFunction(ctypes.byref(function), module, b"four"),
    ):
        if code:
            sys.exit(f"the CUDA driver returned error {code} when it loaded the kernel")
    return int(function.value or 0)


def repeated(statement: str, **names: Any) -> Contender:
    """Times a statement in a loop, with no function of ours around it."""
    return timeit.Timer(statement, globals={"N": N, "EPS": EPS, "BLOCK": BLOCK, **names}).timeit


def imported(name: str) -> ModuleType:
    """A module that may be missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise NotHereError("not installed") from error


# ---- The contenders. Each launches with the very arguments a user has: tensors, an int and a float. ----


def c_loop(bench: Bench, name: str) -> Contender:
    """The driver itself."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        sys.exit("a C compiler is needed: cc or gcc")
    source, library = bench.folder / f"{name}.c", bench.folder / f"{name}.so"
    source.write_text(C_LOOP, encoding="utf-8")
    # The driver library is in the process already, so the symbol needs no library to come from.
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
    loop = getattr(ctypes.CDLL(str(library)), name)
    pointer = ctypes.c_void_p
    loop.argtypes = (pointer, pointer, ctypes.c_uint, pointer, pointer, ctypes.c_float, ctypes.c_int)
    loop.restype = ctypes.c_double
    x, y = bench.x.data_ptr(), bench.y.data_ptr()

    def contender(times: int) -> float:
        stream = torch.cuda.current_stream().cuda_stream
        seconds: float = loop(bench.function, stream, N, x, y, EPS, times)
        if seconds < 0:
            sys.exit("cuLaunchKernel failed in the loop in C")
        return seconds

    return contender


def raw_bindings(bench: Bench) -> Contender:
    """cuda.bindings, with everything prepared and nothing checked."""
    driver = imported("cuda.bindings.driver")
    block = array.array("Q", bytes(64))
    address = block.buffer_info()[0]
    block[:4] = array.array("Q", [address + 32 + 8 * index for index in range(4)])
    return repeated(
        "pack_into(block, 32, N, x.data_ptr(), y.data_ptr(), EPS);"
        "launch(function, 1, 1, 1, BLOCK, 1, 1, 0, stream_of(0), address, 0)",
        pack_into=struct.Struct("<I4xQQf4x").pack_into, launch=driver.cuLaunchKernel, block=block,
        stream_of=torch._C._cuda_getCurrentRawStream, address=address,
        function=driver.CUfunction(bench.function), x=bench.x, y=bench.y,
    )  # fmt: skip


def extension(bench: Bench) -> Contender:
    """An extension in C++ that checks what the loader checks."""
    try:
        from torch.utils import cpp_extension

        built: Any = cpp_extension.load_inline(
            "launch_time_extension", EXTENSION, with_cuda=True, build_directory=str(bench.folder)
        )
    # Compilers, headers, ninja: anything may be missing.
    except Exception as error:
        raise NotHereError(f"cannot be built: {str(error).strip().splitlines()[-1][:60]}") from error
    return repeated(
        "launch(function, N, x, y, EPS)", launch=built.launch, function=bench.function, x=bench.x, y=bench.y
    )


def cuda_core(bench: Bench) -> Contender:
    """NVIDIA's cuda.core."""
    numpy = imported("numpy")
    try:
        core = imported("cuda.core")
        core = core if hasattr(core, "Device") else imported("cuda.core.experimental")
    except NotHereError:
        core = imported("cuda.core.experimental")
    device = core.Device(0)
    device.set_current()
    kernel = core.ObjectCode.from_ptx(PTX[:-1]).get_kernel("four")
    stream = core.Stream.from_handle(torch.cuda.current_stream().cuda_stream)
    return repeated(
        "launch(stream, config, kernel, u32(N), x.data_ptr(), y.data_ptr(), f32(EPS))",
        launch=core.launch, stream=stream, config=core.LaunchConfig(grid=1, block=BLOCK), kernel=kernel,
        u32=numpy.uint32, f32=numpy.float32, x=bench.x, y=bench.y,
    )  # fmt: skip


def cupy(bench: Bench) -> Contender:
    """CuPy's RawKernel on CuPy's arrays."""
    cp = imported("cupy")
    numpy = imported("numpy")
    path = bench.folder / "four.ptx"
    path.write_bytes(PTX[:-1])
    kernel = cp.RawModule(path=str(path)).get_function("four")
    return repeated(
        "kernel((1,), (BLOCK,), (u32(N), x, y, f32(EPS)))",
        kernel=kernel, u32=numpy.uint32, f32=numpy.float32, x=cp.asarray(bench.x), y=cp.asarray(bench.y),
    )  # fmt: skip


def triton(bench: Bench) -> Contender:
    """Triton."""
    imported("triton")
    source = bench.folder / "triton_four.py"  # Triton reads its kernels' sources
    text = "import triton\n\n@triton.jit\ndef four(n, x, y, eps):\n    return\n"
    source.write_text(text, encoding="utf-8")
    sys.path.insert(0, str(bench.folder))
    kernel = importlib.import_module("triton_four").four
    return repeated("kernel[(1,)](N, x, y, EPS)", kernel=kernel, x=bench.x, y=bench.y)


def generated(bench: Bench, driver: str, launcher: str = "python") -> Any:
    """A generated module of its own for one way to the driver, launching from Python or C."""
    if launcher == "c":
        imported("rustcuda_launch")
    name = f"ours_{launcher}_{driver.replace('-', '_')}"
    signature = KernelSignature(
        "four",
        tuple(
            parse_type(*text.split(": ")) for text in ("n: u32", "x: *const f32", "y: *mut f32", "eps: f32")
        ),
    )
    loader = generate(
        LoaderContent(
            module=f"{name}.kernels_cuda", signatures=(signature,), lacking={}, fatbin=PTX,
            capabilities=parse_list("7.0+PTX"), version=cuda_version("12.9"), generator="launch_time.py",
        )
    )  # fmt: skip
    package = bench.folder / name
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "kernels_cuda.py").write_text(loader.python, encoding="utf-8")
    (package / "kernels_cuda.fatbin").write_bytes(PTX)
    sys.path.insert(0, str(bench.folder))
    module = importlib.import_module(f"{name}.kernels_cuda")
    os.environ.update(RUSTCUDA_DRIVER=driver, RUSTCUDA_LAUNCHER=launcher)
    try:
        module.load(0)
        # Finds out what launches it.
        module.four[1, BLOCK]
    except module.NoDriver as error:
        raise NotHereError("cuda-bindings is not installed") from error
    finally:
        del os.environ["RUSTCUDA_DRIVER"], os.environ["RUSTCUDA_LAUNCHER"]
    return module


def kept(bench: Bench, module: Any) -> Contender:
    """`launch = kernel[grid, block]`, kept."""
    return repeated("launch(N, x, y, EPS)", launch=module.four[1, BLOCK], x=bench.x, y=bench.y)


def one_shot(bench: Bench, module: Any) -> Contender:
    """`kernel[grid, block](…)`."""
    return repeated("kernel[1, BLOCK](N, x, y, EPS)", kernel=module.four, x=bench.x, y=bench.y)


def contenders(bench: Bench) -> dict[str, Contender | str]:
    """Who takes part, and why others do not."""
    modules: dict[tuple[str, ...], Any] = {}

    def ours(way: Callable[[Bench, Any], Contender], *how: str) -> Contender:
        if how not in modules:
            modules[how] = generated(bench, *how)
        return way(bench, modules[how])

    makers: dict[str, Callable[[], Contender]] = {
        "C loop": lambda: c_loop(bench, "loop"),
        "C loop, cuLaunchKernelEx": lambda: c_loop(bench, "loop_ex"),
        "cuda.bindings, unchecked": lambda: raw_bindings(bench),
        "ours, kept": lambda: ours(kept, "cuda-bindings"),
        "ours, one-shot": lambda: ours(one_shot, "cuda-bindings"),
        "ours, ctypes, kept": lambda: ours(kept, "ctypes"),
        "ours, ctypes, one-shot": lambda: ours(one_shot, "ctypes"),
        "ours, in C, kept": lambda: ours(kept, "ctypes", "c"),
        "ours, in C, one-shot": lambda: ours(one_shot, "ctypes", "c"),
        "cuda.core": lambda: cuda_core(bench),
        "CuPy": lambda: cupy(bench),
        "torch extension (pybind11)": lambda: extension(bench),
        "Triton": lambda: triton(bench),
        "torch.add, for scale": lambda: repeated("add(x, x, out=y)", add=torch.add, x=bench.x, y=bench.y),
    }
    return {name: attempted(maker, must=name.startswith(("ours", "C "))) for name, maker in makers.items()}


def attempted(maker: Callable[[], Contender], *, must: bool) -> Contender | str:
    """A contender that has launched a few times, or why there is none."""
    try:
        contender = maker()
        contender(3)
        torch.cuda.synchronize()
    except NotHereError as reason:
        return str(reason)
    # A rival's own trouble must not end the others' measurement.
    except Exception as error:
        if must:
            raise
        return f"fails: {type(error).__name__}: {str(error).strip()[:60]}"
    return contender


def measure(running: dict[str, Contender], rounds: int, launches: int) -> dict[str, list[float]]:
    """Microseconds a launch in every round; in each, all take their turns from another beginning."""
    times: dict[str, list[float]] = {name: [] for name in running}
    names = list(running)
    for turn in range(rounds + 2):
        for place in range(len(names)):
            name = names[(turn + place) % len(names)]
            torch.cuda.synchronize()
            # More launches than the GPU takes in at once would have to wait for it.
            seconds = running[name](launches)
            if turn >= 2:  # the first are for warming up
                times[name].append(seconds / launches * 1e6)
    torch.cuda.synchronize()
    return times


def start_costs(bench: Bench, launcher: str) -> str:
    """What importing a generated module costs, and its first launch beyond cuModuleLoadData."""
    code = """if True:
        import time, sys, torch
        x, y = torch.ones(256, device="cuda"), torch.ones(256, device="cuda")
        torch.cuda.synchronize()
        sys.path.insert(0, sys.argv[1])
        now = time.perf_counter
        begin = now()
        from ours_python_ctypes import kernels_cuda
        imported = now() - begin
        spent, load = [], kernels_cuda._CtypesDriver.load_module
        def timed(*arguments):
            begin = now()
            module = load(*arguments)
            spent.append(now() - begin)
            return module
        kernels_cuda._CtypesDriver.load_module = timed
        begin = now()
        kernels_cuda.four[1, 256](256, x, y, 1e-5)
        first = now() - begin
        print(imported * 1e3, (first - sum(spent)) * 1e3)
    """
    rows = []
    for _ in range(9):
        command = [sys.executable, "-c", code, str(bench.folder)]
        environ = {**os.environ, "RUSTCUDA_DRIVER": "ctypes", "PYTHONDONTWRITEBYTECODE": ""}
        environ["RUSTCUDA_LAUNCHER"] = launcher
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
        rows.append([float(word) for word in done.stdout.split()])
    imports, firsts = ([row[column] for row in rows[1:]] for column in range(2))
    return (
        f"launching from {launcher}: import {statistics.median(imports):.2f} ms, "
        f"first launch {statistics.median(firsts):.2f} ms beyond cuModuleLoadData (medians of {len(imports)})"
    )


def table(found: dict[str, Contender | str], times: dict[str, list[float]]) -> str:
    """The table: medians, tenths at both ends, and the median ratio to the loop in C."""
    lines = [f"{'':<28} {'median':>7} {'10%':>7} {'90%':>7} {'by C':>6}"]
    for name, contender in found.items():
        if isinstance(contender, str):
            lines.append(f"{name:<28} {contender}")
            continue
        own = sorted(times[name])
        low, high = own[len(own) // 10], own[-1 - len(own) // 10]
        ratio = statistics.median(a / b for a, b in zip(times[name], times["C loop"], strict=True))
        lines.append(f"{name:<28} {statistics.median(own):7.2f} {low:7.2f} {high:7.2f} {ratio:6.2f}")
    return "\n".join(lines)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=41, help="turns of each (default 41)")
    parser.add_argument("--launches", type=int, default=300, help="launches in a turn (default 300)")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("torch sees no NVIDIA GPU")
    x, y = (torch.ones(N, device="cuda") for _ in range(2))
    torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), x, y, load_function())
        found = contenders(bench)
        running = {name: contender for name, contender in found.items() if not isinstance(contender, str)}
        times = measure(running, args.rounds, args.launches)
        print(f"{torch.cuda.get_device_name()}; torch {torch.__version__}; Python {sys.version.split()[0]}")
        print(f"microseconds a launch, {args.rounds} rounds of {args.launches}")
        print(table(found, times))
        print("by C: time by the C loop's in the same round, median")
        for launcher in ("python", "c") if importlib.util.find_spec("rustcuda_launch") else ("python",):
            print(start_costs(bench, launcher))


if __name__ == "__main__":
    main()
