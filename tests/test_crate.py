"""The kernel crate as cargo sees it, and the device crate that is lent to it."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from projects import MANIFEST, REPOSITORY, MakeProject

from rustcuda_backend import crate as crate_module
from rustcuda_backend import device_crates, process
from rustcuda_backend.crate import Crate, crate_directory, load_crate
from rustcuda_backend.errors import CompileError, SettingsError
from rustcuda_backend.rust import RustToolchain
from rustcuda_backend.settings import Settings, read_settings

DEVICE = REPOSITORY / "rustcuda_backend/device"
WITH_DEVICE = MANIFEST + '[dependencies]\nrustcuda-device = "0.1"\n'
MEMBER = WITH_DEVICE.replace("[workspace]\n", "")
PATCH = "patch.crates-io.rustcuda-device.path='{}target/rustcuda/device/rustcuda-device'"

# As it is committed; cargo's own.
LOCK = (REPOSITORY / "sample_ext/kernels/Cargo.lock").read_text(encoding="utf-8")
LOCK = LOCK.replace('"sample-kernels"', '"some-kernels"')


def settings(**table: object) -> Settings:
    """Settings under which cargo asks no registry."""
    return read_settings({"crate": "kernels", "offline": True, **table}, {}, {})


def load(directory: Path, toolchain: RustToolchain, **table: object) -> Crate:
    return load_crate(directory, settings(**table), toolchain, os.environ)


def said_by_cargo(crate: Crate, toolchain: RustToolchain) -> str:
    argv = (toolchain.cargo, "metadata", "--format-version=1", *crate.cargo_arguments)
    finished = process.run(argv, cwd=crate.directory)
    assert finished.ok, finished.stderr
    # Other tests may hold cargo's cache for a moment.
    return "".join(line for line in finished.stderr.splitlines() if "Blocking waiting" not in line)


def copied(workspace: Path) -> dict[str, bytes]:
    """The lent crates' files."""
    folder = workspace / "target/rustcuda/device"
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def shipped() -> dict[str, bytes]:
    folders = [DEVICE / "rustcuda-device", DEVICE / "rustcuda-macros"]
    files = [path for folder in folders for path in [folder / "Cargo.toml", *(folder / "src").rglob("*.rs")]]
    return {path.relative_to(DEVICE).as_posix(): path.read_bytes() for path in files}


def test_a_plain_crate(make_project: MakeProject, toolchain: RustToolchain) -> None:
    kernels = make_project() / "kernels"
    crate = load(kernels, toolchain)
    assert crate == Crate(
        directory=kernels,
        package="some-kernels",
        name="some_kernels",
        workspace=kernels,
        target_directory=kernels / "target",
        graph=("some_kernels",),
        declares_no_std=True,
        has_host_part=False,
        cargo_arguments=("--offline",),
    )
    assert crate.passes_directory == kernels / "target/rustcuda"
    assert not (kernels / "target").exists(), "nothing is lent unasked"
    lock = (kernels / "Cargo.lock").read_text(encoding="utf-8")
    assert "rustcuda" not in lock
    assert "unused" not in lock


@pytest.mark.parametrize("kind", ["cdylib", "staticlib", "rlib"])
def test_the_librarys_own_name_and_kind(
    make_project: MakeProject, toolchain: RustToolchain, kind: str
) -> None:
    manifest = f'{MANIFEST}[lib]\nname = "other_name"\ncrate-type = ["{kind}"]\n[features]\nmore = []\n'
    project = make_project(manifest=manifest, files={"kernels/build.rs": "fn main() {}"})
    crate = load(project / "kernels", toolchain, features=["more"])
    assert (crate.package, crate.name, crate.graph) == ("some-kernels", "other_name", ("other_name",))
    assert crate.cargo_arguments == ("--offline", "--features", "more")
    assert crate.has_host_part, "the build script"
    with pytest.raises(CompileError, match="cargo cannot read the kernel crate") as raised:
        load(project / "kernels", toolchain, features=["less"])
    assert "less" in raised.value.what


def test_a_crate_of_proc_macros_has_no_library(make_project: MakeProject, toolchain: RustToolchain) -> None:
    project = make_project(manifest=MANIFEST + "[lib]\nproc-macro = true\n")
    with pytest.raises(SettingsError, match="the crate 'some-kernels' has no library"):
        load(project / "kernels", toolchain)


@pytest.mark.parametrize("table", [{}, {"locked": True}])
def test_the_device_crate_is_lent_and_the_lock_stays_as_it_is(
    make_project: MakeProject,
    toolchain: RustToolchain,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    table: dict[str, bool],
) -> None:
    # A cargo that has never seen a registry, as a build machine without a network has it.
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "cargo"))
    kernels = make_project(manifest=WITH_DEVICE, files={"kernels/Cargo.lock": LOCK}) / "kernels"
    crate = load(kernels, toolchain, **table)
    assert crate.cargo_arguments[-2:] == ("--config", PATCH.format(""))
    assert ("--locked" in crate.cargo_arguments) == ("locked" in table)
    assert crate.graph == ("rustcuda_device", "rustcuda_macros", "some_kernels")
    assert crate.has_host_part, "the device crate's macros"
    assert copied(kernels) == shipped()
    assert said_by_cargo(crate, toolchain) == ""
    assert (kernels / "Cargo.lock").read_text(encoding="utf-8") == LOCK


def test_a_lock_is_made_where_there_is_none(make_project: MakeProject, toolchain: RustToolchain) -> None:
    kernels = make_project(manifest=WITH_DEVICE) / "kernels"
    load(kernels, toolchain)
    assert (kernels / "Cargo.lock").read_text(encoding="utf-8") == LOCK


def test_a_device_crate_that_the_crate_names_by_path_is_its_own(
    make_project: MakeProject, toolchain: RustToolchain
) -> None:
    named = f"rustcuda-device = {{ path = '{DEVICE / 'rustcuda-device'}' }}\n"
    kernels = make_project(manifest=f"{MANIFEST}[dependencies]\n{named}") / "kernels"
    crate = load(kernels, toolchain)
    assert crate.cargo_arguments == ("--offline",)
    assert crate.graph == ("rustcuda_device", "rustcuda_macros", "some_kernels")
    assert not (kernels / "target").exists()
    assert said_by_cargo(crate, toolchain) == ""


def test_a_changed_device_crate_replaces_the_copy(
    make_project: MakeProject, toolchain: RustToolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = make_project(manifest=WITH_DEVICE) / "kernels"
    load(kernels, toolchain)
    source = kernels / "target/rustcuda/device/rustcuda-device/src/lib.rs"
    written = source.stat().st_mtime_ns
    load(kernels, toolchain)
    assert source.stat().st_mtime_ns == written, "an unchanged copy stays, so cargo compiles nothing anew"
    changed = tmp_path / "device"
    shutil.copytree(DEVICE, changed, ignore=shutil.ignore_patterns("target"))
    (changed / "rustcuda-device/src/more.rs").write_text("// more\n", encoding="utf-8")
    (changed / "rustcuda-device/target/debug").mkdir(parents=True)
    (changed / "rustcuda-device/target/debug/built.rs").touch()
    monkeypatch.setattr(device_crates, "_DEVICE_SOURCES", changed)
    load(kernels, toolchain)
    assert copied(kernels) == {**shipped(), "rustcuda-device/src/more.rs": b"// more\n"}
    assert sorted(path.name for path in (kernels / "target/rustcuda").iterdir() if path.is_dir()) == [
        "device"
    ]


def test_builds_at_once_lend_one_copy(
    make_project: MakeProject, toolchain: RustToolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = make_project(manifest=WITH_DEVICE, files={"kernels/Cargo.lock": LOCK}) / "kernels"
    together = Barrier(4)
    copy = device_crates.lend_device_crate

    def all_at_once(workspace: Path, directory: Path) -> tuple[str, ...]:
        together.wait()
        return copy(workspace, directory)

    monkeypatch.setattr(crate_module, "lend_device_crate", all_at_once)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            shutil.rmtree(kernels / "target", ignore_errors=True)
            loaded = [pool.submit(load, kernels, toolchain) for _ in range(4)]
            assert len({item.result() for item in loaded}) == 1
            assert copied(kernels) == shipped()


def test_a_member_of_a_workspace(make_project: MakeProject, toolchain: RustToolchain) -> None:
    other = MANIFEST.replace("[workspace]\n", "").replace("some-kernels", "other")
    project = make_project(
        manifest=MEMBER,
        files={
            "Cargo.toml": '[workspace]\nmembers = ["kernels", "other"]\nresolver = "3"\n',
            "other/Cargo.toml": other,
            "other/src/lib.rs": "",
        },
    )
    crate = load(project / "kernels", toolchain)
    assert (crate.workspace, crate.target_directory) == (project, project / "target")
    assert crate.cargo_arguments[-1] == PATCH.format("../")
    assert copied(project) == shipped()
    lock = (project / "Cargo.lock").read_bytes()
    assert said_by_cargo(crate, toolchain) == ""
    assert load(project / "kernels", toolchain, locked=True).workspace == project
    # What another member needs is lent for this one too: they share the lock.
    assert load(project / "other", toolchain, locked=True).cargo_arguments[-1] == PATCH.format("../")
    assert (project / "Cargo.lock").read_bytes() == lock
    assert not (project / "kernels/Cargo.lock").exists()


def test_a_workspace_without_a_crate_of_its_own(make_project: MakeProject, toolchain: RustToolchain) -> None:
    project = make_project(
        manifest='[workspace]\nmembers = ["a"]\nresolver = "3"\n',
        files={"kernels/a/Cargo.toml": MEMBER, "kernels/a/src/lib.rs": ""},
    )
    with pytest.raises(SettingsError, match="holds a workspace, not a crate"):
        load(project / "kernels", toolchain)
    assert load(project / "kernels/a", toolchain).workspace == project / "kernels"


def test_a_target_directory_elsewhere(
    make_project: MakeProject, toolchain: RustToolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path / "a b/built"))
    kernels = make_project(manifest=WITH_DEVICE) / "kernels"
    crate = load(kernels, toolchain)
    assert crate.passes_directory == tmp_path / "a b/built/rustcuda"
    assert crate.cargo_arguments[-1] == PATCH.format(""), "inside the workspace, at a relative place"
    assert copied(kernels) == shipped()


def test_the_crates_folder(make_project: MakeProject, tmp_path: Path) -> None:
    project = make_project(folder="a b/ü")
    assert crate_directory(project, settings()) == project / "kernels"
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/Cargo.toml").touch()
    (project / "link").symlink_to(tmp_path / "outside", target_is_directory=True)
    (project / "circle").symlink_to("circle")
    for name, what in (
        ("circle", "there is no crate in 'circle'"),
        ("link", "the crate 'link' is outside the project"),
        ("../ü2", "the crate '../ü2' is outside the project"),
        ("some_package", "there is no crate in 'some_package'"),
    ):
        with pytest.raises(SettingsError) as raised:
            crate_directory(project, settings(crate=name))
        assert what in raised.value.what
