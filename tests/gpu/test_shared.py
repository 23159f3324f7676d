"""rustcuda_device::shared, on a GPU."""

from __future__ import annotations

from typing import Any


def test_threads_exchange_through_a_static_array(torch: Any, intrinsics: Any) -> None:
    x = torch.tensor(range(128), dtype=torch.uint32, device="cuda")
    intrinsics.shared_static[2, 64](x)
    assert x.tolist() == [*range(63, -1, -1), *range(127, 63, -1)]


def test_each_instance_of_a_generic_function_has_its_own_array(torch: Any, intrinsics: Any) -> None:
    x = torch.tensor(range(32), dtype=torch.uint32, device="cuda")
    out = torch.zeros_like(x)
    intrinsics.shared_generic[1, 32](x, out)
    assert out.tolist() == [3 * (lane ^ 1) for lane in range(32)]


def test_arrays_of_one_name_in_two_blocks_are_two(torch: Any, intrinsics: Any) -> None:
    out = torch.zeros(32, dtype=torch.uint32, device="cuda")
    intrinsics.shared_same_name[1, 32](out)
    assert out.tolist() == [11] * 32


def test_offsets_and_alignment(torch: Any, intrinsics: Any) -> None:
    out = torch.zeros(3, dtype=torch.uint64, device="cuda")
    intrinsics.shared_offset[1, 1](out)
    assert out.tolist() == [8, 0, 4]


def test_dynamic_memory_has_the_size_of_the_launch(torch: Any, intrinsics: Any) -> None:
    out = torch.zeros(32 + 3, dtype=torch.uint32, device="cuda")
    intrinsics.shared_dynamic[1, 32, 8 * 32](out)
    *exchanged, size, total, misaligned = out.tolist()
    assert exchanged == [1031 - thread for thread in range(32)]
    assert (size, misaligned) == (256, 0)
    assert total >= size


def test_several_arrays_from_one_block(torch: Any, intrinsics: Any) -> None:
    # 33 bytes, 7 of a gap, 33 times 8, 33 times 4.
    out = torch.zeros(34, dtype=torch.float64, device="cuda")
    intrinsics.shared_carved[1, 33, 436](out)
    assert out.tolist() == [132.5 - thread for thread in range(33)] + [436.0]
