//! The block as a group.

use super::{ThreadGroup, WarpTile};
use crate::thread::*;

/// The threads of this thread's block.
#[derive(Clone, Copy, Debug)]
pub struct ThreadBlock(());

/// The block that this thread is in.
#[inline(always)]
pub fn this_thread_block() -> ThreadBlock {
    ThreadBlock(())
}

impl ThreadBlock {
    /// This thread's tile of `N` neighbouring lanes: 1, 2, 4, 8, 16 or 32.
    #[inline(always)]
    pub fn tiled_partition<const N: u32>(self) -> WarpTile<N> {
        WarpTile::new()
    }
}

impl ThreadGroup for ThreadBlock {
    #[inline(always)]
    fn size(&self) -> u32 {
        blockDim_x() * blockDim_y() * blockDim_z()
    }

    #[inline(always)]
    fn thread_rank(&self) -> u32 {
        (threadIdx_z() * blockDim_y() + threadIdx_y()) * blockDim_x() + threadIdx_x()
    }

    #[inline(always)]
    fn sync(&self) {
        sync_threads();
    }
}
