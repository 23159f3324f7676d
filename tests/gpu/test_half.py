"""rustcuda_device::half, on a GPU: f16, bf16 and pairs of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ulps import BF16, F16, Format

numpy = pytest.importorskip("numpy")
from arrays import assert_same, bits_of, from_gpu, joined, launch, rounded, to_gpu, ulps_of, values_of  # noqa: E402

SHORT = {F16: "f16", BF16: "bf16"}
FORMATS = pytest.mark.parametrize("form", SHORT, ids=SHORT.values())
ALL = numpy.arange(2**16, dtype=numpy.uint16)


def edges(form: Format) -> Any:
    """Zeros, ones, subnormals, the largest numbers, infinities and NaN, of both signs."""
    largest = (2 - 2.0 ** (1 - form.precision)) * 2.0**form.most
    least = 2.0**form.least
    values = [0.0, 1.0, 1.5, 3.0, least, least / 2, least * 2.0 ** (1 - form.precision), largest, numpy.inf]
    return bits_of([*values, *(-value for value in values), numpy.nan], form)


def rows(form: Format, width: int) -> Any:
    """Bits of all combinations of edges, and of ordinary numbers from 2^-6 to 2^6 of both signs."""
    grids = numpy.meshgrid(*[edges(form)] * width, indexing="ij")
    combinations = numpy.stack([grid.reshape(-1) for grid in grids], axis=1)
    generator = numpy.random.default_rng(4)
    ordinary = numpy.exp2(generator.uniform(-6, 6, (4000, width))) * generator.choice([-1, 1], (4000, width))
    return numpy.concatenate([combinations, bits_of(ordinary, form)])


def run(torch: Any, intrinsics: Any, operation: str, bits: Any, form: Format, results: int = 1) -> Any:
    """The results of a kernel from halves to halves, as float64."""
    kernel = getattr(intrinsics, f"half_{SHORT[form]}_{operation}")
    return values_of(launch(torch, kernel, bits, form.name, form.name, results), form)


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": numpy.add,
    "sub": numpy.subtract,
    "mul": numpy.multiply,
    "div": numpy.divide,
}


@FORMATS
@pytest.mark.parametrize("operation", BINARY)
def test_operators_round_once(torch: Any, intrinsics: Any, operation: str, form: Format) -> None:
    bits = rows(form, 2)
    values = values_of(bits, form)
    with numpy.errstate(all="ignore"):
        # Halves in float64: sums and products are exact, or so close that the rest decides nothing.
        expected = rounded(BINARY[operation](values[:, 0], values[:, 1]), form)
    assert_same(run(torch, intrinsics, operation, bits, form)[:, 0], expected)


@FORMATS
def test_mul_add_rounds_once(torch: Any, intrinsics: Any, form: Format) -> None:
    bits = rows(form, 3)
    bits = bits[len(edges(form)) ** 3 :]  # of so different sizes that float64 does not hold them exactly
    x, y, z = values_of(bits, form).T
    assert_same(run(torch, intrinsics, "mul_add", bits, form)[:, 0], rounded(x * y + z, form))


@FORMATS
def test_larger_and_smaller(torch: Any, intrinsics: Any, form: Format) -> None:
    bits = rows(form, 2)
    values = values_of(bits, form)
    bits = bits[(values[:, 0] != 0) | (values[:, 1] != 0)]  # of two zeros any may come
    x, y = values_of(bits, form).T
    assert_same(run(torch, intrinsics, "max", bits, form)[:, 0], numpy.fmax(x, y))
    assert_same(run(torch, intrinsics, "min", bits, form)[:, 0], numpy.fmin(x, y))


@FORMATS
def test_signs(torch: Any, intrinsics: Any, form: Format) -> None:
    bits = rows(form, 2)
    x, sign_of = values_of(bits, form).T
    got = run(torch, intrinsics, "sign", bits, form, results=4)
    number = ~numpy.isnan(x)
    assert_same(got[:, 0], -x)
    assert_same(got[:, 1], numpy.abs(x))
    sign = numpy.where(numpy.signbit(sign_of), -1.0, 1.0)
    assert_same(got[number, 2], (numpy.abs(x) * sign)[number])
    assert_same(got[:, 3], numpy.where(number, numpy.copysign(1.0, x), numpy.nan))


@FORMATS
def test_powers_are_off_by_one_and_a_half_at_most(torch: Any, intrinsics: Any, form: Format) -> None:
    """Not exact: libdevice lets LLVM multiply halves as they are."""
    exact = values_of(ALL, form) ** 3
    got = run(torch, intrinsics, "powi", ALL, form)[:, 0]
    finite = numpy.abs(exact) < 2.0**form.most * 1.99
    off = numpy.abs(got - exact)[finite] / ulps_of(exact, form)[finite]
    assert off.max() <= 1.5


@FORMATS
@pytest.mark.parametrize(("operation", "function"), [("exp", numpy.exp), ("sqrt", numpy.sqrt)])
def test_functions_by_way_of_f32(
    torch: Any, intrinsics: Any, operation: str, function: Any, form: Format
) -> None:
    values = values_of(ALL, form)
    with numpy.errstate(all="ignore"):
        exact = function(values)
        expected = rounded(exact, form)
        got = run(torch, intrinsics, operation, ALL, form)[:, 0]
        # Where the exact value lies in the middle of two numbers, f32 may fall on either side of it.
        near = numpy.abs(got - exact) <= 0.502 * ulps_of(exact, form)
        beyond = numpy.abs(exact) >= 2.0**form.most * 1.99
    assert_same(numpy.where(near & ~beyond, expected, got), expected)


@FORMATS
def test_sin_cos(torch: Any, intrinsics: Any, form: Format) -> None:
    values = values_of(ALL, form)
    bits = ALL[numpy.isfinite(values)]
    values = values_of(bits, form)
    got = run(torch, intrinsics, "sin_cos", bits, form, results=2)
    for part, function in enumerate((numpy.sin, numpy.cos)):
        exact = function(values)
        assert (numpy.abs(got[:, part] - exact) <= 0.502 * ulps_of(exact, form)).all()


@FORMATS
def test_rem_euclid(torch: Any, intrinsics: Any, form: Format) -> None:
    bits = rows(form, 2)[len(edges(form)) ** 2 :]
    x, y = values_of(bits, form).T
    remainder = numpy.fmod(x, y)
    expected = numpy.where(remainder < 0, rounded(remainder + numpy.abs(y), form), remainder)
    got = run(torch, intrinsics, "rem_euclid", bits, form)[:, 0]
    assert_same(numpy.abs(got), numpy.abs(expected))


FLOATS = numpy.array(
    [
        value * sign
        for sign in (1.0, -1.0)
        for value in (0, 1, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-11, 1 + 3 * 2**-11, 65504, 65519, 65520, 1e-8,
                      2**-25, 2**-24 * 1.5, 1e-40, 2**-134, 3.3e38, 3.3895e38, 3.4e38, numpy.inf, numpy.nan)
    ],
    numpy.float32,
)  # fmt: skip


@FORMATS
def test_from_f32_rounds_to_nearest_even(torch: Any, intrinsics: Any, form: Format) -> None:
    generator = numpy.random.default_rng(5)
    any_bits = generator.integers(0, 2**32, 10000, numpy.uint32)
    floats = numpy.concatenate([FLOATS, any_bits.view(numpy.float32)])
    results = 2 if form is BF16 else 1
    kernel = getattr(intrinsics, f"half_{SHORT[form]}_from_f32")
    got = values_of(launch(torch, kernel, floats, "float32", form.name, results), form)
    with numpy.errstate(all="ignore"):
        expected = rounded(floats.astype(numpy.float64), form)
    for way in range(results):
        assert_same(got[:, way], expected)


@FORMATS
def test_to_wider_floats_is_exact(torch: Any, intrinsics: Any, form: Format) -> None:
    for wide in ("float32", "float64"):
        kernel = getattr(intrinsics, f"half_{SHORT[form]}_to_f{wide.removeprefix('float')}")
        assert_same(launch(torch, kernel, ALL, form.name, wide)[:, 0], values_of(ALL, form))


@FORMATS
def test_comparisons(torch: Any, intrinsics: Any, form: Format) -> None:
    bits = rows(form, 2)
    x, y = values_of(bits, form).T
    got = launch(torch, getattr(intrinsics, f"half_{SHORT[form]}_compare"), bits, form.name, "uint8")[:, 0]
    assert (got == (x < y) + 2 * (x == y) + 4 * (x > y)).all()


def test_classes_of_bf16(torch: Any, intrinsics: Any) -> None:
    values = values_of(ALL, BF16)
    got = launch(torch, intrinsics.half_bf16_classes, ALL, "bfloat16", "bool", 4)
    kinds = (numpy.isnan(values), numpy.isinf(values), numpy.isfinite(values), ALL >= 2**15)
    assert (got == numpy.stack(kinds, axis=1)).all()


def test_clamp_of_bf16(torch: Any, intrinsics: Any) -> None:
    bits = bits_of([[-3, -1, 2], [5, -1, 2], [0.5, -1, 2], [numpy.nan, -1, 2], [numpy.inf, -1, 2]], BF16)
    assert_same(run(torch, intrinsics, "clamp", bits, BF16)[:, 0], [-1, 2, 0.5, numpy.nan, 2])


@FORMATS
def test_numbers_come_from_python(torch: Any, intrinsics: Any, form: Format) -> None:
    x = torch.tensor([3.0], dtype=getattr(torch, form.name), device="cuda")
    y = torch.zeros_like(x)
    getattr(intrinsics, f"half_{SHORT[form]}_value")[1, 1](1.5, x, y)
    assert y.item() == 4.5


@FORMATS
def test_pairs_are_two_of_the_single_type(torch: Any, intrinsics: Any, form: Format) -> None:
    bits = rows(form, 3)[len(edges(form)) ** 3 :]
    half = len(bits) // 2
    pairs = joined(bits[:half], bits[half : 2 * half])
    got = launch(torch, getattr(intrinsics, f"half_{SHORT[form]}x2"), pairs, "uint32", "uint32", 8)
    for part, halves in ((bits[:half], got), (bits[half : 2 * half], got >> 16)):
        x, y, z = values_of(part, form).T
        expected = [
            *(rounded(value, form) for value in (x + y, x - y, x * y, x * y + z)),
            numpy.fmax(x, y), numpy.fmin(x, y), -x, numpy.abs(x),
        ]  # fmt: skip
        assert_same(values_of((halves & 0xFFFF).astype(numpy.uint16), form), numpy.stack(expected, axis=1))


@FORMATS
def test_pairs_are_made_of_and_split_into_two(torch: Any, intrinsics: Any, form: Format) -> None:
    low, high = ALL, ALL[::-1].copy()
    pairs, width = joined(low, high), form.name
    floats = launch(torch, getattr(intrinsics, f"half_{SHORT[form]}x2_to_f32"), pairs, "uint32", "float32", 2)
    assert_same(floats, numpy.stack([values_of(low, form), values_of(high, form)], axis=1))
    halves = launch(torch, getattr(intrinsics, f"half_{SHORT[form]}x2_halves"), pairs, "uint32", width, 2)
    assert (halves == numpy.stack([low, high], axis=1)).all()
    made = launch(torch, getattr(intrinsics, f"half_{SHORT[form]}x2_new"), halves, width, "uint32", 2)
    assert (made == numpy.stack([pairs, joined(high, high)], axis=1)).all()
    numbers = ~numpy.isnan(floats).any(axis=1)
    back = launch(
        torch, getattr(intrinsics, f"half_{SHORT[form]}x2_from_f32"), floats[numbers], "float32", "uint32"
    )
    assert (back[:, 0] == pairs[numbers]).all()


def test_arrays_cross_unchanged(torch: Any) -> None:
    """What these tests use themselves."""
    for dtype in ("uint8", "uint16", "uint32", "uint64", "float64"):
        array = numpy.arange(5, dtype=dtype)
        assert (from_gpu(torch, to_gpu(torch, array, dtype), dtype) == array).all()


LANES = numpy.arange(32)


@pytest.mark.parametrize("by", [0, 1, 16, 31])
@FORMATS
def test_warps_exchange_and_combine_halves(torch: Any, intrinsics: Any, form: Format, by: int) -> None:
    # Small integers, whose sums are exact.
    low, high = (LANES * 7 % 5 - 2.0), (LANES * 3 % 11 - 5.0)
    for values, pair in (([low], ""), ([low, high], "x2")):
        bits = [bits_of(each, form) for each in values]
        words, dtype = (joined(*bits), "uint32") if pair else (bits[0], form.name)
        out = to_gpu(torch, numpy.zeros(32 * 14, words.dtype), dtype)
        getattr(intrinsics, f"half_{SHORT[form]}{pair}_warp")[1, 32](to_gpu(torch, words, dtype), by, out)
        got = from_gpu(torch, out, dtype).reshape(32, 14)
        for half, each in enumerate(values):
            shuffled, combined = numpy.split(
                values_of((got >> 16 * half).astype("uint16"), form), [8], axis=1
            )
            down = numpy.where(LANES + by < 32, LANES + by, LANES)
            up = numpy.where(by <= LANES, LANES - by, LANES)
            sources = [numpy.full(32, by), LANES ^ by, down, up]
            assert_same(shuffled, numpy.repeat([each[source] for source in sources], 2, axis=0).T)
            before = [each[:lane] for lane in LANES]
            expected = [
                *([total] * 32 for total in (each.sum(), each.min(), each.max())),
                each.cumsum(),
                [part.min(initial=numpy.inf) for part in before],
                [part.max(initial=-numpy.inf) for part in before],
            ]
            numpy.testing.assert_array_equal(combined, numpy.transpose(expected))
