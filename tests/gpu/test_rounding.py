"""rustcuda_device::math on a GPU: what names its rounding, checked against exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from ulps import F32, F64, Format, Row, apply_both, sizes, spread

numpy = pytest.importorskip("numpy")
from arrays import launch  # noqa: E402

NUMBERS = [*spread(-9, 9, 24), *sizes(-40, 40, 24), 1.0, -3.0]


def rounded(exact: Fraction, form: Format) -> tuple[float, float, float, float]:
    """A number to nearest with ties to even, towards 0, up and down."""
    if exact == 0:
        return (0.0, 0.0, 0.0, 0.0)
    exponent = abs(exact.numerator).bit_length() - exact.denominator.bit_length()
    exponent -= abs(exact) < Fraction(2) ** exponent
    unit = Fraction(form.ulp(exponent))
    steps = exact / unit
    nearest, down, up = round(steps), math.floor(steps), math.ceil(steps)
    towards = down if exact > 0 else up
    return tuple(float(step * unit) for step in (nearest, towards, up, down))  # type: ignore[return-value]


ARITHMETIC: dict[str, tuple[int, Callable[..., Fraction]]] = {
    "add": (2, lambda x, y: x + y),
    "sub": (2, lambda x, y: x - y),
    "mul": (2, lambda x, y: x * y),
    "div": (2, lambda x, y: x / y),
    "fma": (3, lambda x, y, z: x * y + z),
    "rcp": (1, lambda x: 1 / x),
}


@pytest.mark.parametrize("operation", ARITHMETIC)
def test_arithmetic(torch: Any, intrinsics: Any, operation: str) -> None:
    width, exact = ARITHMETIC[operation]
    columns = [NUMBERS, NUMBERS[7:] + NUMBERS[:7], NUMBERS[19:] + NUMBERS[:19]]
    rows: list[Row] = list(zip(*columns[:width], strict=True))
    for form, inputs, got in apply_both(torch, getattr(intrinsics, f"rounding_{operation}"), rows, results=4):
        assert got == [rounded(exact(*map(Fraction, row)), form) for row in inputs]


def test_square_roots(torch: Any, intrinsics: Any) -> None:
    rows = [(abs(x),) for x in NUMBERS]
    for form, inputs, got in apply_both(torch, intrinsics.rounding_sqrt, rows, results=4):
        for (x,), (nearest, towards, up, down) in zip(inputs, got, strict=True):
            square = Fraction(x)
            assert towards == down
            assert Fraction(down) ** 2 <= square <= Fraction(up) ** 2
            assert up - down in (0.0, form.ulp(math.frexp(down)[1] - 1))
            middle = (Fraction(down) + Fraction(up)) / 2
            assert nearest == (down if square < middle**2 else up)


def test_rsqrt_rn(torch: Any, intrinsics: Any) -> None:
    x = numpy.abs(numpy.array(NUMBERS, numpy.float32))
    got = launch(torch, intrinsics.rounding_rsqrt, x, "float32", "float32")[:, 0]
    assert (got == (1 / numpy.sqrt(x.astype(numpy.float64))).astype(numpy.float32)).all()


def test_overflow_follows_the_direction(torch: Any, intrinsics: Any) -> None:
    for form, _, got in apply_both(torch, intrinsics.rounding_mul, [(3e38, 3e38), (1e300, 1e300)], results=4):
        largest = (2 - 2.0 ** (1 - form.precision)) * 2.0**form.most
        row = got[0] if form is F32 else got[1]
        assert row == (math.inf, largest, math.inf, largest)


def test_nextafter(torch: Any, intrinsics: Any) -> None:
    rows = [(1.0, 2.0), (1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (-1.0, -2.0), (2.0, 2.0), (math.nan, 1.0)]
    for form, _, got in apply_both(torch, intrinsics.rounding_nextafter, rows):
        dtype = numpy.float32 if form is F32 else numpy.float64
        with numpy.errstate(all="ignore"):
            expected = [float(numpy.nextafter(dtype(x), dtype(y))) for x, y in rows]
        assert [value for (value,) in got[:-1]] == expected[:-1]
        assert math.isnan(got[-1][0])


def nearest_integers(x: float) -> tuple[int, int, int, int]:
    """To nearest, towards 0, up, down."""
    return (round(x), math.trunc(x), math.ceil(x), math.floor(x))


@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize("target", ["i32", "u32", "i64", "u64"])
def test_floats_to_integers(torch: Any, intrinsics: Any, source: str, target: str) -> None:
    dtype, out = (name.translate(str.maketrans("fiu", "   ")).strip() for name in (source, target))
    width = int(out)
    result = ("int" if target[0] == "i" else "uint") + out
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if target[0] == "i" else (0, 2**width - 1)
    values = [*spread(-9, 9), 0.5, 1.5, 2.5, -0.5, -0.0, 1e6 + 0.5, 2.0**31, -(2.0**31), 2.0**40, 1e30, -1e30]
    inputs = numpy.array(values, f"float{dtype}")
    kernel = getattr(intrinsics, f"rounding_{source}_to_{target}")
    got = launch(torch, kernel, inputs, f"float{dtype}", result, 4)
    for x, row in zip(inputs.tolist(), got.tolist(), strict=True):
        assert row == [min(max(way, low), high) for way in nearest_integers(x)], x
    infinities = numpy.array([math.inf, -math.inf], f"float{dtype}")
    ends = launch(torch, kernel, infinities, f"float{dtype}", result, 4)
    assert ends.tolist() == [[high] * 4, [low] * 4]
    if width == 32:
        nan = numpy.array([math.nan], f"float{dtype}")
        # What the GPU makes of it: of f64 the number of which only the highest bit is set.
        made = 0 if dtype == "32" else 2**31 if target[0] == "u" else -(2**31)
        assert launch(torch, kernel, nan, f"float{dtype}", result, 4).tolist() == [[made] * 4]


@pytest.mark.parametrize(
    ("source", "form"),
    [("i32", F32), ("u32", F32), ("i64", F32), ("u64", F32), ("i64", F64), ("u64", F64)],
)
def test_integers_to_floats(torch: Any, intrinsics: Any, source: str, form: Format) -> None:
    dtype = source.replace("i", "int").replace("u", "uint")
    limits = numpy.iinfo(dtype)
    numbers = [0, 1, 2**24 + 1, 2**24 + 3, 2**30 + 64, 2**30 + 192, 123456789, limits.max, limits.min]
    if limits.bits == 64:
        numbers += [2**53 + 1, 2**53 + 3, 2**62 + 257, 123456789123456789]
    if limits.min < 0:
        numbers += [-x for x in numbers if x > 0]
    kernel = getattr(intrinsics, f"rounding_{source}_to_f{form.name.removeprefix('float')}")
    got = launch(torch, kernel, numpy.array(numbers, dtype), dtype, form.name, 4)
    expected = [rounded(Fraction(x), form) for x in numbers]
    assert [tuple(row) for row in got.tolist()] == expected


def test_doubles_to_floats(torch: Any, intrinsics: Any) -> None:
    numbers = [*NUMBERS, 1 + 2.0**-24, 1 + 3 * 2.0**-24, 1e-40, -1e-42, 0.1]
    got = launch(torch, intrinsics.rounding_f64_to_f32, numpy.array(numbers), "float64", "float32", 4)
    assert [tuple(row) for row in got.tolist()] == [rounded(Fraction(x), F32) for x in numbers]
