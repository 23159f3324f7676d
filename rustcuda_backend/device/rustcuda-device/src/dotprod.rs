//! Dot products of small integers packed into 32 bits, one instruction each.
//!
//! ```
//! use rustcuda_device::dotprod::dp4a_s32;
//! use rustcuda_device::prelude::*;
//!
//! /// One dot product a thread, of vectors of `words * 4` signed bytes.
//! #[kernel]
//! fn dot_i8(words: usize, x: &[u32], y: &[u32], mut out: DisjointSlice<i32>) {
//!     let index = thread::index_1d();
//!     let row = index.get() * words;
//!     if let Some(out) = out.get_mut(index) {
//!         *out = (row..row + words).fold(0, |sum, k| dp4a_s32(x[k], y[k], sum));
//!     }
//! }
//! ```

use crate::intrinsics::ptx;

/// Defines functions of one instruction.
macro_rules! dot_products {
    ($($(#[$doc:meta])* $name:ident($type:ident) = $instruction:literal;)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name(x: u32, y: u32, sum: $type) -> $type {
                let result: $type;
                // SAFETY: arithmetic only.
                unsafe {
                    ptx!(
                        concat!($instruction, " {}, {}, {}, {};"),
                        out(reg32) result, in(reg32) x, in(reg32) y, in(reg32) sum,
                        options(pure, nomem, nostack, preserves_flags)
                    );
                }
                result
            }
        )*
    };
}

dot_products! {
    /// `sum` and the products of the four signed bytes of `x` with those of `y`.
    dp4a_s32(i32) = "dp4a.s32.s32";
    /// `sum` and the products of the four bytes of `x` with those of `y`.
    dp4a_u32(u32) = "dp4a.u32.u32";
    /// `sum` and the products of the two signed halfwords of `x` with the two low signed bytes of `y`.
    dp2a_s32(i32) = "dp2a.lo.s32.s32";
    /// `sum` and the products of the two halfwords of `x` with the two low bytes of `y`.
    dp2a_u32(u32) = "dp2a.lo.u32.u32";
    /// `sum` and the products of the two signed halfwords of `x` with the two high signed bytes of `y`.
    dp2a_hi_s32(i32) = "dp2a.hi.s32.s32";
    /// `sum` and the products of the two halfwords of `x` with the two high bytes of `y`.
    dp2a_hi_u32(u32) = "dp2a.hi.u32.u32";
}
