//! Which thread this is, and the barrier of its block.

pub use crate::index::*;
use crate::intrinsics::{self, ptx};
pub use crate::launch::*;

/// Threads that a multiprocessor of the capability has room for, for bounds that ask for all of it:
/// `#[kernel(launch_bounds(256, thread::RESIDENT_THREADS / 256))]`.
pub const RESIDENT_THREADS: u32 = if cfg!(cuda_arch = "110") {
    1536
} else if cfg!(cuda_arch = "103") {
    2048
} else if cfg!(cuda_arch = "101") {
    1536
} else if cfg!(cuda_arch = "90") {
    2048
} else if cfg!(cuda_arch = "86") {
    1536
} else if cfg!(cuda_arch = "75") && !cfg!(cuda_arch = "80") {
    1024
} else {
    2048
};

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

macro_rules! registers {
    ($($(#[doc = $doc:literal])* $name:ident: $type:ty = $instruction:literal, $class:ident;)*) => {
        $(
            $(#[doc = $doc])*
            #[inline(always)]
            pub fn $name() -> $type {
                let value: $type;
                // SAFETY: reads a special register that every thread has.
                unsafe {
                    ptx!($instruction, out($class) value, options(nomem, nostack, preserves_flags));
                }
                value
            }
        )*
    };
}

registers! {
    /// The multiprocessor that this thread runs on; it may change while the kernel runs.
    smid: u32 = "mov.u32 {}, %smid;", reg32;
    /// One more than the largest number that [`smid`] gives; more than there are multiprocessors, maybe.
    nsmid: u32 = "mov.u32 {}, %nsmid;", reg32;
    /// The number of this launch in its context.
    gridid: u64 = "mov.u64 {}, %gridid;", reg64;
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
