use rustcuda_device::atomic::{AtomicOrdering, BlockAtomicI32, DeviceAtomicI32};
use rustcuda_device::prelude::*;

use crate::vector;

/// Adds to `counts` how many elements of `x` lie in each of as many intervals, which are equally wide
/// and together reach from `low` to `high`. Elements outside are not counted; `high` itself is.
///
/// Launch: one-dimensional, at most 256 threads a block, with 4 bytes of dynamic shared memory for each element of `counts`.
#[kernel(launch_bounds(256, thread::RESIDENT_THREADS / 256))]
pub unsafe fn histogram(x: &[f32], low: f32, high: f32, counts: *mut i32, bins: u32) {
    let thread = thread::threadIdx_x();
    let of_block = DynamicSharedArray::<i32>::get();
    let own = |bin: u32| unsafe { BlockAtomicI32::from_ptr(of_block.add(bin as usize)) };
    let bins_of_thread = || (thread..bins).step_by(thread::blockDim_x() as usize);

    for bin in bins_of_thread() {
        own(bin).store(0, AtomicOrdering::Relaxed);
    }
    thread::sync_threads();
    let scale = bins as f32 / (high - low);
    let count = |value: f32| {
        if low <= value && value <= high {
            // SAFETY: from 0 to `bins`.
            let bin = unsafe { ((value - low) * scale).to_int_unchecked::<u32>() };
            own(bin.min(bins - 1)).fetch_add(1, AtomicOrdering::Relaxed);
        }
    };
    vector::for_each(x, f32::NAN, count);
    thread::sync_threads();
    for bin in bins_of_thread() {
        let total = unsafe { DeviceAtomicI32::from_ptr(counts.add(bin as usize)) };
        total.fetch_add(
            own(bin).load(AtomicOrdering::Relaxed),
            AtomicOrdering::Relaxed,
        );
    }
}
