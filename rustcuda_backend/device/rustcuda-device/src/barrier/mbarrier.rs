//! Barriers in shared memory; see PTX ISA, "mbarrier".
//!
//! Each function is one instruction, or a loop around one. None is for a warp as a whole: threads
//! come and wait one by one.

use crate::intrinsics::ptx;
use crate::requires::{Gpu, Has80, Has90};
use crate::shared::cvta_generic_to_shared_offset;

/// Counts what arrives. Declared in the body of a kernel:
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

/// Makes `barrier` ready for phases of `count` arrivals, 1 to 2²⁰ - 1.
///
/// # Safety
///
/// `barrier` must be in shared memory and not in use. One thread calls this; the others may use the
/// barrier after a [`sync_threads`](crate::thread::sync_threads).
#[inline(always)]
pub unsafe fn mbarrier_init(barrier: *mut Barrier, count: u32)
where
    for<'pass> Gpu<'pass>: Has80,
{
    // SAFETY: promised by the caller.
    unsafe {
        ptx!(
            "mbarrier.init.shared.b64 [{}], {};", in(reg64) shared(barrier), in(reg32) count,
            options(nostack, preserves_flags)
        );
    }
}

/// Ends the use of `barrier`; its memory may then serve for anything.
///
/// # Safety
///
/// `barrier` must be ready, and no thread may use it at this time or later.
#[inline(always)]
pub unsafe fn mbarrier_inval(barrier: *mut Barrier)
where
    for<'pass> Gpu<'pass>: Has80,
{
    // SAFETY: promised by the caller.
    unsafe {
        ptx!("mbarrier.inval.shared.b64 [{}];", in(reg64) shared(barrier), options(nostack, preserves_flags));
    }
}

/// Arrives, and returns the token of the phase in which that was. What this thread wrote before is
/// visible to those who then waited for the phase.
///
/// # Safety
///
/// `barrier` must be in shared memory and ready.
#[inline(always)]
pub unsafe fn mbarrier_arrive(barrier: *const Barrier) -> u64
where
    for<'pass> Gpu<'pass>: Has80,
{
    let token;
    // SAFETY: promised by the caller.
    unsafe {
        ptx!(
            "mbarrier.arrive.shared.b64 {}, [{}];", out(reg64) token, in(reg64) shared(barrier),
            options(nostack, preserves_flags)
        );
    }
    token
}

/// [`mbarrier_arrive`] that also tells the phase to wait for `bytes` more, which a copy will bring.
/// The second parameter, a number of arrivals, is there as in `cuda-device`: it is 1.
///
/// # Safety
///
/// As for [`mbarrier_arrive`]; so many bytes must come.
#[inline(always)]
pub unsafe fn mbarrier_arrive_expect_tx(barrier: *const Barrier, _count: u32, bytes: u32) -> u64
where
    for<'pass> Gpu<'pass>: Has90,
{
    let token;
    // SAFETY: promised by the caller.
    unsafe {
        ptx!(
            "mbarrier.arrive.expect_tx.shared::cta.b64 {}, [{}], {};",
            out(reg64) token, in(reg64) shared(barrier), in(reg32) bytes,
            options(nostack, preserves_flags)
        );
    }
    token
}

/// Defines questions whether a phase is over.
macro_rules! questions {
    ($($(#[doc = $doc:literal])* $name:ident($phase:ident: $type:ident $register:ident) from $capability:ident = $instruction:literal;)*) => {
        $(
            $(#[doc = $doc])*
            ///
            /// # Safety
            ///
            /// `barrier` must be in shared memory and ready.
            #[inline(always)]
            pub unsafe fn $name(barrier: *const Barrier, $phase: $type) -> bool
            where
                for<'pass> Gpu<'pass>: $capability,
            {
                let over: u32;
                // SAFETY: promised by the caller. The braces make the predicate local to each copy of these lines.
                unsafe {
                    ptx!(
                        "{{",
                        ".reg .pred over;",
                        concat!($instruction, " over, [{}], {};"),
                        "selp.u32 {}, 1, 0, over;",
                        "}}",
                        in(reg64) shared(barrier),
                        in($register) $phase,
                        out(reg32) over,
                        options(nostack, preserves_flags)
                    );
                }
                over != 0
            }
        )*
    };
}

questions! {
    /// Whether the phase of `token` is over; does not wait. If so, what those who arrived in it had
    /// written is visible.
    mbarrier_test_wait(token: u64 reg64) from Has80 = "mbarrier.test_wait.shared.b64";
    /// Whether the phase of this parity is over, 0 for the first, then 1, 0, …: it must be the present
    /// one or the one before. Does not wait.
    mbarrier_test_wait_parity(parity: u32 reg32) from Has80 = "mbarrier.test_wait.parity.shared.b64";
    /// [`mbarrier_test_wait`] that waits for a while before it says no.
    mbarrier_try_wait(token: u64 reg64) from Has90 = "mbarrier.try_wait.shared::cta.b64";
    /// [`mbarrier_test_wait_parity`] that waits for a while before it says no.
    mbarrier_try_wait_parity(parity: u32 reg32) from Has90 = "mbarrier.try_wait.parity.shared::cta.b64";
}

/// Waits until the phase of `token` is over. What those who arrived in it had written is then visible.
///
/// # Safety
///
/// `barrier` must be in shared memory and ready.
#[inline(always)]
pub unsafe fn mbarrier_wait(barrier: *const Barrier, token: u64)
where
    for<'pass> Gpu<'pass>: Has80,
{
    // SAFETY: promised by the caller.
    unsafe {
        #[cfg(cuda_arch = "90")]
        while !mbarrier_try_wait(barrier, token) {}
        #[cfg(not(cuda_arch = "90"))]
        while !mbarrier_test_wait(barrier, token) {}
    }
}

/// Arrives and waits until the phase is over.
///
/// # Safety
///
/// `barrier` must be in shared memory and ready.
#[inline(always)]
pub unsafe fn mbarrier_arrive_and_wait(barrier: *const Barrier)
where
    for<'pass> Gpu<'pass>: Has80,
{
    // SAFETY: promised by the caller.
    unsafe { mbarrier_wait(barrier, mbarrier_arrive(barrier)) }
}

/// The address in shared memory, which these instructions take.
///
/// # Safety
///
/// `barrier` must be in shared memory.
#[inline(always)]
unsafe fn shared(barrier: *const Barrier) -> u64 {
    // SAFETY: promised by the caller.
    unsafe { cvta_generic_to_shared_offset(barrier.cast()) }
}
