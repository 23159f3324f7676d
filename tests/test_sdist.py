"""Sdists: the same bytes from any folder, all that cargo asks for, and nothing that a build has made."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import struct
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from projects import MANIFEST, PLAIN_HEAD, PLAIN_KERNEL, REPOSITORY, MakeProject

import rustcuda_backend as backend
from rustcuda_backend import cli, process, scaffold
from rustcuda_backend.crate_sources import source_files
from rustcuda_backend.errors import SettingsError
from rustcuda_backend.reproducible import normalise_sdist, source_date_epoch
from rustcuda_backend.rust import RustToolchain

EPOCH = 1_700_000_000
ONE = {"capabilities": "8.0"}
DEVICE = REPOSITORY / "rustcuda_backend" / "device"


def sdist(project: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes the project's sdist with our hook."""
    out.mkdir()
    monkeypatch.chdir(project)
    return out / backend.build_sdist(str(out))


def members(path: Path) -> list[tarfile.TarInfo]:
    with tarfile.open(path) as archive:
        return archive.getmembers()


def names(path: Path) -> set[str]:
    return {member.name.partition("/")[2] for member in members(path) if member.isfile()}


def unpacked(path: Path, folder: Path) -> Path:
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
    (project,) = folder.iterdir()
    return project


# --- SOURCE_DATE_EPOCH -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"), [(None, None), ("0", 0), ("1700000000", EPOCH), ("4294967295", (1 << 32) - 1)]
)
def test_the_epoch(text: str | None, expected: int | None) -> None:
    environ = {} if text is None else {"SOURCE_DATE_EPOCH": text}
    assert source_date_epoch(environ) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "-1", "1.5", "4294967296", "²"])
def test_an_epoch_that_is_none(text: str) -> None:
    with pytest.raises(SettingsError, match="SOURCE_DATE_EPOCH must be a whole number") as raised:
        source_date_epoch({"SOURCE_DATE_EPOCH": text})
    assert f"not '{text}'" in raised.value.what
    assert raised.value.where == "environment variable SOURCE_DATE_EPOCH"
    assert "git log" in raised.value.hint


@pytest.mark.parametrize("hook", ["build_wheel", "build_sdist", "build_editable"])
def test_every_build_refuses_a_wrong_epoch(
    make_project: MakeProject,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    hook: str,
) -> None:
    monkeypatch.chdir(make_project())
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "now")
    with pytest.raises(SystemExit) as raised:
        getattr(backend, hook)(str(tmp_path))
    assert raised.value.code == 1
    assert "error: SOURCE_DATE_EPOCH must be a whole number" in capfd.readouterr().err
    assert not [path for path in tmp_path.iterdir() if path.is_file()]


# --- bytes -----------------------------------------------------------------------------------------------


def test_the_same_sources_give_the_same_sdist(
    make_project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(EPOCH))
    first = make_project(files={"kernels/Cargo.lock": "", "kernels/src/größe.rs": "", "kernels/run.sh": ""})
    (first / "kernels/run.sh").chmod(0o755)
    second = tmp_path / "a b" / "ü" / "other name"
    # Times, modes and order on disk are others.
    for path in sorted(first.rglob("*"), reverse=True):
        if path.is_file():
            copy = second / path.relative_to(first)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
            copy.chmod(0o700 if path.stat().st_mode & 0o100 else 0o600)
            os.utime(copy, (1, 1))
    made = sdist(first, tmp_path / "one", monkeypatch)
    other = sdist(second, tmp_path / "two", monkeypatch)
    assert made.name == "some_package-1.0.tar.gz"
    assert made.read_bytes() == other.read_bytes()
    listed = members(made)
    assert [member.name for member in listed] == sorted(member.name for member in listed)
    assert "some_package-1.0/kernels/src/größe.rs" in {member.name for member in listed}
    for member in listed:
        assert (member.uid, member.gid, member.uname, member.gname) == (0, 0, "", "")
        assert member.mtime == EPOCH
        expected = 0o755 if member.isdir() or member.name.endswith("run.sh") else 0o644
        assert member.mode == expected
    header = made.read_bytes()[:10]
    assert struct.unpack("<I", header[4:8]) == (EPOCH,)
    assert header[3] == 0, "no file name in gzip's header"


def test_without_an_epoch_files_keep_their_times(
    make_project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    project = make_project()
    os.utime(project / "kernels/src/lib.rs", (EPOCH, EPOCH))
    found = {member.name: member for member in members(sdist(project, tmp_path / "out", monkeypatch))}
    assert found["some_package-1.0/kernels/src/lib.rs"].mtime == EPOCH
    assert found["some_package-1.0/PKG-INFO"].mtime > EPOCH


def test_links_and_contents_stay(tmp_path: Path) -> None:
    path = tmp_path / "x.tar.gz"
    data = io.BytesIO(b"content")
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("x/a-link")
        link.type, link.linkname, link.uname = tarfile.SYMTYPE, "b", "somebody"
        archive.addfile(link)
        file = tarfile.TarInfo("x/b")
        file.size, file.mtime, file.pax_headers = 7, 1.5, {"comment": "made by me"}
        archive.addfile(file, data)
    normalise_sdist(path, None)
    with tarfile.open(path) as archive:
        assert archive.getmember("x/a-link").linkname == "b"
        content = archive.extractfile("x/b")
        assert content
        assert content.read() == b"content"
        assert archive.getmember("x/b").mtime == 1
    assert b"somebody" not in gzip.decompress(path.read_bytes())
    assert b"made by me" not in gzip.decompress(path.read_bytes())


def test_what_an_earlier_build_listed_does_not_matter(
    make_project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(EPOCH))
    project = make_project(files={"notes.txt": "mine", "MANIFEST.in": "include *.txt\n"})
    first = sdist(project, tmp_path / "first", monkeypatch)
    assert "notes.txt" in names(first)
    (project / "MANIFEST.in").write_text("\n", encoding="utf-8")
    second = sdist(project, tmp_path / "second", monkeypatch)
    assert "notes.txt" not in names(second)
    assert sdist(project, tmp_path / "third", monkeypatch).read_bytes() == second.read_bytes()


@pytest.mark.filterwarnings("ignore:Editable installation")
@pytest.mark.parametrize("mode", [{}, {"editable_mode": "strict"}])
def test_an_editable_install_changes_neither_sdist_nor_wheel(
    make_project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: dict[str, str]
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(EPOCH))
    project = make_project(
        files={"MANIFEST.in": "graft some_package\n", "kernels/Cargo.lock": LOCK, "some_package/x.fatbin": ""}
    )
    sdist_before = sdist(project, tmp_path / "first", monkeypatch)
    wheel_before = tmp_path / "first" / backend.build_wheel(str(tmp_path / "first"), ONE)
    (tmp_path / "editable").mkdir()
    backend.build_editable(str(tmp_path / "editable"), {**ONE, **mode})
    written = {path.name for path in (project / "some_package").iterdir()}
    assert written >= {"kernels_cuda.py", "kernels_cuda.pyi", "kernels_cuda.fatbin", "py.typed"}
    sdist_after = sdist(project, tmp_path / "second", monkeypatch)
    wheel_after = tmp_path / "second" / backend.build_wheel(str(tmp_path / "second"), ONE)
    assert "some_package/x.fatbin" in names(sdist_after)
    assert not [name for name in names(sdist_after) if "kernels_cuda" in name or "py.typed" in name]
    assert sdist_after.read_bytes() == sdist_before.read_bytes()
    assert wheel_after.read_bytes() == wheel_before.read_bytes()


# --- builds from an sdist --------------------------------------------------------------------------------

LOCK = """\
# This file is automatically @generated by Cargo.
# It is not intended for manual editing.
version = 4

[[package]]
name = "some-kernels"
version = "0.1.0"
"""


def test_the_wheel_of_the_sdist_is_the_wheel_of_the_tree(
    make_project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(EPOCH))
    project = make_project(files={"kernels/Cargo.lock": LOCK}, settings="locked = true")
    made = sdist(project, tmp_path / "out", monkeypatch)
    of_tree = tmp_path / "out" / backend.build_wheel(str(tmp_path / "out"), ONE)
    (tmp_path / "again").mkdir()
    monkeypatch.chdir(unpacked(made, tmp_path / "a b ü"))
    of_sdist = tmp_path / "again" / backend.build_wheel(str(tmp_path / "again"), ONE)
    assert of_sdist.read_bytes() == of_tree.read_bytes()


def test_cargo_takes_the_lock_of_an_unpacked_sdist(
    make_project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toolchain: RustToolchain
) -> None:
    """A workspace with several members, whose Cargo.lock names all of them."""
    member = MANIFEST.replace("[workspace]\n", "")
    project = make_project(
        manifest=member + "[dependencies]\nshared = { workspace = true }\n",
        settings="",
        files={
            "Cargo.toml": '[workspace]\nmembers = ["kernels", "host"]\n'
            '[workspace.dependencies]\nshared = { path = "shared" }\n',
            "shared/Cargo.toml": member.replace("some-kernels", "shared"),
            "shared/src/lib.rs": "#![no_std]\n",
            "host/Cargo.toml": member.replace("some-kernels", "host"),
            "host/src/lib.rs": "",
        },
    )
    cargo = str(toolchain.cargo)
    environ = {**os.environ, "RUSTC": str(toolchain.rustc)}
    finished = process.run([cargo, "generate-lockfile", "--offline"], cwd=project / "kernels", env=environ)
    assert finished.ok, finished.stderr
    copy = unpacked(sdist(project, tmp_path / "out", monkeypatch), tmp_path / "unpacked")
    for folder in ("", "kernels", "host"):
        argv = [cargo, "metadata", "--locked", "--offline", "--format-version=1"]
        finished = process.run(argv, cwd=copy / folder, env=environ)
        assert finished.ok, finished.stderr


def new_project(tmp_path: Path) -> Path:
    """What `init` writes, as in a fresh clone: without what git ignores."""
    plan = scaffold.new("fresh", tmp_path)
    scaffold.write(plan)
    shutil.rmtree(plan.folder / "kernels/target")
    return plan.folder


def sample_project(tmp_path: Path) -> Path:
    shutil.copytree(REPOSITORY / "sample_ext", tmp_path / "sample", ignore=shutil.ignore_patterns("target"))
    return tmp_path / "sample"


@pytest.mark.parametrize("project", [new_project, sample_project])
def test_an_unpacked_sdist_has_the_device_crate_for_plain_cargo(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    toolchain: RustToolchain,
    project: Callable[[Path], Path],
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(EPOCH))
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "empty"))
    tree = project(tmp_path)
    settings = {**ONE, "locked": "true", "offline": "true"}
    first = sdist(tree, tmp_path / "first", monkeypatch)
    of_tree = tmp_path / "first" / backend.build_wheel(str(tmp_path / "first"), settings)
    # What a build leaves in the tree makes no difference.
    assert sdist(tree, tmp_path / "second", monkeypatch).read_bytes() == first.read_bytes()

    copy = unpacked(first, tmp_path / "a b ü")
    argv = [str(toolchain.cargo), "metadata", "--locked", "--offline", "--format-version=1"]
    finished = process.run(argv, cwd=copy / "kernels", env={**os.environ, "RUSTC": str(toolchain.rustc)})
    assert finished.ok, finished.stderr
    packages = {package["name"] for package in json.loads(finished.stdout)["packages"]}
    assert packages >= {"rustcuda-device", "rustcuda-macros"}
    in_target = {name.rpartition("/")[0] for name in names(first) if "/target/" in name}
    assert all(name.startswith("kernels/target/rustcuda/device/rustcuda-") for name in in_target)

    third = sdist(copy, tmp_path / "third", monkeypatch)
    assert names(third) == names(first)
    of_sdist = tmp_path / "third" / backend.build_wheel(str(tmp_path / "third"), settings)
    assert of_sdist.read_bytes() == of_tree.read_bytes()


def test_a_clone_needs_one_command(tmp_path: Path, toolchain: RustToolchain) -> None:
    project = new_project(tmp_path)
    argv = [str(toolchain.cargo), "metadata", "--locked", "--offline", "--format-version=1"]
    environ = {**os.environ, "RUSTC": str(toolchain.rustc), "CARGO_HOME": str(tmp_path / "empty")}
    assert not process.run(argv, cwd=project / "kernels", env=environ).ok
    assert cli.main(["lend", "--project", str(project)]) == 0
    finished = process.run(argv, cwd=project / "kernels", env=environ)
    assert finished.ok, finished.stderr


def test_vendored_crates_build_from_an_unpacked_sdist(
    make_project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `cargo vendor` writes them: cargo compares every file with its checksum, hidden ones too."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(EPOCH))
    vendored = {
        "Cargo.toml": '[package]\nname = "one"\nversion = "1.0.0"\nedition = "2024"\n',
        "src/lib.rs": "#![no_std]\n",
        ".cargo_vcs_info.json": "{}",
        ".github/ci.yml": "",
    }
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in vendored.items()}
    checksum = json.dumps({"files": digests, "package": "0" * 64})
    source = "registry+https://github.com/rust-lang/crates.io-index"
    locked = f'\n[[package]]\nname = "one"\nversion = "1.0.0"\nsource = "{source}"\nchecksum = "{"0" * 64}"\n'
    head, _, kernels = LOCK.partition("\n[[package]]")
    project = make_project(
        source=PLAIN_HEAD + "use one as _;\n" + PLAIN_KERNEL,
        manifest=f'{MANIFEST}[dependencies]\none = "1"\n',
        settings="locked = true\noffline = true",
        files={
            "kernels/Cargo.lock": f'{head}{locked}\n[[package]]{kernels}dependencies = [\n "one",\n]\n',
            "kernels/.cargo/config.toml": '[source.crates-io]\nreplace-with = "mine"\n'
            '[source.mine]\ndirectory = "vendor"\n',
            **{f"kernels/vendor/one/{name}": text for name, text in vendored.items()},
            "kernels/vendor/one/.cargo-checksum.json": checksum,
        },
    )
    made = sdist(project, tmp_path / "out", monkeypatch)
    of_tree = tmp_path / "out" / backend.build_wheel(str(tmp_path / "out"), ONE)
    (tmp_path / "again").mkdir()
    monkeypatch.chdir(unpacked(made, tmp_path / "unpacked"))
    of_sdist = tmp_path / "again" / backend.build_wheel(str(tmp_path / "again"), ONE)
    assert of_sdist.read_bytes() == of_tree.read_bytes()


def test_a_copy_that_a_pattern_packs_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = new_project(tmp_path)
    source = "kernels/target/rustcuda/device/rustcuda-device/src/lib.rs"
    (project / "MANIFEST.in").write_text(f"include {source}\n", encoding="utf-8")
    (project / source).parent.mkdir(parents=True)
    (project / source).write_text("old", encoding="utf-8")
    copy = unpacked(sdist(project, tmp_path / "out", monkeypatch), tmp_path / "unpacked")
    assert (project / source).read_text(encoding="utf-8") == "old"
    assert (copy / source).read_bytes() == (DEVICE / "rustcuda-device/src/lib.rs").read_bytes()


def test_a_link_that_leads_outside_is_refused_in_an_sdist_alone(
    make_project: MakeProject,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    project = make_project()
    (project / "kernels/src/secret.rs").symlink_to(tmp_path / "secret.rs")
    (tmp_path / "secret.rs").write_text("// mine\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        sdist(project, tmp_path / "out", monkeypatch)
    said = capfd.readouterr().err
    assert "rustcuda: error: the link 'kernels/src/secret.rs' leads to" in said
    assert str(tmp_path / "secret.rs") in said
    assert not list((tmp_path / "out").iterdir())
    backend.prepare_metadata_for_build_wheel(str(tmp_path / "out"))


def test_what_is_above_the_project_is_said_in_an_sdist_alone(
    make_project: MakeProject,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    project = make_project()
    (tmp_path / "rust-toolchain.toml").touch()
    monkeypatch.chdir(project)
    backend.prepare_metadata_for_build_wheel(str(tmp_path))
    assert "rust-toolchain" not in capfd.readouterr().err
    sdist(project, tmp_path / "out", monkeypatch)
    warning = (
        f"rustcuda: warning: builds here obey {tmp_path / 'rust-toolchain.toml'}, which is above the "
        "project, so the sdist lacks it; put what they need of it into rust-toolchain.toml beside "
        "pyproject.toml\n"
    )
    assert capfd.readouterr().err.count(warning) == 1
    # A workspace is more than a warning.
    (project / "kernels/Cargo.toml").write_text(MANIFEST.replace("[workspace]\n", ""), encoding="utf-8")
    (tmp_path / "Cargo.toml").write_text("[workspace]\nmembers = ['project/kernels']\n", encoding="utf-8")
    backend.prepare_metadata_for_build_wheel(str(tmp_path))
    with pytest.raises(SystemExit):
        sdist(project, tmp_path / "second", monkeypatch)
    assert f"error: the cargo workspace in '{tmp_path}' is outside the project" in capfd.readouterr().err
    assert not list((tmp_path / "second").iterdir())


# --- setuptools' own build folder ------------------------------------------------------------------------


def test_as_a_plugin_too_no_earlier_image_gets_into_a_wheel(
    make_project: MakeProject, tmp_path: Path
) -> None:
    project = make_project(files={"some_package/mine.fatbin": "mine"})

    def wheel(capability: str, module: str) -> dict[str, bytes]:
        # Each in a process of its own, as front ends do: setuptools remembers the folders it has made.
        out = tmp_path / f"{capability}-{module}"
        code = f"from setuptools import build_meta; build_meta.build_wheel({str(out)!r})"
        settings = {"RUSTCUDA_CAPABILITIES": capability, "RUSTCUDA_MODULE": f"some_package.{module}"}
        finished = process.run([sys.executable, "-c", code], cwd=project, env={**os.environ, **settings})
        assert finished.ok, finished.stderr
        (path,) = out.glob("*.whl")
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist() if "dist-info" not in name}

    wheel("8.0", "kernels_cuda")
    second = wheel("9.0", "kernels_cuda")
    assert b"sm_80" not in second["some_package/kernels_cuda.fatbin"]
    loader = second["some_package/kernels_cuda.py"]
    assert (b"_Image(9, 0," in loader, b"_Image(8, 0," in loader) == (True, False)
    written = ("__init__.py", "other.fatbin", "other.py", "other.pyi", "py.typed")
    assert sorted(wheel("9.0", "other")) == [f"some_package/{name}" for name in written]


# --- sources elsewhere -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "table", ["[lib]\npath = '{}/lib.rs'\n", "[package.metadata]\n[lib]\npath = '../../outside/lib.rs'\n"]
)
def test_a_library_outside_the_project(make_project: MakeProject, tmp_path: Path, table: str) -> None:
    project = make_project(manifest=MANIFEST + table.format(tmp_path / "outside"))
    with pytest.raises(SettingsError, match="is outside the project, so an sdist would lack it") as raised:
        source_files(project, "kernels")
    assert "outside/lib.rs" in raised.value.what
    assert raised.value.where == str(project / "kernels/Cargo.toml")
    # What is not for an sdist needs no more than what is there.
    assert Path("kernels/Cargo.toml") in source_files(project, "kernels", complete=False)


def test_a_build_script_outside_the_project(make_project: MakeProject) -> None:
    manifest = MANIFEST.replace("[workspace]", 'build = "../../build.rs"\n[workspace]')
    with pytest.raises(SettingsError, match=r"build\.rs' is outside the project"):
        source_files(make_project(manifest=manifest), "kernels")


def test_sources_beside_the_crate_and_behind_links(
    make_project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.name == "nt":
        pytest.skip("links take rights on Windows")
    manifest = MANIFEST.replace("[workspace]", 'build = "build.rs"\n[workspace]')
    manifest += '[lib]\npath = "../shared/lib.rs"\n'
    files = {
        "shared/lib.rs": "mod more;",
        "shared/more.rs": "",
        "linked/deep/x.rs": "",
        "kernels/build.rs": "",
    }
    project = make_project(manifest=manifest, files=files)
    (project / "kernels/src/linked").symlink_to("../../linked")
    for circle in (".", "..", "../.."):
        (project / "kernels/src" / f"circle{len(circle)}").symlink_to(circle)
    (project / "linked/deep/back").symlink_to("..")
    (project / "linked/round").symlink_to("../kernels/src")
    found = {path.as_posix() for path in source_files(project, "kernels")}
    assert found == {
        *("kernels/Cargo.toml", "kernels/build.rs", "kernels/src/lib.rs", "kernels/src/linked/deep/x.rs"),
        *("shared/lib.rs", "shared/more.rs"),
    }
    made = names(sdist(project, tmp_path / "out", monkeypatch))
    assert made >= found
    assert not [name for name in made if "circle" in name]
