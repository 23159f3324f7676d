use rustcuda_device::prelude::*;
use thread::LinearTiles;

/// Computes `y = a * x + y`, four elements a thread.
///
/// Launch: one-dimensional, with at least `len(y) / 4` threads in all.
#[kernel]
pub fn saxpy(a: f32, x: &[f32], mut y: DisjointSlice<f32, LinearTiles<4>>) {
    let index = thread::index_1d();
    let x = F32x4::load(x, 4 * index.get(), 0.0);
    let y = y.tile_mut(index);
    let old = F32x4::load(y, 0, 0.0);
    F32x4::from_fn(|k| a * x[k] + old[k]).store(y);
}
