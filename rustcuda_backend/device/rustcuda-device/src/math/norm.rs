//! The length of vectors of any dimension.

use super::functions;

/// What [`norm`] takes vectors of: `f32` and `f64`.
pub trait Norm: Sized {
    #[doc(hidden)]
    fn norm(vector: &[Self]) -> Self;
    #[doc(hidden)]
    fn rnorm(vector: &[Self]) -> Self;
}

/// The vector's length, the square root of the sum of squares; it overflows only if that does.
#[inline(always)]
pub fn norm<T: Norm>(vector: &[T]) -> T {
    T::norm(vector)
}

/// One over the vector's length.
#[inline(always)]
pub fn rnorm<T: Norm>(vector: &[T]) -> T {
    T::rnorm(vector)
}

macro_rules! norms {
    ($($type:ident: $norm:ident $rnorm:ident)*) => {
        $(
            // SAFETY of both: they read as many elements as the slice has.
            impl Norm for $type {
                #[inline(always)]
                fn norm(vector: &[Self]) -> Self {
                    unsafe { functions::$norm(vector.len() as i32, vector.as_ptr()) }
                }

                #[inline(always)]
                fn rnorm(vector: &[Self]) -> Self {
                    unsafe { functions::$rnorm(vector.len() as i32, vector.as_ptr()) }
                }
            }
        )*
    };
}

norms! {
    f32: __nv_normf __nv_rnormf
    f64: __nv_norm __nv_rnorm
}
