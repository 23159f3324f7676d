use rustcuda_device::prelude::*;

/// Every thread's own index.
#[kernel]
pub fn thread_index_1d(mut out: DisjointSlice<u64>) {
    let index = thread::index_1d();
    let value = index.get() as u64;
    if let Some(place) = out.get_mut(index) {
        *place = value;
    }
}
