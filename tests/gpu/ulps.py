"""Kernels as functions of numbers, and how far what they give is from the truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

# Digits of the references; enough for a double's and for what cancels on the way to them.
DIGITS = 80

Row = tuple[float, ...]


@dataclass(frozen=True)
class Format:
    """A binary float type.

    Attributes:
        name: torch's name of it.
        precision: Bits of the significand, the hidden one included.
        least: The exponent of the smallest positive number that is not subnormal.
        most: The exponent of the largest number.
    """

    name: str
    precision: int
    least: int
    most: int

    def ulp(self, exponent: int) -> float:
        """The distance of numbers in [2^exponent, 2^(exponent+1))."""
        return math.ldexp(1.0, max(exponent, self.least) - self.precision + 1)


F16 = Format("float16", 11, -14, 15)
BF16 = Format("bfloat16", 8, -126, 127)
F32 = Format("float32", 24, -126, 127)
F64 = Format("float64", 53, -1022, 1023)


def rows_of(torch: Any, rows: Sequence[Row], dtype: Any) -> Any:
    """Rows of numbers as one tensor on the GPU."""
    flat = [value for row in rows for value in row]
    # By way of float64: torch refuses, not rounds, what is too large for a float32.
    return torch.tensor(flat, dtype=torch.float64).to(dtype).cuda()


def apply(torch: Any, kernel: Any, inputs: Any, width: int, results: int, dtype: Any) -> Any:
    """Launches a kernel on rows of `width` inputs; gives a tensor with a row of `results` for each."""
    count = inputs.numel() // width
    out = torch.zeros(count * results, dtype=dtype, device="cuda")
    kernel[(count + 127) // 128, 128](inputs, out)
    return out.reshape(count, results)


def apply_both(
    torch: Any, kernel: Any, rows: Sequence[Row], results: int = 1
) -> tuple[tuple[Format, list[Row], list[Row]], ...]:
    """Launches a kernel of `float_kernels!`: for `f32` and `f64` the inputs as rounded, and the results."""
    count, width = len(rows), len(rows[0])
    single, double = rows_of(torch, rows, torch.float32), rows_of(torch, rows, torch.float64)
    out32 = torch.zeros(count * results, dtype=torch.float32, device="cuda")
    out64 = torch.zeros(count * results, dtype=torch.float64, device="cuda")
    kernel[(count + 127) // 128, 128](single, double, out32, out64)
    return tuple(
        (form, list(map(tuple, given.reshape(count, width).tolist())), list(map(tuple, out.tolist())))
        for form, given, out in (
            (F32, single, out32.reshape(count, results)),
            (F64, double, out64.reshape(count, results)),
        )
    )


def error(mpmath: Any, got: float, exact: Any, form: Format) -> float:
    """How many units in the last place `got` is away from the exact value."""
    if mpmath.isnan(exact) or math.isnan(got):
        return 0.0 if mpmath.isnan(exact) and math.isnan(got) else math.inf
    if mpmath.isinf(exact):
        return 0.0 if got == exact else math.inf
    # What rounds to infinity counts as the next power of two.
    value = mpmath.ldexp(mpmath.sign(got), form.most + 1) if math.isinf(got) else mpmath.mpf(got)
    limit = mpmath.ldexp(1, form.most + 1)
    exact = max(-limit, min(limit, exact))
    if value == exact:
        return 0.0
    exponent = mpmath.frexp(exact)[1] - 1 if exact else form.least
    return float(abs(value - exact) / mpmath.mpf(form.ulp(min(exponent, form.most))))


def worst(
    mpmath: Any,
    reference: Callable[..., Any],
    inputs: Iterable[Row],
    got: Iterable[float],
    form: Format,
    *,
    absolute: float = 0.0,
) -> tuple[float, Row]:
    """The largest error in ulps and where it is; errors up to `absolute` do not count."""
    largest: tuple[float, Row] = (0.0, ())
    with mpmath.workdps(DIGITS):
        for row, value in zip(inputs, got, strict=True):
            exact = reference(*map(mpmath.mpf, row))
            if absolute and abs(mpmath.mpf(value) - exact) <= absolute:
                continue
            off = error(mpmath, value, exact, form)
            if off > largest[0]:
                largest = (off, row)
    return largest


def spread(low: float, high: float, count: int = 40) -> list[float]:
    """Numbers between two, evenly but at no simple fractions."""
    return [low + (high - low) * math.modf(0.381966 * k + 0.117)[0] for k in range(count)]


def sizes(low: int, high: int, count: int = 24) -> list[float]:
    """Numbers of both signs from 2^low to 2^high, evenly by their exponents."""
    return [math.copysign(2.0**exponent, (-1) ** k) for k, exponent in enumerate(spread(low, high, count))]
