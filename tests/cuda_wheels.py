"""NVIDIA's wheels that the tests find: tools for each supported CUDA version, and cuobjdump as referee."""

from __future__ import annotations

import importlib.metadata
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from rustcuda_backend import process
from rustcuda_backend.capability import Capability, parse_list
from rustcuda_backend.cuda_versions import CUDA_VERSIONS, CudaVersion

VERSIONS = tuple(CUDA_VERSIONS.values())

KERNELS = """
.visible .entry saxpy(.param .u64 out)
{
	.reg .b64 %r<3>;
	.reg .b32 %t<2>;
	ld.param.u64 %r1, [out];
	cvta.to.global.u64 %r2, %r1;
	mov.u32 %t1, %tid.x;
	st.global.u32 [%r2], %t1;
	ret;
}
.visible .entry other() { ret; }
"""


@dataclass(frozen=True)
class Module:
    """What `cuda.assemble` and `cuda.pack` read of a PtxModule."""

    capability: Capability
    text: str
    signatures: tuple[object, ...] = ()
    version: str = ""
    unlaunchable: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """What they read of a KernelSignature."""

    name: str


def ptx(capability: Capability | str, kernels: str = KERNELS, names: tuple[str, ...] = ("saxpy", "other")):
    """A PTX module for ptxas 12.9 and newer."""
    if isinstance(capability, str):
        (capability,) = parse_list(capability)
    version = "8.8" if capability.base >= (10, 0) else "8.0"
    if capability.base in ((8, 8), (11, 0)):
        version = "9.0"
    text = f".version {version}\n.target {capability.sm}\n.address_size 64\n{kernels}"
    return Module(capability, text, tuple(Entry(name) for name in names), version)


def capabilities(version: CudaVersion) -> list[Capability]:
    """Every capability of a CUDA version, with its `a` and `f` forms."""
    found = []
    for major, minor in version.capabilities:
        found.append(Capability(major, minor))
        found += [Capability(major, minor, "a")] * ((major, minor) >= (9, 0))
        found += [Capability(major, minor, "f")] * ((major, minor) >= (10, 0))
    return found


@cache
def wheel_file(distribution: str, ending: str, variable: str = "") -> Path | None:
    """A file of an installed wheel, looked for in the folder that `variable` names, if it is set."""
    folder = os.environ.get(variable, "")
    found = (
        importlib.metadata.distributions(name=distribution, path=[folder])
        if folder
        else importlib.metadata.distributions(name=distribution)
    )
    for installed in found:
        for file in installed.files or ():
            if file.as_posix().endswith(ending):
                return Path(str(installed.locate_file(file)))
    return None


def ptxas(version: CudaVersion) -> Path:
    """The ptxas of that CUDA version's wheel; the test is skipped where it is not installed."""
    found = wheel_file(
        version.wheels[0].split("==")[0], "/bin/ptxas", f"RUSTCUDA_TEST_CUDA{version.name.replace('.', '')}"
    )
    if found is None:
        pytest.skip(f"NVIDIA's wheels of CUDA {version.name} are not installed")
    return found


def cuobjdump() -> Path:
    """The referee; the test is skipped where it is not installed."""
    found = wheel_file("nvidia-cuda-cuobjdump", "/bin/cuobjdump")
    if found is None:
        pytest.skip("nvidia-cuda-cuobjdump is not installed")
    return found


@cache
def assembled(version: CudaVersion, capability: Capability, folder: Path) -> bytes:
    """A cubin made by that version's ptxas itself, without the code under test."""
    source, cubin = folder / f"{capability.sm}.ptx", folder / f"{version.name}-{capability.sm}.cubin"
    source.write_text(ptx(capability).text, encoding="utf-8")
    finished = process.run([ptxas(version), f"-arch={capability.sm}", source, "-o", cubin])
    assert finished.ok, finished.stderr
    return cubin.read_bytes()
