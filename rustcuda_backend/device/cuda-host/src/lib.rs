//! What device code names of cuda-oxide's host crate `cuda-host`: the attribute on modules of kernels.

#![no_std]
#![warn(missing_docs)]

pub use cuda_macros::cuda_module;
