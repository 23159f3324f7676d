//! The lanes that run right now as a group.

use super::{ThreadGroup, WarpCollective, WarpShuffle};
use crate::warp::{self, lane_id, lanemask_lt, segment};

/// The lanes that ran when [`coalesced_threads`] was called.
#[derive(Clone, Copy, Debug)]
pub struct CoalescedThreads {
    mask: u32,
}

/// The lanes that run right now: those of a branch, in the branch.
///
/// The compiler and the GPU may split a branch's lanes where CUDA promises nothing else: use it where it
/// is made.
#[inline(always)]
pub fn coalesced_threads() -> CoalescedThreads {
    CoalescedThreads {
        mask: warp::active_mask(),
    }
}

impl CoalescedThreads {
    /// The lanes, as a bit mask.
    #[inline(always)]
    pub fn raw_mask(&self) -> u32 {
        self.mask
    }

    /// The lane with a rank; this one if there is none.
    #[inline(always)]
    fn lane(&self, rank: u32) -> u32 {
        let mut lanes = self.mask;
        for _ in 0..rank.min(31) {
            lanes &= lanes.wrapping_sub(1);
        }
        if rank < 32 && lanes != 0 {
            lanes.trailing_zeros()
        } else {
            lane_id()
        }
    }

    /// The `value` of lane `source` if it is in the group, else this one's.
    #[inline(always)]
    fn of_lane<T: WarpShuffle>(&self, value: T, source: u32) -> T {
        let there = source < 32 && self.mask >> (source % 32) & 1 == 1;
        let source = if there { source } else { lane_id() };
        segment::idx::<T, 32>(self.mask, value, source)
    }
}

impl ThreadGroup for CoalescedThreads {
    #[inline(always)]
    fn size(&self) -> u32 {
        self.mask.count_ones()
    }

    #[inline(always)]
    fn thread_rank(&self) -> u32 {
        (self.mask & lanemask_lt()).count_ones()
    }

    #[inline(always)]
    fn sync(&self) {
        warp::sync_mask(self.mask);
    }
}

impl WarpCollective for CoalescedThreads {
    #[inline(always)]
    fn mask(&self) -> u32 {
        self.mask
    }

    #[inline(always)]
    fn ballot(&self, predicate: bool) -> u32 {
        warp::ballot_sync(self.mask, predicate) & self.mask
    }

    /// The `value` of the thread with rank `source`; this one's own if there is none.
    #[inline(always)]
    fn shfl<T: WarpShuffle>(&self, value: T, source: u32) -> T {
        segment::idx::<T, 32>(self.mask, value, self.lane(source))
    }

    #[inline(always)]
    fn shfl_xor<T: WarpShuffle>(&self, value: T, lane_mask: u32) -> T {
        self.of_lane(value, lane_id() ^ (lane_mask % 32))
    }

    #[inline(always)]
    fn shfl_down<T: WarpShuffle>(&self, value: T, delta: u32) -> T {
        self.of_lane(value, lane_id() + delta % 32)
    }

    #[inline(always)]
    fn shfl_up<T: WarpShuffle>(&self, value: T, delta: u32) -> T {
        self.of_lane(value, lane_id().wrapping_sub(delta % 32))
    }
}
