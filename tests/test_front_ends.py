"""Every front end, by the very lines of docs/front-ends.md, in environments that are new."""

from __future__ import annotations

import functools
import http.server
import os
import re
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cuda_wheels import wheel_file
from environments import Tools, contents, environment, images, only, succeed
from projects import REPOSITORY

from rustcuda_backend import process
from rustcuda_backend.cuda_versions import CUDA_VERSIONS

PAGE = (REPOSITORY / "docs/front-ends.md").read_text(encoding="utf-8")
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
HELLO = dict(re.findall(r"^`([\w./]+)`\n\n```\w+\n(.*?)^```$", README, re.MULTILINE | re.DOTALL))
SHELL = shutil.which("sh")

GENERATED = {"kernels_cuda.py", "kernels_cuda.pyi", "kernels_cuda.fatbin", "py.typed"}
SHOW = "from hello_gpu import kernels_cuda as k; print(k.__file__); print(*k.__all__)"

pytestmark = pytest.mark.skipif(SHELL is None, reason="the page's lines are for a POSIX shell")


def blocks(section: str, language: str) -> list[str]:
    """The page's blocks of one language under one heading."""
    (text,) = re.findall(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return found


(FIND_LINKS,) = blocks("Until the backend is on PyPI", "sh")


@dataclass(frozen=True)
class Place:
    """The README's project, with a checkout's `dist` beside it, and a shell in the project's folder.

    Attributes:
        root: The folder that has both.
        path: Folders of programs that the shell finds first.
        environ: More variables for it.
    """

    root: Path
    path: tuple[Path, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def project(self) -> Path:
        return self.root / "hello_gpu"

    def type(self, lines: str, *, folder: str = "hello_gpu") -> str:
        """Runs lines in a shell, as they are on the page; says what they printed."""
        assert SHELL
        variables = {**self.environ, "TORCH_CUDA_ARCH_LIST": "9.0"}
        environ = {**environment(**variables), **variables}
        del environ["RUSTCUDA_CAPABILITIES"]  # would win over the page's own -C
        environ["PATH"] = os.pathsep.join([*map(str, self.path), environ["PATH"]])
        script = f"{FIND_LINKS}\n{lines}"
        return succeed(process.run([SHELL, "-euc", script], cwd=self.root / folder, env=environ))

    def kernels(self, python: Path | None = None) -> tuple[Path, set[str]]:
        """Where the installed module lies, and its names; imported from elsewhere, where no GPU is seen."""
        python = python or self.project / ".venv/bin/python"
        environ = environment(CUDA_VISIBLE_DEVICES="-1")
        file, names = succeed(process.run([python, "-c", SHOW], cwd=self.root, env=environ)).splitlines()
        return Path(file), set(names.split())

    def built(self, path: Path) -> list[str]:
        """The images in a fatbin."""
        return images(path.read_bytes(), self.root)

    def built_in(self, wheel: Path) -> list[str]:
        """The images in a wheel."""
        return images(contents(wheel)["hello_gpu/kernels_cuda.fatbin"], self.root)

    def edit(self, old: str, new: str) -> None:
        """Renames a kernel in the source."""
        source = self.project / "kernels/src/lib.rs"
        source.write_text(source.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")

    def append(self, table: str) -> None:
        """Adds a table to the project's pyproject.toml."""
        with (self.project / "pyproject.toml").open("a", encoding="utf-8") as stream:
            stream.write("\n" + table)


@pytest.fixture
def place(tmp_path: Path, links: Path) -> Place:
    for name, text in {"src/hello_gpu/__init__.py": "", **HELLO}.items():
        path = tmp_path / "hello_gpu" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    shutil.copytree(links, tmp_path / "rustcuda-backend/dist")
    return Place(tmp_path, (Path(sys.executable).parent,))


@pytest.fixture
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return Tools(tmp_path_factory)


@pytest.fixture
def uv(place: Place, tools: Tools) -> Place:
    """The place, with uv on PATH."""
    return Place(place.root, (tools.uv.parent, *place.path), tools.environ)


BOTH = ["sm_80.cubin", "sm_90.cubin", "sm_90.ptx"]


# --- pip and build ---------------------------------------------------------------------------------------


def test_pip(place: Place) -> None:
    install, editable = blocks("pip", "sh")
    said = place.type(install)
    assert "pip-build-env" in said, "the tools are those of the isolated environment"
    module, names = place.kernels()
    assert "site-packages" in module.parts
    assert "saxpy" in names
    assert place.built(module.with_suffix(".fatbin")) == BOTH
    place.edit("saxpy", "axpy")
    place.type(editable)
    module, names = place.kernels()
    assert module == place.project / "src/hello_gpu/kernels_cuda.py"
    assert "axpy" in names
    assert place.built(module.with_suffix(".fatbin")) == ["sm_90.cubin"]


def test_pip_without_isolation(place: Place) -> None:
    (lines,) = blocks("pip without isolation", "sh")
    place.type(lines)
    assert "saxpy" in place.kernels()[1]


def test_conda(place: Place, tools: Tools) -> None:
    prefix = tools.path(
        "conda", "pip", "rustcuda-backend", "--find-links", str(place.root / "rustcuda-backend/dist")
    )
    toolkit = place.root / "prefix"
    wheels = {"nvidia-cuda-nvcc-cu12": ("bin/ptxas", "nvvm/libdevice/libdevice.10.bc")}
    wheels["nvidia-nvfatbin-cu12"] = ("lib/libnvfatbin.so.12",)
    for distribution, names in wheels.items():
        for name in names:
            file = wheel_file(distribution, name)
            assert file
            (toolkit / name).parent.mkdir(parents=True, exist_ok=True)
            (toolkit / name).symlink_to(file)
    target = place.root / "site"
    (lines,) = blocks("conda", "sh")
    conda = Place(place.root, (prefix,), {"CONDA_PREFIX": str(toolkit), "PIP_TARGET": str(target)})
    said = conda.type(lines.replace("pip install", "pip install -v"))
    assert f"CUDA_HOME={toolkit}" in said
    assert {path.name for path in (target / "hello_gpu").iterdir()} >= GENERATED


def test_build(place: Place) -> None:
    (lines,) = blocks("build", "sh")
    place.type(lines)
    only(place.project / "dist", "hello_gpu-0.1.0.tar.gz")
    assert place.built_in(only(place.project / "dist")) == BOTH


# --- uv --------------------------------------------------------------------------------------------------


def test_uv_build(uv: Place) -> None:
    (lines,) = blocks("uv build", "sh")
    uv.type(lines)
    only(uv.project / "dist", "hello_gpu-0.1.0.tar.gz")
    wheel = only(uv.project / "dist")
    assert wheel.name == "hello_gpu-0.1.0-py3-none-any.whl"
    assert uv.built_in(wheel) == BOTH


def test_uv_pip(uv: Place) -> None:
    (lines,) = blocks("uv pip", "sh")
    uv.type(lines)
    module, names = uv.kernels()
    assert "site-packages" in module.parts
    assert "saxpy" in names
    uv.edit("saxpy", "axpy")
    uv.type("uv pip install .")
    assert "axpy" in uv.kernels()[1]


def test_uv_sync_builds_again_after_an_edit_and_only_then(uv: Place) -> None:
    (table,) = blocks("uv sync", "toml")
    uv.append(table)
    sync, after_clean = blocks("uv sync", "sh")
    uv.type(sync)
    module, names = uv.kernels()
    assert module == uv.project / "src/hello_gpu/kernels_cuda.py"
    assert "saxpy" in names
    uv.type(sync)  # Cargo.lock is new since the first one
    assert "Built" not in uv.type(sync)
    uv.edit("saxpy", "axpy")
    assert "Built" in uv.type(sync)
    assert uv.kernels()[1] >= {"axpy"}
    assert "Built" in uv.type("export TORCH_CUDA_ARCH_LIST=8.0\n" + sync)
    assert uv.built(module.with_suffix(".fatbin")) == ["sm_80.cubin"]
    for name in GENERATED:
        (module.parent / name).unlink()
    uv.type(after_clean)
    assert uv.kernels()[1] >= {"axpy"}


# --- pdm and poetry --------------------------------------------------------------------------------------


def test_pdm(place: Place, tools: Tools) -> None:
    # pdm 2.29.4 does not run with hishel 2.
    path = tools.path("pdm", "pdm", "hishel<2")
    pdm = Place(place.root, (path, *place.path), {"PDM_CHECK_UPDATE": "0"})
    pdm.append(*blocks("pdm", "toml"))
    (lines,) = blocks("pdm", "sh")
    pdm.type(lines)
    module, names = pdm.kernels()
    assert module == pdm.project / "src/hello_gpu/kernels_cuda.py"
    assert "saxpy" in names
    only(pdm.project / "dist", "hello_gpu-0.1.0.tar.gz")
    assert pdm.built_in(only(pdm.project / "dist")) == ["sm_90.cubin"]
    pdm.edit("saxpy", "axpy")
    pdm.type(lines.splitlines()[0])
    assert "axpy" in pdm.kernels()[1]


@pytest.fixture
def poetry(place: Place, tools: Tools) -> Place:
    variables = {"POETRY_VIRTUALENVS_IN_PROJECT": "true", "POETRY_CACHE_DIR": str(place.root / "cache")}
    return Place(place.root, (tools.path("poetry", "poetry"), *place.path), variables)


def test_poetry_installs_what_an_application_depends_on(poetry: Place) -> None:
    (text,) = blocks("poetry", "toml")
    app = poetry.root / "app"
    app.mkdir()
    (app / "pyproject.toml").write_text(text, encoding="utf-8")
    install, again = blocks("poetry", "sh")
    poetry.type(install, folder="app")
    module, names = poetry.kernels(app / ".venv/bin/python")
    assert module == poetry.project / "src/hello_gpu/kernels_cuda.py"
    assert "saxpy" in names
    poetry.edit("saxpy", "axpy")
    poetry.type(again, folder="app")
    assert "axpy" in poetry.kernels(app / ".venv/bin/python")[1]


@pytest.fixture
def index(place: Place) -> Iterator[str]:
    """A package index on this machine, which has the backend's wheel."""
    root = place.root / "index"
    shutil.copytree(place.root / "rustcuda-backend/dist", root / "rustcuda-backend")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_arguments: object) -> None:
            """Keeps requests out of pytest's output."""

    handler = functools.partial(Quiet, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_poetry_build_calls_the_backend_and_poetry_install_does_not(poetry: Place, index: str) -> None:
    poetry.append(f'[[tool.poetry.source]]\nname = "here"\nurl = "{index}"\npriority = "supplemental"\n')
    poetry.type("poetry build")
    only(poetry.project / "dist", "hello_gpu-0.1.0.tar.gz")
    assert poetry.built_in(only(poetry.project / "dist")) == ["sm_90.cubin"]
    poetry.type("poetry install")
    assert not GENERATED & {path.name for path in (poetry.project / "src/hello_gpu").iterdir()}


# --- other packages, other machines ----------------------------------------------------------------------


def test_setuptools_own_backend_with_ours_among_its_requirements(uv: Place) -> None:
    pyproject = uv.project / "pyproject.toml"
    text = pyproject.read_text(encoding="utf-8")
    wheels = '"nvidia-cuda-nvcc-cu12==12.9.86", "nvidia-nvfatbin-cu12==12.9.82"'
    text = text.replace('requires = ["rustcuda-backend"]', f'requires = ["rustcuda-backend", {wheels}]')
    text = text.replace('"rustcuda_backend"', '"setuptools.build_meta"')
    pyproject.write_text(text, encoding="utf-8")
    uv.type("uv build")
    assert uv.built_in(only(uv.project / "dist")) == ["sm_90.cubin"]


def test_a_package_that_depends_on_one_with_kernels(uv: Place) -> None:
    uv.type("uv build --wheel --out-dir ../wheels")
    dependent = uv.root / "dependent"
    dependent.mkdir()
    (dependent / "pyproject.toml").write_text(
        '[project]\nname = "dependent"\nversion = "1"\ndependencies = ["hello-gpu>=0.1"]\n'
        '[tool.setuptools]\npy-modules = ["dependent"]\n',
        encoding="utf-8",
    )
    (dependent / "dependent.py").write_text("from hello_gpu import kernels_cuda\n", encoding="utf-8")
    uv.type("uv venv; uv pip install --find-links ../wheels .", folder="dependent")
    shown = process.run(
        [dependent / ".venv/bin/python", "-c", "import dependent as d; print(d.kernels_cuda.saxpy)"],
        cwd=uv.root,
    )
    assert "<kernel saxpy[grid, block](a: f32" in succeed(shown)


def test_a_machine_without_a_network(uv: Place) -> None:
    collect, install = blocks("Machines without a network", "sh")
    uv.type(collect)
    # Programs that use proxies would reach nothing by these.
    nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
    cache = str(uv.root / "empty-cache")
    alone = Place(uv.root, uv.path, {**uv.environ, **nowhere, "UV_CACHE_DIR": cache, "PIP_CACHE_DIR": cache})
    # The backend, too, is only in the folder.
    shutil.rmtree(uv.root / "rustcuda-backend/dist")
    alone.type(install)
    assert "saxpy" in uv.kernels()[1]
    assert uv.built_in(only(uv.project / "dist")) == ["sm_90.cubin"]


def test_wheels_for_two_cuda_versions(uv: Place) -> None:
    (line,) = blocks("CI", "sh")
    said = uv.type(line)
    assert "ptxas 13.0." in said
    wheel = only(uv.project / "dist")
    assert wheel.name == "hello_gpu-0.1.0-130-py3-none-any.whl"
    assert uv.built_in(wheel) == ["sm_90.cubin"]


def test_the_page_names_the_wheels_that_a_build_asks_for() -> None:
    for version in CUDA_VERSIONS.values():
        assert " ".join(version.wheels) in PAGE
