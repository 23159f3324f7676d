//! Copies of many bytes that run by themselves, from capability 9.0 on.
//!
//! One thread starts a copy into shared memory, and a [`Barrier`] there tells when the bytes have
//! come; no thread's registers hold them on the way.

use crate::barrier::{mbarrier_init, mbarrier_try_wait_parity};
use crate::fence::fence_proxy_async_shared_cta;
use crate::intrinsics::ptx;
use crate::requires::{Gpu, Has90};
use crate::shared::cvta_generic_to_shared_offset as shared;

pub use crate::barrier::Barrier;

/// The most that [`prefetch`] asks for, in bytes: the largest multiple of 16 in 32 bits.
const PREFETCH_LIMIT: usize = u32::MAX as usize & !15;

/// Makes `barrier` ready for copies.
///
/// # Safety
///
/// `barrier` must be in shared memory. One thread calls this; the others may use the barrier after a
/// [`sync_threads`](crate::thread::sync_threads).
#[inline(always)]
pub unsafe fn init(barrier: *mut Barrier)
where
    for<'pass> Gpu<'pass>: Has90,
{
    // SAFETY: promised by the caller. The fence shows the barrier to the unit that copies.
    unsafe {
        mbarrier_init(barrier, 1);
        fence_proxy_async_shared_cta();
    }
}

/// Starts copying `bytes` from global memory to shared memory.
///
/// # Safety
///
/// One thread calls it, once for each phase of `barrier`, after [`init`]. Both addresses and `bytes`
/// must be multiples of 16, and the memory valid. No thread may touch the memory at `to` from this
/// call on until its own [`wait`] has returned.
#[inline(always)]
pub unsafe fn copy_to_shared(to: *mut u8, from: *const u8, bytes: u32, barrier: *mut Barrier)
where
    for<'pass> Gpu<'pass>: Has90,
{
    // SAFETY: promised by the caller.
    unsafe {
        ptx!(
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [{barrier}], {bytes};",
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{to}], [{from}], {bytes}, [{barrier}];",
            barrier = in(reg64) shared(barrier.cast()),
            bytes = in(reg32) bytes,
            to = in(reg64) shared(to),
            from = in(reg64) from,
        );
    }
}

/// Waits until all bytes of a phase have come: `parity` is 0 for the first phase, then 1, 0, ….
///
/// # Safety
///
/// `barrier` must be in shared memory and ready.
#[inline(always)]
pub unsafe fn wait(barrier: *mut Barrier, parity: u32)
where
    for<'pass> Gpu<'pass>: Has90,
{
    // SAFETY: promised by the caller.
    unsafe { while !mbarrier_try_wait_parity(barrier, parity) {} }
}

/// Asks for memory to be brought into the L2 cache: a hint, and one instruction for all of it.
///
/// Leaves out what is before the first and after the last address that is a multiple of 16.
#[inline(always)]
pub fn prefetch<T>(slice: &[T])
where
    for<'pass> Gpu<'pass>: Has90,
{
    let range = slice.as_ptr_range();
    let (start, end) = (
        range.start.addr().next_multiple_of(16),
        range.end.addr() & !15,
    );
    if start < end {
        // SAFETY: changes nothing, and stays within the slice.
        unsafe {
            ptx!(
                "cp.async.bulk.prefetch.L2.global [{}], {};",
                in(reg64) start,
                in(reg32) (end - start).min(PREFETCH_LIMIT) as u32,
                options(nostack, preserves_flags),
            );
        }
    }
}
