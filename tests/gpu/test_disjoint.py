"""rustcuda_device::disjoint, on a GPU: each thread writes its own elements."""

from __future__ import annotations

from typing import Any

import pytest


def test_tiles_are_shorter_at_the_end(torch: Any, intrinsics: Any) -> None:
    out = torch.full((10,), -1.0, device="cuda")
    intrinsics.disjoint_tiles[1, 32](out)
    assert out.tolist() == [0.0] * 4 + [1.0] * 4 + [2.0] * 2


@pytest.mark.parametrize("length", [0, 1, 3, 100])
def test_a_grid_strides_over_tiles(torch: Any, intrinsics: Any, length: int) -> None:
    out = torch.full((length,), -1.0, device="cuda")
    intrinsics.disjoint_tiles_strided[2, 4](out)
    assert out.tolist() == [float(place // 3) for place in range(length)]


def test_a_slice_knows_its_length(torch: Any, intrinsics: Any) -> None:
    empty, out = (torch.zeros(length, dtype=torch.uint32, device="cuda") for length in (0, 5))
    intrinsics.disjoint_length[1, 32](empty, out)
    assert out.tolist() == [52] * 5


def test_a_slice_made_of_a_pointer(torch: Any, intrinsics: Any) -> None:
    data = torch.tensor([1, 2, 3, 4], dtype=torch.uint32, device="cuda")
    intrinsics.disjoint_parts[1, 32](data, 3)
    assert data.tolist() == [2, 4, 6, 4]


def test_an_index_of_longer_rows_stays_in_its_row(torch: Any, intrinsics: Any) -> None:
    data = torch.zeros(4, 6, dtype=torch.uint32, device="cuda")
    intrinsics.disjoint_rows[1, (16, 8)](data, 24, 6)
    assert data.tolist() == [[100 * row + column for column in range(6)] for row in range(4)]


def test_elements_without_size_are_nobodys(torch: Any, intrinsics: Any) -> None:
    out = torch.tensor([7], dtype=torch.uint32, device="cuda")
    intrinsics.disjoint_no_size[1, 1](out)
    assert out.tolist() == [0]


def test_unchecked_elements(torch: Any, intrinsics: Any) -> None:
    out = torch.zeros(3 * 64, device="cuda")
    intrinsics.disjoint_unchecked[1, (64, 3)](out)
    assert out.tolist() == [float(place) for place in range(192)]


def test_what_the_shorter_slice_lacks_is_left_alone(torch: Any, intrinsics: Any) -> None:
    x, y = torch.ones(70, device="cuda"), torch.ones(100, device="cuda")
    intrinsics.disjoint_saxpy[4, 32](2.0, x, y)
    assert y.tolist() == [3.0] * 70 + [1.0] * 30


@pytest.mark.parametrize("length", [0, 1, 23, 24, 25, 100])
def test_runs_come_once_and_then_no_more(torch: Any, intrinsics: Any, length: int) -> None:
    out = torch.zeros(length, dtype=torch.uint32, device="cuda")
    intrinsics.disjoint_runs[2, 4](out)
    torch.cuda.synchronize()
    assert out.tolist() == [1 + place // 24 for place in range(length)]
