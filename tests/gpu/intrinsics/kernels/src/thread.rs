use rustcuda_device::prelude::*;
use thread::{Index2D, Index3D, Runtime2DIndex, WarpIndex};

/// Every thread's own index.
#[kernel]
pub fn thread_index_1d(mut out: DisjointSlice<u64>) {
    let index = thread::index_1d();
    let value = index.get() as u64;
    if let Some(place) = out.get_mut(index) {
        *place = value;
    }
}

/// Adds one; the launch says whether it has an index at all.
#[kernel]
pub fn thread_index_1d_valid(mut out: DisjointSlice<u32>) {
    let index = thread::index_1d();
    let valid = u32::from(index.is_valid()) + 2 * u32::from(index.in_bounds(usize::MAX - 1));
    // SAFETY: every thread writes the same.
    unsafe { *out.get_unchecked_mut(0) = valid };
}

/// The twelve numbers of the thread that `at` names in its grid, then its row and column.
#[kernel]
pub unsafe fn thread_axes(at: u32, out: *mut u32) {
    let block = thread::blockIdx_x()
        + thread::gridDim_x() * (thread::blockIdx_y() + thread::gridDim_y() * thread::blockIdx_z());
    let inner = thread::threadIdx_x()
        + thread::blockDim_x()
            * (thread::threadIdx_y() + thread::blockDim_y() * thread::threadIdx_z());
    let size = thread::blockDim_x() * thread::blockDim_y() * thread::blockDim_z();
    if block * size + inner != at {
        return;
    }
    let values = [
        thread::threadIdx_x(),
        thread::threadIdx_y(),
        thread::threadIdx_z(),
        thread::blockIdx_x(),
        thread::blockIdx_y(),
        thread::blockIdx_z(),
        thread::blockDim_x(),
        thread::blockDim_y(),
        thread::blockDim_z(),
        thread::gridDim_x(),
        thread::gridDim_y(),
        thread::gridDim_z(),
        thread::index_2d_row() as u32,
        thread::index_2d_col() as u32,
    ];
    for (place, value) in values.into_iter().enumerate() {
        // SAFETY: the launcher gives 14 places.
        unsafe { *out.add(place) = value };
    }
}

/// Numbers the elements of rows of 100.
#[kernel]
pub fn thread_index_2d(mut out: DisjointSlice<u32, Index2D<100>>) {
    if let Some(index) = thread::index_2d() {
        let value = index.get() as u32;
        if let Some(place) = out.get_mut(index) {
            *place = value;
        }
    }
}

/// Numbers the elements of planes of 5 rows of 7.
#[kernel]
pub fn thread_index_3d(mut out: DisjointSlice<u32, Index3D<5, 7>>) {
    if let Some((place, index)) = out.get_mut_indexed() {
        *place = index.get() as u32;
    }
}

/// 1000 times the row and the column, of rows as long as the tensor's.
#[kernel]
pub fn thread_index_2d_runtime(mut out: DisjointSlice<u32, Runtime2DIndex>) {
    if let Some(index) = thread::index_2d_runtime(&out) {
        let value = (1000 * index.row() + index.col()) as u32;
        if let Some(place) = out.get_mut(index) {
            *place = value;
        }
    }
}

/// Every warp's own index.
#[kernel]
pub fn thread_warp_index(mut out: DisjointSlice<u32, WarpIndex>) {
    if let Some(index) = thread::warp_index() {
        let value = index.get() as u32;
        if let Some(place) = out.get_mut(index) {
            *place += value;
        }
    }
}

/// Adds each index to its element, from a grid of any size.
#[kernel]
pub fn thread_grid_stride(mut out: DisjointSlice<u32>) {
    for index in thread::grid_stride(out.len()) {
        let value = index.get() as u32;
        if let Some(place) = out.get_mut(index) {
            *place += value;
        }
    }
}

/// `y = a * x + y` from a grid of any size.
#[kernel]
pub fn thread_grid_stride_saxpy(a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
    let length = y.len().min(x.len());
    for index in thread::grid_stride(length) {
        let x = x[index.get()];
        if let Some(y) = y.get_mut(index) {
            *y += a * x;
        }
    }
}

/// Each multiprocessor writes a 1 at its number; the last two places are `nsmid` and the grid's number.
#[kernel]
pub unsafe fn thread_multiprocessors(out: *mut u64, places: u32) {
    // SAFETY: the launcher gives places enough, and all writers of one write the same.
    unsafe {
        if thread::smid() < places {
            *out.add(thread::smid() as usize) = 1;
        }
        *out.add(places as usize) = u64::from(thread::nsmid());
        *out.add(places as usize + 1) = thread::gridid();
    }
}

/// One element a thread, of blocks of 32 times 4 and no others.
#[kernel(block(32, 4), unchecked_indexing)]
pub fn thread_block_size(mut out: DisjointSlice<u32, Index2D<32>>) {
    if let Some((place, _)) = out.get_mut_indexed() {
        *place = thread::blockDim_x() * 100 + thread::blockDim_y();
    }
}

/// Each thread's block in its cluster of two.
#[cfg(cuda_arch = "90")]
#[cluster_launch(2)]
#[kernel(launch_bounds(64))]
pub fn thread_cluster(mut out: DisjointSlice<u32>) {
    if let Some((place, _)) = out.get_mut_indexed() {
        let rank: u32;
        // SAFETY: reads a special register.
        unsafe {
            core::arch::asm!("mov.u32 {}, %cluster_ctarank;", out(reg32) rank, options(pure, nomem));
        }
        *place = rank;
    }
}

/// The square, for several types.
#[kernel(f32, f16, i64)]
pub fn thread_typed<T>(x: &[T], mut y: DisjointSlice<T>)
where
    T: Copy + core::ops::Mul<Output = T>,
{
    if let Some((y, index)) = y.get_mut_indexed() {
        *y = x[index.get()] * x[index.get()];
    }
}
