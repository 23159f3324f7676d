//! What the threads of a block compute together: reductions and scans.
//!
//! Each costs one barrier. The caller lends shared memory with a place for each warp, e.g. 8 for blocks
//! of up to 256 threads. It is in use until the next [`sync_threads`], so two calls in a row take two
//! arrays, or a barrier between them.
//!
//! The block extends along x only, and its size is a multiple of 32; for others see
//! [`cooperative_groups`](crate::cooperative_groups).
//!
//! ```
//! use rustcuda_device::block;
//! use rustcuda_device::prelude::*;
//!
//! /// The sum of each block's elements, for blocks of up to 256 threads.
//! ///
//! /// # Safety
//! ///
//! /// `sums` must have an element for each block.
//! #[kernel(launch_bounds(256))]
//! unsafe fn sums(x: &[f32], sums: *mut f32) {
//!     static mut SCRATCH: SharedArray<f32, 8> = SharedArray::UNINIT;
//!     let value = x.get(thread::index_1d().get()).copied().unwrap_or(0.0);
//!     unsafe {
//!         let sum = block::sum(value, &raw mut SCRATCH);
//!         if thread::threadIdx_x() == 0 {
//!             *sums.add(thread::blockIdx_x() as usize) = sum;
//!         }
//!     }
//! }
//! ```

use crate::ops::{Max, Min, ReduceOp, Sum};
use crate::shared::SharedArray;
use crate::thread::{blockDim_x, sync_threads};
use crate::warp::{self, FULL_MASK, WarpShuffle, lane_id, segment, warp_id};

/// The sum of all threads' values, in every thread.
///
/// # Safety
///
/// As for [`reduce`].
#[inline(always)]
pub unsafe fn sum<T: WarpShuffle, const N: usize>(value: T, shared: *mut SharedArray<T, N>) -> T
where
    Sum: ReduceOp<T>,
{
    // SAFETY: promised by the caller.
    unsafe { reduce::<T, Sum, N>(value, shared) }
}

/// The smallest of all threads' values, in every thread; NaN only if all are.
///
/// # Safety
///
/// As for [`reduce`].
#[inline(always)]
pub unsafe fn min<T: WarpShuffle, const N: usize>(value: T, shared: *mut SharedArray<T, N>) -> T
where
    Min: ReduceOp<T>,
{
    // SAFETY: promised by the caller.
    unsafe { reduce::<T, Min, N>(value, shared) }
}

/// The largest of all threads' values, in every thread; NaN only if all are.
///
/// # Safety
///
/// As for [`reduce`].
#[inline(always)]
pub unsafe fn max<T: WarpShuffle, const N: usize>(value: T, shared: *mut SharedArray<T, N>) -> T
where
    Max: ReduceOp<T>,
{
    // SAFETY: promised by the caller.
    unsafe { reduce::<T, Max, N>(value, shared) }
}

/// All threads' values combined by an operation of [`ops`](crate::ops), in every thread.
///
/// # Safety
///
/// All threads of the block must call it, of at most `N` warps. `shared` must be shared memory that no
/// thread uses from the last barrier before this call to the first one after it.
#[inline(always)]
pub unsafe fn reduce<T: WarpShuffle, Op: ReduceOp<T>, const N: usize>(
    value: T,
    shared: *mut SharedArray<T, N>,
) -> T {
    let total = warp::reduce::<T, Op>(value);
    // SAFETY: promised by the caller.
    unsafe { reduce_warps::<T, Op, N>(total, warp_id(), blockDim_x() / 32, shared) }
}

/// The values of the threads up to and with this one combined.
///
/// # Safety
///
/// As for [`reduce`].
#[inline(always)]
pub unsafe fn inclusive_scan<T: WarpShuffle, Op: ReduceOp<T>, const N: usize>(
    value: T,
    shared: *mut SharedArray<T, N>,
) -> T {
    let inclusive = warp::inclusive_scan::<T, Op>(value);
    // SAFETY: promised by the caller.
    let before = unsafe { before_warp::<T, Op, N>(inclusive, warp_id(), shared) };
    Op::combine(before, inclusive)
}

/// The values of the threads before this one combined; in the first the operation's identity.
///
/// # Safety
///
/// As for [`reduce`].
#[inline(always)]
pub unsafe fn exclusive_scan<T: WarpShuffle, Op: ReduceOp<T>, const N: usize>(
    value: T,
    shared: *mut SharedArray<T, N>,
) -> T {
    let inclusive = warp::inclusive_scan::<T, Op>(value);
    // SAFETY: promised by the caller.
    let before = unsafe { before_warp::<T, Op, N>(inclusive, warp_id(), shared) };
    Op::combine(before, warp::exclusive_of::<T, Op>(inclusive))
}

/// The totals of all `warps` combined: this warp is number `warp`, and `total` is its own.
///
/// # Safety
///
/// As for [`reduce`].
#[inline(always)]
pub(crate) unsafe fn reduce_warps<T: WarpShuffle, Op: ReduceOp<T>, const N: usize>(
    total: T,
    warp: u32,
    warps: u32,
    shared: *mut SharedArray<T, N>,
) -> T {
    let places = publish(total, 0, warp, shared);
    // Every warp does the same from here on: no second barrier. What one lane reads of `places`, or
    // several read of one place, comes at once.
    let take = |lane: u32| {
        // SAFETY: written before the barrier.
        let value = unsafe { *places.add(lane.min(warps - 1) as usize) };
        if lane < warps {
            value
        } else {
            Op::filler(value)
        }
    };
    match Op::redux(FULL_MASK, take(lane_id())) {
        Some(total) => total,
        None => repeated::<T, Op, N>(take),
    }
}

/// The totals of the warps before number `warp` combined; the last lane's `inclusive` is this one's.
///
/// # Safety
///
/// As for [`reduce`].
#[inline(always)]
pub(crate) unsafe fn before_warp<T: WarpShuffle, Op: ReduceOp<T>, const N: usize>(
    inclusive: T,
    warp: u32,
    shared: *mut SharedArray<T, N>,
) -> T {
    let places = publish(inclusive, 31, warp, shared);
    let take = |lane: u32| {
        if lane < warp {
            // SAFETY: written before the barrier.
            unsafe { *places.add(lane as usize) }
        } else {
            Op::identity()
        }
    };
    match Op::redux(FULL_MASK, take(lane_id())) {
        Some(before) => before,
        None => repeated::<T, Op, N>(take),
    }
}

/// What `take` gives for each of `N` warps combined.
#[inline(always)]
fn repeated<T: WarpShuffle, Op: ReduceOp<T>, const N: usize>(take: impl Fn(u32) -> T) -> T {
    // Lanes repeat what others have, so that as many steps do as N has bits.
    let width = const { N.next_power_of_two() as u32 };
    let mut total = take(lane_id() % width);
    let mut distance = width / 2;
    while distance > 0 {
        total = Op::combine(total, segment::xor::<T, 32>(FULL_MASK, total, distance));
        distance /= 2;
    }
    total
}

/// Writes what lane `from` has to the warp's place, and waits for the other warps.
#[inline(always)]
fn publish<T: WarpShuffle, const N: usize>(
    value: T,
    from: u32,
    warp: u32,
    shared: *mut SharedArray<T, N>,
) -> *const T {
    const { assert!(0 < N && N <= 32, "a block has 1 to 32 warps") };
    let places = shared.cast::<T>();
    if lane_id() == from {
        // SAFETY: the callers' callers promise that it is below N and this warp's.
        unsafe { *places.add(warp as usize) = value };
    }
    sync_threads();
    places
}
