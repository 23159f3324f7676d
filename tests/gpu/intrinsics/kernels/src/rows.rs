//! Kernels that are functions of numbers: a thread takes a row of inputs and gives a row of results.

use core::array;

use rustcuda_device::prelude::*;

/// Gives this thread's `A` inputs to a function and stores its `R` results.
#[inline(always)]
pub fn row<T: Copy, U, const A: usize, const R: usize>(
    inputs: &[T],
    out: &mut DisjointSlice<U>,
    function: impl FnOnce([T; A]) -> [U; R],
) {
    let index = thread::index_1d();
    let start = A * index.get();
    if let Some(inputs) = inputs.get(start..start + A) {
        let results = function(array::from_fn(|k| inputs[k]));
        // SAFETY: every thread has a row of its own.
        let places = unsafe { out.chunk_mut::<R>(index) };
        for (k, result) in results.into_iter().enumerate() {
            if let Some(place) = places.get_mut(k) {
                *place = result;
            }
        }
    }
}

/// Kernels of one type of inputs and one of results: `name(x, y): f32 => u32 = [results];`.
macro_rules! kernels {
    ($($(#[$attribute:meta])* $kernel:ident($($x:ident),*): $input:ty => $result:ty = $results:expr;)*) => {
        $(
            $(#[$attribute])*
            #[kernel]
            pub fn $kernel(inputs: &[$input], mut out: DisjointSlice<$result>) {
                crate::rows::row(inputs, &mut out, |[$($x),*]| $results);
            }
        )*
    };
}
pub(crate) use kernels;

/// Kernels that do the same for `f32` and `f64`, which `Real` names in the results.
macro_rules! float_kernels {
    ($($kernel:ident($($x:ident),*) = $results:expr;)*) => {
        $(
            #[kernel]
            pub fn $kernel(
                inputs32: &[f32], inputs64: &[f64], mut out32: DisjointSlice<f32>, mut out64: DisjointSlice<f64>,
            ) {
                {
                    #[allow(dead_code)]
                    type Real = f32;
                    crate::rows::row(inputs32, &mut out32, |[$($x),*]| $results);
                }
                {
                    #[allow(dead_code)]
                    type Real = f64;
                    crate::rows::row(inputs64, &mut out64, |[$($x),*]| $results);
                }
            }
        )*
    };
}
pub(crate) use float_kernels;
