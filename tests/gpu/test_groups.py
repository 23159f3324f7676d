"""rustcuda_device::cooperative_groups, on a GPU, beside numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

FULL = 0xFFFFFFFF


def run(
    torch: Any,
    kernel: Any,
    columns: int,
    *arguments: Any,
    block: int | tuple[int, ...],
    dtype: str = "uint32",
) -> Any:
    """Calls a kernel whose last argument is a row of results for each thread; returns them, one a row."""
    given = [torch.from_numpy(x).cuda() if isinstance(x, np.ndarray) else x for x in arguments]
    out = torch.from_numpy(np.zeros((np.prod(block), columns), dtype)).cuda()
    kernel[1, block](*given, out)
    return out.cpu().numpy()


@pytest.mark.parametrize("block", [(192, 1, 1), (16, 12, 1), (4, 6, 8), (1, 3, 64)])
def test_blocks_of_any_shape(torch: Any, intrinsics: Any, block: tuple[int, int, int]) -> None:
    x = np.random.default_rng(1).integers(0, 1000, 192).astype("uint32")
    out = run(torch, intrinsics.groups_block, 5, x, block=block)
    width, height, _ = block
    rank = np.arange(192)
    places = rank % width + 100 * (rank // width % height) + 10000 * (rank // (width * height))
    expected = [np.full(192, 192), places, x[::-1], np.full(192, x.max()), np.cumsum(x)]
    np.testing.assert_array_equal(out, np.stack(expected, axis=1))


@pytest.mark.parametrize("block", [256, (16, 16), (2, 4, 32)])
def test_blocks_reduce_and_scan_floats(torch: Any, intrinsics: Any, block: int | tuple[int, ...]) -> None:
    x = np.random.default_rng(2).normal(size=256).astype("float32")
    out = run(torch, intrinsics.groups_block_f32, 2, x, block=block, dtype="float32")
    np.testing.assert_allclose(out[:, 0], x.sum(), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(out[:, 1], np.cumsum(x), rtol=1e-4, atol=1e-4)


def mask_of(lanes: list[int]) -> int:
    return sum(1 << lane for lane in lanes)


def answers(x: Any, by: int, lanes: list[int], lane: int, *, tile: int) -> list[int]:
    """What a group tells one of its lanes; `tile` is its size, or 0 for lanes anywhere."""
    warp = 32 * (lane // 32)
    inside = [other - warp for other in lanes]
    own, mask = lane - warp, mask_of(inside)

    def of(source: int) -> int:
        return int(x[warp + source]) if source in inside else int(x[lane])

    odd = [other for other in inside if x[warp + other] % 2 == 1]
    same = [other for other in inside if x[warp + other] % 3 == x[lane] % 3]
    if tile:
        odd = [other - inside[0] for other in odd]
        source = inside[by % tile]
    else:
        source = inside[by] if by < len(inside) else own
    shuffled = [of(source), of(own ^ by), of(own + by), of(own - by)]
    members = [int(x[other]) for other in lanes]
    return [
        *(len(lanes), inside.index(own), mask, mask_of(odd)),
        *(int(all(member > 0 for member in members)), int(5 in members)),
        *shuffled,
        *(mask_of(same), mask_of(same)),
        mask if len({member // 100 for member in members}) == 1 else 0,
        mask if len({member % 2 for member in members}) == 1 else 0,
        shuffled[0] + 1000 * shuffled[1],
        shuffled[2] + 1000 * shuffled[3],
    ]


@pytest.mark.parametrize("by", [0, 1, 3, 8, 31])
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32])
def test_tiles(torch: Any, intrinsics: Any, size: int, by: int) -> None:
    x = np.random.default_rng(3).integers(0, 120, 64).astype("uint32")
    x[5] = 5
    out = run(torch, getattr(intrinsics, f"groups_tile_{size}"), 19, x, by, block=64)
    for thread in range(64):
        first = thread - thread % size
        lanes = list(range(first, first + size))
        tile = x[lanes]
        collected = [tile.sum(), tile[: thread % size + 1].sum(), tile.max()]
        expected = answers(x, by, lanes, thread, tile=size) + [int(value) for value in collected]
        assert out[thread].tolist() == expected, f"thread {thread}"


@pytest.mark.parametrize("by", [0, 1, 2, 31])
@pytest.mark.parametrize("mask", [FULL, 1, 1 << 31, 0x80000001, 0x0F0F00FF, 0x55555555])
def test_lanes_of_a_branch(torch: Any, intrinsics: Any, mask: int, by: int) -> None:
    x = np.random.default_rng(4).integers(0, 120, 32).astype("uint32")
    x[31] = 5
    out = run(torch, intrinsics.groups_coalesced, 16, x, mask, by, block=32)
    lanes = [lane for lane in range(32) if mask >> lane & 1]
    for lane in range(32):
        expected = answers(x, by, lanes, lane, tile=0) if lane in lanes else [0] * 16
        assert out[lane].tolist() == expected, f"lane {lane}"
