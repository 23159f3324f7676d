use rustcuda_device::prelude::*;

/// Adds to `counts` how many elements of `x` lie in each of its intervals, which are equally wide and
/// together reach from `low` to `high`; elements outside are not counted, `high` is in the last one.
///
/// Launch: one-dimensional, with 4 bytes of dynamic shared memory for each element of `counts`.
#[kernel(launch_bounds(1024))]
pub fn histogram(x: &[f32], low: f32, high: f32, counts: &[DeviceAtomicU32]) {
}
