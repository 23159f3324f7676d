//! Neighbouring lanes as a group.

use super::{ThreadGroup, WarpCollective, WarpShuffle};
use crate::warp::{self, FULL_MASK, lane_id, segment};

/// `N` neighbouring lanes of a warp: 1, 2, 4, 8, 16 or 32.
#[derive(Clone, Copy, Debug)]
pub struct WarpTile<const N: u32>(());

impl<const N: u32> WarpTile<N> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        const {
            assert!(
                N.is_power_of_two() && N <= 32,
                "a tile has 1, 2, 4, 8, 16 or 32 lanes"
            );
        }
        Self(())
    }

    /// The lanes of the first tile.
    const FIRST: u32 = FULL_MASK >> (32 - N);

    /// The tile's first lane.
    #[inline(always)]
    fn first_lane(&self) -> u32 {
        lane_id() & !(N - 1)
    }
}

impl<const N: u32> ThreadGroup for WarpTile<N> {
    #[inline(always)]
    fn size(&self) -> u32 {
        N
    }

    #[inline(always)]
    fn thread_rank(&self) -> u32 {
        lane_id() % N
    }

    #[inline(always)]
    fn sync(&self) {
        warp::sync_mask(self.mask());
    }
}

impl<const N: u32> WarpCollective for WarpTile<N> {
    #[inline(always)]
    fn mask(&self) -> u32 {
        if N == 32 {
            FULL_MASK
        } else {
            Self::FIRST << self.first_lane()
        }
    }

    #[inline(always)]
    fn ballot(&self, predicate: bool) -> u32 {
        let lanes = warp::ballot_sync(self.mask(), predicate);
        if N == 32 {
            lanes
        } else {
            lanes >> self.first_lane() & Self::FIRST
        }
    }

    /// The `value` of the thread with rank `source`, modulo the tile's size.
    #[inline(always)]
    fn shfl<T: WarpShuffle>(&self, value: T, source: u32) -> T {
        segment::idx::<T, N>(self.mask(), value, source)
    }

    #[inline(always)]
    fn shfl_xor<T: WarpShuffle>(&self, value: T, lane_mask: u32) -> T {
        segment::xor::<T, N>(self.mask(), value, lane_mask)
    }

    #[inline(always)]
    fn shfl_down<T: WarpShuffle>(&self, value: T, delta: u32) -> T {
        segment::down::<T, N>(self.mask(), value, delta)
    }

    #[inline(always)]
    fn shfl_up<T: WarpShuffle>(&self, value: T, delta: u32) -> T {
        segment::up::<T, N>(self.mask(), value, delta)
    }
}
