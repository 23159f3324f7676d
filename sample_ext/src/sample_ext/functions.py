"""The functions: what they check, what they launch, and their gradients.

Each checks the shapes, since kernels that take pointers trust their caller. Types, devices and the contiguity
of slices are checked by `kernels_cuda`. Kernels are launched through operators of torch (`operators`), so
that the functions can be compiled and exported; gradients are formulas of torch's own operations.
"""

from __future__ import annotations

from typing import Any

import torch

from sample_ext import operators


def saxpy(a: float, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Adds `a * x` to `y`, in place, and returns `y`; both f32 and contiguous, of equally many elements."""
    if x.numel() != y.numel():
        raise ValueError(f"saxpy: x has {x.numel()} elements, y has {y.numel()}")
    if torch.is_grad_enabled() and (x.requires_grad or y.requires_grad):
        result: torch.Tensor = _Saxpy.apply(a, x, y)
        return result
    operators.saxpy(a, x, y)
    return y


def rmsnorm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Divides each row of `x` (f32 or bf16) by its root mean square, and multiplies it by `weight`.

    Rows lie along the last dimension; the rows of a matrix may be strided.
    """
    columns = _columns("rmsnorm", x)
    if weight.shape != (columns,):
        raise ValueError(f"rmsnorm: weight must have shape ({columns},), not {tuple(weight.shape)}")
    result: torch.Tensor = _RmsNorm.apply(x, weight, eps)
    return result


def softmax(x: torch.Tensor) -> torch.Tensor:
    """The softmax of `x` (f32 or bf16) over its last dimension."""
    _columns("softmax", x)
    result: torch.Tensor = _Softmax.apply(x)
    return result


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    """`silu` of the first half of the last dimension of `x` (f16 or bf16), times the second half."""
    if _columns("silu_and_mul", x) % 2:
        raise ValueError(f"silu_and_mul: the last dimension must be even, not {x.shape[-1]}")
    result: torch.Tensor = _SiluAndMul.apply(x)
    return result


def transpose(x: torch.Tensor) -> torch.Tensor:
    """The transpose of a matrix (f32), contiguous; the rows of `x` may be strided."""
    if x.ndim != 2:
        raise ValueError(f"transpose: x must have two dimensions, not {x.ndim}")
    result: torch.Tensor = _Transpose.apply(x)
    return result


def histogram(x: torch.Tensor, bins: int, low: float, high: float) -> torch.Tensor:
    """How many elements of `x` (f32, contiguous) lie in each of `bins` equal intervals from `low` to `high`.

    Elements outside are not counted. A block needs 4 bytes of shared memory for each of the `bins`.
    """
    if bins < 1 or not low < high:
        raise ValueError(f"histogram: {bins} bins from {low} to {high}")
    counts = torch.zeros(bins, dtype=torch.int32, device=x.device)
    operators.histogram(x, low, high, counts, bins)
    return counts


def reduce_sum(x: torch.Tensor) -> torch.Tensor:
    """The sum of all elements of `x` (f32, contiguous), in one element; the same bits each time."""
    result: torch.Tensor = _ReduceSum.apply(x)
    return result


def sgemm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product of two matrices (f32)."""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"sgemm: shapes {tuple(a.shape)} and {tuple(b.shape)} cannot be multiplied")
    result: torch.Tensor = _Sgemm.apply(a, b)
    return result


class _Saxpy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: float, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        ctx.a = a
        ctx.shape = x.shape
        ctx.mark_dirty(y)
        operators.saxpy(a, x, y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return None, ctx.a * grad.reshape(ctx.shape), grad


class _RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        y = x.new_empty(x.shape)
        rows = _with_dense_rows(x.reshape(-1, x.shape[-1])) if x.numel() else x
        operator = _of_dtype(x, f32=operators.rmsnorm, bf16=operators.rmsnorm_bf16)
        operator(rows, rows.stride(0), weight, y, eps)
        return y

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        inverse = torch.rsqrt(x.square().mean(-1, keepdim=True) + ctx.eps)
        normal, weighted = x * inverse, grad * weight
        grad_x = inverse * (weighted - normal * (weighted * normal).mean(-1, keepdim=True))
        grad_weight = (grad * normal).reshape(-1, x.shape[-1]).sum(0)
        return grad_x, grad_weight, None


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = x.new_empty(x.shape)
        operator = _of_dtype(x, f32=operators.softmax, bf16=operators.softmax_bf16)
        operator(x, y, x.shape[-1])
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (y,) = ctx.saved_tensors
        return (grad - (grad * y).sum(-1, keepdim=True)) * y


class _SiluAndMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        x = x.contiguous()
        columns = x.shape[-1] // 2
        y = x.new_empty((*x.shape[:-1], columns))
        operator = _of_dtype(x, f16=operators.silu_and_mul_f16, bf16=operators.silu_and_mul_bf16)
        operator(x, y, columns)
        return y

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        gate, value = x.float().chunk(2, dim=-1)
        sigmoid = torch.sigmoid(gate)
        silu = gate * sigmoid
        grad_gate = grad * value * (sigmoid + silu * (1 - sigmoid))
        return torch.cat((grad_gate, grad * silu), dim=-1).to(x.dtype)


class _Transpose(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:  # noqa: ARG004
        rows, columns = x.shape
        x = _with_dense_rows(x)
        y = x.new_empty((columns, rows))
        operators.transpose(x, x.stride(0), y, rows, columns)
        return y

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:  # noqa: ARG004
        result: torch.Tensor = _Transpose.apply(grad)
        return result


class _ReduceSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.shape = x.shape
        partial = x.new_empty(operators.vector_blocks(x))
        operators.reduce_sum(x, partial)
        if partial.numel() == 1:
            return partial
        total = x.new_empty(1)
        operators.reduce_sum(partial, total)
        return total

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad.reshape(()).expand(ctx.shape)


class _Sgemm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(a, b)
        (m, k), n = a.shape, b.shape[1]
        c = a.new_empty((m, n))
        operators.sgemm(a.contiguous(), b.contiguous(), c, m, n, k)
        return c

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        a, b = ctx.saved_tensors
        return _Sgemm.apply(grad, b.T), _Sgemm.apply(a.T, grad)


def _of_dtype(x: torch.Tensor, **operators_of: Any) -> Any:
    """The operator for the dtype of `x`."""
    names = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}
    operator = operators_of.get(names.get(x.dtype, ""))
    if operator is None:
        raise TypeError(f"x must be {' or '.join(operators_of)}, not {x.dtype}")
    return operator


def _columns(function: str, x: torch.Tensor) -> int:
    """The length of the last dimension."""
    if x.ndim == 0:
        raise ValueError(f"{function}: x must have at least one dimension")
    return x.shape[-1]


def _with_dense_rows(x: torch.Tensor) -> torch.Tensor:
    """`x`, or a copy where the elements of a row do not follow each other."""
    return x if x.stride(1) == 1 else x.contiguous()
