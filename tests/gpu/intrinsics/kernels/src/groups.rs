use rustcuda_device::cooperative_groups::ops::{Max, Sum};
use rustcuda_device::cooperative_groups::*;
use rustcuda_device::prelude::*;
use rustcuda_device::thread::*;

/// Writes a thread's results into the row of its rank, in a block of any shape.
unsafe fn store<T, const N: usize>(out: *mut T, values: [T; N]) {
    let row = this_thread_block().thread_rank() as usize;
    // SAFETY: the tests give a row for each thread.
    unsafe { out.cast::<[T; N]>().add(row).write(values) }
}

/// A block of any shape of 6 warps: its size, ranks, waiting, reduction and scan.
#[kernel]
pub unsafe fn groups_block(x: *const u32, out: *mut u32) {
    static mut VALUES: SharedArray<u32, 192> = SharedArray::UNINIT;
    static mut A: SharedArray<u32, 6> = SharedArray::UNINIT;
    static mut B: SharedArray<u32, 6> = SharedArray::UNINIT;
    let block = this_thread_block();
    let rank = block.thread_rank() as usize;
    unsafe {
        let x = *x.add(rank);
        VALUES[rank] = x;
        block.sync();
        let values = [
            block.size(),
            threadIdx_x() + 100 * threadIdx_y() + 10000 * threadIdx_z(),
            VALUES[191 - rank],
            block_reduce::<u32, Max, _>(&block, x, &raw mut A),
            block_scan::<u32, Sum, _>(&block, x, &raw mut B),
        ];
        store(out, values);
    }
}

/// Reduction and scan of floats by a block of 8 warps.
#[kernel]
pub unsafe fn groups_block_f32(x: *const f32, out: *mut f32) {
    static mut A: SharedArray<f32, 8> = SharedArray::UNINIT;
    static mut B: SharedArray<f32, 8> = SharedArray::UNINIT;
    let block = this_thread_block();
    unsafe {
        let x = *x.add(block.thread_rank() as usize);
        let values = [
            block_reduce::<f32, Sum, _>(&block, x, &raw mut A),
            block_scan::<f32, Sum, _>(&block, x, &raw mut B),
        ];
        store(out, values);
    }
}

/// What a group answers; `by` is a rank, a lane mask and a distance.
fn answers<G: WarpCollective>(group: &G, x: u32, by: u32) -> [u32; 16] {
    group.sync();
    [
        group.size(),
        group.thread_rank(),
        group.mask(),
        group.ballot(x % 2 == 1),
        u32::from(group.all(x > 0)),
        u32::from(group.any(x == 5)),
        group.shfl(x, by),
        group.shfl_xor(x, by),
        group.shfl_down(x, by),
        group.shfl_up(x, by),
        group.match_any(x % 3),
        group.match_any_i64(u64::from(x % 3) << 40),
        group.match_all(x / 100),
        group.match_all_i64(u64::from(x % 2) << 40),
        (group.shfl_f32(x as f32, by) + 1000.0 * group.shfl_xor_f32(x as f32, by)) as u32,
        (group.shfl_down_f32(x as f32, by) + 1000.0 * group.shfl_up_f32(x as f32, by)) as u32,
    ]
}

macro_rules! tiles {
    ($($kernel:ident $size:literal;)*) => {
        $(
            #[kernel]
            pub unsafe fn $kernel(x: *const u32, by: u32, out: *mut u32) {
                let tile = this_thread_block().tiled_partition::<$size>();
                unsafe {
                    let x = *x.add(threadIdx_x() as usize);
                    let mut values = [0; 19];
                    values[..16].copy_from_slice(&answers(&tile, x, by));
                    values[16] = warp_reduce::<u32, Sum, $size>(&tile, x);
                    values[17] = warp_scan::<u32, Sum, $size>(&tile, x);
                    values[18] = warp_reduce::<f32, Max, $size>(&tile, x as f32) as u32;
                    store(out, values);
                }
            }
        )*
    };
}

tiles! {
    groups_tile_1 1;
    groups_tile_2 2;
    groups_tile_4 4;
    groups_tile_8 8;
    groups_tile_16 16;
    groups_tile_32 32;
}

/// The lanes in `mask` as a group; others leave zeros.
#[kernel]
pub unsafe fn groups_coalesced(x: *const u32, mask: u32, by: u32, out: *mut u32) {
    let x = unsafe { *x.add(threadIdx_x() as usize) };
    let mut values = [0; 16];
    if mask >> warp::lane_id() & 1 == 1 {
        let group = coalesced_threads();
        values = answers(&group, x, by);
        values[2] = group.raw_mask();
    }
    unsafe { store(out, values) }
}
