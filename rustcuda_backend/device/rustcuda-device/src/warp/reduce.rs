//! One value of all lanes' values, in every lane.

use super::{FULL_MASK, WarpShuffle, lane_id, segment};
use crate::ops::{Max, Min, ReduceOp, Sum};

/// The lanes' values combined by an operation of [`ops`](crate::ops), in every lane:
/// `warp::reduce::<u32, BitOr>(bits)`. One instruction for integers of 32 bits from capability 8.0 on.
#[inline(always)]
pub fn reduce<T: WarpShuffle, Op: ReduceOp<T>>(value: T) -> T {
    match Op::redux(FULL_MASK, value) {
        Some(total) => total,
        None => butterfly::<T, Op, 32>(FULL_MASK, value),
    }
}

/// As [`reduce`], in a warp of which only the first `live_lanes` were launched, at least 1: see
/// [`live_lanes_1d`](super::live_lanes_1d). All of them must come, and with the same number.
#[inline(always)]
pub fn reduce_partial<T: WarpShuffle, Op: ReduceOp<T>>(value: T, live_lanes: u32) -> T {
    let live = live_lanes.clamp(1, 32);
    let mask = lowest(live);
    if let Some(total) = Op::redux(mask, value) {
        return total;
    }
    let lane = lane_id();
    let mut total = value;
    let mut distance = 16;
    while distance > 0 {
        // Never from a lane that is not there; the last one is, and what it says is then not used.
        let source = lane + distance;
        let other = segment::idx::<T, 32>(mask, total, source.min(live - 1));
        if source < live {
            total = Op::combine(total, other);
        }
        distance /= 2;
    }
    segment::idx::<T, 32>(mask, total, 0)
}

/// Combines the values of each segment of `WIDTH` lanes by log2 `WIDTH` shuffles.
#[inline(always)]
pub(crate) fn butterfly<T, Op, const WIDTH: u32>(mask: u32, value: T) -> T
where
    T: WarpShuffle,
    Op: ReduceOp<T>,
{
    let mut total = value;
    let mut distance = WIDTH / 2;
    while distance > 0 {
        total = Op::combine(total, segment::xor::<T, WIDTH>(mask, total, distance));
        distance /= 2;
    }
    total
}

/// The mask of the `live` lowest lanes, 1 to 32.
#[inline(always)]
pub(super) fn lowest(live: u32) -> u32 {
    FULL_MASK >> (32 - live)
}

macro_rules! named {
    ($($doc:literal $op:ident: $($name:ident $partial:ident $type:ty;)*)*) => {
        $($(
            #[doc = concat!("The ", $doc, " over the warp, in every lane.")]
            #[inline(always)]
            pub fn $name(value: $type) -> $type {
                reduce::<$type, $op>(value)
            }

            #[doc = concat!("The ", $doc, " over the first `live_lanes` lanes, in each: see [`reduce_partial`].")]
            #[inline(always)]
            pub fn $partial(value: $type, live_lanes: u32) -> $type {
                reduce_partial::<$type, $op>(value, live_lanes)
            }
        )*)*
    };
}

named! {
    "sum" Sum:
    reduce_sum_u32 reduce_sum_u32_partial u32;
    reduce_sum_i32 reduce_sum_i32_partial i32;
    reduce_sum_u64 reduce_sum_u64_partial u64;
    reduce_sum_i64 reduce_sum_i64_partial i64;
    reduce_sum_f32 reduce_sum_f32_partial f32;
    reduce_sum_f64 reduce_sum_f64_partial f64;
    "smallest value" Min:
    reduce_min_u32 reduce_min_u32_partial u32;
    reduce_min_i32 reduce_min_i32_partial i32;
    reduce_min_u64 reduce_min_u64_partial u64;
    reduce_min_i64 reduce_min_i64_partial i64;
    reduce_min_f32 reduce_min_f32_partial f32;
    reduce_min_f64 reduce_min_f64_partial f64;
    "largest value" Max:
    reduce_max_u32 reduce_max_u32_partial u32;
    reduce_max_i32 reduce_max_i32_partial i32;
    reduce_max_u64 reduce_max_u64_partial u64;
    reduce_max_i64 reduce_max_i64_partial i64;
    reduce_max_f32 reduce_max_f32_partial f32;
    reduce_max_f64 reduce_max_f64_partial f64;
}
