"""Parameters of other shapes: arrays by value, slices in one parameter, slices with their rows."""

from __future__ import annotations

import struct
import sys
from typing import Any

import pytest
from fake_driver import FakeTensor, fake_torch
from loaders import Loaded, content

from rustcuda_backend.loader.generate import generate
from rustcuda_backend.signature import KernelSignature, Parameter

PLAIN = KernelSignature(
    "plain",
    (
        Parameter("a", "array", "i16", rust_type="[i16; 3]"),
        Parameter("x", "whole_slice", "f32", rust_type="&[f32]"),
        Parameter("b", "array", "bf16", rust_type="[bf16; 5]"),
        Parameter("c", "array", "bool", rust_type="[bool; 1]"),
        Parameter("d", "array", "f64", rust_type="[f64; 2]"),
        Parameter("n", "scalar", "u32", rust_type="u32"),
    ),
    source="rustdoc",
)
WHOLE = KernelSignature(
    "whole",
    (
        Parameter("x", "whole_slice", "f32", rust_type="&[f32]"),
        Parameter("y", "whole_slice", "f32", mutable=True, rust_type="&mut [f32]"),
    ),
    source="rustdoc",
)
X = FakeTensor(0x7000, count=9)
RIGHT: dict[str, Any] = {
    "a": [-1, 2, 3], "x": X, "b": (1.0, -2.0, 0, 0.5, 3), "c": [True], "d": [0.1, 2], "n": 7,
}  # fmt: skip


@pytest.fixture
def loaded(make_loader: Any) -> Loaded:
    sizes = {kernel.name: kernel.abi_bytes for kernel in (PLAIN, WHOLE)}
    result: Loaded = make_loader(content(PLAIN, WHOLE), kernels=sizes)
    return result


def test_every_parameter_begins_where_its_address_says(loaded: Loaded) -> None:
    for _ in range(2):
        loaded.module.plain[1, 32](**RIGHT)
        assert loaded.last.packed == (
            struct.pack("<3h", -1, 2, 3),
            struct.pack("<QQ", 0x7000, 9),
            b"\x80\x3f\x00\xc0\x00\x00\x00\x3f\x40\x40",
            b"\x01",
            struct.pack("<2d", 0.1, 2.0),
            struct.pack("<I", 7),
        )


def test_slices_in_one_parameter(loaded: Loaded) -> None:
    for _ in range(2):
        loaded.module.whole[1, 32](X, FakeTensor(0, count=0))
        assert loaded.last.packed == (struct.pack("<QQ", 0x7000, 9), struct.pack("<QQ", 256, 0))


def test_slices_with_the_length_of_their_rows(make_loader: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", fake_torch())
    rows = Parameter("y", "rows", "f32", mutable=True, rust_type="DisjointSlice<f32, Runtime2DIndex>")
    loaded = make_loader(content(KernelSignature("fill", (rows,))), owners={0x20: 0})
    for _ in range(2):  # the general way, then the kernel's own launcher
        loaded.module.fill[1, 32](FakeTensor(0x7000, count=6, shape=(2, 3)))
        assert loaded.last.packed == (
            struct.pack("<Q", 0x7000), struct.pack("<Q", 6), struct.pack("<I", 3),
        )  # fmt: skip
    loaded.module.fill[1, 32](FakeTensor(0x7000, count=1, shape=()))
    assert loaded.last.packed[2] == struct.pack("<I", 1)
    with pytest.raises(
        loaded.module.ArgumentValueError, match=r"rows of less than 2\*\*32, got rows of 4294967296"
    ):
        loaded.module.fill[1, 32](FakeTensor(0x7000, count=0, shape=(0, 1 << 32)))


class HostArray:
    def tolist(self) -> list[float]:
        return [1.5, 2.5]


def test_arrays_of_the_host_are_numbers_too(loaded: Loaded) -> None:
    loaded.module.plain[1, 32](**{**RIGHT, "d": HostArray()})
    assert loaded.last.packed[4] == struct.pack("<2d", 1.5, 2.5)


@pytest.mark.parametrize(
    ("name", "value", "kind", "message"),
    [
        ("a", [1, 2], ValueError, r"argument 'a': wanted \[i16; 3\], 3 numbers, got 2"),
        ("a", [1, 2, 40000], ValueError, r"argument 'a': wanted i16 \(-32768 to 32767\), got 40000"),
        ("a", [1, 2, 3.0], TypeError, "argument 'a': wanted i16, got float"),
        ("a", 7, TypeError, r"argument 'a': wanted \[i16; 3\] as a list or tuple, got int 7"),
        ("a", X, TypeError, "got a float32 tensor on cuda:0"),
        ("c", [1], TypeError, "argument 'c': wanted bool"),
    ],
)
def test_wrong_arrays_by_value(
    loaded: Loaded, name: str, value: object, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        loaded.module.plain[1, 32](**{**RIGHT, name: value})
    assert not loaded.driver.launches


def test_the_stub_takes_sequences() -> None:
    stub = generate(content(PLAIN)).stub
    assert "a: Sequence[_IntLike], x: _ArrayLike, b: Sequence[_FloatLike], c: Sequence[bool]" in stub
