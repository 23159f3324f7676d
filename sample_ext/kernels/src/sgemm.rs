use core::{array, slice};

use rustcuda_device::prelude::*;

/// Rows and columns of C that a block computes.
const SIDE: usize = 128;
/// Columns of A, and rows of B, that are in shared memory at once.
const DEPTH: usize = 8;
/// Rows and columns of C that a thread computes: two groups of four each, half a side apart, so that
/// the threads of a warp read shared memory side by side.
const GROUPS: usize = 2;

type Tile = SharedArray<f32, { 2 * DEPTH * SIDE }, 16>;
type Sums = [[[F32x4; GROUPS]; 4]; GROUPS];

/// Multiplies matrices: `c = a * b`, all contiguous, `a` of `m` times `k`, `b` of `k` times `n` elements.
///
/// Launch: blocks of 256 threads; the grid has tiles of 128 columns of `c` along x, of 128 rows along y.
#[kernel(launch_bounds(256, 2))]
pub unsafe fn sgemm(a: *const f32, b: *const f32, c: *mut f32, m: u32, n: u32, k: u32) {
    static mut A: Tile = SharedArray::UNINIT;
    static mut B: Tile = SharedArray::UNINIT;

    let (m, n, k) = (m as usize, n as usize, k as usize);
    let thread = thread::threadIdx_x() as usize;
    let left = SIDE * thread::blockIdx_x() as usize;
    let top = SIDE * thread::blockIdx_y() as usize;
    // SAFETY: rows beyond a matrix are empty, and indices into the tiles are below their sides; a
    // barrier stands between writing a half of the tiles and reading it.
    unsafe {
        let (a_tile, b_tile) = ((&raw mut A).cast::<f32>(), (&raw mut B).cast::<f32>());
        // What this thread brings: a pack of a row of A, and one of a row of B.
        let (a_row, a_column) = (thread / 2, 4 * (thread % 2));
        let (b_row, b_column) = (thread / 32, 4 * (thread % 32));
        let a = row(a, top + a_row, m, k);
        let fetch = |at: usize| {
            (
                F32x4::load(a, at + a_column, 0.0),
                F32x4::load(row(b, at + b_row, k, n), left + b_column, 0.0),
            )
        };
        let put = |half: usize, (a, b): (F32x4, F32x4)| {
            for i in 0..4 {
                *a_tile.add((half * DEPTH + a_column + i) * SIDE + a_row) = a[i];
            }
            *b_tile.add((half * DEPTH + b_row) * SIDE + b_column).cast() = b;
        };

        let (x, y) = (4 * (thread % 16), 4 * (thread / 16));
        let mut sums: Sums = [[[F32x4::from_fn(|_| 0.0); GROUPS]; 4]; GROUPS];
        put(0, fetch(0));
        thread::sync_threads();
        let mut half = 0;
        for at in (0..k).step_by(DEPTH) {
            let next = fetch(at + DEPTH);
            for step in 0..DEPTH {
                let line = (half * DEPTH + step) * SIDE;
                let a: [F32x4; GROUPS] =
                    array::from_fn(|group| *a_tile.add(line + y + group * SIDE / 2).cast());
                let b: [F32x4; GROUPS] =
                    array::from_fn(|group| *b_tile.add(line + x + group * SIDE / 2).cast());
                multiply_add(&mut sums, a, b);
            }
            half = 1 - half;
            put(half, next);
            thread::sync_threads();
        }
        for down in 0..GROUPS {
            for i in 0..4 {
                let row = top + y + down * SIDE / 2 + i;
                let length = if row < m { n } else { 0 };
                let mut c = DisjointSlice::from_raw_parts(c.wrapping_add(row * n), length);
                for across in 0..GROUPS {
                    let column = left + x + across * SIDE / 2;
                    sums[down][i][across].store(c.chunk_unchecked_mut::<4>(column));
                }
            }
        }
    }
}

/// Row `index` of a matrix; an empty one beyond its end.
#[inline(always)]
unsafe fn row<'a>(matrix: *const f32, index: usize, rows: usize, columns: usize) -> &'a [f32] {
    let length = if index < rows { columns } else { 0 };
    unsafe { slice::from_raw_parts(matrix.wrapping_add(index * columns), length) }
}

/// Adds the product of a column of A and a row of B.
#[inline(always)]
fn multiply_add(sums: &mut Sums, a: [F32x4; GROUPS], b: [F32x4; GROUPS]) {
    for down in 0..GROUPS {
        for i in 0..4 {
            for across in 0..GROUPS {
                for j in 0..4 {
                    sums[down][i][across][j] += a[down][i] * b[across][j];
                }
            }
        }
    }
}
