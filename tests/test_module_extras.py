"""Constant memory and custom operators of torch."""

from __future__ import annotations

import array
import struct
import sys
import types
from dataclasses import dataclass
from typing import Any

import pytest
from fake_driver import FakeTensor, fake_torch
from loaders import SAXPY, Loaded, content, signature

from rustcuda_backend.errors import SignatureError
from rustcuda_backend.loader.generate import generate


@dataclass(frozen=True)
class Constant:
    name: str
    rust_type: str
    dtype: str
    size: int
    doc: str = ""
    symbol: str = "symbol"


TABLE = Constant("TABLE", "[f32; 4]", "f32", 16, "Weights.", "__table")
PAIR = Constant("PAIR", "Pair", "", 8)
HALF = Constant("HALF", "[bf16; 2]", "bf16", 4)
COUNT = Constant("COUNT", "u8", "u8", 1)


@pytest.fixture
def constants(make_loader: Any) -> Loaded:
    written = content(SAXPY, constants=(TABLE, PAIR, HALF, COUNT))
    loaded: Loaded = make_loader(
        written, capabilities=((9, 0), (9, 0)), constants={"__table": 16, "symbol": 8}
    )
    return loaded


class CpuTensor:
    is_cuda = False

    def numpy(self) -> Any:
        return array.array("f", (4, 3, 2, 1))


@pytest.mark.parametrize(
    ("name", "value", "data"),
    [
        ("TABLE", [1, 2.0, 3, 4], struct.pack("<4f", 1, 2, 3, 4)),
        ("TABLE", ((1, 2), [3, 4]), struct.pack("<4f", 1, 2, 3, 4)),
        ("TABLE", array.array("f", (1, 2, 3, 4)), struct.pack("<4f", 1, 2, 3, 4)),
        ("TABLE", CpuTensor(), struct.pack("<4f", 4, 3, 2, 1)),
        ("PAIR", b"12345678", b"12345678"),
        ("HALF", [1.0, -2.0], b"\x80\x3f\x00\xc0"),
        ("COUNT", 255, b"\xff"),
    ],
)
def test_constants_take_numbers_and_buffers(constants: Loaded, name: str, value: object, data: bytes) -> None:
    getattr(constants.module, name).set(value)
    assert constants.driver.copies == [(0x100 + 2000, data, 0)]
    assert constants.driver.current_context() == 0


def test_constants_are_set_on_one_gpu_in_its_streams_order(
    constants: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", fake_torch(current=1))
    constants.module.TABLE.set([0.0] * 4)
    constants.module.TABLE.set([0.0] * 4, "cuda:0")
    assert [(at, stream) for at, _, stream in constants.driver.copies] == [
        (0x100 + 2001, 71),
        (0x100 + 2000, 70),
    ]


@pytest.mark.parametrize(
    ("name", "value", "kind", "message"),
    [
        (
            "TABLE",
            [1.0] * 3,
            ValueError,
            r"'TABLE', .*: wanted \[f32; 4\], 16 bytes, got 12 bytes",
        ),
        ("TABLE", [1e39] * 4, TypeError, "got list"),
        ("TABLE", ["1"] * 4, TypeError, "required argument is not a float"),
        ("TABLE", FakeTensor(1), TypeError, r"it lies on a GPU: pass value\.cpu\(\)"),
        ("COUNT", 256, TypeError, "wanted u8, got int 256"),
        ("COUNT", 1.5, TypeError, "wanted u8, got float 1.5"),
        ("PAIR", 1.0, TypeError, "pass its bytes"),
        ("HALF", [3.4e38, 0], TypeError, "too large for bf16"),
    ],
)
def test_wrong_values_of_constants(
    constants: Loaded, name: str, value: object, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        getattr(constants.module, name).set(value)
    assert isinstance(caught.value, constants.module.KernelError)
    assert not constants.driver.copies


def test_constants_are_documented(constants: Loaded) -> None:
    assert repr(constants.module.TABLE) == "<constant TABLE: [f32; 4]>"
    assert constants.module.TABLE.__doc__ == "TABLE: [f32; 4]\n\nWeights."
    assert "TABLE" in constants.module.__all__
    assert 'TABLE: _ConstantType\n"""TABLE: [f32; 4]' in generate(content(SAXPY, constants=(TABLE,))).stub
    with pytest.raises(SignatureError) as caught:
        generate(content(SAXPY, constants=(Constant("load", "u8", "u8", 1),)))
    assert caught.value.what.startswith("constant 'load' cannot be reached from Python")


# ---- Custom operators ----


class Operator:
    """What torch.library.custom_op returns."""

    def __init__(self, name: str, function: Any, **more: Any) -> None:
        self.name, self.function, self.more = name, function, more
        self.fake: Any = None

    def register_fake(self, fake: Any) -> None:
        self.fake = fake

    def __call__(self, *arguments: Any) -> None:
        self.function(*arguments)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Any:
    torch, module = fake_torch(), types.ModuleType("torch.library")
    vars(module)["custom_op"] = Operator
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.library", module)
    return module


OP = signature("op", "n: u64", "a: f16", "flag: bool", "in: &[f32]", "out: DisjointSlice<f32>", "p: *mut u8")
X = FakeTensor(0x10)


@pytest.mark.usefixtures("library")
def test_an_operator_has_the_kernels_schema_and_launches_it(make_loader: Any) -> None:
    loaded = make_loader(content(OP))
    operator = loaded.module.op.torch_op("mine::op", grid=lambda n, *_: (n, 2), block=64, shared=16)
    assert operator.name == "mine::op"
    assert operator.more == {
        "mutates_args": ("out", "p"),
        "device_types": "cuda",
        "schema": ("(SymInt n, float a, bool flag, Tensor in_, Tensor(a0!) out, Tensor(a1!) p) -> ()"),
    }
    assert operator.fake(1, 2, 3) is None
    arguments = (1.0, True, X, X, FakeTensor(0x20, "torch.uint8"))
    operator(3, *arguments)
    assert (loaded.last.grid, loaded.last.block, loaded.last.shared) == ((3, 2, 1), (64, 1, 1), 16)
    operator(0, *arguments)
    assert len(loaded.driver.launches) == 1, "nothing to do is no launch"


@pytest.mark.usefixtures("library")
def test_an_operator_takes_arrays_as_lists(make_loader: Any) -> None:
    taking = signature("op", "x: &[f32]", "w: [f32; 3]", "n: [i16; 2]", "flags: [bool; 1]")
    loaded = make_loader(content(taking))
    operator = loaded.module.op.torch_op("mine::op", grid=1, block=32)
    assert operator.more["schema"] == "(Tensor x, float[] w, SymInt[] n, bool[] flags) -> ()"
    operator(X, [1.0, 2.0, 3.0], [4, 5], [True])
    assert loaded.last.packed[2:4] == (struct.pack("<3f", 1, 2, 3), struct.pack("<2h", 4, 5))


@pytest.mark.usefixtures("library")
def test_an_operator_takes_no_structs(make_loader: Any) -> None:
    loaded = make_loader(content(signature("op", "x: &[f32]", "p: P{a: u8}")))
    with pytest.raises(loaded.module.KernelError, match="take no structs, as the argument 'p' is one"):
        loaded.module.op.torch_op("mine::op", grid=1, block=1)


@pytest.mark.usefixtures("library")
def test_an_operator_with_a_fixed_grid_and_blocks_that_follow(make_loader: Any) -> None:
    loaded = make_loader(content(OP))
    operator = loaded.module.op.torch_op("mine::op", grid=4, block=lambda n, *_: 32 * n)
    operator(3, 1.0, True, X, X, FakeTensor(0x20, "torch.uint8"))
    assert (loaded.last.grid, loaded.last.block) == ((4, 1, 1), (96, 1, 1))


def test_a_torch_without_custom_operators(make_loader: Any, library: Any) -> None:
    del library.custom_op
    loaded = make_loader(content(OP))
    with pytest.raises(loaded.module.KernelError, match=r"kernel 'op': .* need torch 2\.4 or newer"):
        loaded.module.op.torch_op("mine::op", grid=4, block=64)


def test_help_reads_well(make_loader: Any) -> None:
    import pydoc

    text = pydoc.plain(pydoc.render_doc(make_loader(content(SAXPY)).module.saxpy))
    assert "saxpy(n: 'u32', a: 'f32', x: '*const f32', y: '*mut f32')" in text
    assert "saxpy[grid, block](n: u32, a: f32, x: *const f32, y: *mut f32)" in text
    assert "Adds `a·x` to `y`." in text
    assert "in_order" not in text
