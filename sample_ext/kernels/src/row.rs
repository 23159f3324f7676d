//! How the threads of a block share a row of f32.

use core::{array, iter};

use rustcuda_device::prelude::*;

/// Packs that a thread keeps in registers, so that most rows are loaded once only. They also keep
/// enough loads under way at once; a block should be small enough for its rows to fill them.
const KEPT: usize = 4;

/// One thread's part of a row: every so-many-th pack, so that neighbours load neighbouring packs.
pub struct Share<'a> {
    row: &'a [f32],
    fill: f32,
    start: usize,
    step: usize,
    kept: [F32x4; KEPT],
}

impl<'a> Share<'a> {
    /// Loads this thread's part; elements beyond the row's end count as `fill`.
    #[inline(always)]
    pub fn load(row: &'a [f32], fill: f32) -> Self {
        let start = 4 * thread::threadIdx_x() as usize;
        let step = 4 * thread::blockDim_x() as usize;
        let kept = array::from_fn(|i| F32x4::load(row, start + i * step, fill));
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
        let mut add = |pack: F32x4| {
            for value in &pack.0 {
                result = combine(result, *value);
            }
        };
        for pack in &self.kept {
            add(*pack);
        }
        for at in self.rest() {
            add(F32x4::load(self.row, at, self.fill));
        }
        result
    }

    /// Stores `change(index of its first element, pack)` for each pack of this part.
    ///
    /// # Safety
    ///
    /// `target` is as long as the row, and its rows belong to blocks as those of the source do.
    #[inline(always)]
    pub unsafe fn store(
        &self,
        target: &mut DisjointSlice<f32>,
        change: impl Fn(usize, F32x4) -> F32x4,
    ) {
        // SAFETY: no other thread has these indices.
        let mut put =
            |at, pack| change(at, pack).store(unsafe { target.chunk_unchecked_mut::<4>(at) });
        for (i, pack) in self.kept.iter().enumerate() {
            put(self.start + i * self.step, *pack);
        }
        for at in self.rest() {
            put(at, F32x4::load(self.row, at, self.fill));
        }
    }

    /// Where the packs begin that are not kept: in rows of more than 16 elements a thread.
    #[inline(always)]
    fn rest(&self) -> impl Iterator<Item = usize> {
        let first = self.start + KEPT * self.step;
        // Not `step_by`, which divides to count its steps.
        iter::successors(Some(first), |at| Some(at + self.step))
            .take_while(|at| *at < self.row.len())
    }
}
