use core::{array, iter};

use rustcuda_device::prelude::*;

use crate::block::{self, PerWarp};

/// Packs that a thread loads before it needs the first: what the memory has under way at once.
const AT_ONCE: usize = 4;
const NOTHING: F32x4 = Pack([0.0; 4]);

/// Adds up the elements of `x`: each block a part of them, into its own element of `partial`.
///
/// Launch: one-dimensional, as many blocks as `partial` has elements; 32 to 1024 threads, in whole
/// warps. A second launch, of one block, then sums `partial`: so the result is the same each time.
#[kernel(launch_bounds(1024))]
pub fn reduce_sum(x: &[f32], mut partial: DisjointSlice<f32>) {
    static mut PER_WARP: PerWarp = SharedArray::UNINIT;

    let (thread, block) = (thread::threadIdx_x(), thread::blockIdx_x());
    let first = (block * thread::blockDim_x() + thread) as usize;
    let step = (thread::gridDim_x() * thread::blockDim_x()) as usize;
    // SAFETY: a pack is its elements.
    let (head, packs, tail) = unsafe { x.align_to::<F32x4>() };
    let mut total = 0.0;
    let starts = iter::successors(Some(first), |at| Some(at + AT_ONCE * step));
    for at in starts.take_while(|at| *at < packs.len()) {
        let loaded: [_; AT_ONCE] =
            array::from_fn(|i| packs.get(at + i * step).copied().unwrap_or(NOTHING));
        for Pack([a, b, c, d]) in &loaded {
            total += (a + b) + (c + d);
        }
    }
    total += head.get(first).unwrap_or(&0.0) + tail.get(first).unwrap_or(&0.0);
    // SAFETY: all threads of the block come here; its first one alone writes its element.
    unsafe {
        let total = block::sum(total, &raw mut PER_WARP);
        if thread == 0 && (block as usize) < partial.len() {
            *partial.get_unchecked_mut(block as usize) = total;
        }
    }
}
