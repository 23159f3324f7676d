"""rustcuda_device::thread, on a GPU."""

from __future__ import annotations

from typing import Any


def test_index_1d_numbers_the_threads_of_the_grid(torch: Any, intrinsics: Any) -> None:
    out = torch.zeros(1000, dtype=torch.uint64, device="cuda")
    intrinsics.thread_index_1d[8, 128](out)
    assert out.tolist() == list(range(1000))
