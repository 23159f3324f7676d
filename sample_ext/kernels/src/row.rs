//! How the threads of a block share a row.

use core::{array, iter};

use rustcuda_device::prelude::*;

use crate::element::Element;

/// One thread's part of a row: every so-many-th pack of `N` elements, so that neighbours load
/// neighbouring packs.
///
/// `KEPT` packs stay in registers, as f32; so most rows are loaded once only, and enough loads are
/// under way at once. Threads of a block should be few enough to have all of them filled.
pub struct Share<'a, T, const N: usize, const KEPT: usize, F> {
    row: &'a [T],
    fill: T,
    change: F,
    start: usize,
    step: usize,
    kept: [[f32; N]; KEPT],
}

impl<'a, T: Element<N>, const N: usize, const KEPT: usize> Share<'a, T, N, KEPT, fn(f32) -> f32> {
    /// Loads this thread's part; elements beyond the row's end count as `fill`.
    #[inline(always)]
    pub fn load(row: &'a [T], fill: T) -> Share<'a, T, N, KEPT, impl Fn(f32) -> f32> {
        let start = N * thread::threadIdx_x() as usize;
        let step = N * thread::blockDim_x() as usize;
        let kept = array::from_fn(|i| load(row, start + i * step, fill));
        let change = |value| value;
        Share {
            row,
            fill,
            change,
            start,
            step,
            kept,
        }
    }
}

impl<'a, T: Element<N>, const N: usize, const KEPT: usize, F> Share<'a, T, N, KEPT, F>
where
    F: Fn(f32) -> f32,
{
    /// Changes all elements: those kept at once, the others whenever they are loaded.
    #[inline(always)]
    pub fn map(self, change: impl Fn(f32) -> f32) -> Share<'a, T, N, KEPT, impl Fn(f32) -> f32> {
        let Self {
            row,
            fill,
            start,
            step,
            kept,
            ..
        } = self;
        let kept = array::from_fn(|i| array::from_fn(|k| change(kept[i][k])));
        let before = self.change;
        let change = move |value| change(before(value));
        Share {
            row,
            fill,
            change,
            start,
            step,
            kept,
        }
    }

    /// Combines all elements of this part.
    #[inline(always)]
    pub fn fold(&self, initial: f32, combine: impl Fn(f32, f32) -> f32) -> f32 {
        // Arrays are borrowed by the loops: one that is moved into its iterator stays in memory.
        let mut result = initial;
        for value in self.kept.as_flattened() {
            result = combine(result, *value);
        }
        for at in self.rest() {
            for value in &self.load_again(at) {
                result = combine(result, *value);
            }
        }
        result
    }

    /// Stores `change(index of its first element, elements)` for each pack of this part.
    ///
    /// # Safety
    ///
    /// `target` is as long as the row, and its rows belong to blocks as those of the source do.
    #[inline(always)]
    pub unsafe fn store(
        &self,
        target: &mut DisjointSlice<T>,
        change: impl Fn(usize, [f32; N]) -> [f32; N],
    ) {
        let mut put = |at, values| {
            let changed = change(at, values);
            let pack = Pack::<T, N>::from_fn(|k| T::from_f32(changed[k]));
            // SAFETY: no other thread has these indices.
            pack.store(unsafe { target.chunk_unchecked_mut::<N>(at) });
        };
        for (i, values) in self.kept.iter().enumerate() {
            put(self.start + i * self.step, *values);
        }
        for at in self.rest() {
            put(at, self.load_again(at));
        }
    }

    /// Where the packs begin that are not kept.
    #[inline(always)]
    fn rest(&self) -> impl Iterator<Item = usize> {
        let first = self.start + KEPT * self.step;
        // Not `step_by`, which divides to count its steps.
        iter::successors(Some(first), |at| Some(at + self.step))
            .take_while(|at| *at < self.row.len())
    }

    #[inline(always)]
    fn load_again(&self, at: usize) -> [f32; N] {
        let values: [f32; N] = load(self.row, at, self.fill);
        array::from_fn(|k| (self.change)(values[k]))
    }
}

/// The `N` elements from `start` on; those beyond the row's end are `fill`.
#[inline(always)]
pub fn load<T: Element<N>, const N: usize>(row: &[T], start: usize, fill: T) -> [f32; N] {
    let pack = Pack::<T, N>::load(row, start, fill);
    array::from_fn(|k| pack[k].to_f32())
}
