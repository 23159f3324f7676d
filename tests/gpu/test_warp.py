"""rustcuda_device::warp, on a GPU, beside numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

LANES = np.arange(32)
FULL = 0xFFFFFFFF
INTEGERS = ("u32", "i32", "u64", "i64")
FLOATS = ("f32", "f64")
NUMPY = {"u32": "uint32", "i32": "int32", "u64": "uint64", "i64": "int64", "f32": "float32", "f64": "float64"}
OPERATIONS = (np.add, np.minimum, np.maximum)


def launch(torch: Any, kernel: Any, columns: int, dtype: str, *arguments: Any, threads: int = 32) -> Any:
    """Calls a kernel whose last argument is a row of results for each thread; returns them, one a row."""
    given = [torch.from_numpy(x).cuda() if isinstance(x, np.ndarray) else x for x in arguments]
    out = torch.from_numpy(np.zeros((threads, columns), dtype)).cuda()
    kernel[1, threads](*given, out)
    return out.cpu().numpy()


def values(name: str) -> Any:
    """One value a lane, that reach from one end of the type to the other, in no order."""
    kind = np.dtype(NUMPY[name])
    if kind.kind == "f":
        return np.random.default_rng(3).normal(size=32).astype(kind)
    ends = np.iinfo(kind)
    spread = np.random.default_rng(3).integers(ends.min, ends.max, size=32, dtype=kind, endpoint=True)
    spread[[4, 31]] = ends.min, ends.max
    return spread


def test_lanes_know_themselves_and_the_others(torch: Any, intrinsics: Any) -> None:
    threads = 80  # the last warp has 16
    out = launch(torch, intrinsics.warp_lanes, 10, "uint32", threads=threads)
    for thread, row in enumerate(out.tolist()):
        lane, warp = thread % 32, thread // 32
        live = 32 if warp < 2 else 16
        here = 1 << lane
        below, above = here - 1, FULL & ~(2 * here - 1)
        masks = [below, below | here, here, here | above, above]
        assert row == [lane, warp, live, *masks, FULL >> (32 - live), 1]


def test_what_lanes_wrote_is_seen_after_their_barrier(torch: Any, intrinsics: Any) -> None:
    out = launch(torch, intrinsics.warp_sync_mask, 1, "uint32")
    assert out[:, 0].tolist() == (131 - LANES).tolist()


def within(lanes: Any, source: Any) -> Any:
    """The source where it is one of the lanes, else the lane itself."""
    return np.where((source >= 0) & (source < len(lanes)), source, lanes)


@pytest.mark.parametrize("by", [0, 1, 5, 16, 31])
@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
def test_shuffles_hand_values_over(torch: Any, intrinsics: Any, name: str, by: int) -> None:
    x = values(name)
    if name in FLOATS:
        x[:4] = np.nan, -np.inf, -0.0, np.finfo(x.dtype).smallest_subnormal
    out = launch(torch, getattr(intrinsics, f"warp_shuffle_{name}"), 8, NUMPY[name], x, by)
    bits = out.view(f"u{x.itemsize}")
    sources = [np.full(32, by), LANES ^ by, within(LANES, LANES + by), within(LANES, LANES - by)]
    for column, source in enumerate(sources):
        np.testing.assert_array_equal(bits[:, column], x.view(bits.dtype)[source])
    half, few = LANES[:16], by % 16
    sources = [np.full(16, few), half ^ few, within(half, half + few), within(half, half - few)]
    for column, source in enumerate(sources, 4):
        np.testing.assert_array_equal(bits[:16, column], x.view(bits.dtype)[source])
        np.testing.assert_array_equal(bits[16:, column], x.view(bits.dtype)[16:])


PREDICATES = {
    "none": np.zeros(32, bool),
    "all": np.ones(32, bool),
    "lane 31": LANES == 31,
    "some": LANES % 3 == 0,
}


@pytest.mark.parametrize("mask", [FULL, 1, 1 << 31, 0x0000FF00, 0x55555555])
@pytest.mark.parametrize("predicates", PREDICATES.values(), ids=PREDICATES)
def test_votes(torch: Any, intrinsics: Any, predicates: Any, mask: int) -> None:
    out = launch(torch, intrinsics.warp_votes, 7, "uint32", predicates, mask)
    ballot = sum(1 << lane for lane in range(32) if predicates[lane])
    whole = [ballot, ballot.bit_count(), ballot == FULL, ballot != 0]
    some = [ballot & mask, ballot & mask == mask, ballot & mask != 0]
    for lane, row in enumerate(out.tolist()):
        assert row == [*whole, *(some if mask >> lane & 1 else [0, 0, 0])]


@pytest.mark.parametrize("mask", [FULL, 1 << 31, 0x0000FFF0])
@pytest.mark.parametrize("kinds", [1, 3, 32])
def test_matches(torch: Any, intrinsics: Any, kinds: int, mask: int) -> None:
    x = (LANES % kinds).astype("uint32")
    y = x.astype("uint64") << 32  # differ in the upper half only
    out = launch(torch, intrinsics.warp_matches, 4, "uint32", x, y, mask)
    members = [lane for lane in range(32) if mask >> lane & 1]
    for lane, row in enumerate(out.tolist()):
        same = sum(1 << other for other in members if x[other] == x[lane])
        every = mask if len({int(x[other]) for other in members}) == 1 else 0
        assert row == ([same, same, every, every] if lane in members else [0, 0, 0, 0])


@pytest.mark.parametrize("mask", [FULL, 1 << 31, 0x00F0F000])
def test_one_lane_is_elected(torch: Any, intrinsics: Any, mask: int) -> None:
    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("elect needs capability 9.0")
    out = launch(torch, intrinsics.warp_elect, 3, "uint32", mask)
    members = [lane for lane in range(32) if mask >> lane & 1]
    (leader,) = {int(out[lane, 0]) for lane in members}
    assert leader in members
    for lane, row in enumerate(out.tolist()):
        assert row == ([leader, lane == leader, lane == leader] if lane in members else [99, 99, 99])


@pytest.mark.parametrize("mask", [FULL, 1 << 31, 0x000FF00F])
def test_redux(torch: Any, intrinsics: Any, mask: int) -> None:
    if torch.cuda.get_device_capability() < (8, 0):
        pytest.skip("redux needs capability 8.0")
    x = values("u32")
    out = launch(torch, intrinsics.warp_redux, 8, "uint32", x, mask)
    members = [lane for lane in range(32) if mask >> lane & 1]
    of = x[members]
    signed = of.view("int32")
    expected = [
        of.sum(dtype="uint32"),
        *(operation.reduce(of) for operation in (np.bitwise_and, np.bitwise_or, np.bitwise_xor)),
        *(of.min(), of.max(), signed.min().view("uint32"), signed.max().view("uint32")),
    ]
    for lane, row in enumerate(out.tolist()):
        assert row == ([int(value) for value in expected] if lane in members else [0] * 8)


def identity(operation: Any, kind: Any) -> Any:
    if operation is np.add:
        return kind.type(0)
    lowest, highest = (-np.inf, np.inf) if kind.kind == "f" else (np.iinfo(kind).min, np.iinfo(kind).max)
    return kind.type(highest if operation is np.minimum else lowest)


@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
def test_full_warps_reduce_and_scan(torch: Any, intrinsics: Any, name: str) -> None:
    x = values(name)
    out = launch(torch, getattr(intrinsics, f"warp_collect_{name}"), 9, NUMPY[name], x)
    tolerance = {"f32": 1e-5, "f64": 1e-13}.get(name, 0.0)
    for column, operation in enumerate(OPERATIONS):
        scanned = operation.accumulate(x, dtype=x.dtype)
        shifted = np.concatenate([[identity(operation, x.dtype)], scanned[:-1]])
        for place, expected in ((0, np.full(32, scanned[-1])), (3, scanned), (6, shifted)):
            np.testing.assert_allclose(out[:, place + column], expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("live", [1, 2, 7, 16, 31, 32])
@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
def test_warps_that_are_not_full_reduce_and_scan(torch: Any, intrinsics: Any, name: str, live: int) -> None:
    x = values(name)
    kernel = getattr(intrinsics, f"warp_partial_{name}")
    out = launch(torch, kernel, 5, NUMPY[name], x, threads=live)
    tolerance = {"f32": 1e-5, "f64": 1e-13}.get(name, 0.0)
    scanned = np.add.accumulate(x[:live], dtype=x.dtype)
    shifted = np.concatenate([[x.dtype.type(0)], scanned[:-1]])
    totals = [np.full(live, operation.accumulate(x[:live], dtype=x.dtype)[-1]) for operation in OPERATIONS]
    for column, expected in enumerate([*totals, scanned, shifted]):
        np.testing.assert_allclose(out[:, column], expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", FLOATS)
def test_nan_is_left_out_of_minimum_and_maximum_but_not_of_sums(
    torch: Any, intrinsics: Any, name: str
) -> None:
    x = values(name)
    x[[0, 17, 31]] = np.nan
    out = launch(torch, getattr(intrinsics, f"warp_collect_{name}"), 9, NUMPY[name], x)
    assert np.isnan(out[:, 0]).all()
    assert (out[:, 1] == np.nanmin(x)).all()
    assert (out[:, 2] == np.nanmax(x)).all()
    alone = launch(
        torch, getattr(intrinsics, f"warp_collect_{name}"), 9, NUMPY[name], np.full_like(x, np.nan)
    )
    assert np.isnan(alone[:, :3]).all()


@pytest.mark.parametrize("name", FLOATS)
def test_infinities_and_subnormals_add_up(torch: Any, intrinsics: Any, name: str) -> None:
    kernel = getattr(intrinsics, f"warp_collect_{name}")
    x = np.zeros(32, NUMPY[name])
    x[[1, 31]] = np.finfo(x.dtype).smallest_subnormal
    assert (launch(torch, kernel, 9, NUMPY[name], x)[:, 0] == 2 * x[31]).all()
    x[5] = np.inf
    assert (launch(torch, kernel, 9, NUMPY[name], x)[:, [0, 2]] == np.inf).all()
    x[6] = -np.inf
    out = launch(torch, kernel, 9, NUMPY[name], x)
    assert np.isnan(out[:, 0]).all()
    assert (out[:, 1] == -np.inf).all()


def test_bits_reduce_and_scan(torch: Any, intrinsics: Any) -> None:
    x = values("u64") | np.uint64(0x10001000)
    x[9] = 0x0000_0001_1000_1001
    out = launch(torch, intrinsics.warp_bits, 8, "uint64", x)
    low = x & np.uint64(FULL)
    operations = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)
    for column, operation in enumerate(operations):
        assert (out[:, column] == operation.reduce(x)).all()
        assert (out[:, 3 + column] == operation.reduce(low)).all()
    np.testing.assert_array_equal(out[:, 6], np.bitwise_xor.accumulate(x))
    np.testing.assert_array_equal(out[1:, 7], np.bitwise_and.accumulate(x)[:-1])
    assert out[0, 7] == np.iinfo("uint64").max
