"""What several test modules need: the real tools, and projects made on the spot."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from environments import Environment, made_once, make_links
from in_c import launch_library, launches_in_c  # noqa: F401
from loaders import loaded, make_loader, seam, stub_library  # noqa: F401
from oxide_stand_ins import ferrum_library as download_ferrum
from oxide_stand_ins import ferrum_ptx
from projects import MANIFEST, PLAIN_HEAD, PLAIN_KERNEL, REPOSITORY, MakeProject

from rustcuda_backend import cuda
from rustcuda_backend.cuda import CudaTools
from rustcuda_backend.cuda_versions import CUDA_VERSIONS
from rustcuda_backend.rust import RustToolchain, find_toolchain
from rustcuda_backend.sysroot import sysroot

# How variables begin that steer cargo or cuda-oxide.
STEERING = ("CARGO_BUILD_", "CARGO_TARGET_", "CARGO_ENCODED", "CUDA_OXIDE_")


@pytest.fixture(scope="session", autouse=True)
def heard_interrupts() -> None:
    """Lets Ctrl-C be heard also where the tests run in the background, where shells have it ignored."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes away what would steer a build from the machine that runs the tests."""
    steering = ("TORCH_CUDA_ARCH_LIST", "CUDA_HOME", "CUDA_PATH", "RUSTFLAGS", "MAX_JOBS", "FORCE_COLOR")
    for variable in os.environ:
        if variable in steering or variable.startswith(STEERING):
            monkeypatch.delenv(variable)
        if variable.startswith("RUSTCUDA_") and not variable.startswith(("RUSTCUDA_TEST_", "RUSTCUDA_CACHE")):
            monkeypatch.delenv(variable)


@pytest.fixture(scope="session")
def toolchain() -> RustToolchain:
    """The Rust toolchain that a build here takes."""
    return find_toolchain("", REPOSITORY, os.environ)


@pytest.fixture(scope="session")
def tools() -> CudaTools:
    """The tools of CUDA 12.9, from NVIDIA's wheels."""
    return cuda.find_tools(CUDA_VERSIONS["12.9"], environ={"PATH": os.environ["PATH"]})


@pytest.fixture(scope="session")
def tools13() -> CudaTools:
    """The tools of CUDA 13.0, from NVIDIA's wheels."""
    return cuda.find_tools(CUDA_VERSIONS["13.0"], environ={"PATH": os.environ["PATH"]})


@pytest.fixture(scope="session")
def gpu_sysroot(toolchain: RustToolchain, tools: CudaTools) -> Path:
    """The sysroot for the GPU, made once and cached."""
    return sysroot(toolchain, tools.libdevice)


@pytest.fixture
def make_project(tmp_path: Path) -> MakeProject:
    """Returns a function that writes a project: a package, pyproject.toml and a kernel crate."""

    def make(
        source: str = PLAIN_HEAD + PLAIN_KERNEL,
        *,
        settings: str = "",
        manifest: str = MANIFEST,
        files: dict[str, str] | None = None,
        folder: str = "project",
    ) -> Path:
        project = tmp_path / folder
        content = {
            "pyproject.toml": f"""\
[build-system]
requires = ["rustcuda-backend"]
build-backend = "rustcuda_backend"
[project]
name = "some-package"
version = "1.0"
[tool.setuptools]
packages = ["some_package"]
[tool.rustcuda]
crate = "kernels"
{settings}
""",
            "some_package/__init__.py": "",
            "kernels/Cargo.toml": manifest,
            "kernels/src/lib.rs": source,
            **(files or {}),
        }
        for name, text in content.items():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(text, encoding="utf-8")
        return project

    return make


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A copy of sample_ext, without what earlier builds left in it."""
    ignored = shutil.ignore_patterns("target", "build", "dist", "*.egg-info", "kernels_cuda.*", "__pycache__")
    return Path(shutil.copytree(REPOSITORY / "sample_ext", tmp_path / "sample_ext", ignore=ignored))


@pytest.fixture(scope="session")
def links(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the backend's own wheel, made of the sources here."""
    return made_once(tmp_path_factory, "links", make_links)


@pytest.fixture
def fresh(tmp_path: Path, links: Path) -> Environment:
    """A new virtual environment."""
    return Environment(tmp_path / "environment", links)


@pytest.fixture(scope="session")
def ferrum_library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A library in which cuda-oxide has embedded kernels."""
    return download_ferrum(tmp_path_factory.mktemp("ferrum"))


@pytest.fixture(scope="session")
def ferrum(ferrum_library: bytes) -> str:
    """PTX that cuda-oxide has made."""
    return ferrum_ptx(ferrum_library)
