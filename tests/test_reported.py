"""What users of such tools have run into, held against this one: shared/cases/reported.md, builds only.

Each case stands for a kind of fault. What other tests show is not repeated: they are named by file, with
words of the test's name in parentheses. Tests without a file's name are below.

1   spaces in paths: test_folders_with_every_odd_character; test_wheel (same_sources_in_another_folder)
3   text that is not ASCII: test_letters_of_all_kinds_in_a_c_locale; test_wheel (a_c_locale); ruff (PLW1514)
4   source trees that cannot be written: test_readonly
5   files of an earlier build: test_wheel (nothing_of_an_earlier_build); test_sdist (no_earlier_image)
6   Cargo.lock out of step: test_sdist (cargo_takes_the_lock); test_crate (the_lock_stays_as_it_is)
8   Cargo.lock of the workspace: test_hooks (an_sdist_has_the_workspace); test_sdist (cargo_takes_the_lock)
9   path dependencies, workspace keys: test_hooks (an_sdist_that_would_lack_a_crate); test_sdist
10  RUSTFLAGS against config.toml: test_rustflags; test_pipeline (the_users_own_rustflags)
11  build.target: test_a_target_and_folder_of_the_users_configuration; test_pipeline (a_build_target)
12  one target folder for several builds: test_builds_at_once_in_one_target_folder
14  rust-toolchain: test_a_toolchain_that_overrules_the_file and after; test_rust (a_rust_toolchain_file)
15  no core for the GPU: test_rust (one_that_was_asked_for, mended_by_rustup, none_at_all); test_sysroot
16  tools that an isolated build lacks: test_a_build_imports_nothing_of_the_run_time; test_front_ends (pip)
17  too many compilers at once: test_a_container_that_has_less; test_plan (jobs); test_pipeline (progress)
18  wheels that differ: test_a_path_dependency_in_two_folders and after; test_wheel (same_sources); test_sdist
19  config settings: test_config_settings_through_front_ends; test_hooks (every_hook_checks_the_settings)
20  spellings of capabilities: test_every_spelling_of_torch, test_no_capability; test_capability; test_plan
21  no GPU at build: test_plan (native, an_editable_install); test_gpu_detection
22  a newer GPU: test_default_lists_end_with_ptx; test_pipeline (ptx_only_where_asked); test_loader (no_code)
26  compressed fatbins: test_cuda (referee); test_pipeline (a_cubin_for_each_capability)
34  stale kernels with uv: test_front_ends (uv_sync); test_editable
35  editable installs: test_editable; test_hooks (outputs_are_known)
36  readme above the project: test_a_metadata_file_outside_the_project, test_a_member_with_linked_files
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from environments import BUILD, EPOCH, build_wheel, contents, environment, images, only, succeed, wheel_of
from filelock import FileLock
from projects import MANIFEST, PLAIN_HEAD, PLAIN_KERNEL, MakeProject

from rustcuda_backend import cgroup, metadata_files, process, toolchain_pin
from rustcuda_backend.build_lock import alone_in
from rustcuda_backend.capability import KNOWN, parse_list
from rustcuda_backend.cuda_versions import CUDA_VERSIONS
from rustcuda_backend.errors import CapabilityError
from rustcuda_backend.report import Report
from rustcuda_backend.rust import RustToolchain

FATBIN = "some_package/kernels_cuda.fatbin"
DEVICE_MANIFEST = MANIFEST + '[dependencies]\nrustcuda-device = "0.1"\n'


def device_kernel(name: str) -> str:
    return (
        "use rustcuda_device::prelude::*;\n"
        f"#[kernel]\npub fn {name}(out: *mut u32) {{ unsafe {{ *out = thread::index_1d().get() as u32 }} }}\n"
    )


# --- 1, 3: names and texts -------------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_folders_with_every_odd_character(make_project: MakeProject, tmp_path: Path) -> None:
    odd = "a b'ü\"$HOME;&(=)%#!*"
    project = make_project(device_kernel("store"), manifest=DEVICE_MANIFEST, folder=f"{odd}/project")
    # setuptools itself puts a variable's value for its name, so there is none in the temporary folder.
    temporary = tmp_path / "a b'ü\";&(=)%#!*"
    temporary.mkdir()
    variables = {"CARGO_TARGET_DIR": str(tmp_path / odd / "built, here"), "TMPDIR": str(temporary)}
    wheel = contents(wheel_of(project, tmp_path / odd / "out", capabilities="8.0", **variables))
    assert images(wheel[FATBIN], tmp_path) == ["sm_80.cubin"]
    assert (tmp_path / odd / "built, here/rustcuda/sm_80").is_dir()
    assert not (project / "kernels/target/rustcuda/sm_80").exists()


C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONWARNDEFAULTENCODING": "1"}


def test_letters_of_all_kinds_in_a_c_locale(make_project: MakeProject, tmp_path: Path) -> None:
    documented = "/// Größe: Ελλάδα, 漢字, ≤ \"β\" \\ 'δ'.\n"
    source = device_kernel("store").replace("#[kernel]", documented + "#[kernel]")
    more = {
        "kernels/more/Cargo.toml": DEVICE_MANIFEST.replace("some-kernels", "more").replace(
            "[workspace]\n", ""
        ),
        "kernels/more/src/lib.rs": "#![no_std]\n#![feature(abi_ptx, asm_experimental_arch)]\n"
        + device_kernel("left_out"),
    }
    manifest = DEVICE_MANIFEST + 'more = { path = "more" }\n'
    project = make_project(source, manifest=manifest, files=more, folder="Ελλάδα/漢字")
    said = succeed(build_wheel(project, tmp_path / "out", environment("8.0", **C_LOCALE)))
    # Every place of ours that opens a text says how it is encoded.
    assert not re.findall(r"rustcuda_backend\S*: EncodingWarning.*", said)
    assert "the dependency 'more' has kernels that are not in the wheel: left_out" in said
    files = contents(only(tmp_path / "out"))
    for name in ("py", "pyi"):
        assert "Größe: Ελλάδα, 漢字, ≤" in files[f"some_package/kernels_cuda.{name}"].decode("utf-8")


FIND = """\
import os, pathlib
from rustcuda_backend.rust import find_toolchain
found = find_toolchain("", pathlib.Path(), os.environ)
print(found.sysroot.is_dir(), found.rustc.is_file(), found.cargo.is_file())
"""


@pytest.mark.skipif(os.name == "nt", reason="links the toolchain")
def test_a_toolchain_in_a_home_with_such_letters(tmp_path: Path, toolchain: RustToolchain) -> None:
    home = tmp_path / "Größe"
    (home / "bin").mkdir(parents=True)
    for program in (toolchain.rustc, toolchain.cargo):
        (home / "bin" / program.name).symlink_to(program)
    (home / "lib").symlink_to(toolchain.sysroot / "lib")
    rustc = home / "asked/rustc"
    rustc.parent.mkdir()
    rustc.write_text(
        f'#!/bin/sh\n[ "$1" = --print ] && echo "{home}" || exec "{toolchain.rustc}" "$@"\n', encoding="utf-8"
    )
    rustc.chmod(0o755)
    environ = environment("8.0", RUSTC=str(rustc), **C_LOCALE)
    assert succeed(process.run([sys.executable, "-c", FIND], env=environ)) == "True True True\n"


# --- 11, 12: where cargo builds --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config",
    [
        "[build]\ntarget = 'x86_64-unknown-linux-gnu'\ntarget-dir = '../elsewhere'\n",
        "[build]\ntarget = ['x86_64-unknown-linux-gnu', 'nvptx64-nvidia-cuda']\n",
        "[build]\nrustc-wrapper = ''\njobs = 1\nincremental = true\n[term]\nquiet = true\n",
        "[profile.release]\nlto = false\npanic = 'unwind'\ncodegen-units = 16\nopt-level = 'z'\n",
    ],
    ids=["target", "targets", "others", "profile"],
)
def test_a_target_and_folder_of_the_users_configuration(
    make_project: MakeProject, tmp_path: Path, config: str
) -> None:
    project = make_project(files={"kernels/.cargo/config.toml": config})
    wheel = contents(wheel_of(project, tmp_path / "out", capabilities="8.0"))
    assert images(wheel[FATBIN], tmp_path) == ["sm_80.cubin"]


def start(project: Path, out: Path, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*BUILD, "--wheel", "--no-isolation", "--outdir", out, project],
        cwd=project.parent,
        env=environment("7.5;8.0;9.0", **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )


def test_builds_at_once_in_one_target_folder(make_project: MakeProject, tmp_path: Path) -> None:
    """Two packages whose crates have one name, one of them twice, as an editor and a terminal would."""
    ours = make_project(device_kernel("ours"), manifest=DEVICE_MANIFEST, folder="a/project")
    theirs = make_project(device_kernel("theirs"), manifest=DEVICE_MANIFEST, folder="b/project")
    shared = {"CARGO_TARGET_DIR": str(tmp_path / "shared"), "RUSTCUDA_JOBS": "2"}
    jobs = {"1": (ours, "ours"), "2": (theirs, "theirs"), "3": (ours, "ours")}
    children = {name: start(project, tmp_path / name, **shared) for name, (project, _) in jobs.items()}
    for name, child in children.items():
        said, _ = child.communicate()
        assert child.returncode == 0, said
        kernels = contents(only(tmp_path / name))[FATBIN]
        assert images(kernels, tmp_path) == ["sm_75.cubin", "sm_80.cubin", "sm_90.cubin"]
        found = {kernel for kernel in ("ours", "theirs") if f".text.{kernel}\0".encode() in kernels}
        assert found == {jobs[name][1]}, said
    again = contents(wheel_of(theirs, tmp_path / "4", capabilities="8.0", **shared))[FATBIN]
    assert b".text.theirs\0" in again


def test_a_target_folder_that_cannot_be_made_is_left_to_cargo(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    with alone_in(tmp_path / "file/rustcuda", Report()):
        pass
    assert not capfd.readouterr().err


def test_who_waits_for_another_build_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    other = FileLock(tmp_path / ".lock", thread_local=False)
    other.acquire()
    with ThreadPoolExecutor(1) as pool:

        def build() -> str:
            with alone_in(tmp_path, Report()):
                return "built"

        waiting = pool.submit(build)
        said = ""
        while "waiting" not in said:
            said += capfd.readouterr().err
        assert f"rustcuda: waiting for another build in {tmp_path}" in said
        other.release()
        assert waiting.result(timeout=60) == "built"


# --- 14: the rust-toolchain file -------------------------------------------------------------------------


def toolchain_of(version: str, source: str, sysroot: str = "/usr") -> RustToolchain:
    return RustToolchain(Path("rustc"), Path("cargo"), version, "", "host", Path(sysroot), source)


STABLE = "/x/toolchains/stable-x86_64-unknown-linux-gnu"


@pytest.mark.parametrize(
    ("file", "text", "used", "warning"),
    [
        (
            "rust-toolchain.toml",
            '[toolchain]\nchannel = "1.97.0"\n',
            toolchain_of("1.96.0", "PATH"),
            "no rustup",
        ),
        (
            "rust-toolchain.toml",
            '[toolchain]\nchannel = "nightly"\n',
            toolchain_of("1.96.0", "VAR"),
            "by VAR",
        ),
        (
            "rust-toolchain",
            "nightly-2026-01-01\n",
            toolchain_of("1.96.0", "VAR"),
            "for Rust nightly-2026-01-01",
        ),
        ("rust-toolchain", '[toolchain]\nchannel = "1.97"\n', toolchain_of("1.96.0", "VAR"), "by VAR"),
        ("rust-toolchain.toml", '[toolchain]\nchannel = "1.96"\n', toolchain_of("1.96.0", "PATH"), ""),
        ("rust-toolchain.toml", '[toolchain]\nchannel = "1.96.0"\n', toolchain_of("1.96.0", "VAR"), ""),
        ("rust-toolchain.toml", '[toolchain]\nchannel = "stable"\n', toolchain_of("1.96.0", "VAR"), ""),
        ("rust-toolchain", "stable", toolchain_of("1.97.0-nightly", "VAR"), "asks for Rust stable"),
        ("rust-toolchain", "nightly", toolchain_of("1.97.0-nightly", "VAR"), ""),
        ("rust-toolchain", "mine", toolchain_of("1.97.0", "VAR", "/x/toolchains/mine"), ""),
        ("rust-toolchain", "stable", toolchain_of("1.97.0", "VAR", STABLE), ""),
        ("rust-toolchain.toml", "[toolchain]\npath = '/x'\n", toolchain_of("1.96.0", "VAR"), ""),
        ("rust-toolchain.toml", "toolchain = 7\n", toolchain_of("1.96.0", "VAR"), ""),
        ("rust-toolchain.toml", "no TOML\n", toolchain_of("1.96.0", "VAR"), ""),
        ("other-file", "nightly", toolchain_of("1.96.0", "VAR"), ""),
    ],
)
def test_a_toolchain_that_overrules_the_file(
    tmp_path: Path, file: str, text: str, used: RustToolchain, warning: str
) -> None:
    crate = tmp_path / "project/kernels"
    crate.mkdir(parents=True)
    (crate.parent / file).write_text(text, encoding="utf-8")
    said = toolchain_pin.overruled(used, crate)
    assert bool(said) == bool(warning)
    assert warning in said
    if warning:
        assert str(crate.parent / file) in said
        assert used.version in said


def test_one_that_rustup_took_from_the_file_is_right_in_any_case(tmp_path: Path) -> None:
    file = tmp_path / "rust-toolchain"
    file.write_text("some-alias", encoding="utf-8")
    assert not toolchain_pin.overruled(toolchain_of("1.96.0", f"{file}, read by rustup"), tmp_path)


def test_a_build_warns_of_it_and_the_file_is_in_the_sdist_only(
    make_project: MakeProject, tmp_path: Path, toolchain: RustToolchain
) -> None:
    project = make_project(files={"kernels/rust-toolchain.toml": '[toolchain]\nchannel = "1.1.0"\n'})
    environ = environment("8.0", RUSTC=str(toolchain.rustc))
    said = succeed(build_wheel(project, tmp_path / "out", environ))
    assert said.count("rust-toolchain.toml asks for Rust 1.1.0, but") == 1
    assert f"rustc {toolchain.version} (" in said
    assert not [name for name in contents(only(tmp_path / "out")) if "toolchain" in name]
    argv = [*BUILD, "--sdist", "--no-isolation", "--outdir", tmp_path / "out", project]
    succeed(process.run(argv, cwd=tmp_path, env=environ))
    with tarfile.open(only(tmp_path / "out", "*.tar.gz")) as archive:
        assert "some_package-1.0/kernels/rust-toolchain.toml" in archive.getnames()


# --- 16: what a build imports ----------------------------------------------------------------------------

WITHOUT = """\
import sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        assert name.partition(".")[0] not in {"torch", "cuda", "numpy", "triton"}, f"a build imports {name}"

sys.meta_path.insert(0, Refused())
import rustcuda_backend as backend
out = sys.argv[1]  # setuptools changes argv
backend.get_requires_for_build_wheel()
backend.prepare_metadata_for_build_wheel(out)
backend.build_sdist(out)
backend.build_wheel(out)
"""


def test_a_build_imports_nothing_of_the_run_time(make_project: MakeProject, tmp_path: Path) -> None:
    project = make_project()
    argv = [sys.executable, "-c", WITHOUT, str(tmp_path)]
    succeed(process.run(argv, cwd=project, env=environment("8.0")))
    assert FATBIN in contents(only(tmp_path))


# --- 17: containers --------------------------------------------------------------------------------------

GIB = 1 << 30


@pytest.mark.parametrize(
    ("own", "files", "memory", "cores"),
    [
        ("0::/\n", {}, cgroup.UNLIMITED, cgroup.UNLIMITED),
        ("0::/\n", {"memory.max": "max", "cpu.max": "max 100000"}, cgroup.UNLIMITED, cgroup.UNLIMITED),
        ("0::/\n", {"memory.max": f"{8 * GIB}", "cpu.max": "150000 100000"}, 8 * GIB, 2),
        (
            "0::/a/b\n",
            {"a/memory.max": f"{4 * GIB}", "a/memory.current": f"{3 * GIB}", "a/b/memory.max": f"{8 * GIB}"},
            GIB,
            cgroup.UNLIMITED,
        ),
        (
            "0::/\n",
            {
                "memory.max": f"{4 * GIB}",
                "memory.current": f"{3 * GIB}",
                "memory.stat": f"anon 7\ninactive_file {2 * GIB}\n",
            },
            3 * GIB,
            cgroup.UNLIMITED,
        ),
        ("0::/\n", {"memory.max": "1000", "memory.current": "2000", "cpu.max": "1 100000"}, 0, 1),
        ("0::/../x\n", {"x/memory.max": "5"}, 5, cgroup.UNLIMITED),
        (
            "4:memory:/docker/x\n3:cpu,cpuacct:/docker/x\nno line\n",
            {
                "memory/memory.limit_in_bytes": f"{2 * GIB}",
                "memory/memory.usage_in_bytes": f"{GIB}",
                "memory/memory.stat": f"total_inactive_file {GIB}\n",
                "cpu,cpuacct/cpu.cfs_quota_us": "300000",
                "cpu,cpuacct/cpu.cfs_period_us": "100000",
            },
            2 * GIB,
            3,
        ),
        (
            "3:cpu:/\n",
            {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"},
            cgroup.UNLIMITED,
            None,
        ),
    ],
)
def test_a_container_that_has_less(
    tmp_path: Path, own: str, files: dict[str, str], memory: int, cores: int | None
) -> None:
    (tmp_path / "own").write_text(own, encoding="ascii")
    for name, text in files.items():
        (tmp_path / "mount" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mount" / name).write_text(text + "\n", encoding="ascii")
    assert cgroup.memory_left(tmp_path / "mount", tmp_path / "own") == memory
    assert cgroup.cores(tmp_path / "mount", tmp_path / "own") == (cores or cgroup.UNLIMITED)


def test_a_machine_without_control_groups(tmp_path: Path) -> None:
    assert cgroup.memory_left(tmp_path, tmp_path / "none") == cgroup.UNLIMITED
    (tmp_path / "own").write_bytes(b"\xff")
    assert cgroup.cores(tmp_path, tmp_path / "own") == cgroup.UNLIMITED
    assert cgroup.cores() >= 1
    assert cgroup.memory_left() >= 0


# --- 18: wheels that differ ------------------------------------------------------------------------------


MEMBER = MANIFEST.replace("[workspace]\n", "")
HELPER = {
    "crates/helper/Cargo.toml": MEMBER.replace("some-kernels", "helper"),
    "crates/helper/src/lib.rs": """\
#![no_std]
#[inline(never)]
pub fn helper<T: Into<u64>>(value: T) -> u64 {
    let value = value.into();
    assert!(value < 9, "{value}");
    value * 3
}
""",
}
WITH_HELPER = PLAIN_HEAD + PLAIN_KERNEL.replace("*out = value", "*out = helper::helper(value) as u32")
HELPER_BY_PATH = '[dependencies]\nhelper = { path = "../crates/helper" }\n'


def test_a_path_dependency_in_two_folders(make_project: MakeProject, tmp_path: Path) -> None:
    """Symbols of path dependencies have a hash of their package in them, and panics their places."""
    files = {**HELPER, "Cargo.toml": '[workspace]\nmembers = ["kernels", "crates/*"]\nresolver = "3"\n'}
    wheels = []
    for folder in ("one", "a b/ü/two"):
        project = make_project(
            WITH_HELPER,
            manifest=MEMBER + HELPER_BY_PATH,
            files=files,
            folder=folder,
            settings="lineinfo = true",
        )
        wheels.append(wheel_of(project, tmp_path / "out" / folder, **EPOCH))
    first, second = wheels
    assert first.read_bytes() == second.read_bytes()
    fatbin = contents(first)[FATBIN]
    assert b"helper" in fatbin
    assert not [place for place in (b"a b", str(tmp_path).encode()) if place in fatbin]
    package = [name for name in contents(first) if name.startswith("some_package/")]
    assert package == sorted(package)


@pytest.mark.parametrize("variables", [EPOCH, {}], ids=["epoch", "none"])
def test_a_path_dependency_outside_the_workspace_is_said_to_make_wheels_differ(
    make_project: MakeProject, tmp_path: Path, variables: dict[str, str]
) -> None:
    """cargo puts such a crate's whole path into its symbols; only who wants equal wheels needs to know."""
    project = make_project(WITH_HELPER, manifest=MANIFEST + HELPER_BY_PATH, files=HELPER)
    said = succeed(build_wheel(project, tmp_path / "out", environment("8.0", **variables)))
    warned = "the wheel depends on this folder's name, by helper: crates that are outside the cargo workspace"
    assert said.count(warned) == len(variables)


# --- 19: config settings ---------------------------------------------------------------------------------

PIP = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", "out")
FRONT_ENDS = [PIP, (*BUILD, "--wheel", "--no-isolation", "--outdir", "out")]


@pytest.mark.parametrize("front_end", FRONT_ENDS, ids=["pip", "build"])
def test_config_settings_through_front_ends(
    make_project: MakeProject, tmp_path: Path, front_end: tuple[str, ...]
) -> None:
    project = make_project()
    environ = environment()
    del environ["RUSTCUDA_CAPABILITIES"]
    wrong = process.run([*front_end, "-Cnonsense=1", project], cwd=tmp_path, env=environ)
    assert not wrong.ok
    assert "rustcuda: error: unknown setting 'nonsense'" in wrong.stdout + wrong.stderr
    assert not (project / "kernels/target").exists()
    settings = ("-Ccapabilities=8.0", "-Crustcuda.capabilities=9.0", "-C--build-option=--build-number=7")
    twice = ("-Cptxas-args=-O1", "-Cptxas-args=--def-load-cache ca")
    succeed(process.run([*front_end, *settings[1:], *twice, project], cwd=tmp_path, env=environ))
    wheel = only(tmp_path / "out")
    assert wheel.name == "some_package-1.0-7-py3-none-any.whl"
    assert images(contents(wheel)[FATBIN], tmp_path) == ["sm_90.cubin"]


# --- 20, 22: capabilities --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8.0;9.0", "8.0 9.0"),
        ("8.0 9.0+PTX", "8.0 9.0+PTX"),
        ("8.0;8.0;9.0;8.0", "8.0 9.0"),
        ("9.0a", "9.0a"),
        ("9.0a+PTX", "9.0a+PTX"),
        ("Hopper", "9.0+PTX"),
        ("Ampere", "8.0 8.6+PTX"),
        ("Ampere+Tegra", "8.7"),
        # What torch refuses, and what is plain all the same.
        ("8.0;", "8.0"),
        ("8.0;;9.0", "8.0 9.0"),
        ("  8.0  9.0", "8.0 9.0"),
        ("8.0,9.0", "8.0 9.0"),
        ("8.0\n9.0", "8.0 9.0"),
        ("8.0+ptx", "8.0+PTX"),
        ("8.0 +PTX", "8.0+PTX"),
        ("80", "8.0"),
        ("sm_90", "9.0"),
        ("hopper", "9.0+PTX"),
        ("10.0f", "10.0f"),
        ("10.1", "10.1"),
        # Numbers, not strings.
        ("12.0;9.0;10.0", "9.0 10.0 12.0"),
    ],
)
def test_every_spelling_of_torch(text: str, expected: str) -> None:
    assert " ".join(str(item) for item in parse_list(text)) == expected


@pytest.mark.parametrize(
    "word", ["All", "Common", "Auto", "8.0;native", "9.9", "compute_90", "sm90x", "+PTX"]
)
def test_no_capability(word: str) -> None:
    with pytest.raises(CapabilityError) as raised:
        parse_list(f"{word}")
    assert re.search(r"'[^']+' ", raised.value.what)
    said = raised.value.what + raised.value.hint
    assert "native" in word or all(f"{major}.{minor}" in said for major, minor in KNOWN)


@pytest.mark.parametrize("version", CUDA_VERSIONS.values(), ids=CUDA_VERSIONS)
def test_default_lists_end_with_ptx(version: object) -> None:
    *others, last = parse_list(version.default_list)  # type: ignore[attr-defined]
    assert last.ptx
    assert not last.suffix, "PTX of one architecture or family would serve no newer GPU"
    assert not any(item.ptx for item in others)


# --- 36: files outside the project -----------------------------------------------------------------------


def with_metadata(project: Path, line: str, table: str = "") -> None:
    path = project / "pyproject.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('version = "1.0"\n', f'version = "1.0"\n{line}\n') + table, encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "table", "name", "key"),
    [
        ('readme = "../README.md"', "", "../README.md", "[project] readme"),
        ('readme = { file = "../README.md", content-type = "text/markdown" }', "", "../README.md", "readme"),
        ('readme = "docs/../../README.md"', "", "docs/../../README.md", "readme"),
        ('readme = "/README.md"', "", "/README.md", "readme"),
        ('license = { file = "../LICENSE" }', "", "../LICENSE", "[project] license"),
        ('license-files = ["LICENSE", "../LICENSE"]', "", "../LICENSE", "[project] license-files"),
        (
            'dynamic = ["readme"]',
            '[tool.setuptools.dynamic]\nreadme = { file = ["README.md", "../MORE.md"] }\n',
            "../MORE.md",
            "[tool.setuptools.dynamic] readme",
        ),
    ],
)
def test_a_metadata_file_outside_the_project(
    make_project: MakeProject, tmp_path: Path, line: str, table: str, name: str, key: str
) -> None:
    project = make_project(folder="root/member")
    with_metadata(project, line, table)
    for file in ("README.md", "LICENSE", "MORE.md"):
        (project.parent / file).write_text("text\n", encoding="utf-8")
        (project / file).write_text("text\n", encoding="utf-8")
    environ = environment("8.0")
    argv = [*BUILD, "--sdist", "--no-isolation", "--outdir", tmp_path / "out", project]
    finished = process.run(argv, cwd=tmp_path, env=environ)
    said = finished.stdout + finished.stderr
    assert not finished.ok
    assert f"rustcuda: error: the file '{name}' is outside the project" in said
    assert key in said
    assert f"name it '{Path(name).name}'" in said
    assert "Traceback" not in said


def test_metadata_that_names_no_file_is_left_to_setuptools(tmp_path: Path) -> None:
    strange = {
        "project": {"readme": 7, "license": "MIT", "license-files": {"paths": ["x"]}},
        "tool": {"setuptools": {"dynamic": {"version": {"attr": "../x"}, "y": "../y"}, "license-files": 1}},
    }
    metadata_files.check(tmp_path, strange)
    metadata_files.check(tmp_path, {"project": 1, "tool": {"setuptools": {"dynamic": []}}})


def test_a_member_with_linked_files(make_project: MakeProject, tmp_path: Path) -> None:
    """What the error advises: the sdist then has the files, and the wheel from it their text."""
    project = make_project(folder="root/member")
    with_metadata(project, 'readme = "README.md"\nlicense-files = ["LICENSE"]')
    for name in ("README.md", "LICENSE"):
        (project.parent / name).write_text(f"the text of {name}\n", encoding="utf-8")
        (project / name).symlink_to(f"../{name}")
    argv = [*BUILD, "--no-isolation", "--outdir", tmp_path / "out", project]
    succeed(process.run(argv, cwd=tmp_path, env=environment("8.0")))
    files = contents(only(tmp_path / "out"))
    assert b"the text of README.md" in files["some_package-1.0.dist-info/METADATA"]
    assert files["some_package-1.0.dist-info/licenses/LICENSE"] == b"the text of LICENSE\n"
    assert FATBIN in files
