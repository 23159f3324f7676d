//! Running totals from lane 0 on.

use super::reduce::lowest;
use super::{FULL_MASK, WarpShuffle, lane_id, segment};
use crate::ops::{Max, Min, ReduceOp, Sum};

/// The values of the lanes up to and with this one, combined by an operation of
/// [`ops`](crate::ops): `warp::inclusive_scan::<u32, Max>(value)`.
#[inline(always)]
pub fn inclusive_scan<T: WarpShuffle, Op: ReduceOp<T>>(value: T) -> T {
    inclusive::<T, Op, 32>(FULL_MASK, value)
}

/// The values of the lanes below this one combined; in lane 0 the operation's identity.
#[inline(always)]
pub fn exclusive_scan<T: WarpShuffle, Op: ReduceOp<T>>(value: T) -> T {
    exclusive_of::<T, Op>(inclusive_scan::<T, Op>(value))
}

/// The exclusive scan that belongs to an inclusive one.
#[inline(always)]
pub(crate) fn exclusive_of<T: WarpShuffle, Op: ReduceOp<T>>(inclusive: T) -> T {
    exclusive::<T, Op, 32>(FULL_MASK, inclusive)
}

/// As [`inclusive_scan`], in a warp of which only the first `live_lanes` were launched, at least 1.
#[inline(always)]
pub fn inclusive_scan_partial<T: WarpShuffle, Op: ReduceOp<T>>(value: T, live_lanes: u32) -> T {
    inclusive::<T, Op, 32>(lowest(live_lanes.clamp(1, 32)), value)
}

/// As [`exclusive_scan`], in a warp of which only the first `live_lanes` were launched, at least 1.
#[inline(always)]
pub fn exclusive_scan_partial<T: WarpShuffle, Op: ReduceOp<T>>(value: T, live_lanes: u32) -> T {
    let mask = lowest(live_lanes.clamp(1, 32));
    exclusive::<T, Op, 32>(mask, inclusive::<T, Op, 32>(mask, value))
}

/// The inclusive scan of each segment of `WIDTH` lanes.
#[inline(always)]
pub(crate) fn inclusive<T, Op, const WIDTH: u32>(mask: u32, value: T) -> T
where
    T: WarpShuffle,
    Op: ReduceOp<T>,
{
    let rank = lane_id() % WIDTH;
    let mut total = value;
    let mut distance = 1;
    while distance < WIDTH {
        let before = segment::up::<T, WIDTH>(mask, total, distance);
        if rank >= distance {
            total = Op::combine(before, total);
        }
        distance *= 2;
    }
    total
}

/// The exclusive scan of each segment of `WIDTH` lanes, of its inclusive one.
#[inline(always)]
pub(super) fn exclusive<T, Op, const WIDTH: u32>(mask: u32, inclusive: T) -> T
where
    T: WarpShuffle,
    Op: ReduceOp<T>,
{
    let before = segment::up::<T, WIDTH>(mask, inclusive, 1);
    if lane_id() % WIDTH == 0 {
        Op::identity()
    } else {
        before
    }
}

macro_rules! named {
    ($($doc:literal $op:ident: $($inclusive:ident $exclusive:ident $type:ty;)*)*) => {
        $($(
            #[doc = concat!("The ", $doc, " over the lanes up to and with this one.")]
            #[inline(always)]
            pub fn $inclusive(value: $type) -> $type {
                inclusive_scan::<$type, $op>(value)
            }

            #[doc = concat!("The ", $doc, " over the lanes below this one; in lane 0 the identity, see [`exclusive_scan`].")]
            #[inline(always)]
            pub fn $exclusive(value: $type) -> $type {
                exclusive_scan::<$type, $op>(value)
            }
        )*)*
    };
}

named! {
    "sum" Sum:
    inclusive_sum_u32 exclusive_sum_u32 u32;
    inclusive_sum_i32 exclusive_sum_i32 i32;
    inclusive_sum_u64 exclusive_sum_u64 u64;
    inclusive_sum_i64 exclusive_sum_i64 i64;
    inclusive_sum_f32 exclusive_sum_f32 f32;
    inclusive_sum_f64 exclusive_sum_f64 f64;
    "smallest value" Min:
    inclusive_min_u32 exclusive_min_u32 u32;
    inclusive_min_i32 exclusive_min_i32 i32;
    inclusive_min_u64 exclusive_min_u64 u64;
    inclusive_min_i64 exclusive_min_i64 i64;
    inclusive_min_f32 exclusive_min_f32 f32;
    inclusive_min_f64 exclusive_min_f64 f64;
    "largest value" Max:
    inclusive_max_u32 exclusive_max_u32 u32;
    inclusive_max_i32 exclusive_max_i32 i32;
    inclusive_max_u64 exclusive_max_u64 u64;
    inclusive_max_i64 exclusive_max_i64 i64;
    inclusive_max_f32 exclusive_max_f32 f32;
    inclusive_max_f64 exclusive_max_f64 f64;
}
