"""rustcuda_launch, which launches from C: when it is used, and that it takes nothing that Python refuses."""

from __future__ import annotations

import gc
import math
import struct
import sys
import threading
import types
import weakref
from typing import Any

import in_c
import pytest
from fake_driver import FakeTensor, fake_torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from loaders import Loaded, content, signature

from rustcuda_backend.loader.known_in_c import known_in_c

NUMBERS = ("i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize", "f32", "f64", "bool")
ELEMENTS = (*NUMBERS, "f16", "bf16")
# Of each kind one, after a pointer that tells the GPU.
TYPES = (
    *NUMBERS,
    *(f"*const {dtype}" for dtype in ELEMENTS),
    "*mut f32", "&[u8]", "DisjointSlice<bf16>", "DisjointSlice<i32, Runtime2DIndex>", "&f64", "&mut i64",
)  # fmt: skip
SIGNATURES = [signature(f"k{index}", "x: *const f32", f"v: {rust}") for index, rust in enumerate(TYPES)]
X = FakeTensor(0x7000)


@pytest.fixture
def made(make_loader: Any, monkeypatch: pytest.MonkeyPatch, launches_in_c: Any) -> Any:
    """Makes a loader that may launch from C, in a process with torch."""

    def make(launcher: str = "c", major: int = 1) -> Loaded:
        torch = fake_torch()
        in_c.describe_to_c(torch, monkeypatch, major)
        monkeypatch.setitem(sys.modules, "torch", torch)
        monkeypatch.setitem(sys.modules, "rustcuda_launch", launches_in_c)
        monkeypatch.setenv("RUSTCUDA_LAUNCHER", launcher)
        loaded: Loaded = make_loader(content(*SIGNATURES))
        return loaded

    return make


class Counted:
    """Counts the launches that come to Python.

    Attributes:
        start: Those that came to what takes arguments of every kind.
        launcher: Those that came to the kernel's own launcher, which may send them on to `start`.
    """

    def __init__(self, loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
        self.start = self.launcher = 0
        start = loaded.module._Launch.start

        def started(launch: Any, *arguments: Any) -> None:
            self.start += 1
            start(launch, *arguments)

        monkeypatch.setattr(loaded.module._Launch, "start", started)
        for kernel in loaded.module._library.kernels:
            kernel._launcher = self._counting(kernel._launcher)

    def _counting(self, launcher: Any) -> Any:
        def launched(launch: Any, *arguments: Any, **named: Any) -> None:
            self.launcher += 1
            launcher(launch, *arguments, **named)

        return launched


def warmed(loaded: Loaded) -> list[Any]:
    """A launch of each kernel, with a value for its parameter that is right."""
    launches = []
    for one in SIGNATURES:
        launch = getattr(loaded.module, one.name)[1, 32]
        launch(X, right(one.parameters[1].dtype, one.parameters[1].kind))
        launches.append(launch)
    loaded.driver.launches.clear()
    return launches


def right(dtype: str, kind: str) -> Any:
    if kind == "scalar":
        return True if dtype == "bool" else 1
    wide = {"i": "int", "u": "uint", "f": "float", "b": "bool"}[dtype[0]]
    names = {"isize": "int64", "usize": "uint64", "bf16": "bfloat16", "bool": "bool"}
    return FakeTensor(0x100, f"torch.{names.get(dtype, wide + dtype[1:])}")


def outcome(loaded: Loaded, launch: Any, value: Any) -> Any:
    """What was launched, or the error."""
    loaded.driver.launches.clear()
    try:
        launch(X, value)
    except loaded.module.KernelError as error:
        return type(error).__name__, str(error)
    (launched,) = loaded.driver.launches
    return launched


TENSORS = st.builds(
    FakeTensor,
    st.sampled_from([0, 0x100, 0x7000]),
    st.sampled_from([f"torch.{name}" for name in in_c.DTYPES]),
    index=st.integers(-1, 1),
    is_cuda=st.booleans(),
    contiguous=st.booleans(),
    requires_grad=st.booleans(),
    count=st.sampled_from([0, 1, 6]),
    shape=st.sampled_from([(6,), (2, 3), (1, 6, 1)]),
)
EDGES = [
    sign * (2**bits + more) for bits in (7, 8, 15, 16, 31, 32, 63, 64) for sign in (1, -1) for more in (-1, 0)
]
FLOATS = [3.4028235677973366e38, 3.4028235677973362e38, -0.0, math.inf, -math.inf, 1e-46, 0.1]
VALUES = (
    st.sampled_from(EDGES) | st.integers() | st.sampled_from(FLOATS) | st.floats(allow_nan=False)
    | st.booleans() | st.none() | st.just("1") | TENSORS
)  # fmt: skip


@pytest.fixture
def both(made: Any) -> Any:
    """A loader and its launches from C, whose `start` is what launches from Python."""
    loaded = made()
    return loaded, warmed(loaded)


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(SIGNATURES) - 1), VALUES)
@example(TYPES.index("f32"), 2**1024)
@example(TYPES.index("bool"), 1)
@example(TYPES.index("u32"), True)
def test_c_launches_and_refuses_what_python_does(both: Any, index: int, value: Any) -> None:
    loaded, launches = both
    launch = launches[index]
    assert outcome(loaded, launch, value) == outcome(loaded, launch.start, value)


@pytest.mark.parametrize("index", range(len(SIGNATURES)), ids=TYPES)
def test_every_type_is_launched_from_c(made: Any, monkeypatch: pytest.MonkeyPatch, index: int) -> None:
    loaded = made()
    came = Counted(loaded, monkeypatch)
    launch = warmed(loaded)[index]
    assert (came.start, came.launcher) == (len(SIGNATURES), 0)
    parameter = SIGNATURES[index].parameters[1]
    launch(X, right(parameter.dtype, parameter.kind))
    assert (came.start, came.launcher) == (len(SIGNATURES), 0)
    assert len(loaded.driver.launches) == 1


def test_numbers_are_packed_to_the_last_bit(made: Any) -> None:
    loaded = made()
    launches = dict(zip(TYPES, warmed(loaded), strict=True))
    for rust, value, packed in (
        ("i8", -128, b"\x80"), ("u16", 0xFEFF, b"\xff\xfe"), ("i64", -(2**63), bytes(7) + b"\x80"),
        ("u64", 2**64 - 1, b"\xff" * 8), ("f32", 0.1, struct.pack("<f", 0.1)),
        ("f64", 0.1, struct.pack("<d", 0.1)),
        ("f32", 3, struct.pack("<f", 3)), ("f64", -0.0, bytes(7) + b"\x80"), ("bool", False, b"\0"),
        ("f32", math.nan, struct.pack("<f", math.nan)),
    ):  # fmt: skip
        launches[rust](X, value)
        assert loaded.last.packed[1] == packed


@pytest.mark.parametrize("rust", ["f32", "f64"])
@pytest.mark.parametrize("payload", [1, 1 << 29, 1 << 50, 1 << 51, (1 << 51) + (1 << 30)])
def test_nan_has_the_bits_that_python_gives_it(made: Any, rust: str, payload: int) -> None:
    loaded = made()
    (value,) = struct.unpack("<d", struct.pack("<Q", 0xFFF << 52 | payload))
    warmed(loaded)[TYPES.index(rust)](X, value)
    assert loaded.last.packed[1] == struct.pack({"f32": "<f", "f64": "<d"}[rust], value)


@pytest.mark.parametrize(
    "parameters",
    [
        ("a: f16", "x: *const f32"),
        ("a: bf16", "x: *const f32"),
        ("n: u32",),
        ("x: [f32; 2]", "y: *mut f32"),
        (),
    ],
)
def test_other_kernels_are_launched_from_python(parameters: tuple[str, ...]) -> None:
    assert known_in_c(signature("k", *parameters)) == b""


def test_as_many_values_as_there_is_room_for() -> None:
    assert len(known_in_c(signature("k", *(f"x{index}: &[f32]" for index in range(32))))) == 128
    assert known_in_c(signature("k", *(f"x{index}: &[f32]" for index in range(32)), "n: u32")) == b""


@pytest.mark.parametrize(("launcher", "major"), [("python", 1), ("c", 2)])
def test_it_is_left_alone_where_that_is_asked_or_torch_describes_otherwise(
    made: Any, monkeypatch: pytest.MonkeyPatch, launcher: str, major: int
) -> None:
    loaded = made(launcher, major)
    came = Counted(loaded, monkeypatch)
    launches = warmed(loaded)
    before = came.start, came.launcher
    launches[0](X, 1)
    assert len(loaded.driver.launches) == 1
    # Python's own short way.
    assert (came.start, came.launcher) == (before[0], before[1] + 1)


def test_a_torch_that_does_not_describe_its_tensors_is_launched_from_python(
    made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = made("")
    monkeypatch.delattr(FakeTensor, "__dlpack_c_exchange_api__")
    came = Counted(loaded, monkeypatch)
    launch = loaded.module.k0[1, 32]
    for _ in range(3):
        launch(X, 1)
    assert (came.start, came.launcher, len(loaded.driver.launches)) == (1, 2, 3)


def test_before_torch_is_there_launches_wait_for_it(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = made()
    came = Counted(loaded, monkeypatch)
    launch = loaded.module.k0[1, 32]
    with monkeypatch.context() as without:
        without.delitem(sys.modules, "torch")
        launch(0x100, 1)
    launch(X, 1)
    assert (came.start, came.launcher) == (2, 0)
    launch(X, 1)
    assert (came.start, came.launcher, len(loaded.driver.launches)) == (2, 0, 3)


class Subclass(FakeTensor):
    """A tensor of a class derived from torch's."""


def test_what_is_not_usual_takes_the_short_way_of_python(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = made()
    came = Counted(loaded, monkeypatch)
    launch = loaded.module.k0[1, 32]
    for _ in range(3):
        launch(Subclass(0x7000), 1)
    assert (came.start, came.launcher, len(loaded.driver.launches)) == (1, 2, 3)


def test_unloading_one_module_sends_others_to_python_once(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = made()
    launch = warmed(loaded)[0]
    came = Counted(loaded, monkeypatch)
    sys.modules["rustcuda_launch"].forget()
    for _ in range(3):
        launch(X, 1)
    assert (came.start, came.launcher, len(loaded.driver.launches)) == (1, 0, 3)


@pytest.mark.parametrize(
    ("launcher", "found", "message"),
    [
        ("c", None, "rustcuda_launch cannot be imported"),
        ("c", 7, "rustcuda_launch is not of the version that this loader wants: upgrade both"),
        ("rust", 1, "RUSTCUDA_LAUNCHER is 'rust': set it to c or python, or unset it"),
        ("c", "none", "rustcuda_launch is not of the version that this loader wants: upgrade both"),
        ("", None, ""),
        ("", 7, ""),
        ("", "none", ""),
    ],
)
def test_what_is_missing_is_an_error_only_where_it_is_asked_for(
    made: Any, monkeypatch: pytest.MonkeyPatch, launcher: str, found: Any, message: str
) -> None:
    loaded = made(launcher)
    stands = types.ModuleType("rustcuda_launch")
    if found != "none":  # as in a folder that was left over
        vars(stands)["INTERFACE"] = found
    monkeypatch.setitem(sys.modules, "rustcuda_launch", stands if found else None)  # type: ignore[arg-type]
    if message:
        with pytest.raises(loaded.module.KernelError, match=message):
            loaded.module.k0[1, 32](X, 1)
        assert not loaded.driver.launches
    else:
        loaded.module.k0[1, 32](X, 1)
        assert len(loaded.driver.launches) == 1


def test_arguments_by_name_and_too_few_of_them(made: Any) -> None:
    loaded = made()
    launch = warmed(loaded)[0]
    launch(X, v=1)
    assert len(loaded.driver.launches) == 1
    with pytest.raises(loaded.module.ArgumentTypeError, match="wanted 2 arguments"):
        launch(X)
    with pytest.raises(loaded.module.ArgumentTypeError, match="wanted 2 arguments"):
        launch(X, 1, 1)


def test_what_the_driver_says_is_an_error_as_from_python(made: Any) -> None:
    loaded = made()
    launch = warmed(loaded)[0]
    loaded.driver.fail["cuLaunchKernel"] = ("CUDA_ERROR_ILLEGAL_ADDRESS", 700)
    with pytest.raises(loaded.module.DriverError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        launch(X, 1)


def test_a_launch_goes_with_the_module_that_made_it(made: Any) -> None:
    loaded = made()
    launch = warmed(loaded)[0]
    gone = weakref.ref(launch.start.__self__.kernel)
    loaded.module._library.kernels.clear()
    vars(loaded.module).clear()
    del launch, loaded
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("table", [0x1000, "table", in_c.capsule(0x1000, b"another"), object()])
def test_a_table_of_another_kind_leaves_launches_to_python(
    made: Any, monkeypatch: pytest.MonkeyPatch, table: object
) -> None:
    loaded = made("")
    monkeypatch.setattr(FakeTensor, "__dlpack_c_exchange_api__", table)
    came = Counted(loaded, monkeypatch)
    for _ in range(2):
        loaded.module.k0[1, 32](X, 1)
    assert (came.start, came.launcher, len(loaded.driver.launches)) == (1, 1, 2)


def live_launches(loaded: Loaded) -> int:
    return sum(type(one) is loaded.module._Launch for one in gc.get_objects())


@pytest.mark.parametrize("launcher", ["c", "python"])
@pytest.mark.parametrize("stream", [5, 2**64 - 1])
def test_launches_on_a_stream_leave_nothing_for_the_collector(made: Any, launcher: str, stream: int) -> None:
    loaded = made(launcher)
    loaded.module.k0[1, 32, 0, stream](X, 1)
    gc.disable()
    try:
        before = live_launches(loaded)
        for _ in range(3):
            loaded.module.k0[1, 32, 0, stream](X, 1)
        assert live_launches(loaded) == before
    finally:
        gc.enable()


def test_what_was_unloaded_during_a_launch_is_not_launched_from_c(made: Any) -> None:
    loaded = made()
    launch = warmed(loaded)[0]
    launch_kernel = loaded.driver.launch_kernel
    launched = []

    def watched(config: Any, function: int, *more: Any) -> int:
        result = launch_kernel(config, function, *more)
        if not launched:
            thread = threading.Thread(target=loaded.module.unload)
            thread.start()
            thread.join()
        launched.append(function in loaded.driver.contexts)
        return result

    loaded.module._library.launch_kernel = loaded.driver.launch_kernel = watched
    launch.start(X, 1)
    launch(X, 1)
    assert launched == [False, True]


def test_threads_never_mix_arguments(made: Any) -> None:
    loaded = made()
    launch = warmed(loaded)[TYPES.index("u64")]
    barrier = threading.Barrier(4)

    def work(number: int) -> None:
        loaded.driver.set_context(1000)
        barrier.wait()
        tensor = FakeTensor(0x1000 * (number + 1))
        for _ in range(300):
            launch(tensor, number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = [tuple(int.from_bytes(value, "little") for value in one.packed) for one in loaded.driver.launches]
    assert sorted(seen) == [(0x1000 * (number + 1), number) for number in range(4) for _ in range(300)]
