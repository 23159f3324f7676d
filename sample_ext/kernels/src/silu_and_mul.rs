use core::slice;

use rustcuda_device::prelude::*;

/// Multiplies `silu` of the first half of each row of `x` by the second half.
///
/// Rows of `x` have `2 * columns` elements, those of `y` have `columns`; all are contiguous.
/// `silu(v)` is `v / (1 + exp(-v))`, computed in f32.
///
/// Launch: the grid has rows along x and, along y, as many blocks as cover `columns` at eight
/// elements a thread.
#[kernel]
pub unsafe fn silu_and_mul(x: *const f16, y: *mut f16, columns: usize) {
    let row = thread::blockIdx_x() as usize;
    // SAFETY: the caller passes whole rows.
    let gate = unsafe { slice::from_raw_parts(x.add(2 * row * columns), columns) };
    let value = unsafe { slice::from_raw_parts(x.add((2 * row + 1) * columns), columns) };
    let mut y = unsafe { DisjointSlice::from_raw_parts(y.add(row * columns), columns) };

    let thread = thread::blockIdx_y() * thread::blockDim_x() + thread::threadIdx_x();
    let start = 8 * thread as usize;
    let gate = F16x8::load(gate, start, 0.0);
    let value = F16x8::load(value, start, 0.0);
    // SAFETY: no other thread has this row and `start`.
    let y = unsafe { y.chunk_unchecked_mut::<8>(start) };
    F16x8::from_fn(|k| {
        let gate = gate[k] as f32;
        (gate / (1.0 + (-gate).exp()) * value[k] as f32) as f16
    })
    .store(y);
}
