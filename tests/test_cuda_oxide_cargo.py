"""Building with cuda-oxide: the real cargo and rustc, with only the backend library played."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from oxide_stand_ins import StandIn, entry, make_stand_in, ptx, with_real_cargo
from test_cuda_oxide import ADD, PAIRED, ROWS, SOURCE, build, images, make_crate

from rustcuda_backend.rust import RustToolchain

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


def test_a_program(tmp_path: Path, stand_in: StandIn) -> None:
    directory = make_crate(tmp_path / "project" / "kernels", SOURCE + "fn main() {}\n")
    (directory / "src/lib.rs").rename(directory / "src/main.rs")
    assert "add[grid, block](" in build(directory, stand_in).loader.python
    stand_in.writes("sm_80", "not to be read")
    assert "add[grid, block](" in build(directory, stand_in).loader.python
