"""Structs by value: where their fields lie, and the Python types that stand for them."""

from __future__ import annotations

import ast
import ctypes
import inspect
import pickle
import pydoc
import signal
import struct as packing
import threading
from fractions import Fraction
from typing import Any

import pytest
from fake_driver import FakeTensor
from hypothesis import given
from hypothesis import strategies as st
from loaders import Loaded, content, signature

from rustcuda_backend import structs
from rustcuda_backend.errors import SignatureError
from rustcuda_backend.loader import tables
from rustcuda_backend.loader.content import python_names
from rustcuda_backend.loader.generate import generate
from rustcuda_backend.loader.runtime.structs import _StructValue
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


DOCUMENTED = '\x1d Of `both`.\n\n More {a: u8}, """.\x1dP{\x1d The first.\x1da: u8, b: \x1dIn.\x1dQ{c: u8}}'


def test_doc_comments_come_along(make_loader: Any) -> None:
    takes = signature("takes", f"p: {DOCUMENTED}")
    struct = takes.parameters[0].struct
    assert struct is not None
    first, second = struct.fields
    assert second.struct is not None
    assert struct.doc == 'Of `both`.\n\nMore {a: u8}, """.'
    assert [first.doc, second.doc, second.struct.doc] == ["The first.", "", "In."]
    assert struct == structs.parse("P{a: u8, b: Q{c: u8}}"), "which no comment changes"
    module = make_loader(content(takes)).module
    assert module.P.__doc__ == f"P(a: u8, b: Q): a struct that kernels take by value.\n\n{struct.doc}"
    assert [module.P.a.__doc__, module.P.b.__doc__] == ["u8: The first.", "Q"]
    stub = ast.parse(generate(content(takes)).stub)
    (stubbed,) = (node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == "P")
    shown = ast.get_docstring(stubbed)
    assert shown is not None
    assert shown.startswith(f"{struct.doc}\n\nA struct that kernels take by value;")
    assert shown.endswith("    P {\n        a: u8,\n        b: Q,\n    }")
    docs = {node.name: ast.get_docstring(node) for node in stubbed.body if isinstance(node, ast.FunctionDef)}
    assert docs == {"__init__": None, "a": "The first.", "b": None}


@pytest.mark.parametrize(
    "text",
    [
        "P{",
        "P{}",
        "P{a: f32",
        "P{a: f33}",
        "P{a f32}",
        "P{a: f32}x",
        "P{a: [f32; 0]}",
        "P{a: f32,}",
        "\x1dopen P{a: f32}\x1dP{",
    ],
)
def test_a_damaged_spelling(text: str) -> None:
    with pytest.raises(SignatureError, match="spells a struct that cannot be read"):
        structs.parse(text)


def nested(depth: int) -> str:
    """A struct in a struct in a struct."""
    return "A{b: u8, a: " * (depth - 1) + "A{a: u16}" + "}" * (depth - 1)


def test_structs_in_structs_are_read_to_a_bounded_depth() -> None:
    """Each level is looked at once: twice would take longer than anybody waits."""
    found = structs.parse(nested(100))
    assert found
    assert (found.size, found.alignment, packing.calcsize(f"<{found.format}")) == (200, 2, 200)
    for depth in (101, 100_000):
        with pytest.raises(SignatureError, match="spells a struct that cannot be read"):
            structs.parse(nested(depth))


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
    takes = inspect.signature(module.Inner).parameters.values()
    assert [(each.name, each.annotation) for each in takes] == [("a", "u8"), ("type", "f64")]
    assert "|  Inner(a: " in pydoc.plain(pydoc.render_doc(module.Inner)).replace(
        "Inner(a: u8, type: f64): ", ""
    )
    with pytest.raises(AttributeError, match="does not change: make a new one to set a to 4"):
        inner.a = 4
    with pytest.raises(AttributeError, match="has no attribute 'z'"):
        inner.z  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'Outer'"):
        module.Outer  # noqa: B018


class HostArray:
    def tolist(self) -> list[float]:
        return [1.0, 2.0, 3.0]


def test_arrays_do_not_change_with_what_they_came_from(loaded: Loaded) -> None:
    module, numbers = loaded.module, [1.0, 2.0, 3.0]
    inner = module.Inner(1, 1.0)
    params = [module.Params(1, weights, inner, True, 1.0) for weights in (numbers, HostArray())]
    numbers[0] = 5
    assert [each.weights for each in params] == [(1.0, 2.0, 3.0)] * 2
    assert "weights=(1.0, 2.0, 3.0)" in repr(params[0])
    assert params[0] == params[1]


def test_fields_of_any_name(make_loader: Any) -> None:
    names = ("_values", "_packed", "_place", "named", "values", "self", "other", "class", "name", "_fields")
    takes = signature("takes", f"p: P{{{', '.join(f'{name}: u8' for name in names)}}}")
    loaded = make_loader(content(takes))
    struct = loaded.module.P(*range(len(names) - 1), _fields=9)
    assert [getattr(struct, name) for name in python_names(takes.parameters[0].struct.fields)] == [*range(10)]
    loaded.module.takes[1, 1](struct)
    assert loaded.last.packed == (bytes(range(10)),)


@pytest.mark.parametrize(
    "name", ["\N{MICRO SIGN}", "\N{LATIN SMALL LIGATURE FI}", "\N{ANGSTROM SIGN}", "\N{OHM SIGN}"]
)
def test_names_are_those_that_python_reads(make_loader: Any, name: str) -> None:
    takes = signature("takes", f"p: P{{{name}: u8, f: f32}}", f"{name}: u8", "x: *const f32")
    loaded = make_loader(content(takes))
    # Python normalizes names in its source text.
    used: dict[str, Any] = {"k": loaded.module, "x": X}
    exec(f"p = k.P({name}=3, f=1)\nk.takes[1, 1](p, {name}=4, x=x)\nread = p.{name}", used)  # noqa: S102
    assert used["read"] == 3
    assert [value[:1] for value in loaded.last.packed] == [b"\x03", b"\x04", b"\0"]


class Index:
    def __index__(self) -> int:
        return 3


@pytest.mark.parametrize(
    ("rust", "given", "kept"),
    [
        ("f32", 2, 2.0), ("f64", Fraction(1, 4), 0.25), ("bf16", Index(), 3.0), ("u8", Index(), 3),
        ("i32", signal.SIGINT, 2), ("[f32; 2]", [1, Fraction(1, 2)], (1.0, 0.5)),
        ("[u8; 2]", (Index(), True), (3, 1)), ("[bool; 2]", [True, False], (True, False)),
    ],
)  # fmt: skip
def test_values_are_numbers_of_pythons_own(make_loader: Any, rust: str, given: Any, kept: Any) -> None:
    value = make_loader(content(signature("k", f"p: P{{a: {rust}}}"))).module.P(given).a
    plain = value if isinstance(value, tuple) else (value,)
    wanted = kept if isinstance(kept, tuple) else (kept,)
    assert value == kept
    assert [type(each) for each in plain] == [type(each) for each in wanted]


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


@pytest.mark.parametrize(
    "own",
    [
        *sorted({*dir(_StructValue), *_StructValue.__annotations__}),
        *("__del__", "__getattr__", "__dict__", "__match_args__", "__qualname__", "self", "class"),
    ],
)
def test_a_field_called_as_what_the_types_have_themselves(make_loader: Any, own: str) -> None:
    module = make_loader(content(signature("k", f"p: P{{{own}: u8, b: u8}}"))).module
    value = module.P(3, b=4)
    assert getattr(value, f"{own}_") == 3
    assert type(value) is module.P is value.__class__
    assert (repr(value), module.P.__module__) == (f"P({own}_=3, b=4)", module.__name__)
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


def test_the_module_makes_no_type_when_it_is_imported(loaded: Loaded) -> None:
    made = loaded.module._library.structs._made
    assert not made
    assert loaded.module.Inner
    assert [*made] == ["Inner"]
