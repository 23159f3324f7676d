"""Arrays that are not torch's, and what references refuse. numpy's memory plays the GPU's."""

from __future__ import annotations

import struct
import sys
from typing import Any

import pytest
from fake_driver import FakeTensor, fake_torch
from loaders import Loaded, content, signature

np = pytest.importorskip("numpy")

READ = signature("read", "x: *const f32", "n: &[f32]", "y: *mut f32")
TYPES = tuple(
    signature(f"take_{dtype}", f"x: &[{dtype}]")
    for dtype in ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "bool")
)
ROWS = signature("refs", "x: &f32", "y: &mut f32")


class DlpackArray:
    """numpy's array as if a GPU's: old producers give capsules without versions."""

    def __init__(self, array: Any, *, device: tuple[int, int] = (2, 0), old: bool = False) -> None:
        self.array, self.device, self.old = array, device, old
        self.streams: list[int] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, *, stream: int, max_version: tuple[int, int] | None = None) -> Any:
        if self.old and max_version:
            raise TypeError("unexpected keyword argument 'max_version'")
        self.streams.append(stream)
        return self.array.__dlpack__(max_version=None if self.old else max_version)


class JaxArray:
    """A JAX array's manners: keywords only, read-only by its capsule's flags, no stream 0."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.streams: list[int] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def __dlpack__(
        self, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
        dl_device: object = None, copy: bool | None = None,
    ) -> Any:  # fmt: skip
        assert type(stream) is int
        assert stream > 0, "0 is ambiguous for CUDA"
        assert max_version is not None
        assert max_version >= (1, 0), "older capsules cannot say read-only"
        assert (dl_device, copy) == (None, None), "nothing may be copied"
        self.streams.append(stream)
        self.array.flags.writeable = False
        return self.array.__dlpack__(max_version=max_version)


@pytest.fixture
def loaded(make_loader: Any) -> Loaded:
    result: Loaded = make_loader(content(READ, ROWS, *TYPES), capabilities=((9, 0), (9, 0)))
    return result


Y = FakeTensor(0x70)


@pytest.mark.parametrize("old", [False, True])
def test_dlpack_gives_address_length_gpu_and_stream(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch, old: bool
) -> None:
    whole = np.arange(12, dtype="f4")
    array = DlpackArray(whole[2:].reshape(2, 5), device=(2, 1), old=old)
    loaded.module.read[1, 32](array, array, array)
    address = struct.pack("<Q", whole[2:].ctypes.data)
    assert loaded.last.packed == (address, address, struct.pack("<Q", 10), address)
    assert loaded.last.device == 1
    assert set(array.streams) == {1}, "DLPack's number for the default stream"
    loaded.module.read[1, 32, 0, 0x55](array, array, array)
    assert array.streams[-1] == 0x55
    monkeypatch.setitem(sys.modules, "torch", fake_torch())
    loaded.module.read[1, 32](array, array, array)
    assert (array.streams[-1], loaded.last.stream) == (71, 71)


@pytest.mark.parametrize("kernel", TYPES, ids=lambda kernel: kernel.name)
def test_dlpacks_dtypes(loaded: Loaded, kernel: Any) -> None:
    rust = kernel.name.removeprefix("take_")
    for code in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "?"):
        dtype = np.dtype(code)
        array = DlpackArray(np.zeros(3, dtype))
        fits = rust in (f"{dtype.kind}{8 * dtype.itemsize}", str(dtype))
        if fits:
            getattr(loaded.module, kernel.name)[1, 32](array)
        else:
            with pytest.raises(loaded.module.ArgumentTypeError, match="its dtype must be"):
                getattr(loaded.module, kernel.name)[1, 32](array)
    assert len(loaded.driver.launches) == 1


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((4, 4), "f4")[:, :2], r"contiguous, got strides \(4, 1\)"),
        (np.zeros((4, 4), "f4").T, r"contiguous, got strides \(1, 4\)"),
        (np.zeros((4, 2, 4), "f4")[:, :1, ::2], r"contiguous, got strides"),
    ],
)
def test_slices_refuse_what_is_strided_and_pointers_take_it(loaded: Loaded, array: Any, message: str) -> None:
    strided = DlpackArray(array)
    with pytest.raises(loaded.module.ArgumentValueError, match=message):
        loaded.module.read[1, 32](strided, strided, Y)
    loaded.module.read[1, 32](strided, Y, strided)
    assert loaded.last.packed[0] == struct.pack("<Q", array.ctypes.data)


def test_extents_of_one_empty_arrays_and_single_numbers_are_contiguous(loaded: Loaded) -> None:
    for array, count in (
        (np.zeros((3, 8), "f4")[:1, :4], 4), (np.zeros((0, 7), "f4")[:, ::2], 0), (np.zeros((), "f4"), 1),
    ):  # fmt: skip
        loaded.module.read[1, 32](Y, DlpackArray(array), Y)
        assert loaded.last.packed[2] == struct.pack("<Q", count)


def test_memory_that_no_kernel_may_read_or_write(loaded: Loaded) -> None:
    array = np.zeros(4, "f4")
    with pytest.raises(loaded.module.ArgumentTypeError, match="it lies in host memory"):
        loaded.module.read[1, 32](DlpackArray(array, device=(1, 0)), Y, Y)
    for kind in (3, 13):  # pinned and managed memory
        loaded.module.read[1, 32](DlpackArray(array, device=(kind, 0)), Y, Y)
    array.flags.writeable = False
    read_only = DlpackArray(array)
    loaded.module.read[1, 32](read_only, read_only, Y)
    with pytest.raises(loaded.module.ArgumentValueError, match=r"argument 'y'.* got a read-only array"):
        loaded.module.read[1, 32](Y, Y, read_only)
    with pytest.raises(loaded.module.ArgumentTypeError, match="takes GPU arrays: torch, DLPack"):
        loaded.module.read[1, 32](object(), Y, Y)


@pytest.mark.parametrize("null", [None, 0])
def test_references_are_never_null(loaded: Loaded, null: object) -> None:
    loaded.module.refs[1, 32](0x10, 0x20)
    for arguments in ((null, Y), (Y, null)):
        with pytest.raises(loaded.module.ArgumentValueError, match="which is never null, got None or 0"):
            loaded.module.refs[1, 32](*arguments)


def test_jax_arrays_are_read_and_never_written(loaded: Loaded) -> None:
    array = JaxArray(np.arange(4, dtype="f4"))
    for stream in (None, 0, 1, 2, 0x7F00):
        loaded.module.read[1, 32, 0, stream](array, array, Y)
    address = struct.pack("<Q", array.array.ctypes.data)
    assert loaded.last.packed[:3] == (address, address, struct.pack("<Q", 4))
    assert array.streams == [stream for stream in (1, 1, 1, 2, 0x7F00) for _ in range(2)]
    with pytest.raises(loaded.module.ArgumentValueError, match=r"argument 'y'.* got a read-only array"):
        loaded.module.read[1, 32](Y, Y, array)
    assert len(loaded.driver.launches) == 5
