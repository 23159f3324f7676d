"""Arrays of other libraries, e.g. CuPy's and JAX's: what they say of themselves."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rustcuda_backend.loader.runtime.library import _Library

# DLDeviceType numbers of memory that kernels reach: CUDA's own, pinned host memory, and managed memory.
_DLPACK_CUDA = (2, 3, 13)
# DLDataTypeCode, bits of a lane, by the Rust type.
_DLPACK_DTYPES = {
    (0, 8): "i8", (0, 16): "i16", (0, 32): "i32", (0, 64): "i64", (1, 8): "u8", (1, 16): "u16",
    (1, 32): "u32", (1, 64): "u64", (2, 16): "f16", (2, 32): "f32", (2, 64): "f64", (4, 16): "bf16",
    (6, 8): "bool",
}  # fmt: skip
_DLPACK_READ_ONLY = 1
_TYPESTRS = {
    "|b1": "bool", "|i1": "i8", "|u1": "u8", "<i2": "i16", "<u2": "u16", "<i4": "i32", "<u4": "u32",
    "<i8": "i64", "<u8": "u64", "<f2": "f16", "<f4": "f32", "<f8": "f64", "<V2": "bf16", "|V2": "bf16",
}  # fmt: skip


class _Exported:
    """What an array says of itself.

    Attributes:
        address: Of the first element.
        device: The GPU; -1 where it does not tell.
        dtype: Rust's name; `""` for what Rust has no name for.
        shape: Its extents.
        strides: In elements; None where the array is contiguous.
        read_only: Whether it must not be written.
    """

    __slots__ = ("address", "device", "dtype", "read_only", "shape", "strides")

    def __init__(
        self,
        address: int,
        device: int,
        dtype: str,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None,
        read_only: bool,
    ) -> None:
        self.address, self.device, self.dtype = address, device, dtype
        self.shape, self.strides, self.read_only = shape, strides, read_only

    @classmethod
    def of_interface(cls, interface: Mapping[str, Any]) -> _Exported:
        """Reads a `__cuda_array_interface__`."""
        address, read_only = interface["data"]
        typestr, strides = interface["typestr"], interface.get("strides")
        if strides is not None:
            # In bytes; a part of an element is no stride that fits anything, nor is 0.
            size = int(typestr[2:])
            strides = tuple(0 if stride % size else stride // size for stride in strides)
        dtype = _TYPESTRS.get(typestr, "")
        return cls(int(address), -1, dtype, tuple(interface["shape"]), strides, read_only)

    @classmethod
    def of_dlpack(cls, value: Any, stream: int | None, library: _Library) -> _Exported | None:
        """Reads what `__dlpack__` gives; None for memory that no kernel reaches."""
        kind, device = (int(number) for number in value.__dlpack_device__())
        if kind not in _DLPACK_CUDA:
            return None
        if stream is None:
            stream = library.current_stream(device)
        # DLPack's number for the default stream is 1. The producer lets that stream wait for its own work.
        address, dtype, shape, strides, read_only = _read_capsule(_capsule(value, stream or 1))
        return cls(address, device, dtype, shape, strides, read_only)

    @property
    def count(self) -> int:
        """Its number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def contiguous(self) -> bool:
        """Whether its elements lie one behind the other, the last dimension's first."""
        if self.strides is None or not self.count:
            return True
        step = 1
        for extent, stride in zip(self.shape[::-1], self.strides[::-1]):  # noqa: B905
            # The stride of an extent of 1 is never used.
            if extent > 1 and stride != step:
                return False
            step *= extent
        return True


def _capsule(value: Any, stream: int) -> Any:
    """An array's capsule; older producers know no versions."""
    try:
        return value.__dlpack__(stream=stream, max_version=(1, 1))
    except TypeError:
        return value.__dlpack__(stream=stream)


def _read_capsule(capsule: Any) -> tuple[int, str, tuple[int, ...], tuple[int, ...] | None, bool]:
    """Address, dtype, shape, strides and read-only, of a DLTensor.

    The capsule frees what it holds when it goes; the memory stays the array's own.
    """
    import ctypes
    from struct import unpack

    named = (ctypes.py_object, ctypes.c_char_p)
    is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, *named)(("PyCapsule_IsValid", ctypes.pythonapi))
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, *named)(("PyCapsule_GetPointer", ctypes.pythonapi))
    flags = 0
    if is_valid(capsule, b"dltensor"):
        at = pointer(capsule, b"dltensor")
    else:
        at = pointer(capsule, b"dltensor_versioned")
        # Version, the producer's own pointer, its deleter and flags stand before the tensor.
        flags = ctypes.c_uint64.from_address(at + 24).value
        at += 32
    data, _, _, rank, code, bits, lanes, shape, strides, offset = unpack(
        "<QiiiBBHQQQ", ctypes.string_at(at, 48)
    )
    numbers = ctypes.c_int64 * rank
    return (
        data + offset,
        _DLPACK_DTYPES.get((code, bits), "") if lanes == 1 else "",
        tuple(numbers.from_address(shape)) if rank else (),
        tuple(numbers.from_address(strides)) if rank and strides else None,
        bool(flags & _DLPACK_READ_ONLY),
    )
