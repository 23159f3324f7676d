//! rustcuda_device::async_copy, swizzle and cusimd.

use rustcuda_device::async_copy::*;
use rustcuda_device::barrier::{
    Barrier, mbarrier_arrive, mbarrier_init, mbarrier_test_wait_parity,
};
use rustcuda_device::cusimd::{CuSimd, Double2, Float4, Int2};
use rustcuda_device::prelude::*;
use rustcuda_device::swizzle::{
    Swizzle, bank_of, banks_used, column_offsets, conflict_degree, row_offsets,
};

use crate::rows::kernels;

/// Kernels in which a block of 64 threads brings 64 pieces to shared memory and gives them in reverse.
macro_rules! copies {
    ($($kernel:ident: $words:literal |$to:ident, $from:ident, $thread:ident| $copy:expr;)*) => {
        $(
            #[kernel]
            #[cfg(cuda_arch = "80")]
            pub unsafe fn $kernel(from: *const u32, to: *mut u32) {
                static mut TILE: SharedArray<u32, { 64 * $words }, 16> = SharedArray::UNINIT;
                let $thread = thread::threadIdx_x() as usize;
                // SAFETY: the test passes 64 pieces; barriers are between writing and reading.
                unsafe {
                    let start = (&raw mut TILE).cast::<u32>();
                    let ($to, $from) = (start.add($words * $thread), from.add($words * $thread));
                    $copy;
                    cp_async_commit_group();
                    cp_async_wait_group(0);
                    thread::sync_threads();
                    for word in 0..$words {
                        *to.add($words * $thread + word) = *start.add($words * (63 - $thread) + word);
                    }
                }
            }
        )*
    };
}

// Those filled with zeros copy as many bytes as the thread's number, at most all.
copies! {
    async_copy_ca_4: 1 |to, from, thread| cp_async_ca_4(to, from);
    async_copy_ca_8: 2 |to, from, thread| cp_async_ca_8(to, from);
    async_copy_ca_16: 4 |to, from, thread| cp_async_ca_16(to, from);
    async_copy_cg_16: 4 |to, from, thread| cp_async_cg_16(to, from);
    async_copy_ca_zfill_4: 1 |to, from, thread| cp_async_ca_zfill_4(to, from.cast(), thread.min(4) as u32);
    async_copy_ca_zfill_8: 2 |to, from, thread| cp_async_ca_zfill_8(to, from.cast(), thread.min(8) as u32);
    async_copy_ca_zfill_16: 4 |to, from, thread| cp_async_ca_zfill_16(to, from.cast(), thread.min(16) as u32);
    async_copy_cg_zfill_16: 4 |to, from, thread| cp_async_cg_zfill_16(to, from.cast(), thread.min(16) as u32);
}

/// Sums rows of 32 numbers with a warp, of which the next one is always under way.
#[kernel]
#[cfg(cuda_arch = "80")]
pub unsafe fn async_copy_pipeline(rows: usize, x: *const f32, sums: *mut f32) {
    static mut ROWS: SharedArray<f32, 64> = SharedArray::UNINIT;
    let lane = thread::threadIdx_x() as usize;
    // SAFETY: the test passes so many rows; each lane reads only what it copied.
    unsafe {
        let place = (&raw mut ROWS).cast::<f32>().add(lane);
        let start = |row: usize| {
            if row < rows {
                cp_async_ca_4(
                    place.add(32 * (row % 2)).cast(),
                    x.add(32 * row + lane).cast(),
                );
            }
            cp_async_commit_group();
        };
        start(0);
        let mut sum = 0.0;
        for row in 0..rows {
            start(row + 1);
            cp_async_wait_group(1);
            sum += *place.add(32 * (row % 2));
        }
        cp_async_wait_all();
        *sums.add(lane) = sum;
    }
}

/// Reverses 64 numbers in each of four ways to hear from a barrier that copies have ended.
#[kernel]
#[cfg(cuda_arch = "80")]
pub unsafe fn async_copy_arrive(x: *const u32, y: *mut u32) {
    static mut TILE: SharedArray<u32, 64> = SharedArray::UNINIT;
    static mut COPIED: Barrier = Barrier::UNINIT;
    let thread = thread::threadIdx_x() as usize;
    // SAFETY: the test launches 64 threads and passes 256 numbers.
    unsafe {
        let copied = &raw mut COPIED;
        if thread == 0 {
            mbarrier_init(copied, 64);
        }
        thread::sync_threads();
        for way in 0..4 {
            cp_async_ca_4(
                (&raw mut TILE).cast::<u32>().add(thread),
                x.add(64 * way + thread),
            );
            match way {
                0 => cp_async_mbarrier_arrive_noinc(copied),
                1 => cp_async_mbarrier_arrive_noinc_shared(copied),
                // These two make the barrier expect their own arrival, so that the thread's is missing.
                2 => cp_async_mbarrier_arrive(copied),
                _ => cp_async_mbarrier_arrive_shared(copied),
            }
            if way >= 2 {
                mbarrier_arrive(copied);
            }
            while !mbarrier_test_wait_parity(copied, way as u32 % 2) {}
            *y.add(64 * way + thread) = TILE[63 - thread];
            thread::sync_threads();
        }
    }
}

kernels! {
    swizzle_apply(offset): u64 => u64 = [
        Swizzle::<5, 0, 5>::apply(offset as usize) as u64,
        Swizzle::<3, 2, 6>::apply(offset as usize) as u64,
        Swizzle::<3, 2, 6>::undo(Swizzle::<3, 2, 6>::apply(offset as usize)) as u64
    ];
    swizzle_banks(stride): u64 => u64 = [
        conflict_degree(&column_offsets(stride as usize, 3), 4) as u64,
        banks_used(&column_offsets(stride as usize, 3), 4) as u64,
        conflict_degree(&row_offsets(3, stride as usize), 4) as u64,
        conflict_degree(&column_offsets(stride as usize, 3).map(Swizzle::<5, 0, 5>::apply), 4) as u64,
        bank_of(stride as usize, 8) as u64
    ];
    cusimd_float4(x, y, z, w): f32 => f32 = {
        let vector = Float4::new([x, y, z, w]);
        let (first, last) = (vector.lo(), vector.hi());
        [vector.x(), vector.y(), vector.z(), vector.w(), first.y(), last.xy().0, vector[2], vector.get::<3>()]
    };
    cusimd_other(x): i32 => i32 = {
        let (ints, doubles) = (Int2::new([x, x + 1]), Double2::new([f64::from(x), 0.5]));
        let many = CuSimd::<i32, 8>::new([x; 8]);
        [ints.at((x & 1) as usize), doubles.x() as i32, many.len() as i32, many.to_array()[7]]
    };
}
