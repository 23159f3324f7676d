//! Arithmetic with the rounding named: `_rn` to nearest with ties to even, `_rz` towards 0, `_ru` up,
//! `_rd` down.
//!
//! ```
//! use rustcuda_device::math::RoundingExt;
//! use rustcuda_device::prelude::*;
//!
//! /// Bounds of the true sums.
//! #[kernel]
//! fn interval_add(x: f32, y: f32, mut low: DisjointSlice<f32>, mut high: DisjointSlice<f32>) {
//!     if let Some(low) = low.get_mut(thread::index_1d()) {
//!         *low = x.add_rd(y);
//!     }
//!     if let Some(high) = high.get_mut(thread::index_1d()) {
//!         *high = x.add_ru(y);
//!     }
//! }
//! ```

use super::float::Float;
use super::functions;
use super::methods::float_methods;

float_methods! {
    /// Arithmetic on `f32` and `f64` with the rounding named. None of it is merged with other
    /// arithmetic, as `*` and `+` are into a fused multiply-add, nor changed by `fast-math`.
    trait RoundingExt: Float {
        /// The sum, to nearest.
        fn add_rn(self, other: Self) -> Self = __nv_fadd_rn, __nv_dadd_rn;
        /// The sum, towards 0.
        fn add_rz(self, other: Self) -> Self = __nv_fadd_rz, __nv_dadd_rz;
        /// The sum, up.
        fn add_ru(self, other: Self) -> Self = __nv_fadd_ru, __nv_dadd_ru;
        /// The sum, down.
        fn add_rd(self, other: Self) -> Self = __nv_fadd_rd, __nv_dadd_rd;
        /// The difference, to nearest.
        fn sub_rn(self, other: Self) -> Self = __nv_fsub_rn, __nv_dsub_rn;
        /// The difference, towards 0.
        fn sub_rz(self, other: Self) -> Self = __nv_fsub_rz, __nv_dsub_rz;
        /// The difference, up.
        fn sub_ru(self, other: Self) -> Self = __nv_fsub_ru, __nv_dsub_ru;
        /// The difference, down.
        fn sub_rd(self, other: Self) -> Self = __nv_fsub_rd, __nv_dsub_rd;
        /// The product, to nearest.
        fn mul_rn(self, other: Self) -> Self = __nv_fmul_rn, __nv_dmul_rn;
        /// The product, towards 0.
        fn mul_rz(self, other: Self) -> Self = __nv_fmul_rz, __nv_dmul_rz;
        /// The product, up.
        fn mul_ru(self, other: Self) -> Self = __nv_fmul_ru, __nv_dmul_ru;
        /// The product, down.
        fn mul_rd(self, other: Self) -> Self = __nv_fmul_rd, __nv_dmul_rd;
        /// The quotient, to nearest.
        fn div_rn(self, other: Self) -> Self = __nv_fdiv_rn, __nv_ddiv_rn;
        /// The quotient, towards 0.
        fn div_rz(self, other: Self) -> Self = __nv_fdiv_rz, __nv_ddiv_rz;
        /// The quotient, up.
        fn div_ru(self, other: Self) -> Self = __nv_fdiv_ru, __nv_ddiv_ru;
        /// The quotient, down.
        fn div_rd(self, other: Self) -> Self = __nv_fdiv_rd, __nv_ddiv_rd;
        /// `self * factor + addend`, rounded once, to nearest.
        fn fma_rn(self, factor: Self, addend: Self) -> Self = __nv_fmaf_rn, __nv_fma_rn;
        /// `self * factor + addend`, rounded once, towards 0.
        fn fma_rz(self, factor: Self, addend: Self) -> Self = __nv_fmaf_rz, __nv_fma_rz;
        /// `self * factor + addend`, rounded once, up.
        fn fma_ru(self, factor: Self, addend: Self) -> Self = __nv_fmaf_ru, __nv_fma_ru;
        /// `self * factor + addend`, rounded once, down.
        fn fma_rd(self, factor: Self, addend: Self) -> Self = __nv_fmaf_rd, __nv_fma_rd;
        /// The square root, to nearest.
        fn sqrt_rn(self) -> Self = __nv_fsqrt_rn, __nv_dsqrt_rn;
        /// The square root, towards 0.
        fn sqrt_rz(self) -> Self = __nv_fsqrt_rz, __nv_dsqrt_rz;
        /// The square root, up.
        fn sqrt_ru(self) -> Self = __nv_fsqrt_ru, __nv_dsqrt_ru;
        /// The square root, down.
        fn sqrt_rd(self) -> Self = __nv_fsqrt_rd, __nv_dsqrt_rd;
        /// One over this, to nearest.
        fn rcp_rn(self) -> Self = __nv_frcp_rn, __nv_drcp_rn;
        /// One over this, towards 0.
        fn rcp_rz(self) -> Self = __nv_frcp_rz, __nv_drcp_rz;
        /// One over this, up.
        fn rcp_ru(self) -> Self = __nv_frcp_ru, __nv_drcp_ru;
        /// One over this, down.
        fn rcp_rd(self) -> Self = __nv_frcp_rd, __nv_drcp_rd;
        /// The next float towards `other`; `other` where they are equal.
        fn nextafter(self, other: Self) -> Self = __nv_nextafterf, __nv_nextafter;
    }
    provided {}
}

/// One over the square root, to nearest.
#[inline(always)]
pub fn rsqrt_rn(x: f32) -> f32 {
    // SAFETY: arithmetic only.
    unsafe { functions::__nv_frsqrt_rn(x) }
}
