//! Float methods under the names that `std` gives them.

use super::float::{Float, Narrow};
use super::functions;
use super::methods::float_methods;
use crate::bf16;

float_methods! {
    half
    /// Float methods under the names that `std` gives them; in scope in every kernel's body.
    trait FloatExt: Float {
        /// The largest whole number that is not larger.
        fn floor(self) -> Self = __nv_floorf, __nv_floor;
        /// The smallest whole number that is not smaller.
        fn ceil(self) -> Self = __nv_ceilf, __nv_ceil;
        /// The whole number towards 0.
        fn trunc(self) -> Self = __nv_truncf, __nv_trunc;
        /// The nearest whole number, ties away from 0.
        fn round(self) -> Self = __nv_roundf, __nv_round;
        /// The nearest whole number, ties to even.
        fn round_ties_even(self) -> Self = __nv_rintf, __nv_rint;
        /// The square root, rounded to nearest unless the build says `prec-sqrt = false`.
        fn sqrt(self) -> Self = sqrt_f32, sqrt_f64;
        /// One over the square root.
        fn rsqrt(self) -> Self = __nv_rsqrtf, __nv_rsqrt;
        /// The cube root.
        fn cbrt(self) -> Self = __nv_cbrtf, __nv_cbrt;
        /// The length of the vector (`self`, `other`).
        fn hypot(self, other: Self) -> Self = __nv_hypotf, __nv_hypot;
        /// This to a power.
        fn powf(self, exponent: Self) -> Self = __nv_powf, __nv_pow;
        /// This to a whole power.
        fn powi(self, exponent: i32) -> Self = __nv_powif, __nv_powi;
        /// e to this power.
        fn exp(self) -> Self = __nv_expf, __nv_exp;
        /// 2 to this power.
        fn exp2(self) -> Self = __nv_exp2f, __nv_exp2;
        /// 10 to this power; not in `std`.
        fn exp10(self) -> Self = __nv_exp10f, __nv_exp10;
        /// e to this power, less 1; exact near 0.
        fn exp_m1(self) -> Self = __nv_expm1f, __nv_expm1;
        /// The natural logarithm.
        fn ln(self) -> Self = __nv_logf, __nv_log;
        /// The natural logarithm of this plus 1; exact near 0.
        fn ln_1p(self) -> Self = __nv_log1pf, __nv_log1p;
        /// The logarithm to base 2.
        fn log2(self) -> Self = __nv_log2f, __nv_log2;
        /// The logarithm to base 10.
        fn log10(self) -> Self = __nv_log10f, __nv_log10;
        /// The sine of radians.
        fn sin(self) -> Self = __nv_sinf, __nv_sin;
        /// The cosine of radians.
        fn cos(self) -> Self = __nv_cosf, __nv_cos;
        /// The sine and the cosine of radians, for little more than one of them.
        fn sin_cos(self) -> (Self, Self) = sin_cos_f32, sin_cos_f64;
        /// The tangent of radians.
        fn tan(self) -> Self = __nv_tanf, __nv_tan;
        /// The arc sine, in radians.
        fn asin(self) -> Self = __nv_asinf, __nv_asin;
        /// The arc cosine, in radians.
        fn acos(self) -> Self = __nv_acosf, __nv_acos;
        /// The arc tangent, in radians.
        fn atan(self) -> Self = __nv_atanf, __nv_atan;
        /// The angle of the point (`other`, `self`), in radians.
        fn atan2(self, other: Self) -> Self = __nv_atan2f, __nv_atan2;
        /// The hyperbolic sine.
        fn sinh(self) -> Self = __nv_sinhf, __nv_sinh;
        /// The hyperbolic cosine.
        fn cosh(self) -> Self = __nv_coshf, __nv_cosh;
        /// The hyperbolic tangent.
        fn tanh(self) -> Self = __nv_tanhf, __nv_tanh;
        /// The inverse hyperbolic sine.
        fn asinh(self) -> Self = __nv_asinhf, __nv_asinh;
        /// The inverse hyperbolic cosine.
        fn acosh(self) -> Self = __nv_acoshf, __nv_acosh;
        /// The inverse hyperbolic tangent.
        fn atanh(self) -> Self = __nv_atanhf, __nv_atanh;
        /// The error function.
        fn erf(self) -> Self = __nv_erff, __nv_erf;
        /// 1 less the error function; exact where that is near 1.
        fn erfc(self) -> Self = __nv_erfcf, __nv_erfc;
    }
    provided {
        /// `self * factor + addend`, rounded once.
        #[inline(always)]
        fn mul_add(self, factor: Self, addend: Self) -> Self {
            self.fused(factor, addend)
        }

        /// The logarithm to a base; [`ln`](Self::ln), [`log2`](Self::log2) and [`log10`](Self::log10)
        /// are more exact.
        #[inline(always)]
        fn log(self, base: Self) -> Self {
            self.ln() / base.ln()
        }

        /// What is left of this without its whole part, with its sign.
        #[inline(always)]
        fn fract(self) -> Self {
            self - self.trunc()
        }

        /// The whole number `q` for which `self - q * divisor` is [`rem_euclid`](Self::rem_euclid).
        #[inline(always)]
        fn div_euclid(self, divisor: Self) -> Self {
            let quotient = (self / divisor).trunc();
            if self.remainder_towards_zero(divisor) < Self::ZERO {
                let step = if divisor > Self::ZERO { Self::ONE } else { -Self::ONE };
                return quotient - step;
            }
            quotient
        }

        /// The remainder that is not negative.
        #[inline(always)]
        fn rem_euclid(self, divisor: Self) -> Self {
            let remainder = self.remainder_towards_zero(divisor);
            if remainder < Self::ZERO {
                return remainder + if divisor < Self::ZERO { -divisor } else { divisor };
            }
            remainder
        }
    }
}
