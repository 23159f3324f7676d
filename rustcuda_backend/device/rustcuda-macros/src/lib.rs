//! The attributes of `rustcuda-device`; use them from there.
//!
//! Written on bare `proc_macro`, so that a kernel crate needs no crate from a registry.

mod bounds;
mod error;
mod expand;
mod function;
mod parameter;
mod shared;
mod template;

use proc_macro::TokenStream;

/// The crate that expansions name.
const ROOT: &str = "rustcuda_device";

/// Makes a function a kernel: an entry of the PTX module that Python can launch by its name.
///
/// Parameters are numbers, `bool`, `*const T`, `*mut T`, `&[T]` and `DisjointSlice<T>`; the doc
/// comment becomes the Python doc string. `#[kernel(launch_bounds(256, 2))]` promises at most 256
/// threads a block and asks for registers to be used so that 2 blocks fit on a multiprocessor.
///
/// A `static mut NAME: SharedArray<T, N> = SharedArray::UNINIT;` in the body is shared memory.
///
/// Where the target is no GPU the function stays as it is written, for editors and `cargo check`.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::kernel(arguments, item).unwrap_or_else(error::Error::into_tokens)
}

/// Promises how a kernel is launched: `#[launch_bounds(MOST_THREADS)]` or
/// `#[launch_bounds(MOST_THREADS, FEWEST_BLOCKS)]`, beside `#[kernel]`; both constant expressions.
#[proc_macro_attribute]
pub fn launch_bounds(arguments: TokenStream, item: TokenStream) -> TokenStream {
    bounds::hand_to_kernel(arguments, item).unwrap_or_else(error::Error::into_tokens)
}
