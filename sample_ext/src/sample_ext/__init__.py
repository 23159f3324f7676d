"""GPU kernels written in Rust (../kernels/src), as functions of torch tensors.

Each checks the shapes, since kernels that take pointers trust their caller, and launches on torch's
current stream. Types, devices and the contiguity of slices are checked by `kernels_cuda`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sample_ext import kernels_cuda

if TYPE_CHECKING:
    import torch

__all__ = ["histogram", "reduce_sum", "rmsnorm", "saxpy", "sgemm", "silu_and_mul", "softmax", "transpose"]

# The block sizes that the kernels are written for.
THREADS = 256
TILE = 64
TILE_THREADS = (16, 16)
PRODUCT_TILE = 128
# Blocks that share a long tensor: enough for every multiprocessor of the largest GPUs, several times.
MOST_BLOCKS = 1024


def saxpy(a: float, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Adds `a * x` to `y`, in place, and returns `y`; both f32 and contiguous, of equally many elements."""
    if x.numel() != y.numel():
        raise ValueError(f"saxpy: x has {x.numel()} elements, y has {y.numel()}")
    if y.numel():
        kernels_cuda.saxpy[_blocks(y.numel(), 4 * THREADS), THREADS](a, x, y)
    return y


def rmsnorm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Divides each row of `x` (f32 or bf16) by its root mean square, and multiplies it by `weight`.

    Rows lie along the last dimension; the rows of a matrix may be strided.
    """
    columns = _columns("rmsnorm", x)
    if weight.shape != (columns,):
        raise ValueError(f"rmsnorm: weight must have shape ({columns},), not {tuple(weight.shape)}")
    y = x.new_empty(x.shape)
    if y.numel():
        rows = _with_dense_rows(x.reshape(-1, columns))
        kernel = _of_dtype(x, f32=kernels_cuda.rmsnorm, bf16=kernels_cuda.rmsnorm_bf16)
        kernel[len(rows), _row_threads(columns, 16, most=512)](rows, rows.stride(0), weight, y, eps)
    return y


def softmax(x: torch.Tensor) -> torch.Tensor:
    """The softmax of `x` (f32 or bf16) over its last dimension."""
    columns = _columns("softmax", x)
    x = x.contiguous()
    y = x.new_empty(x.shape)
    if y.numel():
        kernel = _of_dtype(x, f32=kernels_cuda.softmax, bf16=kernels_cuda.softmax_bf16)
        kernel[y.numel() // columns, _row_threads(columns, 32, most=1024)](x, y, columns)
    return y


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    """`silu` of the first half of the last dimension of `x` (f16 or bf16), times the second half."""
    columns, odd = divmod(_columns("silu_and_mul", x), 2)
    if odd:
        raise ValueError(f"silu_and_mul: the last dimension must be even, not {x.shape[-1]}")
    x = x.contiguous()
    y = x.new_empty((*x.shape[:-1], columns))
    if y.numel():
        kernel = _of_dtype(x, f16=kernels_cuda.silu_and_mul_f16, bf16=kernels_cuda.silu_and_mul_bf16)
        kernel[y.numel() // columns, THREADS](x, y, columns)
    return y


def transpose(x: torch.Tensor) -> torch.Tensor:
    """The transpose of a matrix (f32), contiguous; the rows of `x` may be strided."""
    if x.ndim != 2:
        raise ValueError(f"transpose: x must have two dimensions, not {x.ndim}")
    rows, columns = x.shape
    x = _with_dense_rows(x)
    y = x.new_empty((columns, rows))
    if y.numel():
        grid = (_blocks(rows, TILE), _blocks(columns, TILE))
        kernels_cuda.transpose[grid, TILE_THREADS](x, x.stride(0), y, rows, columns)
    return y


def histogram(x: torch.Tensor, bins: int, low: float, high: float) -> torch.Tensor:
    """How many elements of `x` (f32, contiguous) lie in each of `bins` equal intervals from `low` to `high`.

    Elements outside are not counted. At most 12288 bins, which are 48 KiB of shared memory.
    """
    if bins < 1 or not low < high:
        raise ValueError(f"histogram: {bins} bins from {low} to {high}")
    counts = x.new_zeros(bins).int()
    blocks = max(1, min(MOST_BLOCKS, _blocks(x.numel(), 16 * THREADS)))
    kernels_cuda.histogram[blocks, THREADS, 4 * bins](x, low, high, counts, bins)
    return counts


def reduce_sum(x: torch.Tensor) -> torch.Tensor:
    """The sum of all elements of `x` (f32, contiguous), in one element; the same bits each time."""
    blocks = max(1, min(MOST_BLOCKS, _blocks(x.numel(), 16 * THREADS)))
    partial, total = x.new_empty(blocks), x.new_empty(1)
    kernels_cuda.reduce_sum[blocks, THREADS](x, partial)
    if blocks == 1:
        return partial
    kernels_cuda.reduce_sum[1, THREADS](partial, total)
    return total


def sgemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product of two matrices (f32)."""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"sgemm: shapes {tuple(a.shape)} and {tuple(b.shape)} cannot be multiplied")
    (m, k), n = a.shape, b.shape[1]
    a, b = a.contiguous(), b.contiguous()
    c = a.new_empty((m, n))
    if c.numel():
        grid = (_blocks(n, PRODUCT_TILE), _blocks(m, PRODUCT_TILE))
        kernels_cuda.sgemm[grid, THREADS](a, b, c, m, n, k)
    return c


def _blocks(elements: int, elements_per_block: int) -> int:
    return -(-elements // elements_per_block)


def _row_threads(columns: int, per_thread: int, most: int) -> int:
    """Threads for a row: one for so many elements, in whole warps."""
    return min(most, 32 * _blocks(columns, 32 * per_thread))


def _of_dtype(x: torch.Tensor, **kernels: Any) -> Any:
    """The kernel for the dtype of `x`."""
    names = {"torch.float32": "f32", "torch.float16": "f16", "torch.bfloat16": "bf16"}
    kernel = kernels.get(names.get(str(x.dtype), ""))
    if kernel is None:
        raise TypeError(f"x must be {' or '.join(kernels)}, not {x.dtype}")
    return kernel


def _columns(function: str, x: torch.Tensor) -> int:
    """The length of the last dimension."""
    if x.ndim == 0:
        raise ValueError(f"{function}: x must have at least one dimension")
    return x.shape[-1]


def _with_dense_rows(x: torch.Tensor) -> torch.Tensor:
    """`x`, or a copy where the elements of a row do not follow each other."""
    return x if x.stride(1) == 1 else x.contiguous()
