"""The generated loader, all but the GPU: through a driver that records what it is asked for."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import itertools
import math
import pickle
import random
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from fake_driver import CudaArray, FakeTensor, Launch, fake_torch
from loaders import (
    EMPTY,
    FATBIN,
    SAXPY,
    SCALARS,
    SIGNATURES,
    Loaded,
    content,
    python,
    signature,
    write,
)

from rustcuda_backend import elf
from rustcuda_backend.capability import parse_list
from rustcuda_backend.constants import ConstantSymbol
from rustcuda_backend.cuda_versions import cuda_version
from rustcuda_backend.errors import SignatureError
from rustcuda_backend.loader.content import python_names
from rustcuda_backend.loader.generate import generate
from rustcuda_backend.loader.runtime import errors, images, opening
from rustcuda_backend.signature import Parameter

NUMPY = importlib.util.find_spec("numpy") is not None

X, Y = FakeTensor(0x7000), FakeTensor(0x8000)


# ---- Launches ----


def test_a_launch_passes_exactly_what_was_asked_for(loaded: Loaded) -> None:
    loaded.module.saxpy[(2, 3, 4), (32, 8)](5, 1.5, X, Y)
    packed = (
        struct.pack("<I", 5),
        struct.pack("<f", 1.5),
        struct.pack("<Q", 0x7000),
        struct.pack("<Q", 0x8000),
    )
    assert loaded.driver.launches == [Launch("saxpy", 0, (2, 3, 4), (32, 8, 1), 0, 0, packed)]
    assert loaded.driver.images == [(0, FATBIN)]


@pytest.mark.parametrize(
    ("given", "grid", "block", "shared", "stream"),
    [
        ((7, 32), (7, 1, 1), (32, 1, 1), 0, 0),
        (((7,), [32, 2]), (7, 1, 1), (32, 2, 1), 0, 0),
        ((7, 32, 1024), (7, 1, 1), (32, 1, 1), 1024, 0),
        ((7, 32, 0, 0xABC), (7, 1, 1), (32, 1, 1), 0, 0xABC),
        ((7, 32, 0, None), (7, 1, 1), (32, 1, 1), 0, 0),
    ],
)
def test_launch_configurations(
    loaded: Loaded, given: Any, grid: object, block: object, shared: int, stream: int
) -> None:
    loaded.module.empty[given]()
    assert loaded.last == Launch("empty", 0, grid, block, shared, stream, ())  # type: ignore[arg-type]


def test_slices_become_pointer_and_length(loaded: Loaded) -> None:
    loaded.module.scale[1, 32](2, FakeTensor(0x10, count=9), FakeTensor(0, count=0))
    assert loaded.last.packed[0] == struct.pack("<d", 2.0)
    assert [int.from_bytes(part, "little") for part in loaded.last.packed[1:]] == [0x10, 9, 256, 0]


def test_arguments_go_by_name_in_any_order_and_keywords_with_an_underscore(loaded: Loaded) -> None:
    loaded.module.saxpy[1, 1](5, y=Y, x=X, a=0.5)
    by_name = loaded.last
    loaded.module.saxpy[1, 1](5, 0.5, X, Y)
    assert by_name == loaded.last
    loaded.module.scale[1, 1](lambda_=1.0, data=X, in_=Y)
    loaded.module.scale[1, 1](**{"lambda": 1.0, "data": X, "in": Y})
    assert loaded.driver.launches[-1] == loaded.driver.launches[-2]


def test_a_launch_object_can_be_kept_and_called_again(loaded: Loaded) -> None:
    launch = loaded.module.saxpy[4, 64]
    for n in range(3):
        launch(n, 1.0, X, Y)
    assert [int.from_bytes(done.packed[0], "little") for done in loaded.driver.launches] == [0, 1, 2]
    assert repr(launch) == "<bound method _launch_saxpy of <launch saxpy[(4, 1, 1), (64, 1, 1), 0]>>"


INTEGERS = [dtype for dtype in SCALARS if dtype[0] in "iu"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_packed_at_both_ends_of_their_range_and_refused_beyond(
    loaded: Loaded, dtype: str
) -> None:
    bits = 64 if dtype.endswith("size") else int(dtype[1:])
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype[0] == "i" else (0, 2**bits - 1)
    kernel = getattr(loaded.module, f"take_{dtype}")
    for value in (low, high, True):
        kernel[1, 1](value)
        expected = int(value).to_bytes(bits // 8, "little", signed=dtype[0] == "i")
        assert loaded.last.packed == (expected,)
    for value in (low - 1, high + 1):
        with pytest.raises(loaded.module.ArgumentValueError) as caught:
            kernel[1, 1](value)
        assert str(caught.value) == (
            f"kernel 'take_{dtype}', argument 'value': wanted {dtype} ({low} to {high}), got {value}"
        )


@pytest.mark.parametrize(
    ("dtype", "code", "largest", "too_large"),
    [
        ("f16", "<e", 65519.9, 65520.0),
        ("f32", "<f", 3.4028235677973362e38, 2.0**128 - 2.0**103),
        ("f64", "<d", 1.7976931348623157e308, 2**1024),
    ],
)
def test_floats_are_packed_up_to_the_last_that_rounds_to_a_finite_one(
    loaded: Loaded, dtype: str, code: str, largest: float, too_large: float
) -> None:
    kernel = getattr(loaded.module, f"take_{dtype}")
    for value in (0.1, -largest, largest, math.inf, -math.inf, 3):
        kernel[1, 1](value)
        assert loaded.last.packed == (struct.pack(code, value),)
    kernel[1, 1](math.nan)
    assert math.isnan(struct.unpack(code, loaded.last.packed[0])[0])
    for value in (too_large, -too_large):
        with pytest.raises(
            loaded.module.ArgumentValueError, match=f"wanted a number in the range of {dtype}"
        ):
            kernel[1, 1](value)


def test_bf16_rounds_to_nearest_even(loaded: Loaded) -> None:
    expected = {
        1.0: 0x3F80, -2.0: 0xC000, 1.00390625: 0x3F80, 1.01171875: 0x3F82, 1.0039064: 0x3F81,
        math.inf: 0x7F80, -math.inf: 0xFF80, math.nan: 0x7FC0, 3.3895313892515355e38: 0x7F7F, 1e-45: 0,
    }  # fmt: skip
    for value, bits in expected.items():
        loaded.module.take_bf16[1, 1](value)
        assert loaded.last.packed == (struct.pack("<H", bits),), value
    with pytest.raises(loaded.module.ArgumentValueError):
        loaded.module.take_bf16[1, 1](3.3961775292304957e38)


def test_bools_are_bools(loaded: Loaded) -> None:
    for value in (True, False):
        loaded.module.take_bool[1, 1](value)
        assert loaded.last.packed == (bytes([value]),)
    for wrong in (1, 0.0, None, "yes"):
        with pytest.raises(loaded.module.ArgumentTypeError, match="argument 'value': wanted bool, got"):
            loaded.module.take_bool[1, 1](wrong)


@pytest.mark.parametrize(
    ("kernel", "value", "message"),
    [
        ("take_i32", 1.5, r"wanted i32, got float 1.5 \(a float; use int\(…\)\)"),
        ("take_i32", "7", "wanted i32, got str '7'"),
        ("take_i32", None, "wanted i32, got None"),
        (
            "take_i32",
            FakeTensor(8, "torch.int32", ndim=0),
            r"got a int32 tensor on cuda:0 \(pass a number, e.g. value",
        ),
        ("take_f32", "1.5", "wanted f32, got str '1.5'"),
        ("take_f32", 1j, "wanted f32, got complex 1j"),
        ("take_f32", FakeTensor(8), "wanted f32, got a float32 tensor on cuda:0"),
        ("take_f32", "x" * 99, r"got str 'x+\.\.\.$"),
    ],
)
def test_wrong_scalars_are_refused(loaded: Loaded, kernel: str, value: object, message: str) -> None:
    with pytest.raises(loaded.module.ArgumentTypeError, match=message):
        getattr(loaded.module, kernel)[1, 1](value)


def test_numbers_whose_conversion_fails_are_refused(loaded: Loaded) -> None:
    class Odd:
        def __float__(self) -> float:
            raise ValueError("no")

        def __index__(self) -> int:
            raise ValueError("no")

    for kernel in (loaded.module.take_f32, loaded.module.take_i32):
        with pytest.raises(loaded.module.ArgumentTypeError, match=r"got .*Odd <"):
            kernel[1, 1](Odd())


@pytest.mark.skipif(not NUMPY, reason="numpy is not installed")
def test_numpy_scalars_and_0d_arrays_are_numbers_and_arrays_are_not(loaded: Loaded) -> None:
    import numpy as np

    for value in (np.int64(-3), np.array(-3), np.int8(-3)):
        loaded.module.take_i32[1, 1](value)
        assert loaded.last.packed == (struct.pack("<i", -3),)
    for number in (np.float32(0.5), np.array(0.5), np.float64(0.5), np.float16(0.5)):
        loaded.module.take_f32[1, 1](number)
        assert loaded.last.packed == (struct.pack("<f", 0.5),)
    for flag in (np.bool_(True), np.array(True)):
        loaded.module.take_bool[1, 1](flag)
        assert loaded.last.packed == (b"\1",)
    for kernel, wrong in (
        ("take_i32", np.float32(1)), ("take_i32", np.zeros(1, "i4")), ("take_f32", np.zeros(1)),
        ("take_f32", np.complex64(1)), ("take_bool", np.zeros(2, "?")), ("take_i32", np.bool_(True)),
    ):  # fmt: skip
        with pytest.raises(loaded.module.ArgumentTypeError):
            getattr(loaded.module, kernel)[1, 1](wrong)
    with pytest.raises(loaded.module.ArgumentTypeError) as caught:
        loaded.module.saxpy[1, 1](1, 1.0, np.zeros(4, "f4"), Y)
    assert str(caught.value) == (
        "kernel 'saxpy', argument 'x': wanted *const f32 on a GPU, got a float32 numpy.ndarray "
        "(it lies in host memory: move it to a GPU, e.g. torch.from_numpy(value).cuda())"
    )


# ---- Arrays ----


def test_pointers_take_addresses_null_and_strided_tensors(loaded: Loaded) -> None:
    loaded.module.saxpy[1, 1](1, 1.0, None, 2**64 - 1)
    assert loaded.last.packed[2:] == (bytes(8), b"\xff" * 8)
    loaded.module.saxpy[1, 1](1, 1.0, FakeTensor(16, contiguous=False), Y)
    assert loaded.last.packed[2] == struct.pack("<Q", 16)


def test_dtypes_of_pointers_and_slices(loaded: Loaded) -> None:
    int64, uint64 = FakeTensor(16, "torch.int64"), FakeTensor(16, "torch.uint64")
    loaded.module.longs[1, 1](int64, uint64, FakeTensor(16, "torch.bfloat16"))
    loaded.module.anything[1, 1](FakeTensor(16, "torch.complex64"))
    with pytest.raises(loaded.module.ArgumentTypeError) as caught:
        loaded.module.longs[1, 1](uint64, uint64, None)
    assert str(caught.value) == (
        "kernel 'longs', argument 'x': wanted *const isize, got a uint64 tensor on cuda:0 "
        "(its dtype must be int64)"
    )
    error = caught.value
    assert (error.kernel, error.argument, error.wanted) == ("longs", "x", "*const isize")


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (
            FakeTensor(1, is_cuda=False),
            ValueError,
            r"\*const f32 on a GPU, got a float32 tensor on cpu \(.*\.cuda\(\)",
        ),
        (
            FakeTensor(1, "torch.float64"),
            TypeError,
            "got a float64 tensor on cuda:0 .its dtype must be float32",
        ),
        (-1, ValueError, "or an address from 0"),
        (True, TypeError, "got bool True"),
        (1.5, TypeError, r"wanted \*const f32, got float 1.5 \(takes GPU arrays"),
        ([1.0], TypeError, "got list"),
        (CudaArray(0x20, "<f8"), TypeError, "its dtype must be float32"),
        (CudaArray(0xBAD), ValueError, "got the address 0xbad .cuPointerGetAttribute failed"),
    ],
)
def test_wrong_pointers_are_refused(
    loaded: Loaded, value: object, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=f"kernel 'saxpy', argument 'x': .*{message}") as caught:
        loaded.module.saxpy[1, 1](1, 1.0, value, Y)
    assert isinstance(caught.value, loaded.module.ArgumentsError)
    assert isinstance(caught.value, loaded.module.KernelError)
    assert not loaded.driver.launches


@pytest.mark.parametrize("value", [None, 0x1000])
def test_slices_take_no_addresses(loaded: Loaded, value: object) -> None:
    with pytest.raises(loaded.module.ArgumentTypeError, match="wanted DisjointSlice<f32>, got"):
        loaded.module.scale[1, 1](1.0, value, Y)


def test_slices_must_be_contiguous(loaded: Loaded) -> None:
    with pytest.raises(loaded.module.ArgumentValueError) as caught:
        loaded.module.scale[1, 1](1.0, X, FakeTensor(16, contiguous=False))
    assert str(caught.value) == (
        "kernel 'scale', argument 'in': wanted &[f32] that is contiguous, got strides (2,) "
        "(use .contiguous())"
    )


def test_cuda_array_interface(make_loader: Any) -> None:
    loaded = make_loader(capabilities=((9, 0), (9, 0)), owners={0x20: 1, 0x30: 1})
    loaded.module.saxpy[1, 1](1, 1.0, CudaArray(0x20, strides=(8,)), CudaArray(0x30))
    assert loaded.last.device == 1
    assert loaded.last.packed[2:] == (struct.pack("<Q", 0x20), struct.pack("<Q", 0x30))
    full = CudaArray(0x20, shape=(2, 1, 3), strides=(12, 999, 4))
    loaded.module.scale[1, 1](1.0, full, CudaArray(0, shape=(0, 4)))
    assert [int.from_bytes(part, "little") for part in loaded.last.packed[1:]] == [0x20, 6, 256, 0]
    with pytest.raises(loaded.module.ArgumentValueError, match=r"contiguous, got strides \(1, 2\) "):
        loaded.module.scale[1, 1](1.0, CudaArray(0x20, shape=(2, 3), strides=(4, 8)), full)
    with pytest.raises(loaded.module.ArgumentValueError, match="may be written, got a read-only array"):
        loaded.module.saxpy[1, 1](1, 1.0, full, CudaArray(0x30, read_only=True))


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((1, 1.0, X), {}, "argument 'y': wanted 4 arguments (n, a, x, y), got none for 'y'"),
        ((1, 1.0, X, Y, Y), {}, ": wanted 4 arguments (n, a, x, y), got 5"),
        ((1, 1.0, X, Y), {"n": 1}, "argument 'n': wanted it once, got it by position and by name"),
        ((1, 1.0, X), {"y": Y, "z": 1}, ": wanted 4 arguments (n, a, x, y), got one named 'z'"),
    ],
)
def test_wrong_numbers_of_arguments(loaded: Loaded, arguments: Any, named: Any, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        loaded.module.saxpy[1, 1](*arguments, **named)
    assert message in str(caught.value)
    assert "kernel 'saxpy'" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        (7, TypeError, r"wanted \[grid, block\], .*got \[7\]"),
        ((7,), TypeError, "wanted"),
        ((1, 2, 3, 4, 5), TypeError, "wanted"),
        ((0, 32), ValueError, "argument 'grid': wanted 1 or more, below 2.*, got 0"),
        ((1, (1, 2, 3, 4)), TypeError, "argument 'block': wanted an int or a tuple of 1 to 3"),
        ((1, ()), TypeError, "argument 'block'"),
        ((1, 1.5), TypeError, "argument 'block': wanted ints, got float 1.5"),
        ((2**32, 1), errors.KernelError, "blocks in grid x"),
        (((1, 2**32), 1), ValueError, "argument 'grid'"),
        ((1, 1, -1), ValueError, "argument 'shared_bytes': wanted 0 or more"),
        ((1, 1, "a"), TypeError, "argument 'shared_bytes': wanted an int, got str"),
        ((1, 1, 0, "s"), TypeError, "argument 'stream': wanted a torch stream"),
        ((1, 1, 0, -1), ValueError, "argument 'stream'"),
        ((1, 1, 0, 2**64), ValueError, "argument 'stream': wanted a stream's handle, 0 or more, below 2"),
    ],
)
def test_wrong_configurations(loaded: Loaded, given: Any, kind: type[Exception], message: str) -> None:
    kind = loaded.module.KernelError if kind is errors.KernelError else kind
    with pytest.raises(kind, match=f"kernel 'empty'.*{message}"):
        loaded.module.empty[given]()


def test_calling_a_kernel_without_grid_says_how_to_launch(loaded: Loaded) -> None:
    with pytest.raises(TypeError, match=r"wanted a launch saxpy\[grid, block\]\(…\)"):
        loaded.module.saxpy(1, 1.0, X, Y)


# ---- Devices and streams ----


def test_the_arrays_decide_the_gpu_and_the_earlier_context_comes_back(make_loader: Any) -> None:
    loaded = make_loader(capabilities=((9, 0), (8, 6)))
    loaded.driver.thread.context = 4321
    for index in (1, 0, 1):
        at = FakeTensor(16, index=index)
        loaded.module.saxpy[1, 1](1, 1.0, at, at)
        assert loaded.last.device == index
        assert loaded.driver.current_context() == 4321
    assert loaded.driver.images == [(1, FATBIN), (0, FATBIN)]


def test_no_context_is_set_where_the_right_one_is_current(loaded: Loaded) -> None:
    loaded.driver.thread.context = 1000
    loaded.module.saxpy[1, 1](1, 1.0, X, Y)
    assert "cuCtxSetCurrent" not in loaded.driver.calls


def test_arrays_on_two_gpus_are_refused(make_loader: Any) -> None:
    loaded = make_loader(capabilities=((9, 0), (9, 0)))
    with pytest.raises(loaded.module.ArgumentValueError) as caught:
        loaded.module.saxpy[1, 1](1, 1.0, FakeTensor(16, index=1), Y)
    assert str(caught.value) == (
        "kernel 'saxpy', argument 'y': wanted all arrays on one GPU, like 'x' on cuda:1, got one on cuda:0"
    )


def test_without_arrays_torchs_current_gpu_then_the_contexts_then_the_first(
    make_loader: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = make_loader(capabilities=((9, 0),) * 3)
    loaded.module.empty[1, 1]()
    assert (loaded.last.device, loaded.last.stream) == (0, 0)
    loaded.driver.thread.context = 1001
    loaded.module.empty[1, 1]()
    assert (loaded.last.device, loaded.last.stream) == (1, 0)
    monkeypatch.setitem(sys.modules, "torch", fake_torch(cuda=False))
    loaded.module.empty[1, 1]()
    assert (loaded.last.device, loaded.last.stream) == (1, 0)
    monkeypatch.setitem(sys.modules, "torch", fake_torch(current=2))
    loaded.module.empty[1, 1]()
    assert (loaded.last.device, loaded.last.stream) == (2, 72)


def test_torchs_current_stream_of_the_arrays_gpu(make_loader: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = make_loader(capabilities=((9, 0), (9, 0)))
    monkeypatch.setitem(sys.modules, "torch", fake_torch())
    at = FakeTensor(16, index=1)
    loaded.module.saxpy[1, 1](1, 1.0, at, at)
    assert (loaded.last.device, loaded.last.stream) == (1, 71)


class TorchStream:
    def __init__(self, handle: int, index: int) -> None:
        self.cuda_stream, self.device_index = handle, index


class OtherStream:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 0x99


def test_explicit_streams(make_loader: Any) -> None:
    loaded = make_loader(capabilities=((9, 0), (9, 0)))
    at = FakeTensor(16, index=1)
    loaded.module.saxpy[1, 1, 0, TorchStream(0x55, 1)](1, 1.0, at, at)
    assert (loaded.last.device, loaded.last.stream) == (1, 0x55)
    loaded.module.empty[1, 1, 0, TorchStream(0x55, 1)]()
    assert (loaded.last.device, loaded.last.stream) == (1, 0x55)
    loaded.module.empty[1, 1, 0, OtherStream()]()
    assert (loaded.last.device, loaded.last.stream) == (0, 0x99)
    with pytest.raises(loaded.module.ArgumentValueError) as caught:
        loaded.module.saxpy[1, 1, 0, TorchStream(0x55, 1)](1, 1.0, X, Y)
    assert "argument 'stream': wanted a stream of the arrays' GPU, cuda:0, got one of cuda:1" in str(
        caught.value
    )


def test_load_takes_a_gpu_in_every_spelling(make_loader: Any) -> None:
    loaded = make_loader(capabilities=((9, 0),) * 3)

    class TorchDevice:
        def __init__(self, text: str) -> None:
            self.text = text

        def __str__(self) -> str:
            return self.text

    for device in (2, "cuda:1", TorchDevice("cuda:1"), TorchDevice("cuda"), None):
        loaded.module.load(device)
    assert [index for index, _ in loaded.driver.images] == [2, 1, 0]
    loaded.driver.calls.clear()
    loaded.module.saxpy[1, 1](1, 1.0, X, Y)
    assert set(loaded.driver.calls) == {"cuCtxSetCurrent", "cuLaunchKernel"}
    with pytest.raises(loaded.module.ArgumentValueError, match=r"load, argument 'device': .* 3 GPUs, got 3"):
        loaded.module.load(3)
    for wrong in ("cpu", 1.5, "cuda:x"):
        with pytest.raises(loaded.module.ArgumentTypeError, match="wanted a GPU's index"):
            loaded.module.load(wrong)


def test_many_threads_load_once_and_never_mix_arguments(make_loader: Any) -> None:
    loaded = make_loader(capabilities=((9, 0), (9, 0)))
    count, each = 8, 200
    barrier = threading.Barrier(count)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            at = FakeTensor(number + 1, index=number % 2)
            barrier.wait()
            launch = loaded.module.saxpy[number + 1, 1]
            for turn in range(each):
                launch(turn, float(number), at, at)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failures
    assert sorted(loaded.driver.images) == [(0, FATBIN), (1, FATBIN)]
    assert len(loaded.driver.launches) == count * each
    for launch in loaded.driver.launches:
        number = launch.grid[0] - 1
        assert launch.packed[1:] == (struct.pack("<f", number), *(struct.pack("<Q", number + 1),) * 2)
        assert launch.device == number % 2


def test_the_driver_is_opened_once(make_loader: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = make_loader()
    loaded.module._library._driver = None
    monkeypatch.setattr(loaded.module, "_open_driver", lambda: loaded.driver)
    loaded.module.saxpy[1, 1](1, 1.0, X, Y)
    loaded.module.empty[1, 1]()
    assert loaded.driver.calls.count("cuInit") == 1


# ---- Which code serves a GPU ----


@pytest.mark.parametrize(
    ("built", "gpu", "expected"),
    [
        ("8.0", (8, 0), "8.0 SASS"),
        ("8.0", (8, 9), "8.0 SASS"),
        ("8.6", (8, 0), None),
        ("8.0", (9, 0), None),
        ("8.0+PTX", (9, 0), "8.0 PTX"),
        ("8.0+PTX", (7, 5), None),
        ("7.0 8.0 8.6 9.0+PTX", (8, 9), "8.6 SASS"),
        ("7.0 8.0+PTX 9.0+PTX", (12, 0), "9.0 PTX"),
        ("7.0+PTX 12.0+PTX", (10, 0), "7.0 PTX"),
        ("9.0a", (9, 0), "9.0a SASS"),
        ("9.0 9.0a", (9, 0), "9.0a SASS"),
        ("9.0a+PTX", (10, 0), None),
        ("10.0a", (10, 3), None),
        ("10.0f", (10, 0), "10.0f SASS"),
        ("10.0f", (10, 3), "10.0f SASS"),
        ("10.0f", (10, 1), None),
        ("10.1f", (10, 3), None),
        ("10.1f", (10, 1), "10.1f SASS"),
        ("10.3f", (10, 0), None),
        ("10.0f+PTX", (12, 0), None),
        ("12.0f", (12, 1), "12.0f SASS"),
        ("12.0 12.0f 12.1a", (12, 1), "12.1a SASS"),
        ("12.0 12.0f 12.1a", (12, 0), "12.0f SASS"),
        ("8.0 10.0", (10, 3), "10.0 SASS"),
    ],
)
def test_image_choice(built: str, gpu: tuple[int, int], expected: str | None) -> None:
    built_images = tuple(
        images._Image(c.major, c.minor, c.suffix, c.ptx, 525, 12000) for c in parse_list(built)
    )
    for order in (built_images, built_images[::-1]):
        choice = images._choose(*gpu, order)
        assert (f"{choice[0].name} {choice[1]}" if choice else None) == expected


def test_no_code_for_this_gpu(make_loader: Any) -> None:
    loaded = make_loader(content(SAXPY, capabilities="8.0 9.0a"), capabilities=((12, 0),))
    with pytest.raises(loaded.module.NoImage) as caught:
        loaded.module.saxpy[1, 1](1, 1.0, X, Y)
    assert str(caught.value) == (
        "kernels_cuda.fatbin has no code for this GPU of compute capability 12.0, only for 8.0, 9.0a; "
        "rebuild the package with 12.0 in its list: [tool.rustcuda] capabilities, or "
        "TORCH_CUDA_ARCH_LIST='8.0;9.0a;12.0'"
    )
    assert not loaded.driver.images


@pytest.mark.parametrize(
    ("gpu", "has", "version", "message"),
    [
        (
            (9, 0),
            11080,
            "12.9",
            "CUDA 11.8, but SASS 9.0 from CUDA 12.9 needs driver 525 or newer (CUDA 12.0)",
        ),
        (
            (12, 0),
            12040,
            "12.9",
            "but SASS 12.0 from CUDA 12.9 needs driver 570 or newer (CUDA 12.8): update",
        ),
        ((9, 0), 12080, "13.0", "but SASS 9.0 from CUDA 13.0 needs driver 580 or newer (CUDA 13.0)"),
    ],
)
def test_driver_too_old(make_loader: Any, gpu: Any, has: int, version: str, message: str) -> None:
    loaded = make_loader(content(SAXPY, version=cuda_version(version)), capabilities=(gpu,), cuda=has)
    with pytest.raises(loaded.module.DriverTooOld) as caught:
        loaded.module.saxpy[1, 1](1, 1.0, X, Y)
    assert message in str(caught.value)
    assert not loaded.driver.images


def test_a_driver_that_does_not_know_this_version_of_ptx(make_loader: Any) -> None:
    loaded = make_loader(
        content(SAXPY, capabilities="9.0+PTX"),
        capabilities=((12, 0),),
        fail={"cuModuleLoadData": ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", 222)},
    )
    with pytest.raises(loaded.module.DriverTooOld) as caught:
        loaded.module.load(0)
    assert str(caught.value) == (
        "the NVIDIA driver supports CUDA 12.8, but PTX 9.0 from CUDA 12.9 needs a driver for CUDA 12.9 "
        "or newer: update the driver"
    )


@pytest.mark.parametrize(
    ("code", "expected"),
    [(209, "NoImage"), (2, "DriverError")],
)
def test_what_loading_may_answer(make_loader: Any, code: int, expected: str) -> None:
    loaded = make_loader(fail={"cuModuleLoadData": ("CUDA_ERROR_X", code)})
    with pytest.raises(getattr(loaded.module, expected)):
        loaded.module.load(0)
    assert loaded.driver.current_context() == 0
    loaded.driver.fail.clear()
    loaded.module.load(0)
    assert loaded.driver.images == [(0, FATBIN)]


def test_another_fatbin_is_refused_by_name(make_loader: Any, tmp_path: Path) -> None:
    loaded = make_loader()
    fatbin = tmp_path / "pkg" / "kernels_cuda.fatbin"
    for wrong in (FATBIN[::-1], FATBIN + b"!"):
        fatbin.write_bytes(wrong)
        with pytest.raises(loaded.module.FatbinMismatch, match=r"kernels_cuda\.fatbin is not the file that"):
            loaded.module.load(0)
    fatbin.unlink()
    with pytest.raises(
        loaded.module.FatbinMismatch, match=r"kernels_cuda\.fatbin cannot be read: No such file"
    ):
        loaded.module.load(0)
    assert not loaded.driver.images


def test_a_fatbin_in_an_object_file(make_loader: Any, tmp_path: Path) -> None:
    loaded = make_loader(content(SAXPY, suffix=".o", offset=elf.OFFSET), kernels={"saxpy": (4, 4, 8, 8)})
    (tmp_path / "pkg" / "kernels_cuda.fatbin").unlink()
    file = tmp_path / "pkg" / "kernels_cuda.o"
    with pytest.raises(loaded.module.FatbinMismatch, match=r"kernels_cuda\.o cannot be read: No such file"):
        loaded.module.load(0)
    right = elf.object_file(FATBIN)
    changed = right.replace(FATBIN, FATBIN[::-1])
    moved = right.replace(FATBIN, b"!" + FATBIN)
    for wrong in (changed, moved, FATBIN, right[: elf.OFFSET + len(FATBIN) - 1], b""):
        file.write_bytes(wrong)
        with pytest.raises(loaded.module.FatbinMismatch, match=r"kernels_cuda\.o is not the file that"):
            loaded.module.load(0)
    assert not loaded.driver.images
    # What a tool changes elsewhere in the file does not matter.
    file.write_bytes(right + b"more")
    loaded.module.load(0)
    assert loaded.driver.images == [(0, FATBIN)]


def test_a_kernel_that_this_gpus_code_lacks(make_loader: Any) -> None:
    lacking = {"empty": parse_list("8.0 9.0")}
    loaded = make_loader(content(SAXPY, EMPTY, lacking=lacking), kernels={"saxpy": (4, 4, 8, 8)})
    loaded.module.load()
    with pytest.raises(loaded.module.MissingKernel) as caught:
        loaded.module.empty[1, 1]()
    assert str(caught.value) == (
        "kernel 'empty' is not in the code for this GPU (compute capability 9.0, served by 9.0); "
        "only these have it: 12.0"
    )
    loaded.module.saxpy[1, 1](1, 1.0, X, Y)
    loaded.driver.fail["cuModuleGetFunction"] = ("CUDA_ERROR_OUT_OF_MEMORY", 2)
    with pytest.raises(
        loaded.module.DriverError, match=r"cuModuleGetFunction failed: CUDA_ERROR_OUT_OF_MEMORY \(2\)"
    ):
        loaded.module.empty[1, 1]()


# ---- Limits ----


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((1, 1025), "1025 threads in block x asked for, at most 1024 possible"),
        ((1, (1, 1, 65)), "65 threads in block z asked for, at most 64 possible"),
        ((1, (64, 32)), "2048 threads per block asked for, at most 1024 possible"),
        (((1, 65536), 1), "65536 blocks in grid y asked for, at most 65535 possible"),
        ((1, 1, 232449), "232449 bytes of shared memory per block asked for, at most 232448 possible"),
    ],
)
def test_launches_beyond_the_gpus_limits(loaded: Loaded, given: Any, message: str) -> None:
    with pytest.raises(loaded.module.LaunchTooLarge) as caught:
        loaded.module.empty[given]()
    assert str(caught.value) == f"kernel 'empty': {message}"
    assert not loaded.driver.launches


def test_launch_bounds_are_a_limit(loaded: Loaded) -> None:
    loaded.module.scale[1, 256](1.0, X, Y)
    with pytest.raises(
        loaded.module.LaunchTooLarge, match=r"257 threads per block .* at most 256 \(its launch bounds\)"
    ):
        loaded.module.scale[1, 257](1.0, X, Y)


def test_much_shared_memory_is_opted_in_to_once(loaded: Loaded) -> None:
    for size in (49152, 100000, 60000, 100000, 200000):
        loaded.module.empty[1, 1, size]()
    assert loaded.driver.shared_allowed == [("empty", 100000), ("empty", 200000)]


@pytest.mark.parametrize(("code", "kind"), [(701, "LaunchTooLarge"), (700, "DriverError")])
def test_what_launching_may_answer(make_loader: Any, code: int, kind: str) -> None:
    loaded = make_loader(fail={"cuLaunchKernel": ("CUDA_ERROR_X", code)})
    for context in (4321, 1000):
        loaded.driver.thread.context = context
        with pytest.raises(getattr(loaded.module, kind)):
            loaded.module.saxpy[1, 512](1, 1.0, X, Y)
        assert loaded.driver.current_context() == context


def test_errors_can_be_pickled(loaded: Loaded) -> None:
    module = loaded.module
    errors = (
        module.DriverError("CUDA_ERROR_X", 7, "cuInit"),
        module.NoDriver("no driver"),
        module.NoImage("f", "9.0", ("8.0",)),
        module.DriverTooOld(11080, 12000, 525, "SASS 9.0"),
        module.FatbinMismatch("f"),
        module.MissingKernel("k", "9.0", "9.0", ()),
        module.LaunchTooLarge("k", "threads per block", "2", "1"),
        module.ArgumentTypeError("k", "x", "f32", "str", "hint"),
        module.ArgumentValueError("k", "x", "f32", "str"),
    )
    for error in errors:
        again = pickle.loads(pickle.dumps(error))  # noqa: S301
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert isinstance(error, module.KernelError)
        assert isinstance(error, RuntimeError)


# ---- The generated text ----


def test_the_same_content_gives_the_same_text() -> None:
    assert generate(content(*SIGNATURES)) == generate(content(*SIGNATURES))


def test_the_module_says_how_to_launch_and_what_there_is(loaded: Loaded) -> None:
    module = loaded.module
    assert module.__all__[:4] == ["load", "unload", "saxpy", "scale"]
    assert {"KernelError", "NoDriver", "ArgumentsError"} < set(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)
    assert "from pkg import kernels_cuda" in module.__doc__
    assert "saxpy[grid, block](n: u32, a: f32, x: *const f32, y: *mut f32)" in module.__doc__
    assert repr(module.saxpy) == "<kernel saxpy[grid, block](n: u32, a: f32, x: *const f32, y: *mut f32)>"
    assert module.saxpy.__name__ == "saxpy"
    assert module.saxpy.__doc__.endswith("\n\nAdds `a·x` to `y`.")
    assert module.anything.__doc__ == "anything[grid, block](p: a pointer)"


def test_names_in_the_package_root_and_python_names_of_parameters() -> None:
    text = generate(content(SAXPY, module="kernels_cuda")).python
    assert "    from . import kernels_cuda\n" in text
    parameters = [Parameter(name, "scalar", "u32") for name in ("r#in", "in", "self", "_", "_", "größe")]
    assert python_names(parameters) == ("in_", "in__", "self_", "_", "__", "größe")


DOC = 'Ends in a quote "\n\n\\n is no newline; """quoted""" \x00 «ü» \'"""'


def test_any_doc_comment_survives(make_loader: Any) -> None:
    loaded = make_loader(content(signature("f", doc=DOC), signature("g", doc='"')))
    assert loaded.module.f.__doc__ == f"f[grid, block]()\n\n{DOC}"
    stub = ast.parse(generate(content(signature("f", doc=DOC), signature("g", doc='"'))).stub)
    (launch,) = (node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == "_Launch_f")
    assert ast.get_docstring(launch, clean=True) == inspect.cleandoc(f"f[grid, block]()\n\n{DOC}")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("load", "needs for itself"),
        ("KernelError", "needs for itself"),
        ("_Library", "needs for itself"),
        ("len", "needs for itself"),
        ("isinstance", "needs for itself"),
        ("__file__", "needs for itself"),
        ("Mapping", "needs for itself"),
        ("_launch_k", "needs for itself"),
        ("_Launch_k", "needs for itself"),
        ("vprintf", "CUDA or the compiler keeps"),
        ("memcmp", "CUDA or the compiler keeps"),
        ("__nv_expf", "CUDA or the compiler keeps"),
        ("__constant_T", "CUDA or the compiler keeps"),
        ("lambda", "is a Python keyword"),
        ("a$b", "is no Python name"),
    ],
)
def test_kernels_whose_names_python_cannot_have(name: str, why: str) -> None:
    with pytest.raises(SignatureError) as caught:
        generate(content(signature(name)))
    assert f"kernel '{name}' cannot be called from Python" in caught.value.what
    assert why in caught.value.what
    assert "rename the kernel" in caught.value.hint


@pytest.mark.parametrize("kinds", list(itertools.combinations(("kernel", "constant", "struct"), 2)))
def test_two_things_of_one_name(kinds: tuple[str, str]) -> None:
    takes = ["p: same{x: f32}"] if "struct" in kinds else []
    kernel = signature("same" if "kernel" in kinds else "k", *takes)
    constants = (ConstantSymbol("same", "u8", "u8", 1, 1),) if "constant" in kinds else ()
    with pytest.raises(SignatureError) as caught:
        generate(content(kernel, constants=constants))
    assert caught.value.what == f"a {kinds[0]} and a {kinds[1]} are both called 'same'"
    assert caught.value.where == f"{kinds[1]} 'same'"


@pytest.mark.parametrize(
    "name", ["max", "sum", "abs", "filter", "map", "round", "pow", "hash", "sys", "os", "match"]
)
def test_good_kernel_names_are_free(make_loader: Any, name: str) -> None:
    loaded = make_loader(content(SAXPY, signature(name, "n: u32")))
    getattr(loaded.module, name)[1, 1](7)
    loaded.module.saxpy[1, 1](1, 1.0, X, Y)
    assert loaded.driver.launches[0].kernel == name


def test_the_text_is_python_3_10() -> None:
    loader = generate(content(*SIGNATURES))
    ast.parse(loader.python, feature_version=(3, 10))
    ast.parse(loader.stub, feature_version=(3, 10))


# ---- A process of its own: import, types, and the real seams ----


def test_importing_pulls_in_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "a b" / "ü"
    folder.mkdir(parents=True)
    write(folder, generate(content(*SIGNATURES)))
    code = (
        "import sys; before = set(sys.modules)\n"
        "import pkg.kernels_cuda as k; k.saxpy[1, 32]; repr(k.saxpy)\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    done = python(folder, code, PYTHONUTF8="0", LC_ALL="C")
    assert done.stderr == ""
    assert set(done.stdout.split()) <= {"pkg", "pkg.kernels_cuda", "__future__"}


def test_a_machine_without_driver(tmp_path: Path) -> None:
    write(tmp_path, generate(content(*SIGNATURES)))
    code = (
        "from fake_driver import *\nk = import_loader(Path('pkg/kernels_cuda.py').absolute())\n"
        "for work in (k.load, lambda: k.take_f32[1, 1](1.5)):\n"
        "    try: work()\n"
        "    except k.NoDriver as error: print(error)\n"
    )
    for driver in ("ctypes", ""):
        done = python(tmp_path, code, RUSTCUDA_DRIVER=driver)
        if "CUDA_ERROR" not in done.stdout and not done.stdout:
            pytest.skip("this machine has a driver")
        assert done.stderr == ""
        assert done.stdout.count("kernels need an NVIDIA GPU and its driver (nvidia-smi shows both)") == 2
    done = python(tmp_path, code, RUSTCUDA_DRIVER="rocm")
    assert "RUSTCUDA_DRIVER is 'rocm': set it to ctypes or cuda-bindings" in done.stderr


def test_a_broken_cuda_bindings_gives_way_to_ctypes(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_name: str) -> None:
        raise RuntimeError("half an installation")

    made = object()
    monkeypatch.setattr(importlib, "import_module", broken)
    monkeypatch.setattr(opening, "_CtypesDriver", lambda: made)
    monkeypatch.delenv("RUSTCUDA_DRIVER", raising=False)
    assert opening._open_driver() is made
    monkeypatch.setenv("RUSTCUDA_DRIVER", "cuda-bindings")
    with pytest.raises(errors.NoDriver, match=r"cuda\.bindings cannot be imported: half an installation"):
        opening._open_driver()


def test_a_real_seam_passes_everything_on(seam: Any) -> None:
    done, log = seam(
        "launch = k.saxpy[(2, 3, 4), (5, 6, 7), 75000, 0x7f00aabbccdd]\n"
        "launch(0xfffffffe, 1.5, CudaArray(0x7f1122334455), None)\n"
        "k.saxpy[9, 8, 100000](1, -1.0, FakeTensor(0x10, index=1), 2**64 - 1)\n"
        "d = k._library.driver\n"
        "print(d.version(), d.device_count(), d.current_context(), type(d).__name__)\n"
        "d.set_context(0x7f0000001001)\n"
        "print(d.context_device(), k._library.current_device())\n"
    )
    assert done.stderr == ""
    assert done.stdout.splitlines()[0].startswith("12080 2 0 ")
    assert done.stdout.splitlines()[1] == "1 1"
    assert log[0] == "image FATBIN"
    assert log[1] == (
        "launch 7f0000003001 2 3 4 5 6 7 75000 7f00aabbccdd 0 7f0000001001 "
        "feffffff 0000c03f 55443322117f0000 0000000000000000"
    )
    assert log[2:] == [
        "launch 7f0000003001 9 1 1 8 1 1 100000 0 0 7f0000001001 01000000 000080bf 1000000000000000 "
        + "f" * 16
    ]


def test_a_real_seam_gives_errors_their_names(seam: Any) -> None:
    code = "try: k.{}\nexcept k.KernelError as error: print(type(error).__name__, error)\n"
    done, _ = seam(code.format("saxpy[1, 1](1, 1.0, None, None)"), STUB_FAIL="cuLaunchKernelEx")
    assert done.stdout == "DriverError cuLaunchKernelEx failed: CUDA_ERROR_ILLEGAL_ADDRESS (700)\n"
    done, _ = seam(code.format("load()"), STUB_FAIL="cuInit")
    assert done.stdout.startswith(
        "NoDriver no usable CUDA driver: cuInit failed: CUDA_ERROR_ILLEGAL_ADDRESS (700); "
    )
    done, _ = seam(code.format("empty[1, 1]()"))
    assert done.stdout.startswith("MissingKernel kernel 'empty' is not in the code for this GPU")
    done, _ = seam(code.format("saxpy[1, 1](1, 1.0, CudaArray(0xbad), None)"))
    assert done.stdout.startswith("ArgumentValueError kernel 'saxpy', argument 'x'")


def test_a_real_seam_opts_in_to_shared_memory(seam: Any) -> None:
    done, log = seam("k.load(1)\nk._library.driver.set_function_attribute(0x7f0000003000, 8, 150000)\n")
    assert done.stderr == ""
    assert log == ["image FATBIN", "attribute 7f0000003000 8 150000"]


USES = """
from pkg import kernels_cuda as k

class Tensor:
    is_cuda: bool = True
    dtype: object = None
    def data_ptr(self) -> int: return 0
    def get_device(self) -> int: return 0

class Stream:
    cuda_stream: int = 0

class CpuArray:
    shape: tuple[int, ...] = ()

x = Tensor()
"""
RIGHT = (
    "k.saxpy[1, 32](5, 1.5, x, x)",
    "k.saxpy[(1, 2), (1, 2, 3), 1024](n=5, a=2, x=None, y=0x7000)",
    "k.scale[1, 32, 0, Stream()](lambda_=1.0, data=x, in_=x)",
    "k.take_bool[1, 32, 0, None](True)",
    "launch = k.empty[1, 32]; launch()",
    "k.load(); k.load(1); k.load('cuda:1')",
    "error: RuntimeError = k.ArgumentsError('k', 'x', 'f32', 'str'); error.__class__",
    "text: str = k.saxpy.__name__ + str(k.DriverTooOld(1, 2, 3, '').needs)",
)
WRONG = (
    "k.saxpy[1, 32](5.5, 1.5, x, x)",
    "k.saxpy[1, 32](5, '1.5', x, x)",
    "k.saxpy[1, 32](5, 1.5, x)",
    "k.saxpy[1, 32](5, 1.5, x, x, x)",
    "k.saxpy[1, 32](5, 1.5, x, CpuArray())",
    "k.saxpy[1, 32](5, 1.5, x, z=x)",
    "k.saxpy[1](5, 1.5, x, x)",
    "k.saxpy[1.5, 32](5, 1.5, x, x)",
    "k.saxpy(5, 1.5, x, x)",
    "k.scale[1, 32](1.0, None, x)",
    "k.take_bool[1, 32](1)",
    "k.load(1.5)",
    "k.saxpi",
)


def test_mypy_knows_right_calls_from_wrong_ones(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    write(tmp_path, generate(content(*SIGNATURES, signature("documented", doc=DOC))))
    lines = [*USES.splitlines(), *RIGHT, *WRONG]
    first_wrong = len(lines) - len(WRONG) + 1
    (tmp_path / "uses.py").write_text("\n".join(lines), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--python-version=3.10",
        "uses.py",
        "pkg/kernels_cuda.pyi",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", cwd=tmp_path, check=False
    )
    found = {line.split(": error")[0] for line in done.stdout.splitlines() if ": error:" in line}
    assert found == {f"uses.py:{number}" for number in range(first_wrong, len(lines) + 1)}, done.stdout


def test_the_stub_says_what_the_module_has(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    write(tmp_path, generate(content(*SIGNATURES)))
    command = [sys.executable, "-m", "mypy.stubtest", "pkg.kernels_cuda"]
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stdout


def test_random_scalars_match_struct(loaded: Loaded) -> None:
    chosen = random.Random(5)  # noqa: S311
    for _ in range(200):
        n, a = chosen.randrange(2**32), chosen.uniform(-1e38, 1e38)
        loaded.module.saxpy[1, 1](n, a, X, Y)
        assert loaded.last.packed[:2] == (struct.pack("<I", n), struct.pack("<f", a))
