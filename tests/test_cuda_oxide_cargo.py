"""Building with cuda-oxide: the real cargo and rustc, with only the backend library played."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from oxide_stand_ins import StandIn, entry, make_stand_in, program, ptx, with_real_cargo
from test_crates import WORKSPACE
from test_cuda_oxide import ADD, PAIRED, ROWS, SOURCE, build, images, make_crate

from rustcuda_backend import pipeline
from rustcuda_backend.pipeline import Kernels
from rustcuda_backend.report import Report
from rustcuda_backend.rust import RustToolchain
from rustcuda_backend.settings import read_settings

# The flags of a pass reach dependencies, and neither build scripts nor what these print.
DEVICE = """
#[cfg(not(cuda_arch = "80"))]
compile_error!("no cfg");
#[cfg(cuda_arch = "typo")]
const TYPO: u32 = 1;
"""
BUILD_SCRIPT = """\
fn main() {
    assert!(!cfg!(cuda_arch = "70"), "flags of the GPU");
    println!("cargo::rerun-if-changed=build.rs");
}
"""


@pytest.fixture
def stand_in(tmp_path: Path, toolchain: RustToolchain) -> StandIn:
    made = make_stand_in(tmp_path / "rust", toolchain)
    with_real_cargo(made, toolchain)
    made.writes("sm_80", ptx("sm_80", ADD, PAIRED))
    made.writes("sm_90", ptx("sm_90", ADD, PAIRED, ROWS))
    return made


def test_the_whole_way_and_again(
    tmp_path: Path, stand_in: StandIn, capfd: pytest.CaptureFixture[str]
) -> None:
    directory = make_crate(tmp_path / "project" / "kernels")
    with (directory / "cuda-device/src/lib.rs").open("a", encoding="utf-8") as source:
        source.write(DEVICE)
    (directory / "build.rs").write_text(BUILD_SCRIPT, encoding="utf-8")
    kernels = build(directory, stand_in, "8.0 9.0+PTX")
    assert images(kernels) == ["sass 8.0", "sass 9.0", "ptx 9.0"]
    assert "add[grid, block](a: &[f32], n: usize, c: DisjointSlice<f32>)" in kernels.loader.python
    said = capfd.readouterr().err
    assert "unexpected `cfg` condition value: `typo`" in said
    # Fresh: nothing writes PTX, and what was kept belongs to what cargo finds.
    for sm in ("sm_80", "sm_90"):
        stand_in.writes(sm, "not to be read")
    assert build(directory, stand_in, "8.0 9.0+PTX") == kernels
    # A change in the sources.
    stand_in.writes("sm_80", ptx("sm_80", ADD, PAIRED, entry("more")))
    (directory / "src/lib.rs").write_text(SOURCE + "// changed\n", encoding="utf-8")
    later = time.time() + 5  # cargo goes by times
    os.utime(directory / "src/lib.rs", (later, later))
    assert "more[grid, block](" in build(directory, stand_in, "8.0").loader.python
    # Another library, and PTX that somebody has lost.
    stand_in.writes("sm_80", ptx("sm_80", ADD, PAIRED, entry("another")))
    stand_in.backend.write_bytes(stand_in.backend.read_bytes() + b"changed")
    assert "another[grid, block](" in build(directory, stand_in, "8.0").loader.python
    (directory / "target/rustcuda/sm_80/oxide_kernels.oxide.ptx").unlink()
    assert "another[grid, block](" in build(directory, stand_in, "8.0").loader.python


@pytest.mark.parametrize("by", ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "wrapper", "workspace-wrapper"])
def test_a_wrapper_that_caches(tmp_path: Path, stand_in: StandIn, by: str) -> None:
    directory = make_crate(tmp_path / "project" / "kernels")
    # On a hit it brings back all that cargo knows of, hence no PTX.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    wrapper = program(tmp_path / "cache", f"#!/bin/sh\nCUDA_OXIDE_PTX_DIR='{elsewhere}' exec \"$@\"\n")
    if by.startswith("RUSTC"):
        more = {by: str(wrapper)}
    else:
        more = {}
        (directory / ".cargo").mkdir()
        (directory / ".cargo" / "config.toml").write_text(
            f'[build]\nrustc-{by} = "{wrapper}"\n', encoding="utf-8"
        )
    assert "add[grid, block](" in build(directory, stand_in, more=more).loader.python


KERNEL = """\
#[unsafe(no_mangle)]
pub fn cuda_oxide_codegen_v1_cuda_oxide_kernel_246e25db_{name}(n: u32) {{}}
"""


def test_a_kernel_crate_that_another_one_of_the_wheel_depends_on(
    tmp_path: Path, stand_in: StandIn, capfd: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "project"
    device = 'cuda-device = { path = "../cuda-device" }\n'
    crates = {
        "cuda-device": ("", ""),
        "first": (device + 'second = { path = "../second" }\n', KERNEL.format(name="first")),
        "second": (device, KERNEL.format(name="second")),
    }
    for name, (dependencies, source) in crates.items():
        (project / name / "src").mkdir(parents=True)
        package = f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2024"\n'
        manifest = f"{package}[dependencies]\n{dependencies}"
        (project / name / "Cargo.toml").write_text(manifest, encoding="utf-8")
        (project / name / "src" / "lib.rs").write_text(source, encoding="utf-8")
        for sm in ("sm_80", "sm_90") if source else ():
            stand_in.writes(sm, ptx(sm, entry(name, ".u32")), crate=name)
    (project / "Cargo.toml").write_text(WORKSPACE, encoding="utf-8")

    def build_both() -> list[Kernels]:
        crates = [{"crate": name, "module": f"pkg.{name}"} for name in ("first", "second")]
        table = {"toolchain": str(stand_in.root), "capabilities": "8.0 9.0", "jobs": 1, "crates": crates}
        each = [(item.module, item) for item in read_settings(table, {}, {}).of_each_crate()]
        return pipeline.build_all(project, each, Report(), stand_in.environ())

    both = build_both()
    said = capfd.readouterr().err
    assert "first[grid, block](n: u32)" in both[0].loader.python
    assert "second[grid, block](n: u32)" in both[1].loader.python
    assert "not in the wheel" not in said
    # Each is compiled once: the second was there, and nothing of the first has been thrown away for it.
    libraries = sorted((project / "target/rustcuda").glob("sm_*/*/release/lib*.rlib"))
    assert [path.name for path in libraries] == ["libfirst.rlib", "libsecond.rlib"] * 2
    times = [path.stat().st_mtime_ns for path in libraries]
    for name in ("first", "second"):
        stand_in.writes("sm_80", "not to be read", crate=name)
    assert build_both() == both
    assert [path.stat().st_mtime_ns for path in libraries] == times


def test_a_program(tmp_path: Path, stand_in: StandIn) -> None:
    directory = make_crate(tmp_path / "project" / "kernels", SOURCE + "fn main() {}\n")
    (directory / "src/lib.rs").rename(directory / "src/main.rs")
    assert "add[grid, block](" in build(directory, stand_in).loader.python
    stand_in.writes("sm_80", "not to be read")
    assert "add[grid, block](" in build(directory, stand_in).loader.python
