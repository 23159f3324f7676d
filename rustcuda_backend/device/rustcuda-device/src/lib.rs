//! What GPU kernels written in Rust need, on the stock compiler.
//!
//! ```ignore
//! use rustcuda_device::prelude::*;
//!
//! /// y = a * x + y
//! #[kernel]
//! pub fn saxpy(a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
//!     let i = thread::index_1d();
//!     let at = i.get();
//!     if let Some(y) = y.get_mut(i) {
//!         *y += a * x[at];
//!     }
//! }
//! ```
//!
//! Names follow the crate `cuda-device` of cuda-oxide where it has them.
//! On a target that is no GPU everything type-checks, for editors and `cargo check`, but device
//! functions panic when called.

#![no_std]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(
        asm_experimental_arch,
        f16,
        link_llvm_intrinsics,
        repr_simd,
        stdarch_nvptx
    )
)]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]
// Where there is no PTX, nothing uses what the functions are given.
#![cfg_attr(not(target_arch = "nvptx64"), allow(unused))]
#![warn(missing_docs)]

pub mod async_copy;
pub mod bf16x2;
#[cfg(cuda_arch = "90")]
pub mod bulk;
pub mod convert;
pub mod cusimd;
pub mod disjoint;
pub mod dotprod;
pub mod f16x2;
pub mod half;
pub mod integer;
mod intrinsics;
pub mod math;
pub mod memory;
pub mod pack;
mod panic;
pub mod record;
pub mod requires;
pub mod shared;
pub mod swizzle;
pub mod thread;
pub mod warp;

pub use cusimd::{CuSimd, Float2, Float4, TmemRegs4, TmemRegs32};
pub use disjoint::DisjointSlice;
pub use half::{Bf16x2, F16x2, bf16};
pub use math::{CudaFloatExt, Float, FloatExt};
pub use pack::Pack;
pub use rustcuda_macros::{kernel, launch_bounds};
pub use shared::{DynamicSharedArray, SharedArray};
pub use thread::*;

/// Everything that most kernels use: `use rustcuda_device::prelude::*;`.
pub mod prelude {
    pub use crate::disjoint::DisjointSlice;
    pub use crate::half::{Bf16x2, F16x2, bf16};
    pub use crate::math::{CudaFloatExt, Float, FloatExt};
    #[cfg(target_arch = "nvptx64")]
    pub use crate::pack::F16x8;
    pub use crate::pack::{Bf16x8, F32x4, Pack};
    pub use crate::shared::{DynamicSharedArray, SharedArray};
    pub use crate::{kernel, launch_bounds, thread, warp};
}
