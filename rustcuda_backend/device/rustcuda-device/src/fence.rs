//! Order between a thread's own accesses to memory, as other threads see them.
//!
//! A fence alone makes nobody wait. It is half of a pattern: write the data, fence, set a flag by an
//! [`atomic`](crate::atomic); there, read the flag, fence, read the data.

use crate::intrinsics::{intrinsics, ptx};
use crate::requires::{Gpu, Has90};

mod nvvm {
    super::intrinsics! {
        "llvm.nvvm.membar.cta" fn block();
        "llvm.nvvm.membar.gl" fn device();
        "llvm.nvvm.membar.sys" fn system();
    }
}

/// Orders this thread's earlier accesses before its later ones, as seen by its block.
#[inline(always)]
pub fn threadfence_block() {
    // SAFETY: a fence has no requirements.
    unsafe { nvvm::block() }
}

/// Orders this thread's earlier accesses before its later ones, as seen by the whole GPU.
#[inline(always)]
pub fn threadfence() {
    // SAFETY: a fence has no requirements.
    unsafe { nvvm::device() }
}

/// Orders this thread's earlier accesses before its later ones, as seen by all GPUs and the host.
#[inline(always)]
pub fn threadfence_system() {
    // SAFETY: a fence has no requirements.
    unsafe { nvvm::system() }
}

macro_rules! proxy_fences {
    ($($(#[doc = $doc:literal])* $name:ident = $instruction:literal;)*) => {
        $(
            $(#[doc = $doc])*
            ///
            /// # Safety
            ///
            /// None: a fence has no requirements. It is unsafe as its likes in `cuda-device` are.
            #[inline(always)]
            pub unsafe fn $name()
            where
                for<'pass> Gpu<'pass>: Has90,
            {
                // SAFETY: a fence has no requirements.
                unsafe { ptx!($instruction, options(nostack, preserves_flags)) }
            }
        )*
    };
}

proxy_fences! {
    /// Orders this thread's accesses before those that units beside the threads make for it, such as
    /// bulk copies, and the other way round.
    fence_proxy_async = "fence.proxy.async;";
    /// As [`fence_proxy_async`], of shared memory only.
    fence_proxy_async_shared_cta = "fence.proxy.async.shared::cta;";
    /// As [`fence_proxy_async`], of global memory only.
    fence_proxy_async_global = "fence.proxy.async.global;";
    /// Shows the barriers that this thread has made ready to the whole cluster.
    fence_mbarrier_init_release_cluster = "fence.mbarrier_init.release.cluster;";
}
