//! Functions on `f32` that are fast and less exact, and those of a single instruction.
//!
//! `fast_` are what CUDA C++ calls `__expf`, `__sinf` and so on; its programming guide, "Intrinsic
//! Functions", says how exact they are. `_approx` are the PTX instructions of that name.

use super::functions;
use crate::intrinsics::ptx;
use crate::requires::{Gpu, Has75};

/// Functions that are libdevice's.
macro_rules! fast {
    ($($(#[$doc:meta])* $name:ident($($argument:ident),*) $(-> $result:ty)? = $function:ident;)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name($($argument: f32),*) -> fast!(@or_f32 $($result)?) {
                // SAFETY: arithmetic only.
                unsafe { functions::$function($($argument),*) }
            }
        )*
    };
    (@or_f32) => { f32 };
    (@or_f32 $result:ty) => { $result };
}

fast! {
    /// `x / y` to within 2 units in the last place, in a fraction of the time that `/` takes; 0 where `y`
    /// is larger than 2^126.
    fast_divide(x, y) = __nv_fast_fdividef;
    /// e to this power, to within 2 + |1.173 x| units in the last place.
    fast_exp(x) = __nv_fast_expf;
    /// 10 to this power, to within 2 + |2.97 x| units in the last place.
    fast_exp10(x) = __nv_fast_exp10f;
    /// The natural logarithm: to within 2^-21.41 from 0.5 to 2, else 3 units in the last place.
    fast_ln(x) = __nv_fast_logf;
    /// The logarithm to base 2: to within 2^-22 from 0.5 to 2, else 2 units in the last place.
    fast_log2(x) = __nv_fast_log2f;
    /// The logarithm to base 10: to within 2^-24 from 0.5 to 2, else 3 units in the last place.
    fast_log10(x) = __nv_fast_log10f;
    /// `x` to the power `y`, as 2^(y · log2 x) of the fast functions.
    fast_powf(x, y) = __nv_fast_powf;
    /// The sine: to within 2^-21.41 from -π to π, worse beyond.
    fast_sin(x) = __nv_fast_sinf;
    /// The cosine: to within 2^-21.19 from -π to π, worse beyond.
    fast_cos(x) = __nv_fast_cosf;
    /// [`fast_sin`] and [`fast_cos`].
    fast_sin_cos(x) -> (f32, f32) = fast_sin_cos;
    /// [`fast_sin`] through [`fast_cos`].
    fast_tan(x) = __nv_fast_tanf;
    /// This if it is from 0 to 1, else the nearer of the two; 0 for NaN.
    saturate(x) = __nv_saturatef;
}

/// Functions of one instruction.
macro_rules! approximations {
    ($($(#[$doc:meta])* $name:ident = $instruction:literal;)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name(x: f32) -> f32 {
                let result: f32;
                // SAFETY: arithmetic only.
                unsafe {
                    ptx!(
                        concat!($instruction, " {}, {};"), out(reg32) result, in(reg32) x,
                        options(pure, nomem, nostack, preserves_flags)
                    );
                }
                result
            }
        )*
    };
}

approximations! {
    /// 1 / x, to within 1 unit in the last place.
    rcp_approx = "rcp.approx.f32";
    /// The square root, to within a relative error of 2^-23.
    sqrt_approx = "sqrt.approx.f32";
    /// One over the square root, to within a relative error of 2^-22.9.
    rsqrt_approx = "rsqrt.approx.f32";
    /// 2 to this power, to within 2 units in the last place.
    ex2_approx = "ex2.approx.f32";
    /// The logarithm to base 2; [`fast_log2`] in one instruction.
    lg2_approx = "lg2.approx.f32";
    /// The sine; [`fast_sin`] in one instruction.
    sin_approx = "sin.approx.f32";
    /// The cosine; [`fast_cos`] in one instruction.
    cos_approx = "cos.approx.f32";
}

/// The hyperbolic tangent, to within a relative error of 2^-11, in one instruction. From capability 7.5.
#[inline(always)]
pub fn tanh_approx(x: f32) -> f32
where
    for<'pass> Gpu<'pass>: Has75,
{
    let result: f32;
    // SAFETY: arithmetic only.
    unsafe {
        ptx!(
            "tanh.approx.f32 {}, {};", out(reg32) result, in(reg32) x,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    result
}
