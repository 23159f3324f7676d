"""rustcuda_device::swizzle and cusimd, on a GPU."""

from __future__ import annotations

from typing import Any

import pytest

numpy = pytest.importorskip("numpy")
from arrays import launch  # noqa: E402


def test_swizzles_move_bits_and_undo_themselves(torch: Any, intrinsics: Any) -> None:
    offsets = numpy.arange(4096, dtype=numpy.uint64)
    got = launch(torch, intrinsics.swizzle_apply, offsets, "uint64", "uint64", 3)
    assert (got[:, 0] == (offsets ^ (offsets >> 5 & 31))).all()
    assert (got[:, 1] == (offsets ^ (offsets >> 6 & 7) << 2)).all()
    assert (got[:, 2] == offsets).all()


def test_banks(torch: Any, intrinsics: Any) -> None:
    strides = numpy.array([1, 16, 32, 33, 64], numpy.uint64)
    got = launch(torch, intrinsics.swizzle_banks, strides, "uint64", "uint64", 5).tolist()
    assert [row[:3] for row in got] == [[1, 32, 1], [16, 2, 1], [32, 1, 1], [1, 32, 1], [32, 1, 1]]
    # The swizzle for rows of 32; it helps rows of 64 by half only.
    assert got[2][3] == 1
    assert [row[4] for row in got] == [2, 0, 0, 2, 0]


def test_vectors(torch: Any, intrinsics: Any) -> None:
    rows = numpy.array([[1, 2, 3, 4]], numpy.float32)
    got = launch(torch, intrinsics.cusimd_float4, rows, "float32", "float32", 8)
    assert got.tolist() == [[1, 2, 3, 4, 2, 3, 3, 4]]
    got = launch(torch, intrinsics.cusimd_other, numpy.array([4, 5], numpy.int32), "int32", "int32", 4)
    assert got.tolist() == [[4, 4, 8, 4], [6, 5, 8, 5]]
