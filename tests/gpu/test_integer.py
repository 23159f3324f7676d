"""rustcuda_device::integer and dotprod, on a GPU, against Python's integers."""

from __future__ import annotations

from typing import Any

import pytest

numpy = pytest.importorskip("numpy")
from arrays import launch  # noqa: E402

WORDS = [0, 1, 2, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFF, 0x12345678, 0x00FF00FF, 0xDEADBEEF, 0x00800001]
M32, M64 = 2**32 - 1, 2**64 - 1


def signed(value: int, bits: int = 32) -> int:
    """The low bits as a number with a sign."""
    value &= 2**bits - 1
    return value - 2**bits if value >> (bits - 1) else value


def pairs(dtype: str) -> Any:
    """All pairs of the words, as this type."""
    return numpy.array([(x, y) for x in WORDS for y in WORDS], numpy.uint32).astype(dtype)


@pytest.mark.parametrize(("name", "bits"), [("integer_bits", 32), ("integer_bits_64", 64)])
def test_bits(torch: Any, intrinsics: Any, name: str, bits: int) -> None:
    numbers = WORDS if bits == 32 else [*WORDS, 2**63, 2**40 + 2**35, M64]
    dtype = f"uint{bits}"
    got = launch(torch, getattr(intrinsics, name), numpy.array(numbers, dtype), dtype, dtype, 4)
    for x, row in zip(numbers, got.tolist(), strict=True):
        reverse = int(f"{x:0{bits}b}"[::-1], 2)
        assert row == [reverse, bits - x.bit_length(), x.bit_count(), (x & -x).bit_length()]


def test_byte_perm(torch: Any, intrinsics: Any) -> None:
    x, y = 0x83828100, 0x07F60504
    selectors = [0x3210, 0x7654, 0x0123, 0x6420, 0x4444, 0xBA98, 0xFEDC, 0x0F1E]
    rows = numpy.array([(x, y, selector) for selector in selectors], numpy.uint32)
    got = launch(torch, intrinsics.integer_byte_perm, rows, "uint32", "uint32")[:, 0]
    source = x.to_bytes(4, "little") + y.to_bytes(4, "little")
    for selector, word in zip(selectors, got.tolist(), strict=True):
        digits = [selector >> 4 * k & 15 for k in range(4)]
        expected = [source[d & 7] if d < 8 else 255 * (source[d & 7] >> 7) for d in digits]
        assert word == int.from_bytes(bytes(expected), "little")


def test_funnelshift(torch: Any, intrinsics: Any) -> None:
    low, high = 0x89ABCDEF, 0x01234567
    shifts = [0, 1, 8, 31, 32, 33, 40, 2**31]
    rows = numpy.array([(low, high, shift) for shift in shifts], numpy.uint32)
    got = launch(torch, intrinsics.integer_funnelshift, rows, "uint32", "uint32", 4)
    both = high << 32 | low
    for shift, row in zip(shifts, got.tolist(), strict=True):
        wrapped, clamped = shift & 31, min(shift, 32)
        left = [both << by >> 32 & M32 for by in (wrapped, clamped)]
        right = [both >> by & M32 for by in (wrapped, clamped)]
        assert row == [left[0], right[0], left[1], right[1]]


def test_signed_arithmetic(torch: Any, intrinsics: Any) -> None:
    rows = pairs("int32")
    got = launch(torch, intrinsics.integer_signed, rows, "int32", "int32", 5)
    for (x, y), row in zip(rows.tolist(), got.tolist(), strict=True):
        product = signed(x, 24) * signed(y, 24)
        expected = [product, (x * y) >> 32, (x + y) >> 1, (x + y + 1) >> 1, abs(x - y) + 5]
        assert row == [signed(value) for value in expected], (x, y)


def test_unsigned_arithmetic(torch: Any, intrinsics: Any) -> None:
    rows = pairs("uint32")
    got = launch(torch, intrinsics.integer_unsigned, rows, "uint32", "uint32", 5)
    for (x, y), row in zip(rows.tolist(), got.tolist(), strict=True):
        product = (x & 0xFFFFFF) * (y & 0xFFFFFF)
        expected = [product, (x * y) >> 32, (x + y) >> 1, (x + y + 1) >> 1, abs(x - y) + 5]
        assert row == [value & M32 for value in expected], (x, y)


def test_high_products(torch: Any, intrinsics: Any) -> None:
    numbers = [0, 1, 2**63, M64, 2**63 - 1, 0x123456789ABCDEF0, 2**40]
    rows = numpy.array([(x, y) for x in numbers for y in numbers], numpy.uint64)
    unsigned = launch(torch, intrinsics.integer_umul64hi, rows, "uint64", "uint64")[:, 0]
    assert unsigned.tolist() == [x * y >> 64 for x, y in rows.tolist()]
    plain = rows.view(numpy.int64)
    got = launch(torch, intrinsics.integer_mul64hi, plain, "int64", "int64")[:, 0]
    assert got.tolist() == [x * y >> 64 for x, y in plain.tolist()]


def lanes(word: int, bits: int, *, sign: bool) -> list[int]:
    """The numbers in a word, the lowest first."""
    parts = [word >> at & (2**bits - 1) for at in range(0, 32, bits)]
    return [signed(part, bits) for part in parts] if sign else parts


@pytest.mark.parametrize(("name", "out", "sign"), [("signed", "int32", True), ("unsigned", "uint32", False)])
def test_dot_products(torch: Any, intrinsics: Any, name: str, out: str, sign: bool) -> None:
    rows = numpy.array([(x, y, z) for x in WORDS for y in WORDS for z in (0, 1000, M32)], numpy.uint32)
    got = launch(torch, getattr(intrinsics, f"dotprod_{name}"), rows, "uint32", out, 3)
    for (x, y, z), row in zip(rows.tolist(), got.tolist(), strict=True):
        small, large, other = lanes(x, 8, sign=sign), lanes(x, 16, sign=sign), lanes(y, 8, sign=sign)
        sums = [
            z + sum(a * b for a, b in zip(first, second, strict=True))
            for first, second in ((small, other), (large, other[:2]), (large, other[2:]))
        ]
        assert row == [signed(value) if sign else value & M32 for value in sums], (x, y, z)
