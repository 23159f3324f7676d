use core::{array, slice};

use rustcuda_device::block;
use rustcuda_device::pack::PackElement;
use rustcuda_device::prelude::*;

use crate::row::Share;

/// Divides each row of `x` by its root mean square and multiplies it by `weight`.
///
/// The rows of `x` are as long as `weight` and begin `x_stride` elements apart; those of `y` are
/// contiguous.
///
/// Launch: one block a row, fastest with a thread for every 16 elements; 32 to 512 threads, in whole
/// warps.
#[kernel(launch_bounds(512))]
pub unsafe fn rmsnorm(x: *const f32, x_stride: usize, weight: &[f32], y: *mut f32, eps: f32) {
    // SAFETY: passed on.
    unsafe { rmsnorm_row::<f32, 4, 4>(x, x_stride, weight, y, eps) }
}

/// `rmsnorm` of bf16, computed in f32.
#[kernel(launch_bounds(512))]
pub unsafe fn rmsnorm_bf16(
    x: *const bf16,
    x_stride: usize,
    weight: &[bf16],
    y: *mut bf16,
    eps: f32,
) {
    // SAFETY: passed on.
    unsafe { rmsnorm_row::<bf16, 8, 2>(x, x_stride, weight, y, eps) }
}

#[device]
#[inline(always)]
unsafe fn rmsnorm_row<T: Float + PackElement<N>, const N: usize, const KEPT: usize>(
    x: *const T,
    x_stride: usize,
    weight: &[T],
    y: *mut T,
    eps: f32,
) {
    static mut PARTIAL: SharedArray<f32, 32> = SharedArray::UNINIT;

    let (index, columns) = (thread::blockIdx_x() as usize, weight.len());
    // SAFETY: the caller passes whole rows, and a block has its row of `y` for itself.
    unsafe {
        let x = slice::from_raw_parts(x.add(index * x_stride), columns);
        let mut y = DisjointSlice::from_raw_parts(y.add(index * columns), columns);

        let share = Share::<T, N, KEPT>::load(x, T::ZERO);
        // The weights are needed after the sum only. From 9.0 on one thread can have them all fetched
        // meanwhile; the first block's are there for the others too.
        #[cfg(cuda_arch = "90")]
        if index == 0 && thread::threadIdx_x() == 0 {
            rustcuda_device::bulk::prefetch(weight);
        }
        let squares = share.fold(0.0, |sum, value| sum + value * value);
        let mean = block::sum(squares, &raw mut PARTIAL) / columns as f32;
        let scale = (mean + eps).rsqrt();
        share.store(&mut y, |at, x| {
            let weight = Pack::<T, N>::load(weight, at, T::ZERO);
            array::from_fn(|k| x[k] * scale * weight[k].to_f32())
        });
    }
}
