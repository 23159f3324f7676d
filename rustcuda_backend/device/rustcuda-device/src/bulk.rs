//! Copies of many bytes that run by themselves; there from capability 9.0 on, so uses stand under
//! `#[cfg(cuda_arch = "90")]`.
//!
//! One thread starts a copy into shared memory, and a [`Barrier`] there tells when the bytes have
//! come; no thread's registers hold them on the way.

use crate::intrinsics::ptx;
use crate::shared::cvta_generic_to_shared_offset as shared;

/// The most that [`prefetch`] asks for, in bytes: the largest multiple of 16 in 32 bits.
const PREFETCH_LIMIT: usize = u32::MAX as usize & !15;

/// Counts bytes that arrive. Declared in the body of a kernel, one for each copy under way:
/// `static mut ARRIVED: Barrier = Barrier::UNINIT;`.
#[repr(C, align(8))]
pub struct Barrier(u64);

impl Barrier {
    /// The initial value of the static; `#[kernel]` takes it out where it makes shared memory.
    pub const UNINIT: Self = {
        crate::shared::refuse_global_memory();
        Self(0)
    };

    /// Size and alignment in bytes.
    #[doc(hidden)]
    pub const STORAGE: [usize; 2] = [size_of::<Self>(), align_of::<Self>()];
}

/// Makes `barrier` ready for copies.
///
/// # Safety
///
/// `barrier` must be in shared memory. One thread calls this; the others may use the barrier after a
/// [`sync_threads`](crate::thread::sync_threads).
#[inline(always)]
pub unsafe fn init(barrier: *mut Barrier) {
    // SAFETY: promised by the caller. The fence shows the barrier to the unit that copies.
    unsafe {
        ptx!(
            "mbarrier.init.shared::cta.b64 [{}], 1;",
            "fence.proxy.async.shared::cta;",
            in(reg64) shared(barrier.cast()),
        );
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
pub unsafe fn copy_to_shared(to: *mut u8, from: *const u8, bytes: u32, barrier: *mut Barrier) {
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
pub unsafe fn wait(barrier: *mut Barrier, parity: u32) {
    // SAFETY: promised by the caller. The braces make the predicate local to each copy of these lines.
    unsafe {
        let barrier = shared(barrier.cast());
        let mut arrived: u32 = 0;
        while arrived == 0 {
            ptx!(
                "{{",
                ".reg .pred arrived;",
                "mbarrier.try_wait.parity.shared::cta.b64 arrived, [{}], {};",
                "selp.u32 {}, 1, 0, arrived;",
                "}}",
                in(reg64) barrier,
                in(reg32) parity,
                out(reg32) arrived,
            );
        }
    }
}

/// Asks for memory to be brought into the L2 cache: a hint, and one instruction for all of it.
///
/// Leaves out what is before the first and after the last address that is a multiple of 16.
#[inline(always)]
pub fn prefetch<T>(slice: &[T]) {
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
