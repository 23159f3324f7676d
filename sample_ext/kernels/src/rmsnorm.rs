use core::slice;

use rustcuda_device::prelude::*;

use crate::block::{self, PerWarp};

const THREADS: usize = 256;

/// Divides each row of `x` by its root mean square and multiplies it by `weight`.
///
/// The rows of `x` are as long as `weight` and begin `x_stride` elements apart; those of `y` are
/// contiguous.
///
/// Launch: one block of 256 threads a row.
#[kernel(launch_bounds(THREADS))]
pub unsafe fn rmsnorm(x: *const f32, x_stride: usize, weight: &[f32], y: *mut f32, eps: f32) {
    static mut PARTIAL: PerWarp = SharedArray::UNINIT;

    let (row, columns) = (thread::blockIdx_x() as usize, weight.len());
    // SAFETY: the caller passes whole rows, and a block has its row of `y` for itself.
    let x = unsafe { slice::from_raw_parts(x.add(row * x_stride), columns) };
    let mut y = unsafe { DisjointSlice::from_raw_parts(y.add(row * columns), columns) };

    let mine = (4 * thread::threadIdx_x() as usize..columns).step_by(4 * THREADS);
    let mut squares = 0.0;
    for start in mine.clone() {
        for value in *F32x4::load(x, start, 0.0) {
            squares += value * value;
        }
    }
    let mean = unsafe { block::sum(squares, &raw mut PARTIAL) } / columns as f32;
    let scale = (mean + eps).rsqrt();

    for start in mine {
        let x = F32x4::load(x, start, 0.0);
        let weight = F32x4::load(weight, start, 0.0);
        // SAFETY: no other thread has this `start`.
        let y = unsafe { y.chunk_unchecked_mut::<4>(start) };
        F32x4::from_fn(|k| x[k] * scale * weight[k]).store(y);
    }
}
