//! What `#[kernel]` records, of parameters of any type: cuda-oxide's kernels are launched from Rust, so
//! they may take what Python cannot pass. Such a type is `_` in the record.

use rustcuda_device::DisjointSlice;
pub use rustcuda_device::record::{Piece, Scalar, join, length};
use rustcuda_device::thread::SpaceLayout;
use rustcuda_device::uniform::Uniform;

/// What a record calls a type.
pub trait Named {
    /// Its name, or `_`.
    const NAME: &'static str;
}

impl<T> Named for T {
    default const NAME: &'static str = "_";
}

impl<T: Scalar> Named for T {
    const NAME: &'static str = T::NAME;
}

/// See `rustcuda_device::record::KernelParam`.
pub trait KernelParam {
    /// What stands before the type, its name, and what stands after.
    const SPELLING: [&'static str; 3];
    /// Whether it is a pointer with a length.
    const IS_SLICE: bool;
}

impl<T> KernelParam for T {
    default const SPELLING: [&'static str; 3] = ["", <T as Named>::NAME, ""];
    default const IS_SLICE: bool = false;
}

macro_rules! parameters {
    ($([$($generics:tt)*] $type:ty, $before:literal, $of:ty, $after:expr, $is_slice:literal;)*) => {
        $(
            impl<$($generics)*> KernelParam for $type {
                const SPELLING: [&'static str; 3] = [$before, <$of as Named>::NAME, $after];
                const IS_SLICE: bool = $is_slice;
            }
        )*
    };
}

parameters! {
    [T] *const T, "*const ", T, "", false;
    [T] *mut T, "*mut ", T, "", false;
    [T] &T, "&", T, "", false;
    [T] &[T], "&[", T, "]", true;
    [T, Space: SpaceLayout] DisjointSlice<'_, T, Space>, "DisjointSlice<", T, Space::RECORDED, true;
    [T] Uniform<T>, "", T, "", false;
}

/// See `rustcuda_device::record::SliceParam`.
pub trait SliceParam {
    /// The PTX parameter before the length.
    type Pointer;
    /// The PTX parameter behind the length, or `()`.
    type Space;

    /// Puts them together.
    ///
    /// # Safety
    ///
    /// They must describe memory that is valid as this type asks for.
    unsafe fn from_parts(pointer: Self::Pointer, length: usize, space: Self::Space) -> Self;
}

impl<T> SliceParam for &[T] {
    // Not a reference, of which LLVM knows that nobody writes there: kernels for cuda-oxide make atomics
    // of such slices' elements.
    type Pointer = *const T;
    type Space = ();

    #[inline(always)]
    unsafe fn from_parts(pointer: *const T, length: usize, (): ()) -> Self {
        // SAFETY: promised by the caller.
        unsafe { core::slice::from_raw_parts(pointer, length) }
    }
}

impl<T, Space: SpaceLayout> SliceParam for DisjointSlice<'_, T, Space> {
    type Pointer = core::ptr::NonNull<T>;
    type Space = Space::Data;

    #[inline(always)]
    unsafe fn from_parts(pointer: Self::Pointer, length: usize, space: Space::Data) -> Self {
        // SAFETY: promised by the caller.
        unsafe { Self::from_raw_parts_with_space(pointer.as_ptr(), length, space) }
    }
}
