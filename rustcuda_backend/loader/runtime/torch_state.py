"""What the loader knows of torch, once the process has imported it; it never does so itself."""

from __future__ import annotations

import sys as _sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# torch's names of the dtypes that Rust has, too.
_TORCH_DTYPES = {
    "bool": "bool", "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16", "int32": "i32",
    "uint32": "u32", "int64": "i64", "uint64": "u64", "float16": "f16", "bfloat16": "bf16",
    "float32": "f32", "float64": "f64",
}  # fmt: skip


class _Torch:
    """torch's dtypes by their Rust names, and two of its functions; all None before torch is there.

    None is no tensor's dtype: launches before that go the way that looks at all kinds of arguments.
    """

    __slots__ = (
        "bf16",
        "bool",
        "f16",
        "f32",
        "f64",
        "grad_enabled",
        "i8",
        "i16",
        "i32",
        "i64",
        "module",
        "raw_stream",
        "u8",
        "u16",
        "u32",
        "u64",
    )  # fmt: skip

    def __init__(self) -> None:
        for slot in self.__slots__:
            setattr(self, slot, None)
        self.module: Any
        self.raw_stream: Callable[[int], int] | None
        self.grad_enabled: Callable[[], bool] | None

    def forked(self) -> bool:
        """Whether torch knows that this process was forked from one that had used CUDA."""
        return self.look() and bool(getattr(self.module._C, "_cuda_isInBadFork", bool)())

    def look(self) -> bool:
        """Whether torch is there and has CUDA; learns what there is to know when it first is."""
        if self.module is None:
            module: Any = _sys.modules.get("torch")
            raw_stream = getattr(getattr(module, "_C", None), "_cuda_getCurrentRawStream", None)
            # Another thread may be importing it.
            if raw_stream is None or getattr(module.__spec__, "_initializing", False):
                return False
            for name, rust in _TORCH_DTYPES.items():
                # Older versions of torch lack uint16 to uint64.
                setattr(self, rust, getattr(module, name, None))
            self.grad_enabled, self.raw_stream = getattr(module, "is_grad_enabled", None), raw_stream
            self.module = module
        return True


_torch = _Torch()
