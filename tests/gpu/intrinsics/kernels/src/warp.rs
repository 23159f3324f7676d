use rustcuda_device::ops::{BitAnd, BitOr, BitXor, Sum};
use rustcuda_device::prelude::*;

use crate::store;

/// What a lane knows of itself and the others.
#[kernel]
pub unsafe fn warp_lanes(out: *mut u32) {
    let values = [
        warp::lane_id(),
        warp::warp_id(),
        warp::live_lanes_1d(),
        warp::lanemask_lt(),
        warp::lanemask_le(),
        warp::lanemask_eq(),
        warp::lanemask_ge(),
        warp::lanemask_gt(),
        warp::active_mask(),
        u32::from(warp::warpid() < warp::nwarpid()),
    ];
    unsafe { store(out, values) }
}

/// Lanes write, wait, and read what another has written.
#[kernel]
pub unsafe fn warp_sync_mask(out: *mut u32) {
    static mut WORDS: SharedArray<u32, 32> = SharedArray::UNINIT;
    let lane = warp::lane_id() as usize;
    unsafe {
        WORDS[lane] = 100 + lane as u32;
        warp::sync_mask(warp::FULL_MASK);
        store(out, [WORDS[31 - lane]]);
    }
}

/// Shuffles of every kind for a type; the last two within the lower half of a warp only.
macro_rules! shuffles {
    ($($kernel:ident $type:ty: $idx:ident $idx_sync:ident $xor:ident $xor_sync:ident
       $down:ident $down_sync:ident $up:ident $up_sync:ident;)*) => {
        $(
            #[kernel]
            pub unsafe fn $kernel(x: *const $type, by: u32, out: *mut $type) {
                let lane = warp::lane_id();
                let value = unsafe { *x.add(lane as usize) };
                let mut values = [
                    warp::$idx(value, by),
                    warp::$xor(value, by),
                    warp::$down(value, by),
                    warp::$up(value, by),
                    value,
                    value,
                    value,
                    value,
                ];
                if lane < 16 {
                    values[4] = warp::$idx_sync(0xffff, value, by % 16);
                    values[5] = warp::$xor_sync(0xffff, value, by % 16);
                    values[6] = warp::$down_sync(0xffff, value, if lane + by % 16 < 16 { by % 16 } else { 0 });
                    values[7] = warp::$up_sync(0xffff, value, by % 16);
                }
                unsafe { store(out, values) }
            }
        )*
    };
}

shuffles! {
    warp_shuffle_u32 u32: shuffle shuffle_sync shuffle_xor shuffle_xor_sync
        shuffle_down shuffle_down_sync shuffle_up shuffle_up_sync;
    warp_shuffle_i32 i32: shuffle_i32 shuffle_i32_sync shuffle_xor_i32 shuffle_xor_i32_sync
        shuffle_down_i32 shuffle_down_i32_sync shuffle_up_i32 shuffle_up_i32_sync;
    warp_shuffle_f32 f32: shuffle_f32 shuffle_f32_sync shuffle_xor_f32 shuffle_xor_f32_sync
        shuffle_down_f32 shuffle_down_f32_sync shuffle_up_f32 shuffle_up_f32_sync;
    warp_shuffle_u64 u64: shuffle_u64 shuffle_u64_sync shuffle_xor_u64 shuffle_xor_u64_sync
        shuffle_down_u64 shuffle_down_u64_sync shuffle_up_u64 shuffle_up_u64_sync;
    warp_shuffle_i64 i64: shuffle_i64 shuffle_i64_sync shuffle_xor_i64 shuffle_xor_i64_sync
        shuffle_down_i64 shuffle_down_i64_sync shuffle_up_i64 shuffle_up_i64_sync;
    warp_shuffle_f64 f64: shuffle_f64 shuffle_f64_sync shuffle_xor_f64 shuffle_xor_f64_sync
        shuffle_down_f64 shuffle_down_f64_sync shuffle_up_f64 shuffle_up_f64_sync;
}

/// Votes of the whole warp, and of the lanes in `mask`; others leave zeros.
#[kernel]
pub unsafe fn warp_votes(predicates: *const bool, mask: u32, out: *mut u32) {
    let lane = warp::lane_id();
    let predicate = unsafe { *predicates.add(lane as usize) };
    let mut values = [
        warp::ballot(predicate),
        warp::popc(predicate),
        u32::from(warp::all(predicate)),
        u32::from(warp::any(predicate)),
        0,
        0,
        0,
    ];
    if mask >> lane & 1 == 1 {
        values[4] = warp::ballot_sync(mask, predicate);
        values[5] = u32::from(warp::all_sync(mask, predicate));
        values[6] = u32::from(warp::any_sync(mask, predicate));
    }
    unsafe { store(out, values) }
}

/// Matches of the lanes in `mask`; others leave zeros.
#[kernel]
pub unsafe fn warp_matches(x: *const u32, y: *const u64, mask: u32, out: *mut u32) {
    let lane = warp::lane_id();
    let mut values = [0; 4];
    if mask >> lane & 1 == 1 {
        let (x, y) = unsafe { (*x.add(lane as usize), *y.add(lane as usize)) };
        values = [
            warp::match_any_sync(mask, x),
            warp::match_any_i64_sync(mask, y),
            warp::match_all_sync(mask, x),
            warp::match_all_i64_sync(mask, y),
        ];
    }
    unsafe { store(out, values) }
}

/// The lane that is elected of `mask`, and whether it is this one; other lanes leave 99.
#[cfg(cuda_arch = "90")]
#[kernel]
pub unsafe fn warp_elect(mask: u32, out: *mut u32) {
    let mut values = [99; 3];
    if mask >> warp::lane_id() & 1 == 1 {
        let (leader, elected) = warp::elect_sync(mask);
        values = [
            leader,
            u32::from(elected),
            u32::from(warp::is_elected_sync(mask)),
        ];
    }
    unsafe { store(out, values) }
}

/// Every redux of the lanes in `mask`; others leave zeros.
#[cfg(cuda_arch = "80")]
#[kernel]
pub unsafe fn warp_redux(x: *const u32, mask: u32, out: *mut u32) {
    let lane = warp::lane_id();
    let mut values = [0; 8];
    if mask >> lane & 1 == 1 {
        let x = unsafe { *x.add(lane as usize) };
        values = [
            warp::redux_sync_add(mask, x),
            warp::redux_sync_and(mask, x),
            warp::redux_sync_or(mask, x),
            warp::redux_sync_xor(mask, x),
            warp::redux_sync_min_u32(mask, x),
            warp::redux_sync_max_u32(mask, x),
            warp::redux_sync_min_i32(mask, x as i32) as u32,
            warp::redux_sync_max_i32(mask, x as i32) as u32,
        ];
    }
    unsafe { store(out, values) }
}

/// Sum, minimum and maximum of a full warp: reduced, and scanned both ways.
macro_rules! collectives {
    ($($kernel:ident $partial:ident $type:ty: $sum:ident $min:ident $max:ident
       $sum_partial:ident $min_partial:ident $max_partial:ident
       $inclusive_sum:ident $inclusive_min:ident $inclusive_max:ident
       $exclusive_sum:ident $exclusive_min:ident $exclusive_max:ident;)*) => {
        $(
            #[kernel]
            pub unsafe fn $kernel(x: *const $type, out: *mut $type) {
                let x = unsafe { *x.add(warp::lane_id() as usize) };
                let values = [
                    warp::$sum(x), warp::$min(x), warp::$max(x),
                    warp::$inclusive_sum(x), warp::$inclusive_min(x), warp::$inclusive_max(x),
                    warp::$exclusive_sum(x), warp::$exclusive_min(x), warp::$exclusive_max(x),
                ];
                unsafe { store(out, values) }
            }

            /// The same of a warp of as many threads as were launched.
            #[kernel]
            pub unsafe fn $partial(x: *const $type, out: *mut $type) {
                let (x, live) = (unsafe { *x.add(warp::lane_id() as usize) }, warp::live_lanes_1d());
                let values = [
                    warp::$sum_partial(x, live), warp::$min_partial(x, live), warp::$max_partial(x, live),
                    warp::inclusive_scan_partial::<$type, Sum>(x, live),
                    warp::exclusive_scan_partial::<$type, Sum>(x, live),
                ];
                unsafe { store(out, values) }
            }
        )*
    };
}

collectives! {
    warp_collect_u32 warp_partial_u32 u32: reduce_sum_u32 reduce_min_u32 reduce_max_u32
        reduce_sum_u32_partial reduce_min_u32_partial reduce_max_u32_partial
        inclusive_sum_u32 inclusive_min_u32 inclusive_max_u32 exclusive_sum_u32 exclusive_min_u32 exclusive_max_u32;
    warp_collect_i32 warp_partial_i32 i32: reduce_sum_i32 reduce_min_i32 reduce_max_i32
        reduce_sum_i32_partial reduce_min_i32_partial reduce_max_i32_partial
        inclusive_sum_i32 inclusive_min_i32 inclusive_max_i32 exclusive_sum_i32 exclusive_min_i32 exclusive_max_i32;
    warp_collect_u64 warp_partial_u64 u64: reduce_sum_u64 reduce_min_u64 reduce_max_u64
        reduce_sum_u64_partial reduce_min_u64_partial reduce_max_u64_partial
        inclusive_sum_u64 inclusive_min_u64 inclusive_max_u64 exclusive_sum_u64 exclusive_min_u64 exclusive_max_u64;
    warp_collect_i64 warp_partial_i64 i64: reduce_sum_i64 reduce_min_i64 reduce_max_i64
        reduce_sum_i64_partial reduce_min_i64_partial reduce_max_i64_partial
        inclusive_sum_i64 inclusive_min_i64 inclusive_max_i64 exclusive_sum_i64 exclusive_min_i64 exclusive_max_i64;
    warp_collect_f32 warp_partial_f32 f32: reduce_sum_f32 reduce_min_f32 reduce_max_f32
        reduce_sum_f32_partial reduce_min_f32_partial reduce_max_f32_partial
        inclusive_sum_f32 inclusive_min_f32 inclusive_max_f32 exclusive_sum_f32 exclusive_min_f32 exclusive_max_f32;
    warp_collect_f64 warp_partial_f64 f64: reduce_sum_f64 reduce_min_f64 reduce_max_f64
        reduce_sum_f64_partial reduce_min_f64_partial reduce_max_f64_partial
        inclusive_sum_f64 inclusive_min_f64 inclusive_max_f64 exclusive_sum_f64 exclusive_min_f64 exclusive_max_f64;
}

/// Bits, which have no named forms.
#[kernel]
pub unsafe fn warp_bits(x: *const u64, out: *mut u64) {
    let x = unsafe { *x.add(warp::lane_id() as usize) };
    let low = x as u32;
    let values = [
        warp::reduce::<u64, BitAnd>(x),
        warp::reduce::<u64, BitOr>(x),
        warp::reduce::<u64, BitXor>(x),
        u64::from(warp::reduce::<u32, BitAnd>(low)),
        u64::from(warp::reduce::<u32, BitOr>(low)),
        u64::from(warp::reduce::<u32, BitXor>(low)),
        warp::inclusive_scan::<u64, BitXor>(x),
        warp::exclusive_scan::<u64, BitAnd>(x),
    ];
    unsafe { store(out, values) }
}
