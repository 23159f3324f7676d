"""rustcuda_device::math, on a GPU: exact enough, and right at the edges."""

from __future__ import annotations

import math
from typing import Any

import pytest
from math_cases import CASES
from ulps import F32, Format, Row, apply, apply_both, error, rows_of, sizes, spread, worst

mpmath = pytest.importorskip("mpmath")
numpy = pytest.importorskip("numpy")

INF, NAN = math.inf, math.nan
EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, INF, -INF, NAN, 3e38, -3e38]


@pytest.mark.parametrize("name", CASES)
def test_functions_are_as_exact_as_the_guide_says(torch: Any, intrinsics: Any, name: str) -> None:
    case = CASES[name]
    for form, inputs, got in apply_both(torch, getattr(intrinsics, f"math_{name}"), case.rows):
        bound, absolute = {
            24: (case.single, case.absolute[0]),
            53: (case.double, case.absolute[1]),
        }[form.precision]
        values = [value for (value,) in got]
        # Rounded to infinity or to a subnormal where f32 ends: held against the same rounding.
        off, where = worst(mpmath, case.reference, inputs, values, form, absolute=absolute)
        assert off <= bound + 0.5, f"{form.name}: {off:.3g} ulps at {where}"


# numpy has these from the C library, which does at the edges what the C standard says, as CUDA does.
NUMPY = {
    "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round_ties_even": "rint", "sqrt": "sqrt",
    "cbrt": "cbrt", "exp": "exp", "exp2": "exp2", "exp_m1": "expm1", "ln": "log", "ln_1p": "log1p",
    "log2": "log2", "log10": "log10", "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin",
    "acos": "arccos", "atan": "arctan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh",
    "acosh": "arccosh", "atanh": "arctanh",
    "hypot": "hypot", "powf": "power", "atan2": "arctan2", "fmod": "fmod",
}  # fmt: skip


def same_kind(got: float, expected: float) -> bool:
    """Both NaN, or the same infinity, the same zero, or finite numbers that are close."""
    if math.isnan(expected):
        return math.isnan(got)
    if math.isinf(expected) or expected == 0:
        return got == expected and math.copysign(1, got) == math.copysign(1, expected)
    return math.isclose(got, expected, rel_tol=1e-5)


@pytest.mark.parametrize("name", NUMPY)
def test_edges_are_those_of_the_c_standard(torch: Any, intrinsics: Any, name: str) -> None:
    function = getattr(numpy, NUMPY[name])
    rows: list[Row] = [(x,) for x in EDGES] if function.nin == 1 else [(x, y) for x in EDGES for y in EDGES]
    if name == "powf":
        # numpy takes the square root for this power, which has other edges.
        rows = [row for row in rows if row[1] != 0.5]
    for form, inputs, got in apply_both(torch, getattr(intrinsics, f"math_{name}"), rows):
        dtype = numpy.dtype(form.name)
        with numpy.errstate(all="ignore"):
            for row, (value,) in zip(inputs, got, strict=True):
                expected = float(function(*(dtype.type(x) for x in row)))
                assert same_kind(value, expected), f"{form.name} {row}: {value}, not {expected}"


SPECIAL = {
    "round": [(-0.0, -0.0), (-0.4, -0.0), (INF, INF), (NAN, NAN)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (-1.0, NAN), (INF, 0.0), (NAN, NAN)],
    "rcbrt": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, -0.0), (NAN, NAN)],
    "exp10": [(INF, INF), (-INF, 0.0), (-0.0, 1.0), (NAN, NAN), (400.0, INF), (-400.0, 0.0)],
    "erf": [(INF, 1.0), (-INF, -1.0), (-0.0, -0.0), (NAN, NAN)],
    "erfc": [(INF, 0.0), (-INF, 2.0), (0.0, 1.0), (NAN, NAN)],
    "erfinv": [(1.0, INF), (-1.0, -INF), (-0.0, -0.0), (1.5, NAN), (NAN, NAN)],
    "erfcinv": [(0.0, INF), (2.0, -INF), (1.0, 0.0), (-0.5, NAN), (NAN, NAN)],
    "erfcx": [(INF, 0.0), (-INF, INF), (0.0, 1.0), (NAN, NAN)],
    "normcdf": [(INF, 1.0), (-INF, 0.0), (0.0, 0.5), (NAN, NAN)],
    "normcdfinv": [(0.0, -INF), (1.0, INF), (2.0, NAN), (NAN, NAN)],
    "lgamma": [(1.0, 0.0), (2.0, 0.0), (0.0, INF), (-3.0, INF), (INF, INF), (-INF, INF), (NAN, NAN)],
    "tgamma": [(0.0, INF), (-0.0, -INF), (-3.0, NAN), (INF, INF), (-INF, NAN), (5.0, 24.0), (NAN, NAN)],
    "sinpi": [(-0.0, -0.0), (0.5, 1.0), (INF, NAN), (NAN, NAN)],
    "cospi": [(1.0, -1.0), (INF, NAN), (NAN, NAN)],
    "j0": [(0.0, 1.0), (INF, 0.0), (NAN, NAN)],
    "j1": [(-0.0, -0.0), (INF, 0.0), (NAN, NAN)],
    "y0": [(0.0, -INF), (-1.0, NAN), (INF, 0.0), (NAN, NAN)],
    "y1": [(0.0, -INF), (-1.0, NAN), (INF, 0.0), (NAN, NAN)],
    "cyl_bessel_i0": [(0.0, 1.0), (INF, INF), (-INF, INF), (NAN, NAN)],
    "cyl_bessel_i1": [(-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "logb": [(0.0, -INF), (-INF, INF), (NAN, NAN)],
    "ilogb": [(0.0, -(2.0**31)), (NAN, -(2.0**31))],
    "fract": [(-1.5, -0.5), (2.0, 0.0), (NAN, NAN)],
}


@pytest.mark.parametrize("name", SPECIAL)
def test_edges_of_what_c_has_not(torch: Any, intrinsics: Any, name: str) -> None:
    rows = [(x,) for x, _ in SPECIAL[name]]
    for form, _, got in apply_both(torch, getattr(intrinsics, f"math_{name}"), rows):
        for (x, expected), (value,) in zip(SPECIAL[name], got, strict=True):
            assert same_kind(value, expected), f"{form.name} {x}: {value}, not {expected}"


def test_infinities_of_ilogb(torch: Any, intrinsics: Any) -> None:
    for form, _, got in apply_both(torch, intrinsics.math_ilogb, [(INF,), (-INF,)]):
        largest = 2.0**31 if form is F32 else 2.0**31 - 1
        assert got == [(largest,), (largest,)]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("div_euclid", [(7, 4), (-7, 4), (7, -4), (-7, -4), (0.5, 0.25), (-0.1, 3)]),
        ("rem_euclid", [(7, 4), (-7, 4), (7, -4), (-7, -4), (0.5, 0.25), (-8, 4)]),
    ],
)
def test_euclid(torch: Any, intrinsics: Any, name: str, rows: list[Row]) -> None:
    for _, inputs, got in apply_both(torch, getattr(intrinsics, f"math_{name}"), rows):
        for (x, y), (value,) in zip(inputs, got, strict=True):
            remainder = math.fmod(x, y)
            remainder += abs(y) if remainder < 0 else 0.0
            assert value == (remainder if name == "rem_euclid" else round((x - remainder) / y))


@pytest.mark.parametrize(
    ("name", "first", "second"), [("sin_cos", "sin", "cos"), ("sincospi", "sinpi", "cospi")]
)
def test_pairs_are_both(torch: Any, intrinsics: Any, name: str, first: str, second: str) -> None:
    rows = CASES[first].rows
    both = apply_both(torch, getattr(intrinsics, f"math_{name}"), rows, results=2)
    for form, inputs, got in both:
        for part, which in enumerate((first, second)):
            values = [row[part] for row in got]
            off, where = worst(mpmath, CASES[which].reference, inputs, values, form)
            assert off <= 2.5, f"{which} {form.name}: {off:.3g} ulps at {where}"


VALUES = [*spread(-9, 9), *sizes(-120, 120), 1e-40, -1e-40, 0.0, -0.0, 2.0, -8.0]


def test_frexp_takes_apart(torch: Any, intrinsics: Any) -> None:
    for _, inputs, got in apply_both(torch, intrinsics.math_frexp, [(x,) for x in VALUES], results=2):
        assert got == [math.frexp(x) for (x,) in inputs]


def test_modf_takes_apart(torch: Any, intrinsics: Any) -> None:
    rows = [(x,) for x in [*VALUES, INF, -INF]]
    for _, inputs, got in apply_both(torch, intrinsics.math_modf, rows, results=2):
        expected = [math.modf(x) for (x,) in inputs]
        assert got == expected
        signs = [[math.copysign(1, part) for part in row] for row in got]
        assert signs == [[math.copysign(1, part) for part in row] for row in expected]


def test_remquo_gives_the_quotients_low_bits(torch: Any, intrinsics: Any) -> None:
    rows = [(x, y) for x in (5.0, -5.0, 29.25, 1e6, -7.5) for y in (3.0, -0.75, 2.0)]
    for _, inputs, got in apply_both(torch, intrinsics.math_remquo, rows, results=2):
        for (x, y), (remainder, quotient) in zip(inputs, got, strict=True):
            assert remainder == math.remainder(x, y)
            whole = round((x - remainder) / y)
            assert int(quotient) & 7 == whole & 7 or abs(int(quotient)) & 7 == abs(whole) & 7
            assert quotient == 0 or (quotient < 0) == (whole < 0)


FAST: dict[str, tuple[Any, list[float], Any]] = {
    "fast_exp": (mpmath.exp, spread(-80, 80), lambda x: 2 + math.floor(abs(1.173 * x))),
    "fast_exp10": (lambda x: mpmath.power(10, x), spread(-35, 35), lambda x: 2 + math.floor(abs(2.97 * x))),
    "fast_ln": (mpmath.log, [*spread(0.01, 0.5), *spread(2, 1000)], lambda _: 3),
    "fast_log2": (lambda x: mpmath.log(x, 2), [*spread(0.01, 0.5), *spread(2, 1000)], lambda _: 3),
    "fast_log10": (mpmath.log10, [*spread(0.01, 0.5), *spread(2, 1000)], lambda _: 3),
    "fast_rcp_approx": (lambda x: 1 / x, [*spread(-9, 9), *sizes(-120, 120)], lambda _: 1),
    "fast_sqrt_approx": (mpmath.sqrt, [abs(x) for x in sizes(-120, 120)], lambda _: 3),
    "fast_rsqrt_approx": (lambda x: 1 / mpmath.sqrt(x), [abs(x) for x in sizes(-120, 120)], lambda _: 2),
    "fast_ex2_approx": (lambda x: mpmath.power(2, x), spread(-120, 120), lambda _: 3),
    "fast_lg2_approx": (lambda x: mpmath.log(x, 2), [*spread(0.01, 0.5), *spread(2, 1000)], lambda _: 4),
}


def single(torch: Any, kernel: Any, rows: list[Row], results: int = 1) -> tuple[list[Row], list[Row]]:
    """The inputs of a kernel on `f32` as rounded, and its results."""
    inputs = rows_of(torch, rows, torch.float32)
    got = apply(torch, kernel, inputs, len(rows[0]), results, torch.float32)
    given = inputs.reshape(len(rows), -1)
    return list(map(tuple, given.tolist())), list(map(tuple, got.tolist()))


@pytest.mark.parametrize("name", FAST)
def test_fast_functions_are_as_exact_as_the_guide_says(torch: Any, intrinsics: Any, name: str) -> None:
    reference, values, bound = FAST[name]
    inputs, got = single(torch, getattr(intrinsics, name), [(x,) for x in values])
    with mpmath.workdps(40):
        for (x,), (value,) in zip(inputs, got, strict=True):
            off = error(mpmath, value, reference(mpmath.mpf(x)), F32)
            assert off <= bound(x) + 0.5, f"{off:.3g} ulps at {x}"


@pytest.mark.parametrize(
    ("name", "function", "low", "high", "absolute"),
    [
        ("fast_sin", math.sin, -math.pi, math.pi, 2**-21.4),
        ("fast_cos", math.cos, -math.pi, math.pi, 2**-21.1),
        ("fast_sin_approx", math.sin, -math.pi, math.pi, 2**-20.5),
        ("fast_cos_approx", math.cos, -math.pi, math.pi, 2**-20.5),
        ("fast_ln", math.log, 0.5, 2.0, 2**-21.4),
        ("fast_log2", math.log2, 0.5, 2.0, 2**-21.9),
        ("fast_log10", math.log10, 0.5, 2.0, 2**-22.9),
        ("fast_tan", math.tan, -1.0, 1.0, 2**-18.0),
    ],
)
def test_fast_functions_are_near(
    torch: Any, intrinsics: Any, name: str, function: Any, low: float, high: float, absolute: float
) -> None:
    inputs, got = single(torch, getattr(intrinsics, name), [(x,) for x in spread(low, high, 200)])
    assert max(abs(value - function(x)) for (x,), (value,) in zip(inputs, got, strict=True)) <= absolute


def test_fast_sin_cos_is_both(torch: Any, intrinsics: Any) -> None:
    rows = [(x,) for x in spread(-3, 3)]
    _, both = single(torch, intrinsics.fast_sin_cos, rows, results=2)
    _, sines = single(torch, intrinsics.fast_sin, rows)
    _, cosines = single(torch, intrinsics.fast_cos, rows)
    assert both == [(sine, cosine) for (sine,), (cosine,) in zip(sines, cosines, strict=True)]


def test_fast_functions_of_two(torch: Any, intrinsics: Any) -> None:
    rows: list[Row] = [(x, y) for x in (0.5, 3.0, 7.25) for y in (0.5, -2.0, 3.0)]
    inputs, powers = single(torch, intrinsics.fast_powf, rows)
    _, quotients = single(torch, intrinsics.fast_divide, [*rows, (1.0, 2.0**127)])
    assert quotients[-1] == (0.0,)
    for (x, y), (power,), (quotient,) in zip(inputs, powers, quotients[:-1], strict=True):
        assert math.isclose(power, x**y, rel_tol=1e-5)
        assert math.isclose(quotient, x / y, rel_tol=3e-7)


def test_saturate(torch: Any, intrinsics: Any) -> None:
    _, got = single(torch, intrinsics.fast_saturate, [(x,) for x in (-1.0, 0.25, 2.0, INF, -INF, NAN)])
    assert got == [(0.0,), (0.25,), (1.0,), (1.0,), (0.0,), (0.0,)]


def test_tanh_approx(torch: Any, intrinsics: Any) -> None:
    inputs, got = single(torch, intrinsics.fast_tanh_approx, [(x,) for x in [*spread(-5, 5), INF, -INF]])
    for (x,), (value,) in zip(inputs, got, strict=True):
        assert math.isclose(value, math.tanh(x), rel_tol=2**-10.9)


def test_formats_measure_themselves() -> None:
    """The measure itself: half a unit of a rounded third, whole units at the ends of the range."""
    with mpmath.workdps(40):
        third = mpmath.mpf(1) / 3
        assert error(mpmath, float(numpy.float32(1 / 3)), third, F32) <= 0.5
        assert error(mpmath, INF, mpmath.mpf(2) ** 128 - mpmath.mpf(2) ** 104, F32) == 1
        assert error(mpmath, 2.0**-149, mpmath.mpf(0), F32) == 1
        assert error(mpmath, NAN, third, Format("float32", 24, -126, 127)) == INF
