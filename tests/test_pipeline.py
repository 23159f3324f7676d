"""The whole way from a crate to the module's files, with the real compiler, ptxas and packer."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import os
import re
import shlex
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from projects import MANIFEST, PLAIN_HEAD, PLAIN_KERNEL, MakeProject

from rustcuda_backend import fatbin, pipeline, process
from rustcuda_backend.capability import all_cfg_values, parse_list
from rustcuda_backend.compilers import nvptx
from rustcuda_backend.compilers.nvptx import NvptxCompiler
from rustcuda_backend.crate import Crate
from rustcuda_backend.errors import AssembleError, CompileError, RustcudaError, SettingsError, SignatureError
from rustcuda_backend.pipeline import Kernels
from rustcuda_backend.pyproject import read_table
from rustcuda_backend.report import Report
from rustcuda_backend.rust import TARGET, RustToolchain
from rustcuda_backend.settings import read_settings


def build(project: Path, capabilities: str = "8.0", environ: dict[str, str] | None = None) -> Kernels:
    config = {"capabilities": capabilities}
    settings = read_settings(read_table(project) or {}, config, {})
    environ = {**os.environ, **(environ or {})}
    return pipeline.build(project, "some_package.kernels_cuda", settings, Report(settings.verbose), environ)


def images(kernels: Kernels) -> list[str]:
    return [f"{image.kind} {image.capability.name}" for image in fatbin.read(kernels.fatbin).images]


def compiled_ptx(project: Path, sm: str = "sm_80") -> str:
    return (project / f"kernels/target/rustcuda/{sm}/{sm}.ptx").read_text(encoding="utf-8")


def constants(ptx: str) -> list[int]:
    """The numbers that kernels store, in order of the text."""
    return [int(number) for number in re.findall(r"st\.(?:global\.)?b32\s+\[%rd\d+(?:\+\d+)?\], (\d+);", ptx)]


def test_a_cubin_for_each_capability_and_ptx_only_where_asked(make_project: MakeProject) -> None:
    kernels = build(make_project(), "7.5 9.0a 10.0f+PTX 9.0+PTX")
    assert images(kernels) == [
        "sass 7.5",
        "sass 9.0",
        "sass 9.0a",
        "sass 10.0f",
        "ptx 9.0",
        "ptx 10.0f",
    ]
    assert not any(image.compressed for image in fatbin.read(kernels.fatbin).images)
    digest = hashlib.sha256(kernels.fatbin).hexdigest()
    assert digest in kernels.loader.python
    ast.parse(kernels.loader.python, feature_version=(3, 10))
    ast.parse(kernels.loader.stub, feature_version=(3, 10))
    assert set(kernels.files("x")) == {"x.py", "x.pyi", "x.fatbin"}


ARCHS = ("70", "75", "80", "86", "90", "90a", "100", "100a", "100f", "103", "103f", "120")
SUM = "\n".join(f'    if cfg!(cuda_arch = "{arch}") {{ sum += {2**bit} }}' for bit, arch in enumerate(ARCHS))


def test_cfgs_are_cumulative_in_the_crate_and_in_its_dependencies(make_project: MakeProject) -> None:
    function = "pub fn sum() -> u32 {\n    let mut sum = 0;\n" + SUM + "\n    sum\n}\n"
    kernel = """\
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn sums(out: *mut u32) {
    unsafe { *out = sum(); *out.add(1) = 4096 + dependency::sum() }
}
"""
    project = make_project(
        PLAIN_HEAD + function + kernel,
        manifest=MANIFEST + '[dependencies]\ndependency = { path = "dependency" }\n',
        files={
            "kernels/dependency/Cargo.toml": '[package]\nname = "dependency"\nedition = "2021"\n',
            "kernels/dependency/src/lib.rs": "#![no_std]\n" + function,
        },
    )
    build(project, "7.0 7.5 8.9 9.0 9.0a 10.0 10.0a 10.3f 12.0")
    seen = set()
    for capability in parse_list("7.0 7.5 8.9 9.0 9.0a 10.0 10.0a 10.3f 12.0"):
        expected = sum(2 ** ARCHS.index(value) for value in capability.cfg_values() if value in ARCHS)
        assert constants(compiled_ptx(project, capability.sm)) == [expected, 4096 + expected]
        seen.add(expected)
    assert len(seen) == 9, "a constant of its own for every capability"


def test_a_typo_in_a_cuda_arch_gets_rustcs_warning(
    make_project: MakeProject, capfd: pytest.CaptureFixture[str]
) -> None:
    source = PLAIN_HEAD + PLAIN_KERNEL.replace("*out = value", 'if cfg!(cuda_arch = "95") { *out = value }')
    build(make_project(source), "8.0 9.0")
    said = capfd.readouterr().err
    assert said.count("unexpected `cfg` condition value: `95`") == 1, "each warning once, not once a pass"
    assert "`120f`" in said or '"120f"' in said or "and 2" in said
    assert "crate attribute" not in said
    assert "ptx80" not in said


def test_progress_and_the_closing_table(make_project: MakeProject, capfd: pytest.CaptureFixture[str]) -> None:
    build(make_project(), "8.0 12.0+PTX", {"MAX_JOBS": "1"})
    lines = capfd.readouterr().err.splitlines()
    assert all(line.startswith("rustcuda: ") for line in lines)
    text = "\n".join(lines)
    assert "some-kernels: 2 capabilities from config setting -C capabilities, 1 at a time" in text
    for step in (r"[1/5] sm_80 compiled in", r"[4/5] sm_120 assembled in", "[5/5] packed"):
        assert step in text
    rows = [line.split()[1:] for line in lines if " SASS " in line or " PTX " in line]
    assert [row[:3] for row in rows] == [["8.0", "SASS", "1"], ["12.0", "SASS", "1"], ["12.0", "PTX", "1"]]
    assert [row[-1] for row in rows] == ["525", "570", "570"]
    assert int(rows[0][3]) >= 4, "registers"
    assert re.search(r"rustc 1\.\d+\.\d+", text)
    assert re.search(r"ptxas 12\.9\.\d+ \(.*; .*\)", text)


def test_cuda_13(make_project: MakeProject, capfd: pytest.CaptureFixture[str]) -> None:
    kernels = build(make_project(settings='cuda-version = "13.0"'), "7.5 11.0f 12.1+PTX")
    assert images(kernels) == ["sass 7.5", "sass 11.0f", "sass 12.1", "ptx 12.1"]
    assert "ptxas 13.0" in capfd.readouterr().err


def test_nothing_is_done_twice_and_a_lost_file_is_made_again(
    make_project: MakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project()
    first = build(project)
    commands = []
    run = process.run

    def recording(argv, **options):  # type: ignore[no-untyped-def]
        commands.append([str(argument) for argument in argv])
        return run(argv, **options)

    monkeypatch.setattr(process, "run", recording)
    (ptx,) = (project / "kernels/target/rustcuda/sm_80").rglob("*.s")
    written = ptx.stat().st_mtime_ns
    assert build(project) == first
    assert not any("-arch=sm_80" in command for command in commands), "ptxas ran again"
    assert ptx.stat().st_mtime_ns == written, "rustc ran again"
    ptx.unlink()
    assert build(project) == first


@pytest.mark.parametrize("left", ["", ".version 7.8\n.target sm_80\n", "half", "all but the end", "\udcff"])
def test_a_file_that_was_cut_short_is_made_again(make_project: MakeProject, left: str) -> None:
    project = make_project()
    first = build(project)
    (ptx,) = (project / "kernels/target/rustcuda/sm_80").rglob("*.s")
    text = ptx.read_text(encoding="utf-8")
    cut = {"half": text[: len(text) // 2], "all but the end": text.rstrip()[:-1]}.get(left, left)
    # cargo takes a file with this time for the one that it had made.
    times = ptx.stat().st_atime_ns, ptx.stat().st_mtime_ns
    ptx.write_bytes(cut.encode("utf-8", "surrogateescape"))
    os.utime(ptx, ns=times)
    assert build(project) == first
    assert ptx.read_text(encoding="utf-8") == text


def test_a_rustc_that_cannot_write_all_of_it(
    make_project: MakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project()
    run = process.run

    def cutting(argv, **options):  # type: ignore[no-untyped-def]
        finished = run(argv, **options)
        for ptx in (project / "kernels/target/rustcuda/sm_80").rglob("*.s"):
            ptx.write_text(ptx.read_text(encoding="utf-8")[:100], encoding="utf-8")
        return finished

    monkeypatch.setattr(process, "run", cutting)
    error = failing(project, CompileError)
    assert error.what == "the PTX that rustc has written is cut off after 100 bytes"
    assert error.where.endswith(".s")
    assert "make room on this disk" in error.hint


def test_a_brace_that_is_missing_in_asm_is_not_taken_for_a_cut(make_project: MakeProject) -> None:
    source = PLAIN_HEAD.replace("stdarch_nvptx", "stdarch_nvptx, asm_experimental_arch")
    source += PLAIN_KERNEL.replace("*out = value", '*out = value; core::arch::asm!("{{ // /* }}")')
    assert "ptxas" in failing(make_project(source), AssembleError).what


def test_a_cargo_that_leaves_no_ptx_is_no_traceback(
    make_project: MakeProject, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # As if it put what it compiles into folders that we do not know of.
    monkeypatch.setattr(nvptx, "_emitted", lambda *_arguments: tmp_path / "nowhere.s")
    error = failing(make_project(), CompileError)
    assert "no PTX" in error.what
    assert error.where == str(tmp_path / "nowhere.s")


def test_going_back_to_earlier_flags_gives_the_earlier_code(make_project: MakeProject) -> None:
    source = PLAIN_HEAD + PLAIN_KERNEL.replace("= value", '= if cfg!(feature = "more") { 77 } else { 5 }')
    manifest = MANIFEST + "[features]\nmore = []\n"
    project = make_project(source, manifest=manifest)
    table = (project / "pyproject.toml").read_text(encoding="utf-8")
    seen = []
    # cargo keeps both compilations and finds each of them fresh
    for features in ("", "features = ['more']", "", "features = ['more']"):
        (project / "pyproject.toml").write_text(table + features, encoding="utf-8")
        build(project)
        seen += constants(compiled_ptx(project))
    assert seen == [5, 77, 5, 77]


def test_another_source_makes_another_wheel(make_project: MakeProject) -> None:
    project = make_project()
    first = build(project)
    source = project / "kernels/src/lib.rs"
    source.write_text(source.read_text(encoding="utf-8").replace("= value", "= value + 1"), encoding="utf-8")
    # cargo compares times of the file system's resolution
    os.utime(source, ns=(source.stat().st_atime_ns, source.stat().st_mtime_ns + 2_000_000_000))
    assert build(project).fatbin != first.fatbin


def test_builds_of_one_crate_at_once_each_get_their_own_code(make_project: MakeProject) -> None:
    source = PLAIN_HEAD + PLAIN_KERNEL.replace("= value", '= if cfg!(feature = "more") { 77 } else { 5 }')
    project = make_project(source, manifest=MANIFEST + "[features]\nmore = []\n")
    table = read_table(project)
    assert table

    def fatbin_with(features: list[str]) -> bytes:
        settings = read_settings({**table, "features": features, "capabilities": "8.0+PTX"}, {}, {})
        return pipeline.build(project, "some_package.kernels_cuda", settings, Report()).fatbin

    expected = [fatbin_with([]), fatbin_with(["more"])]
    assert expected[0] != expected[1]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(fatbin_with, [[], ["more"]] * 6))
    assert found == expected * 6


def test_what_ptxas_reads_is_not_what_another_build_may_replace(
    make_project: MakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project()
    run = process.run

    def replacing(argv, **options):  # type: ignore[no-untyped-def]
        for kept in project.rglob("sm_80.ptx"):
            if any("-arch=" in str(argument) for argument in argv):
                kept.write_text("another build's", encoding="utf-8")
        return run(argv, **options)

    monkeypatch.setattr(process, "run", replacing)
    monkeypatch.setattr(pipeline.cache, "file", lambda _kind, _key, make: make())
    assert images(build(project)) == ["sass 8.0"]


def test_a_build_directory_of_the_users_does_not_matter(make_project: MakeProject, tmp_path: Path) -> None:
    config = {"kernels/.cargo/config.toml": f"[build]\nbuild-dir = '{tmp_path}/in the file'\n"}
    project = make_project(files=config)
    environ = {"CARGO_BUILD_BUILD_DIR": str(tmp_path / "in the environment")}
    assert images(build(project, "8.0 9.0", environ)) == ["sass 8.0", "sass 9.0"]
    assert images(build(make_project(files=config, folder="other"))) == ["sass 8.0"]


@pytest.mark.parametrize("deny", ["#![deny(warnings)]", "#![deny(unused_attributes)]"])
def test_what_we_add_to_a_crate_breaks_none_of_its_lints(
    make_project: MakeProject, capfd: pytest.CaptureFixture[str], deny: str
) -> None:
    project = make_project(PLAIN_HEAD.replace("#![no_std]\n", f"#![no_std]\n{deny}\n") + PLAIN_KERNEL)
    build(project)
    assert "warning" not in capfd.readouterr().err


def test_the_same_kernels_in_another_place_give_the_same_files(make_project: MakeProject) -> None:
    helper = """\
#[inline(never)]
fn helper(out: *mut u32, value: u32) { if value > 9 { panic!("too large: {value}") } unsafe { *out = value } }
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn checked(out: *mut u32, value: u32) {
    helper(out, value);
    helper(out, value + 1)
}
"""
    first = build(make_project(PLAIN_HEAD + helper, folder="a b/ü", settings="lineinfo = true"))
    second = build(make_project(PLAIN_HEAD + helper, folder="other", settings="lineinfo = true"))
    assert first == second
    assert b"lib.rs" in first.fatbin, "line information"
    for private in (b"/tmp", b"a b", str(Path.home()).encode(), b"other"):
        assert private not in first.fatbin


def test_lineinfo_is_not_there_unasked(make_project: MakeProject) -> None:
    manifest = MANIFEST + "[profile.release]\ndebug = true\n"
    assert b"lib.rs" not in build(make_project(manifest=manifest)).fatbin


MATH = """\
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn math(x: *mut f32, a: f32, b: f32) {
    unsafe { *x = *x * a + b; *x.add(1) = a / *x; *x.add(2) = core::intrinsics::sqrtf32(b) }
}
"""


@pytest.mark.parametrize(
    ("settings", "present", "absent"),
    [
        ("", ["fma.rn.f32", "div.rn.f32", "sqrt.rn.f32"], []),
        ("fmad = false", ["mul.rn.f32", "add.rn.f32"], ["fma.rn"]),
        ("prec-div = false", ["div.full.f32"], ["div.rn"]),
        ("prec-sqrt = false", ["sqrt.approx.f32"], ["sqrt.rn"]),
    ],
)
def test_nvccs_switches_for_arithmetic(
    make_project: MakeProject, settings: str, present: list[str], absent: list[str]
) -> None:
    source = PLAIN_HEAD.replace("stdarch_nvptx", "stdarch_nvptx, core_intrinsics") + MATH
    project = make_project("#![allow(internal_features)]\n" + source, settings=settings)
    build(project)
    text = compiled_ptx(project)
    assert [word for word in present if word in text] == present
    assert [word for word in absent if word in text] == []


def test_features_profiles_and_cargos_arguments_reach_cargo(make_project: MakeProject) -> None:
    source = PLAIN_HEAD + PLAIN_KERNEL + '#[cfg(feature = "more")]\n' + PLAIN_KERNEL.replace("store", "more")
    source += "#[cfg(debug_assertions)]\n" + PLAIN_KERNEL.replace("store", "debug")
    manifest = MANIFEST + '[features]\nmore = []\n[profile.gpu]\ninherits = "release"\n'
    project = make_project(
        source,
        manifest=manifest,
        settings="features = ['more']\nprofile = 'gpu'\n"
        "cargo-args = ['--config', 'profile.gpu.debug-assertions=true']",
    )
    build(project)
    assert set(re.findall(r"\.entry (\w+)", compiled_ptx(project))) == {"store", "more", "debug"}


@pytest.mark.parametrize("profile", ["zz", "Release", "debug", "doc", "build"])
def test_a_profile_that_cargo_does_not_have(
    make_project: MakeProject, capfd: pytest.CaptureFixture[str], profile: str
) -> None:
    manifest = MANIFEST + '[profile.gpu]\ninherits = "release"\n[profile.test]\nopt-level = 2\n'
    project = make_project(settings=f"profile = '{profile}'", manifest=manifest)
    error = failing(project, SettingsError)
    assert error.what == f"cargo has no profile '{profile}' for kernels"
    assert error.where == "[tool.rustcuda] profile"
    assert error.hint.startswith("name one of release, dev, gpu,\n")
    assert "error: " not in capfd.readouterr().err, "what cargo says of our own --config only confuses"


def test_a_profile_of_the_users_that_cargo_refuses(
    make_project: MakeProject, capfd: pytest.CaptureFixture[str]
) -> None:
    project = make_project(settings="profile = 'gpu'", manifest=MANIFEST + "[profile.gpu]\nlto = true\n")
    failing(project, CompileError)
    assert "`gpu` is missing an `inherits` directive" in capfd.readouterr().err


@pytest.mark.parametrize("profile", ["gpu", "dev"])
def test_a_profile_of_cargos_configuration(make_project: MakeProject, profile: str) -> None:
    config = {"kernels/.cargo/config.toml": "[profile.gpu]\ninherits = 'release'\n"}
    build(make_project(settings=f"profile = '{profile}'", files=config))


def test_ptxas_arguments_reach_ptxas(make_project: MakeProject) -> None:
    first = build(make_project(folder="a"))
    second = build(make_project(folder="b", settings="ptxas-args = ['-O0']"))
    assert first.fatbin != second.fatbin


def test_the_users_own_rustflags_hold_in_every_pass(make_project: MakeProject) -> None:
    source = PLAIN_HEAD + PLAIN_KERNEL.replace("= value", "= if cfg!(mine) { 77 } else { 5 }")
    config = {"kernels/.cargo/config.toml": "[build]\nrustflags = ['--cfg=mine', '--check-cfg=cfg(mine)']\n"}
    project = make_project(source, files=config)
    build(project)
    assert constants(compiled_ptx(project)) == [77]
    build(project, environ={"RUSTFLAGS": ""})
    assert constants(compiled_ptx(project)) == [5], "as in cargo, an empty RUSTFLAGS hides the file's"


def test_rustflags_among_cargos_arguments(make_project: MakeProject) -> None:
    source = PLAIN_HEAD + PLAIN_KERNEL.replace("= value", "= if cfg!(mine) { 77 } else { 5 }")
    arguments = '--config \'build.rustflags=["--cfg=mine", "--check-cfg=cfg(mine)"]\''
    project = make_project(source, settings=f"cargo-args = {shlex.split(arguments)}")
    build(project)
    assert constants(compiled_ptx(project)) == [77]


def test_a_build_target_or_target_folder_of_the_users_does_not_matter(
    make_project: MakeProject, tmp_path: Path
) -> None:
    environ = {"CARGO_BUILD_TARGET": "x86_64-unknown-linux-gnu", "CARGO_TARGET_DIR": str(tmp_path / "t")}
    project = make_project()
    assert images(build(project, environ=environ)) == ["sass 8.0"]
    assert (tmp_path / "t/rustcuda/sm_80/sm_80.ptx").is_file()
    assert not (project / "kernels/target").exists()


def test_workspace_build_script_proc_macro_statics_and_wide_integers(make_project: MakeProject) -> None:
    source = (
        PLAIN_HEAD
        + """\
static TABLE: [u32; 4] = [1, 2, 3, 4];
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn wide(out: *mut u64, a: u64, i: usize) {
    let product = u128::from(a) * u128::from(a) / 7;
    unsafe { *out = (product >> 64) as u64 + u64::from(TABLE[i & 3]) + made::seven!() }
    if cfg!(from_build_script) { unsafe { *out.add(1) = 12345 } }
}
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn compare(out: *mut bool, a: *const u8, n: usize) {
    unsafe { *out = core::slice::from_raw_parts(a, n) == b"some bytes to compare" }
}
"""
    )
    member = MANIFEST.replace("[workspace]\n", '[dependencies]\nmade = { path = "../../made" }\n')
    project = make_project(
        source,
        files={
            "Cargo.toml": '[workspace]\nmembers = ["crates/*", "made"]\nresolver = "3"\n',
            "crates/k/Cargo.toml": member,
            "crates/k/src/lib.rs": source,
            "crates/k/build.rs": 'fn main() { println!("cargo::rustc-check-cfg=cfg(from_build_script)");'
            'println!("cargo::rustc-cfg=from_build_script"); '
            'assert_ne!(std::env::var("RUSTC_BOOTSTRAP").as_deref(), Ok("1")); }',
            "made/Cargo.toml": '[package]\nname = "made"\nedition = "2024"\n[lib]\nproc-macro = true\n',
            "made/src/lib.rs": "use proc_macro::TokenStream;\n"
            '#[proc_macro] pub fn seven(_: TokenStream) -> TokenStream { "7".parse().unwrap() }',
        },
    )
    table = (project / "pyproject.toml").read_text(encoding="utf-8")
    table = table.replace('crate = "kernels"', 'crate = "crates/k"')
    (project / "pyproject.toml").write_text(table, encoding="utf-8")
    build(project)
    text = (project / "target/rustcuda/sm_80/sm_80.ptx").read_text(encoding="utf-8")
    assert set(re.findall(r"\.entry (\w+)", text)) == {"wide", "compare"}
    assert "12345" in text
    assert "call" not in text, "memcmp is inlined"


# --- bad input -------------------------------------------------------------------------------------------


def failing(project: Path, kind: type[RustcudaError], capabilities: str = "8.0") -> RustcudaError:
    with pytest.raises(kind) as raised:
        build(project, capabilities)
    return raised.value


def test_a_crate_that_does_not_compile(make_project: MakeProject, capfd: pytest.CaptureFixture[str]) -> None:
    project = make_project(PLAIN_HEAD + PLAIN_KERNEL.replace("= value", "= valu"))
    error = failing(project, CompileError, "8.0 9.0 10.0")
    assert re.fullmatch(r"the kernel crate does not compile for capability (8|9|10)\.0", error.what)
    assert error.where == str(project / "kernels/Cargo.toml")
    said = capfd.readouterr().err
    assert said.count("cannot find value `valu` in this scope") == 1
    assert "src/lib.rs:6" in said
    assert "could not compile `some-kernels`" in said
    assert not list(project.rglob("*.fatbin"))


def test_rustcs_colours_are_kept_for_a_terminal(
    make_project: MakeProject, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(PLAIN_HEAD + "fn broken(")
    failing(project, CompileError)
    assert "\x1b[" not in capfd.readouterr().err
    monkeypatch.setenv("FORCE_COLOR", "1")
    failing(project, CompileError)
    assert "\x1b[" in capfd.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["--nonsense"], ["--help"], ["--config"], ["--manifest-path", "x"], ["--message-format=short"]],
)
def test_arguments_that_cargo_does_not_take(make_project: MakeProject, arguments: list[str]) -> None:
    error = failing(make_project(settings=f"cargo-args = {arguments}"), CompileError)
    assert error.what == "cargo has not compiled the kernel crate for capability 8.0"
    assert error.hint == f"cargo also gets cargo-args, from [tool.rustcuda] cargo-args: {' '.join(arguments)}"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--help"], "Usage: cargo"), (["--version"], "cargo "), (["--nonsense"], "unexpected")],
)
def test_what_cargo_says_instead_of_compiling_is_shown(
    make_project: MakeProject, capfd: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    failing(make_project(settings=f"cargo-args = {arguments}"), CompileError)
    assert said in capfd.readouterr().err


def test_a_crate_without_kernels(make_project: MakeProject) -> None:
    error = failing(make_project(PLAIN_HEAD), CompileError)
    assert error.what == "the crate 'some-kernels' has no kernels (capability 8.0)"
    assert "#[kernel]" in error.hint


def test_two_kernels_of_one_name(make_project: MakeProject, capfd: pytest.CaptureFixture[str]) -> None:
    source = PLAIN_HEAD + PLAIN_KERNEL + "mod other {\n" + PLAIN_KERNEL + "}\n"
    failing(make_project(source), CompileError)
    assert "symbol `store` is already defined" in capfd.readouterr().err


def test_two_kernels_of_one_name_in_two_crates(
    make_project: MakeProject, capfd: pytest.CaptureFixture[str]
) -> None:
    dependency = "#![no_std]\n#![feature(abi_ptx)]\n" + PLAIN_KERNEL
    project = make_project(
        PLAIN_HEAD + "use dependency as _;\n" + PLAIN_KERNEL,
        manifest=MANIFEST + '[dependencies]\ndependency = { path = "dependency" }\n',
        files={
            "kernels/dependency/Cargo.toml": '[package]\nname = "dependency"\nedition = "2024"\n',
            "kernels/dependency/src/lib.rs": dependency,
        },
    )
    failing(project, CompileError)
    assert "store" in capfd.readouterr().err


DEVICE_MANIFEST = MANIFEST + '[dependencies]\nrustcuda-device = "0.1"\n'
KERNEL_ALONE = "#[kernel]\npub fn own(out: *mut u32, value: u32) { unsafe { *out = value } }\n"
DEVICE_KERNEL = "use rustcuda_device::prelude::*;\n" + KERNEL_ALONE


def test_kernels_of_a_dependency_come_along_if_it_is_named_and_are_warned_of_otherwise(
    make_project: MakeProject, capfd: pytest.CaptureFixture[str]
) -> None:
    gates = "#![no_std]\n#![feature(abi_ptx)]\n"
    files = {
        "kernels/more/Cargo.toml": '[package]\nname = "more-kernels"\nedition = "2024"\n'
        '[dependencies]\nrustcuda-device = "0.1"\n',
        "kernels/more/src/lib.rs": gates
        + DEVICE_KERNEL.replace("own", "one")
        + KERNEL_ALONE.replace("own", "two"),
    }
    manifest = DEVICE_MANIFEST + 'more-kernels = { path = "more" }\n'
    project = make_project(DEVICE_KERNEL, manifest=manifest, files=files)
    build(project, "8.0 9.0")
    said = capfd.readouterr().err
    warning = (
        "rustcuda: warning: the dependency 'more_kernels' has kernels that are not in the wheel: one, two; "
        "to have them, name it in some_kernels: use more_kernels as _;"
    )
    assert said.count(warning) == 1
    # As another kernel crate of the wheel it has a module of its own.
    settings = read_settings(read_table(project) or {}, {"capabilities": "8.0"}, {})
    beside = dataclasses.replace(settings, others=("kernels/more",))
    pipeline.build(project, "some_package.kernels_cuda", beside, Report())
    assert "more_kernels" not in capfd.readouterr().err
    source = project / "kernels/src/lib.rs"
    source.write_text("use more_kernels as _;\n" + DEVICE_KERNEL, encoding="utf-8")
    os.utime(source, ns=(0, source.stat().st_mtime_ns + 2_000_000_000))
    build(project, "8.0 9.0")
    assert "more_kernels" not in capfd.readouterr().err
    assert set(re.findall(r"\.entry (\w+)", compiled_ptx(project))) == {"own", "one", "two"}


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        (
            DEVICE_KERNEL
            + """#[constant]
            static TABLE: ConstantMemory<u32> = ConstantMemory::UNINIT;
            mod other {
                use rustcuda_device::prelude::*;
                #[constant]
                static TABLE: ConstantMemory<u32> = ConstantMemory::UNINIT;
            }""",
            "every #[constant] a name of its own",
        ),
        (DEVICE_KERNEL + "mod other {\n" + DEVICE_KERNEL + "}\n", "a name of its own"),
        (
            DEVICE_KERNEL
            + "#[kernel]\npub fn wide(x: *mut f32, a: u64) { unsafe { *x = (a as u128 * 3) as f32 } }",
            "convert between 128-bit integers and floats by hand",
        ),
        (
            DEVICE_KERNEL
            + """#[kernel]
            pub fn watch(x: &[u32], mut y: DisjointSlice<u32>) {
                use core::sync::atomic::{AtomicU32, Ordering::Acquire};
                let value = unsafe { (*x.as_ptr().cast::<AtomicU32>()).load(Acquire) };
                if let Some(place) = y.get_mut(thread::index_1d()) { *place = value }
            }""",
            "take `*const T`",
        ),
        (
            DEVICE_KERNEL + "struct S;\nimpl S {\n#[kernel]\npub fn of_s(x: *mut u32) {}\n}\n",
            "move the kernel out of the impl or trait",
        ),
        (DEVICE_KERNEL + PLAIN_KERNEL.replace("store", "memcmp"), "rename functions with #[no_mangle]"),
    ],
)
def test_what_compilers_say_in_riddles_gets_a_way_out(
    make_project: MakeProject, source: str, hint: str
) -> None:
    error = failing(make_project(source, manifest=DEVICE_MANIFEST), CompileError)
    assert hint in error.hint


def test_a_dependency_with_kernels_but_without_feature_gates(make_project: MakeProject) -> None:
    files = {
        "kernels/more/Cargo.toml": '[package]\nname = "more"\nedition = "2024"\n'
        '[dependencies]\nrustcuda-device = "0.1"\n',
    }
    manifest = DEVICE_MANIFEST + 'more = { path = "more" }\n'
    for head, hint in (("", "#![no_std]"), ("#![no_std]\n", "#![feature(abi_ptx")):
        files["kernels/more/src/lib.rs"] = head + DEVICE_KERNEL.replace("own", "one")
        project = make_project(DEVICE_KERNEL, manifest=manifest, files=files)
        assert hint in failing(project, CompileError).hint


def test_launch_bounds_that_some_capabilities_cannot_keep(
    make_project: MakeProject, capfd: pytest.CaptureFixture[str]
) -> None:
    kernel = DEVICE_KERNEL.replace("#[kernel]", "#[kernel(launch_bounds(1024, 2))]")
    project = make_project(kernel, manifest=DEVICE_MANIFEST)
    build(project, "7.5 8.0")
    warning = "rustcuda: warning: kernel 'own': launch_bounds asks for at least 2 blocks of 1024 threads"
    assert capfd.readouterr().err.count(warning) == 1
    error = failing(project, SignatureError, "7.5")
    assert error.where == "kernel 'own'"
    assert "7.5 has at most 16 blocks and 1024 threads" in error.what
    assert "thread::RESIDENT_THREADS" in error.hint


def test_an_argument_that_ptxas_does_not_take(make_project: MakeProject) -> None:
    error = failing(make_project(settings="ptxas-args = ['--bogus']"), AssembleError)
    assert "Unknown option" in error.what
    assert error.where == "ptxas-args: --bogus"


def test_rustc_from_1_99_on_is_told_that_core_may_be_of_another_target_cpu(
    toolchain: RustToolchain, tmp_path: Path
) -> None:
    def flags(version: str) -> list[str]:
        compiler = NvptxCompiler(
            toolchain=dataclasses.replace(toolchain, version=version),
            sysroot=tmp_path,
            crate=Crate(tmp_path, "k", "k", tmp_path, tmp_path, (), False, False, ()),
            settings=read_settings({"crate": "k"}, {}, {}),
            rustflags=(),
            environ={},
            cargo_jobs=1,
            report=Report(),
        )
        return list(compiler._rustc_flags(parse_list("9.0")[0]))

    flag = "-Cunsafe-allow-abi-mismatch=target-cpu"
    assert flag not in flags("1.98.0"), "which does not know that value"
    assert flag in flags("1.99.0")
    assert flag in flags("2.0.0-nightly")


@pytest.mark.parametrize("parameter", ["pair: (u32, f32)", "text: &str", "big: u128"])
def test_a_plain_kernel_that_cannot_be_launched(make_project: MakeProject, parameter: str) -> None:
    name = parameter.partition(":")[0]
    kernel = (
        f'#[unsafe(no_mangle)] pub extern "ptx-kernel" fn odd(out: *mut u8, {parameter}) '
        f"{{ unsafe {{ *out = *(&raw const {name}).cast() }} }}\n"
    )
    error = failing(
        make_project("#![allow(improper_ctypes_definitions)]\n" + PLAIN_HEAD + kernel), SignatureError
    )
    assert "odd" in error.where
    assert "#[kernel]" in error.hint


def test_one_name_with_two_signatures(make_project: MakeProject) -> None:
    other = PLAIN_KERNEL.replace("value: u32", "value: u64").replace("= value", "= value as u32")
    source = f'{PLAIN_HEAD}#[cfg(cuda_arch = "90")]\n{PLAIN_KERNEL}#[cfg(not(cuda_arch = "90"))]\n{other}'
    error = failing(make_project(source), SignatureError, "8.0 9.0")
    assert error.what == "kernel 'store' has other parameters for 9.0 than for 8.0"


def test_a_kernel_that_some_capabilities_lack_is_in_the_union(make_project: MakeProject) -> None:
    source = (
        PLAIN_HEAD + PLAIN_KERNEL + '#[cfg(cuda_arch = "90")]\n' + PLAIN_KERNEL.replace("store", "hopper")
    )
    kernels = build(make_project(source), "8.0 9.0")
    assert "hopper" in kernels.loader.stub


def test_ptxas_failing(make_project: MakeProject) -> None:
    source = PLAIN_HEAD.replace("(abi_ptx", "(asm_experimental_arch, abi_ptx") + PLAIN_KERNEL.replace(
        "*out = value", '*out = value; core::arch::asm!("no.such.instruction;")'
    )
    project = make_project(source)
    error = failing(project, AssembleError)
    assert "store" in error.what
    assert "no" in str(error)
    kept = project / "kernels/target/rustcuda/sm_80/sm_80.ptx"
    assert str(kept) in error.where
    assert "no.such.instruction" in kept.read_text(encoding="utf-8")


def test_a_manifest_that_cargo_refuses(make_project: MakeProject) -> None:
    error = failing(make_project(manifest="[package]\n"), CompileError)
    assert "cargo cannot read the kernel crate" in error.what
    assert "name" in error.what


@pytest.mark.parametrize(
    ("crate", "message"),
    [("nothing", "there is no crate in 'nothing'"), ("../kernels", "outside the project")],
)
def test_a_crate_that_is_not_there(make_project: MakeProject, crate: str, message: str) -> None:
    project = make_project()
    table = (project / "pyproject.toml").read_text(encoding="utf-8")
    (project / "pyproject.toml").write_text(table.replace('"kernels"', f'"{crate}"'), encoding="utf-8")
    error = failing(project, SettingsError)
    assert message in error.what
    assert error.where == "[tool.rustcuda] crate"


def test_a_crate_without_a_library(make_project: MakeProject) -> None:
    project = make_project(files={"kernels/src/main.rs": "fn main() {}"})
    (project / "kernels/src/lib.rs").unlink()
    assert failing(project, SettingsError).what == "the crate 'some-kernels' has no library"


def test_a_workspace_in_place_of_a_crate(make_project: MakeProject) -> None:
    project = make_project(
        manifest='[workspace]\nmembers = ["a"]\n',
        files={"kernels/a/Cargo.toml": MANIFEST.replace("[workspace]\n", ""), "kernels/a/src/lib.rs": ""},
    )
    assert "holds a workspace, not a crate" in failing(project, SettingsError).what


def test_locked_without_a_lock(make_project: MakeProject) -> None:
    error = failing(make_project(settings="locked = true"), CompileError)
    assert "--locked" in error.what


def test_capabilities_are_checked_before_anything_is_compiled(make_project: MakeProject) -> None:
    project = make_project()
    error = failing(project, SettingsError, "8.0 8.8")
    assert "8.8" in error.what
    assert not (project / "kernels/target").exists()


def test_an_interrupted_build_leaves_no_child_and_no_file(
    make_project: MakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project()
    started = threading.Event()
    main = threading.main_thread().ident
    run = process.run

    def slow(argv, **options):  # type: ignore[no-untyped-def]
        if "rustc" in map(str, argv):
            started.set()
            return run(["sleep", "600"])
        return run(argv, **options)

    monkeypatch.setattr(process, "run", slow)

    def interrupt() -> None:
        started.wait()
        import signal

        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        build(project)
    thread.join()
    # The thread that waited for a program may not have been told yet that it has ended.
    assert all(child.poll() is not None for child in process._live)
    assert not list(project.rglob("*.fatbin"))
    assert not list((project / f"kernels/target/rustcuda/sm_80/{TARGET}").rglob("*.ptx"))


def test_every_cfg_value_is_known_to_check_cfg() -> None:
    assert len(all_cfg_values()) == len(set(all_cfg_values()))
