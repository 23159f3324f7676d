"""Signatures of plain kernels, with the real rustdoc."""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from projects import MANIFEST, PLAIN_HEAD, PLAIN_KERNEL, MakeProject

from rustcuda_backend import pipeline, process, rustdoc, rustdoc_types
from rustcuda_backend.errors import FormatError, SignatureError
from rustcuda_backend.ptx import PtxModule
from rustcuda_backend.pyproject import read_table
from rustcuda_backend.report import Report
from rustcuda_backend.rust import TARGET, RustToolchain
from rustcuda_backend.rustdoc import RustdocCall
from rustcuda_backend.settings import read_settings
from rustcuda_backend.signature import KernelSignature, Parameter

KERNELS = """\
type Private = f32; // rustdoc itself puts f32 for it
pub type Real = Private;
pub type Rows<T = Real> = *const Plain<T>;
pub type Plain<T> = T;
pub type Defaulted<'a, const N: usize, T = Real> = &'a [T; N];
pub type Second<T, U = *const T> = (T, U);
pub type Many<T> = *const [T];
pub struct Pair { a: u32, b: f32 }
/// Kept.
#[repr(C)]
pub struct Outer<> {
    /// Also kept.
    pub scale: Real, r#type: [u8; 1 + 2], inner: inner::Inner, half: f16, c: core::ffi::c_int, flag: bool,
}
mod inner { #[repr(C)] pub struct Inner { a: u8, pub b: f64 } }
pub type Alias = inner::Inner;
#[repr(C, packed)] pub struct Packed { a: u32 }
#[repr(C)] #[repr(align(8))] pub struct Aligned { a: u32 }
#[repr(transparent)] pub struct Transparent { a: u32 }
#[repr(C)] pub struct Generic<T> { a: T }
#[repr(C)] pub struct Life<'a> { a: u32, b: core::marker::PhantomData<&'a u8> }
#[repr(C)] pub struct Tuple(u32);
#[repr(C)] pub struct Empty {}
#[repr(C)] pub struct Pointer { a: u32, b: *mut f32 }
#[repr(C)] pub struct Holder { a: u32, b: Pair }
#[repr(C)] pub struct Letters { a: [char; 2] }
#[repr(C)] pub struct Nothing { a: [u8; 0] }
#[repr(C)] pub struct Chosen { a: Either }
pub union Either { a: u32, b: f32 }

/// Does all.
///
///     indented
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn scalars(
    a: bool, b: i8, c: u8, d: i16, e: u16, f: i32, g: u32, h: i64, i: u64,
    j: isize, k: usize, l: f16, m: f32, n: f64,
) {}

mod private {
    use super::*;
    #[unsafe(export_name = "exported")]
    unsafe extern "ptx-kernel" fn pointers(
        mut a: *mut f32, b: *const f16, c: &f64, d: &mut i8, e: *const core::ffi::c_void, f: *mut Pair,
        g: *mut *mut u8, h: *const [f32; 4], i: &'static core::sync::atomic::AtomicU32, j: *const char,
    ) {}
}

#[doc(hidden)]
#[unsafe(no_mangle)]
pub extern "ptx-kernel" fn aliases(
    a: Real, b: Rows<u16>, c: Rows<core::ffi::c_int>, d: core::ffi::c_char, e: *mut core::ffi::c_ulong,
    f: Defaulted<4>, g: Many<Real>, h: Rows, i: Private, j: *const Rows<&'static mut [Real]>,
    k: *mut Second<u8>,
) {}

#[unsafe(no_mangle)]
pub extern "ptx-kernel" fn values(
    a: &[Real], b: &mut [u8], c: Pair, d: (u32, f32), e: [u32; 4], f: char, g: u128, h: Option<&f32>, i: &str,
    j: &dyn Sync, k: fn(), l: core::num::NonZeroU32,
) {}

#[unsafe(no_mangle)]
pub extern "ptx-kernel" fn structs(a: Outer, b: Alias, c: *const Outer, d: [Alias; 2]) {}

#[unsafe(no_mangle)]
pub extern "ptx-kernel" fn refused(
    a: Pair, b: Packed, c: Aligned, d: Transparent, e: Generic<u32>, f: Life, g: Tuple, h: Empty, i: Pointer,
    j: Holder, k: Letters, l: Nothing, m: Chosen, n: core::time::Duration, o: Either,
) {}

#[unsafe(no_mangle)]
pub extern "ptx-kernel" fn r#loop(_: u32, (a, b): (u32, u32), r#type: f32, é: u8, _kept: u8) {}

macro_rules! kernel { ($name:ident, $t:ty) => {
    #[unsafe(no_mangle)] pub extern "ptx-kernel" fn $name(x: $t) {}
} }
kernel!(from_macro, i64);

impl Pair {
    #[unsafe(no_mangle)]
    pub extern "ptx-kernel" fn method(&self, other: *const Self) {}
}

#[unsafe(no_mangle)]
pub extern "C" fn no_kernel(a: u32) {}
pub extern "ptx-kernel" fn no_name(a: u32) {}
"""


@pytest.fixture(scope="module")
def document(
    toolchain: RustToolchain, gpu_sysroot: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What rustdoc writes about KERNELS."""
    folder = tmp_path_factory.mktemp("rustdoc")
    source = folder / "kernels.rs"
    source.write_text("#![feature(f16)]\n" + PLAIN_HEAD + KERNELS, encoding="utf-8")
    command = (
        *(toolchain.rustc.with_name("rustdoc"), source, "--edition=2024", f"--sysroot={gpu_sysroot}"),
        *(f"--target={TARGET}", "-o", folder, *rustdoc.FLAGS),
    )
    finished = process.run(command, env={**os.environ, "RUSTC_BOOTSTRAP": "1"})
    assert finished.ok, finished.stderr
    content: dict[str, Any] = json.loads((folder / "kernels.json").read_bytes())
    return content


@pytest.fixture(scope="module")
def found(document: dict[str, Any]) -> dict[str, KernelSignature]:
    return rustdoc.signatures(document)


def shown(signature: KernelSignature) -> list[str]:
    return [
        f"{p.name}: {p.rust_type} = {p.kind} {'mut ' * p.mutable}{p.dtype}".rstrip()
        for p in signature.parameters
    ]


def test_kernels_go_by_their_exported_names(found: dict[str, KernelSignature]) -> None:
    names = {"scalars", "exported", "aliases", "values", "structs", "refused", "loop", "from_macro", "method"}
    assert set(found) == names
    assert all(signature.source == "rustdoc" for signature in found.values())
    assert all(found[name].name == name for name in names)


def test_scalars_and_doc(found: dict[str, KernelSignature]) -> None:
    integers = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "isize", "usize"]
    types = ["bool", *integers, "f16", "f32", "f64"]
    assert found["scalars"].parameters == tuple(
        Parameter(name, "scalar", scalar, rust_type=scalar)
        for name, scalar in zip("abcdefghijklmn", types, strict=True)
    )
    assert found["scalars"].doc == "Does all.\n\n    indented"
    assert found["values"].doc == ""
    assert found["scalars"].abi_bytes == (1, 1, 1, 2, 2, 4, 4, 8, 8, 8, 8, 2, 4, 8)


def test_pointers_and_references(found: dict[str, KernelSignature]) -> None:
    assert shown(found["exported"]) == [
        "a: *mut f32 = pointer mut f32",
        "b: *const f16 = pointer f16",
        "c: &f64 = pointer f64",
        "d: &mut i8 = pointer mut i8",
        "e: *const core::ffi::c_void = pointer",
        "f: *mut Pair = pointer mut",
        "g: *mut *mut u8 = pointer mut",
        "h: *const [f32; 4] = pointer",
        "i: &core::sync::atomic::AtomicU32 = pointer",
        "j: *const char = pointer",
    ]
    assert set(found["exported"].abi_bytes) == {8}


def test_aliases_are_followed(found: dict[str, KernelSignature]) -> None:
    assert shown(found["aliases"]) == [
        "a: f32 = scalar f32",
        "b: *const u16 = pointer u16",
        "c: *const i32 = pointer i32",
        "d: i8 = scalar i8",
        "e: *mut u64 = pointer mut u64",
        "f: &[f32; N] = pointer",
        "g: *const [f32] = value",
        "h: *const f32 = pointer f32",
        "i: f32 = scalar f32",
        "j: *const *const &mut [f32] = pointer",
        "k: *mut (u8, *const u8) = pointer mut",
    ]


def test_what_only_the_ptx_knows_the_size_of(found: dict[str, KernelSignature]) -> None:
    assert shown(found["values"]) == [
        "a: &[f32] = whole_slice f32",
        "b: &mut [u8] = whole_slice mut u8",
        "c: Pair = value",
        "d: (u32, f32) = value",
        "e: [u32; 4] = array u32",
        "f: char = value",
        "g: u128 = value",
        "h: Option<&f32> = value",
        "i: &str = value",
        "j: &_ = value",
        "k: _ = value",
        "l: core::num::NonZeroU32 = value",
    ]
    assert found["values"].abi_bytes == (16, 16, 0, 0, 16, *(0,) * 7)
    assert shown(found["method"]) == ["self: &Self = pointer", "other: *const Self = pointer"]


def test_structs_by_value(found: dict[str, KernelSignature]) -> None:
    first, second, pointer, array = found["structs"].parameters
    assert shown(found["structs"]) == [
        "a: Outer = struct f3B1xB7xde2xi?7x",
        "b: Inner = struct B7xd",
        "c: *const Outer = pointer",
        "d: [inner::Inner; 2] = value",
    ]
    assert first.struct is not None
    assert (first.struct.name, first.struct.doc) == ("Outer", "Kept.")
    assert [(field.name, field.rust_type, field.doc) for field in first.struct.fields] == [
        ("scale", "f32", "Also kept."),
        ("type", "[u8; 3]", ""),
        ("inner", "Inner", ""),
        ("half", "f16", ""),
        ("c", "i32", ""),
        ("flag", "bool", ""),
    ]
    assert second.struct == first.struct.fields[2].struct
    assert (pointer.struct, array.struct) == (None, None)
    assert found["structs"].abi_bytes == (40, 16, 8, 0)


def test_structs_that_python_cannot_make_are_refused_by_name(found: dict[str, KernelSignature]) -> None:
    layout = "is not #[repr(C)], or has another layout besides"
    assert {parameter.kind for parameter in found["refused"].parameters} == {"value"}
    assert [parameter.refused for parameter in found["refused"].parameters] == [
        f"struct 'Pair' {layout}",
        f"struct 'Packed' {layout}",
        f"struct 'Aligned' {layout}",
        f"struct 'Transparent' {layout}",
        "struct 'Generic' is generic",
        "struct 'Life' is generic",
        "struct 'Tuple' has no named fields",
        "struct 'Empty' has no named fields",
        "struct 'Pointer' holds 'b: *mut f32'",
        f"struct 'Pair' {layout}",
        "struct 'Letters' holds 'a: [char; 2]'",
        "struct 'Nothing' holds 'a: [u8; 0]'",
        "struct 'Chosen' holds 'a: Either'",
        "struct 'Duration' is in the crate 'core', whose fields rustdoc does not show",
        "",
    ]


def test_names_that_are_none(found: dict[str, KernelSignature]) -> None:
    names = [parameter.name for parameter in found["loop"].parameters]
    assert names == ["arg0", "arg1", "type", "é", "_kept"]


def test_the_c_types_are_those_of_the_target(
    toolchain: RustToolchain, gpu_sysroot: Path, tmp_path: Path
) -> None:
    checks = "".join(
        f"const _: fn(core::ffi::{alias}) -> {scalar} = |x| x;\n"
        for alias, scalar in rustdoc_types._C_TYPES.items()
    )
    (tmp_path / "c.rs").write_text(PLAIN_HEAD.replace("abi_ptx", "c_size_t") + checks, encoding="utf-8")
    argv = (toolchain.rustc, "--crate-type=lib", "--emit=metadata", f"--target={TARGET}", "c.rs")
    finished = process.run(
        (*argv, f"--sysroot={gpu_sysroot}"), cwd=tmp_path, env={**os.environ, "RUSTC_BOOTSTRAP": "1"}
    )
    assert finished.ok, finished.stderr


def test_only_known_formats_are_read(document: dict[str, Any]) -> None:
    assert document["format_version"] in rustdoc.FORMAT_VERSIONS
    for version in rustdoc.FORMAT_VERSIONS:
        assert rustdoc.signatures({**document, "format_version": version})
    for version in (56, 9999, None):
        with pytest.raises(FormatError, match=f"writes JSON of format {version}; known are 57 to 61"):
            rustdoc.signatures({**document, "format_version": version})


def test_fields_of_later_formats_do_no_harm(
    document: dict[str, Any], found: dict[str, KernelSignature]
) -> None:
    later = copy.deepcopy(document)
    later["format_version"] = 61
    for item in later["index"].values():
        item["stability"] = item["const_stability"] = None
        for kind in ("function", "assoc_const", "assoc_type"):
            item["inner"].get(kind, {})["default_unstable"] = None
    assert rustdoc.signatures(later) == found


def test_cfg_flags() -> None:
    flags = ("-g", "--cfg", "a", "--cfg=b", "-O", "--check-cfg", 'cfg(c, values("d e"))', "--emit=obj", "-Cx")
    assert rustdoc.cfg_flags(flags) == ("--cfg=a", "--cfg=b", '--check-cfg=cfg(c, values("d e"))')
    assert rustdoc.cfg_flags(()) == ()


# --- in a build ------------------------------------------------------------------------------------------


class Builds:
    """Builds projects, and keeps what went on in the last build."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commands: list[list[str]] = []
        self.modules: Sequence[PtxModule] = ()
        run, merge = process.run, pipeline.merge_signatures

        def recording(argv, **options):  # type: ignore[no-untyped-def]
            self.commands.append([str(argument) for argument in argv])
            return run(argv, **options)

        def merging(modules: Sequence[PtxModule]) -> tuple[KernelSignature, ...]:
            self.modules = modules
            return merge(modules)

        monkeypatch.setattr(process, "run", recording)
        monkeypatch.setattr(pipeline, "merge_signatures", merging)

    def __call__(
        self, project: Path, capabilities: str = "8.0", **environ: str
    ) -> dict[str, KernelSignature]:
        self.commands.clear()
        settings = read_settings(read_table(project) or {}, {"capabilities": capabilities}, {})
        pipeline.build(
            project,
            "some_package.kernels_cuda",
            settings,
            Report(settings.verbose),
            {**os.environ, **environ},
        )
        return {signature.name: signature for signature in self.modules[0].signatures}

    @property
    def rustdoc_ran(self) -> int:
        return sum("rustdoc" in command for command in self.commands)


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> Builds:
    return Builds(monkeypatch)


def touch(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    # cargo compares times of the file system's resolution
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 2_000_000_000))


STORE = (
    Parameter("out", "pointer", "u32", mutable=True, rust_type="*mut u32"),
    Parameter("value", "scalar", "u32", rust_type="u32"),
)


def test_a_plain_crate_that_declares_no_feature(builds: Builds, make_project: MakeProject) -> None:
    source = """\
#![deny(warnings)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! { loop {} }
/// Signed, and half.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn odd(
    out: *mut f16, value: i32, half: f16, flag: bool, small: i8, letter: core::num::NonZeroU32
) {
    if flag { unsafe { *out = half + value as f16 + small as f16 + letter.get() as f16 } }
}
"""
    odd = builds(make_project(source), "8.0 9.0")["odd"]
    assert shown(odd) == [
        "out: *mut f16 = pointer mut f16",
        "value: i32 = scalar i32",
        "half: f16 = scalar f16",
        "flag: bool = scalar bool",
        "small: i8 = scalar i8",
        "letter: core::num::NonZeroU32 = scalar u32",
    ]
    assert (odd.doc, odd.source) == ("Signed, and half.", "rustdoc")
    assert builds.rustdoc_ran == 2, "once a pass"


def test_rustdoc_runs_again_only_for_another_crate(builds: Builds, make_project: MakeProject) -> None:
    project = make_project()
    source = project / "kernels/src/lib.rs"
    assert builds(project)["store"].parameters == STORE
    assert builds.rustdoc_ran == 1
    assert builds(project)["store"].parameters == STORE
    assert builds.rustdoc_ran == 0
    touch(source, "//! New comment.\n" + source.read_text(encoding="utf-8").replace("value", "number"))
    assert builds(project)["store"].parameters[1].name == "number"
    assert builds.rustdoc_ran == 1
    kept = project / f"kernels/target/rustcuda/sm_80/{TARGET}/doc/some_kernels.rustdoc.json"
    kept.unlink()
    assert builds(project)["store"].parameters[1].name == "number"
    assert builds.rustdoc_ran == 1


def test_rustdoc_does_not_run_for_recorded_kernels(builds: Builds, sample: Path) -> None:
    found = builds(sample)
    assert {signature.source for signature in found.values()} == {"record"}
    assert builds.rustdoc_ran == 0


def test_cfgs_features_and_own_flags_hold_in_rustdoc_too(builds: Builds, make_project: MakeProject) -> None:
    conditions = ('cfg(cuda_arch = "80")', 'cfg(not(cuda_arch = "90"))', 'cfg(feature = "more")', "cfg(mine)")
    source = PLAIN_HEAD + "".join(
        f"#[{condition}]\n" + PLAIN_KERNEL.replace("store", f"k{index}")
        for index, condition in enumerate(conditions)
    )
    project = make_project(
        source + PLAIN_KERNEL,
        manifest=MANIFEST + "[features]\nmore = []\n",
        settings="features = ['more']",
    )
    found = builds(project, "8.0 9.0", RUSTFLAGS="--cfg mine --check-cfg=cfg(mine)")
    assert {name: signature.parameters for name, signature in found.items()} == dict.fromkeys(
        ("store", "k0", "k1", "k2", "k3"), STORE
    )
    hopper = {signature.name: signature.source for signature in builds.modules[1].signatures}
    assert hopper == dict.fromkeys(("store", "k0", "k2", "k3"), "rustdoc")


def test_kernels_that_rustdoc_does_not_show_keep_what_ptx_tells(
    builds: Builds, make_project: MakeProject, capfd: pytest.CaptureFixture[str]
) -> None:
    inner = "pub fn outer() {\n" + PLAIN_KERNEL.replace("store", "nested") + "}\n"
    found = builds(
        make_project(
            PLAIN_HEAD + "use dependency as _;\n" + PLAIN_KERNEL + inner,
            manifest=MANIFEST + '[dependencies]\ndependency = { path = "dependency" }\n',
            files={
                "kernels/dependency/Cargo.toml": '[package]\nname = "dependency"\nedition = "2024"\n',
                "kernels/dependency/src/lib.rs": "#![no_std]\n#![feature(abi_ptx)]\n"
                + PLAIN_KERNEL.replace("store", "foreign"),
            },
        )
    )
    assert found["store"].parameters == STORE
    for name in ("foreign", "nested"):
        assert shown(found[name]) == ["arg0: *mut _ = pointer mut", "arg1: u32 = scalar u32"]
        assert found[name].source == "ptx"
    assert "warning" not in capfd.readouterr().err


def test_a_parameter_without_a_size(builds: Builds, make_project: MakeProject) -> None:
    head = "#![allow(improper_ctypes_definitions)]\n" + PLAIN_HEAD
    kernel = "/// Kept.\n" + PLAIN_KERNEL.replace("value: u32", "nothing: (), value: u32")
    store = builds(make_project(head + kernel))["store"]
    assert shown(store) == ["arg0: *mut _ = pointer mut", "arg1: u32 = scalar u32"]
    assert (store.doc, store.source) == ("Kept.", "ptx")


def test_arrays_and_slices_are_passed_as_rustc_passes_them(builds: Builds, make_project: MakeProject) -> None:
    head = "#![allow(improper_ctypes_definitions)]\n" + PLAIN_HEAD
    kernel = PLAIN_KERNEL.replace("value: u32", "array: [u16; 3], slice: &[f32], value: u32")
    store = builds(make_project(head + kernel))["store"]
    assert shown(store)[1:] == [
        "array: [u16; 3] = array u16",
        "slice: &[f32] = whole_slice f32",
        "value: u32 = scalar u32",
    ]
    assert store.abi_bytes == (8, 6, 16, 4)
    assert store.source == "rustdoc"


@pytest.mark.parametrize("parameter", ["pair: (u32, f32)", "big: u128"])
def test_what_cannot_be_passed_is_named_as_in_rust(
    builds: Builds, make_project: MakeProject, parameter: str
) -> None:
    kernel = f'#[unsafe(no_mangle)] pub extern "ptx-kernel" fn odd(a: u8, {parameter}) {{ }}\n'
    project = make_project("#![allow(warnings)]\n" + PLAIN_HEAD + kernel)
    with pytest.raises(SignatureError) as raised:
        builds(project)
    size = 8 if parameter.startswith("pair") else 16
    assert raised.value.what == (
        f"parameter '{parameter}', a value of {size} bytes, cannot be passed from Python"
    )
    assert raised.value.where == "kernel 'odd'"
    assert "#[kernel]" in raised.value.hint


@pytest.mark.parametrize(
    ("documented", "text", "sizes"),
    [
        ("value: u64", "value: u64", "(8, 8)"),
        ("value: u32, more: u8", "value: u32, more: u8", "(8, 4, 1)"),
    ],
)
def test_rustdoc_and_ptx_contradicting_each_other(
    builds: Builds, make_project: MakeProject, documented: str, text: str, sizes: str
) -> None:
    other = PLAIN_KERNEL.replace("value: u32", documented).replace("= value", "= 0")
    project = make_project(f"{PLAIN_HEAD}#[cfg(not(doc))]\n{PLAIN_KERNEL}#[cfg(doc)]\n{other}")
    with pytest.raises(SignatureError) as raised:
        builds(project)
    assert raised.value.what == (
        f"rustdoc shows the parameters (out: *mut u32, {text}) of {sizes} bytes, "
        "but those in the PTX take (8, 4)"
    )
    assert raised.value.where == "kernel 'store'"
    assert "cfg(doc)" in raised.value.hint


def test_rustdoc_failing_breaks_nothing(
    builds: Builds, make_project: MakeProject, capfd: pytest.CaptureFixture[str]
) -> None:
    project = make_project(PLAIN_HEAD + PLAIN_KERNEL + '#[cfg(doc)]\ncompile_error!("no documents here");\n')
    store = builds(project, "8.0 9.0")["store"]
    assert store.source == "ptx"
    said = capfd.readouterr().err
    warning = "rustcuda: warning: kernels without #[kernel] keep the names and types that their PTX tells"
    assert said.count(warning) == 1
    assert "(arg0, no element types): rustdoc failed: error: no documents here\n" in said


def test_two_names_for_one_parameter(builds: Builds, make_project: MakeProject) -> None:
    other = PLAIN_KERNEL.replace("value", "number")
    source = f'{PLAIN_HEAD}#[cfg(cuda_arch = "90")]\n{PLAIN_KERNEL}#[cfg(not(cuda_arch = "90"))]\n{other}'
    with pytest.raises(SignatureError, match="has other parameters for"):
        builds(make_project(source), "8.0 9.0")


# --- one call --------------------------------------------------------------------------------------------


@pytest.fixture
def call(tmp_path: Path, document: dict[str, Any]) -> RustdocCall:
    """A call whose program copies a document to where cargo would write it."""
    (tmp_path / "k.ptx").touch()
    (tmp_path / "document.json").write_text(json.dumps(document), encoding="utf-8")
    output = tmp_path / "doc.json"
    return RustdocCall(
        rustdoc=Path(shutil.which("cp") or ""),
        argv=("cp", tmp_path / "document.json", output),
        directory=tmp_path,
        environ=os.environ,
        variables={},
        output=output,
        compiled=tmp_path / "k.ptx",
    )


def test_the_ptxs_time_decides(call: RustdocCall, document: dict[str, Any]) -> None:
    report = Report(0, colour=False)
    expected = rustdoc.signatures(document)
    assert rustdoc.describe(call, report) == expected
    assert not call.output.exists()
    unused = replace(call, argv=("false",))
    assert rustdoc.describe(unused, report) == expected
    time = call.compiled.stat().st_mtime_ns
    for other in (time + 1_000_000_000, time - 1_000_000_000):
        os.utime(call.compiled, ns=(other, other))
        assert rustdoc.describe(unused, report) == {}
    assert rustdoc.describe(call, report) == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rustdoc": Path("/nowhere/rustdoc")}, "there is no rustdoc beside rustc (/nowhere/rustdoc)"),
        ({"argv": ("false",)}, "rustdoc failed: status 1"),
        ({"argv": ("true",)}, "rustdoc failed: status 0"),
        ({"argv": ("cp", "k.ptx", "doc.json")}, "doc.rustdoc.json is not JSON: "),
        (
            {"argv": ("cp", "old.json", "doc.json")},
            "this rustdoc writes JSON of format 56; known are 57 to 61",
        ),
    ],
)
def test_warnings(
    call: RustdocCall, changes: dict[str, Any], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (call.directory / "old.json").write_text('{"format_version": 56}', encoding="utf-8")
    report = Report(0, colour=False)
    assert rustdoc.describe(replace(call, **changes), report) == {}
    assert rustdoc.describe(replace(call, **changes), report) == {}
    said = capfd.readouterr().err
    assert message in said
    assert said.count("warning:") == 1


def test_a_broken_document_is_asked_for_again(call: RustdocCall, document: dict[str, Any]) -> None:
    report = Report(0, colour=False)
    assert rustdoc.describe(replace(call, argv=("cp", "k.ptx", "doc.json")), report) == {}
    assert rustdoc.describe(call, report) == rustdoc.signatures(document)


def test_commands_are_shown_when_verbose(call: RustdocCall, capfd: pytest.CaptureFixture[str]) -> None:
    rustdoc.describe(replace(call, variables={"RUSTDOC": "x"}), Report(1, colour=False))
    assert "running: RUSTDOC='x' cp " in capfd.readouterr().err


def test_what_is_beside_rustc_is_a_rustdoc(toolchain: RustToolchain) -> None:
    program = toolchain.rustc.with_name("rustdoc")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert toolchain.version in said


STRUCTS = """\
/// Documented.
#[repr(C)]
pub struct Params { pub scale: f32, pub inner: Inner, pub one: [u8; 3] }
#[repr(C)]
pub struct Inner { pub a: u8, pub b: f64 }
#[repr(C)]
pub struct One { pub a: u8 }
pub struct Rust { pub a: u8, pub b: f64 }
"""


def test_structs_are_passed_as_rustc_passes_them(builds: Builds, make_project: MakeProject) -> None:
    kernel = PLAIN_KERNEL.replace("value: u32", "params: Params, one: One, value: u32").replace(
        "= value", "= value + params.inner.b as u32 + one.a as u32"
    )
    store = builds(make_project(PLAIN_HEAD + STRUCTS + kernel), "8.0 9.0")["store"]
    assert shown(store)[1:] == [
        "params: Params = struct f4xB7xd3B5x",
        "one: One = struct B",
        "value: u32 = scalar u32",
    ]
    assert store.abi_bytes == (8, 32, 1, 4), "as the PTX has them, which is compared"


def test_a_struct_that_is_not_as_in_c_is_no_parameter(builds: Builds, make_project: MakeProject) -> None:
    head = "#![allow(improper_ctypes_definitions)]\n" + PLAIN_HEAD + STRUCTS
    kernel = PLAIN_KERNEL.replace("value: u32", "params: Rust, value: u32")
    with pytest.raises(
        SignatureError,
        match=r"parameter 'params: Rust', a value of 16 bytes, .* "
        r"from Python: struct 'Rust' is not #\[repr\(C\)\]",
    ) as caught:
        builds(make_project(head + kernel))
    assert caught.value.where == "kernel 'store'"
    assert caught.value.hint.startswith(
        "take a #[repr(C)] struct of this crate whose named fields are numbers"
    )


def test_pairs_of_aliases_for_pairs_of_aliases() -> None:
    def named(number: int) -> dict[str, Any]:
        return {"resolved_path": {"id": number, "path": f"A{number}", "args": None}}

    def alias(meant: dict[str, Any]) -> dict[str, Any]:
        return {"inner": {"type_alias": {"type": meant, "generics": {"params": []}}}}

    aliases = {str(number): alias({"tuple": [named(number - 1)] * 2}) for number in range(1, 200)}
    document = {"index": {"0": alias({"primitive": "f32"}), **aliases}, "paths": {}}
    found = rustdoc_types.resolved(named(199), document, {})
    assert rustdoc_types.spelled(found) == "(A198, A198)"
