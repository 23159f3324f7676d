"""rustcuda_device::atomic, on a GPU.

In whichever order threads came, what each found and what the last one left must fit together: see `chain`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

Operation = Callable[[Any, Any], Any]

ARITHMETIC: dict[str, Operation] = {
    "add": np.add,
    "sub": np.subtract,
    "min": np.minimum,
    "max": np.maximum,
}
BITWISE: dict[str, Operation] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
NUMPY = {
    "u32": "uint32",
    "i32": "int32",
    "u64": "uint64",
    "i64": "int64",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
}
INTEGERS = ("u32", "i32", "u64", "i64")
FLOATS = ("f16", "f32", "f64")
SCOPES = ("block", "device", "system")
ORDERINGS = {"relaxed": 0, "acquire": 1, "release": 2, "acq_rel": 3, "seq_cst": 4}


def operations(name: str) -> dict[str, Operation]:
    return ARITHMETIC | BITWISE if name in INTEGERS else ARITHMETIC


def launch(torch: Any, kernel: Any, x: Any, given: Sequence[Any], places: Any, columns: int) -> Any:
    """Runs a thread for each of x; returns what each found, one thread a row, and changes the places."""
    on_gpu = torch.from_numpy(places).cuda()
    out = torch.from_numpy(np.zeros((len(x), columns), x.dtype)).cuda()
    kernel[1, len(x)](torch.from_numpy(x).cuda(), *given, on_gpu, out)
    places[:] = on_gpu.cpu().numpy()
    return out.cpu().numpy()


def bits(x: Any) -> Any:
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")


def chain(first: Any, found: Any, left: Any, last: Any) -> None:
    """Checks that operations came one after the other.

    Args:
        first: What was there before all of them.
        found: What each found.
        left: What each left, given what it found.
        last: What is there now.
    """
    kind = found.dtype
    seen = np.sort(bits(np.append(found, kind.type(last))))
    written = np.sort(bits(np.append(left, kind.type(first)).astype(kind)))
    np.testing.assert_array_equal(seen, written)


def check(names: dict[str, Operation], x: Any, expected: Any, before: Any, found: Any, after: Any) -> None:
    """Checks every column of a kernel's results, and its place."""
    with np.errstate(over="ignore"):
        for column, operation in enumerate(names.values()):
            one = found[:, column]
            chain(before[column], one, operation(one, x), after[column])
    swap, load, store, old, done = range(len(names), len(names) + 5)
    chain(before[swap], found[:, swap], x, after[swap])
    assert set(found[:, load].tolist()) == {before[load]}
    assert after[load] == before[load]
    assert after[store] in x
    chain(before[old], found[:, old], np.where(found[:, old] == expected, x, found[:, old]), after[old])
    assert found[:, done].tolist().count(1) == 1
    assert found[:, done].tolist().count(0) == len(x) - 1
    assert after[done] == x[found[:, done] == 1][0]


def values(name: str, threads: int) -> Any:
    """A value a thread, none of which is 7 and none 0."""
    kind = np.dtype(NUMPY[name])
    random = np.random.default_rng(5)
    if kind.kind == "f":
        return (random.normal(size=threads) + np.where(random.random(threads) < 0.5, -3, 3)).astype(kind)
    ends = np.iinfo(kind)
    x = random.integers(ends.min, ends.max, size=threads, dtype=kind, endpoint=True) | kind.type(8)
    x[threads // 2] = ends.max
    return x


@pytest.mark.parametrize("threads", [1, 128])
@pytest.mark.parametrize("order", ORDERINGS.values(), ids=ORDERINGS)
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
def test_no_change_in_global_memory_is_lost(
    torch: Any, intrinsics: Any, name: str, scope: str, order: int, threads: int
) -> None:
    names = operations(name)
    x = values(name, threads)
    before = np.full(len(names) + 5, 7, x.dtype)
    after = before.copy()
    kernel = getattr(intrinsics, f"atomic_{scope}_{name}")
    found = launch(torch, kernel, x, (before[0].item(), order), after, len(names) + 5)
    check(names, x, before[0], before, found, after)


@pytest.mark.parametrize("threads", [1, 128])
@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
def test_no_change_in_shared_memory_is_lost(torch: Any, intrinsics: Any, name: str, threads: int) -> None:
    names = operations(name)
    x = values(name, threads)
    before = np.full(len(names) + 5, 7, x.dtype)
    after = before.copy()
    kernel = getattr(intrinsics, f"atomic_shared_{name}")
    found = launch(torch, kernel, x, (before[0].item(),), after, len(names) + 5)
    check(names, x, before[0], before, found, after)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_wrap_around(torch: Any, intrinsics: Any, name: str) -> None:
    kind = np.dtype(NUMPY[name])
    ends = np.iinfo(kind)
    places = np.full(12, ends.max, kind)
    places[1] = ends.min
    launch(torch, getattr(intrinsics, f"atomic_device_{name}"), np.ones(1, kind), (0, 0), places, 12)
    assert places[:2].tolist() == [ends.min, ends.max]


# What is there, what comes, the smaller and the larger of them.
EDGES = [
    (-0.0, 0.0, -0.0, 0.0),
    (0.0, -0.0, -0.0, 0.0),
    (np.inf, 1.0, 1.0, np.inf),
    (-np.inf, 1.0, -np.inf, 1.0),
    (1.0, -np.inf, -np.inf, 1.0),
    (1.0, np.inf, 1.0, np.inf),
    (-1.0, -2.0, -2.0, -1.0),
    (-2.0, -1.0, -2.0, -1.0),
    (5.0, np.nan, 5.0, 5.0),
    (-5.0, np.nan, -5.0, -5.0),
    (-np.inf, np.nan, -np.inf, -np.inf),
]


@pytest.mark.parametrize("memory", ["device", "shared"])
@pytest.mark.parametrize(("there", "comes", "smaller", "larger"), EDGES)
@pytest.mark.parametrize("name", ["f32", "f64"])
def test_minimum_and_maximum_at_the_edges(
    torch: Any,
    intrinsics: Any,
    name: str,
    there: float,
    comes: float,
    smaller: float,
    larger: float,
    memory: str,
) -> None:
    kind = np.dtype(NUMPY[name])
    places = np.full(9, there, kind)
    given = (1.0, 0) if memory == "device" else (1.0,)
    kernel = getattr(intrinsics, f"atomic_{memory}_{name}")
    found = launch(torch, kernel, np.full(1, comes, kind), given, places, 9)
    np.testing.assert_array_equal(bits(places[2:4]), bits(np.array([smaller, larger], kind)))
    np.testing.assert_array_equal(bits(found[0, :4]), bits(np.full(4, there, kind)))


@pytest.mark.parametrize("name", FLOATS)
def test_sums_of_infinities_and_nan(torch: Any, intrinsics: Any, name: str) -> None:
    kind = np.dtype(NUMPY[name])
    kernel = getattr(intrinsics, f"atomic_device_{name}")
    places = np.full(9, np.inf, kind)
    launch(torch, kernel, np.full(1, np.inf, kind), (1.0, 0), places, 9)
    assert places[0] == np.inf
    assert np.isnan(places[1])
    places[:] = 1
    launch(torch, kernel, np.full(1, np.nan, kind), (1.0, 0), places, 9)
    assert np.isnan(places[:2]).all()


@pytest.mark.parametrize("name", ["f16", "f64"])
def test_sums_of_subnormals_are_exact(torch: Any, intrinsics: Any, name: str) -> None:
    kind = np.dtype(NUMPY[name])
    least = np.finfo(kind).smallest_subnormal
    places = np.full(9, least, kind)
    launch(torch, getattr(intrinsics, f"atomic_device_{name}"), np.full(4, least, kind), (1.0, 0), places, 9)
    assert places[0] == 5 * least
    assert places[1] == -3 * least


def test_sums_of_f32_subnormals_are_exact_in_shared_memory(torch: Any, intrinsics: Any) -> None:
    least = np.finfo("float32").smallest_subnormal
    places = np.full(9, least, "float32")
    launch(torch, intrinsics.atomic_shared_f32, np.full(4, least, "float32"), (1.0,), places, 9)
    assert places[0] == 5 * least


def test_compare_exchange_looks_at_bits(torch: Any, intrinsics: Any) -> None:
    places = np.full(9, np.nan, "float32")
    found = launch(
        torch, intrinsics.atomic_device_f32, np.full(1, 2.0, "float32"), (float("nan"), 0), places, 9
    )
    assert found[0, 8] == 1, "NaN is NaN"
    places[:] = 0.0
    found = launch(torch, intrinsics.atomic_device_f32, np.full(1, 2.0, "float32"), (-0.0, 0), places, 9)
    assert found[0, 8] == 0, "0 is not -0"


def from_bf16(half: Any) -> Any:
    return (half.astype("uint32") << 16).view("float32")


def to_bf16(exact: Any) -> Any:
    """The bits of numbers that bf16 has."""
    assert not np.any(exact.astype("float32").view("uint32") & 0xFFFF)
    return (exact.astype("float32").view("uint32") >> 16).astype("uint16")


def from_f16(half: Any) -> Any:
    return half.view("float16")


def to_f16(exact: Any) -> Any:
    return exact.astype("float16").view("uint16")


HALVES = {
    "f16x2": (from_f16, to_f16, ("add", "sub", "min", "max")),
    "block_f16x2": (from_f16, to_f16, ("add", "sub", "min", "max")),
    "system_f16x2": (from_f16, to_f16, ("add", "sub", "min", "max")),
    "bf16x2": (from_bf16, to_bf16, ("min", "max")),
    "block_bf16x2": (from_bf16, to_bf16, ("min", "max")),
    "system_bf16x2": (from_bf16, to_bf16, ("min", "max")),
    "add_bf16x2": (from_bf16, to_bf16, ("add", "sub")),
    "bf16": (from_bf16, to_bf16, ("min", "max")),
    "add_bf16": (from_bf16, to_bf16, ("add", "sub")),
}


def hopper(torch: Any, name: str) -> None:
    if "add_bf16" in name and torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("additions of bf16 need capability 9.0")


@pytest.mark.parametrize("name", HALVES)
def test_no_change_of_halves_is_lost(torch: Any, intrinsics: Any, name: str) -> None:
    hopper(torch, name)
    decode, encode, names = HALVES[name]
    width = 2 if name.endswith("x2") else 1
    kind = f"uint{16 * width}"
    # Whole numbers, whose sums stay exact.
    numbers = np.random.default_rng(6).integers(1, 4, size=(32, width)) * [1, -1][:width]
    x = encode(numbers.astype("float32")).reshape(-1).view(kind)
    columns = len(names) + 5
    expected = int(encode(np.full(width, 7.0, "float32")).view(kind)[0])
    before = np.full(columns, expected, kind)
    after = before.copy()
    found = launch(torch, getattr(intrinsics, f"atomic_{name}"), x, (expected,), after, columns)
    halves = found.view("uint16").reshape(len(x), columns, width)
    for column, operation in enumerate(names):
        for half in range(width):
            one = np.ascontiguousarray(halves[:, column, half])
            left = encode(ARITHMETIC[operation](decode(one), numbers[:, half].astype("float32")))
            chain(to_one(encode), one, left, after.view("uint16").reshape(columns, width)[column, half])
    swap, load, store, old, done = range(len(names), columns)
    chain(expected, found[:, swap], x, after[swap])
    assert set(found[:, load].tolist()) == {expected}
    assert after[store] in x
    chain(expected, found[:, old], np.where(found[:, old] == expected, x, found[:, old]), after[old])
    assert found[:, done].tolist().count(1) == 1
    assert after[done] == x[found[:, done] == 1][0]


def to_one(encode: Callable[[Any], Any]) -> int:
    """The bits of 7 as one half."""
    return int(encode(np.array([7.0], "float32"))[0])


@pytest.mark.parametrize("name", ["f16x2", "bf16x2"])
def test_halves_leave_nan_out_of_minimum_and_maximum(torch: Any, intrinsics: Any, name: str) -> None:
    decode, encode, names = HALVES[name]
    nan = 0x7E00 if name == "f16x2" else 0x7FC0
    one = int(encode(np.array([1.0], "float32"))[0])
    places = np.full(len(names) + 5, one | nan << 16, "uint32")  # 1, NaN
    x = np.array([nan | one << 16], "uint32")  # NaN, 1
    launch(torch, getattr(intrinsics, f"atomic_{name}"), x, (0,), places, len(names) + 5)
    for operation in ("min", "max"):
        pair = decode(places[[names.index(operation)]].view("uint16"))
        assert pair.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("name", "decode", "encode"), [("f16", from_f16, to_f16), ("bf16", from_bf16, to_bf16)]
)
def test_functions_add_pairs(
    torch: Any, intrinsics: Any, name: str, decode: Callable[[Any], Any], encode: Callable[[Any], Any]
) -> None:
    if name == "bf16":
        hopper(torch, "add_bf16")
    pairs = encode(np.array([[1.0, -2.0]] * 32, "float32")).reshape(-1).view("uint32")
    place = torch.from_numpy(np.zeros(1, "uint32")).cuda()
    getattr(intrinsics, f"atomic_function_{name}x2")[1, 32](torch.from_numpy(pairs).cuda(), place)
    assert decode(place.cpu().numpy().view("uint16")).tolist() == [32.0, -64.0]


def test_what_is_written_before_a_release_is_seen_after_an_acquire(torch: Any, intrinsics: Any) -> None:
    for _ in range(20):
        data, flag, out = (torch.from_numpy(np.zeros(1024, "uint32")).cuda() for _ in range(3))
        intrinsics.atomic_message[2, 1024](data, flag, out)
        np.testing.assert_array_equal(out.cpu().numpy(), np.arange(1024) * 3)


def test_histogram_in_shared_memory(torch: Any, intrinsics: Any) -> None:
    x = np.random.default_rng(7).integers(0, 64, size=64).astype("uint32")
    counts = torch.from_numpy(np.zeros(64, "uint32")).cuda()
    intrinsics.atomic_histogram[1, 64](torch.from_numpy(x).cuda(), counts)
    np.testing.assert_array_equal(counts.cpu().numpy(), np.bincount(x, minlength=64))


@pytest.mark.parametrize("name", ["unused", "release"])
def test_operations_whose_result_is_unused_are_done(torch: Any, intrinsics: Any, name: str) -> None:
    places = [torch.from_numpy(np.zeros(2, "uint32")).cuda() for _ in range(3 if name == "unused" else 1)]
    getattr(intrinsics, f"atomic_{name}")[4, 128](*places)
    # In block scope, blocks do not see one another: only a launch of one block may use it.
    for place in places[:2]:
        assert place.cpu().numpy()[0] == 4 * sum(range(128))


def test_an_acquiring_addition_returns_what_was_there(torch: Any, intrinsics: Any) -> None:
    place = torch.from_numpy(np.array([41, 0], "uint32")).cuda()
    intrinsics.atomic_acquire[1, 1](place)
    assert place.cpu().numpy().tolist() == [42, 41]
