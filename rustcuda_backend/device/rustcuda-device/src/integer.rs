//! CUDA's functions on integers.
//!
//! `count_ones`, `leading_zeros`, `reverse_bits`, `rotate_left` and the other methods that `core` has
//! are single instructions as well (popc, clz, brev, shf); the first functions here are their CUDA names.
//!
//! ```
//! use rustcuda_device::integer::byte_perm;
//! use rustcuda_device::prelude::*;
//!
//! /// Pixels from RGBA to BGRA.
//! #[kernel]
//! fn swap_red_and_blue(mut pixels: DisjointSlice<u32>) {
//!     if let Some(pixel) = pixels.get_mut(thread::index_1d()) {
//!         *pixel = byte_perm(*pixel, 0, 0x3012);
//!     }
//! }
//! ```

use crate::intrinsics::{intrinsics, ptx};

mod llvm {
    super::intrinsics! {
        "llvm.nvvm.prmt" fn prmt(x: u32, y: u32, selector: u32) -> u32;
        "llvm.fshl.i32" fn funnel_left(high: u32, low: u32, shift: u32) -> u32;
        "llvm.fshr.i32" fn funnel_right(high: u32, low: u32, shift: u32) -> u32;
    }
}

/// The bits in reverse order.
#[inline(always)]
pub const fn brev(x: u32) -> u32 {
    x.reverse_bits()
}

/// The bits in reverse order.
#[inline(always)]
pub const fn brevll(x: u64) -> u64 {
    x.reverse_bits()
}

/// The number of zero bits above the highest 1; 32 for 0.
#[inline(always)]
pub const fn clz(x: u32) -> u32 {
    x.leading_zeros()
}

/// The number of zero bits above the highest 1; 64 for 0.
#[inline(always)]
pub const fn clzll(x: u64) -> u32 {
    x.leading_zeros()
}

/// The number of bits that are 1.
#[inline(always)]
pub const fn popc(x: u32) -> u32 {
    x.count_ones()
}

/// The number of bits that are 1.
#[inline(always)]
pub const fn popcll(x: u64) -> u32 {
    x.count_ones()
}

/// The position of the lowest 1, counted from 1; 0 where there is none.
#[inline(always)]
pub const fn ffs(x: u32) -> u32 {
    // clz gives 32 for 0, which makes 0.
    32 - (x & x.wrapping_neg()).leading_zeros()
}

/// The position of the lowest 1, counted from 1; 0 where there is none.
#[inline(always)]
pub const fn ffsll(x: u64) -> u32 {
    64 - (x & x.wrapping_neg()).leading_zeros()
}

/// Four bytes out of the eight of `y` (bytes 7 to 4) and `x` (3 to 0): the four lowest hexadecimal
/// digits of `selector` number them, the lowest for the lowest byte. A digit of 8 or more gives the
/// sign of byte `digit - 8` in all bits.
#[inline(always)]
pub fn byte_perm(x: u32, y: u32, selector: u32) -> u32 {
    // SAFETY: arithmetic only.
    unsafe { llvm::prmt(x, y, selector) }
}

/// The upper 32 bits of `high:low` moved left by the low five bits of `shift`.
#[inline(always)]
pub fn funnelshift_l(low: u32, high: u32, shift: u32) -> u32 {
    // SAFETY: arithmetic only.
    unsafe { llvm::funnel_left(high, low, shift) }
}

/// The lower 32 bits of `high:low` moved right by the low five bits of `shift`.
#[inline(always)]
pub fn funnelshift_r(low: u32, high: u32, shift: u32) -> u32 {
    // SAFETY: arithmetic only.
    unsafe { llvm::funnel_right(high, low, shift) }
}

/// The upper 32 bits of `high:low` moved left by `shift`, at most by 32.
#[inline(always)]
pub fn funnelshift_lc(low: u32, high: u32, shift: u32) -> u32 {
    let result;
    // SAFETY: arithmetic only.
    unsafe {
        ptx!(
            "shf.l.clamp.b32 {}, {}, {}, {};",
            out(reg32) result, in(reg32) low, in(reg32) high, in(reg32) shift,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    result
}

/// The lower 32 bits of `high:low` moved right by `shift`, at most by 32.
#[inline(always)]
pub fn funnelshift_rc(low: u32, high: u32, shift: u32) -> u32 {
    let result;
    // SAFETY: arithmetic only.
    unsafe {
        ptx!(
            "shf.r.clamp.b32 {}, {}, {}, {};",
            out(reg32) result, in(reg32) low, in(reg32) high, in(reg32) shift,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    result
}

/// Defines functions that are libdevice's.
macro_rules! libdevice {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $result:ty = $link_name:literal;)*) => {
        mod libdevice {
            super::intrinsics! {
                $($link_name fn $name($($argument: $type),*) -> $result;)*
            }
        }
        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name($($argument: $type),*) -> $result {
                // SAFETY: arithmetic only.
                unsafe { libdevice::$name($($argument),*) }
            }
        )*
    };
}

libdevice! {
    /// The low 32 bits of the product of the low 24 bits of each.
    mul24(x: i32, y: i32) -> i32 = "__nv_mul24";
    /// The low 32 bits of the product of the low 24 bits of each.
    umul24(x: u32, y: u32) -> u32 = "__nv_umul24";
    /// The high 32 bits of the product.
    mulhi(x: i32, y: i32) -> i32 = "__nv_mulhi";
    /// The high 32 bits of the product.
    umulhi(x: u32, y: u32) -> u32 = "__nv_umulhi";
    /// The high 64 bits of the product.
    mul64hi(x: i64, y: i64) -> i64 = "__nv_mul64hi";
    /// The high 64 bits of the product.
    umul64hi(x: u64, y: u64) -> u64 = "__nv_umul64hi";
    /// |x - y| + z.
    sad(x: i32, y: i32, z: u32) -> u32 = "__nv_sad";
    /// |x - y| + z.
    usad(x: u32, y: u32, z: u32) -> u32 = "__nv_usad";
    /// The average rounded down, without overflow.
    hadd(x: i32, y: i32) -> i32 = "__nv_hadd";
    /// The average rounded down, without overflow.
    uhadd(x: u32, y: u32) -> u32 = "__nv_uhadd";
    /// The average rounded up, without overflow.
    rhadd(x: i32, y: i32) -> i32 = "__nv_rhadd";
    /// The average rounded up, without overflow.
    urhadd(x: u32, y: u32) -> u32 = "__nv_urhadd";
}
