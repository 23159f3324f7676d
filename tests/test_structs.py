"""Structs by value: where their fields lie, and the Python types that stand for them."""

from __future__ import annotations

import ctypes
import pickle
import struct as packing
import threading
from typing import Any

import pytest
from fake_driver import FakeTensor
from hypothesis import given
from hypothesis import strategies as st
from loaders import Loaded, content, signature

from rustcuda_backend import structs
from rustcuda_backend.errors import SignatureError
from rustcuda_backend.loader import tables
from rustcuda_backend.loader.generate import generate
from rustcuda_backend.structs import Struct, StructField

INNER = "Inner{a: u8, type: f64}"
PARAMS = f"Params{{scale: f32, weights: [f16; 3], inner: {INNER}, flag: bool, b: bf16}}"
TAKES = signature("takes", f"p: {PARAMS}", "n: u32", "x: *const f32", f"q: {INNER}")
X = FakeTensor(0x7000)

C_TYPES = {
    "bool": ctypes.c_bool, "i8": ctypes.c_int8, "u8": ctypes.c_uint8, "i16": ctypes.c_int16,
    "u16": ctypes.c_uint16, "f16": ctypes.c_uint16, "bf16": ctypes.c_uint16, "i32": ctypes.c_int32,
    "u32": ctypes.c_uint32, "f32": ctypes.c_float, "i64": ctypes.c_int64, "u64": ctypes.c_uint64,
    "isize": ctypes.c_int64, "usize": ctypes.c_uint64, "f64": ctypes.c_double,
}  # fmt: skip
FIELDS = st.recursive(
    st.builds(lambda dtype, count: (dtype, count), st.sampled_from(sorted(C_TYPES)), st.integers(0, 5)),
    lambda inner: st.lists(inner, min_size=1, max_size=4),
    max_leaves=12,
)


def made(fields: Any) -> Struct:
    return Struct(
        "S",
        tuple(
            StructField(f"f{number}", struct=made(each))
            if isinstance(each, list)
            else StructField(f"f{number}", *each)
            for number, each in enumerate(fields)
        ),
    )


def in_c(struct: Struct) -> Any:
    fields = []
    for field in struct.fields:
        kind = in_c(field.struct) if field.struct else C_TYPES[field.dtype]
        fields.append((field.name, kind * field.count if field.count else kind))
    return type("C", (ctypes.Structure,), {"_fields_": fields})


@given(st.lists(FIELDS, min_size=1, max_size=5))
def test_fields_lie_as_in_c(fields: Any) -> None:
    struct = made(fields)
    c = in_c(struct)
    assert (struct.size, struct.alignment) == (ctypes.sizeof(c), ctypes.alignment(c))
    assert packing.calcsize(f"<{struct.format}") == struct.size
    offsets = []
    for index in range(len(struct.fields)):
        before = Struct("S", struct.fields[: index + 1])
        offsets.append(before.size - before._end - struct.fields[index].size)
    assert offsets == [getattr(c, field.name).offset for field in struct.fields]


def test_records_spell_structs() -> None:
    struct = structs.parse(PARAMS)
    assert struct is not None
    assert [(field.name, field.rust_type) for field in struct.fields] == [
        ("scale", "f32"), ("weights", "[f16; 3]"), ("inner", "Inner"), ("flag", "bool"), ("b", "bf16"),
    ]  # fmt: skip
    assert [each.name for each in struct.all_structs()] == ["Inner", "Params"]
    assert structs.parse("f32") is None


@pytest.mark.parametrize(
    "text", ["P{", "P{}", "P{a: f32", "P{a: f33}", "P{a f32}", "P{a: f32}x", "P{a: [f32; 0]}", "P{a: f32,}"]
)
def test_a_damaged_spelling(text: str) -> None:
    with pytest.raises(SignatureError, match="spells a struct that cannot be read"):
        structs.parse(text)


@pytest.fixture
def loaded(make_loader: Any) -> Loaded:
    result: Loaded = make_loader(content(TAKES), kernels={"takes": TAKES.abi_bytes})
    return result


def test_a_struct_is_packed_as_c_has_it(loaded: Loaded) -> None:
    module = loaded.module
    inner = module.Inner(3, type=2.5)
    params = module.Params(1, weights=[1, 2.0, 0.5], inner=inner, flag=True, b=1.0)
    module.takes[1, 32](params, 7, X, inner)
    packed_inner = packing.pack("<B7xd", 3, 2.5)
    assert loaded.last.packed == (
        packing.pack("<f3e6x", 1, 1, 2, 0.5) + packed_inner + b"\x01\0\x80\x3f" + bytes(4),
        packing.pack("<I", 7),
        packing.pack("<Q", 0x7000),
        packed_inner,
    )


def test_what_a_struct_is(loaded: Loaded) -> None:
    module = loaded.module
    inner = module.Inner(3, 2.5)
    assert (inner.a, inner.type, repr(inner)) == (3, 2.5, "Inner(a=3, type=2.5)")
    assert inner == module.Inner(a=3, type=2.5) != module.Inner(3, 2)
    assert len({inner, module.Inner(3, 2.5)}) == 1
    assert module.Inner is module.Inner
    assert {"Inner", "Params"} <= {*module.__all__} & {*dir(module)}
    assert module.Inner.__doc__.startswith("Inner(a: u8, type: f64): ")
    with pytest.raises(AttributeError, match="does not change: make a new one to set a to 4"):
        inner.a = 4
    with pytest.raises(AttributeError, match="struct 'Inner' has no field 'z'"):
        inner.z  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'Outer'"):
        module.Outer  # noqa: B018


def test_a_struct_can_be_pickled(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, loaded.module.__name__, loaded.module)
    value = loaded.module.Inner(1, 2.0)
    assert pickle.loads(pickle.dumps(value)) == value  # noqa: S301


def test_threads_get_one_type(loaded: Loaded) -> None:
    found: list[type] = []
    barrier = threading.Barrier(8)

    def ask() -> None:
        barrier.wait()
        found.append(loaded.module.Params)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len({*found}) == 1


@pytest.mark.parametrize(
    ("values", "named", "message"),
    [
        ((), {}, r"wanted its fields a, type, each once, got \(\)"),
        ((1,), {"a": 2}, r"each once, got \(…, a=…\)"),
        ((1, 2.0, 3), {}, "each once"),
        ((1,), {"b": 2.0}, "each once"),
        ((256, 1.0), {}, r"struct 'Inner', argument 'a': wanted u8 \(0 to 255\), got 256"),
        ((1, "x"), {}, "argument 'type': wanted f64, got str 'x'"),
    ],
)
def test_wrong_fields(loaded: Loaded, values: Any, named: Any, message: str) -> None:
    with pytest.raises(loaded.module.ArgumentsError, match=message):
        loaded.module.Inner(*values, **named)


@pytest.mark.parametrize("own", ["_packed", "_values", "_place", "_converters", "_named", "self", "class"])
def test_a_field_called_as_what_the_types_have_themselves(make_loader: Any, own: str) -> None:
    module = make_loader(content(signature("k", f"p: P{{{own}: u8, b: u8}}"))).module
    value = module.P(3, b=4)
    assert getattr(value, f"{own}_") == 3
    assert value == module.P(**{f"{own}_": 3, "b": 4}) == pickle.loads(pickle.dumps(value))  # noqa: S301


def test_something_else_than_the_struct(loaded: Loaded) -> None:
    module = loaded.module
    inner = module.Inner(1, 1.0)
    wanted = r"argument 'q': wanted Inner, got .* \(make one: Inner\(a: u8, type: f64\)\)"
    params = module.Params(1, [1, 2, 3], inner, False, 1.0)
    for other in ((1, 1.0), {"a": 1, "type": 1.0}, params, None):
        with pytest.raises(module.ArgumentTypeError, match=wanted):
            module.takes[1, 32](params, 7, X, other)
    with pytest.raises(module.ArgumentTypeError, match="argument 'inner': wanted Inner"):
        module.Params(1, [1, 2, 3], (1, 1.0), False, 1.0)


def test_the_tables_of_a_loader_know_the_size() -> None:
    loader = generate(content(TAKES))
    (kernel,) = tables.read(loader.python).kernels
    assert kernel.signature == "takes(p: Params, n: u32, x: *const f32, q: Inner)"
    assert kernel.abi_bytes == TAKES.abi_bytes == (40, 4, 8, 16)


@pytest.mark.parametrize(
    ("signatures", "message"),
    [
        (("k", "a: P{x: f32}", "b: P{x: f64}"), "two structs of different fields are called 'P'"),
        (("k", "a: load{x: f32}"), "struct 'load' cannot be reached from Python"),
        (("k", "a: f32{x: u8}"), "'f32' is a number's name"),
    ],
)
def test_names_that_structs_cannot_have(signatures: Any, message: str) -> None:
    with pytest.raises(SignatureError, match=message):
        generate(content(signature(*signatures)))
