//! `rustcuda-device` under the name that crates written for cuda-oxide depend on.
//!
//! What such a crate finds here, and what not, is in the page `docs/cuda-device.md` of
//! rustcuda-backend.

#![no_std]
#![warn(missing_docs)]

pub use cuda_macros::{
    cooperative_launch, cuda_module, device, device_only, kernel, launch_bounds, launch_contract,
};
pub use rustcuda_device::*;

/// What every module of a crate can use without asking, once its host part is cut away.
#[doc(hidden)]
pub mod std_prelude {
    pub use core::prelude::rust_2024::*;
    pub use rustcuda_device::FloatExt;
}
