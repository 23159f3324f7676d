//! Which element is this thread's own: index spaces, and the proof that an index has one owner.
//!
//! All of it is in [`thread`](crate::thread) too.

use core::marker::PhantomData;

use crate::disjoint::DisjointSlice;
use crate::thread::{
    blockDim_x, blockDim_y, blockDim_z, blockIdx_x, blockIdx_y, blockIdx_z, gridDim_x, gridDim_y,
    gridDim_z, threadIdx_x, threadIdx_y, threadIdx_z,
};
use crate::warp::lane_id;

/// One element for each thread of a one-dimensional launch: [`index_1d`], [`grid_stride`].
pub enum Index1D {}

/// One element for each thread of a two-dimensional launch, in rows of `ROW_STRIDE`: [`index_2d`].
pub enum Index2D<const ROW_STRIDE: usize> {}

/// One element for each thread of a three-dimensional launch, in planes of `ROWS` rows of
/// `ROW_STRIDE`: [`index_3d`].
pub enum Index3D<const ROWS: usize, const ROW_STRIDE: usize> {}

/// One element for each thread of a two-dimensional launch, in rows as long as the slice says:
/// [`index_2d_runtime`].
pub enum Runtime2DIndex {}

/// One element for each warp of a one-dimensional launch: [`warp_index`].
pub enum WarpIndex {}

/// `N` elements in a row for each thread of a one-dimensional launch:
/// [`tile_mut`](DisjointSlice::tile_mut).
pub enum LinearTiles<const N: usize> {}

/// A tile of `ROWS` and `COLS` for each thread of a two-dimensional launch, in rows of `ROW_STRIDE`:
/// [`tile_2d32`](DisjointSlice::tile_2d32).
pub enum RowMajorTiles<const ROWS: usize, const COLS: usize, const ROW_STRIDE: usize> {}

/// A tile of `ROWS` and `COLS` for each thread of a two-dimensional launch, in rows as long as the
/// slice says: [`tile_2d32_rt`](DisjointSlice::tile_2d32_rt).
pub enum RuntimeRowMajorTiles<const ROWS: usize, const COLS: usize> {}

mod sealed {
    pub trait Sealed {}
}

/// What a [`DisjointSlice`] has to know to find an element of a space.
pub trait SpaceLayout: sealed::Sealed {
    /// `()`, or the elements of a row where these are known at the launch only.
    type Data: Copy;
    /// What a kernel's record says of the space, see [`record`](crate::record).
    #[doc(hidden)]
    const RECORDED: &'static str;
}

/// Spaces whose indices are plain numbers.
pub trait FlatIndexSpace: SpaceLayout {}

/// Spaces that give each thread one index without being asked for anything.
pub trait IndexFormula: FlatIndexSpace + Sized {
    /// This thread's index; None for threads that have none.
    fn index<'kernel>() -> Option<ThreadIndex<'kernel, Self>>;
}

macro_rules! spaces {
    ($([$($generics:tt)*] $space:ty, $data:ty, $recorded:literal;)*) => {
        $(
            impl<$($generics)*> sealed::Sealed for $space {}
            impl<$($generics)*> SpaceLayout for $space {
                type Data = $data;
                const RECORDED: &'static str = $recorded;
            }
        )*
    };
}

spaces! {
    [] Index1D, (), ">";
    [const S: usize] Index2D<S>, (), ">";
    [const R: usize, const S: usize] Index3D<R, S>, (), ">";
    [] Runtime2DIndex, u32, ", Runtime2DIndex>";
    [] WarpIndex, (), ">";
    [const N: usize] LinearTiles<N>, (), ">";
    [const R: usize, const C: usize, const S: usize] RowMajorTiles<R, C, S>, (), ">";
    [const R: usize, const C: usize] RuntimeRowMajorTiles<R, C>, u32, ", Runtime2DIndex>";
}

impl FlatIndexSpace for Index1D {}
impl<const S: usize> FlatIndexSpace for Index2D<S> {}
impl<const R: usize, const S: usize> FlatIndexSpace for Index3D<R, S> {}
impl FlatIndexSpace for WarpIndex {}

impl IndexFormula for Index1D {
    #[inline(always)]
    fn index<'kernel>() -> Option<ThreadIndex<'kernel>> {
        let index = index_1d();
        index.is_valid().then_some(index)
    }
}

impl<const S: usize> IndexFormula for Index2D<S> {
    #[inline(always)]
    fn index<'kernel>() -> Option<ThreadIndex<'kernel, Self>> {
        index_2d()
    }
}

impl<const R: usize, const S: usize> IndexFormula for Index3D<R, S> {
    #[inline(always)]
    fn index<'kernel>() -> Option<ThreadIndex<'kernel, Self>> {
        index_3d()
    }
}

impl IndexFormula for WarpIndex {
    #[inline(always)]
    fn index<'kernel>() -> Option<ThreadIndex<'kernel, Self>> {
        warp_index()
    }
}

/// Proof that this thread alone has a certain index of a space.
///
/// It cannot be copied nor leave the thread, so an element that a [`DisjointSlice`] gives for it has
/// no other owner.
pub struct ThreadIndex<'kernel, Space = Index1D> {
    raw: usize,
    // Neither Send nor Sync, and invariant in 'kernel.
    this_thread: PhantomData<(*mut &'kernel (), fn() -> Space)>,
}

impl<Space> ThreadIndex<'_, Space> {
    /// What a thread holds that has no index: beyond the end of every slice.
    const INVALID: usize = usize::MAX;

    #[inline(always)]
    fn new(raw: usize) -> Self {
        Self {
            raw,
            this_thread: PhantomData,
        }
    }

    /// Whether the thread has an index; see [`index_1d`] for one that has not.
    #[inline(always)]
    pub fn is_valid(&self) -> bool {
        self.raw != Self::INVALID
    }
}

impl<Space: FlatIndexSpace> ThreadIndex<'_, Space> {
    /// The index.
    #[inline(always)]
    pub fn get(&self) -> usize {
        self.raw
    }

    /// Whether the index is below `length`.
    #[inline(always)]
    pub fn in_bounds(&self, length: usize) -> bool {
        self.raw < length
    }
}

impl ThreadIndex<'_, Runtime2DIndex> {
    /// The row.
    #[inline(always)]
    pub fn row(&self) -> usize {
        self.raw >> 32
    }

    /// The place in the row.
    #[inline(always)]
    pub fn col(&self) -> usize {
        self.raw & u32::MAX as usize
    }
}

/// This thread's place in the whole grid along x.
#[inline(always)]
fn grid_x() -> usize {
    blockIdx_x() as usize * blockDim_x() as usize + threadIdx_x() as usize
}

/// This thread's place in the whole grid along y.
#[inline(always)]
fn grid_y() -> usize {
    blockIdx_y() as usize * blockDim_y() as usize + threadIdx_y() as usize
}

/// This thread's place in the whole grid along z.
#[inline(always)]
fn grid_z() -> usize {
    blockIdx_z() as usize * blockDim_z() as usize + threadIdx_z() as usize
}

#[inline(always)]
fn is_flat_in_z() -> bool {
    blockDim_z() == 1 && gridDim_z() == 1
}

#[inline(always)]
fn is_one_dimensional() -> bool {
    blockDim_y() == 1 && gridDim_y() == 1 && is_flat_in_z()
}

/// This thread's index in the whole grid of a one-dimensional launch.
///
/// Where block or grid extend along y or z, indices would repeat; every thread then gets
/// `usize::MAX`, which is in the bounds of no slice.
#[inline(always)]
pub fn index_1d<'kernel>() -> ThreadIndex<'kernel> {
    ThreadIndex::new(if is_one_dimensional() {
        grid_x()
    } else {
        ThreadIndex::<Index1D>::INVALID
    })
}

/// This thread's row in the whole grid: its place along y.
#[inline(always)]
pub fn index_2d_row() -> usize {
    grid_y()
}

/// This thread's column in the whole grid: its place along x.
#[inline(always)]
pub fn index_2d_col() -> usize {
    grid_x()
}

/// This thread's element of a matrix with rows of `ROW_STRIDE`, in a two-dimensional launch.
///
/// None beyond the end of a row, and for every thread where block or grid extend along z.
///
/// ```
/// use rustcuda_device::prelude::*;
/// use thread::Index2D;
///
/// #[kernel]
/// pub fn twice(x: &[f32], mut y: DisjointSlice<f32, Index2D<640>>) {
///     if let Some((y, index)) = y.get_mut_indexed() {
///         *y = 2.0 * x[index.get()];
///     }
/// }
/// ```
#[inline(always)]
pub fn index_2d<'kernel, const ROW_STRIDE: usize>()
-> Option<ThreadIndex<'kernel, Index2D<ROW_STRIDE>>> {
    const {
        assert!(
            ROW_STRIDE <= MOST_IN_A_ROW,
            "a row has at most 2^37 elements"
        )
    };
    let (row, col) = (grid_y(), grid_x());
    (is_flat_in_z() && col < ROW_STRIDE).then(|| ThreadIndex::new(row * ROW_STRIDE + col))
}

/// A grid has less than 2^26 rows (65535 blocks of 1024 threads), so that the product never overflows.
const MOST_IN_A_ROW: usize = 1 << 37;

/// This thread's element of a stack of matrices with `ROWS` rows of `ROW_STRIDE`, in a
/// three-dimensional launch; None beyond the end of a row or a matrix.
#[inline(always)]
pub fn index_3d<'kernel, const ROWS: usize, const ROW_STRIDE: usize>()
-> Option<ThreadIndex<'kernel, Index3D<ROWS, ROW_STRIDE>>> {
    const {
        assert!(
            ROWS <= MOST_IN_A_ROW && ROW_STRIDE <= MOST_IN_A_ROW / if ROWS == 0 { 1 } else { ROWS },
            "a plane has at most 2^37 elements"
        )
    };
    let (plane, row, col) = (grid_z(), grid_y(), grid_x());
    (row < ROWS && col < ROW_STRIDE)
        .then(|| ThreadIndex::new((plane * ROWS + row) * ROW_STRIDE + col))
}

/// This thread's element of a matrix whose rows are as long as `slice` says, in a two-dimensional
/// launch.
///
/// None beyond the end of a row, and for every thread where block or grid extend along z. In Python
/// the slice is a contiguous tensor; its last dimension is the row.
///
/// ```
/// use rustcuda_device::prelude::*;
/// use thread::Runtime2DIndex;
///
/// #[kernel]
/// pub fn number(mut y: DisjointSlice<u32, Runtime2DIndex>) {
///     if let Some(index) = thread::index_2d_runtime(&y) {
///         let number = 1000 * index.row() + index.col();
///         if let Some(y) = y.get_mut(index) {
///             *y = number as u32;
///         }
///     }
/// }
/// ```
#[inline(always)]
pub fn index_2d_runtime<'kernel, T>(
    slice: &DisjointSlice<'_, T, Runtime2DIndex>,
) -> Option<ThreadIndex<'kernel, Runtime2DIndex>> {
    let (row, col) = (grid_y(), grid_x());
    // Less than 2^26 rows, and columns that fit in the width's 32 bits.
    (is_flat_in_z() && col < slice.row_width() as usize)
        .then(|| ThreadIndex::new((row << 32) | col))
}

/// This warp's index in the whole grid of a one-dimensional launch, for its lane 0; None for the others.
///
/// A block's last warp counts as one, however few threads it has.
#[inline(always)]
pub fn warp_index<'kernel>() -> Option<ThreadIndex<'kernel, WarpIndex>> {
    let warps = blockDim_x().div_ceil(32) as usize;
    (is_one_dimensional() && lane_id() == 0)
        .then(|| ThreadIndex::new(blockIdx_x() as usize * warps + threadIdx_x() as usize / 32))
}

/// This thread's indices below `length` where a one-dimensional grid is smaller than the data: its own,
/// and on by the number of threads in the grid.
///
/// Each gives safe access to an element, and all threads together have every index once. There are
/// none where block or grid extend along y or z.
///
/// ```
/// use rustcuda_device::prelude::*;
///
/// #[kernel]
/// pub fn scale(a: f32, mut y: DisjointSlice<f32>) {
///     for index in thread::grid_stride(y.len()) {
///         if let Some(y) = y.get_mut(index) {
///             *y *= a;
///         }
///     }
/// }
/// ```
#[inline(always)]
pub fn grid_stride<'kernel>(length: usize) -> GridStride<'kernel> {
    GridStride {
        next: index_1d().get(),
        // No more than any slice can have, so that stepping over the end never overflows.
        length: length.min(isize::MAX as usize),
        step: gridDim_x() as usize * blockDim_x() as usize,
        indices: PhantomData,
    }
}

/// See [`grid_stride`].
pub struct GridStride<'kernel> {
    next: usize,
    length: usize,
    step: usize,
    indices: PhantomData<ThreadIndex<'kernel>>,
}

impl<'kernel> Iterator for GridStride<'kernel> {
    type Item = ThreadIndex<'kernel>;

    #[inline(always)]
    fn next(&mut self) -> Option<ThreadIndex<'kernel>> {
        let index = self.next;
        if index >= self.length {
            return None;
        }
        self.next = index.wrapping_add(self.step);
        Some(ThreadIndex::new(index))
    }
}
