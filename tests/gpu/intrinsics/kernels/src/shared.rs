use rustcuda_device::prelude::*;
use rustcuda_device::shared;

/// Turns each block's 64 elements round.
#[kernel(launch_bounds(64))]
pub fn shared_static(mut x: DisjointSlice<u32>) {
    const SIDE: usize = 8;
    static mut TILE: SharedArray<u32, { SIDE * SIDE }> = SharedArray::UNINIT;
    let at = thread::threadIdx_x() as usize;
    if let Some((x, _)) = x.get_mut_indexed() {
        // SAFETY: each thread writes its own element; others are read after the barrier.
        unsafe { TILE[at] = *x };
    }
    thread::sync_threads();
    if let Some((x, _)) = x.get_mut_indexed() {
        // SAFETY: all elements have been written.
        *x = unsafe { TILE[SIDE * SIDE - 1 - at] };
    }
}

/// The neighbour's value, exchanged through an array that each type has for itself.
#[device]
fn exchanged<T: Copy, const N: usize>(value: T) -> T {
    static mut VALUES: SharedArray<T, N> = SharedArray::UNINIT;
    let at = thread::threadIdx_x() as usize;
    // SAFETY: each thread writes its own element; others are read between the barriers.
    unsafe {
        VALUES[at] = value;
        thread::sync_threads();
        let other = VALUES[at ^ 1];
        thread::sync_threads();
        other
    }
}

/// Exchanges neighbours' values of two types that have the size in common, and one of another size.
#[kernel(launch_bounds(32))]
pub unsafe fn shared_generic(x: *const u32, out: *mut u32) {
    let at = thread::threadIdx_x() as usize;
    // SAFETY: the launcher gives 32 elements.
    unsafe {
        let value = *x.add(at);
        let number = exchanged::<u32, 32>(value);
        let float = exchanged::<f32, 32>(value as f32);
        let wide = exchanged::<u64, 32>(u64::from(value) << 32);
        *out.add(at) = number + float as u32 + (wide >> 32) as u32;
    }
}

/// Two arrays of one name, in blocks of their own.
#[kernel(launch_bounds(32))]
pub unsafe fn shared_same_name(out: *mut u32) {
    let at = thread::threadIdx_x() as usize;
    // SAFETY: each thread uses its own elements; the launcher gives 32.
    unsafe {
        let first = {
            static mut TILE: SharedArray<u32, 32> = SharedArray::UNINIT;
            TILE[at] = 1;
            &raw mut TILE
        };
        {
            static mut TILE: SharedArray<u32, 32> = SharedArray::UNINIT;
            TILE[at] = 10;
            *out.add(at) = (*first)[at] + TILE[at];
        }
    }
}

/// The address of a shared array, as an offset, less that of its second element.
#[kernel]
pub unsafe fn shared_offset(out: *mut u64) {
    static mut TILE: SharedArray<f64, 4, 64> = SharedArray::UNINIT;
    // SAFETY: addresses only; the launcher gives 3 places.
    unsafe {
        let first = (&raw const TILE).cast::<u8>();
        let second = TILE.as_ptr().add(1).cast::<u8>();
        *out = shared::cvta_generic_to_shared_offset(second)
            - shared::cvta_generic_to_shared_offset(first);
        *out.add(1) = first as u64 % 64;
        *out.add(2) = TILE.len() as u64 + u64::from(TILE.is_empty());
    }
}

/// Each thread's number through dynamic memory, and the sizes that the launch gave.
#[kernel]
pub unsafe fn shared_dynamic(out: *mut u32) {
    let at = thread::threadIdx_x() as usize;
    let size = thread::blockDim_x() as usize;
    // SAFETY: the launcher gives 8 bytes of shared memory a thread, and elements enough.
    unsafe {
        *DynamicSharedArray::<u32>::get().add(at) = at as u32;
        *DynamicSharedArray::<u32, 128>::offset(4 * size).add(at) = 1000;
        thread::sync_threads();
        *out.add(at) = *DynamicSharedArray::<u32>::get().add(size - 1 - at)
            + *DynamicSharedArray::<u32>::get_raw()
                .add(4 * (size + at))
                .cast::<u32>();
        if at == 0 {
            *out.add(size) = shared::dynamic_smem_size();
            *out.add(size + 1) = shared::total_smem_size();
            *out.add(size + 2) = (DynamicSharedArray::<u8, 128>::get_raw() as u32) % 128;
        }
    }
}

/// Several arrays from one block of memory: bytes, then doubles, then words.
#[kernel]
pub unsafe fn shared_carved(out: *mut f64) {
    let at = thread::threadIdx_x() as usize;
    let count = thread::blockDim_x() as usize;
    let mut memory = DynamicShared::new();
    let bytes = memory.take::<u8>(count);
    let doubles = memory.take::<f64>(count);
    let words = memory.take::<u32>(count);
    // SAFETY: each thread writes its own elements; others are read after the barrier.
    unsafe {
        *bytes.add(at) = at as u8;
        *doubles.add(at) = 0.5;
        *words.add(at) = 100;
        thread::sync_threads();
        let other = count - 1 - at;
        *out.add(at) =
            f64::from(*bytes.add(other)) + *doubles.add(other) + f64::from(*words.add(other));
        if at == 0 {
            *out.add(count) = memory.bytes() as f64;
        }
    }
}
