//! How reductions and scans combine two values.
//!
//! Floats are rounded at each step; sums of many halves are better made of `f32`.

use crate::half::{Bf16x2, F16x2, bf16};

/// An associative and commutative way to make one value of two.
pub trait ReduceOp<T: Copy> {
    /// The value that changes nothing: what an exclusive scan begins with.
    fn identity() -> T;

    /// One value of two.
    fn combine(a: T, b: T) -> T;

    /// What stands in for lanes that have no value, beside one that has `value`.
    #[doc(hidden)]
    #[inline(always)]
    fn filler(value: T) -> T {
        let _ = value;
        Self::identity()
    }

    /// All values of the lanes in `mask` combined by one instruction, where the GPU has it.
    #[doc(hidden)]
    #[inline(always)]
    fn redux(mask: u32, value: T) -> Option<T> {
        let _ = (mask, value);
        None
    }
}

/// Addition; integers wrap around.
pub struct Sum;
/// The smaller one; of a float and NaN, the float.
pub struct Min;
/// The larger one; of a float and NaN, the float.
pub struct Max;
/// The bits set in both.
pub struct BitAnd;
/// The bits set in either.
pub struct BitOr;
/// The bits set in one of them only.
pub struct BitXor;

/// Implements an operation for some types.
macro_rules! operation {
    ($name:ident: |$a:ident, $b:ident| $combine:expr; $($type:ident = $identity:expr $(, $redux:ident as $word:ty)?;)*) => {
        $(
            impl ReduceOp<$type> for $name {
                #[inline(always)]
                fn identity() -> $type {
                    $identity
                }

                #[inline(always)]
                fn combine($a: $type, $b: $type) -> $type {
                    $combine
                }

                operation!(@filler $name $type);
                $(
                    #[cfg(cuda_arch = "80")]
                    #[inline(always)]
                    fn redux(mask: u32, value: $type) -> Option<$type> {
                        Some(crate::warp::$redux(mask, value as $word) as $type)
                    }
                )?
            }
        )*
    };
    (@filler Sum $type:ident) => {};
    (@filler BitXor $type:ident) => {};
    // Combined with itself a value does not change: of NaN alone, NaN remains.
    (@filler $name:ident $type:ident) => {
        #[inline(always)]
        fn filler(value: $type) -> $type {
            value
        }
    };
}

operation!(Sum: |a, b| a.wrapping_add(b);
    u32 = 0, redux_sync_add as u32; i32 = 0, redux_sync_add as u32; u64 = 0; i64 = 0;
);
operation!(Sum: |a, b| a + b;
    f32 = 0.0; f64 = 0.0; bf16 = bf16::ZERO; F16x2 = F16x2::from_bits(0); Bf16x2 = Bf16x2::from_bits(0);
);
operation!(Min: |a, b| a.min(b);
    u32 = u32::MAX, redux_sync_min_u32 as u32; i32 = i32::MAX, redux_sync_min_i32 as i32;
    u64 = u64::MAX; i64 = i64::MAX; f32 = f32::INFINITY; f64 = f64::INFINITY; bf16 = bf16::INFINITY;
    F16x2 = F16x2::from_bits(0x7c00_7c00); Bf16x2 = Bf16x2::from_bits(0x7f80_7f80);
);
operation!(Max: |a, b| a.max(b);
    u32 = 0, redux_sync_max_u32 as u32; i32 = i32::MIN, redux_sync_max_i32 as i32;
    u64 = 0; i64 = i64::MIN; f32 = f32::NEG_INFINITY; f64 = f64::NEG_INFINITY; bf16 = bf16::NEG_INFINITY;
    F16x2 = F16x2::from_bits(0xfc00_fc00); Bf16x2 = Bf16x2::from_bits(0xff80_ff80);
);
operation!(BitAnd: |a, b| a & b;
    u32 = !0, redux_sync_and as u32; i32 = !0, redux_sync_and as u32; u64 = !0; i64 = !0;
);
operation!(BitOr: |a, b| a | b;
    u32 = 0, redux_sync_or as u32; i32 = 0, redux_sync_or as u32; u64 = 0; i64 = 0;
);
operation!(BitXor: |a, b| a ^ b;
    u32 = 0, redux_sync_xor as u32; i32 = 0, redux_sync_xor as u32; u64 = 0; i64 = 0;
);

// Not stable yet, so it must not disturb a check for the host.
#[cfg(target_arch = "nvptx64")]
operation!(Sum: |a, b| a + b; f16 = 0.0;);
#[cfg(target_arch = "nvptx64")]
operation!(Min: |a, b| a.min(b); f16 = f16::INFINITY;);
#[cfg(target_arch = "nvptx64")]
operation!(Max: |a, b| a.max(b); f16 = f16::NEG_INFINITY;);
