//! The type `bf16`.

use core::cmp::Ordering;

#[allow(unused_imports)] // not all capabilities have an instruction for it
use crate::intrinsics::ptx;

/// Returns what one instruction gives, in passes whose GPU has it.
macro_rules! native {
    ($arch:literal: $instruction:literal, $x:expr $(, $more:expr)+) => {
        #[cfg(cuda_arch = $arch)]
        {
            let bits: u16;
            // SAFETY: arithmetic only.
            unsafe {
                ptx!(
                    concat!($instruction, " {}, {}" $(, native!(@operand $more))+, ";"),
                    out(reg16) bits, in(reg16) $x.0 $(, in(reg16) $more.0)+,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
            return Self(bits);
        }
    };
    (@operand $more:expr) => { ", {}" };
}
pub(super) use native;

/// A float of 16 bits with the range of `f32`: its upper half.
///
/// Every operation rounds once, to nearest with ties to even.
/// (`mul_add` does from capability 8.0 on; before, it rounds to `f32` first.)
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct bf16(pub(super) u16);

impl bf16 {
    /// 0.
    pub const ZERO: Self = Self(0);
    /// 1.
    pub const ONE: Self = Self(0x3f80);
    /// The difference between 1 and the next larger number, 2^-7.
    pub const EPSILON: Self = Self(0x3c00);
    /// The largest finite number, about 3.39e38.
    pub const MAX: Self = Self(0x7f7f);
    /// The smallest finite number.
    pub const MIN: Self = Self(0xff7f);
    /// The smallest positive number that is not subnormal, 2^-126.
    pub const MIN_POSITIVE: Self = Self(0x0080);
    /// Infinity.
    pub const INFINITY: Self = Self(0x7f80);
    /// Minus infinity.
    pub const NEG_INFINITY: Self = Self(0xff80);
    /// The NaN that operations give.
    pub const NAN: Self = Self(0x7fff);
    /// Significant bits, the hidden one included.
    pub const MANTISSA_DIGITS: u32 = 8;

    pub(super) const SIGN: u16 = 0x8000;

    /// The number with these bits.
    #[inline(always)]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// Its bits.
    #[inline(always)]
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// The nearest `bf16`, ties to even.
    #[inline(always)]
    pub fn from_f32(value: f32) -> Self {
        #[cfg(cuda_arch = "80")]
        {
            let bits: u16;
            // SAFETY: arithmetic only.
            unsafe {
                ptx!(
                    "cvt.rn.bf16.f32 {}, {};", out(reg16) bits, in(reg32) value,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
            Self(bits)
        }
        #[cfg(not(cuda_arch = "80"))]
        Self::from_f32_const(value)
    }

    /// [`from_f32`](Self::from_f32) in constants.
    #[inline(always)]
    pub const fn from_f32_const(value: f32) -> Self {
        if value.is_nan() {
            return Self::NAN;
        }
        let bits = value.to_bits();
        let below_half = 0x7fff;
        let odd = (bits >> 16) & 1;
        Self(((bits + below_half + odd) >> 16) as u16)
    }

    /// The same number in 32 bits.
    #[inline(always)]
    pub const fn to_f32(self) -> f32 {
        f32::from_bits((self.0 as u32) << 16)
    }

    /// The same number in 64 bits.
    #[inline(always)]
    pub const fn to_f64(self) -> f64 {
        self.to_f32() as f64
    }

    /// The number without its sign.
    #[inline(always)]
    pub const fn abs(self) -> Self {
        Self(self.0 & !Self::SIGN)
    }

    /// This number with the sign of `sign`.
    #[inline(always)]
    pub const fn copysign(self, sign: Self) -> Self {
        Self(self.abs().0 | sign.0 & Self::SIGN)
    }

    /// 1 with this number's sign; NaN for NaN.
    #[inline(always)]
    pub const fn signum(self) -> Self {
        if self.is_nan() {
            Self::NAN
        } else {
            Self::ONE.copysign(self)
        }
    }

    /// Whether it is not a number.
    #[inline(always)]
    pub const fn is_nan(self) -> bool {
        self.abs().0 > Self::INFINITY.0
    }

    /// Whether it is infinity or minus infinity.
    #[inline(always)]
    pub const fn is_infinite(self) -> bool {
        self.abs().0 == Self::INFINITY.0
    }

    /// Whether it is neither infinite nor NaN.
    #[inline(always)]
    pub const fn is_finite(self) -> bool {
        self.abs().0 < Self::INFINITY.0
    }

    /// Whether its sign bit is 1.
    #[inline(always)]
    pub const fn is_sign_negative(self) -> bool {
        self.0 & Self::SIGN != 0
    }

    /// Whether its sign bit is 0.
    #[inline(always)]
    pub const fn is_sign_positive(self) -> bool {
        !self.is_sign_negative()
    }

    /// The larger one; that which is a number if one of them is NaN.
    #[inline(always)]
    pub fn max(self, other: Self) -> Self {
        native!("80": "max.bf16", self, other);
        #[cfg(not(cuda_arch = "80"))]
        Self::from_f32_const(self.to_f32().max(other.to_f32()))
    }

    /// The smaller one; that which is a number if one of them is NaN.
    #[inline(always)]
    pub fn min(self, other: Self) -> Self {
        native!("80": "min.bf16", self, other);
        #[cfg(not(cuda_arch = "80"))]
        Self::from_f32_const(self.to_f32().min(other.to_f32()))
    }

    /// The nearest number from `low` to `high`; NaN for NaN.
    #[inline(always)]
    pub fn clamp(self, low: Self, high: Self) -> Self {
        if self.is_nan() {
            self
        } else {
            self.max(low).min(high)
        }
    }

    /// One over this.
    #[inline(always)]
    pub fn recip(self) -> Self {
        Self::ONE / self
    }

    /// An order of all bit patterns, as `f32::total_cmp`.
    #[inline(always)]
    pub fn total_cmp(&self, other: &Self) -> Ordering {
        self.to_f32().total_cmp(&other.to_f32())
    }

    /// `self * factor + addend`.
    #[inline(always)]
    pub(crate) fn fused(self, factor: Self, addend: Self) -> Self {
        native!("80": "fma.rn.bf16", self, factor, addend);
        // One rounding too many, as CUDA C++ has it there.
        #[cfg(not(cuda_arch = "80"))]
        Self::from_f32(crate::math::FloatExt::mul_add(
            self.to_f32(),
            factor.to_f32(),
            addend.to_f32(),
        ))
    }
}
