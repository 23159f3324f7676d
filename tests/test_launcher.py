"""Each kernel's own launcher: it takes what is right, and leaves to the general one whatever is not."""

from __future__ import annotations

import math
import struct
import sys
import threading
from typing import Any

import in_c
import pytest
from fake_driver import CudaArray, FakeTensor, fake_torch
from loaders import SAXPY, Loaded, content, signature

MANY = signature(
    "many",
    "type: u8", "self_: i64", "more: f16", "held: bf16", "float: f64", "flag: bool", "_: &[bf16]",
    "out: DisjointSlice<i32>", "device: *const usize", "in: isize",
)  # fmt: skip
VOID = signature("void", "p: *mut f32", "n: u32")


@pytest.fixture(params=["python", "c"])
def language(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What launches: each kernel's own launcher in Python, or rustcuda_launch."""
    if request.param == "c":
        monkeypatch.setitem(sys.modules, "rustcuda_launch", request.getfixturevalue("launches_in_c"))
    return str(request.param)


@pytest.fixture
def warm(make_loader: Any, monkeypatch: pytest.MonkeyPatch, language: str) -> Any:
    """A loader that has launched each kernel once with torch, so that launchers have all they need."""

    def build() -> Loaded:
        torch = fake_torch()
        in_c.describe_to_c(torch, monkeypatch)
        monkeypatch.setitem(sys.modules, "torch", torch)
        monkeypatch.setenv("RUSTCUDA_LAUNCHER", language)
        loaded: Loaded = make_loader(
            content(SAXPY, MANY, VOID), capabilities=((9, 0), (9, 0)), owners={0x20: 0}
        )
        for index in range(2):
            at = FakeTensor(0x10, index=index)
            loaded.module.saxpy[1, 32](1, 1.0, at, at)
            loaded.module.many[1, 32](*many(index=index))
            loaded.module.void[1, 32](at, 1)
        loaded.driver.launches.clear()
        return loaded

    return build


def many(**more: Any) -> list[Any]:
    tensors = {
        dtype: FakeTensor(0x100, f"torch.{dtype}", **more) for dtype in ("bfloat16", "int32", "uint64")
    }
    scalars = [255, -(2**63), 1.5, -2.0, math.pi, True]
    return [*scalars, tensors["bfloat16"], tensors["int32"], tensors["uint64"], -7]


@pytest.fixture
def general(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Counts the launches that a module's own launchers leave to the general one."""

    def watch(loaded: Loaded) -> list[tuple[Any, ...]]:
        seen: list[tuple[Any, ...]] = []
        start = loaded.module._Launch.start

        def watched(self: Any, arguments: Any, more: Any, named: Any) -> None:
            seen.append(arguments)
            start(self, arguments, more, named)

        monkeypatch.setattr(loaded.module._Launch, "start", watched)
        return seen

    return watch


def test_usual_arguments_take_the_short_way_and_are_packed_the_same(warm: Any, general: Any) -> None:
    loaded = warm()
    left = general(loaded)
    x, y = FakeTensor(0x7000), FakeTensor(0x8000)
    launch = loaded.module.saxpy[1, 32]
    for _ in range(3):
        launch(2**32 - 1, 0.5, x, y)
        loaded.module.saxpy[1, 32](2**32 - 1, 0.5, x, y)
    assert not left
    assert len(loaded.driver.launches) == 6
    assert set(loaded.driver.launches) == {loaded.last}
    expected = (b"\xff" * 4, struct.pack("<f", 0.5), struct.pack("<Q", 0x7000), struct.pack("<Q", 0x8000))
    assert loaded.last.packed == expected
    assert (loaded.last.stream, loaded.last.block) == (70, (32, 1, 1))


def test_every_kind_of_argument_is_packed_as_the_general_way_does(warm: Any, general: Any) -> None:
    loaded = warm()
    left = general(loaded)
    loaded.module.many[1, 32](*many())
    assert not left
    loaded.module.many[2, 32](*many())
    assert len(left) == 1
    assert loaded.driver.launches[0].packed == loaded.driver.launches[1].packed
    empty = many()
    empty[7] = FakeTensor(0, "torch.int32", count=0)
    loaded.module.many[1, 32](*empty)
    assert loaded.last.packed[8:10] == (struct.pack("<Q", 256), bytes(8))
    assert len(left) == 2


def test_each_gpu_its_own_function_and_stream(warm: Any, general: Any) -> None:
    loaded = warm()
    left = general(loaded)
    for index in (1, 0, 1):
        at = FakeTensor(0x10, index=index)
        loaded.module.saxpy[1, 32](1, 1.0, at, at)
        assert (loaded.last.device, loaded.last.stream) == (index, 70 + index)
    assert not left


X = FakeTensor(0x7000)
ELSEWHERE = FakeTensor(0x7000, index=1)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((1.0, 1.0, X, X), {}),
        ((True, 2, X, X), {}),
        ((1, 10**400, X, X), {}),
        ((1, 1e39, X, X), {}),
        ((-1, 1.0, X, X), {}),
        ((2**32, 1.0, X, X), {}),
        ((1, "1", X, X), {}),
        ((1, 1.0, None, 0x1000), {}),
        ((1, 1.0, CudaArray(0x20), X), {}),
        ((1, 1.0, FakeTensor(1, "torch.float64"), X), {}),
        ((1, 1.0, X, FakeTensor(1, "torch.float64")), {}),
        ((1, 1.0, FakeTensor(1, is_cuda=False), X), {}),
        ((1, 1.0, X, FakeTensor(1, is_cuda=False)), {}),
        ((1, 1.0, X, ELSEWHERE), {}),
        ((1, 1.0, FakeTensor(1, index=7), X), {}),
        ((1, 1.0, X, FakeTensor(1, requires_grad=True)), {}),
        ((1, 1.0, FakeTensor(1, requires_grad=True), X), {}),
        ((1, 1.0, X), {}),
        ((1, 1.0, X, X, X), {}),
        ((1, 1.0, X), {"y": X}),
        ((1, 1.0, X), {"z": X}),
        ((1, 1.0, X, X), {"n": 1}),
        ((), {}),
    ],
)
def test_a_second_launch_takes_and_refuses_the_same_as_a_first(warm: Any, arguments: Any, named: Any) -> None:
    loaded = warm()
    outcomes = []
    for launch in (loaded.module.saxpy[2, 32], loaded.module.saxpy[1, 32]):
        loaded.driver.launches.clear()
        try:
            launch(*arguments, **named)
        except (loaded.module.KernelError, IndexError) as error:
            outcomes.append(f"{error!r} {error}")
        else:
            outcomes.append(f"{loaded.last.packed}")
    assert outcomes[0] == outcomes[1]


def test_writing_to_what_autograd_follows_is_refused_but_within_no_grad(warm: Any, general: Any) -> None:
    followed = FakeTensor(0x10, requires_grad=True)
    loaded = warm()
    for grid in (1, 2):
        with pytest.raises(loaded.module.ArgumentValueError) as caught:
            loaded.module.saxpy[grid, 32](1, 1.0, followed, followed)
        assert str(caught.value) == (
            "kernel 'saxpy', argument 'y': wanted *mut f32 without gradient, got a float32 tensor on cuda:0 "
            "that requires grad (launch it within torch.no_grad(), or pass .detach())"
        )
    assert not loaded.driver.launches
    sys.modules["torch"].grad[0] = False  # what torch.is_grad_enabled says within no_grad
    left = general(loaded)
    loaded.module.saxpy[1, 32](1, 1.0, followed, followed)
    assert not left


def test_a_driver_error_keeps_no_block_for_others(warm: Any) -> None:
    loaded = warm()
    loaded.driver.fail["cuLaunchKernel"] = ("CUDA_ERROR_ILLEGAL_ADDRESS", 700)
    with pytest.raises(loaded.module.DriverError, match="cuLaunchKernel failed: CUDA_ERROR_ILLEGAL_ADDRESS"):
        loaded.module.saxpy[1, 32](1, 1.0, X, X)
    loaded.driver.fail.clear()
    loaded.module.saxpy[1, 32](1, 1.0, X, X)
    assert len(loaded.driver.launches) == 1


def test_a_thread_without_context_gets_one_where_its_gpu_stays_the_same(warm: Any) -> None:
    loaded = warm()
    found = []

    def work(index: int) -> None:
        at = FakeTensor(0x10, index=index)
        for _ in range(2):
            loaded.module.saxpy[1, 32](1, 1.0, at, at)
            found.append((index, loaded.last.device, loaded.driver.current_context()))

    for index in range(2):
        thread = threading.Thread(target=work, args=(index,))
        thread.start()
        thread.join()
    assert found == [(0, 0, 1000), (0, 0, 1000), (1, 1, 0), (1, 1, 0)]


def test_configurations_are_kept_ready_but_not_without_end(warm: Any) -> None:
    loaded = warm()
    saxpy = loaded.module.saxpy
    assert saxpy[5, 32] is saxpy[5, 32]
    assert saxpy[5, 32, 0, 0x55] is not saxpy[5, 32, 0, 0x55]
    for grid in range(1, 2000):
        saxpy[grid, 32]
    assert len(saxpy._launches) <= 256


def test_torch_that_is_still_being_imported_is_left_alone(
    make_loader: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = fake_torch()
    torch.__spec__ = type("Spec", (), {"_initializing": True})()  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "torch", torch)
    loaded = make_loader(content(SAXPY))
    for _ in range(2):
        loaded.module.saxpy[1, 32](1, 1.0, X, X)
        assert loaded.last.stream == 0
    torch.__spec__ = None
    loaded.module.saxpy[1, 32](1, 1.0, X, X)
    assert loaded.last.stream == 70


class Index:
    """An int of another library, e.g. numpy's: equal to Python's, with its hash."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return self.number == other

    def __hash__(self) -> int:
        return hash(self.number)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ((4, 256), (4.0, 256)),
        ((4, 256), (4, 256.0)),
        ((1, 256), (True, 256)),
        ((4, 1), (4, True)),
        (((4, 1), (32, 8)), ((4.0, 1), (32, 8))),
        (((4, 1), (32, 8)), ((4, True), (32, 8))),
        (((4, 1), (32, 8)), ((4, 1), (32, 8.0))),
        ((4, 256, 0), (4, 256, False)),
        ((4, 256, 0), (4, 256, 0.0)),
        ((4, 256, 1), (4, 256, True)),
        ((4, 256, 1, None), (4, 256, 1.0, None)),
        ((4, 256, 0, None), (4, 256, 0, False)),
        ((4, 256, 0, None), (4, 256, 0, 0.0)),
    ],
)
def test_what_only_equals_a_configuration_that_is_kept_is_refused(
    warm: Any, right: tuple[Any, ...], wrong: tuple[Any, ...]
) -> None:
    loaded = warm()
    for _ in range(2):
        loaded.module.saxpy[right](1, 1.0, X, X)
        with pytest.raises(loaded.module.ArgumentTypeError):
            loaded.module.saxpy[wrong]
        with pytest.raises(loaded.module.ArgumentTypeError):
            loaded.module.saxpy.launch(
                **dict(zip(("grid", "block", "shared", "stream"), wrong, strict=False))
            )


@pytest.mark.parametrize(
    "given",
    [(Index(4), 256), (4, Index(256)), ((Index(4), 1), (256, Index(1))), (4, 256, Index(0)), ([4], [256])],
)
def test_ints_of_other_libraries_find_the_configuration_that_is_kept(warm: Any, given: Any) -> None:
    saxpy = warm().module.saxpy
    for _ in range(2):
        assert saxpy[given] is saxpy[4, 256]


def test_questions_and_gpus_take_no_bools_and_floats(warm: Any) -> None:
    module = warm().module
    for question in (
        lambda: module.saxpy.occupancy(True),
        lambda: module.saxpy.occupancy(256, 0.0),
        lambda: module.saxpy.suggest_block(1.5),
        lambda: module.load(True),
    ):
        with pytest.raises(module.ArgumentTypeError):
            question()


def test_each_stream_is_made_ready_once_and_not_kept_without_end(
    warm: Any, general: Any, language: str
) -> None:
    loaded = warm()
    now = [7]
    sys.modules["torch"].stream_of = lambda _device: now[0]  # type: ignore[attr-defined]
    left = general(loaded)
    launch = loaded.module.saxpy[1, 32]
    for now[0] in (7, 8, 7, 8, 0):
        launch(1, 1.0, X, X)
        assert loaded.last.stream == now[0]
    assert len(left) == 3
    for now[0] in range(1000):
        launch(1, 1.0, X, X)
        assert loaded.last.stream == now[0]
    now[0] = 999
    left.clear()
    launch(1, 1.0, X, X)
    assert not left
    made = launch.start.__self__ if language == "c" else launch.__self__
    assert len(made.ready[0]) <= 64


def test_a_kept_launch_after_unloading_takes_the_new_function(warm: Any, general: Any) -> None:
    loaded = warm()
    launch = loaded.module.saxpy[1, 32]
    launch(1, 1.0, X, X)
    left = general(loaded)
    loaded.module.unload()
    for _ in range(2):
        launch(1, 1.0, X, X)
    assert len(left) == 1, "the general way loads it again"
    assert len(loaded.driver.launches) == 3
    assert loaded.driver.calls.count("cuModuleLoadData") == 3


def test_clusters_and_cooperative_launches_take_the_short_way_too(warm: Any, general: Any) -> None:
    loaded = warm()
    launch = loaded.module.saxpy.launch(grid=4, block=32, cluster=2, cooperative=True)
    launch(1, 1.0, X, X)
    left = general(loaded)
    launch(1, 1.0, X, X)
    assert not left
    assert loaded.driver.extended == [((2, 1, 1), True)] * 2


class TracedTensor(FakeTensor):
    """torch's FakeTensor: it says that it is on a GPU, but has no memory."""

    def data_ptr(self) -> int:
        raise RuntimeError("Cannot access data pointer of Tensor (e.g. FakeTensor, FunctionalTensor).")


class NullTensor(FakeTensor):
    """The same where torch only warns; its address is 0."""

    fake_mode = object()


class MetaTensor(FakeTensor):
    is_meta = True
    device = "meta"  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("traced", "got"),
    [
        (TracedTensor(0), "a float32 tensor on cuda:0 without memory (TracedTensor)"),
        (NullTensor(0), "a float32 tensor on cuda:0 without memory (NullTensor)"),
        (NullTensor(0, count=0), "a float32 tensor on cuda:0 without memory (NullTensor)"),
        (FakeTensor(0), "a float32 tensor on cuda:0 without memory (FakeTensor)"),
        (MetaTensor(0, is_cuda=False), "a float32 tensor on meta without memory (MetaTensor)"),
    ],
)
@pytest.mark.parametrize("kernel", ["saxpy", "slices"])
def test_tensors_without_memory_lead_to_torch_op(
    make_loader: Any, monkeypatch: pytest.MonkeyPatch, traced: Any, got: str, kernel: str
) -> None:
    monkeypatch.setitem(sys.modules, "torch", fake_torch())
    slices = signature("slices", "n: u32", "a: f32", "x: &[f32]", "y: *mut f32")
    loaded = make_loader(content(SAXPY, slices))
    rust = "*const f32" if kernel == "saxpy" else "&[f32]"
    launch = getattr(loaded.module, kernel)[1, 32]
    launch(1, 1.0, X, X)
    for _ in range(2):
        with pytest.raises(loaded.module.ArgumentValueError) as caught:
            launch(1, 1.0, traced, X)
        assert str(caught.value) == (
            f"kernel '{kernel}', argument 'x': wanted {rust} on a GPU, got {got} (to trace a function that "
            "launches it, register the kernel by its torch_op and call that)"
        )
    assert len(loaded.driver.launches) == 1
