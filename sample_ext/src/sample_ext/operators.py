"""The kernels as operators of torch, with the grids and blocks that they are written for."""

from __future__ import annotations

from typing import Any

from sample_ext import kernels_cuda

THREADS = 256
TILE = 64
TILE_THREADS = (16, 16)
PRODUCT_TILE = 128
# Blocks that share a long tensor: enough for every multiprocessor of the largest GPUs, several times.
MOST_BLOCKS = 1024


def vector_blocks(x: Any) -> int:
    """Blocks that share a vector, of which each thread takes some packs."""
    return max(1, min(MOST_BLOCKS, _blocks(x.numel(), 16 * THREADS)))


def _blocks(elements: int, elements_per_block: int) -> int:
    return -(-elements // elements_per_block)


def _rows(y: Any, columns: int) -> int:
    return int(y.numel() // columns) if columns else 0


def _row_threads(columns: int, per_thread: int, most: int) -> int:
    """Threads for a row: one for so many elements, in whole warps."""
    return min(most, 32 * _blocks(columns, 32 * per_thread))


def _rmsnorm(kernel: Any, name: str) -> Any:
    return kernel.torch_op(
        f"sample_ext::{name}",
        grid=lambda _x, _stride, weight, y, _eps: _rows(y, weight.numel()),
        block=lambda _x, _stride, weight, _y, _eps: _row_threads(weight.numel(), 16, most=512),
    )


def _softmax(kernel: Any, name: str) -> Any:
    return kernel.torch_op(
        f"sample_ext::{name}",
        grid=lambda _x, y, columns: _rows(y, columns),
        block=lambda _x, _y, columns: _row_threads(columns, 32, most=1024),
    )


def _silu_and_mul(kernel: Any, name: str) -> Any:
    return kernel.torch_op(
        f"sample_ext::{name}", grid=lambda _x, y, columns: _rows(y, columns), block=THREADS
    )


saxpy = kernels_cuda.saxpy.torch_op(
    "sample_ext::saxpy",
    grid=lambda _a, _x, y: _blocks(y.numel(), 4 * THREADS),
    block=THREADS,
)
reduce_sum = kernels_cuda.reduce_sum.torch_op(
    "sample_ext::reduce_sum", grid=lambda _x, partial: partial.numel(), block=THREADS
)
histogram = kernels_cuda.histogram.torch_op(
    "sample_ext::histogram",
    grid=lambda x, _low, _high, _counts, _bins: vector_blocks(x),
    block=THREADS,
    shared=lambda _x, _low, _high, _counts, bins: 4 * bins,
)
rmsnorm = _rmsnorm(kernels_cuda.rmsnorm, "rmsnorm")
rmsnorm_bf16 = _rmsnorm(kernels_cuda.rmsnorm_bf16, "rmsnorm_bf16")
softmax = _softmax(kernels_cuda.softmax, "softmax")
softmax_bf16 = _softmax(kernels_cuda.softmax_bf16, "softmax_bf16")
silu_and_mul_f16 = _silu_and_mul(kernels_cuda.silu_and_mul_f16, "silu_and_mul_f16")
silu_and_mul_bf16 = _silu_and_mul(kernels_cuda.silu_and_mul_bf16, "silu_and_mul_bf16")
transpose = kernels_cuda.transpose.torch_op(
    "sample_ext::transpose",
    grid=lambda _x, _stride, _y, rows, columns: (_blocks(rows, TILE), _blocks(columns, TILE)),
    block=TILE_THREADS,
)
sgemm = kernels_cuda.sgemm.torch_op(
    "sample_ext::sgemm",
    grid=lambda _a, _b, _c, m, n, _k: (_blocks(n, PRODUCT_TILE), _blocks(m, PRODUCT_TILE)),
    block=THREADS,
)
