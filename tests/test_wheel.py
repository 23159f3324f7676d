"""Wheels as users make them: pip and build, in new environments, isolated, with the real tools."""

from __future__ import annotations

import email
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from environments import BUILD, EPOCH, Environment, contents, environment, images, only, succeed, wheel_of
from projects import MakeProject

from rustcuda_backend import process

KERNELS = ("rmsnorm", "saxpy", "silu_and_mul", "softmax", "transpose")

# --- front ends ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "capabilities", "expected"),
    [
        ("12.9", "7.0;9.0a;12.0+PTX", ["sm_70.cubin", "sm_90a.cubin", "sm_120.cubin", "sm_120.ptx"]),
        ("13.0", "9.0+PTX;11.0", ["sm_90.cubin", "sm_110.cubin", "sm_90.ptx"]),
    ],
)
def test_pip_wheel(
    fresh: Environment, sample: Path, tmp_path: Path, version: str, capabilities: str, expected: list[str]
) -> None:
    variables = {"capabilities": capabilities, "RUSTCUDA_CUDA_VERSION": version}
    said = fresh.pip("wheel", "-v", "--wheel-dir", "out", "./sample_ext", cwd=sample.parent, **variables)
    assert f"ptxas {version}." in said
    assert "pip-build-env" in said, "the tools are those of the isolated environment"
    wheel = only(tmp_path / "out")
    assert wheel.name == "rustcuda_sample-0.1.0-py3-none-any.whl"
    files = contents(wheel)
    package = (
        "__init__.py",
        "demo.py",
        "kernels_cuda.fatbin",
        "kernels_cuda.py",
        "kernels_cuda.pyi",
        "py.typed",
    )
    metadata = ("METADATA", "RECORD", "WHEEL", "top_level.txt")
    assert sorted(files) == sorted(
        [f"sample_ext/{name}" for name in package]
        + [f"rustcuda_sample-0.1.0.dist-info/{name}" for name in metadata]
    )
    tag = email.message_from_bytes(files["rustcuda_sample-0.1.0.dist-info/WHEEL"])
    assert (tag.get_all("Tag"), tag["Root-Is-Purelib"]) == (["py3-none-any"], "true")
    described = email.message_from_bytes(files["rustcuda_sample-0.1.0.dist-info/METADATA"])
    assert (described["Name"], described["Version"]) == ("rustcuda-sample", "0.1.0")
    assert all("extra ==" in requirement for requirement in described.get_all("Requires-Dist", []))
    assert images(files["sample_ext/kernels_cuda.fatbin"], tmp_path) == expected
    for name in KERNELS:
        assert files["sample_ext/kernels_cuda.fatbin"].count(f".text.{name}\0".encode()) >= 1
        assert re.search(rf"^{name}: ", files["sample_ext/kernels_cuda.pyi"].decode(), re.MULTILINE)
    for private in (str(tmp_path).encode(), str(Path.home()).encode() + b"/"):
        assert not any(private in data for data in files.values())


USE = """\
from sample_ext import kernels_cuda

kernels_cuda.softmax[1, 256](0, 0, columns=8)
kernels_cuda.load("cuda:0")
kernels_cuda.softmax[1, 256](0, 0, "8")  # type: ignore[arg-type]
error: type[RuntimeError] = kernels_cuda.NoDriver
"""

WITHOUT_DRIVER = f"""\
import importlib.util, sys
import sample_ext.kernels_cuda as kernels_cuda
assert importlib.util.find_spec("torch") is None and "ctypes" not in sys.modules
assert set({KERNELS}) <= set(kernels_cuda.__all__)
for launch in (kernels_cuda.load, lambda: kernels_cuda.softmax[1, 256](0, 0, 8)):
    try:
        launch()
    except kernels_cuda.NoDriver as error:
        print(type(error).__name__, error)
"""


def test_pip_install(fresh: Environment, sample: Path, tmp_path: Path) -> None:
    fresh.pip("install", "./sample_ext", cwd=sample.parent)
    # No GPU may be seen, also where there is one.
    without = fresh.run("-c", WITHOUT_DRIVER, cwd=tmp_path, CUDA_VISIBLE_DEVICES="-1")
    assert re.fullmatch(r"(NoDriver .+\n){2}", succeed(without)), without.stdout
    pytest.importorskip("mypy")
    (tmp_path / "use.py").write_text(USE, encoding="utf-8")
    mypy = (sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "mypy")
    succeed(process.run([*mypy, "--python-executable", fresh.python, "use.py"], cwd=tmp_path))
    stub = next((tmp_path / "environment").rglob("kernels_cuda.pyi"))
    assert stub.with_name("py.typed").is_file()
    succeed(process.run([*mypy, "--follow-imports=silent", stub], cwd=tmp_path))
    fresh.pip("uninstall", "--yes", "rustcuda-sample", cwd=tmp_path)
    assert not stub.parent.exists()


def test_build_makes_the_same_wheel_from_the_sdist_as_from_the_tree(
    fresh: Environment, sample: Path, tmp_path: Path
) -> None:
    fresh.pip("install", "build", cwd=tmp_path)
    succeed(fresh.run("-m", "build", "--outdir", "out", "./sample_ext", cwd=sample.parent, **EPOCH))
    succeed(
        fresh.run("-m", "build", "--wheel", "--outdir", "tree", "./sample_ext", cwd=sample.parent, **EPOCH)
    )
    assert only(tmp_path / "out", "*.tar.gz").name == "rustcuda_sample-0.1.0.tar.gz"
    assert contents(only(tmp_path / "out")) == contents(only(tmp_path / "tree"))


def test_a_package_that_requires_one_with_kernels(fresh: Environment, sample: Path, tmp_path: Path) -> None:
    succeed(
        process.run([*BUILD, "--sdist", "--no-isolation", "--outdir", fresh.links, sample], env=environment())
    )
    dependent = tmp_path / "dependent"
    dependent.mkdir()
    (dependent / "pyproject.toml").write_text(
        '[project]\nname = "dependent"\nversion = "1"\ndependencies = ["rustcuda-sample>=0.1"]\n'
        '[tool.setuptools]\npy-modules = ["dependent"]\n',
        encoding="utf-8",
    )
    (dependent / "dependent.py").write_text("from sample_ext import kernels_cuda\n", encoding="utf-8")
    fresh.pip("install", "./dependent", cwd=tmp_path, capabilities="9.0")
    shown = succeed(
        fresh.run("-c", "import dependent as d; print(d.kernels_cuda.saxpy)", cwd=dependent.parent)
    )
    assert "saxpy" in shown


def test_pip_install_editable(fresh: Environment, sample: Path, tmp_path: Path) -> None:
    fresh.pip("install", "-e", "./sample_ext", cwd=sample.parent)
    package = sample / "src/sample_ext"
    generated = {"kernels_cuda.py", "kernels_cuda.pyi", "kernels_cuda.fatbin", "py.typed"}
    assert {path.name for path in package.iterdir()} >= generated
    code = "import sample_ext.kernels_cuda as k; print(k.__file__)"
    # Not from the folder above the package, where it could be imported in any case.
    (tmp_path / "elsewhere").mkdir()
    shown = succeed(fresh.run("-c", code, cwd=tmp_path / "elsewhere"))
    assert Path(shown.strip()).resolve() == package / "kernels_cuda.py"
    assert images((package / "kernels_cuda.fatbin").read_bytes(), tmp_path) == [
        "sm_80.cubin",
        "sm_90.cubin",
        "sm_90.ptx",
    ]
    assert not list((tmp_path / "environment").rglob("kernels_cuda.*"))


# --- what is in a wheel ----------------------------------------------------------------------------------


def test_nothing_of_an_earlier_build_is_in_a_wheel(make_project: MakeProject, tmp_path: Path) -> None:
    project = make_project()
    first = contents(wheel_of(project, tmp_path / "first", capabilities="8.0"))
    pyproject = (project / "pyproject.toml").read_text(encoding="utf-8")
    (project / "pyproject.toml").write_text(pyproject + 'module = "some_package.other"\n', encoding="utf-8")
    second = contents(wheel_of(project, tmp_path / "second", capabilities="9.0"))
    assert images(first["some_package/kernels_cuda.fatbin"], tmp_path) == ["sm_80.cubin"]
    assert images(second["some_package/other.fatbin"], tmp_path) == ["sm_90.cubin"]
    assert [name for name in second if name.startswith("some_package/")] == [
        f"some_package/{name}"
        for name in ("__init__.py", "other.fatbin", "other.py", "other.pyi", "py.typed")
    ]


@pytest.mark.parametrize("version", ["12.9", "13.0"])
def test_the_same_sources_in_another_folder_give_the_same_bytes(
    sample: Path, tmp_path: Path, version: str
) -> None:
    variables = {**EPOCH, "capabilities": "8.0", "RUSTCUDA_CUDA_VERSION": version}
    other = tmp_path / "a b" / "ü" / "other"
    shutil.copytree(sample, other)
    first = wheel_of(sample, tmp_path / "first", **variables)
    second = wheel_of(other, tmp_path / "second", **variables)
    assert first.read_bytes() == second.read_bytes()


def test_a_c_locale_does_not_matter(make_project: MakeProject, tmp_path: Path) -> None:
    project = make_project(folder="a b/ü")
    source = project / "kernels/src/lib.rs"
    source.write_text(
        source.read_text(encoding="utf-8") + "// Größe\n#[warn(unused)] fn größe() {}\n", encoding="utf-8"
    )
    wheel_of(
        project, tmp_path / "out", capabilities="8.0", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"
    )


# --- failures and Ctrl-C ---------------------------------------------------------------------------------

PIP = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", "out")


@pytest.mark.parametrize("front_end", [PIP, (*BUILD, "--wheel", "--no-isolation", "--outdir", "out")])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernels/src/lib.rs": "fn broken("}, "the kernel crate does not compile for capability"),
        ({"kernels/Cargo.toml": "[package]"}, "cargo cannot read the kernel crate"),
        ({"pyproject.toml": '[tool.rustcuda]\ncrat = "kernels"\n'}, "unknown setting 'crat'"),
    ],
)
def test_a_failing_build(
    make_project: MakeProject, front_end: tuple[str, ...], change: dict[str, str], message: str
) -> None:
    project = make_project()
    for name, text in change.items():
        before = (project / name).read_text(encoding="utf-8").partition("[tool.rustcuda]")[0]
        (project / name).write_text((before if name == "pyproject.toml" else "") + text, encoding="utf-8")
    finished = process.run([*front_end, project], cwd=project.parent, env=environment())
    said = finished.stdout + finished.stderr
    assert finished.returncode != 0
    assert f"rustcuda: error: {message}" in said
    assert "Traceback" not in said
    assert not list(project.parent.rglob("*.fatbin"))
    assert not list(project.parent.rglob("*.whl"))


MANY = "7.0;7.2;7.5;8.0;8.6;8.7;8.9;9.0;10.0;10.1;12.0"
HOOK = (sys.executable, "-c", "import rustcuda_backend as b; b.build_wheel('out')")


def start_and_wait_for_the_first_pass(argv: tuple[str, ...], project: Path) -> subprocess.Popen[str]:
    """Starts a build in a group of its own, as a shell does, and reads what it says up to that line."""
    child = subprocess.Popen(
        argv,
        cwd=project,
        env=environment(MANY, PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        start_new_session=True,
    )
    assert child.stdout
    lines = []
    for line in child.stdout:
        lines.append(line)
        if re.search(r"rustcuda: \[1/\d+\] sm_\d+ compiled", line):
            return child
    pytest.fail("".join(lines))


def programs_at_work_in(project: Path) -> list[str]:
    """Programs that name the project or stand in it, and do not end within 5 s."""
    left = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            folder = str((entry / "cwd").readlink())
            watched = os.pidfd_open(int(entry.name))
        except (OSError, ValueError):
            continue  # no process, or one that has ended
        try:
            concerned = str(project) in command or folder.startswith(str(project))
            # One that has been killed is still there for a moment.
            if concerned and not select.select([watched], [], [], 5)[0]:
                left.append(command)
        finally:
            os.close(watched)
    return left


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_an_interrupted_hook_ends_all_it_started(sample: Path, number: signal.Signals) -> None:
    child = start_and_wait_for_the_first_pass(HOOK, sample)
    child.send_signal(number)
    said, _ = child.communicate()
    assert child.returncode == 130
    assert [line for line in said.splitlines() if "interrupted" in line] == ["rustcuda: interrupted"]
    assert "Traceback" not in said
    assert programs_at_work_in(sample) == []
    assert not list(sample.rglob("*.fatbin"))
    assert not list(sample.rglob("*.whl"))


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_ctrl_c_in_a_terminal(sample: Path) -> None:
    argv = (*BUILD, "--wheel", "--no-isolation", "--outdir", "out")
    child = start_and_wait_for_the_first_pass(argv, sample)
    os.killpg(child.pid, signal.SIGINT)
    said, _ = child.communicate()
    assert child.returncode != 0
    assert said.count("rustcuda: ") == said.count("rustcuda: interrupted") + said.count("rustcuda: [")
    assert "rustcuda_backend" not in said, "no traceback of ours"
    assert programs_at_work_in(sample) == []
    assert not list(sample.rglob("*.fatbin"))
    assert not list(sample.rglob("*.whl"))
