"""`lineinfo`: what profilers and debuggers show of a kernel are the lines of its Rust source."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from cuda_wheels import cuobjdump
from environments import environment, succeed
from projects import MANIFEST, MakeProject

from rustcuda_backend import process

SOURCE = """\
use rustcuda_device::prelude::*;

#[device]
fn twice(x: f32) -> f32 {
    2.0 * x
}

#[kernel]
pub fn double(mut x: DisjointSlice<f32>) {
    if let Some(x) = x.get_mut(thread::index_1d()) {
        let old = *x;
        *x = twice(old);
    }
}
"""


def lines_of(listing: str, instruction: str) -> set[tuple[str, int]]:
    """File and line that stand above the instructions of a kind."""
    found, place = set(), ("", 0)
    for line in listing.splitlines():
        if match := re.search(r'//## File "([^"]*)", line (\d+)', line):
            place = (match[1], int(match[2]))
        elif re.search(rf"\*/\s+(?:@!?\w+ )?\s*{instruction}\b", line):
            found.add(place)
    return found


def test_instructions_have_the_lines_of_the_source(make_project: MakeProject, tmp_path: Path) -> None:
    manifest = MANIFEST.replace("[workspace]", '[dependencies]\nrustcuda-device = "0.1"\n[workspace]')
    project = make_project(SOURCE, manifest=manifest, settings="lineinfo = true")
    disassembler = cuobjdump().with_name("nvdisasm" + cuobjdump().suffix)
    if not disassembler.exists():
        pytest.skip("nvdisasm is not there")
    command = (sys.executable, "-m", "rustcuda_backend", "build", "--output", tmp_path)
    succeed(process.run(command, cwd=project, env=environment("9.0")))
    fatbin = next(tmp_path.glob("*.fatbin"))
    succeed(process.run((cuobjdump(), "-xelf", "all", fatbin), cwd=tmp_path))
    (cubin,) = tmp_path.glob("*.cubin")
    listing = succeed(process.run((disassembler, "-g", "-c", cubin)))
    assert ("./src/lib.rs", 11) in lines_of(listing, "LDG")
    assert ("./src/lib.rs", 12) in lines_of(listing, "STG")
    assert ("./src/lib.rs", 5) in lines_of(listing, "FADD")
    assert str(tmp_path) not in listing.replace(str(cubin), "")
