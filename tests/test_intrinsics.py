"""Every function of rustcuda-device compiles and assembles, from the least capability that has it on.

The kernels that call them are in gpu/intrinsics; what they compute is tested on a GPU, by gpu/test_*.py.
"""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from cuda_wheels import cuobjdump
from environments import made_once, succeed
from projects import REPOSITORY

from rustcuda_backend import inspection, process
from rustcuda_backend.sysroot import clean_environment

PROJECT = REPOSITORY / "tests" / "gpu" / "intrinsics"


@dataclass(frozen=True)
class Built:
    """The kernels of gpu/intrinsics, built for all its capabilities."""

    fatbin: Path

    def kernels(self, capability: str) -> set[str]:
        """The names of the kernels in the image of a capability, e.g. `"8.0"`."""
        (part,) = inspection.inspect(self.fatbin)
        (image,) = (image for image in part.images if image.capability == capability)
        return {kernel.name for kernel in image.kernels or ()}

    def sass(self, kernel: str, capability: str) -> str:
        """The instructions of a kernel, one a line."""
        return _functions(self.fatbin, capability.replace(".", ""))[kernel]


@cache
def _functions(fatbin: Path, number: str) -> dict[str, str]:
    listing = succeed(process.run((cuobjdump(), "-sass", "-arch", f"sm_{number}", fatbin)))
    parts = re.split(r"^\s*Function : (\S+)$", listing, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def build(folder: Path) -> None:
    ignored = shutil.ignore_patterns("target", "build", "*.egg-info", "kernels_cuda.*", "__pycache__")
    project = shutil.copytree(PROJECT, folder / "project", ignore=ignored)
    command = (sys.executable, "-m", "rustcuda_backend", "build", "--output", folder)
    succeed(process.run(command, cwd=project, env=clean_environment()))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return Built(made_once(tmp_path_factory, "intrinsics", build) / "kernels_cuda.fatbin")


# What came with a capability: kernels that its image has, and that of the capability before has not.
NEW = {
    "7.5": set[str](),
    "8.0": {"warp_redux"},
    "8.6": set[str](),
    "8.9": set[str](),
    "9.0": {"warp_elect"},
    "10.0": set[str](),
}


@pytest.mark.parametrize(("capability", "before"), [*zip(NEW, ["7.0", *NEW], strict=False)])
def test_each_function_is_there_from_its_first_capability_on(
    built: Built, capability: str, before: str
) -> None:
    assert built.kernels(capability) - built.kernels(before) == NEW[capability]
    assert built.kernels(before) <= built.kernels(capability)


def test_an_index_costs_one_multiply_add(built: Built) -> None:
    assert built.sass("thread_index_1d", "9.0").count("IMAD.WIDE.U32") <= 2
