//! Float methods that `std` has not, under CUDA's names.

use super::float::{Float, Narrow};
use super::functions;
use super::methods::float_methods;
use crate::bf16;

float_methods! {
    half
    /// Float methods that `std` has not, under CUDA's names; in the prelude.
    trait CudaFloatExt: Float {
        /// One over the cube root.
        fn rcbrt(self) -> Self = __nv_rcbrtf, __nv_rcbrt;
        /// One over the length of the vector (`self`, `other`).
        fn rhypot(self, other: Self) -> Self = __nv_rhypotf, __nv_rhypot;
        /// The length of the vector (`self`, `y`, `z`).
        fn norm3d(self, y: Self, z: Self) -> Self = __nv_norm3df, __nv_norm3d;
        /// One over the length of the vector (`self`, `y`, `z`).
        fn rnorm3d(self, y: Self, z: Self) -> Self = __nv_rnorm3df, __nv_rnorm3d;
        /// The length of the vector (`self`, `y`, `z`, `w`).
        fn norm4d(self, y: Self, z: Self, w: Self) -> Self = __nv_norm4df, __nv_norm4d;
        /// One over the length of the vector (`self`, `y`, `z`, `w`).
        fn rnorm4d(self, y: Self, z: Self, w: Self) -> Self = __nv_rnorm4df, __nv_rnorm4d;
        /// The sine of this times π; exact at whole and half numbers.
        fn sinpi(self) -> Self = __nv_sinpif, __nv_sinpi;
        /// The cosine of this times π; exact at whole and half numbers.
        fn cospi(self) -> Self = __nv_cospif, __nv_cospi;
        /// The sine and the cosine of this times π.
        fn sincospi(self) -> (Self, Self) = sincospi_f32, sincospi_f64;
        /// The inverse of the error function.
        fn erfinv(self) -> Self = __nv_erfinvf, __nv_erfinv;
        /// The inverse of the complementary error function.
        fn erfcinv(self) -> Self = __nv_erfcinvf, __nv_erfcinv;
        /// The complementary error function times exp(self²).
        fn erfcx(self) -> Self = __nv_erfcxf, __nv_erfcx;
        /// The cumulative normal distribution.
        fn normcdf(self) -> Self = __nv_normcdff, __nv_normcdf;
        /// The inverse of the cumulative normal distribution.
        fn normcdfinv(self) -> Self = __nv_normcdfinvf, __nv_normcdfinv;
        /// The natural logarithm of the gamma function's absolute value.
        fn lgamma(self) -> Self = __nv_lgammaf, __nv_lgamma;
        /// The gamma function.
        fn tgamma(self) -> Self = __nv_tgammaf, __nv_tgamma;
        /// The Bessel function of the first kind, order 0.
        fn j0(self) -> Self = __nv_j0f, __nv_j0;
        /// The Bessel function of the first kind, order 1.
        fn j1(self) -> Self = __nv_j1f, __nv_j1;
        /// The Bessel function of the first kind, order `n`; NaN where `n` is negative.
        fn jn(self, n: i32) -> Self = jn_f32, jn_f64;
        /// The Bessel function of the second kind, order 0.
        fn y0(self) -> Self = __nv_y0f, __nv_y0;
        /// The Bessel function of the second kind, order 1.
        fn y1(self) -> Self = __nv_y1f, __nv_y1;
        /// The Bessel function of the second kind, order `n`; NaN where `n` is negative.
        fn yn(self, n: i32) -> Self = yn_f32, yn_f64;
        /// The modified Bessel function of the first kind, order 0.
        fn cyl_bessel_i0(self) -> Self = __nv_cyl_bessel_i0f, __nv_cyl_bessel_i0;
        /// The modified Bessel function of the first kind, order 1.
        fn cyl_bessel_i1(self) -> Self = __nv_cyl_bessel_i1f, __nv_cyl_bessel_i1;
        /// `self - other` where that is positive, else 0.
        fn fdim(self, other: Self) -> Self = __nv_fdimf, __nv_fdim;
        /// The exact remainder of the division rounded towards 0; `%` on floats is not exact here.
        fn fmod(self, divisor: Self) -> Self = __nv_fmodf, __nv_fmod;
        /// The exact remainder of the division rounded to the nearest whole number, ties to even.
        fn remainder(self, divisor: Self) -> Self = __nv_remainderf, __nv_remainder;
        /// [`remainder`](Self::remainder), and the low three bits of the quotient with its sign.
        fn remquo(self, divisor: Self) -> (Self, i32) = remquo_f32, remquo_f64;
        /// This times 2 to a power, rounded once.
        fn ldexp(self, exponent: i32) -> Self = __nv_ldexpf, __nv_ldexp;
        /// A fraction, 0 or from 0.5 to below 1 in size, and the power of 2 to multiply it by.
        fn frexp(self) -> (Self, i32) = frexp_f32, frexp_f64;
        /// What is left of this without its whole part, and its whole part; both have its sign.
        fn modf(self) -> (Self, Self) = modf_f32, modf_f64;
        /// The exponent of the largest power of 2 that is not larger than this in size, as a float.
        fn logb(self) -> Self = __nv_logbf, __nv_logb;
        /// [`logb`](Self::logb) as an integer; `i32::MIN` for 0 and NaN, `i32::MAX` for infinities.
        fn ilogb(self) -> i32 = __nv_ilogbf, __nv_ilogb;
        /// The nearest integer, ties to even.
        fn llrint(self) -> i64 = __nv_llrintf, __nv_llrint;
        /// The nearest integer, ties away from 0.
        fn llround(self) -> i64 = __nv_llroundf, __nv_llround;
    }
    provided {
        /// [`ldexp`](Self::ldexp) under its other name.
        #[inline(always)]
        fn scalbn(self, exponent: i32) -> Self {
            self.ldexp(exponent)
        }
    }
}
