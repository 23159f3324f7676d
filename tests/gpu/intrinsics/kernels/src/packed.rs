//! rustcuda_device::f16x2, bf16x2 and convert.

use rustcuda_device::bf16x2::*;
use rustcuda_device::convert::*;
use rustcuda_device::f16x2::*;
use rustcuda_device::prelude::*;

use crate::rows::kernels;

kernels! {
    packed_f16x2(x, y, z): u32 => u32 = [
        add_f16x2(x, y), sub_f16x2(x, y), mul_f16x2(x, y), fma_f16x2(x, y, z), fma_ftz_f16x2(x, y, z),
        fma_sat_f16x2(x, y, z), fma_ftz_sat_f16x2(x, y, z), neg_f16x2(x), abs_f16x2(x)
    ];
    #[cfg(cuda_arch = "80")]
    packed_f16x2_80(x, y, z): u32 => u32 = [
        fma_relu_f16x2(x, y, z), fma_ftz_relu_f16x2(x, y, z), max_f16x2(x, y), min_f16x2(x, y),
        max_ftz_f16x2(x, y), min_ftz_f16x2(x, y), max_nan_f16x2(x, y), min_nan_f16x2(x, y),
        max_ftz_nan_f16x2(x, y), min_ftz_nan_f16x2(x, y)
    ];
    #[cfg(cuda_arch = "80")]
    packed_bf16x2(x, y, z): u32 => u32 = [
        add_bf16x2(x, y), sub_bf16x2(x, y), mul_bf16x2(x, y), fma_bf16x2(x, y, z), fma_relu_bf16x2(x, y, z),
        max_bf16x2(x, y), min_bf16x2(x, y), max_nan_bf16x2(x, y), min_nan_bf16x2(x, y),
        neg_bf16x2(x), abs_bf16x2(x)
    ];

    convert_to_halves(lo, hi): f32 => u32 = [cvt_f16x2_f32(lo, hi), cvt_bf16x2_f32(lo, hi)];
    #[cfg(cuda_arch = "80")]
    convert_to_halves_80(lo, hi): f32 => u32 = [
        cvt_rz_f16x2_f32(lo, hi), cvt_rn_relu_f16x2_f32(lo, hi),
        cvt_rz_bf16x2_f32(lo, hi), cvt_rn_relu_bf16x2_f32(lo, hi)
    ];
    convert_from_halves(x): u32 => f32 = [
        cvt_f32x2_f16x2(x).0, cvt_f32x2_f16x2(x).1, cvt_f32_f16x2_lo(x), cvt_f32_f16x2_hi(x),
        cvt_f32x2_bf16x2(x).0, cvt_f32x2_bf16x2(x).1, cvt_f32_bf16x2_lo(x), cvt_f32_bf16x2_hi(x)
    ];
    #[cfg(cuda_arch = "89")]
    convert_to_bytes(lo, hi): f32 => u16 = [
        cvt_rn_satfinite_e4m3x2_f32(lo, hi), cvt_rn_satfinite_e5m2x2_f32(lo, hi),
        cvt_rn_satfinite_relu_e4m3x2_f32(lo, hi), cvt_rn_satfinite_relu_e5m2x2_f32(lo, hi)
    ];
    #[cfg(cuda_arch = "89")]
    convert_halves_to_bytes(x): u32 => u16 = [
        cvt_rn_satfinite_e4m3x2_f16x2(x), cvt_rn_satfinite_e5m2x2_f16x2(x),
        cvt_rn_satfinite_relu_e4m3x2_f16x2(x), cvt_rn_satfinite_relu_e5m2x2_f16x2(x)
    ];
    #[cfg(cuda_arch = "89")]
    convert_bytes_to_halves(x): u16 => u32 = [
        cvt_rn_f16x2_e4m3x2(x), cvt_rn_f16x2_e5m2x2(x), cvt_rn_relu_f16x2_e4m3x2(x), cvt_rn_relu_f16x2_e5m2x2(x)
    ];
    #[cfg(cuda_arch = "80")]
    convert_rna_tf32(x): f32 => u32 = [cvt_rna_tf32_f32(x)];
    #[cfg(cuda_arch = "90")]
    convert_tf32(x): f32 => u32 = [
        cvt_rn_tf32_f32(x), cvt_rz_tf32_f32(x), cvt_rn_relu_tf32_f32(x), cvt_rz_relu_tf32_f32(x)
    ];
    #[cfg(cuda_arch = "100")]
    convert_tf32_satfinite(x): f32 => u32 = [
        cvt_rna_satfinite_tf32_f32(x), cvt_rn_satfinite_tf32_f32(x), cvt_rz_satfinite_tf32_f32(x),
        cvt_rn_relu_satfinite_tf32_f32(x), cvt_rz_relu_satfinite_tf32_f32(x)
    ];
}
