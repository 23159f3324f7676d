use rustcuda_device::prelude::*;
use thread::{Index2D, LinearTiles};

/// Writes its index to each tile of four.
#[kernel]
pub fn disjoint_tiles(mut out: DisjointSlice<f32, LinearTiles<4>>) {
    let index = thread::index_1d();
    let value = index.get() as f32;
    F32x4::from_fn(|_| value).store(out.tile_mut(index));
}

/// The same by scalar writes, from a grid of any size.
#[kernel]
pub fn disjoint_tiles_strided(mut out: DisjointSlice<f32, LinearTiles<3>>) {
    for index in thread::grid_stride(out.tiles()) {
        let value = index.get() as f32;
        for place in out.tile_mut(index) {
            *place = value;
        }
    }
}

/// Length, emptiness, and what is beyond the end, seen by thread 0.
#[kernel]
pub fn disjoint_length(empty: &[u32], mut out: DisjointSlice<u32>) {
    let length = out.len() as u32;
    let flags = u32::from(out.is_empty()) + 2 * u32::from(empty.is_empty());
    if let Some((place, index)) = out.get_mut_indexed() {
        *place = 10 * length + flags;
        let _ = index;
    }
}

/// Doubles the elements through a slice made of a pointer.
#[kernel]
pub unsafe fn disjoint_parts(data: *mut u32, length: usize) {
    // SAFETY: promised by the launcher.
    let mut slice = unsafe { DisjointSlice::from_raw_parts(data, length) };
    if let Some((place, _)) = slice.get_mut_indexed() {
        *place *= 2;
    }
}

/// Writes 100 times the row and the column through a slice with rows made of a pointer.
#[kernel]
pub unsafe fn disjoint_rows(data: *mut u32, length: usize, width: u32) {
    // SAFETY: promised by the launcher.
    let mut rows = unsafe {
        DisjointSlice::<_, thread::Runtime2DIndex>::from_raw_parts_with_space(data, length, width)
    };
    // SAFETY: promised by the launcher; nothing is written through it.
    let wide = unsafe { DisjointSlice::from_raw_parts_with_space(data, length, 2 * width) };
    // An index of the longer rows does not reach over the end of a shorter one.
    if let Some(index) = thread::index_2d_runtime(&wide) {
        let value = (100 * index.row() + index.col()) as u32;
        if let Some(place) = rows.get_mut(index) {
            *place += value;
        }
    }
}

/// Nothing has more than one owner if it has no size.
#[kernel]
pub unsafe fn disjoint_no_size(out: *mut u32) {
    let mut units = [(); 4];
    // SAFETY: the array is this thread's own.
    let mut slice = unsafe { DisjointSlice::from_mut_slice(&mut units) };
    let got = slice.get_mut(thread::index_1d()).is_some();
    // SAFETY: promised by the launcher.
    unsafe { *out = u32::from(got) };
}

/// One element a thread, without checks.
#[kernel]
pub unsafe fn disjoint_unchecked(mut out: DisjointSlice<f32, Index2D<64>>) {
    let index = thread::index_2d_row() * 64 + thread::index_2d_col();
    // SAFETY: promised by the launcher.
    unsafe { *out.get_unchecked_mut(index) = index as f32 };
}

/// `y = a * x + y`, one element a thread.
#[kernel]
pub fn disjoint_saxpy(a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
    if let Some((y, index)) = y.get_mut_indexed()
        && let Some(x) = x.get(index.get())
    {
        *y += a * x;
    }
}

/// Counts each thread's runs into their elements; runs that come after the last one would count once more.
#[kernel]
pub fn disjoint_runs(mut y: DisjointSlice<u32, thread::LinearTiles<3>>) {
    let mut runs = y.grid_stride_runs32(thread::index_1d_u32(thread::launch_context()));
    for count in 1.. {
        let Some(mut run) = runs.next_run() else {
            break;
        };
        for at in 0..run.len() {
            if let Some(mut element) = run.at(at) {
                element.write(count);
            }
        }
    }
    for _ in 0..4 {
        if runs.next_run().is_some() {
            debug::trap();
        }
    }
}
