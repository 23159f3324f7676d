//! Which lane this is, which others run, and the barrier of the warp.

use crate::intrinsics::intrinsics;
use crate::thread::{blockDim_x, threadIdx_x};

mod nvvm {
    super::intrinsics! {
        "llvm.nvvm.read.ptx.sreg.laneid" fn lane() -> u32;
        "llvm.nvvm.read.ptx.sreg.warpid" fn warp() -> u32;
        "llvm.nvvm.read.ptx.sreg.nwarpid" fn warps() -> u32;
        "llvm.nvvm.read.ptx.sreg.lanemask.lt" fn lanes_below() -> u32;
        "llvm.nvvm.read.ptx.sreg.lanemask.le" fn lanes_to_here() -> u32;
        "llvm.nvvm.read.ptx.sreg.lanemask.eq" fn this_lane() -> u32;
        "llvm.nvvm.read.ptx.sreg.lanemask.ge" fn lanes_from_here() -> u32;
        "llvm.nvvm.read.ptx.sreg.lanemask.gt" fn lanes_above() -> u32;
        "llvm.nvvm.activemask" fn active_mask() -> u32;
        "llvm.nvvm.bar.warp.sync" fn warp_barrier(mask: u32);
    }
}

/// This thread's warp in a block that extends along x only.
#[inline(always)]
pub fn warp_id() -> u32 {
    threadIdx_x() / 32
}

/// How many lanes of this thread's warp were launched, in a block that extends along x only: 32, but
/// for the last warp of a block whose size is no multiple of 32.
#[inline(always)]
pub fn live_lanes_1d() -> u32 {
    (blockDim_x() - warp_id() * 32).min(32)
}

macro_rules! registers {
    ($($(#[doc = $doc:literal])* $name:ident = $intrinsic:ident;)*) => {
        $(
            $(#[doc = $doc])*
            #[inline(always)]
            pub fn $name() -> u32 {
                // SAFETY: reads a special register that every thread has.
                unsafe { nvvm::$intrinsic() }
            }
        )*
    };
}

registers! {
    /// This thread's lane, 0 to 31.
    lane_id = lane;
    /// The place on the multiprocessor where this warp runs now: for profiling, since it may change and
    /// says nothing of the thread's index. [`warp_id`] does.
    warpid = warp;
    /// The number of places for warps on a multiprocessor; [`warpid`] is below it.
    nwarpid = warps;
    /// The mask of the lanes below this one.
    lanemask_lt = lanes_below;
    /// The mask of the lanes below this one and of this one.
    lanemask_le = lanes_to_here;
    /// The mask of this lane alone.
    lanemask_eq = this_lane;
    /// The mask of this lane and of those above.
    lanemask_ge = lanes_from_here;
    /// The mask of the lanes above this one.
    lanemask_gt = lanes_above;
}

/// The lanes that run at this very moment; nothing keeps them together afterwards.
#[inline(always)]
pub fn active_mask() -> u32 {
    // SAFETY: has no requirements.
    unsafe { nvvm::active_mask() }
}

/// Waits for the lanes in `mask`; what they wrote to memory before is then visible to all of them.
#[inline(always)]
pub fn sync_mask(mask: u32) {
    // SAFETY: see the module's documentation; a wrong mask hangs.
    unsafe { nvvm::warp_barrier(mask) }
}
