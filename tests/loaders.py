"""Generated loaders for tests: with a driver that records, and with real seams over a library that does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from fake_driver import STUB_SOURCE, FakeDriver, Launch, import_loader

import rustcuda_backend
from rustcuda_backend.capability import parse_list
from rustcuda_backend.cuda_versions import cuda_version
from rustcuda_backend.loader.content import LoaderContent
from rustcuda_backend.loader.generate import GeneratedLoader, generate
from rustcuda_backend.signature import KernelSignature, Parameter, parse_type

FATBIN = b"FATBIN of this test"
SCALARS = (
    "i8",
    "u8",
    "i16",
    "u16",
    "i32",
    "u32",
    "i64",
    "u64",
    "isize",
    "usize",
    "f16",
    "bf16",
    "f32",
    "f64",
    "bool",
)


def signature(name: str, *parameters: str, **more: Any) -> KernelSignature:
    """`signature("f", "n: u32", …)`."""
    return KernelSignature(name, tuple(parse_type(*text.split(": ", 1)) for text in parameters), **more)


SAXPY = signature("saxpy", "n: u32", "a: f32", "x: *const f32", "y: *mut f32", doc="Adds `a·x` to `y`.")
SCALE = signature("scale", "lambda: f64", "data: DisjointSlice<f32>", "in: &[f32]", launch_bounds=(256, 2))
EMPTY = signature("empty")
ONE = tuple(signature(f"take_{dtype}", f"value: {dtype}") for dtype in SCALARS)
ANY = KernelSignature("anything", (Parameter("p", "pointer", ""),), source="ptx")
LONG = signature("longs", "x: *const isize", "y: &mut u64", "h: &[bf16]")
SIGNATURES = (SAXPY, SCALE, EMPTY, *ONE, ANY, LONG)


def content(
    *signatures: KernelSignature, capabilities: str = "8.0 9.0 12.0+PTX", **more: Any
) -> LoaderContent:
    fields: dict[str, Any] = {
        "module": "pkg.kernels_cuda",
        "signatures": signatures,
        "lacking": {},
        "capabilities": parse_list(capabilities),
        "version": cuda_version("12.9"),
        "fatbin": FATBIN,
        "generator": "rustcuda-backend 0.1.0",
    }
    return LoaderContent(**{**fields, **more})


def write(folder: Path, loader: GeneratedLoader) -> None:
    """Makes the package `pkg` with the loader in it."""
    package = folder / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "py.typed").write_text("", encoding="utf-8")
    (package / "kernels_cuda.py").write_text(loader.python, encoding="utf-8")
    (package / "kernels_cuda.pyi").write_text(loader.stub, encoding="utf-8")
    (package / "kernels_cuda.fatbin").write_bytes(FATBIN)


class Loaded:
    """A generated module with a driver that records."""

    def __init__(self, module: Any, driver: FakeDriver) -> None:
        self.module, self.driver = module, driver
        module._library.use(driver)
        driver.error = module.DriverError

    @property
    def last(self) -> Launch:
        return self.driver.launches[-1]


@pytest.fixture
def make_loader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Generates a loader, imports it and gives it a fake driver."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.delenv("RUSTCUDA_DRIVER", raising=False)
    monkeypatch.delenv("RUSTCUDA_LAUNCHER", raising=False)

    def build(written: LoaderContent | None = None, **driver: Any) -> Loaded:
        written = written or content(*SIGNATURES)
        write(tmp_path, generate(written))
        for name in ("pkg", "pkg.kernels_cuda"):
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        module = import_loader(tmp_path / "pkg" / "kernels_cuda.py")
        kernels = {
            kernel.name: tuple(
                size for p in kernel.parameters for size in ((8, 8) if p.kind == "slice" else p.abi_bytes)
            )
            for kernel in written.signatures
        }
        driver.setdefault("kernels", kernels)
        return Loaded(module, FakeDriver(**driver))

    return build


@pytest.fixture
def loaded(make_loader: Any) -> Loaded:
    result: Loaded = make_loader()
    return result


def python(folder: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a fresh interpreter that has the package, every warning an error."""
    path = os.pathsep.join(
        [str(folder), str(Path(__file__).parent), str(Path(rustcuda_backend.__file__).parents[1])]
    )
    env = {**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "1", **environment}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=env,
        cwd=folder,
        check=False,
    )


@pytest.fixture(scope="session")
def stub_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a libcuda.so.1 that records."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("stub")
    (folder / "stub.c").write_text(STUB_SOURCE, encoding="utf-8")
    command = [compiler, "-shared", "-fPIC", "-w", "-o", folder / "libcuda.so.1", folder / "stub.c", "-ldl"]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture(params=["ctypes", "cuda-bindings"])
def seam(request: pytest.FixtureRequest, stub_library: Path, tmp_path: Path) -> Any:
    """Runs code through a real seam and the recording library; gives its result and the record."""
    driver: str = request.param
    if driver == "cuda-bindings":
        pytest.importorskip("cuda.bindings.driver")
    write(tmp_path, generate(content(SAXPY, EMPTY)))
    log = tmp_path / "log"

    def run(code: str, **environment: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
        head = "from fake_driver import *\nk = import_loader(Path('pkg/kernels_cuda.py').absolute())\n"
        done = python(
            tmp_path, head + code, RUSTCUDA_DRIVER=driver, LD_LIBRARY_PATH=str(stub_library),
            STUB_LOG=str(log), STUB_SIZES="4,4,8,8", **environment,
        )  # fmt: skip
        return done, log.read_text(encoding="utf-8").splitlines() if log.exists() else []

    return run
