"""Runs every kernel on the GPU; prints its error, and its speed beside a device copy and beside torch."""

from __future__ import annotations

import argparse
import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

import sample_ext

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20
ROW = 4096
SIDE = 2048
# How many intervals, from where to where.
BINS = (256, -3.0, 3.0)
Tensors = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """One kernel to run.

    Attributes:
        name: The function's name, and which inputs it gets.
        inputs: Makes inputs, the first of which is about as many bytes as given.
        run: The kernel's function on those inputs; returns its result.
        reference: The same in torch.
        traffic: Bytes that the kernel must read and write, per byte of its first input; 0 where
            arithmetic takes the time, not memory.
        operations: Floating-point operations of one run, where arithmetic takes the time.
    """

    name: str
    inputs: Callable[[int], Tensors]
    run: Callable[..., Any]
    reference: Callable[..., Any]
    traffic: float = 0
    operations: float = 0


def normal(*shape: int, dtype: Any = torch.float32) -> Any:
    """Normally distributed values on the GPU."""
    return torch.randn(shape, device="cuda", dtype=dtype)


def vector(size: int) -> Tensors:
    """An f32 vector."""
    return (normal(size // 4),)


def vectors(size: int) -> Tensors:
    """Two f32 vectors."""
    return (*vector(size), *vector(size))


def rows(length: int, dtype: Any) -> Callable[[int], Tensors]:
    """A matrix of rows of that length."""
    return lambda size: (normal(size // dtype.itemsize // length, length, dtype=dtype),)


def rows_and_weight(dtype: Any) -> Callable[[int], Tensors]:
    """A matrix of long rows, and one weight per column."""
    return lambda size: (*rows(ROW, dtype)(size), normal(ROW, dtype=dtype))


def square(size: int) -> Tensors:
    """A square f32 matrix."""
    side = math.isqrt(size // 4)
    return (normal(side, side),)


def factors(_: int) -> Tensors:
    """Two f32 matrices to multiply, of a size of their own."""
    return normal(SIDE, SIDE), normal(SIDE, SIDE)


def torch_rmsnorm(x: Any, weight: Any) -> Any:
    """Each row divided by its root mean square, then scaled."""
    return torch.nn.functional.rms_norm(x, weight.shape, weight, 1e-6)


def torch_silu_and_mul(x: Any) -> Any:
    """`silu` of the first half of each row, times the second."""
    gate, value = x.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * value


def torch_softmax(x: Any) -> Any:
    """Over the last dimension."""
    return x.softmax(-1)


BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32
CASES = (
    Case("saxpy", vectors, lambda x, y: sample_ext.saxpy(2.0, x, y), lambda x, y: 2.0 * x + y, 3),
    Case("reduce_sum", vector, sample_ext.reduce_sum, torch.sum, 1),
    Case("histogram", vector, lambda x: sample_ext.histogram(x, *BINS), lambda x: torch.histc(x, *BINS), 1),
    Case("rmsnorm f32", rows_and_weight(F32), sample_ext.rmsnorm, torch_rmsnorm, 2),
    Case("rmsnorm bf16", rows_and_weight(BF16), sample_ext.rmsnorm, torch_rmsnorm, 2),
    Case("softmax 1k f32", rows(1024, F32), sample_ext.softmax, torch_softmax, 2),
    Case("softmax 1k bf16", rows(1024, BF16), sample_ext.softmax, torch_softmax, 2),
    Case("softmax 32k f32", rows(32768, F32), sample_ext.softmax, torch_softmax, 2),
    Case("softmax 32k bf16", rows(32768, BF16), sample_ext.softmax, torch_softmax, 2),
    Case("silu_and_mul f16", rows(2 * ROW, F16), sample_ext.silu_and_mul, torch_silu_and_mul, 1.5),
    Case("silu_and_mul bf16", rows(2 * ROW, BF16), sample_ext.silu_and_mul, torch_silu_and_mul, 1.5),
    Case("transpose", square, sample_ext.transpose, lambda x: x.T.contiguous(), 2),
    Case("sgemm", factors, sample_ext.sgemm, torch.mm, operations=2 * SIDE**3),
)


def relative_error(case: Case) -> float:
    """The largest difference from torch in float64, relative to the largest value."""
    inputs = case.inputs(16 * MIB)
    expected = case.reference(*(tensor.double() for tensor in inputs))
    difference = (case.run(*inputs).double() - expected).abs().max()
    return float(difference / expected.abs().max())


def seconds(call: Callable[..., Any], sets: list[Tensors], runs: int) -> float:
    """The median time on the GPU of one call, taken in turn on several sets of inputs.

    Sets that together are far larger than the L2 cache keep it from serving what the last call left.
    """
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(runs)]
    for inputs in sets:  # warm-up: loads the module, fills torch's memory pool
        call(*inputs)
    torch.cuda.synchronize()
    for index, (start, end) in enumerate(events):
        start.record()
        call(*sets[index % len(sets)])
        end.record()
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(end) for start, end in events) / 1e3


def copy_bandwidth(size: int, runs: int) -> float:
    """Bytes per second of a copy on the device, both directions counted."""
    sets = [(torch.empty(size, device="cuda", dtype=torch.uint8), normal(size // 4)) for _ in range(2)]
    return 2 * size / seconds(lambda to, source: to.copy_(source.view(torch.uint8)), sets, runs)


def row_of_table(case: Case, size: int, runs: int, copy: float) -> str:
    """Runs one case; `copy` is the bandwidth of a device copy."""
    sets = [case.inputs(size) for _ in range(2)]
    ours, theirs = seconds(case.run, sets, runs), seconds(case.reference, sets, runs)
    moved = case.traffic * sets[0][0].nbytes / ours
    rate = f"{moved / 1e9:8.0f} GB/s   " if moved else f"{case.operations / ours / 1e12:8.1f} TFLOP/s"
    share = f"{moved / copy:8.0%}" if moved else f"{'-':>8}"
    return f"{case.name:<18} {relative_error(case):9.1e} {rate} {share} {theirs / ours:9.2f}"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m sample_ext.demo", description=__doc__)
    parser.add_argument("--mib", type=int, default=256, help="size of a kernel's first input (default 256)")
    parser.add_argument("--runs", type=int, default=100, help="launches per kernel (default 100)")
    args = parser.parse_args()
    size = args.mib * MIB

    torch.manual_seed(0)
    major, minor = torch.cuda.get_device_capability()
    print(f"{torch.cuda.get_device_name()}, capability {major}.{minor}, torch {torch.__version__}")
    copy = copy_bandwidth(size, args.runs)
    print(f"{'kernel':<18} {'error':>9} {'speed':>16} {'of copy':>8} {'of torch':>9}")
    for case in CASES:
        print(row_of_table(case, size, args.runs, copy))
    print(f"{'device copy':<18} {'':>9} {copy / 1e9:8.0f} GB/s    {'100%':>8}")
    print(f"error: largest difference from torch in float64, of the largest value; inputs of {args.mib} MiB")
    print("of torch: torch's time for the same by ours")


if __name__ == "__main__":
    main()
