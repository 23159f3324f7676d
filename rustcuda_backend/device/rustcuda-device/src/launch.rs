//! Indices of 32 bits, for kernels whose launches are described by a contract.
//!
//! All of it is in [`thread`](crate::thread) too.

use core::marker::PhantomData;

use crate::thread::{
    blockDim_x, blockDim_y, blockDim_z, blockIdx_x, blockIdx_y, gridDim_y, gridDim_z, threadIdx_x,
    threadIdx_y,
};

/// Launches along x only.
#[derive(Clone, Copy)]
pub enum Domain1 {}
/// Launches along x and y.
#[derive(Clone, Copy)]
pub enum Domain2 {}
/// Launches along x, y and z.
#[derive(Clone, Copy)]
pub enum Domain3 {}
/// Indices are `u32`.
#[derive(Clone, Copy)]
pub enum U32Coordinates {}

/// The right to ask for indices of one kind; `#[kernel(launch_context = NAME)]` gives it its name.
#[derive(Clone, Copy)]
pub struct LaunchContextRef<'kernel, Domain, Coordinates> {
    kernel: PhantomData<(*mut &'kernel (), Domain, Coordinates)>,
}

/// What `#[kernel(launch_context = NAME)]` calls `NAME`.
#[doc(hidden)]
#[inline(always)]
pub fn launch_context<'kernel, Domain>() -> LaunchContextRef<'kernel, Domain, U32Coordinates> {
    LaunchContextRef {
        kernel: PhantomData,
    }
}

/// What a thread holds that has no index of 32 bits: within no slice that has room for it.
const INVALID: u32 = u32::MAX;

/// Proof that this thread alone has a certain index; made by [`index_1d_u32`].
pub struct ThreadIndex32<'kernel> {
    index: u32,
    // Neither Send nor Sync, and invariant in 'kernel.
    this_thread: PhantomData<*mut &'kernel ()>,
}

impl ThreadIndex32<'_> {
    /// The index.
    #[inline(always)]
    pub fn get(&self) -> u32 {
        self.index
    }

    /// The index, unless the thread has none.
    #[inline(always)]
    pub(crate) fn checked(&self) -> Option<u64> {
        (self.index != INVALID).then_some(u64::from(self.index))
    }
}

/// Proof that this thread alone has a certain row and column; made by [`coord_2d_u32`].
pub struct ThreadCoord2D32<'kernel> {
    row: u32,
    column: u32,
    // Neither Send nor Sync, and invariant in 'kernel.
    this_thread: PhantomData<*mut &'kernel ()>,
}

impl ThreadCoord2D32<'_> {
    /// The row, along y.
    #[inline(always)]
    pub fn row(&self) -> u32 {
        self.row
    }

    /// The column, along x.
    #[inline(always)]
    pub fn col(&self) -> u32 {
        self.column
    }

    /// Row and column, unless the thread has none.
    #[inline(always)]
    pub(crate) fn checked(&self) -> Option<(u64, u64)> {
        (self.row != INVALID && self.column != INVALID)
            .then_some((u64::from(self.row), u64::from(self.column)))
    }
}

/// This thread's index in the whole grid of a one-dimensional launch.
///
/// Where block or grid extend along y or z, or the index has more than 32 bits, it is `u32::MAX`,
/// for which no slice gives anything.
#[inline(always)]
pub fn index_1d_u32<'kernel>(
    _: LaunchContextRef<'kernel, Domain1, U32Coordinates>,
) -> ThreadIndex32<'kernel> {
    let is_1d = is_flat() && blockDim_y() == 1 && gridDim_y() == 1;
    ThreadIndex32 {
        index: coordinate(is_1d, blockIdx_x(), blockDim_x(), threadIdx_x()),
        this_thread: PhantomData,
    }
}

/// This thread's row and column in the whole grid of a two-dimensional launch.
///
/// Where block or grid extend along z, or a number has more than 32 bits, it is `u32::MAX`, for which
/// no slice gives anything.
#[inline(always)]
pub fn coord_2d_u32<'kernel>(
    _: LaunchContextRef<'kernel, Domain2, U32Coordinates>,
) -> ThreadCoord2D32<'kernel> {
    ThreadCoord2D32 {
        row: coordinate(is_flat(), blockIdx_y(), blockDim_y(), threadIdx_y()),
        column: coordinate(is_flat(), blockIdx_x(), blockDim_x(), threadIdx_x()),
        this_thread: PhantomData,
    }
}

#[inline(always)]
fn is_flat() -> bool {
    blockDim_z() == 1 && gridDim_z() == 1
}

#[inline(always)]
fn coordinate(is_valid: bool, block: u32, size: u32, thread: u32) -> u32 {
    let wide = u64::from(block) * u64::from(size) + u64::from(thread);
    if is_valid && wide < u64::from(INVALID) {
        wide as u32
    } else {
        INVALID
    }
}
