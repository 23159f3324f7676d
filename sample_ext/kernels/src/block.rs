//! What the threads of a block compute together.

use rustcuda_device::prelude::*;

/// One value a warp.
pub type PerWarp = SharedArray<f32, 32>;

/// The sum of every thread's `value`, in every thread.
///
/// # Safety
///
/// All threads of the block must call it; `shared` is for this call alone until the next barrier.
#[inline(always)]
pub unsafe fn sum(value: f32, shared: *mut PerWarp) -> f32 {
    unsafe { reduce(value, 0.0, shared, warp::reduce_sum_f32) }
}

/// The largest of every thread's `value`, in every thread.
///
/// # Safety
///
/// As for [`sum`].
#[inline(always)]
pub unsafe fn max(value: f32, shared: *mut PerWarp) -> f32 {
    unsafe { reduce(value, f32::NEG_INFINITY, shared, warp::reduce_max_f32) }
}

/// Every warp reduces its own values, then all warps reduce the warps' results, each for itself.
#[inline(always)]
unsafe fn reduce(
    value: f32,
    neutral: f32,
    shared: *mut PerWarp,
    in_warp: impl Fn(f32) -> f32,
) -> f32 {
    let (lane, warps) = (warp::lane_id() as usize, thread::blockDim_x() / 32);
    let result = in_warp(value);
    // SAFETY: below 32, and a barrier stands between writing and reading.
    unsafe {
        let shared = shared.cast::<f32>();
        if lane == 0 {
            *shared.add(warp::warp_id() as usize) = result;
        }
        thread::sync_threads();
        in_warp(if lane < warps as usize {
            *shared.add(lane)
        } else {
            neutral
        })
    }
}
