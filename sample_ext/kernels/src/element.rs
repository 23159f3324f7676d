//! The types that a row's elements can have.

use rustcuda_device::prelude::*;

/// A float in memory; computed with as f32.
pub trait Element: Copy {
    const ZERO: Self;
    const NEG_INFINITY: Self;

    fn to_f32(self) -> f32;
    fn from_f32(value: f32) -> Self;
}

macro_rules! elements {
    ($($type:ty: $zero:expr, $to_f32:expr, $from_f32:expr;)*) => {
        $(
            impl Element for $type {
                const ZERO: Self = $zero;
                const NEG_INFINITY: Self = <$type>::NEG_INFINITY;

                #[inline(always)]
                fn to_f32(self) -> f32 {
                    $to_f32(self)
                }

                #[inline(always)]
                fn from_f32(value: f32) -> Self {
                    $from_f32(value)
                }
            }
        )*
    };
}

elements! {
    f32: 0.0, |value| value, |value| value;
    f16: 0.0, |value| value as f32, |value| value as f16;
    bf16: bf16::ZERO, bf16::to_f32, bf16::from_f32;
}
