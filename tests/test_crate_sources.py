"""Which files a crate is built from: those that cargo's files name, and those that links lead to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from projects import MANIFEST, MakeProject

from rustcuda_backend import cli
from rustcuda_backend.crate_sources import device_folders, source_files
from rustcuda_backend.errors import SettingsError

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
