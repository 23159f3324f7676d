use rustcuda_device::prelude::*;

const SIDE: usize = 32;
const PITCH: usize = SIDE + 1;
/// Rows of a tile that the block moves at once.
const ROWS: usize = 8;

/// Writes the transpose of `x`, which has `rows` times `columns` elements, to `y`.
///
/// The rows of `x` begin `x_stride` elements apart; `y` is contiguous.
///
/// Launch: blocks of (32, 8) threads; the grid has tiles of 32 columns along x, of 32 rows along y.
#[kernel(launch_bounds(SIDE * ROWS))]
pub unsafe fn transpose(x: *const f32, x_stride: usize, y: *mut f32, rows: usize, columns: usize) {
    // One column more than is used: the elements of a column then lie in different banks.
    static mut TILE: SharedArray<f32, { SIDE * PITCH }> = SharedArray::UNINIT;

    let (lane, warp) = (thread::threadIdx_x() as usize, thread::threadIdx_y() as usize);
    let left = SIDE * thread::blockIdx_x() as usize;
    let top = SIDE * thread::blockIdx_y() as usize;

    // SAFETY: indices are checked against the matrix, and are below the tile's sides.
    unsafe {
        for step in 0..SIDE / ROWS {
            let i = ROWS * step + warp;
            if top + i < rows && left + lane < columns {
                TILE[i * PITCH + lane] = *x.add((top + i) * x_stride + left + lane);
            }
        }
        thread::sync_threads();
        for step in 0..SIDE / ROWS {
            let i = ROWS * step + warp;
            if left + i < columns && top + lane < rows {
                *y.add((left + i) * rows + top + lane) = TILE[lane * PITCH + i];
            }
        }
    }
}
