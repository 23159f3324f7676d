"""Runs every kernel on the GPU; prints its error against torch and its bandwidth beside a device copy."""

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
Tensors = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """One kernel to run.

    Attributes:
        name: The function's name.
        inputs: Makes inputs, the first of which is about as many bytes as given.
        run: The kernel's function on those inputs; returns its result.
        reference: The same in torch, on inputs in float64.
        traffic: Bytes that the kernel must read and write, per byte of its first input.
    """

    name: str
    inputs: Callable[[int], Tensors]
    run: Callable[..., Any]
    reference: Callable[..., Any]
    traffic: float


def normal(*shape: int, dtype: Any = torch.float32) -> Any:
    """Normally distributed values on the GPU."""
    return torch.randn(shape, device="cuda", dtype=dtype)


def vectors(size: int) -> Tensors:
    """Two f32 vectors."""
    return normal(size // 4), normal(size // 4)


def rows(size: int) -> Tensors:
    """An f32 matrix of long rows."""
    return (normal(size // 4 // ROW, ROW),)


def rows_and_weight(size: int) -> Tensors:
    """An f32 matrix of long rows, and one weight per column."""
    return (*rows(size), normal(ROW))


def half_rows(size: int) -> Tensors:
    """An f16 matrix: gate and value side by side."""
    return (normal(size // 2 // (2 * ROW), 2 * ROW, dtype=torch.float16),)


def square(size: int) -> Tensors:
    """A square f32 matrix."""
    side = math.isqrt(size // 4)
    return (normal(side, side),)


def torch_rmsnorm(x: Any, weight: Any) -> Any:
    """Each row divided by its root mean square, then scaled."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


def torch_silu_and_mul(x: Any) -> Any:
    """`silu` of the first half of each row, times the second."""
    gate, value = x.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * value


CASES = (
    Case("saxpy", vectors, lambda x, y: sample_ext.saxpy(2.0, x, y), lambda x, y: 2.0 * x + y, 3),
    Case("rmsnorm", rows_and_weight, lambda x, w: sample_ext.rmsnorm(x, w, 1e-6), torch_rmsnorm, 2),
    Case("softmax", rows, sample_ext.softmax, lambda x: x.softmax(-1), 2),
    Case("silu_and_mul", half_rows, sample_ext.silu_and_mul, torch_silu_and_mul, 1.5),
    Case("transpose", square, sample_ext.transpose, lambda x: x.T, 2),
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


def bandwidth(case: Case, size: int, runs: int) -> float:
    """Bytes per second that the kernel reads and writes."""
    sets = [case.inputs(size) for _ in range(2)]
    moved = case.traffic * sets[0][0].nbytes
    return moved / seconds(case.run, sets, runs)


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
    print(f"{'kernel':<14} {'error':>9} {'GB/s':>8} {'of copy':>8}")
    for case in CASES:
        error, speed = relative_error(case), bandwidth(case, size, args.runs)
        print(f"{case.name:<14} {error:9.1e} {speed / 1e9:8.0f} {speed / copy:8.0%}")
    print(f"{'device copy':<14} {'':>9} {copy / 1e9:8.0f} {'100%':>8}")
    print(f"error: largest difference from torch in float64, of the largest value; inputs of {args.mib} MiB")


if __name__ == "__main__":
    main()
