use rustcuda_device::bulk::{self, Barrier};
use rustcuda_device::prelude::*;

use crate::store;

/// Two rows of 256 numbers come one after the other; each thread gets those of its neighbour.
#[kernel]
pub unsafe fn bulk_copy(x: &[f32], out: *mut f32) {
    static mut ROW: SharedArray<f32, 256, 16> = SharedArray::UNINIT;
    static mut ARRIVED: Barrier = Barrier::UNINIT;
    let thread = thread::threadIdx_x() as usize;
    let mut values = [0.0; 2];
    bulk::prefetch(x);
    unsafe {
        if thread == 0 {
            bulk::init(&raw mut ARRIVED);
        }
        thread::sync_threads();
        for (phase, value) in values.iter_mut().enumerate() {
            if thread == 0 {
                let row = x.as_ptr().add(256 * phase);
                bulk::copy_to_shared((&raw mut ROW).cast(), row.cast(), 1024, &raw mut ARRIVED);
            }
            bulk::wait(&raw mut ARRIVED, phase as u32);
            *value = ROW[thread ^ 1];
            thread::sync_threads();
        }
        store(out, values);
    }
}
