"""rustcuda_device::memory and pack, on a GPU: copies arrive."""

from __future__ import annotations

from typing import Any

import pytest

numpy = pytest.importorskip("numpy")
from arrays import from_gpu, to_gpu  # noqa: E402

# Bytes of a word; 16 where no number says otherwise.
COPIES = {
    "ldg_1": 1, "ldg_2": 2, "ldg_4": 4, "ldg_8": 8, "ldg_16": 16, "ldca_16": 16, "ldcg_8": 8, "ldcs_4": 4,
    "ldlu_2": 2, "ldcv_1": 1, "ldcv_16": 16,
    "ld_no_allocate": 16, "ld_evict_first": 16, "ld_evict_last": 16,
    "ldg_no_allocate": 16, "ldg_evict_first": 16, "ldg_evict_last": 16,
    "ld_l2_64": 16, "ld_l2_128": 16, "ld_l2_256": 16, "ldg_l2_64": 16, "ldg_l2_128": 16, "ldg_l2_256": 16,
}  # fmt: skip


@pytest.mark.parametrize("name", COPIES)
def test_words_arrive(torch: Any, intrinsics: Any, name: str) -> None:
    words, size = 1000, COPIES[name]
    source = torch.randint(0, 256, (1024 * size,), dtype=torch.uint8, device="cuda")
    target = torch.zeros_like(source)
    getattr(intrinsics, f"memory_{name}")[8, 128](words, source, target)
    assert torch.equal(target[: words * size], source[: words * size])
    assert not target[words * size :].any()


@pytest.mark.parametrize("name", ["prefetch", "prefetch_priority"])
def test_prefetches_change_nothing(torch: Any, intrinsics: Any, name: str) -> None:
    source = torch.rand(100, device="cuda")
    before, target = source.clone(), torch.zeros_like(source)
    getattr(intrinsics, f"memory_{name}")[1, 1](100, source, target)
    assert torch.equal(target, before)
    assert torch.equal(source, before)


@pytest.mark.parametrize(
    ("name", "dtype", "length"),
    [
        ("u8_4", "uint8", 4),
        ("f32_2", "float32", 2),
        ("f32_4", "float32", 4),
        ("f64_1", "float64", 1),
        ("f16_2", "float16", 2),
        ("bf16_4", "bfloat16", 4),
        ("bf16_8", "bfloat16", 8),
    ],
)
@pytest.mark.parametrize("start", [0, 1, 4, 8, 60, 200])
@pytest.mark.parametrize("places", [96, 93])
def test_packs_are_filled_at_the_end(
    torch: Any, intrinsics: Any, name: str, dtype: str, length: int, start: int, places: int
) -> None:
    source = torch.arange(1, 102, device="cuda").to(getattr(torch, dtype))
    target = torch.zeros(places, dtype=source.dtype, device="cuda")
    blocks = -(-places // (length * 32))
    getattr(intrinsics, f"pack_{name}")[blocks, 32](start, source, target)
    expected = (source.tolist()[start:] + [7] * places)[:places]
    assert target.tolist() == expected


def test_packs_lie_in_shared_memory(torch: Any, intrinsics: Any) -> None:
    source = torch.rand(3 * 64 * 4, device="cuda")
    target = torch.zeros_like(source)
    intrinsics.pack_shared[3, 64](source, target)
    assert torch.equal(target.reshape(3, 64, 4), source.reshape(3, 64, 4).flip(1))


@pytest.mark.parametrize(("name", "words"), [("ca_4", 1), ("ca_8", 2), ("ca_16", 4), ("cg_16", 4)])
@pytest.mark.parametrize("filled", [False, True], ids=["whole", "filled"])
def test_asynchronous_copies_arrive(torch: Any, intrinsics: Any, name: str, words: int, filled: bool) -> None:
    source = numpy.random.default_rng(6).integers(1, 2**32, 64 * words, numpy.uint32)
    kernel = name.replace("_", "_zfill_") if filled else name
    target = to_gpu(torch, numpy.zeros_like(source), "uint32")
    getattr(intrinsics, f"async_copy_{kernel}")[1, 64](to_gpu(torch, source, "uint32"), target)
    pieces = source.view(numpy.uint8).reshape(64, 4 * words).copy()
    if filled:
        for thread, piece in enumerate(pieces):
            piece[min(thread, 4 * words) :] = 0
    got = from_gpu(torch, target, "uint32").view(numpy.uint8).reshape(64, 4 * words)
    assert (got == pieces[::-1]).all()


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_groups_are_waited_for_in_order(torch: Any, intrinsics: Any, rows: int) -> None:
    x = torch.randint(0, 100, (rows, 32), device="cuda").float()
    sums = torch.zeros(32, device="cuda")
    intrinsics.async_copy_pipeline[1, 32](rows, x, sums)
    assert torch.equal(sums, x.sum(0))


def test_barriers_hear_when_copies_have_ended(torch: Any, intrinsics: Any) -> None:
    x = torch.arange(256, dtype=torch.int32, device="cuda").view(torch.uint32)
    y = torch.zeros_like(x)
    intrinsics.async_copy_arrive[1, 64](x, y)
    assert torch.equal(y.view(torch.int32).reshape(4, 64), x.view(torch.int32).reshape(4, 64).flip(1))


def test_arrays_by_value(torch: Any, intrinsics: Any) -> None:
    y = torch.zeros(40, device="cuda")
    weights, signs = [0.5, 1.0, -2.0, 4.0, 8.0], [1, -1, 0]
    intrinsics.memory_arrays[1, 64](weights, signs, y)
    assert y.tolist() == [weights[at % 5] * signs[at % 3] for at in range(40)]


def test_structs_by_value(torch: Any, intrinsics: Any) -> None:
    y = torch.zeros(11, dtype=torch.float64, device="cuda")
    pair = intrinsics.MemoryPair(200, wide=-0.25)
    params = intrinsics.MemoryParams(
        1.5, halves=[1, 2, -3], pair=intrinsics.MemoryPair(7, 1e300), flag=True, brain=-2.0
    )
    intrinsics.memory_structs[1, 32](9, params, y, pair)
    assert y.tolist() == [9, 1.5, 1, 2, -3, 7, 1e300, 1, -2, 200, -0.25]


def test_structs_by_value_without_the_attribute(torch: Any, intrinsics: Any) -> None:
    y = torch.zeros(8, dtype=torch.float64, device="cuda")
    wide = intrinsics.MemoryWide(65535, 1e-300)
    plain = intrinsics.MemoryPlain(-128, wide, halves=[1, 2, -0.5], flag=True)
    intrinsics.memory_plain_structs[1, 1](9, plain, y, intrinsics.MemoryWide(a=7, b=-0.25))
    assert y.tolist() == [10, -128, 65535, 1e-300, 1, 1.5, 7, -0.25]
