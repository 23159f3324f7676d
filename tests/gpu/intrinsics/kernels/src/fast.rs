//! rustcuda_device::math: fast functions and those of one instruction.

use rustcuda_device::math;
use rustcuda_device::prelude::*;

use crate::rows::kernels;

kernels! {
    fast_exp(x): f32 => f32 = [math::fast_exp(x)];
    fast_exp10(x): f32 => f32 = [math::fast_exp10(x)];
    fast_ln(x): f32 => f32 = [math::fast_ln(x)];
    fast_log2(x): f32 => f32 = [math::fast_log2(x)];
    fast_log10(x): f32 => f32 = [math::fast_log10(x)];
    fast_sin(x): f32 => f32 = [math::fast_sin(x)];
    fast_cos(x): f32 => f32 = [math::fast_cos(x)];
    fast_tan(x): f32 => f32 = [math::fast_tan(x)];
    fast_saturate(x): f32 => f32 = [math::saturate(x)];
    fast_rcp_approx(x): f32 => f32 = [math::rcp_approx(x)];
    fast_sqrt_approx(x): f32 => f32 = [math::sqrt_approx(x)];
    fast_rsqrt_approx(x): f32 => f32 = [math::rsqrt_approx(x)];
    fast_ex2_approx(x): f32 => f32 = [math::ex2_approx(x)];
    fast_lg2_approx(x): f32 => f32 = [math::lg2_approx(x)];
    fast_sin_approx(x): f32 => f32 = [math::sin_approx(x)];
    fast_cos_approx(x): f32 => f32 = [math::cos_approx(x)];
    fast_sin_cos(x): f32 => f32 = [math::fast_sin_cos(x).0, math::fast_sin_cos(x).1];
    fast_powf(x, y): f32 => f32 = [math::fast_powf(x, y)];
    fast_divide(x, y): f32 => f32 = [math::fast_divide(x, y)];
    #[cfg(cuda_arch = "75")]
    fast_tanh_approx(x): f32 => f32 = [math::tanh_approx(x)];
}
