"""rustcuda_device::barrier, fence and bulk, on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def run(torch: Any, kernel: Any, columns: int, *arguments: Any, threads: int, dtype: str = "uint32") -> Any:
    """Calls a kernel whose last argument is a row of results for each thread; returns them, one a row."""
    given = [torch.from_numpy(x).cuda() if isinstance(x, np.ndarray) else x for x in arguments]
    out = torch.from_numpy(np.zeros((threads, columns), dtype)).cuda()
    kernel[1, threads](*given, out)
    return out.cpu().numpy()


def needs(torch: Any, *capability: int) -> None:
    if torch.cuda.get_device_capability() < capability:
        pytest.skip(f"needs capability {capability[0]}.{capability[1]}")


def test_one_warp_waits_for_another_that_only_arrives(torch: Any, intrinsics: Any) -> None:
    x = torch.randn(32, device="cuda")
    y = torch.zeros(32, device="cuda")
    intrinsics.barrier_arrive[1, 64](x, y)
    assert torch.equal(y, x.flip(0))


def test_halves_of_a_block_wait_by_barriers_of_their_own(torch: Any, intrinsics: Any) -> None:
    out = run(torch, intrinsics.barrier_named, 1, threads=128)
    np.testing.assert_array_equal(out[:, 0], np.arange(128) ^ 63)


@pytest.mark.parametrize("threads", [1, 33, 96, 1024])
@pytest.mark.parametrize("kind", ["none", "all", "last", "some"])
def test_barriers_count_votes(torch: Any, intrinsics: Any, kind: str, threads: int) -> None:
    numbers = np.arange(threads)
    predicates = {
        "none": numbers < 0,
        "all": numbers >= 0,
        "last": numbers == threads - 1,
        "some": numbers % 3 == 1,
    }[kind]
    out = run(torch, intrinsics.barrier_votes, 3, predicates, threads=threads)
    expected = [int(predicates.sum()), int(predicates.all()), int(predicates.any())]
    assert (out == expected).all()


@pytest.mark.parametrize("rounds", [0, 1, 5])
def test_barriers_hold_between_branches_and_in_loops(torch: Any, intrinsics: Any, rounds: int) -> None:
    threads = np.arange(256)
    x = np.random.default_rng(1).integers(0, 200, 256).astype("uint32")
    out = run(torch, intrinsics.barrier_branches, 1, x, rounds, threads=256)
    large = x > 100
    value = np.where(large, x // 7, x * x + 3).astype("uint32")
    value = value + np.where(large, value[threads ^ 1], 5 * value[threads ^ 2])
    for number in range(rounds):
        value = value + np.where(large, value[threads ^ 4], value[threads ^ 8] + np.uint32(number))
    np.testing.assert_array_equal(out[:, 0], value.astype("uint32"))


def test_fences_let_threads_go_on(torch: Any, intrinsics: Any) -> None:
    assert (run(torch, intrinsics.barrier_fences, 1, threads=64) == 1).all()


@pytest.mark.parametrize("threads", [1, 32, 77, 256])
@pytest.mark.parametrize("kernel", ["barrier_phases", "barrier_phases_90"])
def test_an_mbarrier_goes_through_its_phases(torch: Any, intrinsics: Any, kernel: str, threads: int) -> None:
    needs(torch, 9 if kernel.endswith("90") else 8, 0)
    out = run(torch, getattr(intrinsics, kernel), 3, threads=threads)
    neighbours = (np.arange(threads) + 1) % threads
    for phase in range(3):
        np.testing.assert_array_equal(out[:, phase], neighbours + 1000 * phase)


@pytest.mark.parametrize("threads", [1, 64, 256])
def test_a_managed_barrier(torch: Any, intrinsics: Any, threads: int) -> None:
    needs(torch, 8, 0)
    out = run(torch, intrinsics.barrier_managed, 2, threads=threads)
    for column in range(2):
        np.testing.assert_array_equal(out[:, column], (np.arange(threads) + 1 + column) % threads)


def test_a_managed_barrier_for_bytes(torch: Any, intrinsics: Any) -> None:
    needs(torch, 9, 0)
    assert (run(torch, intrinsics.barrier_managed_90, 1, threads=128) == 1).all()


def test_bulk_copies_arrive(torch: Any, intrinsics: Any) -> None:
    needs(torch, 9, 0)
    x = np.random.default_rng(2).normal(size=(2, 256)).astype("float32")
    out = run(torch, intrinsics.bulk_copy, 2, x.reshape(-1), threads=256, dtype="float32")
    np.testing.assert_array_equal(out, x[:, np.arange(256) ^ 1].T)
