"""GPU kernels written in Rust (../kernels/src), as functions of torch tensors.

The kernels themselves are in `sample_ext.kernels_cuda`, which works without torch, too.
"""

from __future__ import annotations

__all__ = ["histogram", "reduce_sum", "rmsnorm", "saxpy", "sgemm", "silu_and_mul", "softmax", "transpose"]

try:
    from sample_ext.functions import (
        histogram,
        reduce_sum,
        rmsnorm,
        saxpy,
        sgemm,
        silu_and_mul,
        softmax,
        transpose,
    )
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
