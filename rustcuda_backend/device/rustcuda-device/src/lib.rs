//! What GPU kernels written in Rust need, on the stock compiler.
//!
//! ```
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
//! A panic ends the launch in an error: an index out of bounds, `assert!`, `unwrap`. With the feature
//! `panic-message` it first prints what happened, where, and in which thread; that makes kernels larger,
//! so it is for looking for mistakes. [`debug`] has more for that.
//!
//! Names follow the crate `cuda-device` of cuda-oxide where it has them.
//! On a target that is no GPU everything type-checks, for editors and `cargo check`, but device
//! functions panic when called.

#![no_std]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(
        asm_experimental_arch,
        const_type_name,
        f16,
        link_llvm_intrinsics,
        repr_simd
    )
)]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]
// Where there is no PTX, nothing uses what the functions are given.
#![cfg_attr(not(target_arch = "nvptx64"), allow(unused))]
#![warn(missing_docs)]

#[cfg(cuda_arch = "90")]
pub mod bulk;
pub mod constant;
pub mod debug;
pub mod disjoint;
mod index;
mod intrinsics;
pub mod math;
pub mod pack;
mod panic;
pub mod record;
pub mod shared;
pub mod thread;
pub mod warp;

pub use constant::ConstantMemory;
pub use disjoint::DisjointSlice;
pub use math::FloatExt;
pub use pack::Pack;
pub use rustcuda_macros::{cluster_launch, constant, device, kernel, launch_bounds};
pub use shared::{DynamicShared, DynamicSharedArray, SharedArray};
pub use thread::*;

/// Everything that most kernels use: `use rustcuda_device::prelude::*;`.
pub mod prelude {
    pub use crate::constant::ConstantMemory;
    pub use crate::disjoint::DisjointSlice;
    pub use crate::math::FloatExt;
    #[cfg(target_arch = "nvptx64")]
    pub use crate::pack::F16x8;
    pub use crate::pack::{F32x4, Pack};
    pub use crate::shared::{DynamicShared, DynamicSharedArray, SharedArray};
    pub use crate::{
        cluster_launch, constant, debug, device, gpu_assert, gpu_printf, kernel, launch_bounds,
        thread, warp,
    };
}
