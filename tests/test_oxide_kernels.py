"""What cuda-oxide's PTX and rustdoc say of kernels together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from oxide_stand_ins import SLICE, entry, ptx
from test_cuda_oxide import MANIFEST, make_crate

from rustcuda_backend import oxide_kernels, process, rustdoc
from rustcuda_backend.capability import parse_list
from rustcuda_backend.errors import FormatError, SignatureError
from rustcuda_backend.ptx import PtxModule
from rustcuda_backend.rust import RustToolchain
from rustcuda_backend.signature import KernelSignature

(SM80,) = parse_list("8.0")
(SM90,) = parse_list("9.0")

SOURCE = """\
use core::marker::PhantomData;
use cuda_device::{DisjointSlice, thread::{Index1D, Runtime2DIndex}};
pub struct Pair { low: f32, high: u32 }
#[repr(C)] pub struct Lying { low: u8, high: Inner }
#[repr(C)] pub struct Inner { a: f64 }
pub struct Tag;
type Real = f32;
type Reals<'a> = &'a [Real];
#[unsafe(no_mangle)]
pub fn cuda_oxide_codegen_v1_cuda_oxide_kernel_246e25db_slices(
    a: Reals, b: &mut [u16], c: DisjointSlice<Real, Index1D>, d: DisjointSlice<f64, Runtime2DIndex>,
) {}
/// Of version 0.2.1.
#[unsafe(no_mangle)]
pub unsafe fn cuda_oxide_kernel_246e25db_scalars(
    x: *const f32, r: &u32, n: usize, f: bool, a: [f32; 3], (_p, _q): (u8, u8),
) {}
#[unsafe(no_mangle)]
pub fn cuda_oxide_codegen_v1_cuda_oxide_kernel_246e25db_nothings(
    n: u32, unit: (), none: [u32; 0], marker: PhantomData<f32>, tag: Tag,
) {}
#[unsafe(no_mangle)]
pub fn cuda_oxide_codegen_v1_cuda_oxide_kernel_246e25db_structs(
    p: &[Pair], q: DisjointSlice<Pair>, t: &str,
) {}
#[unsafe(no_mangle)]
pub fn cuda_oxide_codegen_v1_cuda_oxide_kernel_246e25db_unclear(tag: Tag, pair: Pair, n: u32) {}
#[unsafe(no_mangle)]
pub fn cuda_oxide_codegen_v1_cuda_oxide_kernel_246e25db_values(p: Lying, n: u32) {}
#[unsafe(no_mangle)]
pub fn cuda_oxide_codegen_v1_cuda_oxide_device_246e25db_helper(n: u32) {}
#[unsafe(no_mangle)]
pub extern "C" fn other(n: u32) {}
"""


@pytest.fixture(scope="module")
def described(
    tmp_path_factory: pytest.TempPathFactory, toolchain: RustToolchain
) -> dict[str, KernelSignature]:
    """What the real rustdoc says of them."""
    directory = make_crate(tmp_path_factory.mktemp("crate"), SOURCE, MANIFEST)
    environ = {"RUSTC": str(toolchain.rustc), "RUSTDOC": str(toolchain.rustc.with_name("rustdoc"))}
    argv = [toolchain.cargo, "rustdoc", "--lib", "--", *rustdoc.FLAGS]
    done = process.run(argv, cwd=directory, env={"PATH": "/usr/bin:/bin", "RUSTC_BOOTSTRAP": "1", **environ})
    assert done.ok, done.stderr
    document = json.loads((directory / "target/doc/oxide_kernels.json").read_text(encoding="utf-8"))
    return rustdoc.signatures(document, oxide_kernels.find)


def finish(described: dict[str, KernelSignature], *entries: str) -> PtxModule:
    return oxide_kernels.finish(ptx("sm_80", *entries), SM80, described)


def kinds(signature: KernelSignature) -> list[tuple[str, str, str]]:
    return [(item.name, item.kind, item.dtype) for item in signature.parameters]


def test_kernels_of_both_forms_of_the_macro_are_found(described: dict[str, KernelSignature]) -> None:
    assert set(described) == {"slices", "scalars", "nothings", "structs", "unclear", "values"}
    assert described["scalars"].doc == "Of version 0.2.1."


def test_slices(described: dict[str, KernelSignature]) -> None:
    (signature,) = finish(described, entry("slices", *SLICE * 4, ".u32")).signatures
    assert kinds(signature) == [
        ("a", "slice", "f32"),
        ("b", "slice", "u16"),
        ("c", "slice", "f32"),
        ("d", "rows", "f64"),
    ]
    assert signature.abi_bytes == (8,) * 8 + (4,)
    assert [item.mutable for item in signature.parameters] == [False, True, True, True]
    assert [item.rust_type for item in signature.parameters] == [
        "&[f32]", "&mut [u16]", "DisjointSlice<f32>", "DisjointSlice<f64, Runtime2DIndex>",
    ]  # fmt: skip


def test_scalars_pointers_and_arrays(described: dict[str, KernelSignature]) -> None:
    types = (".u64 .ptr .align 4", ".u64 .ptr .align 4", ".u64", ".u8", ".align 4 .b8[12]")
    # A tuple is one array of bytes, which Python cannot pass.
    assert finish(described, entry("scalars", *types, ".align 1 .b8[2]")).unlaunchable == ("scalars",)
    # Or a type that another crate calls by another name; the PTX knows what it is.
    (signature,) = finish(described, entry("scalars", *types, ".u16")).signatures
    assert kinds(signature) == [
        ("x", "pointer", "f32"), ("r", "pointer", "u32"), ("n", "scalar", "usize"), ("f", "scalar", "bool"),
        ("a", "array", "f32"), ("arg5", "scalar", "u16"),
    ]  # fmt: skip


def test_values_without_a_size_are_no_parameters(described: dict[str, KernelSignature]) -> None:
    (signature,) = finish(described, entry("nothings", ".u32")).signatures
    assert kinds(signature) == [("n", "scalar", "u32")]


def test_structs_that_lie_as_in_c(described: dict[str, KernelSignature]) -> None:
    (signature,) = finish(described, entry("values", ".align 8 .b8[16]", ".u32")).signatures
    assert kinds(signature) == [("p", "struct", "B7xd"), ("n", "scalar", "u32")]
    with pytest.raises(SignatureError, match=r"shows the parameters \(p: Lying, n: u32\) of \(16, 4\) bytes"):
        finish(described, entry("values", ".align 8 .b8[24]", ".u32"))


def test_slices_of_structs_and_text_cannot_be_passed(described: dict[str, KernelSignature]) -> None:
    assert finish(described, entry("structs", *SLICE * 3)).unlaunchable == ("structs",)


def test_where_it_is_not_clear_which_value_has_no_size(described: dict[str, KernelSignature]) -> None:
    assert finish(described, entry("unclear", ".align 4 .b8[8]", ".u32")).unlaunchable == ("unclear",)


def test_parameters_that_contradict_each_other(described: dict[str, KernelSignature]) -> None:
    with pytest.raises(SignatureError, match=r"rustdoc shows the parameters \(a: &\[f32\]") as caught:
        finish(described, entry("slices", *SLICE * 4))
    assert caught.value.where == "kernel 'slices'"


def test_without_rustdoc_every_parameter_stands_for_itself() -> None:
    module = finish({}, entry("plain", *SLICE, ".f32"), entry("odd", ".align 4 .b8[8]"), entry("none"))
    plain, none = module.signatures
    assert kinds(plain) == [("arg0", "pointer", ""), ("arg1", "scalar", "u64"), ("arg2", "scalar", "f32")]
    assert plain.source == "ptx"
    assert none.parameters == ()
    assert module.unlaunchable == ("odd",)


@pytest.mark.parametrize(
    ("directives", "expected"),
    [
        ("", (None, None, None)),
        (".maxntid 256, 1, 1", ((256, 0), None, None)),
        (".maxntid 64;.minnctapersm 3", ((64, 3), None, None)),
        (".reqntid 16, 8, 2", ((256, 0), (16, 8, 2), None)),
        (".explicitcluster;.reqnctapercluster 2, 2, 1", (None, None, (2, 2, 1))),
        (".maxntid 128;.reqntid 32, 2;.reqnctapercluster 4", ((128, 0), (32, 2, 1), (4, 1, 1))),
    ],
)
def test_promises_of_launches_come_from_the_ptx(directives: str, expected: Sequence[Any]) -> None:
    text = ptx("sm_90", entry("f", directives=directives))
    module = oxide_kernels.finish(text, SM90, {})
    (signature,) = module.signatures
    assert (signature.launch_bounds, signature.block, signature.cluster) == expected
    assert module.text == text, "nothing is promised twice"


def test_a_cluster_that_the_capability_does_not_have() -> None:
    with pytest.raises(SignatureError, match=r"clusters need capability 9\.0"):
        finish({}, entry("f", directives=".reqnctapercluster 2, 1, 1"))


@pytest.mark.parametrize(
    ("declared", "size"),
    [
        ("b8 {0}[16];", 16),
        ("b8 {0}[4] = {{1, 2}};", 4),
        ("f32 {0};", 4),
        ("u64 {0} = 7;", 8),
        ("b16 {0}[3];", 6),
    ],
)
def test_constants_however_they_are_declared(declared: str, size: int) -> None:
    symbols = ("cuda_oxide_const_246e25db_PLAIN", "cuda_oxide_const_246e25db_m_L1C2_LONG_L3C4_NAME")
    head = "".join(f".visible .const .align 8 .{declared.format(symbol)}\n" for symbol in symbols)
    module = oxide_kernels.finish(ptx("sm_80", entry("k", ".u32"), head=head), SM80, {})
    found = [(each.name, each.rust_type, each.size, each.alignment) for each in module.constants]
    assert found == [("NAME", f"[u8; {size}]", size, 8), ("PLAIN", f"[u8; {size}]", size, 8)]
    for symbol, constant in zip(symbols, reversed(module.constants), strict=True):
        assert f" .{declared.format(constant.symbol)}\n" in module.text
        assert symbol not in module.text


def test_a_constant_of_an_unknown_type() -> None:
    symbol = "cuda_oxide_const_246e25db_X"
    text = ptx("sm_80", entry("k"), head=f".const .align 4 .texref {symbol};\n")
    with pytest.raises(FormatError, match="the constant 'X' of an unknown type") as caught:
        oxide_kernels.finish(text, SM80, {})
    assert caught.value.where == symbol


def test_text_that_is_no_ptx() -> None:
    with pytest.raises(FormatError, match="is not PTX"):
        oxide_kernels.finish("; ModuleID = 'x'\n", SM80, {})


class TestInstances:
    ONE, TWO = (f"{digit * 32}" for digit in "ab")

    def names(self, *kernels: str) -> tuple[list[str], tuple[str, ...]]:
        found = oxide_kernels.with_stable_names(ptx("sm_80", *map(entry, kernels)))
        module = oxide_kernels.finish(found.text, SM80, {})
        return [signature.name for signature in module.signatures], found.left_out

    def test_one_gets_the_name_of_its_kernel(self) -> None:
        assert self.names("plain", f"turn_TID_{self.ONE}") == (["plain", "turn"], ())

    def test_several_are_left_out(self) -> None:
        assert self.names(f"turn_TID_{self.ONE}", f"turn_TID_{self.TWO}", "plain") == (["plain"], ("turn",))

    def test_one_whose_name_is_taken_is_left_out(self) -> None:
        assert self.names("turn", f"turn_TID_{self.ONE}") == (["turn"], ("turn",))

    def test_names_that_only_look_alike(self) -> None:
        names = ["x_TID_12", f"y_TID_{'A' * 32}"]
        assert self.names(*names) == (names, ())

    def test_one_whose_name_a_function_has_is_left_out(self) -> None:
        functions = ".visible .func turn()\n{\n}\n.func  (.param .b32 retval0) shift()\n{\n}\n"
        names = [f"{name}_TID_{self.ONE}" for name in ("turn", "shift", "more")]
        found = oxide_kernels.with_stable_names(ptx("sm_80", *map(entry, names), head=functions))
        assert found.left_out == ("turn", "shift")

    @pytest.mark.parametrize("longer", ["upscale", "scale_up", "scale_TID_x", "up_TID_scale"])
    def test_names_that_hold_another_ones(self, longer: str) -> None:
        def text(*names: str) -> str:
            smem = (f".extern .shared .align 16 .b8 __dynamic_smem_{name}[];\n" for name in names)
            kernels = (entry(name, ".u32", body=f"\tld.param.b32 %r1, [{name}_param_0];\n") for name in names)
            return ptx("sm_80", *kernels, head="".join(smem))

        several = (f"{longer}_TID_{self.ONE}", f"{longer}_TID_{self.TWO}")
        found = oxide_kernels.with_stable_names(text(f"scale_TID_{self.ONE}", *several))
        assert found.left_out == (longer,)
        assert found.text == text("scale", *several)

    def test_all_that_is_named_after_an_instance_is_renamed(self) -> None:
        name = f"turn_TID_{self.ONE}"
        head = f".extern .shared .align 16 .b8 __dynamic_smem_{name}[];\n"
        text = oxide_kernels.with_stable_names(ptx("sm_80", entry(name, ".u32"), head=head)).text
        assert "turn_param_0" in text
        assert "__dynamic_smem_turn[]" in text
        assert "_TID_" not in text


# ---- A file that cuda-oxide has made ----


def test_ptx_that_cuda_oxide_has_made(ferrum: str) -> None:
    found = oxide_kernels.with_stable_names(ferrum)
    module = oxide_kernels.finish(found.text, SM80, {})
    assert (found.text, found.left_out) == (ferrum, ())
    assert module.version == "7.0"
    assert module.unlaunchable == ()
    names = {signature.name: signature for signature in module.signatures}
    assert len(names) == 15
    # interleave(&[f32], &[f32], DisjointSlice<…>)
    assert names["interleave"].abi_bytes == (8,) * 6
    assert kinds(names["interleave"])[:2] == [("arg0", "pointer", ""), ("arg1", "scalar", "u64")]
