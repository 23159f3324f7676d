//! Kernels that panic, with rustcuda-device's feature `panic-message`.

use rustcuda_device::prelude::*;

/// `y = x[at]`, where `at` may be beyond the end.
#[kernel]
pub fn panic_index(x: &[f32], mut y: DisjointSlice<f32>, at: usize) {
    if let Some(y) = y.get_mut(thread::index_1d()) {
        *y = x[at];
    }
}

/// Asserts that `x` is small.
#[kernel]
pub fn panic_assert(x: u32) {
    assert!(x < 100, "{x} is not small");
}

/// Takes four words of dynamic shared memory, which the launch may not have given.
#[kernel]
pub fn panic_shared(mut out: DisjointSlice<u32>) {
    let bytes = {
        let mut memory = DynamicShared::new();
        memory.take::<u32>(4);
        memory.bytes() as u32
    };
    if let Some((place, _)) = out.get_mut_indexed() {
        *place = bytes;
    }
}
