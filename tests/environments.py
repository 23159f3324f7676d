"""New environments, the front ends in them, and what is in the wheels that they make."""

from __future__ import annotations

import os
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from cuda_wheels import cuobjdump
from filelock import FileLock
from projects import REPOSITORY

from rustcuda_backend import process
from rustcuda_backend.process import Finished

BUILD = (sys.executable, "-m", "build")
EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}

# What the machine's own settings would change: the wheels' times, and pip's and setuptools' words.
_UNSET = ("SOURCE_DATE_EPOCH", "PIP_NO_INDEX", "PYTHONPATH", "VIRTUAL_ENV")

# pip's words where no index answers.
AWAY = re.compile(r"Could not find a version|connection broken|Failed to establish|timed out", re.IGNORECASE)


def environment(capabilities: str = "8.0;9.0+PTX", **variables: str) -> dict[str, str]:
    """This process's environment with few capabilities, so that tests stay short."""
    inherited = {name: value for name, value in os.environ.items() if name not in _UNSET}
    return {**inherited, "RUSTCUDA_CAPABILITIES": capabilities, **variables}


def succeed(finished: Finished) -> str:
    """All that a program printed, which must have succeeded."""
    said = finished.stdout + finished.stderr
    assert finished.ok, said
    return said


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that one of the test processes makes, and all of them use."""
    root = factory.getbasetemp()
    folder = (root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) / f"shared-{name}"
    with FileLock(f"{folder}.lock"):
        done = Path(f"{folder}.done")
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)  # half made by a process that failed
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


def make_links(folder: Path) -> None:
    """Builds the backend's own wheel from the sources here into a folder."""
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md"):
        shutil.copyfile(REPOSITORY / name, source / name)
    unwanted = shutil.ignore_patterns("target", "__pycache__")
    shutil.copytree(REPOSITORY / "rustcuda_backend", source / "rustcuda_backend", ignore=unwanted)
    argv = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, source]
    succeed(process.run(argv, env=environment()))
    shutil.rmtree(source)


class Environment:
    """A virtual environment that is new, and builds that find the backend's wheel in `links`."""

    def __init__(self, folder: Path, links: Path) -> None:
        self.python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
        self.links = links
        succeed(process.run([sys.executable, "-m", "venv", folder]))

    def run(self, *arguments: str | Path, cwd: Path, **variables: str) -> Finished:
        """Runs the environment's Python."""
        places = f"{os.environ.get('PIP_FIND_LINKS', '')} {self.links}".strip()
        environ = environment(**variables, PIP_FIND_LINKS=places)
        return process.run([self.python, *arguments], cwd=cwd, env=environ)

    def pip(self, *arguments: str | Path, cwd: Path, **variables: str) -> str:
        """Runs the environment's pip, which must succeed."""
        return succeed(self.run("-m", "pip", *arguments, cwd=cwd, **variables))


class Tools:
    """Front ends from PyPI, each in a throw-away environment, installed at its first use by uv.

    Attributes:
        uv: The program.
        environ: What uv needs to keep to this run's own cache.
    """

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self._factory = factory
        self.uv = made_once(factory, "uv", self._install_uv) / "bin/uv"
        cache = made_once(factory, "uv-cache", lambda _folder: None)
        self.environ = {"UV_CACHE_DIR": str(cache), "UV_PYTHON_DOWNLOADS": "never", "UV_NO_CONFIG": "1"}

    def path(self, name: str, *requirements: str) -> Path:
        """The folder with a tool's program."""

        def install(folder: Path) -> None:
            succeed(self._run("venv", "--python", sys.executable, folder / "venv"))
            succeed(self._run("pip", "install", "--python", folder / "venv", *requirements))

        return made_once(self._factory, name, install) / "venv/bin"

    def _run(self, *arguments: str | Path) -> Finished:
        return process.run([self.uv, *arguments], env={**environment(), **self.environ})

    @staticmethod
    def _install_uv(folder: Path) -> None:
        argv = [sys.executable, "-m", "pip", "install", "--no-deps", "--target", folder, "uv"]
        finished = process.run(argv, env=environment())
        said = finished.stdout + finished.stderr
        if not finished.ok and AWAY.search(said):
            pytest.skip(f"PyPI is away, so there are no front ends to try: {said.strip().splitlines()[-1]}")
        succeed(finished)


def only(folder: Path, pattern: str = "*.whl") -> Path:
    """The one file that matches."""
    (found,) = folder.glob(pattern)
    return found


def contents(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel, by name."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert len(names) == len(set(names))
        return {name: archive.read(name) for name in names}


def images(fatbin: bytes, folder: Path) -> list[str]:
    """What cuobjdump finds: `sm_90.cubin` for SASS, `sm_90.ptx` for PTX."""
    path = folder / "listed.fatbin"
    path.write_bytes(fatbin)
    listed = succeed(process.run([cuobjdump(), "-lelf", "-lptx", path]))
    return re.findall(r"file +\d+: \S*(sm_\w+\.\w+)$", listed, re.MULTILINE)


def build_wheel(project: Path, out: Path, environ: Mapping[str, str]) -> Finished:
    """Runs build without isolation, with the backend of this environment."""
    return process.run(
        [*BUILD, "--wheel", "--no-isolation", "--outdir", out, project], cwd=project.parent, env=environ
    )


def wheel_of(project: Path, out: Path, **variables: str) -> Path:
    """The wheel that build makes without isolation, with the backend of this environment."""
    succeed(build_wheel(project, out, environment(**variables)))
    return only(out)
