"""What the tests here need: torch, a GPU, and the wheels whose kernels they launch.

Neither the backend nor Rust has to be there; on a machine without them:

    pytest --confcutdir tests/gpu tests/gpu sample_ext/tests
"""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import pytest


def _lack() -> str:
    """What is missing; nothing where the tests can run."""
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch
    return "" if torch.cuda.is_available() else "torch sees no NVIDIA GPU"


@pytest.fixture(scope="session", autouse=True)
def _gpu() -> None:
    lack = _lack()
    if lack:
        pytest.skip(lack)


@pytest.fixture(scope="session")
def intrinsics(_gpu: None) -> Any:
    """The generated loader of the wheel of gpu/intrinsics: a kernel for every function of rustcuda-device."""
    return pytest.importorskip("rustcuda_intrinsics.kernels_cuda")


@pytest.fixture(scope="session")
def torch(_gpu: None) -> Any:
    """The module, in an environment that has it."""
    return importlib.import_module("torch")


@pytest.fixture(scope="session")
def kernels_cuda(_gpu: None) -> Any:
    """The generated loader in the installed wheel."""
    return pytest.importorskip("sample_ext.kernels_cuda", reason="the sample's wheel is not installed")
