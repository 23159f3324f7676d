"""The kernels as operators of torch, with the grids and blocks that they are written for."""

from __future__ import annotations

from typing import Any

from sample_ext import kernels_cuda

THREADS = 256
TILE = 64
TILE_THREADS = (16, 16)


def _blocks(elements: int, elements_per_block: int) -> int:
    return -(-elements // elements_per_block)


def _rows(y: Any, columns: int) -> int:
    return int(y.numel() // columns) if columns else 0


def _row_threads(columns: int) -> int:
    """Threads for a row: one for every 16 elements, in whole warps."""
    return min(512, 32 * _blocks(columns, 32 * 16))


saxpy = kernels_cuda.saxpy.torch_op(
    "sample_ext::saxpy",
    grid=lambda _a, _x, y: _blocks(y.numel(), 4 * THREADS),
    block=THREADS,
)
rmsnorm = kernels_cuda.rmsnorm.torch_op(
    "sample_ext::rmsnorm",
    grid=lambda _x, _stride, weight, y, _eps: _rows(y, weight.numel()),
    block=lambda _x, _stride, weight, _y, _eps: _row_threads(weight.numel()),
)
softmax = kernels_cuda.softmax.torch_op(
    "sample_ext::softmax",
    grid=lambda _x, y, columns: _rows(y, columns),
    block=lambda _x, _y, columns: _row_threads(columns),
)
silu_and_mul = kernels_cuda.silu_and_mul.torch_op(
    "sample_ext::silu_and_mul",
    grid=lambda _x, y, columns: _rows(y, columns),
    block=THREADS,
)
transpose = kernels_cuda.transpose.torch_op(
    "sample_ext::transpose",
    grid=lambda _x, _stride, _y, rows, columns: (_blocks(rows, TILE), _blocks(columns, TILE)),
    block=TILE_THREADS,
)
