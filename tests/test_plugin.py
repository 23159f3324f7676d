"""The backend as a plugin: setuptools builds the project, which may have C extensions too."""

from __future__ import annotations

import email
import re
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest
from environments import BUILD, Environment, contents, environment, images, only, succeed
from projects import REPOSITORY, MakeProject

from rustcuda_backend import process
from rustcuda_backend.cuda_versions import CUDA_VERSIONS

README = (REPOSITORY / "README.md").read_text(encoding="utf-8").partition("## As a plugin of setuptools")[2]
BUILD_SYSTEM = README.partition("```toml\n")[2].partition("```")[0]

SETUP = """\
from setuptools import Extension, setup
setup(ext_modules=[Extension("some_package.native", ["native.c"])])
"""
NATIVE = """\
#include <Python.h>
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "native", 0, -1, 0};
PyMODINIT_FUNC PyInit_native(void) { return PyModule_Create(&definition); }
"""
TABLE = '[tool.rustcuda]\ncrate = "kernels"\n'
TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"
NATIVE_FILE = f"some_package/native{sysconfig.get_config_var('EXT_SUFFIX')}"
KERNEL_FILES = [
    f"some_package/{name}" for name in ("kernels_cuda.fatbin", "kernels_cuda.py", "kernels_cuda.pyi")
]


def project_of(make_project: MakeProject, table: str = TABLE, *, native: bool = True) -> Path:
    project: Path = make_project(files={"setup.py": SETUP, "native.c": NATIVE} if native else {})
    pyproject = (project / "pyproject.toml").read_text(encoding="utf-8").partition("[tool.rustcuda]")[0]
    metadata = "[project]" + pyproject.partition("[project]")[2]
    (project / "pyproject.toml").write_text(BUILD_SYSTEM + metadata + table, encoding="utf-8")
    return project


def test_the_readme_names_the_wheels() -> None:
    assert 'build-backend = "setuptools.build_meta"' in BUILD_SYSTEM
    named = set(re.findall(r"nvidia-[\w-]+==[\w.]+", README.partition("\n## ")[0]))
    wheels = {f"{name}=={number}" for version in CUDA_VERSIONS.values() for name, number in pinned(version)}
    assert named == wheels


def pinned(version: object) -> list[tuple[str, str]]:
    from rustcuda_backend.toolkit import required_wheels

    found = required_wheels(version, ptxas="", environ={})  # type: ignore[arg-type]
    return [tuple(wheel.split("==")) for wheel in found]  # type: ignore[misc]


def test_a_package_with_a_c_extension(fresh: Environment, make_project: MakeProject, tmp_path: Path) -> None:
    project = project_of(make_project)
    said = fresh.pip("wheel", "-v", "--no-deps", "--wheel-dir", "out", project, cwd=tmp_path)
    assert "rustcuda: some-kernels: 2 capabilities from environment variable RUSTCUDA_CAPABILITIES" in said
    assert "pip-build-env" in said, "the tools are those of the isolated environment"
    wheel = only(tmp_path / "out")
    assert re.fullmatch(rf"some_package-1\.0-{TAG}-{TAG}-\w+\.whl", wheel.name)
    files = contents(wheel)
    package = sorted(name for name in files if ".dist-info/" not in name)
    ours = ["some_package/__init__.py", *KERNEL_FILES, NATIVE_FILE, "some_package/py.typed"]
    assert package == sorted(ours)
    described = email.message_from_bytes(files["some_package-1.0.dist-info/WHEEL"])
    assert described["Root-Is-Purelib"] == "false"
    assert images(files["some_package/kernels_cuda.fatbin"], tmp_path) == [
        "sm_80.cubin",
        "sm_90.cubin",
        "sm_90.ptx",
    ]
    fresh.pip("install", "--no-deps", wheel, cwd=tmp_path)
    code = "import some_package.native, some_package.kernels_cuda as k; print(k.store)"
    (tmp_path / "elsewhere").mkdir()
    succeed(fresh.run("-c", code, cwd=tmp_path / "elsewhere"))


def test_an_sdist_and_the_wheel_from_it(make_project: MakeProject, tmp_path: Path) -> None:
    project = project_of(make_project)
    succeed(process.run([*BUILD, "--no-isolation", "--outdir", tmp_path, project], env=environment("8.0")))
    with tarfile.open(only(tmp_path, "*.tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= {"setup.py", "native.c", "kernels/Cargo.toml", "kernels/src/lib.rs"}
    assert set(contents(only(tmp_path))) >= {*KERNEL_FILES, NATIVE_FILE}


def leave_out_nvidias_wheels(project: Path) -> None:
    requirements = 'requires = ["setuptools>=77", "rustcuda-backend"]'
    pyproject = (project / "pyproject.toml").read_text(encoding="utf-8")
    pyproject = re.sub(r"requires = \[.*?\n\]", requirements, pyproject, flags=re.DOTALL)
    (project / "pyproject.toml").write_text(pyproject, encoding="utf-8")


def test_a_package_that_does_not_ask_for_nvidias_wheels(
    fresh: Environment, make_project: MakeProject, tmp_path: Path
) -> None:
    project = project_of(make_project, native=False)
    leave_out_nvidias_wheels(project)
    finished = fresh.run("-m", "pip", "wheel", "--no-deps", project, cwd=tmp_path)
    said = finished.stdout + finished.stderr
    if finished.ok:
        pytest.skip("this machine has a toolkit, which serves in place of the wheels")
    assert "what to do: pip install nvidia-cuda-nvcc-cu12==" in said
    assert "for isolated builds: name these wheels in requires of [build-system] in pyproject.toml" in said
    assert "Traceback" not in said.partition("rustcuda: error")[2]


def test_a_package_without_our_table_is_left_alone(
    fresh: Environment, make_project: MakeProject, tmp_path: Path
) -> None:
    project = project_of(make_project, "", native=False)
    leave_out_nvidias_wheels(project)
    arguments = ("wheel", "-v", "--wheel-dir", "out", project)
    said = fresh.pip(*arguments, cwd=tmp_path, RUSTCUDA_NONSENSE="1", RUSTCUDA_JOBS="none")
    assert "rustcuda:" not in said
    wheel = only(tmp_path / "out")
    assert wheel.name == "some_package-1.0-py3-none-any.whl"
    assert [name for name in contents(wheel) if ".dist-info/" not in name] == ["some_package/__init__.py"]
    assert not (project / "kernels/target").exists()


BUILDS = ("build_wheel", "build_editable")
HOOKS = (*BUILDS, "build_sdist")
MISTAKES = [
    ("[tool.rustcuda]\ncrat = 'kernels'\n", "unknown setting 'crat'", HOOKS),
    ("[tool.rustcuda]\ncrate = '..'\n", "the crate '..' is outside the project", HOOKS),
    ("[tool.rustcuda]\ncrate = 'nowhere'\n", "there is no crate in 'nowhere'", HOOKS),
    (TABLE + "module = 'some_package.class'\n", "'some_package.class' is no name of a Python module", BUILDS),
    (TABLE + "module = 'some_package.native'\n", "the module 'some_package.native' is already there", BUILDS),
    (TABLE + "features = ['unknown']\n", "cargo cannot read the kernel crate", BUILDS),
]


@pytest.mark.parametrize(
    ("table", "message", "hook"),
    [(table, message, hook) for table, message, hooks in MISTAKES for hook in hooks],
)
def test_mistakes_are_one_message_without_a_traceback(
    make_project: MakeProject, tmp_path: Path, table: str, message: str, hook: str
) -> None:
    project = project_of(make_project, table)
    code = f"import setuptools.build_meta as b; b.{hook}({str(tmp_path / 'out')!r})"
    finished = process.run([sys.executable, "-c", code], cwd=project, env=environment("8.0"))
    said = finished.stdout + finished.stderr
    assert finished.returncode == 1, said
    assert said.count(f"rustcuda: error: {message}") == 1
    assert "Traceback" not in said
    assert not list(tmp_path.rglob("*.fatbin"))
