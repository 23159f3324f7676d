//! The types that a row's elements can have.

use rustcuda_device::pack::PackElement;
use rustcuda_device::prelude::*;

/// A float in memory, `N` of which are loaded at once; computed with as f32.
pub trait Element<const N: usize>: Float + PackElement<N> {
    const NEG_INFINITY: Self;

    fn to_f32(self) -> f32;
    fn from_f32(value: f32) -> Self;
}

macro_rules! elements {
    ($($type:ident $pack:literal: $to_f32:expr, $from_f32:expr;)*) => {
        $(
            impl Element<$pack> for $type {
                const NEG_INFINITY: Self = $type::NEG_INFINITY;

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
    f32 4: |value| value, |value| value;
    f16 8: |value| value as f32, |value| value as f16;
    bf16 8: bf16::to_f32, bf16::from_f32;
}
