//! Views of a thread's own elements: one check for all of them, and none for each.
//!
//! ```
//! use rustcuda_device::prelude::*;
//! use rustcuda_device::thread::LinearTiles;
//!
//! /// Four elements for each thread; the last threads may have fewer.
//! #[kernel]
//! pub fn double(mut y: DisjointSlice<f32, LinearTiles<4>>) {
//!     let index = thread::index_1d_u32(thread::launch_context());
//!     if let Some(mut run) = y.thread_run32(index) {
//!         for at in 0..run.len() {
//!             if let Some(mut element) = run.at(at) {
//!                 let doubled = 2.0 * element.read();
//!                 element.write(doubled);
//!             }
//!         }
//!     }
//! }
//! ```

use core::marker::PhantomData;
use core::slice;

use crate::disjoint::DisjointSlice;
use crate::index::{Index1D, LinearTiles, RowMajorTiles, RuntimeRowMajorTiles};
use crate::launch::{ThreadCoord2D32, ThreadIndex32};
use crate::thread::{blockDim_x, gridDim_x};

/// A number below `N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalIndex32<const N: usize>(u32);

impl<const N: usize> LocalIndex32<N> {
    /// `index`, if it is below `N`.
    #[inline(always)]
    pub const fn new(index: u32) -> Option<Self> {
        if (index as usize) < N {
            Some(Self(index))
        } else {
            None
        }
    }

    /// `I`, which the compiler checks.
    #[inline(always)]
    pub const fn constant<const I: u32>() -> Self {
        const { assert!((I as usize) < N, "the index is beyond the view's end") };
        Self(I)
    }

    /// The number.
    #[inline(always)]
    pub const fn get(&self) -> u32 {
        self.0
    }
}

/// An element that is there, to read.
#[derive(Clone, Copy, Debug)]
pub struct InBounds32<'a, T>(&'a T);

impl<T> InBounds32<'_, T> {
    /// The element.
    #[inline(always)]
    pub fn get(&self) -> &T {
        self.0
    }

    /// Its value.
    #[inline(always)]
    pub fn read(&self) -> T
    where
        T: Copy,
    {
        *self.0
    }
}

/// An element that is there and this thread's own.
#[derive(Debug)]
pub struct InBoundsMut32<'a, T>(&'a mut T);

impl<T> InBoundsMut32<'_, T> {
    /// The element, to read.
    #[inline(always)]
    pub fn get(&self) -> &T {
        self.0
    }

    /// The element, to change.
    #[inline(always)]
    pub fn get_mut(&mut self) -> &mut T {
        self.0
    }

    /// Its value.
    #[inline(always)]
    pub fn read(&self) -> T
    where
        T: Copy,
    {
        *self.0
    }

    /// Gives it another value.
    #[inline(always)]
    pub fn write(&mut self, value: T) {
        *self.0 = value;
    }
}

/// `N` elements, to read.
#[derive(Clone, Copy, Debug)]
pub struct StaticView32<'a, T, const N: usize>(&'a [T; N]);

impl<'a, T, const N: usize> StaticView32<'a, T, N> {
    /// The first `N` elements of a slice, if it has as many.
    #[inline(always)]
    pub fn from_slice(slice: &'a [T]) -> Option<Self> {
        slice.first_chunk().map(Self)
    }

    /// The element at `index`.
    #[inline(always)]
    pub fn at(&self, index: LocalIndex32<N>) -> InBounds32<'_, T> {
        // SAFETY: below N.
        InBounds32(unsafe { self.0.get_unchecked(index.0 as usize) })
    }

    /// The element at `I`.
    #[inline(always)]
    pub fn at_const<const I: u32>(&self) -> InBounds32<'_, T> {
        self.at(LocalIndex32::constant::<I>())
    }

    /// `N`.
    #[inline(always)]
    pub const fn len(&self) -> u32 {
        N as u32
    }

    /// Whether there are no elements.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        N == 0
    }
}

/// `N` elements that are this thread's own.
#[derive(Debug)]
pub struct StaticViewMut32<'a, T, const N: usize>(&'a mut [T; N]);

impl<'a, T, const N: usize> StaticViewMut32<'a, T, N> {
    /// The first `N` elements of a slice, if it has as many.
    #[inline(always)]
    pub fn from_slice(slice: &'a mut [T]) -> Option<Self> {
        slice.first_chunk_mut().map(Self)
    }

    /// The element at `index`.
    #[inline(always)]
    pub fn at(&mut self, index: LocalIndex32<N>) -> InBoundsMut32<'_, T> {
        // SAFETY: below N.
        InBoundsMut32(unsafe { self.0.get_unchecked_mut(index.0 as usize) })
    }

    /// The element at `I`.
    #[inline(always)]
    pub fn at_const<const I: u32>(&mut self) -> InBoundsMut32<'_, T> {
        self.at(LocalIndex32::constant::<I>())
    }

    /// `N`.
    #[inline(always)]
    pub const fn len(&self) -> u32 {
        N as u32
    }

    /// Whether there are no elements.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        N == 0
    }
}

/// Fewer elements than a whole run has, this thread's own.
#[derive(Debug)]
pub struct RuntimeViewMut32<'a, T>(&'a mut [T]);

impl<T> RuntimeViewMut32<'_, T> {
    /// The element at `index`; None beyond the end.
    #[inline(always)]
    pub fn at(&mut self, index: u32) -> Option<InBoundsMut32<'_, T>> {
        self.0.get_mut(index as usize).map(InBoundsMut32)
    }

    /// The number of elements.
    #[inline(always)]
    pub const fn len(&self) -> u32 {
        self.0.len() as u32
    }

    /// Whether there are no elements.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A thread's run of `N` elements, or of as many as the slice still has there.
#[derive(Debug)]
pub enum ThreadRunMut32<'a, T, const N: usize> {
    /// All `N` of them.
    Full(StaticViewMut32<'a, T, N>),
    /// The rest of the slice.
    Clipped(RuntimeViewMut32<'a, T>),
}

impl<'a, T, const N: usize> ThreadRunMut32<'a, T, N> {
    #[inline(always)]
    fn of(run: &'a mut [T]) -> Self {
        if run.len() != N {
            return Self::Clipped(RuntimeViewMut32(run));
        }
        // SAFETY: of just this length.
        Self::Full(StaticViewMut32(unsafe { &mut *run.as_mut_ptr().cast() }))
    }

    /// The number of elements.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        match self {
            Self::Full(view) => view.len(),
            Self::Clipped(view) => view.len(),
        }
    }

    /// Whether there are no elements; there always are.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it is the rest of a slice, with fewer than `N`.
    #[inline(always)]
    pub fn is_clipped(&self) -> bool {
        matches!(self, Self::Clipped(_))
    }

    /// The element at `index`; None beyond the end.
    #[inline(always)]
    pub fn at(&mut self, index: u32) -> Option<InBoundsMut32<'_, T>> {
        match self {
            Self::Full(view) => LocalIndex32::new(index).map(|index| view.at(index)),
            Self::Clipped(view) => view.at(index),
        }
    }
}

/// The runs that are a thread's own where there are more of them than threads.
pub struct GridStrideRuns32<'slice, 'a, T, const N: usize> {
    slice: &'slice mut DisjointSlice<'a, T, LinearTiles<N>>,
    next: Option<u64>,
    period: u64,
}

impl<T, const N: usize> GridStrideRuns32<'_, '_, T, N> {
    /// The next one; None beyond the end, and from then on.
    #[inline(always)]
    pub fn next_run(&mut self) -> Option<ThreadRunMut32<'_, T, N>> {
        let index = self.next.take()?;
        let run = self.slice.run(index)?;
        self.next = index.checked_add(self.period);
        Some(run)
    }

    /// How many runs are between two of a thread's own: the number of threads.
    #[inline(always)]
    pub const fn period(&self) -> u64 {
        self.period
    }
}

impl<T> DisjointSlice<'_, T, Index1D> {
    /// The element at this thread's index; None beyond the end.
    #[inline(always)]
    pub fn element_thread32(&mut self, index: ThreadIndex32<'_>) -> Option<InBoundsMut32<'_, T>> {
        // SAFETY: no other thread has this index.
        let own = unsafe { own(self.as_mut_ptr(), self.len(), index.checked()?, 1) }?;
        own.first_mut().map(InBoundsMut32)
    }
}

impl<'a, T, const N: usize> DisjointSlice<'a, T, LinearTiles<N>> {
    /// This thread's `N` elements; None if the slice has fewer there.
    #[inline(always)]
    pub fn tile_thread32(&mut self, index: ThreadIndex32<'_>) -> Option<StaticViewMut32<'_, T, N>> {
        match self.thread_run32(index)? {
            ThreadRunMut32::Full(view) => Some(view),
            ThreadRunMut32::Clipped(_) => None,
        }
    }

    /// This thread's elements, up to `N`; None if the slice has none there.
    #[inline(always)]
    pub fn thread_run32(&mut self, index: ThreadIndex32<'_>) -> Option<ThreadRunMut32<'_, T, N>> {
        self.run(index.checked()?)
    }

    /// This thread's runs: the one at its index, and each that as many runs follow as there are threads.
    #[inline(always)]
    pub fn grid_stride_runs32(
        &mut self,
        index: ThreadIndex32<'_>,
    ) -> GridStrideRuns32<'_, 'a, T, N> {
        GridStrideRuns32 {
            slice: self,
            next: index.checked(),
            period: u64::from(gridDim_x()) * u64::from(blockDim_x()),
        }
    }

    #[inline(always)]
    fn run(&mut self, index: u64) -> Option<ThreadRunMut32<'_, T, N>> {
        // SAFETY: callers have this index for themselves.
        let own = unsafe { own(self.as_mut_ptr(), self.len(), index, N) }?;
        Some(ThreadRunMut32::of(own))
    }
}

/// The `count` elements from `index` times `count` on, fewer at the end; None beyond it, and of types
/// without size, whose elements would all be one.
///
/// # Safety
///
/// They must be the caller's own, among `length` at `pointer`.
#[inline(always)]
unsafe fn own<'a, T>(
    pointer: *mut T,
    length: usize,
    index: u64,
    count: usize,
) -> Option<&'a mut [T]> {
    let start = index.checked_mul(count as u64)?;
    if start >= length as u64 || count == 0 || size_of::<T>() == 0 {
        return None;
    }
    let count = count.min(length - start as usize);
    // SAFETY: in bounds; the rest is promised by the caller.
    Some(unsafe { slice::from_raw_parts_mut(pointer.add(start as usize), count) })
}

/// A rectangle of this thread's own, in a matrix whose rows are as long as its slice says.
pub struct RuntimeTileMut32<'a, T, const ROWS: usize, const COLS: usize> {
    pointer: *mut T,
    stride: u32,
    elements: PhantomData<&'a mut [T]>,
}

impl<T, const ROWS: usize, const COLS: usize> RuntimeTileMut32<'_, T, ROWS, COLS> {
    /// The tile at `row` and `column`, counted in tiles; None unless all of it is in its row and among
    /// the `length` elements.
    ///
    /// # Safety
    ///
    /// It must be the caller's own, in a matrix at `pointer` with rows of `stride` elements.
    #[inline(always)]
    unsafe fn find(
        pointer: *mut T,
        length: usize,
        (row, column): (u64, u64),
        stride: u32,
    ) -> Option<Self> {
        if ROWS == 0 || COLS == 0 || size_of::<T>() == 0 {
            return None;
        }
        let (width, rows, columns) = (u64::from(stride), ROWS as u64, COLS as u64);
        let start_column = column.checked_mul(columns)?;
        let start = row
            .checked_mul(rows)?
            .checked_mul(width)?
            .checked_add(start_column)?;
        let last = start
            .checked_add((rows - 1).checked_mul(width)?)?
            .checked_add(columns - 1)?;
        let is_inside = start_column.checked_add(columns)? <= width && last < length as u64;
        is_inside.then(|| Self {
            // SAFETY: in bounds.
            pointer: unsafe { pointer.add(start as usize) },
            stride,
            elements: PhantomData,
        })
    }

    /// The element at a row and a column of the tile.
    #[inline(always)]
    pub fn at(
        &mut self,
        row: LocalIndex32<ROWS>,
        column: LocalIndex32<COLS>,
    ) -> InBoundsMut32<'_, T> {
        let at = row.0 as usize * self.stride as usize + column.0 as usize;
        // SAFETY: all of the tile is in the slice, and this thread's own.
        InBoundsMut32(unsafe { &mut *self.pointer.add(at) })
    }

    /// The element at row `ROW` and column `COL` of the tile.
    #[inline(always)]
    pub fn at_const<const ROW: u32, const COL: u32>(&mut self) -> InBoundsMut32<'_, T> {
        self.at(
            LocalIndex32::constant::<ROW>(),
            LocalIndex32::constant::<COL>(),
        )
    }

    /// `ROWS`.
    #[inline(always)]
    pub const fn rows(&self) -> u32 {
        ROWS as u32
    }

    /// `COLS`.
    #[inline(always)]
    pub const fn cols(&self) -> u32 {
        COLS as u32
    }

    /// The elements of one of the matrix's rows.
    #[inline(always)]
    pub const fn stride(&self) -> u32 {
        self.stride
    }
}

/// A rectangle of this thread's own, in a matrix whose rows have `ROW_STRIDE` elements.
pub struct StaticTileMut32<'a, T, const ROWS: usize, const COLS: usize, const ROW_STRIDE: usize>(
    RuntimeTileMut32<'a, T, ROWS, COLS>,
);

impl<T, const ROWS: usize, const COLS: usize, const ROW_STRIDE: usize>
    StaticTileMut32<'_, T, ROWS, COLS, ROW_STRIDE>
{
    /// The element at a row and a column of the tile.
    #[inline(always)]
    pub fn at(
        &mut self,
        row: LocalIndex32<ROWS>,
        column: LocalIndex32<COLS>,
    ) -> InBoundsMut32<'_, T> {
        self.0.at(row, column)
    }

    /// The element at row `ROW` and column `COL` of the tile.
    #[inline(always)]
    pub fn at_const<const ROW: u32, const COL: u32>(&mut self) -> InBoundsMut32<'_, T> {
        self.0.at_const::<ROW, COL>()
    }

    /// `ROWS`.
    #[inline(always)]
    pub const fn rows(&self) -> u32 {
        ROWS as u32
    }

    /// `COLS`.
    #[inline(always)]
    pub const fn cols(&self) -> u32 {
        COLS as u32
    }
}

impl<T, const ROWS: usize, const COLS: usize, const ROW_STRIDE: usize>
    DisjointSlice<'_, T, RowMajorTiles<ROWS, COLS, ROW_STRIDE>>
{
    /// This thread's tile; None unless all of it is in the slice.
    #[inline(always)]
    pub fn tile_2d32(
        &mut self,
        place: ThreadCoord2D32<'_>,
    ) -> Option<StaticTileMut32<'_, T, ROWS, COLS, ROW_STRIDE>> {
        let stride = const {
            assert!(
                ROW_STRIDE <= u32::MAX as usize,
                "a row has at most 2^32 - 1 elements"
            );
            ROW_STRIDE as u32
        };
        let (pointer, length) = (self.as_mut_ptr(), self.len());
        // SAFETY: no other thread has this place.
        unsafe { RuntimeTileMut32::find(pointer, length, place.checked()?, stride) }
            .map(StaticTileMut32)
    }
}

impl<T, const ROWS: usize, const COLS: usize>
    DisjointSlice<'_, T, RuntimeRowMajorTiles<ROWS, COLS>>
{
    /// This thread's tile; None unless all of it is in the slice.
    #[inline(always)]
    pub fn tile_2d32_rt(
        &mut self,
        place: ThreadCoord2D32<'_>,
    ) -> Option<RuntimeTileMut32<'_, T, ROWS, COLS>> {
        let (pointer, length, stride) = (self.as_mut_ptr(), self.len(), self.row_width());
        // SAFETY: no other thread has this place, and all have this stride.
        unsafe { RuntimeTileMut32::find(pointer, length, place.checked()?, stride) }
    }
}
