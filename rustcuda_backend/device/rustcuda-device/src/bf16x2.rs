//! Two `bf16` in the halves of a `u32`, one instruction for both; [`Bf16x2`](crate::half::Bf16x2) is
//! the type for them, and for older GPUs.

use crate::half::packed;
use crate::requires::{Gpu, Has80};

packed! {
    /// x · y + z, rounded once. From capability 8.0.
    fma_bf16x2(x: u32, y: u32, z: u32) -> u32 = "fma.rn.bf16x2" needs Has80;
    /// [`fma_bf16x2`] with 0 in the place of what is negative. From capability 8.0.
    fma_relu_bf16x2(x: u32, y: u32, z: u32) -> u32 = "fma.rn.relu.bf16x2" needs Has80;
    /// The larger; a number before NaN, 0 before -0. From capability 8.0.
    max_bf16x2(x: u32, y: u32) -> u32 = "max.bf16x2" needs Has80;
    /// The smaller; a number before NaN, -0 before 0. From capability 8.0.
    min_bf16x2(x: u32, y: u32) -> u32 = "min.bf16x2" needs Has80;
    /// The larger; NaN before a number. From capability 8.0.
    max_nan_bf16x2(x: u32, y: u32) -> u32 = "max.NaN.bf16x2" needs Has80;
    /// The smaller; NaN before a number. From capability 8.0.
    min_nan_bf16x2(x: u32, y: u32) -> u32 = "min.NaN.bf16x2" needs Has80;
}

#[cfg(not(cuda_arch = "90"))]
const ONES: u32 = 0x3f80_3f80;
#[cfg(not(cuda_arch = "90"))]
const MINUS_ONES: u32 = neg_bf16x2(ONES);
#[cfg(not(cuda_arch = "90"))]
const MINUS_ZEROS: u32 = neg_bf16x2(0);

/// Defines an operation: an instruction from 9.0 on, before it a fused multiply-add of the same result.
macro_rules! fused_before_90 {
    ($($(#[$doc:meta])* $name:ident($x:ident, $y:ident) = $instruction:literal, $fused:expr;)*) => {
        #[cfg(cuda_arch = "90")]
        mod native {
            super::packed! {
                $($(#[$doc])* $name($x: u32, $y: u32) -> u32 = $instruction;)*
            }
        }
        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name($x: u32, $y: u32) -> u32
            where
                for<'pass> Gpu<'pass>: Has80,
            {
                #[cfg(cuda_arch = "90")]
                {
                    native::$name($x, $y)
                }
                #[cfg(not(cuda_arch = "90"))]
                {
                    $fused
                }
            }
        )*
    };
}

fused_before_90! {
    /// x + y. From capability 8.0.
    add_bf16x2(x, y) = "add.bf16x2", fma_bf16x2(x, ONES, y);
    /// x - y. From capability 8.0.
    sub_bf16x2(x, y) = "sub.bf16x2", fma_bf16x2(y, MINUS_ONES, x);
    /// x · y. From capability 8.0.
    mul_bf16x2(x, y) = "mul.bf16x2", fma_bf16x2(x, y, MINUS_ZEROS);
}

/// -x.
#[inline(always)]
pub const fn neg_bf16x2(x: u32) -> u32 {
    x ^ 0x8000_8000
}

/// |x|.
#[inline(always)]
pub const fn abs_bf16x2(x: u32) -> u32 {
    x & 0x7fff_7fff
}
