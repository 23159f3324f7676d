//! Slices that many threads write, each its own elements.

use core::marker::PhantomData;
use core::slice;

use crate::index::{
    FlatIndexSpace, Index1D, IndexFormula, LinearTiles, Runtime2DIndex, SpaceLayout, ThreadIndex,
};

/// A mutable slice in global memory that all threads share, and of which each may change only what
/// its [`ThreadIndex`] gives it. The kernel parameter for output.
///
/// `Space` says which elements are whose: each thread has one of its own unless it says otherwise.
#[repr(C)]
pub struct DisjointSlice<'a, T, Space: SpaceLayout = Index1D> {
    pointer: *mut T,
    length: usize,
    space: Space::Data,
    slice: PhantomData<(&'a mut [T], fn() -> Space)>,
}

/// So that tiles times the length of a slice, of at most 2^48 elements, never overflow.
const MOST_IN_A_TILE: usize = 1 << 15;

// SAFETY: whoever holds it may change the elements, as with `&mut [T]`.
unsafe impl<T: Send, Space: SpaceLayout> Send for DisjointSlice<'_, T, Space> {}

impl<'a, T> DisjointSlice<'a, T> {
    /// Makes one of a pointer and a length in elements, in which each thread has one of its own.
    ///
    /// # Safety
    ///
    /// For `'a` the elements must be valid and reached through such slices only, all of which have
    /// this space.
    #[inline(always)]
    pub unsafe fn from_raw_parts(pointer: *mut T, length: usize) -> Self {
        // SAFETY: promised by the caller.
        unsafe { Self::from_raw_parts_with_space(pointer, length, ()) }
    }

    /// Makes one of a slice.
    ///
    /// # Safety
    ///
    /// Other threads must reach the elements through such slices only, all of which have this space.
    #[inline(always)]
    pub unsafe fn from_mut_slice(slice: &'a mut [T]) -> Self {
        // SAFETY: promised by the caller.
        unsafe { Self::from_raw_parts(slice.as_mut_ptr(), slice.len()) }
    }

    /// The `N` elements from `N` times this thread's index on; fewer at the end, none beyond it.
    ///
    /// [`tile_mut`](DisjointSlice::tile_mut) does it in a space of its own, where it is safe.
    ///
    /// # Safety
    ///
    /// All threads must use the slice this way, and with the same `N`.
    #[inline(always)]
    pub unsafe fn chunk_mut<const N: usize>(&mut self, index: ThreadIndex<'_>) -> &mut [T] {
        const { assert!(N <= MOST_IN_A_TILE, "a chunk has at most 32768 elements") };
        // No overflow: memory ends long before.
        let start = N * index.get().min(self.length);
        // SAFETY: chunks of different indices do not overlap.
        unsafe { self.chunk_unchecked_mut::<N>(start) }
    }
}

impl<T, Space: SpaceLayout> DisjointSlice<'_, T, Space> {
    /// Makes one of a pointer, a length in elements, and what the space has to know: `()`, or the
    /// elements of a row.
    ///
    /// # Safety
    ///
    /// The elements must be valid for as long as the slice lives, and reached through such slices
    /// only, all of which have the same space.
    #[inline(always)]
    pub unsafe fn from_raw_parts_with_space(
        pointer: *mut T,
        length: usize,
        space: Space::Data,
    ) -> Self {
        Self {
            pointer,
            length,
            space,
            slice: PhantomData,
        }
    }

    /// The number of elements.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no elements.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The `N` elements from `start` on; fewer at the end, none beyond it.
    ///
    /// # Safety
    ///
    /// No other thread may use them while this reference lives.
    #[inline(always)]
    pub unsafe fn chunk_unchecked_mut<const N: usize>(&mut self, start: usize) -> &mut [T] {
        let start = start.min(self.length);
        // SAFETY: in bounds; the rest is promised by the caller.
        unsafe { slice::from_raw_parts_mut(self.pointer.add(start), (self.length - start).min(N)) }
    }

    /// The element at `index`.
    ///
    /// # Safety
    ///
    /// `index` must be below [`len`](Self::len), and no other thread may use that element while
    /// this reference lives.
    #[inline(always)]
    pub unsafe fn get_unchecked_mut(&mut self, index: usize) -> &mut T {
        debug_assert!(index < self.length);
        // SAFETY: promised by the caller.
        unsafe { &mut *self.pointer.add(index) }
    }

    /// The first element's address.
    #[inline(always)]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.pointer
    }

    /// The element at `index`; None beyond the end, and of types without size, whose elements would
    /// all be one.
    ///
    /// # Safety
    ///
    /// No other thread may use that element while this reference lives.
    #[inline(always)]
    unsafe fn checked_mut(&mut self, index: usize) -> Option<&mut T> {
        if size_of::<T>() == 0 || index >= self.length {
            return None;
        }
        // SAFETY: in bounds; the rest is promised by the caller.
        Some(unsafe { &mut *self.pointer.add(index) })
    }
}

impl<T, Space: FlatIndexSpace> DisjointSlice<'_, T, Space> {
    /// The element at this thread's index; None beyond the end.
    #[inline(always)]
    pub fn get_mut(&mut self, index: ThreadIndex<'_, Space>) -> Option<&mut T> {
        // SAFETY: no other thread has this index of this space.
        unsafe { self.checked_mut(index.get()) }
    }
}

impl<T, Space: IndexFormula> DisjointSlice<'_, T, Space> {
    /// This thread's element and its index; None for threads that have none.
    #[inline(always)]
    pub fn get_mut_indexed<'kernel>(&mut self) -> Option<(&mut T, ThreadIndex<'kernel, Space>)> {
        let index = Space::index()?;
        // SAFETY: no other thread has this index of this space.
        let element = unsafe { self.checked_mut(index.get()) }?;
        Some((element, index))
    }
}

impl<T, Space: SpaceLayout<Data = u32>> DisjointSlice<'_, T, Space> {
    /// The elements of a row.
    #[inline(always)]
    pub fn row_width(&self) -> u32 {
        self.space
    }
}

impl<T> DisjointSlice<'_, T, Runtime2DIndex> {
    /// The element at this thread's row and column; None beyond the end of the row or of the slice.
    #[inline(always)]
    pub fn get_mut(&mut self, index: ThreadIndex<'_, Runtime2DIndex>) -> Option<&mut T> {
        let width = self.space as usize;
        // The index may have been made with another slice, whose rows are longer.
        if index.col() >= width {
            return None;
        }
        // SAFETY: no other thread has this row and column, and so this element.
        unsafe { self.checked_mut(index.row() * width + index.col()) }
    }
}

impl<T, const N: usize> DisjointSlice<'_, T, LinearTiles<N>> {
    /// The number of tiles; the last may have fewer than `N` elements.
    #[inline(always)]
    pub fn tiles(&self) -> usize {
        self.length.div_ceil(N)
    }

    /// The `N` elements that are this thread's: fewer at the end, none beyond it.
    ///
    /// ```
    /// use rustcuda_device::prelude::*;
    /// use thread::LinearTiles;
    ///
    /// #[kernel]
    /// pub fn fill(value: f32, mut y: DisjointSlice<f32, LinearTiles<4>>) {
    ///     F32x4::from_fn(|_| value).store(y.tile_mut(thread::index_1d()));
    /// }
    /// ```
    #[inline(always)]
    pub fn tile_mut(&mut self, index: ThreadIndex<'_>) -> &mut [T] {
        const { assert!(N <= MOST_IN_A_TILE, "a tile has at most 32768 elements") };
        // No overflow: memory ends long before.
        let start = N * index.get().min(self.length);
        // SAFETY: tiles of different indices do not overlap, and there are only tiles in this space.
        unsafe { self.chunk_unchecked_mut::<N>(start) }
    }
}
