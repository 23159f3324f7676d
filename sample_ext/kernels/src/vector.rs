//! How all threads of a grid share a long vector.

use core::{array, iter};

use rustcuda_device::prelude::*;

/// Packs that a thread loads before it needs the first: what the memory has under way at once.
const AT_ONCE: usize = 4;

/// Calls `visit` with every element of this thread's part of `x`, and some times with `fill`, so that
/// all threads do the same; neighbours load neighbouring packs.
#[inline(always)]
pub fn for_each(x: &[f32], fill: f32, mut visit: impl FnMut(f32)) {
    let first = (thread::blockIdx_x() * thread::blockDim_x() + thread::threadIdx_x()) as usize;
    let step = 4 * (thread::gridDim_x() * thread::blockDim_x()) as usize;
    let unaligned = x.as_ptr().align_offset(16).min(x.len());
    let (head, packs) = x.split_at(unaligned);
    let starts = iter::successors(Some(4 * first), |at| Some(at + AT_ONCE * step));
    for at in starts.take_while(|at| *at < packs.len()) {
        let loaded: [_; AT_ONCE] = array::from_fn(|i| F32x4::load(packs, at + i * step, fill));
        for pack in &loaded {
            for value in pack.iter() {
                visit(*value);
            }
        }
    }
    visit(head.get(first).copied().unwrap_or(fill));
}
