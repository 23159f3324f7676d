use core::slice;

use rustcuda_device::math::fast_divide;
use rustcuda_device::prelude::*;

const THREADS: u32 = 256;

/// Multiplies `silu` of the first half of each row of `x` by the second half.
///
/// Rows of `x` have `2 * columns` elements, those of `y` have `columns`; all are contiguous.
/// `silu(v)` is `v / (1 + exp(-v))`, computed in f32.
///
/// Launch: one block of 256 threads a row.
#[kernel(launch_bounds(THREADS))]
pub unsafe fn silu_and_mul(x: *const f16, y: *mut f16, columns: usize) {
    let row = thread::blockIdx_x() as usize;
    // SAFETY: the caller passes whole rows, and a block has its row of `y` for itself.
    let (gate, value, mut y) = unsafe {
        (
            slice::from_raw_parts(x.add(2 * row * columns), columns),
            slice::from_raw_parts(x.add((2 * row + 1) * columns), columns),
            DisjointSlice::from_raw_parts(y.add(row * columns), columns),
        )
    };
    let packs = columns.div_ceil(8) as u32;
    for pack in (thread::threadIdx_x()..packs).step_by(THREADS as usize) {
        let start = 8 * pack as usize;
        let gate = F16x8::load(gate, start, 0.0);
        let value = F16x8::load(value, start, 0.0);
        let product = F16x8::from_fn(|k| {
            let gate = gate[k] as f32;
            (fast_divide(gate, 1.0 + (-gate).exp()) * value[k] as f32) as f16
        });
        // SAFETY: no other thread has this `start`.
        product.store(unsafe { y.chunk_unchecked_mut::<8>(start) });
    }
}
