//! Integers combined over a warp in one instruction.

use crate::intrinsics::intrinsics;
use crate::requires::{Gpu, Has80};

mod nvvm {
    super::intrinsics! {
        "llvm.nvvm.redux.sync.add" fn add(value: u32, mask: u32) -> u32;
        "llvm.nvvm.redux.sync.and" fn and(value: u32, mask: u32) -> u32;
        "llvm.nvvm.redux.sync.or" fn or(value: u32, mask: u32) -> u32;
        "llvm.nvvm.redux.sync.xor" fn xor(value: u32, mask: u32) -> u32;
        "llvm.nvvm.redux.sync.umin" fn min_u32(value: u32, mask: u32) -> u32;
        "llvm.nvvm.redux.sync.umax" fn max_u32(value: u32, mask: u32) -> u32;
        "llvm.nvvm.redux.sync.min" fn min_i32(value: i32, mask: u32) -> i32;
        "llvm.nvvm.redux.sync.max" fn max_i32(value: i32, mask: u32) -> i32;
    }
}

macro_rules! redux {
    ($($(#[doc = $doc:literal])* $name:ident($type:ty) = $intrinsic:ident;)*) => {
        $(
            $(#[doc = $doc])*
            #[inline(always)]
            pub fn $name(mask: u32, value: $type) -> $type
            where
                for<'pass> Gpu<'pass>: Has80,
            {
                // SAFETY: see the documentation of `warp`; a wrong mask hangs.
                unsafe { nvvm::$intrinsic(value, mask) }
            }
        )*
    };
}

redux! {
    /// The sum over the lanes of `mask`, in each of them, modulo 2³²; serves `i32` as well.
    redux_sync_add(u32) = add;
    /// The bits that are set in all lanes of `mask`.
    redux_sync_and(u32) = and;
    /// The bits that are set in any lane of `mask`.
    redux_sync_or(u32) = or;
    /// The bits that are set in an odd number of the lanes of `mask`.
    redux_sync_xor(u32) = xor;
    /// The smallest value of the lanes of `mask`.
    redux_sync_min_u32(u32) = min_u32;
    /// The largest value of the lanes of `mask`.
    redux_sync_max_u32(u32) = max_u32;
    /// The smallest value of the lanes of `mask`.
    redux_sync_min_i32(i32) = min_i32;
    /// The largest value of the lanes of `mask`.
    redux_sync_max_i32(i32) = max_i32;
}
