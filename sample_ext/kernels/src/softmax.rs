use core::{f32, slice};

use rustcuda_device::block;
use rustcuda_device::math::ex2_approx_ftz;
use rustcuda_device::pack::PackElement;
use rustcuda_device::prelude::*;

use crate::row::Share;

/// The softmax of each row of `x`: `exp(x - max) / sum(exp(x - max))`.
///
/// Rows have `columns` elements and are contiguous.
///
/// Launch: one block a row, fastest with a thread for every 32 elements; 32 to 1024 threads, in whole
/// warps.
#[kernel(launch_bounds(1024))]
pub unsafe fn softmax(x: *const f32, y: *mut f32, columns: usize) {
    // SAFETY: passed on.
    unsafe { softmax_row::<f32, 4, 8>(x, y, columns) }
}

/// `softmax` of bf16, computed in f32.
#[kernel(launch_bounds(1024))]
pub unsafe fn softmax_bf16(x: *const bf16, y: *mut bf16, columns: usize) {
    // SAFETY: passed on.
    unsafe { softmax_row::<bf16, 8, 4>(x, y, columns) }
}

#[device]
#[inline(always)]
unsafe fn softmax_row<T: Float + PackElement<N>, const N: usize, const KEPT: usize>(
    x: *const T,
    y: *mut T,
    columns: usize,
) {
    static mut MAXIMA: SharedArray<f32, 32> = SharedArray::UNINIT;
    static mut SUMS: SharedArray<f32, 32> = SharedArray::UNINIT;

    let first = thread::blockIdx_x() as usize * columns;
    // SAFETY: the caller passes whole rows, and a block has its row of `y` for itself.
    unsafe {
        let x = slice::from_raw_parts(x.add(first), columns);
        let mut y = DisjointSlice::from_raw_parts(y.add(first), columns);

        let share = Share::<T, N, KEPT>::load(x, T::from_f32(f32::NEG_INFINITY));
        // Not from minus infinity, which less itself would be NaN.
        let max = block::max(share.fold(f32::MIN, f32::max), &raw mut MAXIMA);
        // 2 to a power is what the GPU has an instruction for.
        let exp = |value: f32| ex2_approx_ftz((value - max) * f32::consts::LOG2_E);
        let sum = share.fold(0.0, |sum, value| sum + exp(value));
        let scale = 1.0 / block::sum(sum, &raw mut SUMS);
        share.store(&mut y, |_, x| x.map(|value| exp(value) * scale));
    }
}
