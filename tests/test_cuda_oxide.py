"""Building with cuda-oxide: a recorder in place of cargo, and after it the real ptxas, packer and loader."""

from __future__ import annotations

import hashlib
import os
import re
import struct
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_driver import FakeDriver, FakeTensor, import_loader
from loaders import Loaded
from oxide_stand_ins import SLICE, StandIn, entry, llvm, make_stand_in, program, ptx
from projects import REPOSITORY

from rustcuda_backend import fatbin, oxide_environ, oxide_tools, pipeline
from rustcuda_backend.capability import parse_list
from rustcuda_backend.compilers import Pass, cargo_pass, cuda_oxide
from rustcuda_backend.cubin import Cubin
from rustcuda_backend.errors import (
    CapabilityError,
    CompileError,
    FormatError,
    RustcudaError,
    SettingsError,
    SignatureError,
    ToolError,
)
from rustcuda_backend.pipeline import Kernels
from rustcuda_backend.report import Report
from rustcuda_backend.rust import RustToolchain
from rustcuda_backend.settings import read_settings

MANIFEST = """\
[package]
name = "oxide-kernels"
version = "0.1.0"
edition = "2024"
[workspace]
[dependencies]
cuda-device = { path = "cuda-device" }
"""

# What cuda-device's macros leave of three kernels; only rustdoc reads it here.
SOURCE = """\
use cuda_device::{DisjointSlice, thread::Runtime2DIndex};
/// Adds.
#[unsafe(no_mangle)]
pub fn cuda_oxide_codegen_v1_cuda_oxide_kernel_246e25db_add(a: &[f32], n: usize, mut c: DisjointSlice<f32>) {}
#[unsafe(no_mangle)]
pub fn cuda_oxide_codegen_v1_cuda_oxide_kernel_246e25db_paired(pair: (f32, u32), x: *mut f32, nothing: ()) {}
#[cfg(cuda_arch = "90")]
#[unsafe(no_mangle)]
pub fn cuda_oxide_codegen_v1_cuda_oxide_kernel_246e25db_rows(mut y: DisjointSlice<f32, Runtime2DIndex>) {}
"""

DEVICE = """\
pub mod thread {
    pub enum Index1D {}
    pub enum Runtime2DIndex {}
}
pub mod disjoint {
    pub struct DisjointSlice<'a, T, I = crate::thread::Index1D>(core::marker::PhantomData<(&'a T, I)>);
}
pub use disjoint::DisjointSlice;
"""

ADD = entry(
    "add", *SLICE, ".u64", ".u64 .ptr .align 1", ".u64", directives=".maxntid 256, 1, 1;.minnctapersm 2"
)
PAIRED = entry("paired", ".align 4 .b8[8]", ".u64 .ptr .align 1")
ROWS = entry(
    "rows", ".u64 .ptr .align 1", ".u64", ".u32", directives=".explicitcluster;.reqnctapercluster 2, 1, 1"
)


# As cuda-oxide a105afd5 says it (crates/cuda-oxide-codegen/src/target.rs).
FLOOR_OF_FEATURE = (
    "error: [rustc_codegen_cuda] Device codegen failed: CUDA target sm_80 cannot lower detected feature "
    "WGMMA + cluster; cuda-oxide requires a target compatible with sm_90a for this module "
    "(target from CUDA_OXIDE_TARGET)"
)
FLOOR_OF_INTRINSIC = (
    "CUDA target sm_80 cannot lower generated intrinsic `cp.async.bulk` (`x`); requires sm_100f exactly"
)


@pytest.fixture
def stand_in(tmp_path: Path, toolchain: RustToolchain) -> StandIn:
    made = make_stand_in(tmp_path / "rust", toolchain)
    made.writes("sm_80", ptx("sm_80", ADD, PAIRED))
    made.writes("sm_90", ptx("sm_90", ADD, PAIRED, ROWS))
    return made


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return make_crate(tmp_path / "project" / "kernels")


def make_crate(directory: Path, source: str = SOURCE, manifest: str = MANIFEST) -> Path:
    device = manifest.replace("oxide-kernels", "cuda-device").partition("[workspace]")[0]
    files = {
        "Cargo.toml": manifest,
        "src/lib.rs": source,
        "cuda-device/Cargo.toml": device,
        "cuda-device/src/lib.rs": DEVICE,
    }
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")
    return directory


def build(
    directory: Path,
    stand_in: StandIn,
    capabilities: str = "8.0",
    more: dict[str, str] | None = None,
    **settings: Any,
) -> Kernels:
    table = {
        "crate": directory.name,
        "toolchain": str(stand_in.root),
        "capabilities": capabilities,
        "jobs": 1,
    }
    read = read_settings(
        {**table, **{key.replace("_", "-"): value for key, value in settings.items()}}, {}, {}
    )
    environ = stand_in.environ(**(more or {}))
    return pipeline.build(directory.parent, "pkg.kernels_cuda", read, Report(read.verbose), environ)


def failing(
    directory: Path, stand_in: StandIn, kind: type[RustcudaError] = CompileError, **build_: Any
) -> RustcudaError:
    with pytest.raises(kind) as caught:
        build(directory, stand_in, **build_)
    return caught.value


def images(kernels: Kernels) -> list[str]:
    return [f"{image.kind} {image.capability.name}" for image in fatbin.read(kernels.fatbin).images]


# ---- What cargo is called with ----


def test_each_pass_is_called_as_documented(
    directory: Path, stand_in: StandIn, tools: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    kernels = build(directory, stand_in, "8.0 9.0+PTX", more={"LD_LIBRARY_PATH": "/somewhere"})
    assert images(kernels) == ["sass 8.0", "sass 9.0", "ptx 9.0"]
    first, second = stand_in.calls
    target = directory / "target" / "rustcuda"
    assert [call.target for call in (first, second)] == ["sm_80", "sm_90"]
    for call, capability in ((first, "80"), (second, "90")):
        folder = target / f"sm_{capability}"
        assert call.directory == str(directory)
        assert call.arguments == [
            *("build", "--message-format=json", "--target-dir", str(folder), "--jobs=1"),
            *("--lib", "--profile=release", f"--target={stand_in.host}"),
        ]
        expected = {
            "RUSTC": str(stand_in.root / "bin" / "rustc"),
            "LD_LIBRARY_PATH": f"{stand_in.root / 'lib'}:/somewhere",
            "CARGO_INCREMENTAL": "0",
            "CARGO_BUILD_BUILD_DIR": str(folder),
            "CUDA_OXIDE_LLC": str(stand_in.llvm / "llc"),
            "CUDA_OXIDE_OPT": str(stand_in.llvm / "opt"),
            "CUDA_OXIDE_LLVM_LINK": str(stand_in.llvm / "llvm-link"),
            "CUDA_OXIDE_LIBDEVICE": str(tools.libdevice),
            "CUDA_OXIDE_DEBUG": "0",
        }
        assert {name: call.environ.get(name) for name in expected} == expected
        assert Path(call.environ["CUDA_OXIDE_PTX_DIR"]).is_relative_to(folder)
        library = hashlib.sha256(stand_in.backend.read_bytes()).hexdigest()
        assert call.flags[:5] == [
            f"-Zcodegen-backend={stand_in.backend}",
            *("-Copt-level=3", "-Cdebug-assertions=off"),
            *("-Zmir-enable-passes=-JumpThreading", "-Zalways-encode-mir"),
        ]
        assert "-Csymbol-mangling-version=v0" in call.flags
        assert f'--cfg=cuda_oxide_internal_backend_identity="{library}"' in call.flags
        lower = ["70", "72", "75", "80", "86", "87", "88", "89", "90"]
        lower = lower[: lower.index(capability) + 1]
        cfgs = [flag for flag in call.flags if flag.startswith("--cfg=cuda_arch=")]
        assert cfgs == [f'--cfg=cuda_arch="{value}"' for value in lower]
        (check,) = [flag for flag in call.flags if flag.startswith("--check-cfg")]
        assert '"100f"' in check
        # By presence alone they would change what is written.
        assert not {"CUDA_OXIDE_NO_FMA", "CUDA_OXIDE_NO_OPT", "CUDA_OXIDE_EMIT_NVVM_IR"} & set(call.environ)
        assert "RUSTC_BOOTSTRAP" not in call.environ, "this is a nightly compiler"
    said = capfd.readouterr().err
    assert "oxide-kernels is compiled by cuda-oxide: the crate depends on cuda-device" in said
    assert "compiler: cuda-oxide (the crate depends on cuda-device)" in said
    assert f"cuda-oxide {stand_in.backend} (environment variable CUDA_OXIDE_BACKEND)" in said
    assert "LLVM 22.1.2 (" in said


def test_settings_become_what_cuda_oxide_has_for_them(
    directory: Path, stand_in: StandIn, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[str, ...]] = []
    assembled = pipeline.assembled

    def recording(*of: Any) -> Cubin:
        given.append(of[2])
        return assembled(*of)

    monkeypatch.setattr(pipeline, "assembled", recording)
    (directory / "Cargo.toml").write_text(MANIFEST + "[features]\nfast = []\n", encoding="utf-8")
    build(
        directory, stand_in, fmad=False, lineinfo=True, prec_div=False, features=["fast"], verbose=2,
        cargo_args=["--config", "net.retry=1"],
    )  # fmt: skip
    (call,) = stand_in.calls
    assert call.environ["CUDA_OXIDE_NO_FMA"] == "1"
    assert call.environ["CUDA_OXIDE_DEBUG"] == "line"
    assert given == [("-lineinfo", "-fmad=false")]
    assert call.arguments[-4:] == ["--features", "fast", "--config", "net.retry=1"]
    said = capfd.readouterr().err
    assert "[tool.rustcuda] prec-div: cuda-oxide has no such choice" in said
    assert "running: " in said
    assert "warning: what cargo says" in said


def test_a_profile_for_debugging_keeps_its_own_flags(directory: Path, stand_in: StandIn) -> None:
    build(directory, stand_in, profile="dev")
    assert not [flag for flag in stand_in.calls[0].flags if flag.startswith("-Copt-level")]


def test_flags_and_variables_of_the_user(
    directory: Path, stand_in: StandIn, capfd: pytest.CaptureFixture[str]
) -> None:
    (directory / ".cargo").mkdir()
    (directory / ".cargo" / "config.toml").write_text(
        f'[target.{stand_in.host}]\nrustflags = ["--cfg", "mine"]\n', encoding="utf-8"
    )
    (directory / ".cargo" / "cuda-oxide.toml").write_text(
        'extra-rustflags = ["--cfg=theirs"]\n[env]\nCUDA_OXIDE_VERBOSE = "1"\n'
        'CUDA_OXIDE_UNCHECKED_INDEXING = "1"\nRUSTFLAGS = "--cfg=ignored"\n',
        encoding="utf-8",
    )
    build(directory, stand_in, more={"CUDA_OXIDE_EMIT_NVVM_IR": "0", "CUDA_OXIDE_UNCHECKED_INDEXING": "0"})
    (call,) = stand_in.calls
    assert call.flags[:3] == ["--cfg=theirs", "--cfg", "mine"]
    assert call.environ["CUDA_OXIDE_VERBOSE"] == "1"
    assert call.environ["CUDA_OXIDE_UNCHECKED_INDEXING"] == "0"
    assert not {"CUDA_OXIDE_EMIT_NVVM_IR", "RUSTFLAGS"} & set(call.environ)
    assert "the settings of [tool.rustcuda] decide: CUDA_OXIDE_EMIT_NVVM_IR\n" in capfd.readouterr().err


def test_variables_of_the_configuration_are_added_to(directory: Path, stand_in: StandIn) -> None:
    (directory / ".cargo").mkdir()
    (directory / ".cargo" / "cuda-oxide.toml").write_text(
        '[env]\nLD_LIBRARY_PATH = "/theirs"\nRUSTC_BOOTSTRAP = "theirs"\nCARGO_HTTP_TIMEOUT = "7"\n',
        encoding="utf-8",
    )
    build(directory, stand_in, more={"CARGO_HTTP_TIMEOUT": "8"})
    (call,) = stand_in.calls
    assert call.environ["LD_LIBRARY_PATH"] == f"{stand_in.root / 'lib'}:/theirs"
    assert call.environ["RUSTC_BOOTSTRAP"] == "theirs"
    assert call.environ["CARGO_HTTP_TIMEOUT"] == "8", "the environment wins"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", {"RUSTC_BOOTSTRAP": "___,kernels"}),
        ("1", {}),
        ("-1", {"RUSTC_BOOTSTRAP": "___,kernels"}),
        ("more,kernels", {"RUSTC_BOOTSTRAP": "___,kernels,more"}),
    ],
)
def test_crates_that_may_already_use_unstable_features(
    toolchain: RustToolchain, tmp_path: Path, given: str, expected: dict[str, str]
) -> None:
    (capability,) = parse_list("8.0")
    bootstrap = {"RUSTC_BOOTSTRAP": "___,kernels"}
    environ = {"RUSTC_BOOTSTRAP": given}
    found = cargo_pass.variables(toolchain, bootstrap, environ, (), Pass(capability, tmp_path))
    assert {name: value for name, value in found.items() if name == "RUSTC_BOOTSTRAP"} == expected


@pytest.mark.parametrize(
    ("file", "argument", "names"),
    [
        ('CUDA_OXIDE_EMIT_NVVM_IR = "0"', "", "CUDA_OXIDE_EMIT_NVVM_IR"),
        ('CUDA_OXIDE_TARGET = { value = "sm_70 # x", force = true }', "", "CUDA_OXIDE_TARGET"),
        ('CUDA_OXIDE_MIR_PASSES = "a"\nCUDA_OXIDE_LLC = { value = "llc", relative = true }', "",
         "CUDA_OXIDE_LLC, CUDA_OXIDE_MIR_PASSES"),
        ("", 'env.CUDA_OXIDE_NO_OPT="1"', "CUDA_OXIDE_NO_OPT"),
        ('CUDA_OXIDE_VERBOSE = "1"\nMINE = "CUDA_OXIDE_TARGET = 1 # x"', "", ""),
    ],
)  # fmt: skip
def test_what_cargo_would_set_behind_our_back(
    directory: Path, stand_in: StandIn, file: str, argument: str, names: str
) -> None:
    config = directory.parent / ".cargo" / "config.toml"
    config.parent.mkdir()
    config.write_text(f"[env]\n{file}\n", encoding="utf-8")
    settings = {"cargo_args": ["--config", argument]} if argument else {}
    if not names:
        build(directory, stand_in, **settings)
        return
    error = failing(directory, stand_in, ToolError, **settings)
    assert error.what == f"[env] of cargo's configuration sets what steers cuda-oxide: {names}"
    assert error.where == (str(config) if file else "--config cli option")
    assert not stand_in.calls


def test_tools_that_are_named_by_relative_paths(
    directory: Path, stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    llvm(here, "22.1.7")
    (tmp_path / "libdevice.bc").write_bytes(b"BC")
    monkeypatch.chdir(tmp_path)
    named = {
        "CUDA_OXIDE_LLC": "here/llc",
        "CUDA_OXIDE_OPT": "./here/opt",
        "CUDA_OXIDE_LLVM_LINK": "here/llvm-link",
        "CUDA_OXIDE_LIBDEVICE": "libdevice.bc",
    }
    build(directory, stand_in, more=named)
    # The same from a file: from the folder that has `.cargo`, wherever the build is started.
    monkeypatch.chdir(directory)
    config = tmp_path / oxide_tools.CONFIG
    config.parent.mkdir()
    lines = (f'{name} = "{path}"\n' for name, path in named.items())
    config.write_text("[env]\n" + "".join(lines), encoding="utf-8")
    build(directory, stand_in)
    for call in stand_in.calls:
        for name, path in named.items():
            assert Path(call.environ[name]).is_absolute()
            assert Path(call.environ[name]).samefile(tmp_path / path)


def test_a_program_that_holds_kernels(directory: Path, stand_in: StandIn) -> None:
    (directory / "src" / "lib.rs").rename(directory / "src" / "main.rs")
    with (directory / "src" / "main.rs").open("a", encoding="utf-8") as source:
        source.write("fn main() {}\n")
    (stand_in.root / "crate").write_text("oxide_kernels", encoding="utf-8")
    kernels = build(directory, stand_in)
    assert "--bin=oxide-kernels" in stand_in.calls[0].arguments
    assert "add[grid, block](" in kernels.loader.python


# ---- Signatures ----


def test_signatures_come_from_the_macros_functions(
    directory: Path, stand_in: StandIn, capfd: pytest.CaptureFixture[str]
) -> None:
    kernels = build(directory, stand_in, "8.0 9.0")
    python = kernels.loader.python
    assert "add[grid, block](a: &[f32], n: usize, c: DisjointSlice<f32>)" in python
    assert "rows[grid, block](y: DisjointSlice<f32, Runtime2DIndex>)" in python
    assert "Adds." in kernels.loader.stub
    said = capfd.readouterr().err
    # Its tuple is one array of bytes in the PTX; the parameter without a size is none.
    assert "kernels that Python cannot launch, for the types of their parameters: paired" in said
    assert "paired" not in python


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Loaded]:
    """Imports what a build has made, with a driver that records."""

    def load_(kernels: Kernels, sizes: dict[str, tuple[int, ...]]) -> Loaded:
        package = tmp_path / "pkg"
        package.mkdir()
        for name, data in kernels.files("kernels_cuda").items():
            (package / name).write_bytes(data)
        for name in ("pkg", "pkg.kernels_cuda"):
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        monkeypatch.delitem(sys.modules, "torch", raising=False)
        return Loaded(import_loader(package / "kernels_cuda.py"), FakeDriver(kernels=sizes))

    return load_


def test_a_slice_is_two_parameters_when_launched(
    directory: Path, stand_in: StandIn, load: Callable[..., Loaded]
) -> None:
    loaded = load(build(directory, stand_in, "9.0"), {"add": (8, 8, 8, 8, 8), "rows": (8, 8, 4)})
    module = loaded.module
    module.add[1, 256](FakeTensor(0x7000, count=6), 5, FakeTensor(0x8000, count=7))
    assert [struct.unpack("<Q", packed)[0] for packed in loaded.last.packed] == [0x7000, 6, 5, 0x8000, 7]
    # What the PTX says of launches.
    with pytest.raises(module.LaunchTooLarge, match="256"):
        module.add[1, 512](FakeTensor(0x7000), 5, FakeTensor(0x8000))


def test_without_rustdoc_the_ptx_tells(
    directory: Path, stand_in: StandIn, capfd: pytest.CaptureFixture[str]
) -> None:
    stand_in.without_rustdoc()
    python = build(directory, stand_in).loader.python
    assert "add[grid, block](arg0: *mut _, arg1: u64, arg2: u64, arg3: *mut _, arg4: u64)" in python
    assert "keep the names and types that their PTX tells" in capfd.readouterr().err


def test_a_kernel_that_the_ptx_lacks(directory: Path, stand_in: StandIn) -> None:
    stand_in.writes("sm_80", ptx("sm_80", ADD))
    error = failing(directory, stand_in)
    assert error.what == "the PTX of capability 8.0 lacks kernels that the crate has: paired"


def test_parameters_that_contradict_each_other(directory: Path, stand_in: StandIn) -> None:
    stand_in.writes("sm_80", ptx("sm_80", entry("add", ".u64", ".u32"), PAIRED))
    error = failing(directory, stand_in, SignatureError)
    assert "(8, 8, 8, 8, 8) bytes, but those in the PTX take (8, 4)" in error.what
    assert "same commit" in error.hint


def test_generic_kernels(directory: Path, stand_in: StandIn, capfd: pytest.CaptureFixture[str]) -> None:
    hashes = ["0123456789abcdef" * 2, "fedcba9876543210" * 2]
    only = entry(f"scale_TID_{hashes[0]}", *SLICE, ".f32")
    twice = [entry(f"turn_TID_{each}", *SLICE) for each in hashes]
    stand_in.writes("sm_80", ptx("sm_80", ADD, PAIRED, only, *twice))
    kernels = build(directory, stand_in, "8.0+PTX")
    said = capfd.readouterr().err
    assert "scale[grid, block](arg0: *mut _, arg1: u64, arg2: f32)" in kernels.loader.python
    assert "turn[grid" not in kernels.loader.python
    assert "have no stable names and are left out of the module: turn;" in said
    (_, text) = fatbin.read(kernels.fatbin).images
    assert b".entry scale(" in text.data
    assert b"scale_TID" not in text.data, "the hash is another one in each build"


@pytest.mark.parametrize("described", [True, False], ids=["rustdoc", "PTX"])
def test_nothing_but_kernels_that_python_cannot_launch(
    directory: Path, stand_in: StandIn, described: bool
) -> None:
    head, _, rest = SOURCE.partition("/// Adds.\n")
    paired = "\n".join(rest.splitlines()[2:4])
    make_crate(directory, head + paired if described else "pub fn nothing() {}\n")
    name = "paired" if described else "odd"
    stand_in.writes("sm_80", ptx("sm_80", entry(name, ".align 4 .b8[6]", ".u64 .ptr .align 1")))
    error = failing(directory, stand_in)
    assert "has no kernels that Python could launch" in error.what
    assert name in error.what


def test_nothing_but_generic_kernels(directory: Path, stand_in: StandIn) -> None:
    make_crate(directory, "pub fn nothing() {}\n")
    names = [f"turn_TID_{digit * 32}" for digit in "01"]
    stand_in.writes("sm_80", ptx("sm_80", *map(entry, names)))
    assert "has no kernels" in failing(directory, stand_in).what


def test_constant_memory_can_be_filled(directory: Path, stand_in: StandIn) -> None:
    symbols = ["cuda_oxide_const_246e25db_PLAIN", "cuda_oxide_const_246e25db_filters_L12C9_TABLE"]
    head = f".visible .const .align 4 .b8 {symbols[0]}[16];\n.visible .const .align 8 .b8 {symbols[1]}[64];\n"
    read = f"\t.reg .b32 %r;\n\tld.const.b32 %r, [{symbols[1]}+4];\n"
    stand_in.writes("sm_80", ptx("sm_80", ADD, PAIRED, entry("uses", body=read), head=head))
    kernels = build(directory, stand_in, "8.0+PTX")
    assert "PLAIN: [u8; 16]" in kernels.loader.stub
    assert "TABLE: [u8; 64]" in kernels.loader.stub
    (_, text) = fatbin.read(kernels.fatbin).images
    assert b".const .align 8 .b8 __constant_TABLE[64]" in text.data
    assert b"246e25db" not in text.data
    twice = head.replace("_PLAIN", "_other_L1C1_TABLE")
    stand_in.writes("sm_80", ptx("sm_80", ADD, PAIRED, head=twice))
    make_crate(directory, SOURCE + "// changed\n")
    assert "two constants are called 'TABLE'" in failing(directory, stand_in, SignatureError).what


# ---- After each pass ----


def test_ptx_is_kept_with_the_library_that_it_came_with(directory: Path, stand_in: StandIn) -> None:
    first = build(directory, stand_in)
    stand_in.writes("sm_80", "not asked for: cargo finds the crate fresh")
    assert build(directory, stand_in) == first
    assert len(stand_in.calls) == 2


@pytest.mark.parametrize("lost", ["oxide_kernels.oxide.ptx", "oxide_kernels.oxide.ptx-of", "library"])
def test_lost_or_strange_ptx_is_made_anew(directory: Path, stand_in: StandIn, lost: str) -> None:
    first = build(directory, stand_in)
    folder = directory / "target/rustcuda/sm_80"
    if lost == "library":
        # Another build in the same folder, of which nothing is known.
        file = folder / stand_in.host / "release" / "liboxide_kernels.rlib"
        text = file.read_text(encoding="utf-8")
        file.unlink()
        file.write_text(text, encoding="utf-8")
    else:
        (folder / lost).unlink()
    assert build(directory, stand_in) == first
    assert len(stand_in.calls) == 3, "once to see that it is fresh, once to compile"


@pytest.mark.parametrize("target", ["sm_", "compute_80"])
def test_ptx_for_no_gpu_is_an_error(directory: Path, stand_in: StandIn, target: str) -> None:
    stand_in.writes("sm_80", ptx("sm_80", ADD).replace(".target sm_80", f".target {target}"))
    assert failing(directory, stand_in, FormatError).what == (
        f"the PTX is for no GPU: its .target is '{target}'"
    )


def test_stale_ptx_is_never_taken(directory: Path, stand_in: StandIn) -> None:
    build(directory, stand_in)
    make_crate(directory, SOURCE + "// changed\n")
    stand_in.plays("writes nothing")
    error = failing(directory, stand_in)
    assert "cuda-oxide has found no kernels in the crate 'oxide-kernels' (capability 8.0)" in error.what


def test_a_changed_backend_library_compiles_anew(directory: Path, stand_in: StandIn) -> None:
    build(directory, stand_in)
    stand_in.writes("sm_80", ptx("sm_80", ADD, PAIRED, entry("more")))
    stand_in.backend.write_bytes(stand_in.backend.read_bytes() + b"changed")
    assert "more[grid, block](" in build(directory, stand_in).loader.python
    first, second = ({flag for flag in call.flags if "backend_identity" in flag} for call in stand_in.calls)
    assert first != second


@pytest.mark.parametrize(
    "change",
    [
        {"fmad": False},
        {"lineinfo": True},
        {"more": {"CUDA_OXIDE_MIR_PASSES": "none"}},
        *[{"llvm": name} for name in ("llc", "opt", "llvm-link")],
    ],
    ids=str,
)
def test_what_decides_the_code_compiles_anew(
    directory: Path, stand_in: StandIn, change: dict[str, Any]
) -> None:
    build(directory, stand_in)
    if name := change.pop("llvm", ""):
        # Of another patch version.
        program(stand_in.llvm / name, "#!/bin/sh\necho LLVM version 22.1.3\n")
    stand_in.writes("sm_80", ptx("sm_80", ADD, PAIRED, entry("more")))
    assert "more[grid, block](" in build(directory, stand_in, **change).loader.python


def test_nvvm_ir_in_place_of_ptx_names_what_is_missing(
    directory: Path, stand_in: StandIn, tmp_path: Path
) -> None:
    libdevice = tmp_path / "libdevice.10.bc"
    libdevice.write_bytes(b"BC")
    stand_in.plays("loses libdevice")
    error = failing(directory, stand_in, more={"CUDA_OXIDE_LIBDEVICE": str(libdevice)})
    assert error.what == (
        "cuda-oxide has written NVVM IR in place of PTX for capability 8.0, "
        f"since the kernels call __nv_sinf: CUDA_OXIDE_LIBDEVICE={libdevice} is missing"
    )


def test_nvvm_ir_though_all_tools_are_there(directory: Path, stand_in: StandIn) -> None:
    stand_in.plays("NVVM IR")
    error = failing(directory, stand_in)
    assert "it could not use libdevice and llvm-link" in error.what
    assert "no build script sets CUDA_OXIDE_EMIT_NVVM_IR" in error.hint
    assert str(stand_in.llvm / "llvm-link") in error.where


@pytest.mark.parametrize(
    ("said", "needed", "what"),
    [
        (
            FLOOR_OF_FEATURE,
            'cfg(cuda_arch = "90a")',
            "the code needs capability 9.0a (WGMMA + cluster), but the pass is for 8.0",
        ),
        (
            FLOOR_OF_INTRINSIC,
            'cfg(cuda_arch = "100f")',
            "the code needs capability 10.0f (cp.async.bulk), but the pass is for 8.0",
        ),
    ],
)
def test_code_that_needs_another_gpu(
    directory: Path, stand_in: StandIn, said: str, needed: str, what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    stand_in.plays(f"fails: {said}")
    error = failing(directory, stand_in)
    assert error.what == what
    assert needed in error.hint
    assert said in capfd.readouterr().err, "cuda-oxide's own words, whole"


def test_ptx_for_another_gpu(directory: Path, stand_in: StandIn) -> None:
    stand_in.writes("sm_80", ptx("sm_90a", ADD, PAIRED))
    error = failing(directory, stand_in)
    assert error.what == "the code needs capability 9.0a, but the pass is for 8.0"
    assert '#[cfg(cuda_arch = "90a")]' in error.hint


@pytest.mark.parametrize(
    ("written", "capability", "needed"),
    [
        ("sm_90", "8.0", "9.0"),
        ("sm_80a", "8.0", "8.0a"),
        ("sm_120f", "9.0a", "12.0f"),
        ("sm_75", "8.0", ""),
        ("sm_90", "9.0a", ""),
        ("sm_100f", "10.0a", ""),
    ],
)
def test_ptx_for_another_gpu_is_a_floor_only_where_that_has_more(
    directory: Path, stand_in: StandIn, written: str, capability: str, needed: str
) -> None:
    (parsed,) = parse_list(capability)
    stand_in.writes(parsed.sm, ptx(written, ADD, PAIRED, version="8.0"))
    error = failing(directory, stand_in, capabilities=capability)
    if needed:
        assert error.what == f"the code needs capability {needed}, but the pass is for {capability}"
    else:
        assert error.what == f"cuda-oxide has written PTX for {written}, but was asked for {parsed.sm}"


@pytest.mark.parametrize(
    ("said", "kind", "what"),
    [
        (
            "error: couldn't load codegen backend /x.so: undefined symbol",
            ToolError,
            "does not go with this rustc",
        ),
        ("librustc_driver-1.so: cannot open shared object file", ToolError, "does not go with this rustc"),
        (
            "Device-code root `k` was emitted by a version that predates the scoped Cargo cache protocol",
            ToolError,
            "crate's cuda-device",
        ),
        (
            "CUDA target sm_88 requires LLVM 22 or newer; LLVM 21 does not",
            ToolError,
            "needs llc of LLVM 22 or later",
        ),
        ("error[E0425]: cannot find value `x`", CompileError, "does not compile for capability 8.0"),
        ("error: profile `odd` is not defined", SettingsError, "cargo has no profile 'odd' for kernels"),
    ],
)
def test_other_failures(
    directory: Path, stand_in: StandIn, said: str, kind: type[RustcudaError], what: str
) -> None:
    stand_in.plays(f"fails: {said}")
    profile = {"profile": "odd"} if "profile" in said else {}
    assert what in failing(directory, stand_in, kind, **profile).what


def test_ptx_that_is_cut_off(directory: Path, stand_in: StandIn) -> None:
    whole = ptx("sm_80", ADD, PAIRED)
    stand_in.writes("sm_80", whole[:-40])
    assert "is cut off after" in failing(directory, stand_in).what
    stand_in.writes("sm_80", whole)
    build(directory, stand_in)


def test_output_that_is_no_ptx_says_which_file(directory: Path, stand_in: StandIn) -> None:
    stand_in.writes("sm_80", ptx("sm_80", ADD, PAIRED).replace(".target sm_80", ""))
    error = failing(directory, stand_in, FormatError)
    assert error.what == "the compiler's output is not PTX: it has no .version and .target"
    assert Path(error.where) == directory / "target" / "rustcuda" / "sm_80" / "oxide_kernels.oxide.ptx"


def test_arguments_that_keep_cargo_from_building(
    directory: Path, stand_in: StandIn, capfd: pytest.CaptureFixture[str]
) -> None:
    (stand_in.root / "crate").write_text("another", encoding="utf-8")
    assert "cargo has not compiled the kernel crate" in failing(directory, stand_in).what
    assert "this is no message of cargo's" in capfd.readouterr().err


def test_kernels_of_a_dependency(
    directory: Path, stand_in: StandIn, capfd: pytest.CaptureFixture[str]
) -> None:
    stand_in.writes("sm_80", ptx("sm_80", entry("far"), entry("away", ".texref")), crate="more_kernels")
    stand_in.writes("sm_80", ptx("sm_80"), crate="none")
    stand_in.writes("sm_80", "no PTX", crate="odd")
    build(directory, stand_in)
    said = capfd.readouterr().err
    assert "the dependency 'more_kernels' has kernels that are not in the wheel: far, away" in said
    assert "'none'" not in said
    assert "'odd'" not in said


def test_what_a_pass_made_for_the_host_is_shared(directory: Path, stand_in: StandIn) -> None:
    (directory / "build.rs").write_text("fn main() {}\n", encoding="utf-8")
    made = directory / "target/rustcuda/sm_80/release/build/made"
    compile_ = cuda_oxide.CudaOxideCompiler.compile

    def compiles(self: Any, build_pass: Any) -> Any:
        module = compile_(self, build_pass)
        if build_pass.directory.name == "sm_80":
            made.parent.mkdir(parents=True, exist_ok=True)
            made.write_text("", encoding="utf-8")
        return module

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda_oxide.CudaOxideCompiler, "compile", compiles)
        build(directory, stand_in, "8.0 9.0")
    shared = directory / "target/rustcuda/sm_90"
    assert (shared / "release/build/made").is_file()
    assert [call.target for call in stand_in.calls] == ["sm_80", "sm_90"]
    # Nothing of the other pass's own: neither its PTX nor its library.
    assert "sm_90" in (shared / "oxide_kernels.oxide.ptx").read_text(encoding="utf-8")


def test_capabilities_that_llvm_does_not_know(directory: Path, stand_in: StandIn) -> None:
    llvm(stand_in.llvm, "21.1.8")
    error = failing(directory, stand_in, CapabilityError, capabilities="8.0 8.8", cuda_version="13.0")
    assert error.what == "LLVM 21.1.8 writes no PTX for capability 8.8"
    assert not stand_in.calls


def test_ptx_that_cuda_oxide_has_made(directory: Path, stand_in: StandIn, ferrum: str) -> None:
    make_crate(directory, "pub fn nothing() {}\n")
    stand_in.writes("sm_80", ferrum)
    kernels = build(directory, stand_in, "8.0+PTX")
    assert images(kernels) == ["sass 8.0", "ptx 8.0"]
    launches = re.findall(r"^    (\w+)\[grid, block\]\(", kernels.loader.python, re.MULTILINE)
    assert len(set(launches)) == 15
    assert "fft_c2c_1024" in launches


# ---- Which compiler ----


def test_stock_rustc_is_named_with_the_reason(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    settings = read_settings({"crate": "kernels", "capabilities": "8.0"}, {}, {})
    kernel = "use cuda_device::*;\n#[kernel]\npub fn add(mut c: DisjointSlice<f32>) {}\n"
    (directory / "src" / "lib.rs").write_text(kernel, encoding="utf-8")
    environ = {**os.environ, "CARGO_HOME": str(directory.parent / "none")}
    pipeline.build(directory.parent, "pkg.kernels_cuda", settings, Report(), environ)
    said = capfd.readouterr().err
    reason = "the crate depends on cuda-device, but cuda-oxide's backend library is not here"
    assert f"compiler: stock rustc ({reason})" in said


def test_cuda_oxide_that_is_asked_for_and_not_there(directory: Path, stand_in: StandIn) -> None:
    more = {"CUDA_OXIDE_BACKEND": "", "CARGO_HOME": "/nowhere"}
    error = failing(directory, stand_in, ToolError, more=more, compiler="cuda-oxide")
    assert error.what == "cuda-oxide's backend library librustc_codegen_cuda.so was not found"
    assert "[tool.rustcuda] compiler" in error.where
    assert "/nowhere/cuda-oxide/librustc_codegen_cuda.so" in error.where
    assert "cargo oxide setup" in error.hint


@pytest.mark.parametrize("name", ["cuda-oxide", "nvptx"])
def test_a_compiler_that_is_asked_for_is_used(directory: Path, stand_in: StandIn, name: str) -> None:
    make_crate(directory, "pub fn nothing() {}\n", MANIFEST.partition("[dependencies]")[0])
    if name == "cuda-oxide":
        stand_in.writes("sm_80", ptx("sm_80", ADD))
        build(directory, stand_in, compiler=name)
        assert stand_in.calls
    else:
        failing(directory, stand_in, RustcudaError, compiler=name)
        assert not stand_in.calls


# ---- Documentation ----

PAGE = (REPOSITORY / "docs" / "cuda-oxide.md").read_text(encoding="utf-8")


def test_the_crate_on_the_page_is_built_by_stock_rustc_at_least(directory: Path) -> None:
    files = re.findall(r"^`kernels/([\w./]+)`\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert [name for name, _ in files] == ["Cargo.toml", "src/lib.rs"]
    for name, text in files:
        (directory / name).write_text(text, encoding="utf-8")
    settings = read_settings({"crate": "kernels", "capabilities": "8.0", "compiler": "nvptx"}, {}, {})
    kernels = pipeline.build(directory.parent, "pkg.kernels_cuda", settings, Report(), os.environ)
    launch = "vecadd[grid, block](a: &[f32], b: &[f32], c: DisjointSlice<f32>)"
    assert launch in kernels.loader.python
    assert "kernels_cuda.vecadd[grid, 256](a, b, c)" in PAGE


def test_the_page_names_what_decides() -> None:
    named = set(re.findall(r"CUDA_OXIDE_\w+", PAGE))
    driver = {*oxide_environ.DECIDING, *oxide_environ.FINDING, "CUDA_OXIDE_TARGET", "CUDA_OXIDE_PTX_DIR"}
    assert driver <= named
    assert oxide_tools.INSTALL_HINT.splitlines()[:2] == [
        line.strip() for line in PAGE.splitlines() if line.startswith(("  cargo +nightly", "  cargo oxide"))
    ]
