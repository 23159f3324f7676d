//! What device code names of cuda-oxide's host crate `cuda-core`: a marker on the types that both
//! sides share. The rest of it is host code, which the build cuts away.

#![no_std]
#![warn(missing_docs)]

pub use cuda_macros::DeviceCopy;

/// Types that the host may copy to the GPU byte by byte.
///
/// # Safety
///
/// Any copy of such a value's bytes must be a valid value on the GPU.
pub unsafe trait DeviceCopy: Copy {}
