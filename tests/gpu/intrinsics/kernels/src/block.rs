use rustcuda_device::block;
use rustcuda_device::ops::{BitOr, Max, Min, Sum};
use rustcuda_device::prelude::*;

use crate::store;

/// Everything for blocks of any number of warps: shared memory for 32 of them.
macro_rules! blocks {
    ($($kernel:ident $exact:ident $type:ident;)*) => {
        $(
            #[kernel]
            pub unsafe fn $kernel(x: *const $type, out: *mut $type) {
                static mut A: SharedArray<$type, 32> = SharedArray::UNINIT;
                static mut B: SharedArray<$type, 32> = SharedArray::UNINIT;
                static mut C: SharedArray<$type, 32> = SharedArray::UNINIT;
                unsafe {
                    let x = *x.add(thread::threadIdx_x() as usize);
                    let sum = block::sum(x, &raw mut A);
                    let min = block::min(x, &raw mut B);
                    let max = block::max(x, &raw mut C);
                    thread::sync_threads();
                    let values = [
                        sum,
                        min,
                        max,
                        block::inclusive_scan::<$type, Sum, 32>(x, &raw mut A),
                        block::exclusive_scan::<$type, Sum, 32>(x, &raw mut B),
                        block::exclusive_scan::<$type, Max, 32>(x, &raw mut C),
                    ];
                    store(out, values);
                }
            }

            /// The same for blocks of 6 warps at most.
            #[kernel]
            pub unsafe fn $exact(x: *const $type, out: *mut $type) {
                static mut A: SharedArray<$type, 6> = SharedArray::UNINIT;
                static mut B: SharedArray<$type, 6> = SharedArray::UNINIT;
                static mut C: SharedArray<$type, 6> = SharedArray::UNINIT;
                unsafe {
                    let x = *x.add(thread::threadIdx_x() as usize);
                    let values = [
                        block::reduce::<$type, Sum, 6>(x, &raw mut A),
                        block::reduce::<$type, Min, 6>(x, &raw mut B),
                        block::inclusive_scan::<$type, Min, 6>(x, &raw mut C),
                    ];
                    store(out, values);
                }
            }
        )*
    };
}

blocks! {
    block_u32 block_6_u32 u32;
    block_i32 block_6_i32 i32;
    block_u64 block_6_u64 u64;
    block_i64 block_6_i64 i64;
    block_f32 block_6_f32 f32;
    block_f64 block_6_f64 f64;
}

/// The bits that any thread has.
#[kernel]
pub unsafe fn block_bits(x: *const u32, out: *mut u32) {
    static mut SCRATCH: SharedArray<u32, 32> = SharedArray::UNINIT;
    unsafe {
        let x = *x.add(thread::threadIdx_x() as usize);
        store(out, [block::reduce::<u32, BitOr, 32>(x, &raw mut SCRATCH)]);
    }
}
