//! Copies from global to shared memory that run by themselves (`cp.async`). From capability 8.0.
//!
//! A thread starts copies, closes them into a group, and waits for groups in the order in which it closed
//! them, while it works on what came before. Other threads see what it copied after a
//! [`sync_threads`](crate::thread::sync_threads) that follows its wait. `_ca` copies through all
//! caches, `_cg` through L2 only; `_zfill` fills with zeros what the source has not.
//!
//! ```
//! #![cfg(cuda_arch = "80")]
//!
//! use rustcuda_device::async_copy::*;
//! use rustcuda_device::prelude::*;
//!
//! /// Each block of 256 threads reverses 256 numbers.
//! #[kernel]
//! unsafe fn reverse(x: *const f32, y: *mut f32) {
//!     static mut TILE: SharedArray<f32, 256> = SharedArray::UNINIT;
//!     let (i, at) = (thread::threadIdx_x() as usize, thread::index_1d().get());
//!     unsafe {
//!         cp_async_ca_4((&raw mut TILE[i]).cast(), x.add(at).cast());
//!         cp_async_commit_group();
//!         cp_async_wait_group(0);
//!         thread::sync_threads();
//!         *y.add(at) = TILE[255 - i];
//!     }
//! }
//! ```

use crate::barrier::Barrier;
use crate::intrinsics::ptx;
use crate::requires::{Gpu, Has80};
use crate::shared::cvta_generic_to_shared_offset as shared;

/// Defines copies of a number of bytes, whole and filled with zeros.
macro_rules! copies {
    ($($whole:ident $filled:ident = $cache:literal $bytes:literal;)*) => {
        $(
            #[doc = concat!("Starts copying ", $bytes, " bytes.")]
            ///
            /// # Safety
            ///
            #[doc = concat!("Both addresses must be multiples of ", $bytes, ", `to` in shared memory and")]
            /// `from` in global memory. Until this thread has waited for the copy, `to` must not be used
            /// and what is at `from` must not change.
            #[inline(always)]
            pub unsafe fn $whole(to: *mut u32, from: *const u32)
            where
                for<'pass> Gpu<'pass>: Has80,
            {
                // SAFETY: promised by the caller.
                unsafe {
                    ptx!(
                        concat!("cp.async.", $cache, ".shared.global [{}], [{}], ", $bytes, ";"),
                        in(reg64) shared(to.cast()), in(reg64) from,
                        options(nostack, preserves_flags)
                    );
                }
            }

            #[doc = concat!("Starts copying `bytes` bytes, and zeros up to ", $bytes, ".")]
            ///
            /// # Safety
            ///
            #[doc = concat!("As for [`", stringify!($whole), "`], and `bytes` must be at most ", $bytes, ".")]
            /// With 0 bytes nothing is read at `from`.
            #[inline(always)]
            pub unsafe fn $filled(to: *mut u32, from: *const u8, bytes: u32)
            where
                for<'pass> Gpu<'pass>: Has80,
            {
                // SAFETY: promised by the caller.
                unsafe {
                    ptx!(
                        concat!("cp.async.", $cache, ".shared.global [{}], [{}], ", $bytes, ", {};"),
                        in(reg64) shared(to.cast()), in(reg64) from, in(reg32) bytes,
                        options(nostack, preserves_flags)
                    );
                }
            }
        )*
    };
}

copies! {
    cp_async_ca_4 cp_async_ca_zfill_4 = "ca" "4";
    cp_async_ca_8 cp_async_ca_zfill_8 = "ca" "8";
    cp_async_ca_16 cp_async_ca_zfill_16 = "ca" "16";
    cp_async_cg_16 cp_async_cg_zfill_16 = "cg" "16";
}

/// Closes a group: the copies that this thread has started since the last one.
///
/// # Safety
///
/// None beyond those of the copies.
#[inline(always)]
pub unsafe fn cp_async_commit_group()
where
    for<'pass> Gpu<'pass>: Has80,
{
    // SAFETY: has no requirements.
    unsafe { ptx!("cp.async.commit_group;", options(nostack, preserves_flags)) }
}

/// Waits for all copies that this thread has started.
///
/// # Safety
///
/// None beyond those of the copies.
#[inline(always)]
pub unsafe fn cp_async_wait_all()
where
    for<'pass> Gpu<'pass>: Has80,
{
    // SAFETY: has no requirements.
    unsafe { ptx!("cp.async.wait_all;", options(nostack, preserves_flags)) }
}

/// Waits until at most the last `pending` of this thread's groups are under way.
///
/// `pending` should be a constant; from 8 on it waits as for 7, so for more than it must.
///
/// # Safety
///
/// None beyond those of the copies.
#[inline(always)]
pub unsafe fn cp_async_wait_group(pending: u32)
where
    for<'pass> Gpu<'pass>: Has80,
{
    macro_rules! wait {
        ($($number:literal)* or $most:literal) => {
            // SAFETY: has no requirements.
            unsafe {
                match pending {
                    $($number => ptx!(concat!("cp.async.wait_group ", $number, ";"), options(nostack, preserves_flags)),)*
                    _ => ptx!(concat!("cp.async.wait_group ", $most, ";"), options(nostack, preserves_flags)),
                }
            }
        };
    }
    wait!(0 1 2 3 4 5 6 or 7)
}

/// Defines ways to arrive at a barrier when copies end.
macro_rules! arrivals {
    ($($(#[$doc:meta])* $name:ident = $instruction:literal $address:ident;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            ///
            /// `barrier` must be in shared memory and ready until the copies have ended.
            #[inline(always)]
            pub unsafe fn $name(barrier: *mut Barrier)
            where
                for<'pass> Gpu<'pass>: Has80,
            {
                // SAFETY: promised by the caller.
                unsafe {
                    ptx!(
                        concat!($instruction, " [{}];"), in(reg64) $address(barrier.cast()),
                        options(nostack, preserves_flags)
                    );
                }
            }
        )*
    };
}

/// The address as instructions take it that want no address in shared memory.
///
/// # Safety
///
/// None; it is unsafe as its counterpart is.
#[inline(always)]
unsafe fn generic(pointer: *const u8) -> *const u8 {
    pointer
}

arrivals! {
    /// Arrives at a barrier when the copies that this thread has started end; makes it expect one more.
    cp_async_mbarrier_arrive = "cp.async.mbarrier.arrive.b64" generic;
    /// Arrives at a barrier when the copies that this thread has started end; it must expect that.
    cp_async_mbarrier_arrive_noinc = "cp.async.mbarrier.arrive.noinc.b64" generic;
    /// [`cp_async_mbarrier_arrive`] by the address in shared memory.
    cp_async_mbarrier_arrive_shared = "cp.async.mbarrier.arrive.shared.b64" shared;
    /// [`cp_async_mbarrier_arrive_noinc`] by the address in shared memory.
    cp_async_mbarrier_arrive_noinc_shared = "cp.async.mbarrier.arrive.noinc.shared.b64" shared;
}
