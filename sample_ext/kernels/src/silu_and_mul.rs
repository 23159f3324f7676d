use core::slice;

use rustcuda_device::math::fast_divide;
use rustcuda_device::prelude::*;

const THREADS: u32 = 256;
/// Elements of two bytes that are loaded and stored at once.
const PACK: usize = 8;

/// Multiplies `silu` of the first half of each row of `x` by the second half.
///
/// Rows of `x` have `2 * columns` elements, those of `y` have `columns`; all are contiguous.
/// `silu(v)` is `v / (1 + exp(-v))`, computed in f32.
///
/// Launch: one block of 256 threads a row.
#[kernel(f16, bf16, launch_bounds(THREADS))]
pub unsafe fn silu_and_mul<T: Float>(x: *const T, y: *mut T, columns: usize) {
    let index = thread::blockIdx_x() as usize;
    // SAFETY: the caller passes whole rows, and a block has its row of `y` for itself.
    let (gate, value, mut y) = unsafe {
        (
            slice::from_raw_parts(x.add(2 * index * columns), columns),
            slice::from_raw_parts(x.add((2 * index + 1) * columns), columns),
            DisjointSlice::from_raw_parts(y.add(index * columns), columns),
        )
    };
    let packs = columns.div_ceil(PACK) as u32;
    for pack in (thread::threadIdx_x()..packs).step_by(THREADS as usize) {
        let start = PACK * pack as usize;
        let gate = Pack::<T, PACK>::load(gate, start, T::ZERO);
        let value = Pack::<T, PACK>::load(value, start, T::ZERO);
        let product = Pack::<T, PACK>::from_fn(|k| {
            let gate = gate[k].to_f32();
            T::from_f32(fast_divide(gate, 1.0 + (-gate).exp()) * value[k].to_f32())
        });
        // SAFETY: no other thread has this `start`.
        product.store(unsafe { y.chunk_unchecked_mut::<PACK>(start) });
    }
}
