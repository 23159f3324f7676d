//! Operators, comparisons and conversions of `bf16`.

use core::cmp::Ordering;
use core::fmt;
use core::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use super::bf16;
use super::scalar::native;
#[allow(unused_imports)] // not all capabilities have an instruction for it
use crate::intrinsics::ptx;

/// Implements an operator with its assigning form: by an instruction from 9.0 on, by a fused
/// multiply-add from 8.0 on, and by way of `f32`, which gives the same, before.
macro_rules! operators {
    ($($trait:ident $method:ident, $assign_trait:ident $assign:ident = $operator:tt
        $({ $instruction:literal, $x:ident $y:ident => $fused:expr })?;)*) => {
        $(
            impl $trait for bf16 {
                type Output = Self;

                #[inline(always)]
                fn $method(self, other: Self) -> Self {
                    $(
                        native!("90": $instruction, self, other);
                        #[cfg(all(cuda_arch = "80", not(cuda_arch = "90")))]
                        {
                            let ($x, $y) = (self, other);
                            return $fused;
                        }
                    )?
                    #[allow(unreachable_code)]
                    Self::from_f32(self.to_f32() $operator other.to_f32())
                }
            }

            impl $assign_trait for bf16 {
                #[inline(always)]
                fn $assign(&mut self, other: Self) {
                    *self = $trait::$method(*self, other);
                }
            }
        )*
    };
}

operators! {
    Add add, AddAssign add_assign = + { "add.bf16", x y => x.fused(Self::ONE, y) };
    Sub sub, SubAssign sub_assign = - { "sub.bf16", x y => y.fused(-Self::ONE, x) };
    // A product of 0 keeps its sign when -0 is added to it.
    Mul mul, MulAssign mul_assign = * { "mul.bf16", x y => x.fused(y, -Self::ZERO) };
    Div div, DivAssign div_assign = /;
}

impl Neg for bf16 {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self(self.0 ^ Self::SIGN)
    }
}

impl PartialEq for bf16 {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.to_f32() == other.to_f32()
    }
}

impl PartialOrd for bf16 {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.to_f32().partial_cmp(&other.to_f32())
    }
}

impl From<bf16> for f32 {
    #[inline(always)]
    fn from(value: bf16) -> Self {
        value.to_f32()
    }
}

impl From<bf16> for f64 {
    #[inline(always)]
    fn from(value: bf16) -> Self {
        value.to_f64()
    }
}

impl fmt::Debug for bf16 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_f32(), formatter)
    }
}

impl fmt::Display for bf16 {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.to_f32(), formatter)
    }
}
