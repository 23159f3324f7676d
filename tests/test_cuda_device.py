"""Crates written for cuda-oxide: the host part is cut away, and the rest compiled by stock rustc."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from rustcuda_backend import compatible, pipeline
from rustcuda_backend.cargo_files import read_toml
from rustcuda_backend.errors import CompileError, SettingsError
from rustcuda_backend.report import Report
from rustcuda_backend.settings import Settings

UPSTREAM = "https://git.invalid/cuda-oxide.git"

MANIFEST = """\
[package]
name = "oxide-kernels"
version = "0.1.0"
edition = "2024"
[workspace]
[dependencies]
cuda-device = { git = "https://git.invalid/cuda-oxide.git" }
cuda-core = { git = "https://git.invalid/cuda-oxide.git" }
cuda-host = { git = "https://git.invalid/cuda-oxide.git" }
"""

# A program as cuda-oxide's users write it: kernels, what they share with the host, and the host's part.
PROGRAM = """\
//! Kernels and the program that launches them, in one file.
#![allow(clippy::too_many_arguments)]

use cuda_core::{CudaContext, DeviceBuffer, DeviceCopy, LaunchConfig};
use cuda_device::{DisjointSlice, SharedArray, kernel, launch_bounds, launch_contract, thread};
use cuda_host::cuda_module;
use std::collections::HashMap;
use std::ops::Mul;

const BLOCK: usize = 64;

#[derive(Clone, Copy, DeviceCopy)]
#[repr(C)]
pub struct Pair {
    low: f32,
    high: f32,
}

impl Pair {
    fn middle(&self) -> f32 {
        (self.low + self.high) * 0.5
    }

    fn describe(&self) -> String {
        format!("{} to {}", self.low, self.high)
    }
}

trait Doubled {
    fn doubled(self) -> Self;
}

impl Doubled for f32 {
    fn doubled(self) -> Self {
        self * 2.0
    }
}

fn curve(x: f32) -> f32 {
    x.sin().doubled()
}

fn reference(pairs: &[Pair]) -> Vec<f32> {
    pairs.iter().map(Pair::middle).collect()
}

#[cuda_module]
mod kernels {
    use super::*;

    /// The middle of each pair.
    #[kernel]
    pub fn middles(pairs: *const Pair, mut out: DisjointSlice<f32>) {
        if let Some((out, index)) = out.get_mut_indexed() {
            *out = curve(unsafe { (*pairs.add(index.get())).middle() });
        }
    }

    #[kernel]
    #[launch_bounds(64)]
    pub fn reversed(x: &[f32], mut y: DisjointSlice<f32>) {
        static mut TILE: SharedArray<f32, BLOCK> = SharedArray::UNINIT;
        let at = thread::threadIdx_x() as usize;
        let index = thread::index_1d();
        unsafe { TILE[at] = x[index.get()] };
        thread::sync_threads();
        if let Some(y) = y.get_mut(index) {
            *y = unsafe { TILE[BLOCK - 1 - at] };
        }
    }

    #[kernel(f32, u32)]
    pub fn scale<T: Copy + Mul<Output = T>>(by: T, mut y: DisjointSlice<T>) {
        if let Some(y) = y.get_mut(thread::index_1d()) {
            *y = *y * by;
        }
    }

    #[kernel]
    pub fn anything<T: Copy>(value: T, mut y: DisjointSlice<T>) {
        if let Some(y) = y.get_mut(thread::index_1d()) {
            *y = value;
        }
    }

    #[kernel(launch_context = context)]
    #[launch_contract(domain = 1, coordinates = u32, block = (64, 1, 1), requires = (y.len() >= 1))]
    pub fn contracted(mut y: DisjointSlice<u32>) {
        if let Some(mut element) = y.element_thread32(thread::index_1d_u32(context)) {
            element.write(7);
        }
    }

    #[kernel]
    pub fn structs(pairs: &[Pair], one: Pair, mut y: DisjointSlice<f32>) {
        if let Some(y) = y.get_mut(thread::index_1d()) {
            *y = one.high + pairs[0].low;
        }
    }
}

fn main() {
    let context = CudaContext::new(0).expect("a GPU");
    let module = kernels::load(&context).unwrap();
    let names: HashMap<&str, usize> = HashMap::new();
    let buffer = DeviceBuffer::from_host(&context, &reference(&[])).unwrap();
    println!("{names:?} {:?} {}", module, LaunchConfig::for_num_elems(buffer.len()).describe());
}
"""


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def build(project: Path, crate: str = "kernels", **settings: Any) -> pipeline.Kernels:
    """Builds without the network: what must not be asked for is not to be had."""
    chosen = Settings(crate=crate, capabilities=("8.0",), offline=True, **settings)
    return pipeline.build(project, "kernels_cuda", chosen, Report())


def ptx_of(project: Path, crate: str = "kernels") -> str:
    (path,) = (project / crate / "target" / "rustcuda").glob("sm_80/sm_80.ptx")
    return path.read_text(encoding="utf-8")


def entries(text: str) -> list[str]:
    return sorted(re.findall(r"\.entry (\w+)", text))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return write(tmp_path, {"kernels/Cargo.toml": MANIFEST, "kernels/src/main.rs": PROGRAM})


def test_a_program_becomes_its_kernels(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    stub = build(program).loader.stub
    text = ptx_of(program)
    kernels = ["contracted", "middles", "reversed", "scale_f32", "scale_u32", "structs"]
    assert entries(text) == kernels
    assert ".maxntid 64\n" in text
    assert ".reqntid 64" in text
    assert "ld.shared" in text
    assert "__nv_" not in text
    said = capfd.readouterr().err
    assert "oxide-kernels is written for cuda-oxide: its host part is cut away" in said
    # Of a struct Python knows nothing, but a pointer to one it can pass.
    assert "kernels that Python cannot launch, for the types of their parameters: structs" in said
    assert "structs" not in stub
    assert "middles" in stub
    assert "a generic kernel, of which none is emitted; list types" in said


def test_kernels_that_python_cannot_launch_alone_are_none(tmp_path: Path) -> None:
    source = """
use cuda_device::{DisjointSlice, kernel};
pub struct Pair { low: f32 }
#[kernel]
pub fn odd(pairs: &[Pair], mut y: DisjointSlice<Pair>) {}
"""
    project = write(tmp_path, {"kernels/Cargo.toml": MANIFEST, "kernels/src/lib.rs": source})
    with pytest.raises(CompileError, match="has no kernels that Python could launch") as caught:
        build(project)
    assert "odd (capability 8.0)" in caught.value.what


def test_nothing_of_the_author_is_touched(program: Path) -> None:
    before = {path: path.read_bytes() for path in program.rglob("*") if path.is_file()}
    build(program)
    after = {path: path.read_bytes() for path in program.rglob("*") if path.is_file()}
    assert {path: after[path] for path in before} == before
    added = {path.relative_to(program).parts[1] for path in after.keys() - before.keys()}
    assert added == {"target"}


LOCK = """\
version = 4

[[package]]
name = "cuda-core"
version = "0.2.1"
source = "git+https://git.invalid/cuda-oxide.git#4514af2c4514af2c4514af2c4514af2c4514af2c"

[[package]]
name = "cuda-device"
version = "0.2.1"
source = "git+https://git.invalid/cuda-oxide.git#4514af2c4514af2c4514af2c4514af2c4514af2c"

[[package]]
name = "cuda-host"
version = "0.2.1"
source = "git+https://git.invalid/cuda-oxide.git#4514af2c4514af2c4514af2c4514af2c4514af2c"

[[package]]
name = "oxide-kernels"
version = "0.1.0"
dependencies = ["cuda-core", "cuda-device", "cuda-host"]
"""


def test_a_locked_build_needs_no_git_repository_and_keeps_the_lock(program: Path) -> None:
    write(program, {"kernels/Cargo.lock": LOCK})
    build(program, locked=True)
    assert (program / "kernels" / "Cargo.lock").read_text(encoding="utf-8") == LOCK


CHECKSUM = "0" * 64
# A registry of one crate, which any machine can compile.
REGISTRY = {
    "kernels/.cargo/config.toml": """\
[source.crates-io]
replace-with = "vendored"
[source.vendored]
directory = "vendor"
""",
    "kernels/vendor/helper/Cargo.toml": '[package]\nname = "helper"\nversion = "0.1.0"\nedition = "2024"\n',
    "kernels/vendor/helper/.cargo-checksum.json": f'{{"files": {{}}, "package": "{CHECKSUM}"}}',
    "kernels/vendor/helper/src/lib.rs": "#![no_std]\npub fn half(x: f32) -> f32 { x / 2.0 }\n",
    "kernels/Cargo.toml": MANIFEST + 'helper = "0.1"\n',
    "kernels/src/main.rs": PROGRAM.replace("x.sin().doubled()", "helper::half(x.sin())"),
}
HELPER = f"""
[[package]]
name = "helper"
version = "0.1.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "{CHECKSUM}"
"""


def test_what_the_lock_lacks_is_an_error_of_locked_builds(program: Path) -> None:
    write(program, {**REGISTRY, "kernels/Cargo.lock": LOCK})
    with pytest.raises(CompileError, match=r"Cargo\.lock does not have helper 0\.1\.0"):
        build(program, locked=True)
    assert (program / "kernels" / "Cargo.lock").read_text(encoding="utf-8") == LOCK


def test_dependencies_from_a_registry_are_taken_as_the_lock_says(program: Path) -> None:
    write(program, {**REGISTRY, "kernels/Cargo.lock": LOCK + HELPER})
    build(program, locked=True)
    assert "middles" in entries(ptx_of(program))
    staged = program / "kernels" / "target" / "rustcuda" / "cuda-device" / "oxide-kernels"
    assert f'checksum = "{CHECKSUM}"' in (staged / "Cargo.lock").read_text(encoding="utf-8")


HOST_ONLY = """\
[package]
name = "host-only"
version = "0.1.0"
edition = "2024"
"""


def test_dependencies_that_need_std_are_left_to_the_host(program: Path) -> None:
    manifest = MANIFEST + 'host-only = { path = "host-only" }\n'
    source = PROGRAM.replace("use std::ops::Mul;", "use host_only::Table;\nuse std::ops::Mul;")
    files = {
        "kernels/Cargo.toml": manifest,
        "kernels/src/main.rs": source,
        "kernels/host-only/Cargo.toml": HOST_ONLY,
        "kernels/host-only/src/lib.rs": "pub type Table = std::collections::HashMap<u32, u32>;\n",
    }
    build(write(program, files))
    assert "middles" in entries(ptx_of(program))


LIBRARY = """\
use cuda_core::CudaContext;
use cuda_device::cuda_module;

#[cuda_module]
pub mod kernels {
    pub mod inner {
        use cuda_device::{DisjointSlice, kernel, thread};

        #[kernel]
        pub fn from_library(mut y: DisjointSlice<f32>) {
            if let Some(y) = y.get_mut(thread::index_1d()) {
                *y = y.sqrt();
            }
        }
    }
}

pub fn start() -> CudaContext {
    CudaContext::new(0).unwrap()
}
"""


def test_kernels_of_a_library_come_along_though_only_the_host_names_it(program: Path) -> None:
    library = MANIFEST.replace("oxide-kernels", "kernel-library").replace("[workspace]\n", "")
    files = {
        "kernels/Cargo.toml": MANIFEST + 'kernel-library = { path = "library" }\n',
        "kernels/src/main.rs": PROGRAM.replace("use std::coll", "use kernel_library::start;\nuse std::coll"),
        "kernels/library/Cargo.toml": library,
        "kernels/library/src/lib.rs": LIBRARY,
    }
    build(write(program, files))
    assert {"from_library", "middles"} <= set(entries(ptx_of(program)))


SHARED = "pub fn start() -> f32 { 1.5 }\npub fn host() -> String { String::new() }\n"
FILES = """\
use cuda_core::CudaContext;
mod curves;
#[path = "inner/shared.rs"]
mod shared;
use cuda_device::{DisjointSlice, kernel, thread};

#[kernel]
fn files(mut y: DisjointSlice<f32>) {
    if let Some(y) = y.get_mut(thread::index_1d()) {
        *y = curves::steep(shared::start());
    }
}

fn main() { let _ = (CudaContext::new(0), shared::host()); }
"""


def test_modules_in_files_are_cut_too_and_watched(program: Path) -> None:
    files = {
        "kernels/src/main.rs": FILES,
        "kernels/src/curves.rs": "pub fn steep(x: f32) -> f32 { x.exp() * 3.0 }\n",
        "kernels/src/inner/shared.rs": SHARED,
    }
    build(write(program, files))
    assert entries(ptx_of(program)) == ["files"]
    before = ptx_of(program)
    write(
        program, {"kernels/src/inner/shared.rs": files["kernels/src/inner/shared.rs"].replace("1.5", "2.5")}
    )
    build(program)
    assert ptx_of(program) != before


INLINE = """\
use cuda_device::{DisjointSlice, constant, cuda_module, device, kernel, ptx_asm, thread};
use cuda_device::{ConstantMemory, cluster_launch, cooperative_launch};

#[cuda_module]
mod kernels {
    use super::*;

    #[constant]
    static BIAS: ConstantMemory<[u32; 4]> = ConstantMemory::UNINIT;

    #[device]
    fn lane() -> u32 {
        let mut lane: u32;
        unsafe { ptx_asm!("mov.u32 %0, %%laneid;", out("=r") lane) };
        lane
    }

    #[cooperative_launch]
    #[kernel(unchecked_indexing)]
    pub fn inline(mut y: DisjointSlice<u32>) {
        let mut sum = 0;
        let mut round = 0_u32;
        #[unroll(2)]
        while round < 4 {
            sum += BIAS.get()[round as usize];
            round += 1;
        }
        let mut wide: u64;
        let mut total = lane();
        unsafe {
            ptx_asm!("{ mul%1.u32 %0, %2, %3; }", out("=l") wide, in("C") b".wide\\0",
                in("r") sum, in("r") round, options(register_only));
            const LOW: &[u8; 4] = b".lo\\0";
            ptx_asm!("mul%1.u32 %0, %0, %2;", inout("+r") total, in("C") LOW, in("r") round,
                options(register_only));
            ptx_asm!("add.u32 %0, %0, %1;", inout("+r") total, in("n") 5, options(register_only));
            ptx_asm!("membar.gl;", clobber("memory"));
        }
        if let Some(y) = y.get_mut(thread::index_1d()) {
            *y = total + wide as u32;
        }
    }
}

fn main() {}
"""


def test_inline_ptx_constants_and_device_functions(program: Path) -> None:
    build(write(program, {"kernels/src/main.rs": INLINE.replace(", cluster_launch", "")}))
    text = ptx_of(program)
    assert "%laneid;" in text
    assert "mul.wide.u32" in text
    assert "mul.lo.u32" in text
    assert re.search(r"add\.u32 %r\d+, %r\d+, 5;", text)
    assert "membar.gl;" in text
    assert ".const .align 4 .b8 " in text


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('ptx_asm!("mov.u32 %3, 1;", out("=r") lane)', "an operand %3 that is not there"),
        ('ptx_asm!("mov.u32 %0, 1;", out("=x") lane)', "h, r, l, q, f, d, n and C are the constraints"),
        ('ptx_asm!("mov%1.u32 %0, 1;", out("=r") lane, in("C") NAME)', "constants cannot be read here"),
        ("ptx_asm!(lane)", "ptx_asm! takes a template"),
        ('ptx_asm!("", lane)', "ptx_asm! takes a template"),
    ],
)
def test_wrong_inline_ptx_is_said(
    program: Path, capfd: pytest.CaptureFixture[str], call: str, message: str
) -> None:
    source = re.sub(r"ptx_asm!\(\"mov\.u32 %0, %%laneid;\", out\(\"=r\"\) lane\)", lambda _: call, INLINE)
    with pytest.raises(CompileError):
        build(write(program, {"kernels/src/main.rs": source.replace(", cluster_launch", "")}))
    assert message in capfd.readouterr().err


def test_one_of_several_programs_must_be_named(program: Path) -> None:
    (program / "kernels/src/bin").mkdir()
    shutil.move(program / "kernels/src/main.rs", program / "kernels/src/bin/first.rs")
    write(program, {"kernels/src/bin/second.rs": "fn main() {}\n"})
    with pytest.raises(SettingsError, match=r"programs \(first, second\)"):
        build(program)
    manifest = MANIFEST.replace('edition = "2024"\n', 'edition = "2024"\ndefault-run = "first"\n')
    build(write(program, {"kernels/Cargo.toml": manifest}))
    assert "middles" in entries(ptx_of(program))


def test_the_authors_profile_and_features_hold(program: Path) -> None:
    manifest = MANIFEST + "[features]\nmore = []\n[profile.release]\noverflow-checks = true\n"
    source = PROGRAM.replace(
        "#[kernel]\n    #[launch_bounds(64)]",
        '#[cfg(feature = "more")]\n    #[kernel]\n    pub fn more(mut y: DisjointSlice<u32>) {\n'
        "        if let Some(y) = y.get_mut(thread::index_1d()) { *y += 1; }\n    }\n"
        "    #[kernel]\n    #[launch_bounds(64)]",
    )
    build(write(program, {"kernels/Cargo.toml": manifest, "kernels/src/main.rs": source}), features=("more",))
    text = ptx_of(program)
    more = text[text.index(".entry more(") :]
    assert "trap" in more[: more.index("\n}")]


def test_the_wheel_does_not_depend_on_the_folder(
    program: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other") / "place"
    shutil.copytree(program, other)
    assert build(program).fatbin == build(other).fatbin
    assert str(program) not in ptx_of(program)


def dependency(name: str, source: str = "registry+https://index.invalid", **fields: Any) -> dict[str, Any]:
    plain = {"name": name, "req": "^1", "kind": None, "rename": None, "optional": False, "target": None}
    plain |= {"uses_default_features": True, "features": [], "registry": None, "source": source}
    return plain | fields


def test_dependencies_keep_all_that_is_said_of_them(tmp_path: Path) -> None:
    git = "git+https://git.invalid/x?branch=main"
    package = {
        "name": "oxide-kernels",
        "version": "0.1.0",
        "edition": "2024",
        "features": {"more": ["dep:optional"]},
        "manifest_path": str(tmp_path / "Cargo.toml"),
        "targets": [
            {"name": "oxide-kernels", "kind": ["lib"], "src_path": str(tmp_path / "src/lib.rs")},
            {"name": "build-script-build", "kind": ["custom-build"], "src_path": str(tmp_path / "build.rs")},
        ],
        "dependencies": [
            dependency("cuda-device", git),
            dependency("cuda-async", git),
            dependency("from-git", git, features=["a"], uses_default_features=False),
            dependency("other", registry="https://other.invalid", rename="renamed"),
            dependency("optional", optional=True),
            dependency("for-tests", kind="dev"),
            dependency("builder", kind="build"),
            dependency("targeted", target='cfg(target_arch = "nvptx64")'),
        ],
    }
    folder = tmp_path / "staged"
    nothing = {"packages": [], "resolve": {"nodes": []}}
    staged = compatible.stage(package, lambda _: package, tmp_path, folder, lambda _: nothing)
    manifest = read_toml(staged.manifest)
    assert manifest["dependencies"]["cuda-device"] == {
        "package": "cuda-device",
        "path": "../device/cuda-device",
    }
    assert manifest["dependencies"]["from-git"] == {
        "package": "from-git", "default-features": False, "features": ["a"], "optional": False,
        "git": "https://git.invalid/x", "branch": "main",
    }  # fmt: skip
    assert manifest["dependencies"]["renamed"]["package"] == "other"
    assert manifest["dependencies"]["renamed"]["registry-index"] == "https://other.invalid"
    assert manifest["dependencies"]["optional"]["optional"]
    assert sorted(manifest["dependencies"]) == ["cuda-device", "from-git", "optional", "renamed"]
    assert list(manifest["build-dependencies"]) == ["builder"]
    assert list(manifest["target"]['cfg(target_arch = "nvptx64")']["dependencies"]) == ["targeted"]
    assert manifest["features"] == {"more": ["dep:optional"]}
    assert manifest["lib"] == {"name": "oxide_kernels", "path": "../../src/lib.rs"}
    assert manifest["package"]["build"] == "../../build.rs"
    assert staged.device_only == ("oxide-kernels",)
