"""rustcuda_device::block, on a GPU, beside numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

NUMPY = {"u32": "uint32", "i32": "int32", "u64": "uint64", "i64": "int64", "f32": "float32", "f64": "float64"}
TOLERANCE = {"f32": 1e-4, "f64": 1e-12}


def run(torch: Any, kernel: Any, columns: int, x: Any) -> Any:
    """Calls a kernel with one thread for each of x; returns their results, one thread a row."""
    out = torch.from_numpy(np.zeros((len(x), columns), x.dtype)).cuda()
    kernel[1, len(x)](torch.from_numpy(x).cuda(), out)
    return out.cpu().numpy()


def values(name: str, threads: int) -> Any:
    kind = np.dtype(NUMPY[name])
    random = np.random.default_rng(threads)
    if kind.kind == "f":
        return random.normal(size=threads).astype(kind)
    ends = np.iinfo(kind)
    return random.integers(ends.min, ends.max, size=threads, dtype=kind, endpoint=True)


def scan(operation: Any, x: Any, first: Any = None) -> Any:
    """The inclusive scan; with what comes first, the exclusive one."""
    scanned = operation.accumulate(x, dtype=x.dtype)
    return scanned if first is None else np.concatenate([[x.dtype.type(first)], scanned[:-1]])


def lowest(kind: Any) -> Any:
    return -np.inf if kind.kind == "f" else np.iinfo(kind).min


@pytest.mark.parametrize("threads", [32, 64, 96, 256, 992, 1024])
@pytest.mark.parametrize("name", NUMPY)
def test_blocks_reduce_and_scan(torch: Any, intrinsics: Any, name: str, threads: int) -> None:
    x = values(name, threads)
    out = run(torch, getattr(intrinsics, f"block_{name}"), 6, x)
    sums = scan(np.add, x)
    expected = [
        *(np.full(threads, total) for total in (sums[-1], x.min(), x.max())),
        *(sums, scan(np.add, x, 0), scan(np.maximum, x, lowest(x.dtype))),
    ]
    tolerance = TOLERANCE.get(name, 0.0)
    for column, of in enumerate(expected):
        np.testing.assert_allclose(out[:, column], of, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("threads", [32, 160, 192])
@pytest.mark.parametrize("name", NUMPY)
def test_shared_memory_for_as_many_warps_as_there_are_is_enough(
    torch: Any, intrinsics: Any, name: str, threads: int
) -> None:
    x = values(name, threads)
    out = run(torch, getattr(intrinsics, f"block_6_{name}"), 3, x)
    tolerance = TOLERANCE.get(name, 0.0)
    expected = [np.full(threads, scan(np.add, x)[-1]), np.full(threads, x.min()), scan(np.minimum, x)]
    for column, of in enumerate(expected):
        np.testing.assert_allclose(out[:, column], of, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("threads", [32, 96, 1024])
@pytest.mark.parametrize("name", ["f32", "f64"])
def test_nan_and_infinities(torch: Any, intrinsics: Any, name: str, threads: int) -> None:
    kernel = getattr(intrinsics, f"block_{name}")
    x = values(name, threads)
    x[[0, 31, threads - 1]] = np.nan
    out = run(torch, kernel, 6, x)
    assert np.isnan(out[:, 0]).all()
    assert (out[:, 1] == np.nanmin(x)).all()
    assert (out[:, 2] == np.nanmax(x)).all()
    alone = run(torch, kernel, 6, np.full_like(x, np.nan))
    assert np.isnan(alone[:, :3]).all()
    x = np.full_like(x, np.inf)
    assert (run(torch, kernel, 6, x)[:, :3] == np.inf).all()
    x[threads - 1] = -np.inf
    out = run(torch, kernel, 6, x)
    assert np.isnan(out[:, 0]).all()
    assert (out[:, 1] == -np.inf).all()


def test_subnormals_add_up(torch: Any, intrinsics: Any) -> None:
    x = np.full(256, np.finfo("float32").smallest_subnormal)
    out = run(torch, intrinsics.block_f32, 6, x)
    assert (out[:, 0] == 256 * x[0]).all()
    np.testing.assert_array_equal(out[:, 3], np.arange(1, 257, dtype="float32") * x[0])


def test_bits_of_a_block(torch: Any, intrinsics: Any) -> None:
    x = np.zeros(128, "uint32")
    x[[0, 77, 127]] = 1, 1 << 20, 1 << 31
    assert (run(torch, intrinsics.block_bits, 1, x) == 1 | 1 << 20 | 1 << 31).all()
