"""Which files a crate is built from: those that cargo's files name, and those that links lead to."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from projects import MANIFEST, MakeProject

from rustcuda_backend import cli, outer_files, process
from rustcuda_backend.cargo_files import workspace_root
from rustcuda_backend.crate_sources import device_folders, source_files
from rustcuda_backend.errors import SettingsError
from rustcuda_backend.rust import RustToolchain

DEVICE = "target/rustcuda/device/rustcuda-device"
PATCH = '[patch.crates-io]\nrustcuda-device = {{ path = "{}" }}\n'
MEMBER = MANIFEST.replace("[workspace]\n", "")


def sources(project: Path, *, complete: bool = True) -> set[str]:
    return {path.as_posix() for path in source_files(project, "kernels", complete=complete)}


# --- links -----------------------------------------------------------------------------------------------


def linked(project: Path, link: str, target: str) -> None:
    (project / link).parent.mkdir(parents=True, exist_ok=True)
    Path(project / link).symlink_to(target)


@pytest.mark.parametrize(
    ("link", "target", "expected"),
    [
        ("kernels/src/a.rs", "../../shared/a.rs", "kernels/src/a.rs"),
        ("kernels/src/more", "../../shared", "kernels/src/more/a.rs"),
        ("kernels/src/more", "../../shared/chain", "kernels/src/more/a.rs"),
        ("kernels/Cargo.lock", "../shared/a.rs", "kernels/Cargo.lock"),
        ("kernels/.cargo", "../configured", "kernels/.cargo/config.toml"),
        ("rust-toolchain.toml", "shared/a.rs", "rust-toolchain.toml"),
    ],
)
@pytest.mark.parametrize("absolute", [False, True])
def test_links_inside_the_project_stand_for_what_they_lead_to(
    make_project: MakeProject, link: str, target: str, expected: str, absolute: bool
) -> None:
    project = make_project(files={"shared/a.rs": "", "configured/config.toml": ""})
    linked(project, "shared/chain", ".")
    where = os.path.normpath(project / Path(link).parent / target) if absolute else target
    linked(project, link, where)
    for complete in (True, False):
        assert sources(project, complete=complete) == {
            *("kernels/Cargo.toml", "kernels/src/lib.rs", expected),
        }


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("kernels/src/a.rs", "../../../elsewhere/a.rs"),
        ("kernels/src/a.rs", "../../inside/a.rs"),
        ("kernels/src/more", "../../../elsewhere"),
        ("kernels/src/root", "/"),
        ("kernels/Cargo.lock", "../../elsewhere/a.rs"),
        ("kernels/.cargo", "../../elsewhere"),
        ("Cargo.lock", "../elsewhere/a.rs"),
        ("helper", "../elsewhere"),
        ("helper/src", "../../elsewhere"),
        ("helper/src/a.rs", "../../../elsewhere/a.rs"),
    ],
)
def test_links_that_lead_outside(make_project: MakeProject, tmp_path: Path, link: str, target: str) -> None:
    manifest = f'{MANIFEST}[dependencies]\nhelper = {{ path = "../helper" }}\n'
    project = make_project(manifest=manifest)
    for name in ("a.rs", "config.toml", "Cargo.toml"):
        (tmp_path / "elsewhere").mkdir(exist_ok=True)
        (tmp_path / "elsewhere" / name).touch()
    linked(project, "inside/a.rs", "../../elsewhere/a.rs")
    linked(project, link, target)
    with pytest.raises(SettingsError) as raised:
        sources(project)
    real = os.path.realpath(project / link)
    assert raised.value.what == (
        f"the link '{link}' leads to '{real}', which is outside the project, so an sdist would lack it"
    )
    assert raised.value.where == str(project / link)
    assert "put what it is to lead to into the project" in raised.value.hint
    assert "kernels/src/lib.rs" in sources(project, complete=False)


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("kernels/src/a.rs", "b.rs"),
        ("kernels/src/a.rs", "/nowhere/at/all"),
        ("kernels/src/a.rs", "a.rs"),
        ("kernels/more", "kernels"),
        ("kernels/Cargo.lock", "../Cargo.lock"),
        ("helper", "nowhere"),
    ],
)
def test_links_that_lead_nowhere(make_project: MakeProject, link: str, target: str) -> None:
    project = make_project(manifest=f'{MANIFEST}[dependencies]\nhelper = {{ path = "../helper" }}\n')
    linked(project, link, target)
    with pytest.raises(SettingsError) as raised:
        sources(project)
    real = os.path.realpath(project / link)
    assert raised.value.what == f"the link '{link}' leads to '{real}', which does not exist"
    assert sources(project, complete=False) == {"kernels/Cargo.toml", "kernels/src/lib.rs"}


def test_links_that_lead_back(make_project: MakeProject) -> None:
    project = make_project(files={"shared/b/x.rs": ""})
    linked(project, "kernels/src/again", ".")
    linked(project, "kernels/src/up", "..")
    linked(project, "kernels/src/shared", "../../shared")
    linked(project, "shared/b/to-kernels", "../../kernels")
    linked(project, "shared/b/again", "..")
    assert sources(project) == {"kernels/Cargo.toml", "kernels/src/lib.rs", "kernels/src/shared/b/x.rs"}


def test_links_that_no_build_reads_are_nobodys_business(make_project: MakeProject) -> None:
    project = make_project()
    for link in ("kernels/target/debug", "kernels/.git/x", "kernels/src/.#lib.rs", "some_package/x.py"):
        linked(project, link, "/nowhere")
    assert sources(project) == {"kernels/Cargo.toml", "kernels/src/lib.rs"}


def test_a_crate_by_a_link_is_there_under_both_names(make_project: MakeProject) -> None:
    project = make_project()
    (project / "kernels").rename(project / "rust")
    linked(project, "kernels", "rust")
    assert sources(project) == {
        f"{folder}/{name}" for folder in ("kernels", "rust") for name in ("Cargo.toml", "src/lib.rs")
    }


def test_what_is_no_file_is_left_out(make_project: MakeProject) -> None:
    project = make_project()
    os.mkfifo(project / "kernels/src/pipe")
    assert sources(project) == {"kernels/Cargo.toml", "kernels/src/lib.rs"}


# --- folders that programs fill ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["target", "node_modules", "__pycache__", "build", "dist"])
@pytest.mark.parametrize("crate", ["kernels", "."])
def test_a_module_may_be_called_like_a_folder_that_programs_fill(
    make_project: MakeProject, name: str, crate: str
) -> None:
    files = {f"{crate}/src/{name}/mod.rs": "", f"{crate}/src/{name}/deep/{name}/table.bin": ""}
    project = make_project(files=files | {f"{crate}/Cargo.toml": MANIFEST})
    found = {path.as_posix() for path in source_files(project, crate)}
    assert found >= {os.path.normpath(path) for path in files}


def test_a_build_script_in_a_folder_of_setuptools_name(make_project: MakeProject) -> None:
    manifest = MANIFEST.replace("[workspace]", 'build = "build/main.rs"\n[workspace]')
    project = make_project(files={"Cargo.toml": manifest, "build/main.rs": "", "dist/old.whl": ""})
    found = {path.as_posix() for path in source_files(project, ".")}
    assert "build/main.rs" in found
    assert "dist/old.whl" not in found


# What programs leave, each beside or with what shows whose it is.
FILLED = {
    "kernels/target/release/x.rs": "",
    "kernels/src/deep/target/CACHEDIR.TAG": "",
    "kernels/src/deep/target/x.rs": "",
    "kernels/web/package.json": "{}",
    "kernels/web/node_modules/one/x.rs": "",
    "kernels/other/node_modules/.package-lock.json": "{}",
    "kernels/other/node_modules/one/x.rs": "",
    "kernels/scripts/__pycache__/make.cpython-312.pyc": "",
    "kernels/scripts/make.py": "",
}


def test_what_programs_fill_is_no_source(make_project: MakeProject) -> None:
    project = make_project(files=FILLED)
    (project / "kernels/__pycache__").mkdir()
    assert sources(project) == {
        *("kernels/Cargo.toml", "kernels/src/lib.rs", "kernels/scripts/make.py", "kernels/web/package.json"),
    }


# --- cargo's configuration -------------------------------------------------------------------------------


def test_folders_that_cargos_configuration_names(make_project: MakeProject) -> None:
    project = make_project(
        files={
            "kernels/.cargo/config.toml": '[patch.crates-io]\na = { path = "../a" }\nb = { git = "x" }\n',
            ".cargo/config": 'paths = ["b"]\n[source.mine]\ndirectory = "c"\n',
            **{f"{name}/Cargo.toml": MEMBER for name in "abcd"},
        }
    )
    assert sources(project) == {
        *("kernels/Cargo.toml", "kernels/src/lib.rs", "kernels/.cargo/config.toml", ".cargo/config"),
        *("a/Cargo.toml", "b/Cargo.toml", "c/Cargo.toml"),
    }


def test_a_vendored_crate_is_whole(make_project: MakeProject) -> None:
    """cargo holds each file against its checksum, also those that no compiler reads."""
    files = (".cargo-checksum.json", ".cargo_vcs_info.json", ".github/ci.yml", "target/x", "src/target/.y")
    project = make_project(files={f"kernels/vendor/one/{name}": "" for name in files})
    assert sources(project) == {
        *("kernels/Cargo.toml", "kernels/src/lib.rs"),
        *(f"kernels/vendor/one/{name}" for name in files),
    }


def test_a_patch_that_leads_outside(make_project: MakeProject, tmp_path: Path) -> None:
    project = make_project(files={"kernels/.cargo/config.toml": PATCH.format("../../x")})
    with pytest.raises(SettingsError, match="is outside the project") as raised:
        sources(project)
    assert str(tmp_path / "x") in raised.value.what
    assert raised.value.where == str(project / "kernels/.cargo/config.toml")


@pytest.mark.parametrize(
    "text", ["patch = 1\n", "[patch]\ncrates-io = 1\n", "paths = 1\n[source]\nx = 1\n", "="]
)
def test_a_configuration_that_cargo_refuses(make_project: MakeProject, text: str) -> None:
    project = make_project(files={"kernels/.cargo/config.toml": text})
    assert sources(project) == {"kernels/.cargo/config.toml", "kernels/Cargo.toml", "kernels/src/lib.rs"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, []),
        ({"kernels/.cargo/config.toml": PATCH.format(DEVICE)}, ["kernels"]),
        ({".cargo/config.toml": PATCH.format(f"kernels/{DEVICE}")}, ["kernels"]),
        ({"kernels/.cargo/config": PATCH.format(f"../{DEVICE}")}, [""]),
        ({"Cargo.toml": f"[workspace]\nmembers = ['kernels']\n{PATCH.format(DEVICE)}"}, [""]),
        ({"kernels/.cargo/config.toml": PATCH.format("../mine"), "mine/Cargo.toml": MEMBER}, []),
        ({"kernels/.cargo/config.toml": PATCH.format(f"../../{DEVICE}")}, []),
    ],
)
def test_where_the_device_crate_is_looked_for(
    make_project: MakeProject, files: dict[str, str], expected: list[str]
) -> None:
    project = make_project(files=files)
    folders = [Path(folder, "target/rustcuda/device") for folder in expected]
    assert device_folders(project, "kernels") == folders
    # What is there is a copy, and no source.
    for folder in folders:
        (project / folder / "rustcuda-device").mkdir(parents=True)
        (project / folder / "rustcuda-device/Cargo.toml").touch()
    assert not [name for name in sources(project, complete=False) if "target" in name]


def test_files_that_cargos_configuration_includes(make_project: MakeProject) -> None:
    project = make_project(
        files={
            "kernels/.cargo/config.toml": 'include = ["more/a.toml", { path = "gone", optional = true }]\n',
            # Round and round; paths in it are relative to `.cargo`.
            "kernels/.cargo/more/a.toml": 'include = ["../../b.toml", "../config.toml", 1]\n'
            + PATCH.format("../../mine"),
            "kernels/b.toml": 'paths = ["theirs"]\n',
            "mine/Cargo.toml": MEMBER,
            "theirs/Cargo.toml": MEMBER,
            "kernels/.cargo/other.toml": "",
            ".cargo/config": 'include = ["../shared/c.toml"]\n',
            "shared/c.toml": "",
        }
    )
    included = {"kernels/.cargo/more/a.toml", "kernels/b.toml", "shared/c.toml"}
    configured = {"kernels/.cargo/config.toml", ".cargo/config", *included}
    assert sources(project) == {
        *("kernels/Cargo.toml", "kernels/src/lib.rs", "mine/Cargo.toml", "theirs/Cargo.toml", *configured),
    }


@pytest.mark.parametrize("text", ['include = "a.toml"\n', "include = 1\n", "include = [{ path = 1 }]\n"])
def test_an_include_that_cargo_refuses(make_project: MakeProject, text: str) -> None:
    project = make_project(files={".cargo/config.toml": text, ".cargo/a.toml": ""})
    assert sources(project) == {".cargo/config.toml", "kernels/Cargo.toml", "kernels/src/lib.rs"}


def test_an_included_file_outside_the_project(make_project: MakeProject, tmp_path: Path) -> None:
    project = make_project(files={"kernels/.cargo/config.toml": 'include = ["../../../shared.toml"]\n'})
    assert "kernels/.cargo/config.toml" in sources(project), "cargo complains if it is missing"
    (tmp_path / "shared.toml").touch()
    with pytest.raises(SettingsError) as raised:
        sources(project)
    assert raised.value.what == (
        f"the configuration '{tmp_path / 'shared.toml'}' is outside the project, so an sdist would lack it"
    )
    assert raised.value.where == str(project / "kernels/.cargo/config.toml")
    assert "kernels/src/lib.rs" in sources(project, complete=False)


# --- workspaces ------------------------------------------------------------------------------------------


def laid_out(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def member(table: str = "", name: str = "some-kernels") -> str:
    return f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2024"\n{table}'


# Files beside the project, the kernel crate's manifest, and the folder of its workspace.
WORKSPACES = {
    "above": ({"Cargo.toml": '[workspace]\nmembers = ["project/kernels"]\n'}, member(), "."),
    "by a pattern": ({"Cargo.toml": '[workspace]\nmembers = ["project/*"]\n'}, member(), "."),
    "far above": ({"../Cargo.toml": '[workspace]\nmembers = ["*/project/kernels"]\n'}, member(), ".."),
    "excluded": ({"Cargo.toml": '[workspace]\nexclude = ["project"]\n'}, member(), None),
    "excluded, but a member": (
        {"Cargo.toml": '[workspace]\nexclude = ["project"]\nmembers = ["project/kernels"]\n'},
        member(),
        ".",
    ),
    "no workspace": ({"Cargo.toml": member(name="other"), "src/lib.rs": ""}, member(), None),
    "its own": ({"Cargo.toml": "[workspace]\n"}, member("[workspace]\n"), None),
    "named": (
        {"ws/Cargo.toml": '[workspace]\nmembers = ["../project/kernels"]\n'},
        member('workspace = "../../ws"\n'),
        "ws",
    ),
}


@pytest.mark.parametrize("case", WORKSPACES)
def test_a_workspace_outside_the_project(
    make_project: MakeProject, tmp_path: Path, toolchain: RustToolchain, case: str
) -> None:
    files, manifest, root = WORKSPACES[case]
    project = make_project(manifest=manifest, folder="whole/project")
    laid_out(tmp_path / "whole", files)
    expected = Path(os.path.normpath(tmp_path / "whole" / root)) if root else None
    crate = project / "kernels"
    assert workspace_root(crate) == expected
    # The same that cargo says.
    argv = [str(toolchain.cargo), "locate-project", "--workspace"]
    finished = process.run(argv, cwd=crate, env={**os.environ, "RUSTC": str(toolchain.rustc)})
    assert Path(json.loads(finished.stdout)["root"]).parent == (expected or crate), finished.stderr
    assert "kernels/src/lib.rs" in sources(project, complete=False)
    if not expected:
        assert "kernels/src/lib.rs" in sources(project)
        return
    with pytest.raises(SettingsError) as raised:
        sources(project)
    assert raised.value.what == (
        f"the cargo workspace in '{expected}' is outside the project, so an sdist would lack it, "
        "with its Cargo.lock and profiles"
    )
    assert raised.value.where == str(crate / "Cargo.toml")
    assert "put pyproject.toml beside the workspace's Cargo.toml" in raised.value.hint


def test_a_dependency_of_a_workspace_outside(make_project: MakeProject, tmp_path: Path) -> None:
    """Of another workspace than the kernels', which matters if it takes something over from that."""
    manifest = MANIFEST + '[dependencies]\nhelper = { path = "../helper" }\n'
    project = make_project(manifest=manifest, files={"helper/Cargo.toml": member(name="helper")})
    laid_out(tmp_path, {"Cargo.toml": '[workspace]\nmembers = ["project/helper"]\n'})
    assert "helper/Cargo.toml" in sources(project)
    laid_out(project, {"helper/Cargo.toml": member("[lints]\nworkspace = true\n", "helper")})
    with pytest.raises(SettingsError, match="the cargo workspace in ") as raised:
        sources(project)
    assert raised.value.where == str(project / "helper/Cargo.toml")


def test_a_workspace_that_a_manifest_names_in_the_project(
    make_project: MakeProject, toolchain: RustToolchain
) -> None:
    project = make_project(
        manifest=member('workspace = "../ws"\n[dependencies]\nhelper = { workspace = true }\n'),
        files={
            "ws/Cargo.toml": '[workspace]\nmembers = ["../kernels"]\n'
            '[workspace.dependencies]\nhelper = { path = "../helper" }\n',
            "ws/Cargo.lock": "",
            "ws/notes.txt": "",
            "helper/Cargo.toml": member('workspace = "../ws"\n', "helper"),
            "helper/src/lib.rs": "",
        },
    )
    found = sources(project)
    assert found == {
        *("kernels/Cargo.toml", "kernels/src/lib.rs", "ws/Cargo.toml", "ws/Cargo.lock"),
        *("helper/Cargo.toml", "helper/src/lib.rs"),
    }
    for name in [path for path in project.rglob("*") if path.is_file()]:
        if name.relative_to(project).as_posix() not in found:
            name.unlink()
    argv = [str(toolchain.cargo), "metadata", "--offline", "--format-version=1"]
    environ = {**os.environ, "RUSTC": str(toolchain.rustc)}
    finished = process.run(argv, cwd=project / "kernels", env=environ)
    assert finished.ok, finished.stderr
    assert json.loads(finished.stdout)["workspace_root"] == str(project / "ws")


# --- cargo's and rustup's files above the project --------------------------------------------------------


def warned(project: Path, toolchain: str = "", **environ: str) -> list[str]:
    return [
        text.split(", which", maxsplit=1)[0].removeprefix("builds here obey ")
        for text in outer_files.warnings(project, "kernels", toolchain, environ)
    ]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, []),
        ({".cargo/config.toml": "[build]\nrustflags = ['-Copt-level=1']\n"}, [".cargo/config.toml"]),
        ({".cargo/config": "[profile.release]\nlto = false\n"}, [".cargo/config"]),
        ({"whole/.cargo/config.toml": "paths = ['x']\n"}, ["whole/.cargo/config.toml"]),
        ({".cargo/config.toml": "include = ['a.toml']\n", ".cargo/a.toml": "[env]\n"}, [".cargo/a.toml"]),
        ({".cargo/config.toml": "[alias]\nb = 'build'\n[net]\noffline = true\n"}, []),
        ({".cargo/config.toml": ""}, []),
        ({"home/config.toml": "[build]\njobs = 1\n"}, []),
        ({"rust-toolchain": "nightly\n"}, ["rust-toolchain"]),
        ({"rust-toolchain.toml": "", "whole/rust-toolchain": ""}, ["whole/rust-toolchain"]),
        ({"rust-toolchain.toml": "", "whole/project/rust-toolchain.toml": ""}, []),
        ({"rust-toolchain.toml": "", "whole/project/kernels/rust-toolchain": ""}, []),
    ],
)
def test_files_above_the_project_that_builds_obey(
    make_project: MakeProject, tmp_path: Path, files: dict[str, str], expected: list[str]
) -> None:
    project = make_project(folder="whole/project")
    laid_out(tmp_path, files)
    assert warned(project) == [str(tmp_path / name) for name in expected]


def test_files_above_the_project_that_builds_do_not_obey(make_project: MakeProject, tmp_path: Path) -> None:
    project = make_project()
    laid_out(tmp_path, {".cargo/config.toml": "[build]\njobs = 1\n", "rust-toolchain": "nightly"})
    assert len(warned(project)) == 2
    assert warned(project, CARGO_HOME=str(tmp_path / ".cargo")) == [str(tmp_path / "rust-toolchain")]
    assert warned(project, toolchain="stable") == [str(tmp_path / ".cargo/config.toml")]


# --- the command -----------------------------------------------------------------------------------------


def test_lend(make_project: MakeProject, capfd: pytest.CaptureFixture[str]) -> None:
    project = make_project(files={"kernels/.cargo/config.toml": PATCH.format(DEVICE)})
    for _ in range(2):
        assert cli.main(["lend", "--project", str(project)]) == 0
        assert capfd.readouterr().out == f"{project / 'kernels' / DEVICE}\n"
        assert (project / "kernels" / DEVICE / "src/lib.rs").is_file()
    assert (project / "kernels/target/rustcuda/.gitignore").read_text(encoding="utf-8") == "*\n"


@pytest.mark.parametrize(
    ("pyproject", "arguments", "message"),
    [
        (None, [], "nothing says where cargo is to look for rustcuda-device"),
        (None, ["-C", "crate=other"], "there is no crate in 'other'"),
        ("", [], "there is no project with kernels here"),
    ],
)
def test_lend_refuses(
    make_project: MakeProject,
    capfd: pytest.CaptureFixture[str],
    pyproject: str | None,
    arguments: list[str],
    message: str,
) -> None:
    project = make_project()
    if pyproject is not None:
        (project / "pyproject.toml").write_text(pyproject, encoding="utf-8")
    with pytest.raises(SystemExit) as raised:
        cli.main(["lend", "--project", str(project), *arguments])
    assert raised.value.code == 1
    said = capfd.readouterr().err
    assert message in said
    assert not (project / "kernels/target").exists()
    if "nothing says" in message:
        assert f"write into {project / 'kernels/.cargo/config.toml'}\n" in said
        assert f'rustcuda:     rustcuda-device = {{ path = "{DEVICE}" }}\n' in said


def test_cuda_oxides_configuration_comes_along(make_project: MakeProject) -> None:
    project = make_project(files={".cargo/cuda-oxide.toml": "", "kernels/.cargo/other.toml": ""})
    assert Path(".cargo/cuda-oxide.toml") in source_files(project, "kernels")
