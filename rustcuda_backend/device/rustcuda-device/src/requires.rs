//! What a function needs of the GPU, so that a pass without it ends in an error which says so.
//!
//! A function states it as a bound, and whoever calls it in a pass for an older GPU reads
//! "this needs capability 8.0" at the call:
//!
//! ```
//! use rustcuda_device::prelude::*;
//! use rustcuda_device::requires::{Gpu, Has80};
//!
//! /// The sum of all lanes' values times two.
//! fn twice_the_sum(value: u32) -> u32
//! where
//!     for<'pass> Gpu<'pass>: Has80,
//! {
//!     2 * warp::redux_sync_add(warp::FULL_MASK, value)
//! }
//!
//! #[kernel]
//! fn sums(mut out: DisjointSlice<u32>) {
//!     #[cfg(cuda_arch = "80")]
//!     let sum = twice_the_sum(warp::lane_id());
//!     #[cfg(not(cuda_arch = "80"))]
//!     let sum = 2 * warp::reduce_sum_u32(warp::lane_id());
//!     if let Some(place) = out.get_mut(thread::index_1d()) {
//!         *place = sum;
//!     }
//! }
//! ```
//!
//! A macro such as `if cfg!(…)` does not do in place of the attribute: both its branches compile.

use core::marker::PhantomData;

/// The GPU that the pass compiles for.
///
/// The lifetime means nothing: `for<'pass>` makes the compiler check the bound where the function is
/// called. Without it, it would do so where the function is written.
pub struct Gpu<'pass>(PhantomData<&'pass ()>);

/// Defines a trait for each capability, which [`Gpu`] has in passes for it and later ones; each has
/// the one before it, so that a function which needs 9.0 may call one that needs 8.0.
// The compiler takes no `concat!` in these attributes, hence whole sentences.
macro_rules! capabilities {
    ($($name:ident $(: $before:ident)? = $value:literal: $capability:literal, $message:literal, $label:literal;)*) => {
        $(
            #[doc = concat!("The GPU has what came with capability ", $capability, ".")]
            #[diagnostic::on_unimplemented(
                message = $message,
                label = $label,
                note = "passes for older capabilities compile this code as well"
            )]
            pub trait $name $(: $before)? {}

            // Where there is no GPU, everything type-checks.
            #[cfg(any(cuda_arch = $value, not(target_arch = "nvptx64")))]
            impl $name for Gpu<'_> {}
        )*
    };
}

capabilities! {
    Has75 = "75": "7.5", "this needs capability 7.5", "put it under #[cfg(cuda_arch = \"75\")]";
    Has80: Has75 = "80": "8.0", "this needs capability 8.0", "put it under #[cfg(cuda_arch = \"80\")]";
    Has86: Has80 = "86": "8.6", "this needs capability 8.6", "put it under #[cfg(cuda_arch = \"86\")]";
    Has89: Has86 = "89": "8.9", "this needs capability 8.9", "put it under #[cfg(cuda_arch = \"89\")]";
    Has90: Has89 = "90": "9.0", "this needs capability 9.0", "put it under #[cfg(cuda_arch = \"90\")]";
    Has100: Has90 = "100": "10.0", "this needs capability 10.0", "put it under #[cfg(cuda_arch = \"100\")]";
}
