//! Slices that many threads write, each its own elements.

use core::marker::PhantomData;
use core::slice;

use crate::thread::ThreadIndex;

/// A mutable slice in global memory that all threads share, and of which each may change only what
/// its [`ThreadIndex`] gives it. The kernel parameter for output.
pub struct DisjointSlice<'a, T> {
    pointer: *mut T,
    length: usize,
    slice: PhantomData<&'a mut [T]>,
}

impl<T> DisjointSlice<'_, T> {
    /// Makes one of a pointer and a length in elements.
    ///
    /// # Safety
    ///
    /// For `'a` the elements must be valid and reached through such slices only, all of which are
    /// used with the same kind of thread index.
    #[inline(always)]
    pub unsafe fn from_raw_parts(pointer: *mut T, length: usize) -> Self {
        Self {
            pointer,
            length,
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

    /// The element at this thread's index; None beyond the end.
    #[inline(always)]
    pub fn get_mut(&mut self, index: ThreadIndex<'_>) -> Option<&mut T> {
        if !index.in_bounds(self.length) {
            return None;
        }
        // SAFETY: in bounds, and no other thread has this index.
        Some(unsafe { &mut *self.pointer.add(index.get()) })
    }

    /// The `N` elements from `N` times this thread's index on; fewer at the end, none beyond it.
    ///
    /// # Safety
    ///
    /// All threads must use the slice this way, and with the same `N`.
    #[inline(always)]
    pub unsafe fn chunk_mut<const N: usize>(&mut self, index: ThreadIndex<'_>) -> &mut [T] {
        // No overflow: memory ends long before.
        let start = N * index.get().min(self.length);
        // SAFETY: chunks of different indices do not overlap.
        unsafe { self.chunk_unchecked_mut::<N>(start) }
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
}
