//! How the threads of a block share a row.

use core::{array, iter};

use rustcuda_device::pack::PackElement;
use rustcuda_device::prelude::*;

/// One thread's part of a row: every so-many-th pack of `N` elements, so that neighbours load
/// neighbouring packs.
///
/// `KEPT` packs stay in registers, so that most rows are loaded once only, and enough loads are under
/// way at once. A block should have few enough threads for a row to fill them all.
pub struct Share<'a, T: Float + PackElement<N>, const N: usize, const KEPT: usize> {
    row: &'a [T],
    fill: T,
    start: usize,
    step: usize,
    kept: [Pack<T, N>; KEPT],
}

impl<'a, T: Float + PackElement<N>, const N: usize, const KEPT: usize> Share<'a, T, N, KEPT> {
    /// Loads this thread's part; elements beyond the row's end count as `fill`.
    #[inline(always)]
    pub fn load(row: &'a [T], fill: T) -> Self {
        let start = N * thread::threadIdx_x() as usize;
        let step = N * thread::blockDim_x() as usize;
        let kept = array::from_fn(|i| Pack::load(row, start + i * step, fill));
        Self {
            row,
            fill,
            start,
            step,
            kept,
        }
    }

    /// Combines all elements of this part.
    #[inline(always)]
    pub fn fold(&self, initial: f32, combine: impl Fn(f32, f32) -> f32) -> f32 {
        let mut result = initial;
        let mut add = |pack: &Pack<T, N>| {
            for value in pack.iter() {
                result = combine(result, value.to_f32());
            }
        };
        // Borrowed: an array that is moved into its iterator stays in memory.
        for pack in &self.kept {
            add(pack);
        }
        for at in self.rest() {
            add(&Pack::load(self.row, at, self.fill));
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
        let mut put = |at, pack: &Pack<T, N>| {
            let changed = change(at, array::from_fn(|k| pack[k].to_f32()));
            let pack = Pack::from_fn(|k| T::from_f32(changed[k]));
            // SAFETY: no other thread has these indices.
            pack.store(unsafe { target.chunk_unchecked_mut::<N>(at) });
        };
        for (i, pack) in self.kept.iter().enumerate() {
            put(self.start + i * self.step, pack);
        }
        for at in self.rest() {
            put(at, &Pack::load(self.row, at, self.fill));
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
}
