"""Builds rustcuda_launch for tests, and lets fake tensors describe themselves to C as torch's do."""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import math
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fake_driver import FakeTensor

if TYPE_CHECKING:
    from types import ModuleType

SOURCE = Path(__file__).parents[1] / "launcher" / "rustcuda_launch.c"

# DLPack's code and bits.
DTYPES = {
    "bool": (6, 8), "int8": (0, 8), "int16": (0, 16), "int32": (0, 32), "int64": (0, 64), "uint8": (1, 8),
    "uint16": (1, 16), "uint32": (1, 32), "uint64": (1, 64), "float16": (2, 16), "float32": (2, 32),
    "float64": (2, 64), "bfloat16": (4, 16), "complex64": (5, 64),
}  # fmt: skip


def compiled(folder: Path) -> Path:
    """The extension module, every warning an error."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    headers = Path(sysconfig.get_path("include"))
    if compiler is None or sys.platform != "linux" or not (headers / "Python.h").is_file():
        pytest.skip("no C compiler or no headers of Python")
    library = folder / f"rustcuda_launch{sysconfig.get_config_var('EXT_SUFFIX')}"
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-cast-function-type"]
    command = [compiler, "-O1", "-shared", "-fPIC", *warnings, f"-I{headers}", "-o", library, SOURCE]
    subprocess.run(command, check=True)
    return library


def load(library: Path) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader("rustcuda_launch", str(library))
    spec = importlib.util.spec_from_loader("rustcuda_launch", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def launch_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """rustcuda_launch, compiled."""
    return compiled(tmp_path_factory.mktemp("in_c"))


@pytest.fixture(scope="session")
def launches_in_c(launch_library: Path) -> ModuleType:
    """rustcuda_launch, imported."""
    return load(launch_library)


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_uint64),
        ("device_type", ctypes.c_int32),
        ("device_index", ctypes.c_int32),
        ("dimensions", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


DESCRIBE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
CURRENT_STREAM = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_uint64)
)


class Exchange(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("unused", ctypes.c_void_p * 4),
        ("describe", DESCRIBE),
        ("current_stream", CURRENT_STREAM),
    )


@DESCRIBE
def describe(tensor: Any, out: Any) -> int:
    """What torch's function says of a tensor; each has its address 16 bytes in, to see that it is added."""
    shape = tensor.shape if math.prod(tensor.shape) == tensor.count else (tensor.count,)
    strides = [math.prod(shape[axis + 1 :]) * (1 if tensor.contiguous else 2) for axis in range(len(shape))]
    tensor.described = [(ctypes.c_int64 * len(shape))(*numbers) for numbers in (shape, strides)]
    code, bits = DTYPES[tensor.dtype.removeprefix("torch.")]
    at = [ctypes.addressof(numbers) for numbers in tensor.described]
    address, offset = (tensor.address - 16, 16) if tensor.address > 16 else (tensor.address, 0)
    kind = 2 if tensor.is_cuda else 1
    out[0] = DLTensor(address, kind, tensor.index, len(shape), code, bits, 1, *at, offset)
    return 0


@CURRENT_STREAM
def current_stream(device_type: int, device_index: int, stream: Any) -> int:
    assert device_type == 2
    stream[0] = sys.modules["torch"].stream_of(device_index)
    return 0


# What capsules keep only the addresses of.
KEPT: list[Any] = []


def capsule(address: int, name: bytes) -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    KEPT.append(name)
    return new(address, name, None)


@cache
def exchange(major: int = 1) -> Any:
    """The capsule of the table."""
    table = Exchange(major, 3, (ctypes.c_void_p * 4)(), describe, current_stream)
    KEPT.append(table)
    return capsule(ctypes.addressof(table), b"dlpack_exchange_api")


def describe_to_c(torch: ModuleType, monkeypatch: pytest.MonkeyPatch, major: int = 1) -> None:
    """Gives a fake torch the types and the table that the real one has since 2.10."""
    monkeypatch.setattr(FakeTensor, "__dlpack_c_exchange_api__", exchange(major), raising=False)
    parameter = type("Parameter", (FakeTensor,), {})
    vars(torch).update(Tensor=FakeTensor, nn=type("nn", (), {"Parameter": parameter}))
