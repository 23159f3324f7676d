//! What the methods call: libdevice and, with results in place of pointers, what it writes through them.

pub(super) use super::libdevice::*;
pub(super) use crate::intrinsics::{sqrt_f32, sqrt_f64};

/// Functions that give what a function of libdevice returns or writes to the addresses it is given.
macro_rules! with_results {
    (
        two { $($two:ident($two_float:ty) = $two_function:ident;)* }
        value_and { $($one:ident($($argument:ident: $type:ty),*) -> ($value:ty, $other:ty) = $function:ident;)* }
        order_first { $($bessel:ident($bessel_float:ty) = $bessel_function:ident;)* }
    ) => {
        // SAFETY of all: the addresses are those of variables here.
        $(
            #[inline(always)]
            pub unsafe fn $two(x: $two_float) -> ($two_float, $two_float) {
                let (mut first, mut second) = Default::default();
                unsafe { $two_function(x, &raw mut first, &raw mut second) };
                (first, second)
            }
        )*
        $(
            #[inline(always)]
            pub unsafe fn $one($($argument: $type),*) -> ($value, $other) {
                let mut other = Default::default();
                let value = unsafe { $function($($argument,)* &raw mut other) };
                (value, other)
            }
        )*
        $(
            #[inline(always)]
            pub unsafe fn $bessel(x: $bessel_float, n: i32) -> $bessel_float {
                unsafe { $bessel_function(n, x) }
            }
        )*
    };
}

with_results! {
    two {
        sin_cos_f32(f32) = __nv_sincosf;
        sin_cos_f64(f64) = __nv_sincos;
        sincospi_f32(f32) = __nv_sincospif;
        sincospi_f64(f64) = __nv_sincospi;
        fast_sin_cos(f32) = __nv_fast_sincosf;
    }
    value_and {
        frexp_f32(x: f32) -> (f32, i32) = __nv_frexpf;
        frexp_f64(x: f64) -> (f64, i32) = __nv_frexp;
        modf_f32(x: f32) -> (f32, f32) = __nv_modff;
        modf_f64(x: f64) -> (f64, f64) = __nv_modf;
        remquo_f32(x: f32, y: f32) -> (f32, i32) = __nv_remquof;
        remquo_f64(x: f64, y: f64) -> (f64, i32) = __nv_remquo;
    }
    order_first {
        jn_f32(f32) = __nv_jnf;
        jn_f64(f64) = __nv_jn;
        yn_f32(f32) = __nv_ynf;
        yn_f64(f64) = __nv_yn;
    }
}
