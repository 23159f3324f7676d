use core::slice;

use rustcuda_device::prelude::*;

use crate::block::{self, PerWarp};

const THREADS: usize = 256;

/// The softmax of each row of `x`: `exp(x - max) / sum(exp(x - max))`.
///
/// Rows have `columns` elements and are contiguous.
///
/// Launch: one block of 256 threads a row.
#[kernel(launch_bounds(THREADS))]
pub unsafe fn softmax(x: *const f32, y: *mut f32, columns: usize) {
    static mut MAXIMA: PerWarp = SharedArray::UNINIT;
    static mut SUMS: PerWarp = SharedArray::UNINIT;

    let first = thread::blockIdx_x() as usize * columns;
    // SAFETY: the caller passes whole rows, and a block has its row of `y` for itself.
    let x = unsafe { slice::from_raw_parts(x.add(first), columns) };
    let mut y = unsafe { DisjointSlice::from_raw_parts(y.add(first), columns) };

    // Both at once: where a larger maximum turns up, the sum so far is scaled to it.
    let mine = (4 * thread::threadIdx_x() as usize..columns).step_by(4 * THREADS);
    let (mut max, mut sum) = (f32::MIN, 0.0);
    for start in mine.clone() {
        let x = F32x4::load(x, start, f32::NEG_INFINITY);
        let larger = x.iter().copied().fold(max, f32::max);
        sum *= (max - larger).exp();
        max = larger;
        for value in *x {
            sum += (value - max).exp();
        }
    }
    let row_max = unsafe { block::max(max, &raw mut MAXIMA) };
    let row_sum = unsafe { block::sum(sum * (max - row_max).exp(), &raw mut SUMS) };
    let scale = 1.0 / row_sum;

    for start in mine {
        let x = F32x4::load(x, start, 0.0);
        // SAFETY: no other thread has this `start`.
        let y = unsafe { y.chunk_unchecked_mut::<4>(start) };
        F32x4::from_fn(|k| (x[k] - row_max).exp() * scale).store(y);
    }
}
