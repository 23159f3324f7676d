"""rustcuda_device::f16x2, bf16x2 and convert, on a GPU."""

from __future__ import annotations

from typing import Any

import pytest
from test_half import edges, rows
from ulps import BF16, F16, Format, sizes, spread

numpy = pytest.importorskip("numpy")
from arrays import assert_same, joined, launch, rounded, to_gpu, ulps_of, values_of  # noqa: E402

TF32 = Format("tf32", 11, -126, 127)


def flush(values: Any, form: Format) -> Any:
    """Subnormal numbers as zeros."""
    return numpy.where(numpy.abs(values) < 2.0**form.least, numpy.copysign(0.0, values), values)


def relu(values: Any) -> Any:
    """0 in the place of negative numbers."""
    return numpy.where(values < 0, 0.0, values)


def truncated(values: Any, form: Format) -> Any:
    """The next numbers of a format towards 0."""
    with numpy.errstate(all="ignore"):
        ulp = ulps_of(values, form)
        largest = (2 - 2.0 ** (1 - form.precision)) * 2.0**form.most
        nearest = numpy.trunc(values / ulp) * ulp
        return numpy.where(numpy.isfinite(values), numpy.clip(nearest, -largest, largest), values)


def halves(pairs: Any, form: Format) -> tuple[Any, Any]:
    """The lower and the upper numbers of pairs, as float64; all zeros positive."""
    return tuple(  # type: ignore[return-value]
        values_of((pairs >> shift & 0xFFFF).astype(numpy.uint16), form) + 0.0 for shift in (0, 16)
    )


def operations(x: Any, y: Any, z: Any, form: Format) -> dict[str, Any]:
    """What each operation should give; sums and products are exact in float64."""
    with numpy.errstate(all="ignore"):
        product, flushed = x * y, flush(x, form) * flush(y, form) + flush(z, form)
        fused = rounded(product + z, form)
        fused_ftz = flush(rounded(flushed, form), form)
        return {
            "add": rounded(x + y, form), "sub": rounded(x - y, form), "mul": rounded(product, form),
            "fma": fused, "fma_ftz": fused_ftz,
            "fma_sat": numpy.nan_to_num(numpy.clip(fused, 0, 1), nan=0.0),
            "fma_ftz_sat": numpy.nan_to_num(numpy.clip(fused_ftz, 0, 1), nan=0.0),
            "neg": -x, "abs": numpy.abs(x),
            "fma_relu": relu(fused), "fma_ftz_relu": relu(fused_ftz),
            "max": numpy.fmax(x, y), "min": numpy.fmin(x, y),
            "max_ftz": flush(numpy.fmax(x, y), form), "min_ftz": flush(numpy.fmin(x, y), form),
            "max_nan": numpy.maximum(x, y), "min_nan": numpy.minimum(x, y),
            "max_ftz_nan": flush(numpy.maximum(x, y), form), "min_ftz_nan": flush(numpy.minimum(x, y), form),
        }  # fmt: skip


@pytest.mark.parametrize(
    ("kernel", "form", "names"),
    [
        ("f16x2", F16, "add sub mul fma fma_ftz fma_sat fma_ftz_sat neg abs"),
        (
            "f16x2_80",
            F16,
            "fma_relu fma_ftz_relu max min max_ftz min_ftz max_nan min_nan max_ftz_nan min_ftz_nan",
        ),
        ("bf16x2", BF16, "add sub mul fma fma_relu max min max_nan min_nan neg abs"),
    ],
)
def test_operations(torch: Any, intrinsics: Any, kernel: str, form: Format, names: str) -> None:
    # Edges for x and y; z is ordinary, so that float64 holds x * y + z or loses what decides nothing.
    ordinary = rows(form, 3)[len(edges(form)) ** 3 :]
    two = rows(form, 2)[: len(edges(form)) ** 2]
    zeros = numpy.zeros((len(two), 1), numpy.uint16)
    bits = numpy.concatenate([ordinary, numpy.concatenate([two, zeros], axis=1)])
    pairs = joined(bits, bits[::-1])
    expected = names.split()
    got = launch(torch, getattr(intrinsics, f"packed_{kernel}"), pairs, "uint32", "uint32", len(expected))
    for part, order in zip(halves(got, form), (bits, bits[::-1]), strict=True):
        wanted = operations(*values_of(order, form).T, form)
        for k, name in enumerate(expected):
            assert_same(part[:, k], wanted[name] + 0.0)


FLOATS = numpy.array(
    [
        *(*spread(-9, 9), *sizes(-30, 20), *sizes(-140, 127), 65519.0, 65520.0, -65536.0, 1e-8, 0.0, -0.0),
        *(1 + steps * 2.0**-bits for steps in (1, 3) for bits in (11, 8)),
        *(numpy.inf, -numpy.inf, numpy.nan),
    ],
    numpy.float32,
)
PAIRS = numpy.stack([FLOATS, FLOATS[::-1]], axis=1)
EXACT = PAIRS.astype(numpy.float64)


def assert_halves(got: Any, form: Format, expected: Any) -> None:
    """The pairs hold these numbers; of zeros the sign may be any."""
    assert_same(numpy.stack(halves(got, form), axis=1), expected + 0.0)


def test_floats_to_pairs(torch: Any, intrinsics: Any) -> None:
    got = launch(torch, intrinsics.convert_to_halves, PAIRS, "float32", "uint32", 2)
    assert_halves(got[:, 0], F16, rounded(EXACT, F16))
    assert_halves(got[:, 1], BF16, rounded(EXACT, BF16))
    got = launch(torch, intrinsics.convert_to_halves_80, PAIRS, "float32", "uint32", 4)
    assert_halves(got[:, 0], F16, truncated(EXACT, F16))
    assert_halves(got[:, 1], F16, relu(rounded(EXACT, F16)))
    assert_halves(got[:, 2], BF16, truncated(EXACT, BF16))
    assert_halves(got[:, 3], BF16, relu(rounded(EXACT, BF16)))


def test_pairs_to_floats(torch: Any, intrinsics: Any) -> None:
    low = numpy.arange(2**16, dtype=numpy.uint16)
    high = low[::-1].copy()
    got = launch(torch, intrinsics.convert_from_halves, joined(low, high), "uint32", "float32", 8)
    for start, form in ((0, F16), (4, BF16)):
        for column in (0, 2):
            assert_same(got[:, start + column], values_of(low, form))
            assert_same(got[:, start + column + 1], values_of(high, form))


BYTES = {"e4m3": ("float8_e4m3fn", 448.0), "e5m2": ("float8_e5m2", 57344.0)}
SMALL = numpy.array(
    [*spread(-9, 9), *spread(-500, 500), *sizes(-20, 16), 448.0, 463.0, 1e6, -1e9, 0.0, 2.0**-10],
    numpy.float32,
)


def byte_pairs(torch: Any, floats: Any, kind: str, *, positive: bool) -> Any:
    """Pairs of floats of 8 bits, as torch rounds them."""
    dtype, largest = BYTES[kind]
    limited = numpy.clip(relu(floats) if positive else floats, -largest, largest).astype(numpy.float32)
    eights = (
        torch.from_numpy(limited).to(getattr(torch, dtype)).view(torch.uint8).numpy().astype(numpy.uint16)
    )
    return eights[:, 0] | eights[:, 1] << 8


def test_floats_to_bytes(torch: Any, intrinsics: Any) -> None:
    floats = numpy.stack([SMALL, SMALL[::-1]], axis=1)
    # To f16 first, then to bytes: from f16 the same bytes come, if f16 holds the number.
    held = numpy.clip(rounded(floats.astype(numpy.float64), F16), -65504, 65504).astype(numpy.float32)
    sixteens = held.astype(numpy.float16).view(numpy.uint16)
    pairs = joined(sixteens[:, 0], sixteens[:, 1])
    for got, source in (
        (launch(torch, intrinsics.convert_to_bytes, floats, "float32", "uint16", 4), floats),
        (launch(torch, intrinsics.convert_halves_to_bytes, pairs, "uint32", "uint16", 4), held),
    ):
        for column, (kind, positive) in enumerate(
            [("e4m3", False), ("e5m2", False), ("e4m3", True), ("e5m2", True)]
        ):
            expected = byte_pairs(torch, source, kind, positive=positive)
            # The sign of zeros that come from negative numbers with `relu` may be any.
            different = got[:, column] ^ expected
            assert not (different & (0x7F7F if positive else 0xFFFF)).any(), kind


def test_bytes_to_halves(torch: Any, intrinsics: Any) -> None:
    low = numpy.arange(256, dtype=numpy.uint16)
    packed = low | low[::-1] << 8
    got = launch(torch, intrinsics.convert_bytes_to_halves, packed, "uint16", "uint32", 4)
    for column, (kind, positive) in enumerate(
        [("e4m3", False), ("e5m2", False), ("e4m3", True), ("e5m2", True)]
    ):
        eights = torch.from_numpy(low.astype(numpy.uint8)).view(getattr(torch, BYTES[kind][0]))
        values = eights.to(torch.float32).numpy().astype(numpy.float64)
        both = numpy.stack([values, values[::-1]], axis=1)
        assert_halves(got[:, column], F16, relu(both) if positive else both)


def tf32(got: Any) -> Any:
    """What tensor cores see of it."""
    return (got & 0xFFFFE000).view(numpy.float32).astype(numpy.float64) + 0.0


ORDINARY = numpy.array(
    [*spread(-9, 9), *sizes(-100, 100), 1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-11, numpy.inf],
    numpy.float32,
)


def test_tf32_with_ties_away_from_0(torch: Any, intrinsics: Any) -> None:
    got = launch(torch, intrinsics.convert_rna_tf32, ORDINARY, "float32", "uint32")[:, 0]
    away = (ORDINARY.view(numpy.uint32) + 0x1000) & 0xFFFFE000
    assert_same(tf32(got), away.view(numpy.float32).astype(numpy.float64))


def test_tf32(torch: Any, intrinsics: Any) -> None:
    got = launch(torch, intrinsics.convert_tf32, ORDINARY, "float32", "uint32", 4)
    exact = ORDINARY.astype(numpy.float64)
    nearest, towards = rounded(exact, TF32), truncated(exact, TF32)
    for column, expected in enumerate((nearest, towards, relu(nearest), relu(towards))):
        assert_same(tf32(got[:, column].copy()), expected + 0.0)


def test_tf32_that_stays_finite(torch: Any, intrinsics: Any) -> None:
    if torch.cuda.get_device_capability() < (10, 0):
        pytest.skip("needs capability 10.0")
    numbers = numpy.array([1.5, numpy.inf, -numpy.inf, 3.4028e38], numpy.float32)
    got = launch(torch, intrinsics.convert_tf32_satfinite, numbers, "float32", "uint32", 5)
    assert numpy.isfinite(tf32(got.reshape(-1))).all()
    assert (tf32(got[0].copy()) == 1.5).all()


def test_pairs_join_low_and_high(torch: Any) -> None:
    """What these tests use themselves."""
    pair = joined(numpy.array([1], numpy.uint16), numpy.array([2], numpy.uint16))
    assert to_gpu(torch, pair, "uint32").view(torch.int32).tolist() == [0x00020001]
