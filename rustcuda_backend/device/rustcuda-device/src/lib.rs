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
        abi_unadjusted,
        link_llvm_intrinsics,
        repr_simd
    )
)]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]
// The library has used them before.
#![cfg_attr(rustcuda_prebuilt, allow(unused_features))]
// Where there is no PTX, nothing uses what the functions are given.
#![cfg_attr(not(target_arch = "nvptx64"), allow(unused))]
#![warn(missing_docs)]

/// Everything but the attributes and the prelude. Builds compile it once for each capability, under
/// `cfg(rustcuda_library)`; this crate then hands it on, under `cfg(rustcuda_prebuilt)`.
macro_rules! library {
    ($($item:item)*) => { $(#[cfg(not(rustcuda_prebuilt))] $item)* };
}

library! {
    pub mod async_copy;
    pub mod atomic;
    pub mod barrier;
    pub mod bf16x2;
    pub mod block;
    pub mod bulk;
    pub mod constant;
    pub mod convert;
    pub mod cooperative_groups;
    pub mod cusimd;
    pub mod debug;
    pub mod disjoint;
    pub mod dotprod;
    pub mod f16x2;
    pub mod fence;
    pub mod half;
    mod index;
    pub mod integer;
    mod intrinsics;
    mod launch;
    pub mod math;
    pub mod matrix;
    pub mod memory;
    pub mod ops;
    pub mod pack;
    mod panic;
    pub mod record;
    pub mod requires;
    pub mod shared;
    pub mod swizzle;
    pub mod thread;
    pub mod uniform;
    pub mod view;
    pub mod warp;

    pub use barrier::{sync_threads_and, sync_threads_count, sync_threads_or};
    pub use constant::ConstantMemory;
    pub use cusimd::{CuSimd, Float2, Float4, TmemRegs4, TmemRegs32};
    pub use disjoint::DisjointSlice;
    pub use fence::{threadfence, threadfence_block, threadfence_system};
    pub use half::{Bf16x2, F16x2, bf16};
    pub use math::{CudaFloatExt, Float, FloatExt};
    pub use pack::Pack;
    pub use shared::{DynamicShared, DynamicSharedArray, SharedArray};
    pub use thread::*;
}

#[cfg(rustcuda_prebuilt)]
extern crate rustcuda_prebuilt;

#[cfg(rustcuda_prebuilt)]
pub use rustcuda_prebuilt::*;

#[cfg(not(rustcuda_library))]
pub use rustcuda_macros::{KernelParam, cluster_launch, constant, device, kernel, launch_bounds};

/// Everything that most kernels use: `use rustcuda_device::prelude::*;`.
#[cfg(not(rustcuda_library))]
pub mod prelude {
    pub use crate::constant::ConstantMemory;
    pub use crate::debug::{gpu_assert, gpu_printf};
    pub use crate::disjoint::DisjointSlice;
    pub use crate::half::{Bf16x2, F16x2, bf16};
    pub use crate::math::{CudaFloatExt, Float, FloatExt};
    #[cfg(target_arch = "nvptx64")]
    pub use crate::pack::F16x8;
    pub use crate::pack::{Bf16x8, F32x4, Pack};
    pub use crate::shared::{DynamicShared, DynamicSharedArray, SharedArray};
    pub use crate::{
        KernelParam, cluster_launch, constant, debug, device, kernel, launch_bounds, thread, warp,
    };
}
