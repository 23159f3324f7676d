"""Pointers and slices: GPU memory of one dtype."""

from __future__ import annotations

from rustcuda_backend.loader.runtime.arguments import _came, _Parameter
from rustcuda_backend.loader.runtime.errors import DriverError
from rustcuda_backend.loader.runtime.torch_state import _TORCH_DTYPES, _torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rustcuda_backend.loader.runtime.errors import ArgumentValueError

_TYPESTRS = {
    "|b1": "bool", "|i1": "i8", "|u1": "u8", "<i2": "i16", "<u2": "u16", "<i4": "i32", "<u4": "u32",
    "<i8": "i64", "<u8": "u64", "<f2": "f16", "<f4": "f32", "<f8": "f64", "<V2": "bf16", "|V2": "bf16",
}  # fmt: skip
_SAME = {"isize": "i64", "usize": "u64"}

# What a zero-length slice points to: Rust wants an aligned address other than null.
_DANGLING = 256


class _Array(_Parameter):
    """What pointers and slices have in common: GPU memory of one dtype."""

    format = "Q"

    def prepare(self) -> None:
        self.wanted_dtype = _SAME.get(self.dtype, self.dtype)
        # torch.dtype objects known to fit; filled as they come, for torch is not imported from here.
        self.fitting: set[object] = set()

    def check_tensor(self, value: Any) -> None:
        if not getattr(value, "is_cuda", False):
            raise self.wrong_value(f"{self.rust} on a GPU", _came(value), "move it there with .cuda()")
        if value.dtype not in self.fitting:
            name = str(value.dtype).rpartition(".")[2]
            if self.dtype and _TORCH_DTYPES.get(name) != self.wanted_dtype:
                raise self.wrong_type(value, self._dtype_hint())
            self.fitting.add(value.dtype)
        if self.mutable and getattr(value, "requires_grad", False):
            self._check_grad(value)

    def _check_grad(self, value: Any) -> None:
        """Refuses to write behind autograd's back."""
        _torch.look()
        if _torch.grad_enabled is None or _torch.grad_enabled():
            hint = "launch it within torch.no_grad(), or pass .detach()"
            raise self.wrong_value(
                f"{self.rust} without gradient", f"{_came(value)} that requires grad", hint
            )

    def _dtype_hint(self) -> str:
        names = [name for name, rust in _TORCH_DTYPES.items() if rust == self.wanted_dtype]
        return f"its dtype must be {names[0]}"

    def interface(self, value: Any) -> Mapping[str, Any]:
        """The `__cuda_array_interface__` of an array that is not torch's, checked."""
        interface: Mapping[str, Any] | None = getattr(value, "__cuda_array_interface__", None)
        if interface is None:
            if hasattr(value, "__array_interface__"):
                hint = "it lies in host memory: move it to a GPU, e.g. torch.from_numpy(value).cuda()"
                raise self.wrong_type(value, hint, f"{self.rust} on a GPU")
            raise self.wrong_type(value, "takes GPU arrays: torch, CuPy, __cuda_array_interface__")
        if self.dtype and _TYPESTRS.get(interface["typestr"]) != self.wanted_dtype:
            raise self.wrong_type(value, self._dtype_hint())
        if self.mutable and interface["data"][1]:
            raise self.wrong_value(f"{self.rust} that may be written", "a read-only array")
        return interface

    def device_of(self, address: int) -> int:
        if not address:
            return -1  # an empty array may lie nowhere
        try:
            return self.library.driver.pointer_device(address)
        except DriverError as error:
            raise self.wrong_value(f"{self.rust} on a GPU", f"the address {address:#x} ({error})") from error


class _Pointer(_Array):
    """A raw pointer or reference: arrays of any strides, an address, or None for null."""

    def convert(self, value: Any, values: list[Any]) -> int:
        data_ptr = getattr(value, "data_ptr", None)
        if data_ptr is None:
            return self._other(value, values)
        self.check_tensor(value)
        values.append(data_ptr())
        return int(value.get_device())

    def _other(self, value: Any, values: list[Any]) -> int:
        if value is None:
            values.append(0)
            return -1
        if hasattr(type(value), "__index__") and not hasattr(value, "ndim") and not isinstance(value, bool):
            address = int(type(value).__index__(value))
            if not 0 <= address < 1 << 64:
                raise self.wrong_value(f"{self.rust}, or an address from 0 to 2**64 - 1", f"{address}")
            values.append(address)
            return -1
        address = int(self.interface(value)["data"][0])
        values.append(address)
        return self.device_of(address)


class _Slice(_Array):
    """A slice: a contiguous array, passed as its address and its number of elements."""

    format = "QQ"

    def convert(self, value: Any, values: list[Any]) -> int:
        data_ptr = getattr(value, "data_ptr", None)
        if data_ptr is None:
            return self._other(value, values)
        self.check_tensor(value)
        if not value.is_contiguous():
            raise self._strided(f"strides {tuple(value.stride())}")
        values.append(data_ptr() or _DANGLING)
        values.append(value.numel())
        return int(value.get_device())

    def _other(self, value: Any, values: list[Any]) -> int:
        interface = self.interface(value)
        address = int(interface["data"][0])
        count, strides = 1, interface.get("strides")
        step = int(interface["typestr"][2:])
        for position in range(len(interface["shape"]) - 1, -1, -1):
            extent = interface["shape"][position]
            # The stride of an extent of 1 is never used.
            if strides is not None and extent > 1 and strides[position] != step * count:
                raise self._strided(f"strides {tuple(strides)} in bytes")
            count *= extent
        values.append(address or _DANGLING)
        values.append(count)
        return self.device_of(address)

    def _strided(self, got: str) -> ArgumentValueError:
        return self.wrong_value(f"{self.rust} that is contiguous", got, "use .contiguous()")
