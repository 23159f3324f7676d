"""What a build says of declared dependencies, and that it leaves them as they are."""

from __future__ import annotations

import email
import zipfile
from pathlib import Path

import pytest
from projects import MakeProject

import rustcuda_backend as backend
from rustcuda_backend import dependencies


def write(folder: Path, listed: str) -> Path:
    text = f'[project]\nname = "some-package"\nversion = "1.0"\n{listed}\n'
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "listed",
    [
        "",
        'dynamic = ["dependencies"]',
        'dependencies = ["torch", "cuda-bindings>=12.9", "numpy<2"]',
        'dependencies = ["torch>=2.4,!=2.5", "Cuda_Bindings", "not a requirement"]',
        'dependencies = []\n[project.optional-dependencies]\ngpu = ["torch==2.6", "cuda-bindings<12"]',
    ],
)
def test_nothing_to_say(tmp_path: Path, listed: str) -> None:
    assert dependencies.warnings(write(tmp_path, listed)) == []


def test_no_pyproject(tmp_path: Path) -> None:
    assert dependencies.warnings(tmp_path) == []


@pytest.mark.parametrize(
    "requirement", ["torch<3", "torch==2.6.0", "Torch~=2.6", "cuda-python<=13.1", "cuda.bindings==12.9.1"]
)
def test_an_upper_bound(tmp_path: Path, requirement: str) -> None:
    (warning,) = dependencies.warnings(write(tmp_path, f'dependencies = ["{requirement}", "numpy<2"]'))
    assert f"'{requirement}' in [project] dependencies has an upper bound" in warning


@pytest.mark.parametrize("requirement", ["cuda-python<12.9", "cuda-bindings==12.3.0", "cuda-bindings>=14"])
def test_bindings_that_the_loader_has_not_been_tried_with(tmp_path: Path, requirement: str) -> None:
    (warning,) = dependencies.warnings(write(tmp_path, f'dependencies = ["{requirement}"]'))
    assert "allows no version that the loader has been tried with" in warning
    assert f"write {requirement[:11].rstrip('<')}" in warning


def test_a_wheel_requires_what_was_written(
    make_project: MakeProject,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    project = make_project()
    pyproject = (project / "pyproject.toml").read_text(encoding="utf-8")
    listed = 'version = "1.0"\ndependencies = ["torch<3", "cuda-bindings>=12.9"]\n'
    (project / "pyproject.toml").write_text(pyproject.replace('version = "1.0"\n', listed), encoding="utf-8")
    monkeypatch.chdir(project)
    wheel = backend.build_wheel(str(tmp_path), {"capabilities": "8.0"})
    assert capfd.readouterr().err.count("rustcuda: warning: 'torch<3' in [project] dependencies") == 1
    with zipfile.ZipFile(tmp_path / wheel) as archive:
        metadata = email.message_from_bytes(archive.read("some_package-1.0.dist-info/METADATA"))
    assert metadata.get_all("Requires-Dist") == ["torch<3", "cuda-bindings>=12.9"]
