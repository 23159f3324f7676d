"""Numbers passed by value."""

from __future__ import annotations

from rustcuda_backend.loader.runtime.arguments import _came, _Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The struct format, bytes, and for numbers the range of each Rust scalar.
_FORMATS = {
    "bool": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "f16": "e", "bf16": "H", "i32": "i",
    "u32": "I", "f32": "f", "i64": "q", "u64": "Q", "isize": "q", "usize": "Q", "f64": "d",
}  # fmt: skip
# The least magnitude that no longer rounds to a finite value.
_FLOAT_LIMITS = {"f16": 65520.0, "bf16": 2.0**128 - 2.0**119, "f32": 2.0**128 - 2.0**103, "f64": float("inf")}
_BOOL_DTYPES = ("bool", "torch.bool")


class _Scalar(_Parameter):
    """A number passed by value."""

    def prepare(self) -> None:
        # Every value has 8 bytes of the block to itself, so that all of them are aligned.
        code = _FORMATS[self.dtype]
        size = 1 if code in "?bB" else 2 if code in "hHe" else 4 if code in "iIf" else 8
        self.format = f"{code}{8 - size}x"
        self.low = -(1 << (8 * size - 1)) if self.dtype[0] == "i" else 0
        self.high = (1 << (8 * size - (self.dtype[0] == "i"))) - 1

    def check_single(self, value: Any) -> None:
        """Refuses arrays of several elements, and GPU memory, reading which would wait for the GPU."""
        if getattr(value, "ndim", 0) != 0 or getattr(value, "is_cuda", False):
            raise self.wrong_type(value, "pass a number, e.g. value.item()")


class _Integer(_Scalar):
    def convert(self, value: Any, values: list[Any], stream: int | None) -> int:  # noqa: ARG002
        if type(value) is not int:
            value = self._as_int(value)
        if not self.low <= value <= self.high:
            raise self.wrong_value(f"{self.rust} ({self.low} to {self.high})", f"{value}")
        values.append(value)
        return -1

    def _as_int(self, value: Any) -> int:
        self.check_single(value)
        if str(getattr(value, "dtype", "")) in _BOOL_DTYPES:
            raise self.wrong_type(value)
        try:
            return int(type(value).__index__(value))
        except (AttributeError, TypeError, ValueError, RuntimeError) as error:
            hint = "a float; use int(…)" if isinstance(value, float) else ""
            raise self.wrong_type(value, hint) from error


class _Float(_Scalar):
    def prepare(self) -> None:
        super().prepare()
        self.limit = _FLOAT_LIMITS[self.dtype]

    def convert(self, value: Any, values: list[Any], stream: int | None) -> int:  # noqa: ARG002
        if type(value) is not float:
            value = self._as_float(value)
        # Infinities and NaN pass: only they differ from 0 when subtracted from themselves.
        if not -self.limit < value < self.limit and value - value == 0.0:
            raise self.wrong_value(f"a number in the range of {self.rust}", f"{value}")
        values.append(value)
        return -1

    def _as_float(self, value: Any) -> float:
        self.check_single(value)
        # float() would also read text and drop imaginary parts.
        number = hasattr(value, "__float__") or hasattr(value, "__index__")
        if not number or "complex" in str(getattr(value, "dtype", "")):
            raise self.wrong_type(value)
        try:
            return float(value)
        except OverflowError as error:
            raise self.wrong_value(f"a number in the range of {self.rust}", _came(value)) from error
        except (TypeError, ValueError, RuntimeError) as error:
            raise self.wrong_type(value) from error


def _bf16_bits(number: float) -> int:
    """A number as bf16, rounded to nearest, ties to even, as the GPU and torch do.

    Raises:
        OverflowError: It is finite, but would not be.
    """
    from struct import pack, unpack

    if number != number:
        return 0x7FC0
    (bits,) = unpack("<I", pack("<f", number))
    rounded: int = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    if rounded & 0x7FFF == 0x7F80 and number - number == 0.0:
        raise OverflowError(f"{number} is too large for bf16")
    return rounded


class _BFloat16(_Float):
    def convert(self, value: Any, values: list[Any], stream: int | None) -> int:
        super().convert(value, values, stream)
        values.append(_bf16_bits(values.pop()))
        return -1


class _Bool(_Scalar):
    def convert(self, value: Any, values: list[Any], stream: int | None) -> int:  # noqa: ARG002
        if type(value) is not bool:
            self.check_single(value)
            # numpy.bool_, and torch and numpy arrays of one bool.
            if str(getattr(value, "dtype", "")) not in _BOOL_DTYPES:
                raise self.wrong_type(value)
            value = bool(value)
        values.append(value)
        return -1


def _scalar_class(dtype: str) -> type[_Integer | _Float | _Bool]:
    if dtype == "bf16":
        return _BFloat16
    return _Bool if dtype == "bool" else _Float if dtype in _FLOAT_LIMITS else _Integer


class _ByValue(_Parameter):
    """An array passed by value: a sequence of as many numbers."""

    def prepare(self) -> None:
        element = _scalar_class(self.dtype)(
            self.library, self.kernel, self.name, self.dtype, self.mutable, self.dtype
        )
        self._element = element.convert
        self._count = int(self.rust.strip("[]").rpartition("; ")[2])
        code = element.format[0]
        size = 8 - int(element.format[1:-1] or 0)
        self.format = f"{self._count}{code}{-self._count * size % 8}x"

    def convert(self, value: Any, values: list[Any], stream: int | None) -> int:
        if hasattr(value, "tolist") and not getattr(value, "is_cuda", False):
            value = value.tolist()  # numpy's arrays and torch's tensors
        if not isinstance(value, list | tuple):
            raise self.wrong_type(value, "pass a sequence of numbers", f"{self.rust} as a list or tuple")
        if len(value) != self._count:
            raise self.wrong_value(f"{self.rust}, {self._count} numbers", f"{len(value)}")
        for number in value:
            self._element(number, values, stream)
        return -1
