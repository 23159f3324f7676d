//! What the traits of float methods build on.

use core::ops::{Add, Div, Mul, Neg, Sub};

use crate::bf16;
use crate::intrinsics;
use crate::math::libdevice;

/// The float types: `f32`, `f64`, and by way of `f32` `f16` and [`bf16`].
pub trait Float:
    Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + sealed::Sealed
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;

    /// The nearest number of this type, ties to even.
    fn from_f32(value: f32) -> Self;

    /// The nearest `f32`, ties to even; exact for halves.
    fn to_f32(self) -> f32;

    /// `self * factor + addend`, rounded once.
    #[doc(hidden)]
    fn fused(self, factor: Self, addend: Self) -> Self;

    /// The exact remainder of the division rounded towards 0.
    #[doc(hidden)]
    fn remainder_towards_zero(self, divisor: Self) -> Self;
}

mod sealed {
    /// Keeps other types from being floats: the traits may then grow.
    pub trait Sealed {}
}

/// Implements [`Float`] by functions of the type.
macro_rules! floats {
    ($($(#[$condition:meta])? $float:ident {
        one: $one:expr, from_f32: $from_f32:expr, to_f32: $to_f32:expr, fused: $fused:expr, fmod: $fmod:expr,
    })*) => {
        $(
            $(#[$condition])?
            impl sealed::Sealed for $float {}

            // SAFETY of all: arithmetic only.
            $(#[$condition])?
            #[allow(unused_unsafe)]
            impl Float for $float {
                const ZERO: Self = $float::from_bits(0);
                const ONE: Self = $one;

                #[inline(always)]
                fn from_f32(value: f32) -> Self {
                    $from_f32(value)
                }

                #[inline(always)]
                fn to_f32(self) -> f32 {
                    $to_f32(self)
                }

                #[inline(always)]
                fn fused(self, factor: Self, addend: Self) -> Self {
                    unsafe { $fused(self, factor, addend) }
                }

                #[inline(always)]
                fn remainder_towards_zero(self, divisor: Self) -> Self {
                    unsafe { $fmod(self, divisor) }
                }
            }
        )*
    };
}

floats! {
    f32 {
        one: 1.0, from_f32: |value| value, to_f32: |value| value,
        fused: intrinsics::fma_f32, fmod: libdevice::__nv_fmodf,
    }
    f64 {
        one: 1.0, from_f32: f64::from, to_f32: |value| value as f32,
        fused: intrinsics::fma_f64, fmod: libdevice::__nv_fmod,
    }
    bf16 {
        one: bf16::ONE, from_f32: bf16::from_f32, to_f32: bf16::to_f32,
        fused: bf16::fused, fmod: fmod_by_f32,
    }
    #[cfg(target_arch = "nvptx64")]
    f16 {
        one: 1.0, from_f32: |value| value as f16, to_f32: |value| value as f32,
        fused: half::fma_f16, fmod: fmod_by_f32,
    }
}

/// The exact remainder; that of halves is a half.
#[inline(always)]
fn fmod_by_f32<T: Float>(value: T, divisor: T) -> T {
    // SAFETY: arithmetic only.
    T::from_f32(unsafe { libdevice::__nv_fmodf(value.to_f32(), divisor.to_f32()) })
}

#[cfg(target_arch = "nvptx64")]
mod half {
    crate::intrinsics::intrinsics! {
        "llvm.fma.f16" fn fma_f16(x: f16, y: f16, z: f16) -> f16;
    }
}

/// Values as the functions for `f32` take and give them in the place of halves.
pub trait Narrow {
    /// `f32` for halves, else the same type.
    type Wide;

    /// As a function for `f32` takes it.
    fn widen(self) -> Self::Wide;

    /// From what a function for `f32` gives, rounded to nearest.
    fn narrow(wide: Self::Wide) -> Self;
}

impl Narrow for bf16 {
    type Wide = f32;

    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32()
    }

    #[inline(always)]
    fn narrow(wide: f32) -> Self {
        Self::from_f32(wide)
    }
}

// Not stable yet, so it must not disturb a check for the host.
#[cfg(target_arch = "nvptx64")]
impl Narrow for f16 {
    type Wide = f32;

    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32()
    }

    #[inline(always)]
    fn narrow(wide: f32) -> Self {
        Self::from_f32(wide)
    }
}

macro_rules! as_they_are {
    ($($integer:ident)*) => {
        $(
            impl Narrow for $integer {
                type Wide = Self;

                #[inline(always)]
                fn widen(self) -> Self {
                    self
                }

                #[inline(always)]
                fn narrow(wide: Self) -> Self {
                    wide
                }
            }
        )*
    };
}

as_they_are!(i32 i64);

impl<A: Narrow, B: Narrow> Narrow for (A, B) {
    type Wide = (A::Wide, B::Wide);

    #[inline(always)]
    fn widen(self) -> Self::Wide {
        (self.0.widen(), self.1.widen())
    }

    #[inline(always)]
    fn narrow((first, second): Self::Wide) -> Self {
        (A::narrow(first), B::narrow(second))
    }
}
