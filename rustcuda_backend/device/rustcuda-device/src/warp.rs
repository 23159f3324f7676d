//! The 32 threads that run together, called lanes.
//!
//! Functions without `mask` are for the whole warp: all 32 lanes must come to the same call.
//! Those that end in `_sync` take the lanes that come as a bit mask, and each must name itself.
//! A lane that names others which never come waits for ever.

use crate::intrinsics;
use crate::thread::threadIdx_x;

/// The mask that names every lane.
pub const FULL_MASK: u32 = u32::MAX;

/// This thread's lane, 0 to 31.
#[inline(always)]
pub fn lane_id() -> u32 {
    // SAFETY: reads a special register that every thread has.
    unsafe { intrinsics::lane() }
}

/// This thread's warp in a block that extends along x only.
#[inline(always)]
pub fn warp_id() -> u32 {
    threadIdx_x() / 32
}

/// The lanes that run at this very moment; nothing keeps them together afterwards.
#[inline(always)]
pub fn active_mask() -> u32 {
    // SAFETY: has no requirements.
    unsafe { intrinsics::active_mask() }
}

/// Waits for the lanes in `mask`; what they wrote to memory before is then visible to all of them.
#[inline(always)]
pub fn sync_mask(mask: u32) {
    // SAFETY: see the module's documentation; a wrong mask hangs.
    unsafe { intrinsics::warp_barrier(mask) }
}

/// Defines a shuffle for every type, with and without mask.
macro_rules! shuffles {
    ($intrinsic:ident, $other:ident, $clamp:literal, $doc:literal,
     $u32:ident $u32_sync:ident $f32:ident $f32_sync:ident $u64:ident $u64_sync:ident $f64:ident $f64_sync:ident) => {
        #[doc = $doc]
        #[inline(always)]
        pub fn $u32_sync(mask: u32, value: u32, $other: u32) -> u32 {
            // SAFETY: see the module's documentation; a wrong mask hangs.
            unsafe { intrinsics::$intrinsic(mask, value, $other, $clamp) }
        }

        #[doc = $doc]
        #[inline(always)]
        pub fn $f32_sync(mask: u32, value: f32, $other: u32) -> f32 {
            f32::from_bits($u32_sync(mask, value.to_bits(), $other))
        }

        #[doc = $doc]
        #[inline(always)]
        pub fn $u64_sync(mask: u32, value: u64, $other: u32) -> u64 {
            let low = $u32_sync(mask, value as u32, $other);
            let high = $u32_sync(mask, (value >> 32) as u32, $other);
            u64::from(high) << 32 | u64::from(low)
        }

        #[doc = $doc]
        #[inline(always)]
        pub fn $f64_sync(mask: u32, value: f64, $other: u32) -> f64 {
            f64::from_bits($u64_sync(mask, value.to_bits(), $other))
        }

        shuffles!(@full $doc, $other, $u32 $u32_sync u32, $f32 $f32_sync f32, $u64 $u64_sync u64, $f64 $f64_sync f64);
    };
    (@full $doc:literal, $other:ident, $($name:ident $masked:ident $type:ty),*) => {
        $(
            #[doc = $doc]
            #[inline(always)]
            pub fn $name(value: $type, $other: u32) -> $type {
                $masked(FULL_MASK, value, $other)
            }
        )*
    };
}

shuffles!(
    shuffle_idx, source_lane, 31, "The `value` of lane `source_lane`.",
    shuffle shuffle_sync shuffle_f32 shuffle_f32_sync
    shuffle_u64 shuffle_u64_sync shuffle_f64 shuffle_f64_sync
);
shuffles!(
    shuffle_xor, lane_mask, 31, "The `value` of the lane whose number is this one's xor `lane_mask`.",
    shuffle_xor shuffle_xor_sync shuffle_xor_f32 shuffle_xor_f32_sync
    shuffle_xor_u64 shuffle_xor_u64_sync shuffle_xor_f64 shuffle_xor_f64_sync
);
shuffles!(
    shuffle_down, delta, 31, "The `value` of the lane `delta` above; the last `delta` lanes keep their own.",
    shuffle_down shuffle_down_sync shuffle_down_f32 shuffle_down_f32_sync
    shuffle_down_u64 shuffle_down_u64_sync shuffle_down_f64 shuffle_down_f64_sync
);
shuffles!(
    shuffle_up, delta, 0, "The `value` of the lane `delta` below; the first `delta` lanes keep their own.",
    shuffle_up shuffle_up_sync shuffle_up_f32 shuffle_up_f32_sync
    shuffle_up_u64 shuffle_up_u64_sync shuffle_up_f64 shuffle_up_f64_sync
);

/// The lanes whose `predicate` holds, as a bit mask.
#[inline(always)]
pub fn ballot(predicate: bool) -> u32 {
    ballot_sync(FULL_MASK, predicate)
}

/// The lanes of `mask` whose `predicate` holds, as a bit mask.
#[inline(always)]
pub fn ballot_sync(mask: u32, predicate: bool) -> u32 {
    // SAFETY: see the module's documentation; a wrong mask hangs.
    unsafe { intrinsics::ballot(mask, predicate) }
}

/// Whether `predicate` holds in every lane.
#[inline(always)]
pub fn all(predicate: bool) -> bool {
    all_sync(FULL_MASK, predicate)
}

/// Whether `predicate` holds in every lane of `mask`.
#[inline(always)]
pub fn all_sync(mask: u32, predicate: bool) -> bool {
    // SAFETY: see the module's documentation; a wrong mask hangs.
    unsafe { intrinsics::all(mask, predicate) }
}

/// Whether `predicate` holds in any lane.
#[inline(always)]
pub fn any(predicate: bool) -> bool {
    any_sync(FULL_MASK, predicate)
}

/// Whether `predicate` holds in any lane of `mask`.
#[inline(always)]
pub fn any_sync(mask: u32, predicate: bool) -> bool {
    // SAFETY: see the module's documentation; a wrong mask hangs.
    unsafe { intrinsics::any(mask, predicate) }
}

macro_rules! reductions {
    ($($(#[doc = $doc:literal])* $name:ident($type:ty) = $shuffle:ident, $combine:expr;)*) => {
        $(
            $(#[doc = $doc])*
            #[inline(always)]
            pub fn $name(value: $type) -> $type {
                let combine: fn($type, $type) -> $type = $combine;
                let mut total = value;
                let mut distance = 16;
                while distance > 0 {
                    total = combine(total, $shuffle(total, distance));
                    distance /= 2;
                }
                total
            }
        )*
    };
}

reductions! {
    /// The sum over the warp, in every lane.
    reduce_sum_f32(f32) = shuffle_xor_f32, |a, b| a + b;
    /// The sum over the warp, in every lane.
    reduce_sum_f64(f64) = shuffle_xor_f64, |a, b| a + b;
    /// The largest value of the warp, in every lane; NaN only if all are.
    reduce_max_f32(f32) = shuffle_xor_f32, f32::max;
    /// The smallest value of the warp, in every lane; NaN only if all are.
    reduce_min_f32(f32) = shuffle_xor_f32, f32::min;
}
