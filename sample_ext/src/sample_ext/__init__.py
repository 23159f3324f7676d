"""Five GPU kernels written in Rust (../kernels/src), as functions of torch tensors.

The kernels themselves are in `sample_ext.kernels_cuda`, which works without torch, too.
"""

from __future__ import annotations

__all__ = ["rmsnorm", "saxpy", "silu_and_mul", "softmax", "transpose"]

try:
    from sample_ext.functions import rmsnorm, saxpy, silu_and_mul, softmax, transpose
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
