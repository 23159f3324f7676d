"""What the functions of rustcuda_device::math should give, and how exactly.

The bounds are those of the CUDA C++ programming guide, "Mathematical Functions": the difference to the
correctly rounded result, in units in the last place, so that half a unit comes on top.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ulps import Row, sizes, spread

# Comes with torch; without it there is nothing to test, which the tests say.
try:
    import mpmath
except ModuleNotFoundError:
    mpmath = None


@dataclass(frozen=True)
class Case:
    """A function.

    Attributes:
        reference: Its true value.
        rows: Arguments.
        single: Bound for `f32` in ulps.
        double: Bound for `f64` in ulps.
        absolute: Errors for `f32` and `f64` that are allowed whatever the ulps.
    """

    reference: Callable[..., Any]
    rows: Sequence[Row]
    single: float
    double: float
    absolute: tuple[float, float] = field(default=(0.0, 0.0))


def column(*parts: Sequence[float]) -> list[Row]:
    """Arguments of a function of one."""
    return [(value,) for part in parts for value in part]


def pairs(first: Sequence[float], second: Sequence[float]) -> list[Row]:
    """Arguments of a function of two."""
    return list(zip(first, second, strict=True))


def _signed(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: mpmath.sign(x) * function(abs(x))


def _half_away(x: Any) -> Any:
    return mpmath.sign(x) * mpmath.floor(abs(x) + 0.5)


def _fmod(x: Any, y: Any) -> Any:
    return mpmath.sign(x) * (abs(x) - abs(y) * mpmath.floor(abs(x) / abs(y)))


def _remainder(x: Any, y: Any) -> Any:
    return x - y * mpmath.nint(x / y)


def _normcdf(x: Any) -> Any:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def _length(*vector: Any) -> Any:
    return mpmath.sqrt(sum(x * x for x in vector))


def _logb(x: Any) -> Any:
    return mpmath.mpf(mpmath.frexp(abs(x))[1] - 1)


TINY = [1e-40, -3e-39, 1e-30, -1e-20, 1e-10, 2.0**-126]
MODERATE = spread(-4, 4)
WIDE = sizes(-60, 60)
POSITIVE = [abs(x) for x in [*TINY, *MODERATE, *WIDE]]
UNIT = spread(-1, 1)
ANGLES = [*TINY, *spread(-7, 7), *spread(-1e4, 1e4), *spread(-1e9, 1e9), 1e22, -3e38, 105615.0]
WHOLES = [*spread(-9, 9), *[k / 2 for k in range(-9, 10)], 2.0**23 + 1, -(2.0**22) - 0.5, 1e30, -1e-40]
VECTORS = [
    *zip(WIDE, sizes(-60, 59), sizes(-58, 60), sizes(-59, 61), sizes(-61, 58), strict=True),
    *((1e30, 2e30, -3e30, 1e20, 0.0), (1e-30, 2e-30, 3e-30, -1e-31, 0.0), (3.0, 4.0, 0.0, 0.0, 0.0)),
]
ORDERS = [(float(2 + k % 4), x) for k, x in enumerate(spread(8, 60))]
BESSEL = (2.2e-6, 5e-12)


def _cases() -> dict[str, Case]:
    m = mpmath
    two, three, four = ([row[:length] for row in VECTORS] for length in (2, 3, 4))
    return {
        "floor": Case(m.floor, column(WHOLES), 0, 0),
        "ceil": Case(m.ceil, column(WHOLES), 0, 0),
        "trunc": Case(_signed(m.floor), column(WHOLES), 0, 0),
        "round": Case(_half_away, column(WHOLES), 0, 0),
        "round_ties_even": Case(m.nint, column(WHOLES), 0, 0),
        "fract": Case(lambda x: x - _signed(m.floor)(x), column(WHOLES), 0, 0),
        "sqrt": Case(m.sqrt, column(POSITIVE), 0, 0),
        "rsqrt": Case(lambda x: 1 / m.sqrt(x), column(POSITIVE), 2, 1),
        "cbrt": Case(_signed(m.cbrt), column(TINY, MODERATE, WIDE), 1, 1),
        "rcbrt": Case(lambda x: _signed(m.cbrt)(1 / x), column(TINY, MODERATE, WIDE), 1, 1),
        "exp": Case(m.exp, column(TINY, MODERATE, spread(-104, 89)), 2, 1),
        "exp2": Case(lambda x: m.power(2, x), column(TINY, MODERATE, spread(-149, 128)), 2, 1),
        "exp10": Case(lambda x: m.power(10, x), column(TINY, MODERATE, spread(-44, 38.5)), 2, 1),
        "exp_m1": Case(m.expm1, column(TINY, MODERATE, spread(-104, 89)), 1, 1),
        "ln": Case(m.log, column(POSITIVE), 1, 1),
        "ln_1p": Case(m.log1p, column(TINY, UNIT, POSITIVE), 1, 1),
        "log2": Case(lambda x: m.log(x, 2), column(POSITIVE), 1, 1),
        "log10": Case(m.log10, column(POSITIVE), 2, 1),
        "sin": Case(m.sin, column(ANGLES), 2, 2),
        "cos": Case(m.cos, column(ANGLES), 2, 2),
        "tan": Case(m.tan, column(ANGLES), 4, 2),
        "sinpi": Case(m.sinpi, column(TINY, MODERATE, [0.5, 2, -2], spread(-1e5, 1e5)), 2, 2),
        "cospi": Case(m.cospi, column(TINY, MODERATE, [0.5, 2, -2], spread(-1e5, 1e5)), 2, 2),
        "asin": Case(m.asin, column(TINY, UNIT, [1, -1]), 2, 2),
        "acos": Case(m.acos, column(TINY, UNIT, [1, -1]), 2, 2),
        "atan": Case(m.atan, column(TINY, MODERATE, WIDE), 2, 2),
        "sinh": Case(m.sinh, column(TINY, MODERATE, spread(-89, 89)), 3, 2),
        "cosh": Case(m.cosh, column(TINY, MODERATE, spread(-89, 89)), 2, 1),
        "tanh": Case(m.tanh, column(TINY, MODERATE, WIDE), 2, 1),
        "asinh": Case(m.asinh, column(TINY, MODERATE, WIDE), 3, 3),
        "acosh": Case(m.acosh, column([1], spread(1, 4), [x for x in POSITIVE if x > 1]), 4, 3),
        "atanh": Case(m.atanh, column(TINY, UNIT), 3, 2),
        "erf": Case(m.erf, column(TINY, MODERATE, WIDE), 2, 2),
        "erfc": Case(m.erfc, column(TINY, MODERATE, spread(-6, 13)), 4, 5),
        "erfinv": Case(m.erfinv, column(TINY, UNIT, [0.9999, -0.999999]), 4, 5),
        "erfcinv": Case(lambda x: m.erfinv(1 - x), column(spread(0.001, 1.999), [1e-5, 1e-20, 1e-30]), 4, 6),
        "erfcx": Case(lambda x: m.exp(x * x) * m.erfc(x), column(TINY, spread(-8, 20)), 4, 4),
        "normcdf": Case(_normcdf, column(TINY, MODERATE, spread(-13, 8)), 5, 5),
        "normcdfinv": Case(
            lambda x: m.sqrt(2) * m.erfinv(2 * x - 1), column(spread(0.001, 0.999), [1e-5, 1e-20]), 5, 8
        ),
        "lgamma": Case(lambda x: m.log(abs(m.gamma(x))), column(spread(-2.2, 0), spread(0, 40), [1e5]), 6, 4),
        "tgamma": Case(m.gamma, column(spread(-5, 0), spread(0, 34)), 11, 10),
        "j0": Case(lambda x: m.besselj(0, x), column(spread(-8, 8, 16), spread(8, 90, 16)), 9, 7, BESSEL),
        "j1": Case(lambda x: m.besselj(1, x), column(spread(-8, 8, 16), spread(8, 90, 16)), 9, 7, BESSEL),
        "y0": Case(lambda x: m.bessely(0, x), column(spread(0, 8, 16), spread(8, 90, 16)), 9, 7, BESSEL),
        "y1": Case(lambda x: m.bessely(1, x), column(spread(0, 8, 16), spread(8, 90, 16)), 9, 7, BESSEL),
        "cyl_bessel_i0": Case(lambda x: m.besseli(0, x), column(TINY, spread(-20, 80)), 6, 6),
        "cyl_bessel_i1": Case(lambda x: m.besseli(1, x), column(TINY, spread(-20, 80)), 6, 6),
        "logb": Case(_logb, column(TINY, MODERATE, WIDE), 0, 0),
        "ilogb": Case(_logb, column(TINY, MODERATE, WIDE), 0, 0),
        "llrint": Case(m.nint, column(WHOLES[:-2]), 0, 0),
        "llround": Case(_half_away, column(WHOLES[:-2]), 0, 0),
        "hypot": Case(_length, two, 3, 2),
        "rhypot": Case(lambda *v: 1 / _length(*v), two, 2, 1),
        "norm3d": Case(_length, three, 3, 2),
        "rnorm3d": Case(lambda *v: 1 / _length(*v), three, 2, 1),
        "norm4d": Case(_length, four, 3, 2),
        "rnorm4d": Case(lambda *v: 1 / _length(*v), four, 2, 1),
        "norm": Case(_length, VECTORS, 4, 4),
        "rnorm": Case(lambda *v: 1 / _length(*v), VECTORS, 4, 4),
        "powf": Case(m.power, pairs(POSITIVE[6:], spread(-2, 2, len(POSITIVE) - 6)), 8, 2),
        "powi": Case(lambda x, n: x**int(n), pairs(MODERATE, [k % 9 - 4.0 for k in range(40)]), 8, 8),
        "atan2": Case(m.atan2, pairs(MODERATE, MODERATE[::-1]), 3, 2),
        "log": Case(lambda x, b: m.log(x) / m.log(b), pairs(POSITIVE, spread(2, 9, len(POSITIVE))), 5, 4),
        "fdim": Case(lambda x, y: max(x - y, m.mpf(0)), pairs(MODERATE, MODERATE[::-1]), 0, 0),
        "fmod": Case(_fmod, pairs(WIDE, sizes(-40, 40)), 0, 0),
        "remainder": Case(_remainder, pairs(WIDE, sizes(-40, 40)), 0, 0),
        "mul_add": Case(
            lambda x, y, z: x * y + z, [(x, y, -x * y) for x, y in pairs(MODERATE, MODERATE[::-1])], 0, 0
        ),
        "ldexp": Case(lambda x, n: m.ldexp(x, int(n)), pairs(MODERATE, spread(-150, 120)), 0, 0),
        "scalbn": Case(lambda x, n: m.ldexp(x, int(n)), pairs(MODERATE, spread(-150, 120)), 0, 0),
        "jn": Case(lambda n, x: m.besselj(int(n), x), ORDERS, 9, 9, BESSEL),
        "yn": Case(lambda n, x: m.bessely(int(n), x), ORDERS, 9, 9, BESSEL),
    }  # fmt: skip


CASES = _cases() if mpmath else {}
