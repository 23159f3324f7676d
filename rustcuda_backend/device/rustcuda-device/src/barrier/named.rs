//! The numbered barriers of a block.

use crate::intrinsics::intrinsics;

mod nvvm {
    super::intrinsics! {
        "llvm.nvvm.barrier.cta.sync.aligned.count" fn sync(barrier: u32, threads: u32);
        "llvm.nvvm.barrier.cta.arrive.aligned.count" fn arrive(barrier: u32, threads: u32);
        "llvm.nvvm.barrier.cta.red.popc.aligned.all" fn popc(barrier: u32, predicate: bool) -> u32;
        "llvm.nvvm.barrier.cta.red.and.aligned.all" fn and(barrier: u32, predicate: bool) -> bool;
        "llvm.nvvm.barrier.cta.red.or.aligned.all" fn or(barrier: u32, predicate: bool) -> bool;
    }
}

/// The number of [`sync_threads`](crate::thread::sync_threads), whose uses these share.
const WHOLE_BLOCK: u32 = 0;

/// Refuses numbers of barriers that are none, or not the caller's.
const fn check(barrier: u32) {
    assert!(
        0 < barrier && barrier < 16,
        "named barriers have the numbers 1 to 15; 0 is that of sync_threads"
    );
}

/// Waits until `threads` threads have come to barrier `BARRIER`, 1 to 15, here or by [`bar_arrive`];
/// what they wrote to memory before is then visible to those that waited.
///
/// `threads` is a multiple of 32, the same for all that come. Whole warps come: all lanes of one must
/// reach the same call, or the kernel hangs.
#[inline(always)]
pub fn bar_sync<const BARRIER: u32>(threads: u32) {
    const { check(BARRIER) };
    // SAFETY: such a barrier hangs if used wrongly.
    unsafe { nvvm::sync(BARRIER, threads) }
}

/// Comes to barrier `BARRIER` without waiting there, as for [`bar_sync`]: what this warp wrote before
/// is visible to those that wait.
#[inline(always)]
pub fn bar_arrive<const BARRIER: u32>(threads: u32) {
    const { check(BARRIER) };
    // SAFETY: such a barrier hangs if used wrongly.
    unsafe { nvvm::arrive(BARRIER, threads) }
}

/// [`sync_threads`](crate::thread::sync_threads) that also tells for how many threads of the block
/// `predicate` holds.
#[inline(always)]
pub fn sync_threads_count(predicate: bool) -> u32 {
    // SAFETY: such a barrier hangs if used wrongly.
    unsafe { nvvm::popc(WHOLE_BLOCK, predicate) }
}

/// [`sync_threads`](crate::thread::sync_threads) that also tells whether `predicate` holds for all
/// threads of the block.
#[inline(always)]
pub fn sync_threads_and(predicate: bool) -> bool {
    // SAFETY: such a barrier hangs if used wrongly.
    unsafe { nvvm::and(WHOLE_BLOCK, predicate) }
}

/// [`sync_threads`](crate::thread::sync_threads) that also tells whether `predicate` holds for any
/// thread of the block.
#[inline(always)]
pub fn sync_threads_or(predicate: bool) -> bool {
    // SAFETY: such a barrier hangs if used wrongly.
    unsafe { nvvm::or(WHOLE_BLOCK, predicate) }
}
