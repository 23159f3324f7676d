use rustcuda_device::block;
use rustcuda_device::prelude::*;

use crate::vector;

/// Adds up the elements of `x`: each block a part of them, into its own element of `partial`.
///
/// Launch: one-dimensional, as many blocks as `partial` has elements; 32 to 256 threads, in whole
/// warps. A second launch, of one block, then sums `partial`: so the result is the same each time.
#[kernel(launch_bounds(256, thread::RESIDENT_THREADS / 256))]
pub fn reduce_sum(x: &[f32], mut partial: DisjointSlice<f32>) {
    static mut PER_WARP: SharedArray<f32, 8> = SharedArray::UNINIT;

    let mut total = 0.0;
    vector::for_each(x, 0.0, |value| total += value);
    let block = thread::blockIdx_x() as usize;
    // SAFETY: all threads of the block come here; its first one alone writes its element.
    unsafe {
        let total = block::sum(total, &raw mut PER_WARP);
        if thread::threadIdx_x() == 0 && block < partial.len() {
            *partial.get_unchecked_mut(block) = total;
        }
    }
}
