use core::{array, slice};

use rustcuda_device::prelude::*;

const SIDE: usize = 64;
/// One column more than is used: the elements of a column then lie in different banks.
const PITCH: usize = SIDE + 1;
/// Rows of a tile that the block moves at once, a pack a thread.
const ROWS: usize = 16;

/// Writes the transpose of `x`, which has `rows` times `columns` elements, to `y`.
///
/// The rows of `x` begin `x_stride` elements apart; `y` is contiguous.
///
/// Launch: blocks of (16, 16) threads; the grid has tiles of 64 rows along x, of 64 columns along y.
#[kernel(launch_bounds(16 * ROWS))]
pub unsafe fn transpose(x: *const f32, x_stride: usize, y: *mut f32, rows: usize, columns: usize) {
    static mut TILE: SharedArray<f32, { SIDE * PITCH }> = SharedArray::UNINIT;

    let (lane, first) = (
        4 * thread::threadIdx_x() as usize,
        thread::threadIdx_y() as usize,
    );
    let top = SIDE * thread::blockIdx_x() as usize;
    let left = SIDE * thread::blockIdx_y() as usize;
    // SAFETY: rows beyond the matrix are empty, and indices into the tile are below its sides.
    unsafe {
        let packs: [_; SIDE / ROWS] = array::from_fn(|step| {
            let row = top + first + ROWS * step;
            let length = if row < rows { columns } else { 0 };
            let x = slice::from_raw_parts(x.wrapping_add(row * x_stride), length);
            F32x4::load(x, left + lane, 0.0)
        });
        for step in 0..SIDE / ROWS {
            for k in 0..4 {
                TILE[(first + ROWS * step) * PITCH + lane + k] = packs[step][k];
            }
        }
        thread::sync_threads();
        for step in 0..SIDE / ROWS {
            let i = first + ROWS * step;
            let length = if left + i < columns { rows } else { 0 };
            let mut y = DisjointSlice::from_raw_parts(y.wrapping_add((left + i) * rows), length);
            let pack = F32x4::from_fn(|k| TILE[(lane + k) * PITCH + i]);
            pack.store(y.chunk_unchecked_mut::<4>(top + lane));
        }
    }
}
