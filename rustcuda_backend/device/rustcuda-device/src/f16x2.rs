//! Two `f16` in the halves of a `u32`, one instruction for both; [`F16x2`](crate::half::F16x2) is the
//! type for them.
//!
//! ```
//! #![cfg(cuda_arch = "80")]
//!
//! use rustcuda_device::f16x2::fma_relu_f16x2;
//! use rustcuda_device::prelude::*;
//!
//! /// y = max(a * x + y, 0) on pairs.
//! #[kernel]
//! fn axpy_relu(a: u32, x: &[u32], mut y: DisjointSlice<u32>) {
//!     let index = thread::index_1d();
//!     let at = index.get();
//!     if let Some(y) = y.get_mut(index) {
//!         *y = fma_relu_f16x2(a, x[at], *y);
//!     }
//! }
//! ```

use crate::half::packed;

packed! {
    /// x + y.
    add_f16x2(x: u32, y: u32) -> u32 = "add.f16x2";
    /// x - y.
    sub_f16x2(x: u32, y: u32) -> u32 = "sub.f16x2";
    /// x · y.
    mul_f16x2(x: u32, y: u32) -> u32 = "mul.f16x2";
    /// x · y + z, rounded once.
    fma_f16x2(x: u32, y: u32, z: u32) -> u32 = "fma.rn.f16x2";
    /// [`fma_f16x2`] with subnormal numbers taken and given as 0.
    fma_ftz_f16x2(x: u32, y: u32, z: u32) -> u32 = "fma.rn.ftz.f16x2";
    /// [`fma_f16x2`] brought into the range from 0 to 1, NaN to 0.
    fma_sat_f16x2(x: u32, y: u32, z: u32) -> u32 = "fma.rn.sat.f16x2";
    /// [`fma_sat_f16x2`] with subnormal numbers taken and given as 0.
    fma_ftz_sat_f16x2(x: u32, y: u32, z: u32) -> u32 = "fma.rn.ftz.sat.f16x2";
    /// [`fma_f16x2`] with 0 in the place of what is negative. From capability 8.0.
    fma_relu_f16x2(x: u32, y: u32, z: u32) -> u32 = "fma.rn.relu.f16x2" needs Has80;
    /// [`fma_relu_f16x2`] with subnormal numbers taken and given as 0. From capability 8.0.
    fma_ftz_relu_f16x2(x: u32, y: u32, z: u32) -> u32 = "fma.rn.ftz.relu.f16x2" needs Has80;
    /// The larger; a number before NaN, 0 before -0. From capability 8.0.
    max_f16x2(x: u32, y: u32) -> u32 = "max.f16x2" needs Has80;
    /// The smaller; a number before NaN, -0 before 0. From capability 8.0.
    min_f16x2(x: u32, y: u32) -> u32 = "min.f16x2" needs Has80;
    /// [`max_f16x2`] with subnormal numbers taken and given as 0. From capability 8.0.
    max_ftz_f16x2(x: u32, y: u32) -> u32 = "max.ftz.f16x2" needs Has80;
    /// [`min_f16x2`] with subnormal numbers taken and given as 0. From capability 8.0.
    min_ftz_f16x2(x: u32, y: u32) -> u32 = "min.ftz.f16x2" needs Has80;
    /// The larger; NaN before a number. From capability 8.0.
    max_nan_f16x2(x: u32, y: u32) -> u32 = "max.NaN.f16x2" needs Has80;
    /// The smaller; NaN before a number. From capability 8.0.
    min_nan_f16x2(x: u32, y: u32) -> u32 = "min.NaN.f16x2" needs Has80;
    /// [`max_nan_f16x2`] with subnormal numbers taken and given as 0. From capability 8.0.
    max_ftz_nan_f16x2(x: u32, y: u32) -> u32 = "max.ftz.NaN.f16x2" needs Has80;
    /// [`min_nan_f16x2`] with subnormal numbers taken and given as 0. From capability 8.0.
    min_ftz_nan_f16x2(x: u32, y: u32) -> u32 = "min.ftz.NaN.f16x2" needs Has80;
}

/// -x.
#[inline(always)]
pub const fn neg_f16x2(x: u32) -> u32 {
    x ^ 0x8000_8000
}

/// |x|.
#[inline(always)]
pub const fn abs_f16x2(x: u32) -> u32 {
    x & 0x7fff_7fff
}
