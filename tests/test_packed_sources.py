"""Warnings of an sdist that lacks what builds need."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from projects import PLAIN_HEAD, PLAIN_KERNEL, MakeProject

import rustcuda_backend as backend
from rustcuda_backend import packed_sources

READS = """\
static _TEXT: &str = include_str!("../../data/table.txt");
#[path = "../../more/extra.rs"]
mod extra;
"""
LOCK = 'version = 4\n[[package]]\nname = "k"\nversion = "0.1.0"\n'


def packed(project: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    out.mkdir()
    monkeypatch.chdir(project)
    with tarfile.open(out / backend.build_sdist(str(out))) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


@pytest.fixture
def reading(make_project: MakeProject) -> Path:
    """A project whose crate includes files that lie outside its folder."""
    project = make_project(PLAIN_HEAD + READS + PLAIN_KERNEL)
    for name, text in (("data/table.txt", "1 2 3\n"), ("more/extra.rs", "//! Nothing.\n")):
        (project / name).parent.mkdir()
        (project / name).write_text(text)
    return project


def test_what_only_source_code_names_is_said_once_a_build_has_read_it(
    reading: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    first = packed(reading, tmp_path / "before", monkeypatch)
    assert "rustcuda: warning" not in capfd.readouterr().err
    backend.build_wheel(str(tmp_path), {"capabilities": "8.0"})
    capfd.readouterr()

    after = packed(reading, tmp_path / "after", monkeypatch)
    assert after == first | {"kernels/Cargo.lock"}, "an sdist does not depend on builds, but for cargo's lock"
    said = capfd.readouterr().err
    assert "the last build read data/table.txt, more/extra.rs, which the sdist lacks" in said
    assert 'write "include data/table.txt" into MANIFEST.in' in said

    (reading / "MANIFEST.in").write_text("include data/table.txt\nrecursive-include more *.rs\n")
    assert {"data/table.txt", "more/extra.rs"} <= packed(reading, tmp_path / "mended", monkeypatch)
    assert "rustcuda: warning" not in capfd.readouterr().err


@pytest.mark.parametrize("place", ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "configuration"])
def test_builds_are_found_where_cargo_has_its_target_directory(
    make_project: MakeProject, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    project = make_project()
    folder = project / "built" / "rustcuda" / "sm_80" / "nvptx64-nvidia-cuda" / "release"
    folder.mkdir(parents=True)
    (project / "table.txt").touch()
    (folder / "libk.d").write_text(f"{folder}/libk.a: {project}/table.txt\n", encoding="utf-8")
    assert not list(packed_sources.warnings(project, "kernels", [], []))
    if place == "configuration":
        (project / ".cargo").mkdir()
        (project / ".cargo" / "config.toml").write_text('[build]\ntarget-dir = "built"\n', encoding="utf-8")
    else:
        monkeypatch.setenv(place, "../built")
    (said,) = packed_sources.warnings(project, "kernels", [], [])
    assert "the last build read table.txt, which the sdist lacks" in said


def test_sources_that_the_manifest_names_are_needed(make_project: MakeProject) -> None:
    """The library with all beside it, the build script alone where it lies in the crate's folder."""
    manifest = '[package]\nname = "k"\nbuild = "make.rs"\n[lib]\npath = "lib/k.rs"\n'
    project = make_project(manifest=manifest)
    names = ["lib/k.rs", "lib/more/part.rs", "make.rs", "notes.rs"]
    sources = [f"kernels/{name}" for name in names]
    (said,) = packed_sources.warnings(project, "kernels", sources, [])
    assert "leaves kernels/lib/k.rs, kernels/lib/more/part.rs, kernels/make.rs out" in said


@pytest.mark.parametrize(
    ("line", "lacks"),
    [
        ("prune kernels", "kernels/Cargo.lock, kernels/Cargo.toml, kernels/src/lib.rs"),
        ("global-exclude *.rs", "kernels/src/lib.rs"),
        ("exclude kernels/Cargo.lock", "kernels/Cargo.lock"),
        ("prune kernels/docs", ""),
    ],
)
def test_what_a_manifest_leaves_out_is_said_where_builds_need_it(
    make_project: MakeProject,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    line: str,
    lacks: str,
) -> None:
    project = make_project(PLAIN_HEAD + PLAIN_KERNEL)
    (project / "kernels" / "Cargo.lock").write_text(
        'version = 4\n[[package]]\nname = "k"\nversion = "0.1.0"\n'
    )
    (project / "kernels" / "docs").mkdir()
    (project / "kernels" / "docs" / "note.txt").touch()
    (project / "MANIFEST.in").write_text(f"{line}\n")
    packed(project, tmp_path / "out", monkeypatch)
    said = capfd.readouterr().err
    assert (f"MANIFEST.in leaves {lacks} out of the sdist" in said) == bool(lacks)
    assert ("rustcuda: warning" in said) == bool(lacks)


def test_a_long_list_is_cut(tmp_path: Path) -> None:
    sources = [f"kernels/src/part{number}.rs" for number in range(8)]
    (said,) = packed_sources.warnings(tmp_path, "kernels", sources, [])
    assert "part4.rs and 3 more files out" in said
