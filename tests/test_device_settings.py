"""Settings that reach into the device crate: profiles without optimization, contracted arithmetic."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from cuda_wheels import cuobjdump
from environments import environment, succeed
from projects import MANIFEST, MakeProject

from rustcuda_backend import inspection, process

DEVICE_MANIFEST = MANIFEST.replace("[workspace]", '[dependencies]\nrustcuda-device = "0.1"\n[workspace]')

EVERYTHING = """\
use rustcuda_device::atomic::{AtomicOrdering, DeviceAtomicU32};
use rustcuda_device::prelude::*;
use rustcuda_device::block;

/// Whatever can panic, and what is not plain code.
#[kernel(f32, bf16)]
pub unsafe fn everything<T: Float>(x: &[T], mut y: DisjointSlice<T>, count: *mut u32) {
    static mut TILE: SharedArray<u32, 64> = SharedArray::UNINIT;
    static mut SCRATCH: SharedArray<u32, 8> = SharedArray::UNINIT;
    let index = thread::index_1d();
    let at = index.get();
    let word = x[at].to_f32().sqrt() as u32;
    gpu_assert!(at < 1 << 20, "too many");
    gpu_printf!("{} {:.2}\\n", at, x[at].to_f32());
    unsafe {
        TILE[at % 64] = word / (at as u32 % 7);
        *DynamicShared::new().take::<u32>(64).add(at) = 1;
        thread::sync_threads();
        let sum = block::sum(warp::shuffle_xor(TILE[63 - at % 64], 1), &raw mut SCRATCH);
        let both = sum + rustcuda_device::sync_threads_count(sum > 3);
        DeviceAtomicU32::from_ptr(count).fetch_add(both, AtomicOrdering::AcqRel);
    }
    if let Some(y) = y.get_mut(index) {
        *y = T::from_f32((both_of(x).0 + 1) as f32);
    }
    if at == 77 {
        debug::trap();
    }
}

fn both_of<T: Float>(x: &[T]) -> (u32, u32) {
    let (first, rest) = x.split_first().unwrap();
    (first.to_f32() as u32, rest.len().try_into().expect("short"))
}
"""

PRODUCTS = """\
use rustcuda_device::prelude::*;

macro_rules! kernels {
    ($($name:ident $word:ty: $from:expr, $to:expr;)*) => { $(
        #[kernel]
        pub unsafe fn $name(x: *mut $word, a: $word, b: $word) {
            unsafe { *x = $to($from(*x) * $from(a) + $from(b)) };
        }
    )* };
}

kernels! {
    sum_f32 f32: f32::from, f32::from;
    sum_f64 f64: f64::from, f64::from;
    sum_f16 f16: f16::from, f16::from;
    sum_bf16 bf16: bf16::from, bf16::from;
    sum_f16x2 u32: F16x2::from_bits, F16x2::to_bits;
    sum_bf16x2 u32: Bf16x2::from_bits, Bf16x2::to_bits;
}
"""


def build(project: Path, capabilities: str, *settings: str) -> Path:
    """Builds the kernels alone; returns the fatbin."""
    folder = project / "built"
    chosen = [word for setting in settings for word in ("-C", setting)]
    command = (sys.executable, "-m", "rustcuda_backend", "build", "--output", folder, *chosen)
    succeed(process.run(command, cwd=project, env=environment(capabilities)))
    return folder / "kernels_cuda.fatbin"


@pytest.mark.parametrize("features", ["", "panic-message"])
def test_kernels_build_without_optimization(make_project: MakeProject, features: str) -> None:
    manifest = DEVICE_MANIFEST.replace('"0.1"\n', f'{{ version = "0.1", features = ["{features}"] }}\n')
    project = make_project(EVERYTHING, manifest=manifest if features else DEVICE_MANIFEST)
    (part,) = inspection.inspect(build(project, "9.0 10.0 12.0", "profile=dev"))
    assert [image.capability for image in part.images] == ["9.0", "10.0", "12.0"]
    names = {"everything_f32", "everything_bf16"}
    assert all({kernel.name for kernel in image.kernels or ()} == names for image in part.images)


# Before 9.0, operations on bf16 are fused multiply-adds of their own, or go through f32.
@pytest.mark.parametrize(
    ("fmad", "twice"),
    [
        ("true", {"7.5": {"sum_bf16", "sum_bf16x2"}, "8.0": {"sum_bf16", "sum_bf16x2"}, "9.0": set[str]()}),
        ("false", dict.fromkeys(("7.5", "8.0", "9.0", "10.0"))),
    ],
)
def test_products_and_sums_are_contracted_if_asked(
    make_project: MakeProject, fmad: str, twice: dict[str, set[str] | None]
) -> None:
    fatbin = build(make_project(PRODUCTS, manifest=DEVICE_MANIFEST), " ".join(twice), f"fmad={fmad}")
    for capability, expected in twice.items():
        number = capability.replace(".", "")
        listing = succeed(process.run((cuobjdump(), "-sass", "-arch", f"sm_{number}", fatbin)))
        parts = re.split(r"^\s*Function : (\S+)$", listing, flags=re.MULTILINE)
        # Of a register, as constants are made by such instructions too.
        operations = {
            name: re.findall(r"\b([DFH](?:ADD|MUL|FMA)2?)\S* R\d+, R", part)
            for name, part in zip(parts[1::2], parts[2::2], strict=True)
        }
        assert len(operations) == 6
        found = {name for name, words in operations.items() if len(words) > 1}
        assert found == (set(operations) if expected is None else expected), capability
