"""rustcuda_device::thread, on a GPU: who has which index."""

from __future__ import annotations

from typing import Any

import pytest


def zeros(torch: Any, *shape: int, dtype: str = "uint32") -> Any:
    return torch.zeros(shape, dtype=getattr(torch, dtype), device="cuda")


def test_index_1d_numbers_the_threads_of_the_grid(torch: Any, intrinsics: Any) -> None:
    out = torch.zeros(1000, dtype=torch.uint64, device="cuda")
    intrinsics.thread_index_1d[8, 128](out)
    assert out.tolist() == list(range(1000))


@pytest.mark.parametrize(
    ("grid", "block", "valid"),
    [
        (4, 32, 3),
        ((1, 2), 32, 0),
        ((1, 1, 2), 32, 0),
        (1, (32, 2), 0),
        (1, (32, 1, 2), 0),
    ],
)
def test_only_one_dimensional_launches_have_an_index_1d(
    torch: Any, intrinsics: Any, grid: Any, block: Any, valid: int
) -> None:
    out = zeros(torch, 1)
    intrinsics.thread_index_1d_valid[grid, block](out)
    assert out.tolist() == [valid]


def test_each_axis_is_its_own(torch: Any, intrinsics: Any) -> None:
    grid, block = (2, 3, 4), (5, 6, 7)
    in_grid, in_block = (1, 2, 3), (4, 5, 6)
    number_of_block = in_grid[0] + grid[0] * (in_grid[1] + grid[1] * in_grid[2])
    number_in_block = in_block[0] + block[0] * (in_block[1] + block[1] * in_block[2])
    out = zeros(torch, 14)
    intrinsics.thread_axes[grid, block](number_of_block * 5 * 6 * 7 + number_in_block, out)
    row, column = in_grid[1] * block[1] + in_block[1], in_grid[0] * block[0] + in_block[0]
    assert out.tolist() == [*in_block, *in_grid, *block, *grid, row, column]


def test_index_2d_numbers_rows_of_a_fixed_length(torch: Any, intrinsics: Any) -> None:
    out = zeros(torch, 30 * 100)
    # More threads than elements along both axes.
    intrinsics.thread_index_2d[(4, 4), (32, 8)](out)
    assert out.tolist() == list(range(3000))


def test_index_2d_needs_a_launch_without_depth(torch: Any, intrinsics: Any) -> None:
    out = zeros(torch, 3000)
    intrinsics.thread_index_2d[(4, 4, 2), (32, 8)](out)
    assert not any(out.tolist())


def test_index_3d_numbers_planes(torch: Any, intrinsics: Any) -> None:
    out = zeros(torch, 3, 5, 7)
    intrinsics.thread_index_3d[(1, 1, 4), (8, 8)](out)
    assert out.flatten().tolist() == list(range(105))


def test_rows_are_as_long_as_the_tensors(torch: Any, intrinsics: Any) -> None:
    out = zeros(torch, 13, 37)
    intrinsics.thread_index_2d_runtime[(2, 2), (32, 8)](out)
    assert out.tolist() == [[1000 * row + column for column in range(37)] for row in range(13)]


def test_a_tensor_of_one_dimension_is_one_row(torch: Any, intrinsics: Any) -> None:
    out = zeros(torch, 40)
    intrinsics.thread_index_2d_runtime[(2, 2), (32, 8)](out)
    assert out.tolist() == list(range(40))


def test_rows_without_elements_have_no_index(torch: Any, intrinsics: Any) -> None:
    intrinsics.thread_index_2d_runtime[1, 32](zeros(torch, 4, 0))
    torch.cuda.synchronize()


def test_each_warp_has_one_index(torch: Any, intrinsics: Any) -> None:
    # Four warps a block, the last of four threads.
    out = zeros(torch, 12)
    intrinsics.thread_warp_index[3, 100](out)
    assert out.tolist() == list(range(12))


@pytest.mark.parametrize("length", [0, 1, 191, 192, 193, 1000])
def test_a_grid_strides_over_every_element_once(torch: Any, intrinsics: Any, length: int) -> None:
    out = zeros(torch, length)
    intrinsics.thread_grid_stride[3, 64](out)
    assert out.tolist() == list(range(length))


def test_only_one_dimensional_grids_stride(torch: Any, intrinsics: Any) -> None:
    out = zeros(torch, 100)
    intrinsics.thread_grid_stride[(1, 2), 64](out)
    assert not any(out.tolist())


def test_a_grid_stride_saxpy(torch: Any, intrinsics: Any) -> None:
    x = torch.arange(10_000, dtype=torch.float32, device="cuda")
    y = torch.ones_like(x)
    intrinsics.thread_grid_stride_saxpy[7, 96](2.0, x, y)
    assert y.equal(2 * x + 1)


def test_multiprocessors_have_numbers_below_nsmid(torch: Any, intrinsics: Any) -> None:
    places = 1024
    first, second = (zeros(torch, places + 2, dtype="uint64") for _ in range(2))
    for out in (first, second):
        intrinsics.thread_multiprocessors[4096, 128](out, places)
    *ran, most, grid = first.tolist()
    count = torch.cuda.get_device_properties(0).multi_processor_count
    assert 1 <= sum(ran) <= count <= most
    assert not any(ran[most:])
    assert second.tolist()[-1] != grid


def test_a_block_of_the_promised_size(torch: Any, intrinsics: Any) -> None:
    out = zeros(torch, 4 * 32)
    intrinsics.thread_block_size[1, (32, 4)](out)
    assert out.tolist() == [3204] * 128


def test_a_block_of_another_size_is_refused(torch: Any, intrinsics: Any) -> None:
    with pytest.raises(intrinsics.KernelError):
        intrinsics.thread_block_size[1, (32, 2)](zeros(torch, 128))


def test_blocks_of_a_cluster_have_ranks(torch: Any, intrinsics: Any) -> None:
    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("this GPU has no clusters")
    out = zeros(torch, 4 * 64)
    intrinsics.thread_cluster[4, 64](out)
    assert out.tolist() == [thread // 64 % 2 for thread in range(256)]


@pytest.mark.parametrize(("name", "dtype"), [("f32", "float32"), ("f16", "float16"), ("i64", "int64")])
def test_a_kernel_for_each_type(torch: Any, intrinsics: Any, name: str, dtype: str) -> None:
    x = torch.arange(-20, 20, device="cuda").to(getattr(torch, dtype))
    y = torch.zeros_like(x)
    getattr(intrinsics, f"thread_typed_{name}")[2, 32](x, y)
    assert y.equal(x * x)
