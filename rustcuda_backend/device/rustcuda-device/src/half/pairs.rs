//! Pairs of halves as types.

use core::ops::{Add, AddAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use super::bf16;
#[cfg(cuda_arch = "80")]
use crate::bf16x2;
use crate::convert::{cvt_bf16x2_f32, cvt_f16x2_f32, cvt_f32x2_bf16x2, cvt_f32x2_f16x2, join};
use crate::f16x2;

/// Defines a pair; `$x`, `$y`, `$z` are operands' bits in the expressions given.
macro_rules! pairs {
    ($(
        $(#[$doc:meta])*
        $pair:ident of $half:ident ($from_f32:ident, $to_f32:ident, $half_condition:meta) {
            |$x:ident, $y:ident, $z:ident|
            add: $add:expr, sub: $sub:expr, mul: $mul:expr, fma: $fma:expr, max: $max:expr, min: $min:expr,
        }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Default)]
            #[repr(transparent)]
            pub struct $pair(u32);

            impl $pair {
                /// The pair with these bits, the lower half first in memory.
                #[inline(always)]
                pub const fn from_bits(bits: u32) -> Self {
                    Self(bits)
                }

                /// Its bits.
                #[inline(always)]
                pub const fn to_bits(self) -> u32 {
                    self.0
                }

                /// The two as a pair.
                #[$half_condition]
                #[inline(always)]
                pub const fn new(lo: $half, hi: $half) -> Self {
                    Self(join(lo.to_bits(), hi.to_bits()))
                }

                /// A pair of the same number twice.
                #[$half_condition]
                #[inline(always)]
                pub const fn splat(value: $half) -> Self {
                    Self::new(value, value)
                }

                /// The lower one, which is first in memory.
                #[$half_condition]
                #[inline(always)]
                pub const fn lo(self) -> $half {
                    $half::from_bits(self.0 as u16)
                }

                /// The upper one.
                #[$half_condition]
                #[inline(always)]
                pub const fn hi(self) -> $half {
                    $half::from_bits((self.0 >> 16) as u16)
                }

                /// The two as a pair, each rounded to nearest.
                #[inline(always)]
                pub fn from_f32(lo: f32, hi: f32) -> Self {
                    Self($from_f32(lo, hi))
                }

                /// The lower and the upper one.
                #[inline(always)]
                pub fn to_f32(self) -> (f32, f32) {
                    $to_f32(self.0)
                }

                /// `self * factor + addend`, rounded once, as for the single type.
                #[inline(always)]
                pub fn mul_add(self, factor: Self, addend: Self) -> Self {
                    let ($x, $y, $z) = (self, factor, addend);
                    $fma
                }

                /// The larger ones; a number before NaN.
                #[inline(always)]
                pub fn max(self, other: Self) -> Self {
                    let ($x, $y) = (self, other);
                    $max
                }

                /// The smaller ones; a number before NaN.
                #[inline(always)]
                pub fn min(self, other: Self) -> Self {
                    let ($x, $y) = (self, other);
                    $min
                }

                /// Two operations on `f32`, rounded.
                #[cfg(not(cuda_arch = "80"))]
                #[inline(always)]
                fn by_f32(self, other: Self, operation: impl Fn(f32, f32) -> f32) -> Self {
                    let ((x_lo, x_hi), (y_lo, y_hi)) = (self.to_f32(), other.to_f32());
                    Self::from_f32(operation(x_lo, y_lo), operation(x_hi, y_hi))
                }

                /// Both without their signs.
                #[inline(always)]
                pub const fn abs(self) -> Self {
                    Self(self.0 & 0x7fff_7fff)
                }
            }

            impl Neg for $pair {
                type Output = Self;

                #[inline(always)]
                fn neg(self) -> Self {
                    Self(self.0 ^ 0x8000_8000)
                }
            }

            pairs!(@operator $pair Add add AddAssign add_assign |$x, $y| $add);
            pairs!(@operator $pair Sub sub SubAssign sub_assign |$x, $y| $sub);
            pairs!(@operator $pair Mul mul MulAssign mul_assign |$x, $y| $mul);
        )*
    };
    (@operator $pair:ident $trait:ident $method:ident $assign_trait:ident $assign:ident |$x:ident, $y:ident| $value:expr) => {
        impl $trait for $pair {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                let ($x, $y) = (self, other);
                $value
            }
        }

        impl $assign_trait for $pair {
            #[inline(always)]
            fn $assign(&mut self, other: Self) {
                *self = $trait::$method(*self, other);
            }
        }
    };
}

/// The first in passes from capability 8.0 on, the second before.
macro_rules! from_80 {
    ($native:expr, $before:expr) => {{
        #[cfg(cuda_arch = "80")]
        let pair = $native;
        #[cfg(not(cuda_arch = "80"))]
        let pair = $before;
        pair
    }};
}

pairs! {
    /// Two `f16` in one register.
    F16x2 of f16 (cvt_f16x2_f32, cvt_f32x2_f16x2, cfg(target_arch = "nvptx64")) {
        |x, y, z|
        add: Self(f16x2::add_f16x2(x.0, y.0)),
        sub: Self(f16x2::sub_f16x2(x.0, y.0)),
        mul: Self(f16x2::mul_f16x2(x.0, y.0)),
        fma: Self(f16x2::fma_f16x2(x.0, y.0, z.0)),
        max: from_80!(Self(f16x2::max_f16x2(x.0, y.0)), x.by_f32(y, f32::max)),
        min: from_80!(Self(f16x2::min_f16x2(x.0, y.0)), x.by_f32(y, f32::min)),
    }
    /// Two [`bf16`] in one register.
    Bf16x2 of bf16 (cvt_bf16x2_f32, cvt_f32x2_bf16x2, allow(dead_code)) {
        |x, y, z|
        add: from_80!(Self(bf16x2::add_bf16x2(x.0, y.0)), x.by_f32(y, |x, y| x + y)),
        sub: from_80!(Self(bf16x2::sub_bf16x2(x.0, y.0)), x.by_f32(y, |x, y| x - y)),
        mul: from_80!(Self(bf16x2::mul_bf16x2(x.0, y.0)), x.by_f32(y, |x, y| x * y)),
        fma: from_80!(
            Self(bf16x2::fma_bf16x2(x.0, y.0, z.0)),
            Self::new(x.lo().fused(y.lo(), z.lo()), x.hi().fused(y.hi(), z.hi()))
        ),
        max: from_80!(Self(bf16x2::max_bf16x2(x.0, y.0)), x.by_f32(y, f32::max)),
        min: from_80!(Self(bf16x2::min_bf16x2(x.0, y.0)), x.by_f32(y, f32::min)),
    }
}
