"""From settings and tools to a plan: which passes run, how many at once, and why these capabilities."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rustcuda_backend import capability, cgroup, cuda, gpu
from rustcuda_backend.capability import Capability
from rustcuda_backend.compilers import Pass
from rustcuda_backend.cuda import CudaTools
from rustcuda_backend.cuda_versions import cuda_version
from rustcuda_backend.errors import CapabilityError, SettingsError
from rustcuda_backend.rust import RustToolchain, target_cpus
from rustcuda_backend.settings import Settings

TORCH_VARIABLE = "TORCH_CUDA_ARCH_LIST"

# A pass needs some 400 MiB (core's bitcode, LLVM, then ptxas); the rest is margin for large crates.
_BYTES_PER_PASS = 1 << 30


@dataclass(frozen=True)
class CapabilityList:
    """The capabilities to build for.

    Attributes:
        capabilities: In numeric order, without duplicates.
        source: Where the list comes from, for messages and the closing table.
    """

    capabilities: tuple[Capability, ...]
    source: str


@dataclass(frozen=True)
class Plan:
    """What a build will do.

    Attributes:
        listed: The capabilities and where they come from.
        passes: One for each capability.
        jobs: How many passes run at once.
        cargo_jobs: How many rustc's each of them may run at once.
    """

    listed: CapabilityList
    passes: tuple[Pass, ...]
    jobs: int
    cargo_jobs: int


def choose_capabilities(
    settings: Settings, environ: Mapping[str, str], *, editable: bool = False
) -> CapabilityList:
    """Chooses what to build for.

    Order: the setting; TORCH_CUDA_ARCH_LIST; for an editable install the GPU of this machine; the
    default list of the CUDA version.

    Raises:
        CapabilityError: A token that is none, an empty list, or `native` without a GPU.
    """
    if settings.capabilities:
        return _listed(" ; ".join(settings.capabilities), settings.where("capabilities"), environ)
    if environ.get(TORCH_VARIABLE, "").strip():
        return _listed(environ[TORCH_VARIABLE], f"environment variable {TORCH_VARIABLE}", environ)
    if editable and (present := gpu.present_capabilities(environ)):
        source = "the GPU of this machine (editable install)"
        return CapabilityList(capability.parse_list(present, where=source), source)
    version = cuda_version(settings.cuda_version)
    return CapabilityList(
        capability.parse_list(version.default_list), f"the default list of CUDA {version.name}"
    )


def _listed(text: str, where: str, environ: Mapping[str, str]) -> CapabilityList:
    if text.strip().lower() != "native":
        return CapabilityList(capability.parse_list(text, where=where), where)
    present = gpu.present_capabilities(environ)
    if not present:
        raise CapabilityError(
            "'native' needs a GPU, and there is none on this machine",
            where=where,
            hint='name the capabilities, e.g. "8.0;9.0+PTX"',
        )
    source = f"{where} = native, the GPU of this machine"
    return CapabilityList(capability.parse_list(present, where=source), source)


def check_capabilities(
    listed: CapabilityList, toolchain: RustToolchain | None, tools: CudaTools
) -> list[str]:
    """Makes sure that compiler and ptxas know every capability, before the first pass.

    Args:
        listed: The capabilities.
        toolchain: Stock rustc, if that compiles.
        tools: NVIDIA's tools.

    Returns:
        Warnings.

    Raises:
        CapabilityError: One is unknown to this rustc or this ptxas.
    """
    known = target_cpus(toolchain) if toolchain else ()
    for item in listed.capabilities:
        if toolchain and item.sm not in known:
            raise CapabilityError(
                f"rustc {toolchain.version} does not know capability {item.name}",
                where=listed.source,
                hint="leave it out, or use a newer Rust toolchain",
            )
    cuda.check_capabilities(tools, listed.capabilities, listed.source)
    return [
        f"{item} ({listed.source}): PTX of {item.name} runs only on that "
        + ("GPU" if item.suffix == "a" else "family of GPUs")
        + f"; add a plain capability with +PTX for newer GPUs, e.g. {item.plain.name}+PTX"
        for item in listed.capabilities
        if item.ptx and item.suffix
    ]


def make_plan(
    listed: CapabilityList, directory: Path, settings: Settings, environ: Mapping[str, str]
) -> Plan:
    """Lays out the passes and shares cores and memory between them.

    Args:
        listed: The capabilities.
        directory: Where each pass gets a folder of its own.
        settings: For `jobs`.
        environ: For MAX_JOBS and CARGO_BUILD_JOBS.
    """
    passes = tuple(Pass(item, directory / item.sm) for item in listed.capabilities)
    most = _most_jobs(settings, environ)
    memory = min(_free_memory(), cgroup.memory_left())
    jobs = max(1, min(most, len(passes), memory // _BYTES_PER_PASS))
    # cargo sets up as many rustc's as it is allowed, whether or not there is work for them.
    return Plan(listed, passes, jobs, cargo_jobs=max(1, min(most, _cores()) // jobs))


def _most_jobs(settings: Settings, environ: Mapping[str, str]) -> int:
    if settings.jobs:
        return settings.jobs
    limits = [_cores(), cgroup.cores()]
    for variable in ("MAX_JOBS", "CARGO_BUILD_JOBS"):
        text = environ.get(variable, "").strip()
        if text and (not text.isdecimal() or int(text) == 0):
            raise SettingsError(
                f"{variable} must be a whole number from 1 on, not '{text}'",
                where=f"environment variable {variable}",
            )
        if text:
            limits.append(int(text))
    return min(limits)


def _cores() -> int:
    """Cores that this process may run on, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _free_memory(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Free memory in bytes; plenty where the system does not tell."""
    try:
        lines = meminfo.read_text(encoding="ascii").splitlines()
    except OSError:
        return 1 << 40
    available = next((line for line in lines if line.startswith("MemAvailable:")), None)
    return int(available.split()[1]) * 1024 if available else 1 << 40
