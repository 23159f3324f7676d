//! Rows and columns of a matrix in a slice: one check for all their elements.

use core::iter::Zip;
use core::slice;

/// A matrix to read, in a slice, row after row.
#[derive(Debug)]
pub struct MatrixView32<'a, T> {
    elements: &'a [T],
    stride: u32,
}

impl<'a, T> MatrixView32<'a, T> {
    /// Takes a slice for a matrix with rows of `stride` elements.
    #[inline(always)]
    pub fn new(elements: &'a [T], stride: u32) -> Self {
        Self { elements, stride }
    }

    /// The first `columns` elements of a row; None unless there are as many, and at least one.
    #[inline(always)]
    pub fn row(&self, row: u32, columns: u32) -> Option<RowView32<'a, T>> {
        let start = u64::from(row) * u64::from(self.stride);
        let last = start + u64::from(columns.checked_sub(1)?);
        if columns > self.stride || last >= self.elements.len() as u64 {
            return None;
        }
        let start = start as usize;
        // SAFETY: both ends are in bounds.
        Some(RowView32(unsafe {
            self.elements.get_unchecked(start..start + columns as usize)
        }))
    }

    /// The first `rows` elements of a column; None unless there are as many, and at least one.
    #[inline(always)]
    pub fn col(&self, column: u32, rows: u32) -> Option<ColView32<'a, T>> {
        let last = u64::from(rows.checked_sub(1)?) * u64::from(self.stride) + u64::from(column);
        if column >= self.stride || last >= self.elements.len() as u64 {
            return None;
        }
        Some(ColView32 {
            // SAFETY: before the last, which is in bounds.
            elements: unsafe { self.elements.get_unchecked(column as usize..) },
            stride: self.stride,
            length: rows,
        })
    }

    /// The elements of a row.
    #[inline(always)]
    pub const fn stride(&self) -> u32 {
        self.stride
    }

    /// The number of elements.
    #[inline(always)]
    pub const fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether there are no elements.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }
}

/// Elements of a row.
#[derive(Debug)]
pub struct RowView32<'a, T>(&'a [T]);

impl<'a, T> RowView32<'a, T> {
    /// No elements, where the kernel has to go on to a barrier.
    #[inline(always)]
    pub const fn empty() -> Self {
        Self(&[])
    }

    /// The element at `index`; None beyond the end.
    #[inline(always)]
    pub fn get(&self, index: u32) -> Option<T>
    where
        T: Copy,
    {
        self.0.get(index as usize).copied()
    }

    /// The elements in order.
    #[inline(always)]
    pub fn iter(&self) -> RowViewIter32<'a, T>
    where
        T: Copy,
    {
        self.0.iter().copied()
    }

    /// Pairs of this row's and a column's elements; None unless they have as many.
    #[inline(always)]
    pub fn zip_exact(self, column: ColView32<'a, T>) -> Option<ZipView32<'a, T>>
    where
        T: Copy,
    {
        (self.len() == column.len()).then(|| self.iter().zip(column.iter()))
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

/// Elements of a column.
#[derive(Debug)]
pub struct ColView32<'a, T> {
    /// From the first on; the last is among them.
    elements: &'a [T],
    stride: u32,
    length: u32,
}

impl<'a, T> ColView32<'a, T> {
    /// No elements, where the kernel has to go on to a barrier.
    #[inline(always)]
    pub const fn empty() -> Self {
        Self {
            elements: &[],
            stride: 0,
            length: 0,
        }
    }

    /// The element at `index`; None beyond the end.
    #[inline(always)]
    pub fn get(&self, index: u32) -> Option<T>
    where
        T: Copy,
    {
        // SAFETY: the last element is in the slice, so those before it are.
        (index < self.length).then(|| unsafe { *self.elements.get_unchecked(self.offset(index)) })
    }

    /// The elements in order.
    #[inline(always)]
    pub fn iter(&self) -> ColViewIter32<'a, T> {
        ColViewIter32 {
            column: *self,
            next: 0,
        }
    }

    /// The number of elements.
    #[inline(always)]
    pub const fn len(&self) -> u32 {
        self.length
    }

    /// Whether there are no elements.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The elements from one of the column to the next.
    #[inline(always)]
    pub const fn stride(&self) -> u32 {
        self.stride
    }

    #[inline(always)]
    fn offset(&self, index: u32) -> usize {
        index as usize * self.stride as usize
    }
}

macro_rules! copied {
    ($($view:ident)*) => {
        $(
            impl<T> Clone for $view<'_, T> {
                #[inline(always)]
                fn clone(&self) -> Self {
                    *self
                }
            }

            impl<T> Copy for $view<'_, T> {}
        )*
    };
}

// Not derived: elements need not be `Copy`.
copied!(MatrixView32 RowView32 ColView32);

/// The elements of a [`RowView32`] in order.
pub type RowViewIter32<'a, T> = core::iter::Copied<slice::Iter<'a, T>>;

/// The elements of a [`ColView32`] in order.
#[derive(Debug)]
pub struct ColViewIter32<'a, T> {
    column: ColView32<'a, T>,
    next: u32,
}

impl<T: Copy> Iterator for ColViewIter32<'_, T> {
    type Item = T;

    #[inline(always)]
    fn next(&mut self) -> Option<T> {
        let value = self.column.get(self.next)?;
        self.next += 1;
        Some(value)
    }
}

/// Pairs of a row's and a column's elements; made by [`RowView32::zip_exact`].
pub type ZipView32<'a, T> = Zip<RowViewIter32<'a, T>, ColViewIter32<'a, T>>;
