//! The attributes of `rustcuda-device`; use them from there.
//!
//! Written on bare `proc_macro`, so that a kernel crate needs no crate from a registry.

mod arguments;
mod constant;
mod device;
mod error;
mod expand;
mod function;
mod kernel_struct;
mod parameter;
mod promises;
mod record;
mod shared;
mod template;

use proc_macro::TokenStream;

/// The crate that expansions name.
const ROOT: &str = "rustcuda_device";

/// Makes a function a kernel: an entry of the PTX module that Python can launch by its name.
///
/// Parameters are numbers, `bool`, arrays of them, structs with [`KernelParam`](macro@KernelParam),
/// `*const T`, `*mut T`, `&[T]` and `DisjointSlice<T>`; the doc
/// comment becomes the Python doc string. A `static mut NAME: SharedArray<T, N> =
/// SharedArray::UNINIT;` in the body is shared memory.
///
/// What it takes in parentheses, separated by commas, all numbers being constant expressions:
///
/// - `launch_bounds(256, 2)` promises at most 256 threads a block, and asks for registers to be used
///   so that 2 blocks fit on a multiprocessor (`.maxntid`, `.minnctapersm`).
/// - `block(32, 8, 1)` promises blocks of just this size (`.reqntid`).
/// - `cluster(2, 1, 1)` makes clusters of so many blocks (`.reqnctapercluster`); from capability 9.0 on.
/// - Types, for a function with one type parameter: it becomes a kernel for each, whose name ends in
///   the type's.
/// - `unchecked_indexing`, which crates for cuda-oxide have, changes nothing: indices stay checked.
///
/// ```
/// use core::ops::Mul;
/// use rustcuda_device::prelude::*;
///
/// /// `square_f32` and `square_f64` in Python.
/// #[kernel(f32, f64, launch_bounds(256))]
/// pub fn square<T>(x: &[T], mut y: DisjointSlice<T>)
/// where
///     T: Copy + Mul<Output = T>,
/// {
///     if let Some((y, index)) = y.get_mut_indexed() {
///         *y = x[index.get()] * x[index.get()];
///     }
/// }
/// ```
///
/// Where the target is no GPU the function stays as it is written, for editors and `cargo check`.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::kernel(arguments, item).unwrap_or_else(error::Error::into_tokens)
}

/// Gives a function that kernels call what their own bodies have: shared memory, and float methods.
///
/// Functions without it can be called too. `#[unroll]` before a loop is taken out, here as in
/// kernels: LLVM unrolls what it knows to be short. On an `extern` block it makes the functions public.
///
/// Of a generic function, a shared array whose type does not depend on a type parameter is one for all
/// instances, unlike in a template of CUDA C++.
///
/// The float methods come from `FloatExt`, which is in scope here as in kernels. Where a trait of yours has
/// a method of the same name, the call is ambiguous (E0034); say whose it is: `Mine::sqrt(x)`.
///
/// ```
/// use rustcuda_device::prelude::*;
///
/// /// The value of the block's thread 0, in all of its threads.
/// #[device]
/// fn broadcast<T: Copy>(value: T) -> T {
///     static mut FIRST: SharedArray<T, 1> = SharedArray::UNINIT;
///     if thread::threadIdx_x() == 0 {
///         // SAFETY: one thread writes, and all read after the barrier.
///         unsafe { FIRST[0] = value };
///     }
///     thread::sync_threads();
///     let first = unsafe { FIRST[0] };
///     thread::sync_threads();
///     first
/// }
///
/// #[kernel]
/// pub fn spread(x: &[f32], mut y: DisjointSlice<f32>) {
///     let index = thread::index_1d();
///     let first = broadcast(x[index.get()]);
///     if let Some(y) = y.get_mut(index) {
///         *y = first.sqrt();
///     }
/// }
/// ```
#[proc_macro_attribute]
pub fn device(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    device::device(item).unwrap_or_else(error::Error::into_tokens)
}

/// Makes a static constant memory, which Python fills and kernels read:
/// `static NAME: ConstantMemory<T> = ConstantMemory::UNINIT;`.
///
/// Its name must be its own in the whole wheel, as a kernel's.
#[proc_macro_attribute]
pub fn constant(_arguments: TokenStream, item: TokenStream) -> TokenStream {
    constant::constant(item).unwrap_or_else(error::Error::into_tokens)
}

/// Lets kernels take a struct by value: one with `#[repr(C)]`, whose named fields are numbers, `bool`,
/// arrays of them, or structs of this kind. In Python it is a type of the generated module.
///
/// ```
/// use rustcuda_device::prelude::*;
///
/// #[repr(C)]
/// #[derive(Clone, Copy, KernelParam)]
/// pub struct Window {
///     low: f32,
///     high: f32,
/// }
///
/// /// In Python: `clamp[grid, block](kernels_cuda.Window(0.0, 1.0), x)`.
/// #[kernel]
/// pub fn clamp(window: Window, mut x: DisjointSlice<f32>) {
///     if let Some(x) = x.get_mut(thread::index_1d()) {
///         *x = x.clamp(window.low, window.high);
///     }
/// }
/// ```
#[proc_macro_derive(KernelParam)]
pub fn kernel_param(item: TokenStream) -> TokenStream {
    kernel_struct::derive(item).unwrap_or_else(error::Error::into_tokens)
}

/// Promises how a kernel is launched: `#[launch_bounds(MOST_THREADS)]` or
/// `#[launch_bounds(MOST_THREADS, FEWEST_BLOCKS)]`, beside `#[kernel]`; both constant expressions.
#[proc_macro_attribute]
pub fn launch_bounds(arguments: TokenStream, item: TokenStream) -> TokenStream {
    arguments::hand_to_kernel("launch_bounds", arguments, item)
        .unwrap_or_else(error::Error::into_tokens)
}

/// Makes clusters of a kernel's blocks: `#[cluster_launch(X)]` to `#[cluster_launch(X, Y, Z)]`, beside
/// `#[kernel]`; constant expressions. From capability 9.0 on.
#[proc_macro_attribute]
pub fn cluster_launch(arguments: TokenStream, item: TokenStream) -> TokenStream {
    arguments::hand_to_kernel("cluster_launch", arguments, item)
        .unwrap_or_else(error::Error::into_tokens)
}
