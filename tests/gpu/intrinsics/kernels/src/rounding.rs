//! rustcuda_device::math: functions that name their rounding, and conversions.

use rustcuda_device::math::{RoundingExt, ToF32Ext, ToF64Ext, ToIntegerExt, rsqrt_rn};
use rustcuda_device::prelude::*;

use crate::rows::{float_kernels, kernels};

// To nearest, towards 0, up, down.
float_kernels! {
    rounding_add(x, y) = [x.add_rn(y), x.add_rz(y), x.add_ru(y), x.add_rd(y)];
    rounding_sub(x, y) = [x.sub_rn(y), x.sub_rz(y), x.sub_ru(y), x.sub_rd(y)];
    rounding_mul(x, y) = [x.mul_rn(y), x.mul_rz(y), x.mul_ru(y), x.mul_rd(y)];
    rounding_div(x, y) = [x.div_rn(y), x.div_rz(y), x.div_ru(y), x.div_rd(y)];
    rounding_fma(x, y, z) = [x.fma_rn(y, z), x.fma_rz(y, z), x.fma_ru(y, z), x.fma_rd(y, z)];
    rounding_sqrt(x) = [x.sqrt_rn(), x.sqrt_rz(), x.sqrt_ru(), x.sqrt_rd()];
    rounding_rcp(x) = [x.rcp_rn(), x.rcp_rz(), x.rcp_ru(), x.rcp_rd()];
    rounding_nextafter(x, y) = [x.nextafter(y)];
}

kernels! {
    rounding_rsqrt(x): f32 => f32 = [rsqrt_rn(x)];
    rounding_f32_to_i32(x): f32 => i32 = [x.to_i32_rn(), x.to_i32_rz(), x.to_i32_ru(), x.to_i32_rd()];
    rounding_f32_to_u32(x): f32 => u32 = [x.to_u32_rn(), x.to_u32_rz(), x.to_u32_ru(), x.to_u32_rd()];
    rounding_f32_to_i64(x): f32 => i64 = [x.to_i64_rn(), x.to_i64_rz(), x.to_i64_ru(), x.to_i64_rd()];
    rounding_f32_to_u64(x): f32 => u64 = [x.to_u64_rn(), x.to_u64_rz(), x.to_u64_ru(), x.to_u64_rd()];
    rounding_f64_to_i32(x): f64 => i32 = [x.to_i32_rn(), x.to_i32_rz(), x.to_i32_ru(), x.to_i32_rd()];
    rounding_f64_to_u32(x): f64 => u32 = [x.to_u32_rn(), x.to_u32_rz(), x.to_u32_ru(), x.to_u32_rd()];
    rounding_f64_to_i64(x): f64 => i64 = [x.to_i64_rn(), x.to_i64_rz(), x.to_i64_ru(), x.to_i64_rd()];
    rounding_f64_to_u64(x): f64 => u64 = [x.to_u64_rn(), x.to_u64_rz(), x.to_u64_ru(), x.to_u64_rd()];
    rounding_i32_to_f32(x): i32 => f32 = [x.to_f32_rn(), x.to_f32_rz(), x.to_f32_ru(), x.to_f32_rd()];
    rounding_u32_to_f32(x): u32 => f32 = [x.to_f32_rn(), x.to_f32_rz(), x.to_f32_ru(), x.to_f32_rd()];
    rounding_i64_to_f32(x): i64 => f32 = [x.to_f32_rn(), x.to_f32_rz(), x.to_f32_ru(), x.to_f32_rd()];
    rounding_u64_to_f32(x): u64 => f32 = [x.to_f32_rn(), x.to_f32_rz(), x.to_f32_ru(), x.to_f32_rd()];
    rounding_f64_to_f32(x): f64 => f32 = [x.to_f32_rn(), x.to_f32_rz(), x.to_f32_ru(), x.to_f32_rd()];
    rounding_i64_to_f64(x): i64 => f64 = [x.to_f64_rn(), x.to_f64_rz(), x.to_f64_ru(), x.to_f64_rd()];
    rounding_u64_to_f64(x): u64 => f64 = [x.to_f64_rn(), x.to_f64_rz(), x.to_f64_ru(), x.to_f64_rd()];
}
