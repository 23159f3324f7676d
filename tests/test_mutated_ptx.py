"""PTX that is damaged anywhere: what reads it raises an error for users, or reads it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oxart_blobs import PTX, PTX_KIND, Blob
from test_ptx import HEADER, SAXPY, SAXPY_FIELDS, constant, entry, moved, record, static

from rustcuda_backend import artefact, finishing, inspection, oxart, oxide_kernels, ptx, ptx_outline
from rustcuda_backend.capability import Capability
from rustcuda_backend.compilers import embedded
from rustcuda_backend.errors import RustcudaError

FIELDS = (
    "doc\x1f Scales.", "launch_bounds\x1f128\x1f2", "block\x1f32\x1f4\x1f1", "cluster\x1f2\x1f1\x1f1",
    "parameter\x1fp\x1fParams{scale: f32, inner: Inner{weights: [f32; 3]}}",
)  # fmt: skip
STORED = ("type\x1f[f32; 64]", "scalar\x1ff32", "storage\x1f256\x1f4")
# All that finishing reads; what records say is changed in tests of their own.
FINISHED = (
    HEADER
    + record("saxpy", *SAXPY_FIELDS)
    + constant("TABLE", *STORED)
    + SAXPY
    + moved("__shared_f_TILE__64_4_1", "__rustcuda_dynamic_shared__16").replace("saxpy", "uses")
    + entry("bounded", ".u8", ".b16", directives=".maxntid 16, 8, 2\n.minnctapersm 3\n")
    + entry("fixed", directives=".reqntid 128\n.explicitcluster\n.reqnctapercluster 2, 1, 1\n")
)
OXIDE = (
    PTX.decode()
    + ".visible .const .align 4 .b8 cuda_oxide_const_246e25db_tables_L12C5_TABLE[256];\n"
    + entry("turn_TID_" + "a" * 32, ".u32", directives=".maxntid 8, 8\n")
)
TOKENS = (
    "", " ", "\n", "\0", ".", ",", "(", ")", "{", "}", "[", "]", ";", "/*", "*/", '"', "-1", "0", "9" * 5000,
    "²", "٣", "1e5", "sm_", "sm_80", "compute_80", ".f16x2", ".pred", ".entry k(", ".version 99999.9", "\x1e",
    "\x1f", "A{a: " * 2000, "300, ", "30, 30, 31", "$%", "é",
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn, text: str) -> str:
    """A text of which a few words or characters have been replaced, or that is cut off."""
    for _ in range(draw(st.integers(1, 3))):
        words = [match.span() for match in re.finditer(r"\w+|\W", text)] or [(0, 0)]
        start, end = draw(st.sampled_from(words))
        there = draw(st.sampled_from([*TOKENS, text[:64]]))
        text = text[:start] + there + text[end if draw(st.booleans()) else start :]
    return text[: draw(st.integers(0, len(text)))] if draw(st.integers(0, 9)) == 0 else text


def of_oxide(text: str) -> None:
    named = oxide_kernels.with_stable_names(embedded._retargeted(text, Capability(9, 0)))
    oxide_kernels.finish(named.text, Capability(9, 0), {})


def of_bundle(text: str) -> None:
    blob = Blob(payloads=((PTX_KIND, "a.ptx", text.encode()),)) if text else Blob()
    for bundle in oxart.read(blob.data()):
        artefact._ptx_of(bundle, Path("a.so"))
        list(artefact._warnings(bundle))
        inspection._bundle(bundle, "")


READERS: list[Callable[[str], object]] = [
    ptx.parse_entries,
    ptx.header,
    ptx.is_whole,
    lambda text: ptx_outline.read(text.encode()),
    lambda text: finishing.finish(text, Capability(9, 0)),
    finishing.has_plain_kernels,
    of_oxide,
    of_bundle,
]


def read_by_all(text: str) -> None:
    for reader in READERS:
        with contextlib.suppress(RustcudaError):
            reader(text)


def test_the_texts_are_right() -> None:
    assert len(finishing.finish(FINISHED, Capability(9, 0)).signatures) == 4
    of_oxide(OXIDE)
    of_bundle(OXIDE)


@settings(deadline=None, derandomize=True, max_examples=400)
@given(mutated(FINISHED))
@example(FINISHED.replace(".target sm_90", ".target sm_"))
@example(FINISHED.replace("16, 8, 2", "16, 8\x1e, 2"))
def test_damaged_output_of_rustc(text: str) -> None:
    read_by_all(text)


@settings(deadline=None, derandomize=True, max_examples=400)
@given(mutated(OXIDE))
@example(OXIDE.replace(".u32 store_param_2", ".texref store_param_2"))
@example(OXIDE.replace("[256]", f"[{'9' * 5000}]"))
@example(OXIDE.replace(".align 4 .b8 cuda", f".align {'9' * 5000} .b8 cuda"))
def test_damaged_output_of_cuda_oxide(text: str) -> None:
    read_by_all(text)


@settings(deadline=None, derandomize=True, max_examples=400)
@given(mutated("\x1e".join(["rustcuda\x1f1", "name\x1fk", *SAXPY_FIELDS, *FIELDS])))
def test_damaged_records_of_kernels(text: str) -> None:
    variable = static("__rustcuda_kernel_k", text.encode())
    read_by_all(HEADER + variable + SAXPY.replace("saxpy", "k"))


@settings(deadline=None, derandomize=True, max_examples=200)
@given(mutated("\x1e".join(["rustcuda\x1f1", "constant\x1fTABLE", *STORED])))
def test_damaged_records_of_constants(text: str) -> None:
    variable = static("__rustcuda_constant_T", text.encode())
    with contextlib.suppress(RustcudaError):
        (symbol,) = finishing.finish(HEADER + variable + SAXPY, Capability(9, 0)).constants
        assert f"[{symbol.size}]" in symbol.declaration
        assert symbol.count <= symbol.size


def test_a_constant_of_a_number_that_nobody_knows() -> None:
    raw = HEADER + constant("T", *STORED).replace("102, 51, 50", "102, 51, 51") + SAXPY
    with pytest.raises(RustcudaError, match="a constant of 'f33' cannot be written from Python"):
        finishing.finish(raw, Capability(9, 0))


@pytest.mark.parametrize("numbers", ["300", "1, , 2", "1 2", ","])
def test_a_record_that_is_no_list_of_bytes(numbers: str) -> None:
    raw = f"{HEADER}.global .align 1 .b8 __rustcuda_kernel_k[4] = {{{numbers}}};\n{SAXPY}"
    with pytest.raises(RustcudaError, match="a record in the PTX cannot be read") as caught:
        finishing.finish(raw, Capability(9, 0))
    assert caught.value.where == "__rustcuda_kernel_k"


def test_a_record_larger_than_any() -> None:
    raw = f"{HEADER}.global .align 1 .b8 __rustcuda_kernel_k[999999999] = {{1}};\n{SAXPY}"
    with pytest.raises(RustcudaError, match="a record in the PTX cannot be read"):
        finishing.finish(raw, Capability(9, 0))
