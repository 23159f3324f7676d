//! Barriers of part of a block, and barriers in shared memory on which data can be awaited.
//!
//! [`sync_threads`](crate::thread::sync_threads) is the barrier of a whole block. [`bar_sync`] is for
//! some of its warps, which one of 15 numbers names:
//!
//! ```
//! use rustcuda_device::barrier::{bar_arrive, bar_sync};
//! use rustcuda_device::prelude::*;
//!
//! /// The first warp hands its values, reversed, to the second. For blocks of 64 threads.
//! ///
//! /// # Safety
//! ///
//! /// `x` and `y` must have 32 elements.
//! #[kernel]
//! unsafe fn hand_over(x: *const f32, y: *mut f32) {
//!     static mut VALUES: SharedArray<f32, 32> = SharedArray::UNINIT;
//!     let lane = warp::lane_id() as usize;
//!     unsafe {
//!         if warp::warp_id() == 0 {
//!             VALUES[31 - lane] = *x.add(lane);
//!             bar_arrive::<1>(64);
//!         } else {
//!             bar_sync::<1>(64);
//!             *y.add(lane) = VALUES[lane];
//!         }
//!     }
//! }
//! ```
//!
//! A [`Barrier`] is a word of shared memory that counts arrivals, of threads and of bytes. It goes
//! through phases: when as many have arrived as it was made for, the next one begins. There can be
//! any number of them, from capability 8.0 on. [`ManagedBarrier`] sees to it that one is used only
//! when it is ready.

mod managed;
mod mbarrier;
mod named;

pub use crate::fence::{
    fence_mbarrier_init_release_cluster, fence_proxy_async, fence_proxy_async_global,
    fence_proxy_async_shared_cta,
};
pub use managed::*;
pub use mbarrier::*;
pub use named::*;

use crate::intrinsics::ptx;

/// Sleeps for about `nanoseconds`, at most a millisecond: for loops that wait.
///
/// # Safety
///
/// None; it is unsafe as in `cuda-device`.
#[inline(always)]
pub unsafe fn nanosleep(nanoseconds: u32) {
    // SAFETY: has no requirements.
    unsafe {
        ptx!("nanosleep.u32 {};", in(reg32) nanoseconds, options(nomem, nostack, preserves_flags))
    }
}
