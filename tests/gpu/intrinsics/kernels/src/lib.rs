//! A kernel for every function of rustcuda-device: a module here for a module there.

mod async_copy;
mod atomic;
mod barrier;
mod block;
#[cfg(cuda_arch = "90")]
mod bulk;
mod constant;
mod debug;
mod disjoint;
mod fast;
mod groups;
mod half;
mod integer;
mod math;
mod memory;
mod packed;
mod rounding;
mod rows;
mod shared;
mod thread;
mod warp;

use rustcuda_device::thread::{blockDim_x, blockIdx_x, threadIdx_x};

/// Writes a thread's results into its row of `out`, which has `N` columns.
///
/// # Safety
///
/// `out` must have a row for each thread of the grid.
unsafe fn store<T, const N: usize>(out: *mut T, values: [T; N]) {
    let row = (blockIdx_x() * blockDim_x() + threadIdx_x()) as usize;
    // SAFETY: promised by the caller; no other thread has this row.
    unsafe { out.cast::<[T; N]>().add(row).write(values) }
}
