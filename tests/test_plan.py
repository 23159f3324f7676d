"""Plans: where the capabilities come from, and how many passes run at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rustcuda_backend import cgroup, plan
from rustcuda_backend.capability import parse_list
from rustcuda_backend.cuda import CudaTools
from rustcuda_backend.errors import CapabilityError, SettingsError
from rustcuda_backend.plan import CapabilityList, check_capabilities, choose_capabilities, make_plan
from rustcuda_backend.rust import RustToolchain
from rustcuda_backend.settings import Settings, read_settings


def settings(**table: object) -> Settings:
    return read_settings({"crate": "k", **{key.replace("_", "-"): v for key, v in table.items()}}, {}, {})


def chosen(listed: CapabilityList) -> str:
    return " ".join(map(str, listed.capabilities))


def gpu(folder: Path, *lines: str) -> dict[str, str]:
    """The environment of a machine whose nvidia-smi prints these lines."""
    program = folder / "nvidia-smi"
    program.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines), encoding="utf-8")
    program.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def test_the_setting_wins_over_torchs_variable_and_that_over_the_default() -> None:
    environ = {"TORCH_CUDA_ARCH_LIST": "8.0 8.6+PTX"}
    listed = choose_capabilities(settings(capabilities=["9.0", "7.5"]), environ)
    assert (chosen(listed), listed.source) == ("7.5 9.0", "[tool.rustcuda] capabilities")
    listed = choose_capabilities(settings(), environ)
    assert (chosen(listed), listed.source) == ("8.0 8.6+PTX", "environment variable TORCH_CUDA_ARCH_LIST")
    listed = choose_capabilities(settings(), {"TORCH_CUDA_ARCH_LIST": " "})
    assert chosen(listed) == "7.0 7.2 7.5 8.0 8.6 8.7 8.9 9.0 10.0 10.1 12.0+PTX"
    assert listed.source == "the default list of CUDA 12.9"
    listed = choose_capabilities(settings(cuda_version="13.0"), {})
    assert chosen(listed) == "7.5 8.0 8.6 8.7 8.9 9.0 10.0 10.3 11.0 12.0 12.1+PTX"


@pytest.mark.skipif(os.name != "posix", reason="its nvidia-smi is a shell script")
def test_native_is_the_gpu_that_is_there(tmp_path: Path) -> None:
    environ = gpu(tmp_path, "9.0", "8.0", "9.0")
    listed = choose_capabilities(settings(capabilities="Native"), environ)
    assert (chosen(listed), "GPU of this machine" in listed.source) == ("8.0 9.0", True)
    with pytest.raises(CapabilityError, match="'native' needs a GPU"):
        choose_capabilities(settings(capabilities="native"), gpu(tmp_path, "No devices were found"))
    with pytest.raises(CapabilityError, match="'native' needs a GPU"):
        choose_capabilities(settings(), {"TORCH_CUDA_ARCH_LIST": "native", "PATH": ""})


@pytest.mark.skipif(os.name != "posix", reason="its nvidia-smi is a shell script")
def test_an_editable_install_defaults_to_the_gpu_that_is_there(tmp_path: Path) -> None:
    environ = gpu(tmp_path, "8.6")
    assert chosen(choose_capabilities(settings(), environ, editable=True)) == "8.6"
    assert chosen(choose_capabilities(settings(capabilities="9.0"), environ, editable=True)) == "9.0"
    assert len(choose_capabilities(settings(), {"PATH": ""}, editable=True).capabilities) == 11


def test_the_default_lists_compile_and_assemble(
    toolchain: RustToolchain, tools: CudaTools, tools13: CudaTools
) -> None:
    for version, found in (("12.9", tools), ("13.0", tools13)):
        listed = choose_capabilities(settings(cuda_version=version), {})
        assert check_capabilities(listed, toolchain, found) == []


@pytest.mark.parametrize("token", ["8.8", "11.0", "11.0f"])
def test_a_capability_that_this_ptxas_lacks(toolchain: RustToolchain, tools: CudaTools, token: str) -> None:
    listed = CapabilityList(parse_list(token), "the place")
    with pytest.raises(CapabilityError) as raised:
        check_capabilities(listed, toolchain, tools)
    assert token in raised.value.what
    assert tools.ptxas_version in str(raised.value)
    assert "the place" in raised.value.where
    assert "13.0" in str(raised.value)


def test_a_capability_that_this_rustc_lacks(
    toolchain: RustToolchain, tools: CudaTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "target_cpus", lambda _toolchain: frozenset({"sm_80"}))
    with pytest.raises(CapabilityError, match=r"rustc 1\.\d+\.\d+.* does not know capability 9.0"):
        check_capabilities(CapabilityList(parse_list("8.0 9.0"), "x"), toolchain, tools)


def test_ptx_of_one_gpu_or_family_gets_a_warning(toolchain: RustToolchain, tools: CudaTools) -> None:
    listed = CapabilityList(parse_list("8.0+PTX 9.0a+PTX 10.0f+PTX 12.0a"), "x")
    first, second = check_capabilities(listed, toolchain, tools)
    assert "9.0a" in first
    assert "only on that GPU" in first
    assert "10.0f" in second
    assert "family" in second


def plan_of(count: int, environ: dict[str, str], **table: object) -> tuple[int, int]:
    capabilities = parse_list("7.0 7.2 7.5 8.0 8.6 8.7 8.9 9.0")[:count]
    made = make_plan(CapabilityList(capabilities, "x"), Path("work"), settings(**table), environ)
    assert [item.directory for item in made.passes] == [Path("work", item.sm) for item in capabilities]
    return made.jobs, made.cargo_jobs


def test_jobs_are_bounded_by_passes_cores_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "_cores", lambda: 8)
    monkeypatch.setattr(cgroup, "cores", lambda: cgroup.UNLIMITED)
    monkeypatch.setattr(cgroup, "memory_left", lambda: cgroup.UNLIMITED)
    monkeypatch.setattr(plan, "_free_memory", lambda: 64 << 30)
    assert plan_of(1, {}) == (1, 8)
    assert plan_of(4, {}) == (4, 2)
    assert plan_of(8, {"MAX_JOBS": "3"}) == (3, 1)
    assert plan_of(8, {"CARGO_BUILD_JOBS": "2", "MAX_JOBS": "3"}) == (2, 1)
    assert plan_of(8, {"MAX_JOBS": "3"}, jobs=5) == (5, 1)
    for count, shared in ((1, (1, 8)), (4, (4, 2)), (8, (8, 1))):
        assert plan_of(count, {}, jobs=10**9) == plan_of(count, {}, jobs=10**30) == shared
    monkeypatch.setattr(plan, "_free_memory", lambda: 2 << 30)
    assert plan_of(8, {}) == (2, 4)
    monkeypatch.setattr(plan, "_free_memory", lambda: 1 << 20)
    assert plan_of(8, {}) == (1, 8)


def test_a_containers_limits_bound_jobs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "_cores", lambda: 96)
    monkeypatch.setattr(plan, "_free_memory", lambda: 512 << 30)
    monkeypatch.setattr(cgroup, "cores", lambda: 96)
    monkeypatch.setattr(cgroup, "memory_left", lambda: 3 << 30)
    assert plan_of(8, {}) == (3, 32)
    monkeypatch.setattr(cgroup, "cores", lambda: 2)
    assert plan_of(8, {}) == (2, 1)


@pytest.mark.parametrize("text", ["0", "many", "-1", "1.5"])
@pytest.mark.parametrize("variable", ["MAX_JOBS", "CARGO_BUILD_JOBS"])
def test_a_variable_that_is_no_number_of_jobs(variable: str, text: str) -> None:
    with pytest.raises(SettingsError, match=f"{variable} must be a whole number"):
        plan_of(2, {variable: text})


def test_free_memory_is_read_where_the_system_tells(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9 kB\nMemAvailable:   2048 kB\n", encoding="ascii")
    assert plan._free_memory(meminfo) == 2 << 20
    meminfo.write_text("MemTotal: 9 kB\n", encoding="ascii")
    assert plan._free_memory(meminfo) >= 1 << 40
    assert plan._free_memory(tmp_path / "nothing") >= 1 << 40


def test_cores_are_those_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {1, 5, 6}, raising=False)
    assert plan._cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert plan._cores() == 1
