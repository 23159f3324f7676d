use rustcuda_device::prelude::*;

/// Computes `y = a * x + y`, four elements a thread.
///
/// Launch: one-dimensional, with at least `len(y) / 4` threads in all.
#[kernel]
pub fn saxpy(a: f32, x: &[f32], mut y: DisjointSlice<f32>) {
    let index = thread::index_1d();
    let start = 4 * index.get();
    // SAFETY: every thread takes chunks of four.
    let y = unsafe { y.chunk_mut::<4>(index) };
    let old = F32x4::load(y, 0, 0.0);
    let x = F32x4::load(x, start, 0.0);
    F32x4::from_fn(|k| a * x[k] + old[k]).store(y);
}
