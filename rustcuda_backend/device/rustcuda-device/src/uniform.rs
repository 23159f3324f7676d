//! Numbers that are the same in all threads of a launch.

use crate::record::{KernelParam, Scalar};
use crate::thread;

/// A number that all threads of a launch have in common, such as a parameter of the kernel.
///
/// A kernel takes one as `n: Uniform<u32>`; Python passes the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Uniform<T>(T);

impl<T> Uniform<T> {
    /// Takes the caller's word for it.
    ///
    /// # Safety
    ///
    /// `value` must be the same in all threads of the launch.
    #[inline(always)]
    pub const unsafe fn new_unchecked(value: T) -> Self {
        Self(value)
    }
}

impl<T: Copy> Uniform<T> {
    /// The number.
    #[inline(always)]
    pub const fn get(&self) -> T {
        self.0
    }
}

// SAFETY: it is the number and nothing else.
unsafe impl<T: Scalar> KernelParam for Uniform<T> {
    const SPELLING: [&'static str; 3] = ["", T::NAME, ""];
}

macro_rules! dimensions {
    ($($(#[doc = $doc:literal])* $name:ident = $register:ident;)*) => {
        $(
            $(#[doc = $doc])*
            #[inline(always)]
            pub fn $name() -> Uniform<u32> {
                Uniform(thread::$register())
            }
        )*
    };
}

dimensions! {
    /// Threads of a block along x.
    block_dim_x = blockDim_x;
    /// Threads of a block along y.
    block_dim_y = blockDim_y;
    /// Threads of a block along z.
    block_dim_z = blockDim_z;
    /// Blocks of the grid along x.
    grid_dim_x = gridDim_x;
    /// Blocks of the grid along y.
    grid_dim_y = gridDim_y;
    /// Blocks of the grid along z.
    grid_dim_z = gridDim_z;
}
