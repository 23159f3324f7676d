//! Functions on floats, which `core` has not: NVIDIA's libdevice, or one instruction.
//!
//! `abs`, `max`, `min`, `clamp` and `copysign` need no trait. How exact each is: CUDA C++ programming
//! guide, "Mathematical Functions".

use crate::intrinsics::{self, intrinsics};

/// `x / y` to within 2 units in the last place, in a fraction of the time that `/` takes; 0 where `y`
/// is larger than 2^126.
#[inline(always)]
pub fn fast_divide(x: f32, y: f32) -> f32 {
    // SAFETY: arithmetic only.
    unsafe { libdevice::fast_divide(x, y) }
}

/// Defines the trait and implements it by one function of libdevice for each type.
macro_rules! float_ext {
    (
        unary { $($(#[doc = $unary_doc:literal])* $unary:ident = $unary_f32:ident $unary_f64:ident
            ($unary_f32_name:literal $unary_f64_name:literal);)* }
        binary { $($(#[doc = $binary_doc:literal])* $binary:ident = $binary_f32:ident $binary_f64:ident
            ($binary_f32_name:literal $binary_f64_name:literal);)* }
    ) => {
        mod libdevice {
            super::intrinsics! {
                "__nv_fast_fdividef" fn fast_divide(x: f32, y: f32) -> f32;
                $($unary_f32_name fn $unary_f32(x: f32) -> f32; $unary_f64_name fn $unary_f64(x: f64) -> f64;)*
                $($binary_f32_name fn $binary_f32(x: f32, y: f32) -> f32;
                  $binary_f64_name fn $binary_f64(x: f64, y: f64) -> f64;)*
            }
        }

        /// Float methods under the names that `std` gives them; in scope in every kernel's body.
        pub trait FloatExt: Copy {
            $($(#[doc = $unary_doc])* fn $unary(self) -> Self;)*
            $($(#[doc = $binary_doc])* fn $binary(self, other: Self) -> Self;)*
            /// The square root, rounded to nearest unless the build says `prec-sqrt = false`.
            fn sqrt(self) -> Self;
            /// `self * factor + addend`, rounded once.
            fn mul_add(self, factor: Self, addend: Self) -> Self;
        }

        float_ext!(@implement f32, sqrt_f32, fma_f32, $($unary $unary_f32,)* ; $($binary $binary_f32,)*);
        float_ext!(@implement f64, sqrt_f64, fma_f64, $($unary $unary_f64,)* ; $($binary $binary_f64,)*);
    };
    (@implement $type:ty, $sqrt:ident, $fma:ident, $($unary:ident $one:ident,)* ; $($binary:ident $two:ident,)*) => {
        // SAFETY of all: arithmetic only.
        impl FloatExt for $type {
            $(
                #[inline(always)]
                fn $unary(self) -> Self {
                    unsafe { libdevice::$one(self) }
                }
            )*
            $(
                #[inline(always)]
                fn $binary(self, other: Self) -> Self {
                    unsafe { libdevice::$two(self, other) }
                }
            )*
            #[inline(always)]
            fn sqrt(self) -> Self {
                unsafe { intrinsics::$sqrt(self) }
            }
            #[inline(always)]
            fn mul_add(self, factor: Self, addend: Self) -> Self {
                unsafe { intrinsics::$fma(self, factor, addend) }
            }
        }
    };
}

float_ext! {
    unary {
        /// e to this power.
        exp = expf exp ("__nv_expf" "__nv_exp");
        /// 2 to this power.
        exp2 = exp2f exp2 ("__nv_exp2f" "__nv_exp2");
        /// e to this power, less 1; exact near 0.
        exp_m1 = expm1f expm1 ("__nv_expm1f" "__nv_expm1");
        /// The natural logarithm.
        ln = logf log ("__nv_logf" "__nv_log");
        /// The natural logarithm of this plus 1; exact near 0.
        ln_1p = log1pf log1p ("__nv_log1pf" "__nv_log1p");
        /// The logarithm to base 2.
        log2 = log2f log2 ("__nv_log2f" "__nv_log2");
        /// The logarithm to base 10.
        log10 = log10f log10 ("__nv_log10f" "__nv_log10");
        /// One over the square root.
        rsqrt = rsqrtf rsqrt ("__nv_rsqrtf" "__nv_rsqrt");
        /// The cube root.
        cbrt = cbrtf cbrt ("__nv_cbrtf" "__nv_cbrt");
        /// The sine of radians.
        sin = sinf sin ("__nv_sinf" "__nv_sin");
        /// The cosine of radians.
        cos = cosf cos ("__nv_cosf" "__nv_cos");
        /// The tangent of radians.
        tan = tanf tan ("__nv_tanf" "__nv_tan");
        /// The arc sine, in radians.
        asin = asinf asin ("__nv_asinf" "__nv_asin");
        /// The arc cosine, in radians.
        acos = acosf acos ("__nv_acosf" "__nv_acos");
        /// The arc tangent, in radians.
        atan = atanf atan ("__nv_atanf" "__nv_atan");
        /// The hyperbolic sine.
        sinh = sinhf sinh ("__nv_sinhf" "__nv_sinh");
        /// The hyperbolic cosine.
        cosh = coshf cosh ("__nv_coshf" "__nv_cosh");
        /// The hyperbolic tangent.
        tanh = tanhf tanh ("__nv_tanhf" "__nv_tanh");
        /// The inverse hyperbolic sine.
        asinh = asinhf asinh ("__nv_asinhf" "__nv_asinh");
        /// The inverse hyperbolic cosine.
        acosh = acoshf acosh ("__nv_acoshf" "__nv_acosh");
        /// The inverse hyperbolic tangent.
        atanh = atanhf atanh ("__nv_atanhf" "__nv_atanh");
        /// The error function.
        erf = erff erf ("__nv_erff" "__nv_erf");
        /// The largest whole number that is not larger.
        floor = floorf floor ("__nv_floorf" "__nv_floor");
        /// The smallest whole number that is not smaller.
        ceil = ceilf ceil ("__nv_ceilf" "__nv_ceil");
        /// The whole number towards 0.
        trunc = truncf trunc ("__nv_truncf" "__nv_trunc");
        /// The nearest whole number, ties away from 0.
        round = roundf round ("__nv_roundf" "__nv_round");
        /// The nearest whole number, ties to even.
        round_ties_even = rintf rint ("__nv_rintf" "__nv_rint");
    }
    binary {
        /// This to a power.
        powf = powf pow ("__nv_powf" "__nv_pow");
        /// The angle of the point (`other`, `self`), in radians.
        atan2 = atan2f atan2 ("__nv_atan2f" "__nv_atan2");
        /// The length of the vector (`self`, `other`).
        hypot = hypotf hypot ("__nv_hypotf" "__nv_hypot");
    }
}
