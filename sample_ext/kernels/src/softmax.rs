use core::slice;

use rustcuda_device::prelude::*;

use crate::block::{self, PerWarp};
use crate::row::Share;

/// The softmax of each row of `x`: `exp(x - max) / sum(exp(x - max))`.
///
/// Rows have `columns` elements and are contiguous.
///
/// Launch: one block a row, fastest with a thread for every 16 elements; 32 to 512 threads, in whole
/// warps.
#[kernel(launch_bounds(512))]
pub unsafe fn softmax(x: *const f32, y: *mut f32, columns: usize) {
    static mut MAXIMA: PerWarp = SharedArray::UNINIT;
    static mut SUMS: PerWarp = SharedArray::UNINIT;

    let first = thread::blockIdx_x() as usize * columns;
    // SAFETY: the caller passes whole rows, and a block has its row of `y` for itself.
    unsafe {
        let x = slice::from_raw_parts(x.add(first), columns);
        let mut y = DisjointSlice::from_raw_parts(y.add(first), columns);

        let share = Share::load(x, f32::NEG_INFINITY);
        // Not from minus infinity, which less itself would be NaN.
        let max = block::max(share.fold(f32::MIN, f32::max), &raw mut MAXIMA);
        let sum = share.fold(0.0, |sum, value| sum + (value - max).exp());
        let scale = 1.0 / block::sum(sum, &raw mut SUMS);
        share.store(&mut y, |_, x| {
            F32x4::from_fn(|k| (x[k] - max).exp() * scale)
        });
    }
}
