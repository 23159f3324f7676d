//! Threads that do something together, as values: the block, tiles of a warp, the lanes that are here.
//!
//! ```
//! use rustcuda_device::cooperative_groups::{ThreadGroup, ops::Sum, this_thread_block, warp_reduce};
//! use rustcuda_device::prelude::*;
//!
//! /// The sum of every 8 elements, in place of each of them.
//! #[kernel]
//! fn sums_of_8(mut x: DisjointSlice<f32>) {
//!     let tile = this_thread_block().tiled_partition::<8>();
//!     let mut element = x.get_mut(thread::index_1d());
//!     let value = element.as_deref().copied().unwrap_or(0.0);
//!     let sum = warp_reduce::<f32, Sum, 8>(&tile, value);
//!     if let Some(element) = &mut element {
//!         **element = sum / tile.size() as f32;
//!     }
//! }
//! ```

mod coalesced;
mod collect;
mod thread_block;
mod warp_tile;

pub use crate::ops;
pub use crate::warp::WarpShuffle;
pub use coalesced::{CoalescedThreads, coalesced_threads};
pub use collect::{block_reduce, block_scan, warp_reduce, warp_scan};
pub use thread_block::{ThreadBlock, this_thread_block};
pub use warp_tile::WarpTile;

use crate::warp;

/// Threads that can wait for one another.
pub trait ThreadGroup: Copy {
    /// The number of threads.
    fn size(&self) -> u32;

    /// This thread's place among them, from 0 on.
    fn thread_rank(&self) -> u32;

    /// Waits for all of them; what they wrote to memory before is then visible to each. All must come.
    fn sync(&self);
}

/// Lanes of one warp that exchange values. All of the group must come to each call.
///
/// [`match_any`](Self::match_any) and [`match_all`](Self::match_all) answer by lanes of the warp.
pub trait WarpCollective: ThreadGroup {
    /// The group's lanes, as a bit mask of the warp.
    fn mask(&self) -> u32;

    /// The threads whose `predicate` holds, as a bit mask: of ranks in a tile, of the warp's lanes among
    /// [`coalesced_threads`].
    fn ballot(&self, predicate: bool) -> u32;

    /// The `value` of the thread with rank `source`.
    fn shfl<T: WarpShuffle>(&self, value: T, source: u32) -> T;

    /// The `value` of the thread whose lane is this one's xor `lane_mask`; this one's own if the group
    /// has none there.
    fn shfl_xor<T: WarpShuffle>(&self, value: T, lane_mask: u32) -> T;

    /// The `value` of the thread `delta` lanes above; this one's own if the group has none there.
    fn shfl_down<T: WarpShuffle>(&self, value: T, delta: u32) -> T;

    /// The `value` of the thread `delta` lanes below; this one's own if the group has none there.
    fn shfl_up<T: WarpShuffle>(&self, value: T, delta: u32) -> T;

    /// [`shfl`](Self::shfl) by its name in `cuda-device`.
    #[inline(always)]
    fn shfl_f32(&self, value: f32, source: u32) -> f32 {
        self.shfl(value, source)
    }

    /// [`shfl_xor`](Self::shfl_xor) by its name in `cuda-device`.
    #[inline(always)]
    fn shfl_xor_f32(&self, value: f32, lane_mask: u32) -> f32 {
        self.shfl_xor(value, lane_mask)
    }

    /// [`shfl_down`](Self::shfl_down) by its name in `cuda-device`.
    #[inline(always)]
    fn shfl_down_f32(&self, value: f32, delta: u32) -> f32 {
        self.shfl_down(value, delta)
    }

    /// [`shfl_up`](Self::shfl_up) by its name in `cuda-device`.
    #[inline(always)]
    fn shfl_up_f32(&self, value: f32, delta: u32) -> f32 {
        self.shfl_up(value, delta)
    }

    /// Whether `predicate` holds in every thread.
    #[inline(always)]
    fn all(&self, predicate: bool) -> bool {
        warp::all_sync(self.mask(), predicate)
    }

    /// Whether `predicate` holds in any thread.
    #[inline(always)]
    fn any(&self, predicate: bool) -> bool {
        warp::any_sync(self.mask(), predicate)
    }

    /// The lanes of the group that have the same `value` as this one.
    #[inline(always)]
    fn match_any(&self, value: u32) -> u32 {
        warp::match_any_sync(self.mask(), value) & self.mask()
    }

    /// The lanes of the group that have the same `value` as this one.
    #[inline(always)]
    fn match_any_i64(&self, value: u64) -> u32 {
        warp::match_any_i64_sync(self.mask(), value) & self.mask()
    }

    /// The lanes of the group if all of them have the same `value`, else 0.
    #[inline(always)]
    fn match_all(&self, value: u32) -> u32 {
        warp::match_all_sync(self.mask(), value)
    }

    /// The lanes of the group if all of them have the same `value`, else 0.
    #[inline(always)]
    fn match_all_i64(&self, value: u64) -> u32 {
        warp::match_all_i64_sync(self.mask(), value)
    }
}
