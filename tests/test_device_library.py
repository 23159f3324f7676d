"""The device crate from the cache: when it is made, of what, and when a build does without it."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from projects import MANIFEST, PLAIN_HEAD, PLAIN_KERNEL, MakeProject

from rustcuda_backend import cache, device_crates, device_library, pipeline, process
from rustcuda_backend.device_library import DeviceLibrary
from rustcuda_backend.process import Finished
from rustcuda_backend.pyproject import read_table
from rustcuda_backend.report import Report
from rustcuda_backend.rust import RustToolchain
from rustcuda_backend.settings import read_settings

RELEASE = {"opt_level": "3", "debug_assertions": False, "overflow_checks": False}
DEVICE_MANIFEST = MANIFEST + '[dependencies]\nrustcuda-device = "0.1"\n'
KERNEL = """\
use rustcuda_device::prelude::*;

#[kernel]
pub fn double(x: &[f32], mut y: DisjointSlice<f32>) {
    static mut SHARED: SharedArray<f32, 32> = SharedArray::UNINIT;
    let index = thread::index_1d();
    let at = index.get();
    unsafe { SHARED[at % 32] = x[at] };
    thread::sync_threads();
    if let Some(y) = y.get_mut(index) {
        *y = unsafe { SHARED[31 - at % 32] } * 2.0;
    }
}
"""


@pytest.fixture
def code_flags(gpu_sysroot: Path) -> tuple[str, ...]:
    """Those of a pass, as far as the library needs them."""
    return (f"--sysroot={gpu_sysroot}", "-Ctarget-cpu=sm_80", "-Ctarget-feature=+ptx74")


@pytest.fixture
def empty_cache(gpu_sysroot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that has the sysroot and nothing else."""
    folder = tmp_path / "cache"
    (folder / "sysroot").mkdir(parents=True)
    (folder / "sysroot" / gpu_sysroot.name).symlink_to(gpu_sysroot)
    monkeypatch.setenv("RUSTCUDA_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The commands that are run from now on."""
    run, commands = process.run, []

    def recording(argv: list[str | Path], **options: object) -> Finished:
        commands.append(tuple(map(str, argv)))
        return run(argv, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(process, "run", recording)
    return commands


def made(folder: Path) -> list[Path]:
    """The libraries in a cache."""
    return sorted((folder / "device").glob("*/*.rlib"))


def build(project: Path, environ: dict[str, str] | None = None, **config: str) -> str:
    """Builds for 8.0; returns the PTX."""
    settings = read_settings(read_table(project) or {}, {"capabilities": "8.0", **config}, {})
    pipeline.build(
        project, "some_package.kernels_cuda", settings, Report(), {**os.environ, **(environ or {})}
    )
    return (project / "kernels/target/rustcuda/sm_80/sm_80.ptx").read_text(encoding="utf-8")


# --- making it -------------------------------------------------------------------------------------------


def test_it_is_made_once_however_many_builds_need_it(
    toolchain: RustToolchain, empty_cache: Path, code_flags: tuple[str, ...], calls: list[tuple[str, ...]]
) -> None:
    library = DeviceLibrary(toolchain, (), RELEASE)
    with ThreadPoolExecutor(3) as pool:
        flags = set(pool.map(lambda _: library.flags(code_flags), range(3)))
    assert len(calls) == 1
    (given,) = flags
    (file,) = made(empty_cache)
    assert f"--extern=noprelude,nounused:rustcuda_prebuilt={file}" in given
    assert f"-Ldependency={file.parent}" in given
    assert sorted(path.name for path in file.parent.iterdir()) == [".files.json", file.name]


def test_whatever_decides_it_is_in_its_key(
    toolchain: RustToolchain, code_flags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keys: list[str] = []

    def folder(_kind: str, key: str, _build: object) -> Path:
        keys.append(key)
        return tmp_path

    monkeypatch.setattr(cache, "folder", folder)
    library = DeviceLibrary(toolchain, (), RELEASE)
    other_rustc = dataclasses.replace(toolchain, verbose_version="rustc 1.97.0")
    library.flags(code_flags)
    library.flags((*code_flags, '--cfg=cuda_arch="80"'))
    dataclasses.replace(library, features=("panic-message",)).flags(code_flags)
    dataclasses.replace(library, profile={**RELEASE, "overflow_checks": True}).flags(code_flags)
    dataclasses.replace(library, toolchain=other_rustc).flags(code_flags)
    ours = device_crates.sources((device_crates.DEVICE_CRATE,))
    changed = {path: data + b"//" if path.name == "warp.rs" else data for path, data in ours.items()}
    monkeypatch.setattr(device_crates, "sources", lambda _crates: changed)
    library.flags(code_flags)
    assert len(set(keys)) == len(keys) == 6
    monkeypatch.setattr(device_crates, "sources", lambda _crates: ours)
    library.flags(code_flags)
    assert keys[-1] == keys[0]


def test_it_says_nothing_of_where_it_was_made(
    toolchain: RustToolchain,
    empty_cache: Path,
    code_flags: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = DeviceLibrary(toolchain, ("panic-message",), RELEASE)
    library.flags(code_flags)
    elsewhere = tmp_path / "behind a link"
    (tmp_path / "another cache").mkdir()
    elsewhere.symlink_to(tmp_path / "another cache")
    monkeypatch.setenv("RUSTCUDA_CACHE_DIR", str(elsewhere))
    library.flags(code_flags)
    one, other = (path.read_bytes() for path in (*made(empty_cache), *made(elsewhere)))
    assert one == other
    assert os.fsencode(tmp_path) not in one


def test_one_that_does_not_compile_is_left_to_cargo(
    toolchain: RustToolchain, empty_cache: Path, code_flags: tuple[str, ...]
) -> None:
    library = DeviceLibrary(toolchain, (), {**RELEASE, "opt_level": "9"})
    assert library.flags(code_flags) == ()
    assert [path.suffix for path in (empty_cache / "device").iterdir()] == [".lock"]


# --- what a build takes ----------------------------------------------------------------------------------


def test_a_build_takes_it_and_makes_the_same_code(
    make_project: MakeProject, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(KERNEL, manifest=DEVICE_MANIFEST)
    taken = build(project)
    assert len(made(empty_cache)) == 1
    deps = project / "kernels/target/rustcuda/sm_80/nvptx64-nvidia-cuda/release/deps"
    (handed_on,) = deps.glob("librustcuda_device-*.rlib")
    assert handed_on.stat().st_size < made(empty_cache)[0].stat().st_size / 10
    monkeypatch.setattr(device_library, "find", lambda *_: None)
    assert build(project) == taken
    assert [path for path in deps.glob("librustcuda_device-*.rlib") if path.stat().st_size > 1 << 20]


def test_an_unchanged_build_compiles_nothing(
    make_project: MakeProject, calls: list[tuple[str, ...]], capfd: pytest.CaptureFixture[str]
) -> None:
    project = make_project(KERNEL, manifest=DEVICE_MANIFEST)
    build(project)
    capfd.readouterr()
    calls.clear()
    build(project)
    assert not [call for call in calls if "--cfg=rustcuda_library" in call]
    assert "Compiling" not in capfd.readouterr().err


def test_features_switch_to_another_one(make_project: MakeProject, empty_cache: Path) -> None:
    project = make_project(KERNEL, manifest=DEVICE_MANIFEST)
    assert "vprintf" not in build(project)
    manifest = project / "kernels/Cargo.toml"
    table = '{ version = "0.1", features = ["panic-message"] }'
    manifest.write_text(DEVICE_MANIFEST.replace('"0.1"', table), encoding="utf-8")
    assert "vprintf" in build(project)
    assert len(made(empty_cache)) == 2
    manifest.write_text(DEVICE_MANIFEST, encoding="utf-8")
    assert "vprintf" not in build(project)
    assert len(made(empty_cache)) == 2


def test_profiles_are_kept(make_project: MakeProject, empty_cache: Path) -> None:
    manifest = DEVICE_MANIFEST + "[profile.release]\noverflow-checks = true\nopt-level = 2\n"
    build(make_project(KERNEL, manifest=manifest))
    assert len(made(empty_cache)) == 1
    manifest = DEVICE_MANIFEST + "[profile.release.package.rustcuda-device]\ndebug-assertions = true\n"
    build(make_project(KERNEL, manifest=manifest, folder="other"))
    assert len(made(empty_cache)) == 2


def test_crates_written_for_cuda_oxide_take_it_too(make_project: MakeProject, empty_cache: Path) -> None:
    dependency = '[dependencies]\ncuda-device = { git = "https://git.invalid/cuda-oxide.git" }\n'
    source = KERNEL.replace("rustcuda_device::prelude::*", "cuda_device::*")
    assert ".entry double" in build(make_project(source, manifest=MANIFEST + dependency))
    assert len(made(empty_cache)) == 1


# --- what a build does without it ------------------------------------------------------------------------


def test_a_crate_without_the_device_crate_asks_for_none(
    make_project: MakeProject, empty_cache: Path, calls: list[tuple[str, ...]]
) -> None:
    build(make_project(PLAIN_HEAD + PLAIN_KERNEL))
    assert not [call for call in calls if "--unit-graph" in call]
    assert not made(empty_cache)


def test_flags_of_the_users_reach_the_device_crate(make_project: MakeProject, empty_cache: Path) -> None:
    build(make_project(KERNEL, manifest=DEVICE_MANIFEST), environ={"RUSTFLAGS": "--cfg theirs"})
    assert not made(empty_cache)


def test_lines_for_debuggers_are_those_of_the_project(make_project: MakeProject, empty_cache: Path) -> None:
    build(make_project(KERNEL, manifest=DEVICE_MANIFEST), lineinfo="true")
    assert not made(empty_cache)


def test_a_copy_of_the_users_own_is_compiled_as_it_is(make_project: MakeProject, empty_cache: Path) -> None:
    project = make_project(
        KERNEL.replace("* 2.0", "* rustcuda_device::warp::mine()"),
        manifest=DEVICE_MANIFEST.replace('"0.1"', '{ path = "rustcuda-device" }'),
    )
    ours = Path(device_crates.__file__).parent / "device"
    for name in ("rustcuda-device", "rustcuda-macros"):
        shutil.copytree(ours / name, project / "kernels" / name, ignore=shutil.ignore_patterns("target"))
    with (project / "kernels/rustcuda-device/src/warp.rs").open("a", encoding="utf-8") as file:
        file.write("\n/// Its own.\npub fn mine() -> f32 {\n    3.0\n}\n")
    assert re.search(r"mul\.\S*f32\s.*0f40400000", build(project))
    assert not made(empty_cache)


def test_a_cargo_that_tells_nothing_compiles_it(toolchain: RustToolchain, tmp_path: Path) -> None:
    for said in ("", "[]", "{}", '{"units": []}', '{"units": [{"target": {"name": "rustcuda_device"}}]}'):
        cargo = tmp_path / "cargo"
        cargo.write_text(f"#!/bin/sh\necho '{said}'\n", encoding="utf-8")
        cargo.chmod(0o755)
        silent = dataclasses.replace(toolchain, cargo=cargo)
        assert device_library.find(silent, tmp_path, (), os.environ) is None


@pytest.mark.parametrize("wrong", [{"features": ("panic-message",)}, {"profile": {"opt_level": "1"}}])
def test_a_build_that_cargo_made_otherwise_is_made_again_without_it(
    make_project: MakeProject,
    toolchain: RustToolchain,
    monkeypatch: pytest.MonkeyPatch,
    wrong: dict[str, tuple[str, ...]],
) -> None:
    project = make_project(KERNEL, manifest=DEVICE_MANIFEST)
    right = build(project)
    library = dataclasses.replace(DeviceLibrary(toolchain, (), RELEASE), **wrong)  # type: ignore[arg-type]
    monkeypatch.setattr(device_library, "find", lambda *_: library)
    assert build(project) == right
