"""Signatures: the forms of parameters, and the record that `#[kernel]` leaves."""

from __future__ import annotations

import pytest

from rustcuda_backend.errors import SignatureError
from rustcuda_backend.scalars import SCALAR_BYTES
from rustcuda_backend.signature import KernelSignature, Parameter, parse_record, parse_type


@pytest.mark.parametrize("scalar", SCALAR_BYTES)
@pytest.mark.parametrize(
    ("form", "kind", "mutable"),
    [
        ("{}", "scalar", False),
        ("*const {}", "pointer", False),
        ("*mut {}", "pointer", True),
        ("&{}", "pointer", False),
        ("&mut {}", "pointer", True),
        ("&[{}]", "slice", False),
        ("DisjointSlice<{}>", "slice", True),
    ],
)
def test_every_form_of_every_scalar(scalar: str, form: str, kind: str, mutable: bool) -> None:
    written = form.format(scalar)
    parameter = parse_type("x", written)
    assert parameter == Parameter("x", kind, scalar, mutable, written)
    expected = {"scalar": (SCALAR_BYTES[scalar],), "pointer": (8,), "slice": (8, 8)}
    assert parameter.abi_bytes == expected[kind]


@pytest.mark.parametrize(
    "written", ["char", "u128", "&mut [f32]", "*const Pair", "[f32; 0]", "[Pair; 4]", "(u32, u32)", "", "mut"]
)
def test_what_cannot_be_passed(written: str) -> None:
    with pytest.raises(SignatureError, match="cannot be passed from Python") as raised:
        parse_type("x", written)
    assert f"'x: {written}'" in raised.value.what
    assert "DisjointSlice<T>" in raised.value.hint


def record(*lines: tuple[str, ...]) -> bytes:
    return "\x1e".join("\x1f".join(line) for line in lines).encode()


def test_a_record() -> None:
    data = record(
        ("rustcuda", "1"),
        ("name", "saxpy"),
        ("doc", ' Füllt "y".\n\n  indented \n'),
        ("launch_bounds", "256", "2"),
        ("parameter", "a", "f32"),
        ("parameter", "y", "DisjointSlice<f32>"),
    )
    assert parse_record(data) == KernelSignature(
        "saxpy",
        (
            Parameter("a", "scalar", "f32", False, "f32"),
            Parameter("y", "slice", "f32", True, "DisjointSlice<f32>"),
        ),
        doc='Füllt "y".\n\n indented',
        launch_bounds=(256, 2),
    )
    assert parse_record(data).abi_bytes == (4, 8, 8)


def test_a_record_of_nothing_but_a_name() -> None:
    assert parse_record(record(("rustcuda", "1"), ("name", "k"))) == KernelSignature("k", ())


def test_a_record_of_another_version() -> None:
    with pytest.raises(SignatureError, match="unknown version 'rustcuda 2'") as raised:
        parse_record(record(("rustcuda", "2"), ("name", "k")))
    assert "comes with this rustcuda-backend" in raised.value.hint


def test_an_error_in_a_record_names_the_kernel() -> None:
    with pytest.raises(SignatureError) as raised:
        parse_record(record(("rustcuda", "1"), ("name", "k"), ("parameter", "x", "char")))
    assert raised.value.where == "kernel 'k'"


@pytest.mark.parametrize(
    ("kind", "rust_type", "dtype", "sizes"),
    [
        ("whole_slice", "&[f32]", "f32", (16,)),
        ("array", "[f32; 4]", "f32", (16,)),
        ("array", "[u8; 3]", "u8", (3,)),
        ("value", "Pair", "", (0,)),
    ],
)
def test_what_rustdoc_shows_beside(kind: str, rust_type: str, dtype: str, sizes: tuple[int, ...]) -> None:
    parameter = Parameter("x", kind, dtype, rust_type=rust_type)
    assert parameter.abi_bytes == sizes
    assert parameter.count == {"[f32; 4]": 4, "[u8; 3]": 3}.get(rust_type, 1)
