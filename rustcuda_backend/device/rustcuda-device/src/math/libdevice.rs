//! NVIDIA's libdevice: its functions on floats under its own names, by shape.
//!
//! LLVM bitcode of it is in the sysroot, from where the compiler inlines what a kernel calls. Not here
//! is what `core` or one instruction does as well: absolute values, minima and maxima, bit casts,
//! classification, square roots, fused multiply-adds, and all functions on integers.

/// Declares functions that share a shape; on a target that is no GPU, functions that panic.
macro_rules! libdevice {
    ($($parameters:tt -> $result:ty { $($name:ident)* })*) => {
        $($(libdevice!(@one $name $parameters $result);)*)*
    };
    (@one $name:ident ($($parameter:ident: $type:ty),*) $result:ty) => {
        #[cfg(target_arch = "nvptx64")]
        unsafe extern "C" {
            pub fn $name($($parameter: $type),*) -> $result;
        }
        #[cfg(not(target_arch = "nvptx64"))]
        pub unsafe fn $name($(_: $type),*) -> $result {
            unreachable!("this function runs on a GPU only")
        }
    };
}

libdevice! {
    (x: f32) -> f32 {
        __nv_acosf __nv_acoshf __nv_asinf __nv_asinhf __nv_atanf __nv_atanhf __nv_cbrtf __nv_ceilf __nv_cosf
        __nv_coshf __nv_cospif __nv_cyl_bessel_i0f __nv_cyl_bessel_i1f __nv_erfcf __nv_erfcinvf __nv_erfcxf
        __nv_erff __nv_erfinvf __nv_exp10f __nv_exp2f __nv_expf __nv_expm1f __nv_floorf __nv_j0f __nv_j1f
        __nv_lgammaf __nv_log10f __nv_log1pf __nv_log2f __nv_logbf __nv_logf __nv_normcdff __nv_normcdfinvf
        __nv_rcbrtf __nv_rintf __nv_roundf __nv_rsqrtf __nv_sinf __nv_sinhf __nv_sinpif __nv_tanf __nv_tanhf
        __nv_tgammaf __nv_truncf __nv_y0f __nv_y1f
        __nv_fast_cosf __nv_fast_exp10f __nv_fast_expf __nv_fast_log10f __nv_fast_log2f __nv_fast_logf
        __nv_fast_sinf __nv_fast_tanf __nv_saturatef
        __nv_frcp_rd __nv_frcp_rn __nv_frcp_ru __nv_frcp_rz __nv_frsqrt_rn
        __nv_fsqrt_rd __nv_fsqrt_rn __nv_fsqrt_ru __nv_fsqrt_rz
    }
    (x: f64) -> f64 {
        __nv_acos __nv_acosh __nv_asin __nv_asinh __nv_atan __nv_atanh __nv_cbrt __nv_ceil __nv_cos
        __nv_cosh __nv_cospi __nv_cyl_bessel_i0 __nv_cyl_bessel_i1 __nv_erf __nv_erfc __nv_erfcinv __nv_erfcx
        __nv_erfinv __nv_exp __nv_exp10 __nv_exp2 __nv_expm1 __nv_floor __nv_j0 __nv_j1
        __nv_lgamma __nv_log __nv_log10 __nv_log1p __nv_log2 __nv_logb __nv_normcdf __nv_normcdfinv
        __nv_rcbrt __nv_rint __nv_round __nv_rsqrt __nv_sin __nv_sinh __nv_sinpi __nv_tan __nv_tanh
        __nv_tgamma __nv_trunc __nv_y0 __nv_y1
        __nv_drcp_rd __nv_drcp_rn __nv_drcp_ru __nv_drcp_rz
        __nv_dsqrt_rd __nv_dsqrt_rn __nv_dsqrt_ru __nv_dsqrt_rz
    }
    (x: f32, y: f32) -> f32 {
        __nv_atan2f __nv_fast_fdividef __nv_fast_powf __nv_fdimf __nv_fmodf __nv_hypotf __nv_nextafterf
        __nv_powf __nv_remainderf __nv_rhypotf
        __nv_fadd_rd __nv_fadd_rn __nv_fadd_ru __nv_fadd_rz __nv_fdiv_rd __nv_fdiv_rn __nv_fdiv_ru
        __nv_fdiv_rz __nv_fmul_rd __nv_fmul_rn __nv_fmul_ru __nv_fmul_rz __nv_fsub_rd __nv_fsub_rn
        __nv_fsub_ru __nv_fsub_rz
    }
    (x: f64, y: f64) -> f64 {
        __nv_atan2 __nv_fdim __nv_fmod __nv_hypot __nv_nextafter __nv_pow __nv_remainder __nv_rhypot
        __nv_dadd_rd __nv_dadd_rn __nv_dadd_ru __nv_dadd_rz __nv_ddiv_rd __nv_ddiv_rn __nv_ddiv_ru
        __nv_ddiv_rz __nv_dmul_rd __nv_dmul_rn __nv_dmul_ru __nv_dmul_rz __nv_dsub_rd __nv_dsub_rn
        __nv_dsub_ru __nv_dsub_rz
    }
    (x: f32, y: f32, z: f32) -> f32 {
        __nv_fmaf_rd __nv_fmaf_rn __nv_fmaf_ru __nv_fmaf_rz __nv_norm3df __nv_rnorm3df
    }
    (x: f64, y: f64, z: f64) -> f64 {
        __nv_fma_rd __nv_fma_rn __nv_fma_ru __nv_fma_rz __nv_norm3d __nv_rnorm3d
    }
    (x: f32, y: f32, z: f32, w: f32) -> f32 { __nv_norm4df __nv_rnorm4df }
    (x: f64, y: f64, z: f64, w: f64) -> f64 { __nv_norm4d __nv_rnorm4d }
    (x: f32, n: i32) -> f32 { __nv_ldexpf __nv_powif }
    (x: f64, n: i32) -> f64 { __nv_ldexp __nv_powi }
    (n: i32, x: f32) -> f32 { __nv_jnf __nv_ynf }
    (n: i32, x: f64) -> f64 { __nv_jn __nv_yn }
    (n: i32, vector: *const f32) -> f32 { __nv_normf __nv_rnormf }
    (n: i32, vector: *const f64) -> f64 { __nv_norm __nv_rnorm }
    (x: f32, sine: *mut f32, cosine: *mut f32) -> () { __nv_fast_sincosf __nv_sincosf __nv_sincospif }
    (x: f64, sine: *mut f64, cosine: *mut f64) -> () { __nv_sincos __nv_sincospi }
    (x: f32, exponent: *mut i32) -> f32 { __nv_frexpf }
    (x: f64, exponent: *mut i32) -> f64 { __nv_frexp }
    (x: f32, whole: *mut f32) -> f32 { __nv_modff }
    (x: f64, whole: *mut f64) -> f64 { __nv_modf }
    (x: f32, y: f32, quotient: *mut i32) -> f32 { __nv_remquof }
    (x: f64, y: f64, quotient: *mut i32) -> f64 { __nv_remquo }
    (x: f32) -> i32 {
        __nv_float2int_rd __nv_float2int_rn __nv_float2int_ru __nv_float2int_rz __nv_ilogbf
    }
    (x: f64) -> i32 {
        __nv_double2int_rd __nv_double2int_rn __nv_double2int_ru __nv_double2int_rz __nv_ilogb
    }
    (x: f32) -> u32 { __nv_float2uint_rd __nv_float2uint_rn __nv_float2uint_ru __nv_float2uint_rz }
    (x: f64) -> u32 { __nv_double2uint_rd __nv_double2uint_rn __nv_double2uint_ru __nv_double2uint_rz }
    (x: f32) -> i64 {
        __nv_float2ll_rd __nv_float2ll_rn __nv_float2ll_ru __nv_float2ll_rz __nv_llrintf __nv_llroundf
    }
    (x: f64) -> i64 {
        __nv_double2ll_rd __nv_double2ll_rn __nv_double2ll_ru __nv_double2ll_rz __nv_llrint __nv_llround
    }
    (x: f32) -> u64 { __nv_float2ull_rd __nv_float2ull_rn __nv_float2ull_ru __nv_float2ull_rz }
    (x: f64) -> u64 { __nv_double2ull_rd __nv_double2ull_rn __nv_double2ull_ru __nv_double2ull_rz }
    (x: i32) -> f32 { __nv_int2float_rd __nv_int2float_rn __nv_int2float_ru __nv_int2float_rz }
    (x: u32) -> f32 { __nv_uint2float_rd __nv_uint2float_rn __nv_uint2float_ru __nv_uint2float_rz }
    (x: i64) -> f32 { __nv_ll2float_rd __nv_ll2float_rn __nv_ll2float_ru __nv_ll2float_rz }
    (x: u64) -> f32 { __nv_ull2float_rd __nv_ull2float_rn __nv_ull2float_ru __nv_ull2float_rz }
    (x: f64) -> f32 { __nv_double2float_rd __nv_double2float_rn __nv_double2float_ru __nv_double2float_rz }
    (x: i64) -> f64 { __nv_ll2double_rd __nv_ll2double_rn __nv_ll2double_ru __nv_ll2double_rz }
    (x: u64) -> f64 { __nv_ull2double_rd __nv_ull2double_rn __nv_ull2double_ru __nv_ull2double_rz }
}
