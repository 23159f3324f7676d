//! `rustcuda-device` under the name that crates written for cuda-oxide depend on.
//!
//! What such a crate finds here, and what not, is in the page `docs/cuda-device.md` of
//! rustcuda-backend.

#![no_std]
#![feature(specialization)]
#![allow(incomplete_features)]
#![warn(missing_docs)]

pub mod record;

pub use cuda_macros::{
    cluster_launch, constant, cooperative_launch, cuda_module, device, device_only, kernel,
    launch_bounds, launch_contract, ptx_asm,
};
pub use rustcuda_device::barrier::*;
pub use rustcuda_device::cusimd::*;
pub use rustcuda_device::fence::*;
pub use rustcuda_device::matrix::*;
pub use rustcuda_device::uniform::Uniform;
pub use rustcuda_device::view::*;
pub use rustcuda_device::*;

/// Conversions that cuda-oxide has beside its tensor cores' instructions.
pub mod tcgen05 {
    /// Both numbers as halves of the brain format, `low` in the lower half.
    #[inline(always)]
    pub fn cvt_f32x2_bf16x2(low: f32, high: f32) -> u32 {
        rustcuda_device::convert::cvt_bf16x2_f32(low, high)
    }
}

/// Row widths and bounds of views, which cuda-oxide has in one module.
pub mod view {
    pub use rustcuda_device::matrix::*;
    pub use rustcuda_device::thread::{LinearTiles, RowMajorTiles, RuntimeRowMajorTiles};
    pub use rustcuda_device::view::*;
}

/// What every module of a crate can use without asking, once its host part is cut away.
#[doc(hidden)]
pub mod std_prelude {
    pub use core::prelude::rust_2024::*;
    pub use rustcuda_device::FloatExt;
}
