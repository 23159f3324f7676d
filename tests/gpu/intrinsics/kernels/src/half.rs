//! rustcuda_device::half: `f16`, `bf16` and pairs of them.

use core::convert::identity;

use rustcuda_device::half::{Bf16x2, F16x2};
use rustcuda_device::ops::{Max, Min, Sum};
use rustcuda_device::prelude::*;

use crate::rows::kernels;
use crate::store;

/// Less, equal, greater, all false for NaN.
macro_rules! compare {
    ($x:ident, $y:ident) => {
        [u8::from($x < $y) + 2 * u8::from($x == $y) + 4 * u8::from($x > $y)]
    };
}

macro_rules! pairs {
    ($pair:ident, $x:ident, $y:ident, $z:ident) => {{
        let (x, y, z) = (
            $pair::from_bits($x),
            $pair::from_bits($y),
            $pair::from_bits($z),
        );
        let results = [
            x + y,
            x - y,
            x * y,
            x.mul_add(y, z),
            x.max(y),
            x.min(y),
            -x,
            x.abs(),
        ];
        results.map($pair::to_bits)
    }};
}

/// The same for `f16` and `bf16`, which `Half` names.
macro_rules! half_kernels {
    ($($kernel:ident $brain_kernel:ident($($x:ident),*) = $results:expr;)*) => {
        mod ieee {
            use super::*;
            #[allow(dead_code)]
            type Half = f16;
            kernels! { $($kernel($($x),*): f16 => f16 = $results;)* }
        }
        mod brain {
            use super::*;
            #[allow(dead_code)]
            type Half = bf16;
            kernels! { $($brain_kernel($($x),*): bf16 => bf16 = $results;)* }
        }
    };
}

half_kernels! {
    half_f16_add half_bf16_add(x, y) = [x + y];
    half_f16_sub half_bf16_sub(x, y) = [x - y];
    half_f16_mul half_bf16_mul(x, y) = [x * y];
    half_f16_div half_bf16_div(x, y) = [x / y];
    half_f16_mul_add half_bf16_mul_add(x, y, z) = [x.mul_add(y, z)];
    half_f16_max half_bf16_max(x, y) = [x.max(y)];
    half_f16_min half_bf16_min(x, y) = [x.min(y)];
    half_f16_sign half_bf16_sign(x, y) = [-x, x.abs(), x.copysign(y), x.signum()];
    half_f16_exp half_bf16_exp(x) = [x.exp()];
    half_f16_sqrt half_bf16_sqrt(x) = [x.sqrt()];
    half_f16_sin_cos half_bf16_sin_cos(x) = [x.sin_cos().0, x.sin_cos().1];
    half_f16_powi half_bf16_powi(x) = [x.powi(3)];
    half_f16_rem_euclid half_bf16_rem_euclid(x, y) = [x.rem_euclid(y)];
}

kernels! {
    half_f16_from_f32(x): f32 => f16 = [f16::from_f32(x)];
    half_bf16_from_f32(x): f32 => bf16 = [bf16::from_f32(x), bf16::from_f32_const(x)];
    half_f16_to_f32(x): f16 => f32 = [x.to_f32()];
    half_bf16_to_f32(x): bf16 => f32 = [x.to_f32()];
    half_f16_to_f64(x): f16 => f64 = [x as f64];
    half_bf16_to_f64(x): bf16 => f64 = [x.to_f64()];
    half_f16_compare(x, y): f16 => u8 = compare!(x, y);
    half_bf16_compare(x, y): bf16 => u8 = compare!(x, y);
    half_bf16_classes(x): bf16 => bool = [x.is_nan(), x.is_infinite(), x.is_finite(), x.is_sign_negative()];
    half_bf16_clamp(x, low, high): bf16 => bf16 = [x.clamp(low, high)];

    half_f16x2(x, y, z): u32 => u32 = pairs!(F16x2, x, y, z);
    half_bf16x2(x, y, z): u32 => u32 = pairs!(Bf16x2, x, y, z);
    half_f16x2_from_f32(lo, hi): f32 => u32 = [F16x2::from_f32(lo, hi).to_bits()];
    half_bf16x2_from_f32(lo, hi): f32 => u32 = [Bf16x2::from_f32(lo, hi).to_bits()];
    half_f16x2_to_f32(x): u32 => f32 = <[f32; 2]>::from(F16x2::from_bits(x).to_f32());
    half_bf16x2_to_f32(x): u32 => f32 = <[f32; 2]>::from(Bf16x2::from_bits(x).to_f32());
    half_f16x2_halves(x): u32 => f16 = [F16x2::from_bits(x).lo(), F16x2::from_bits(x).hi()];
    half_bf16x2_halves(x): u32 => bf16 = [Bf16x2::from_bits(x).lo(), Bf16x2::from_bits(x).hi()];
    half_f16x2_new(lo, hi): f16 => u32 = [F16x2::new(lo, hi).to_bits(), F16x2::splat(hi).to_bits()];
    half_bf16x2_new(lo, hi): bf16 => u32 = [Bf16x2::new(lo, hi).to_bits(), Bf16x2::splat(hi).to_bits()];
}

/// `a` comes as a number from Python.
#[kernel]
pub fn half_bf16_value(a: bf16, x: *const bf16, y: *mut bf16) {
    // SAFETY: the test passes one element each.
    unsafe { *y = a * *x };
}

/// `a` comes as a number from Python.
#[kernel]
pub fn half_f16_value(a: f16, x: *const f16, y: *mut f16) {
    // SAFETY: the test passes one element each.
    unsafe { *y = a * *x };
}

/// Every shuffle of a type, without mask and with that of the whole warp, and what its lanes have together.
macro_rules! warp_halves {
    ($($kernel:ident $word:ty as $type:ty, $from:expr, $to:expr => $($shuffle:ident $masked:ident),*;)*) => {
        $(
            #[kernel]
            pub unsafe fn $kernel(x: *const $word, by: u32, out: *mut $word) {
                let value = $from(unsafe { *x.add(warp::lane_id() as usize) });
                let values = [
                    $(warp::$shuffle(value, by), warp::$masked(warp::FULL_MASK, value, by),)*
                    warp::reduce::<$type, Sum>(value),
                    warp::reduce::<$type, Min>(value),
                    warp::reduce::<$type, Max>(value),
                    warp::inclusive_scan::<$type, Sum>(value),
                    warp::exclusive_scan::<$type, Min>(value),
                    warp::exclusive_scan::<$type, Max>(value),
                ];
                unsafe { store(out, values.map($to)) }
            }
        )*
    };
}

warp_halves! {
    half_f16_warp f16 as f16, identity, identity => shuffle_f16 shuffle_f16_sync,
        shuffle_xor_f16 shuffle_xor_f16_sync, shuffle_down_f16 shuffle_down_f16_sync, shuffle_up_f16 shuffle_up_f16_sync;
    half_bf16_warp bf16 as bf16, identity, identity => shuffle_bf16 shuffle_bf16_sync,
        shuffle_xor_bf16 shuffle_xor_bf16_sync, shuffle_down_bf16 shuffle_down_bf16_sync,
        shuffle_up_bf16 shuffle_up_bf16_sync;
    half_f16x2_warp u32 as F16x2, F16x2::from_bits, F16x2::to_bits => shuffle_f16x2 shuffle_f16x2_sync,
        shuffle_xor_f16x2 shuffle_xor_f16x2_sync, shuffle_down_f16x2 shuffle_down_f16x2_sync,
        shuffle_up_f16x2 shuffle_up_f16x2_sync;
    half_bf16x2_warp u32 as Bf16x2, Bf16x2::from_bits, Bf16x2::to_bits => shuffle_bf16x2 shuffle_bf16x2_sync,
        shuffle_xor_bf16x2 shuffle_xor_bf16x2_sync, shuffle_down_bf16x2 shuffle_down_bf16x2_sync,
        shuffle_up_bf16x2 shuffle_up_bf16x2_sync;
}
