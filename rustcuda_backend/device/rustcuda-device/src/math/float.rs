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
    ($($(#[$condition:meta])? $float:ident { $one:expr, $fused:expr, $remainder:expr })*) => {
        $(
            $(#[$condition])?
            impl sealed::Sealed for $float {}

            $(#[$condition])?
            impl Float for $float {
                const ZERO: Self = $float::from_bits(0);
                const ONE: Self = $one;

                #[inline(always)]
                fn fused(self, factor: Self, addend: Self) -> Self {
                    // SAFETY: arithmetic only.
                    #[allow(unused_unsafe)]
                    unsafe { $fused(self, factor, addend) }
                }

                #[inline(always)]
                fn remainder_towards_zero(self, divisor: Self) -> Self {
                    // SAFETY: arithmetic only.
                    #[allow(unused_unsafe)]
                    unsafe { $remainder(self, divisor) }
                }
            }
        )*
    };
}

floats! {
    f32 { 1.0, intrinsics::fma_f32, libdevice::__nv_fmodf }
    f64 { 1.0, intrinsics::fma_f64, libdevice::__nv_fmod }
    bf16 { bf16::ONE, bf16::fused, |x: bf16, y: bf16| bf16::narrow(libdevice::__nv_fmodf(x.widen(), y.widen())) }
    #[cfg(target_arch = "nvptx64")]
    f16 { 1.0, half::fma_f16, |x: f16, y: f16| f16::narrow(libdevice::__nv_fmodf(x.widen(), y.widen())) }
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
        self as f32
    }

    #[inline(always)]
    fn narrow(wide: f32) -> Self {
        wide as f16
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
