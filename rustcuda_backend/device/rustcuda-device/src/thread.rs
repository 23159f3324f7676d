//! Which thread this is, and the barrier of its block.

use core::marker::PhantomData;

use crate::intrinsics;

macro_rules! axes {
    ($($(#[doc = $doc:literal])* $name:ident = $intrinsic:ident;)*) => {
        $(
            $(#[doc = $doc])*
            #[inline(always)]
            #[allow(non_snake_case)]
            pub fn $name() -> u32 {
                // SAFETY: reads a special register that every thread has.
                unsafe { intrinsics::$intrinsic() }
            }
        )*
    };
}

axes! {
    /// This thread's place in its block along x.
    threadIdx_x = thread_x;
    /// This thread's place in its block along y.
    threadIdx_y = thread_y;
    /// This thread's place in its block along z.
    threadIdx_z = thread_z;
    /// This block's place in the grid along x.
    blockIdx_x = block_x;
    /// This block's place in the grid along y.
    blockIdx_y = block_y;
    /// This block's place in the grid along z.
    blockIdx_z = block_z;
    /// Threads of a block along x.
    blockDim_x = block_size_x;
    /// Threads of a block along y.
    blockDim_y = block_size_y;
    /// Threads of a block along z.
    blockDim_z = block_size_z;
    /// Blocks of the grid along x.
    gridDim_x = grid_size_x;
    /// Blocks of the grid along y.
    gridDim_y = grid_size_y;
    /// Blocks of the grid along z.
    gridDim_z = grid_size_z;
}

/// Proof that this thread alone has a certain index; made by [`index_1d`].
///
/// It cannot be copied nor leave the thread, so an element that a
/// [`DisjointSlice`](crate::DisjointSlice) gives for it has no other owner.
pub struct ThreadIndex<'kernel> {
    index: usize,
    // Neither Send nor Sync, and invariant in 'kernel.
    this_thread: PhantomData<*mut &'kernel ()>,
}

impl ThreadIndex<'_> {
    /// What a thread holds when the launch has more than one dimension.
    const INVALID: usize = usize::MAX;

    /// The index.
    #[inline(always)]
    pub fn get(&self) -> usize {
        self.index
    }

    /// Whether the index is below `length`.
    #[inline(always)]
    pub fn in_bounds(&self, length: usize) -> bool {
        self.index < length
    }
}

/// This thread's index in the whole grid of a one-dimensional launch.
///
/// Where block or grid extend along y or z, indices would repeat; every thread then gets
/// `usize::MAX`, which is in the bounds of no slice.
#[inline(always)]
pub fn index_1d<'kernel>() -> ThreadIndex<'kernel> {
    let is_1d = blockDim_y() == 1 && blockDim_z() == 1 && gridDim_y() == 1 && gridDim_z() == 1;
    let index = u64::from(blockIdx_x()) * u64::from(blockDim_x()) + u64::from(threadIdx_x());
    ThreadIndex {
        index: if is_1d {
            index as usize
        } else {
            ThreadIndex::INVALID
        },
        this_thread: PhantomData,
    }
}

/// Waits until all threads of the block are here (`bar.sync 0`); what they wrote to shared and
/// global memory before is then visible to all of them.
///
/// All threads of the block must reach the same call, or the kernel hangs: never put it where only
/// some of them come.
#[inline(always)]
pub fn sync_threads() {
    // SAFETY: barrier 0 belongs to this function alone.
    unsafe { intrinsics::barrier_all(0) }
}
