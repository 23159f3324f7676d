"""Pointers and slices: GPU memory of one dtype."""

from __future__ import annotations

from rustcuda_backend.loader.runtime.arguments import _came, _Parameter
from rustcuda_backend.loader.runtime.errors import DriverError
from rustcuda_backend.loader.runtime.exported import _Exported
from rustcuda_backend.loader.runtime.torch_state import _TORCH_DTYPES, _torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rustcuda_backend.loader.runtime.errors import ArgumentValueError

_SAME = {"isize": "i64", "usize": "u64"}

# What a zero-length slice points to: Rust wants an aligned address other than null.
_DANGLING = 256


def _null() -> int:
    """Ends a launcher's work where a tensor has no address: it is empty, or torch only traces with it."""
    raise ValueError


class _Array(_Parameter):
    """What pointers and slices have in common: GPU memory of one dtype."""

    format = "Q"

    def prepare(self) -> None:
        self.wanted_dtype = _SAME.get(self.dtype, self.dtype)
        # torch.dtype objects known to fit; filled as they come, for torch is not imported from here.
        self.fitting: set[object] = set()

    def check_tensor(self, value: Any) -> None:
        if getattr(value, "is_meta", False) or hasattr(value, "fake_mode"):
            raise self._without_memory(value)
        if not getattr(value, "is_cuda", False):
            raise self.wrong_value(f"{self.rust} on a GPU", _came(value), "move it there with .cuda()")
        if value.dtype not in self.fitting:
            name = str(value.dtype).rpartition(".")[2]
            if self.dtype and _TORCH_DTYPES.get(name) != self.wanted_dtype:
                raise self.wrong_type(value, self._dtype_hint())
            self.fitting.add(value.dtype)
        if self.mutable and getattr(value, "requires_grad", False):
            self._check_grad(value)

    def address_of(self, value: Any) -> int:
        """A tensor's address, which those that torch.compile and the like trace with do not have."""
        try:
            address = int(value.data_ptr())
        except RuntimeError as error:
            raise self._without_memory(value) from error
        if not address and value.numel():
            raise self._without_memory(value)
        return address

    def _without_memory(self, value: Any) -> ArgumentValueError:
        got = f"{_came(value)} without memory ({type(value).__name__})"
        hint = "to trace a function that launches it, register the kernel by its torch_op and call that"
        return self.wrong_value(f"{self.rust} on a GPU", got, hint)

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

    def exported(self, value: Any, stream: int | None) -> _Exported:
        """What an array that is not torch's says of itself, checked but for its strides."""
        # DLPack first: it lets our stream wait for what the array's library has not finished.
        if hasattr(value, "__dlpack_device__"):
            found = _Exported.of_dlpack(value, stream, self.library)
        elif hasattr(value, "__cuda_array_interface__"):
            found = _Exported.of_interface(value.__cuda_array_interface__)
        else:
            raise self.wrong_type(value, "takes GPU arrays: torch, DLPack, __cuda_array_interface__")
        if found is None:
            hint = "it lies in host memory: move it to a GPU, e.g. torch.from_numpy(value).cuda()"
            raise self.wrong_type(value, hint, f"{self.rust} on a GPU")
        if self.dtype and found.dtype != self.wanted_dtype:
            raise self.wrong_type(value, self._dtype_hint())
        if self.mutable and found.read_only:
            raise self.wrong_value(f"{self.rust} that may be written", "a read-only array")
        if found.device < 0:
            found.device = self.device_of(found.address)
        return found

    def device_of(self, address: int) -> int:
        """The GPU that an address belongs to; -1 for that of an empty array, which may lie nowhere."""
        if not address:
            return -1
        try:
            return self.library.driver.pointer_device(address)
        except DriverError as error:
            raise self.wrong_value(f"{self.rust} on a GPU", f"the address {address:#x} ({error})") from error


class _Pointer(_Array):
    """A raw pointer or reference: arrays of any strides, an address, or None for null."""

    def convert(self, value: Any, values: list[Any], stream: int | None) -> int:
        if not hasattr(value, "data_ptr"):
            return self._other(value, values, stream)
        self.check_tensor(value)
        values.append(self.address_of(value))
        return int(value.get_device())

    def _other(self, value: Any, values: list[Any], stream: int | None) -> int:
        if value is None:
            value = 0
        if hasattr(type(value), "__index__") and not hasattr(value, "ndim") and not isinstance(value, bool):
            address = int(type(value).__index__(value))
            if not 0 <= address < 1 << 64:
                raise self.wrong_value(f"{self.rust}, or an address from 0 to 2**64 - 1", f"{address}")
            if not address and self.rust.startswith("&"):
                raise self.wrong_value(f"{self.rust}, which is never null", "None or 0")
            values.append(address)
            return -1
        found = self.exported(value, stream)
        values.append(found.address)
        return found.device


class _Slice(_Array):
    """A slice: a contiguous array, passed as its address and its number of elements."""

    format = "QQ"
    pieces: tuple[int, ...] = (0, 8)

    def convert(self, value: Any, values: list[Any], stream: int | None) -> int:
        if not hasattr(value, "data_ptr"):
            found = self.exported(value, stream)
            if not found.contiguous:
                raise self._strided(f"strides {found.strides}")
            values.append(found.address or _DANGLING)
            values.append(found.count)
            return found.device
        self.check_tensor(value)
        if not value.is_contiguous():
            raise self._strided(f"strides {tuple(value.stride())}")
        values.append(self.address_of(value) or _DANGLING)
        values.append(value.numel())
        return int(value.get_device())

    def _strided(self, got: str) -> ArgumentValueError:
        return self.wrong_value(f"{self.rust} that is contiguous", got, "use .contiguous()")


class _WholeSlice(_Slice):
    """A slice that is one parameter of 16 bytes, as rustc passes it where `#[kernel]` does not flatten it."""

    pieces = (0,)


class _Rows(_Slice):
    """A slice that goes with the elements of a row, the array's last dimension."""

    format = "QQI4x"
    pieces = (0, 8, 16)

    def convert(self, value: Any, values: list[Any], stream: int | None) -> int:
        device = super().convert(value, values, stream)
        width = int(value.shape[-1]) if len(value.shape) else 1
        if width >= 1 << 32:
            raise self.wrong_value(f"{self.rust} with rows of less than 2**32", f"rows of {width}")
        values.append(width)
        return device
