"""Describes a kernel's parameters to `rustcuda_launch`, which launches kernels in C (see `launcher/`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rustcuda_backend.signature import KernelSignature, Parameter

# Rust type to the kind and the bits of a number, and to DLPack's code for elements of that type.
_NUMBERS = {
    "bool": ("b", 8, 6),
    "i8": ("i", 8, 0),
    "i16": ("i", 16, 0),
    "i32": ("i", 32, 0),
    "i64": ("i", 64, 0),
    "isize": ("i", 64, 0),
    "u8": ("u", 8, 1),
    "u16": ("u", 16, 1),
    "u32": ("u", 32, 1),
    "u64": ("u", 64, 1),
    "usize": ("u", 64, 1),
    "f32": ("f", 32, 2),
    "f64": ("f", 64, 2),
}
# Types that it reads in memory only, and `""`: memory of any type.
_ELEMENTS = {"f16": (16, 2), "bf16": (16, 4), "": (0, 255)}
_ARRAYS = {"pointer": "p", "slice": "s", "rows": "r"}
_MOST_VALUES = 64


def known_in_c(signature: KernelSignature) -> bytes:
    """Four bytes for each parameter: kind, bits, DLPack's code, whether the kernel may write there.

    Returns:
        `b""` for a kernel that is launched from Python only.
    """
    described = [_describe(parameter) for parameter in signature.parameters]
    takes_arrays = any(parameter.kind in _ARRAYS for parameter in signature.parameters)
    if not takes_arrays or not all(described) or len(signature.abi_bytes) > _MOST_VALUES:
        return b""
    return b"".join(described)


def _describe(parameter: Parameter) -> bytes:
    number = _NUMBERS.get(parameter.dtype)
    if parameter.kind == "scalar":
        return bytes((ord(number[0]), number[1], 0, 0)) if number else b""
    if parameter.kind not in _ARRAYS:
        return b""
    bits, code = number[1:] if number else _ELEMENTS[parameter.dtype]
    return bytes((ord(_ARRAYS[parameter.kind]), bits, code, parameter.mutable))
