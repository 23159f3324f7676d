//! Constant memory: up to 64 KiB that kernels read and Python fills, fastest where all threads of a
//! warp read the same address.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

use crate::half::{Bf16x2, F16x2, bf16};

/// What constant memory can hold: bytes that Python writes.
///
/// # Safety
///
/// Every pattern of bytes must be a value that has a meaning, zeros included.
#[diagnostic::on_unimplemented(
    message = "constant memory cannot hold a `{Self}`",
    label = "no value of constant memory",
    note = "it holds numbers, raw pointers, arrays and tuples of them, and `#[repr(C)]` structs of numbers for which \
            you write `unsafe impl ConstantMemoryValue for …`; take `u8` for `bool`"
)]
pub unsafe trait ConstantMemoryValue: Copy {
    /// The name of the scalar that it consists of; empty where it is of several, or of none that
    /// Python knows.
    const SCALAR: &'static str = "";
}

macro_rules! scalars {
    ($($type:ident)*) => {
        $(
            // SAFETY: a number.
            unsafe impl ConstantMemoryValue for $type {
                const SCALAR: &'static str = stringify!($type);
            }
        )*
    };
}

scalars!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 bf16);
// Not stable yet, so it must not disturb a check for the host.
#[cfg(target_arch = "nvptx64")]
scalars!(f16);

// SAFETY: numbers.
unsafe impl ConstantMemoryValue for u128 {}
// SAFETY: numbers.
unsafe impl ConstantMemoryValue for i128 {}
// SAFETY: two numbers.
unsafe impl ConstantMemoryValue for F16x2 {}
// SAFETY: two numbers.
unsafe impl ConstantMemoryValue for Bf16x2 {}
// SAFETY: an address, which only unsafe code follows.
unsafe impl<T> ConstantMemoryValue for *const T {}
// SAFETY: an address, which only unsafe code follows.
unsafe impl<T> ConstantMemoryValue for *mut T {}

// SAFETY: its elements.
unsafe impl<T: ConstantMemoryValue, const N: usize> ConstantMemoryValue for [T; N] {
    const SCALAR: &'static str = T::SCALAR;
}

macro_rules! tuples {
    ($($($name:ident)+;)*) => {
        $(
            // SAFETY: its elements.
            unsafe impl<$($name: ConstantMemoryValue),+> ConstantMemoryValue for ($($name,)+) {}
        )*
    };
}

tuples! {
    A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H;
}

/// A value in constant memory: a static of this type with [`constant`](macro@crate::constant).
///
/// It is zero until Python writes it; all launches after that read what was written.
///
/// ```
/// use rustcuda_device::prelude::*;
///
/// /// The polynomial's coefficients, the highest first.
/// #[constant]
/// static COEFFICIENTS: ConstantMemory<[f32; 4]> = ConstantMemory::UNINIT;
///
/// #[kernel]
/// pub fn polynomial(mut x: DisjointSlice<f32>) {
///     if let Some(x) = x.get_mut(thread::index_1d()) {
///         let at = *x;
///         *x = COEFFICIENTS.get_ref().iter().fold(0.0, |sum, &c| sum * at + c);
///     }
/// }
/// ```
#[repr(transparent)]
pub struct ConstantMemory<T: ConstantMemoryValue>(UnsafeCell<T>);

// SAFETY: written only while no kernel runs that reads it.
unsafe impl<T: ConstantMemoryValue + Send> Sync for ConstantMemory<T> {}

impl<T: ConstantMemoryValue> ConstantMemory<T> {
    /// The initial value of the static: zeros. `#[constant]` takes it out; left anywhere else it would
    /// silently be ordinary global memory, hence the error.
    #[allow(clippy::declare_interior_mutable_const)] // only ever a static's value
    pub const UNINIT: Self = {
        if cfg!(target_arch = "nvptx64") {
            panic!(
                "constant memory is declared as `static NAME: ConstantMemory<T> = …` with #[constant]"
            );
        }
        // SAFETY: zeros are a value.
        Self(UnsafeCell::new(unsafe {
            MaybeUninit::zeroed().assume_init()
        }))
    };

    /// See [`ConstantMemoryValue::SCALAR`].
    #[doc(hidden)]
    pub const SCALAR: &'static str = T::SCALAR;

    /// Size and alignment in bytes.
    #[doc(hidden)]
    pub const STORAGE: [usize; 2] = {
        assert!(
            size_of::<T>() > 0,
            "constant memory needs at least one byte"
        );
        assert!(
            size_of::<T>() <= 64 * 1024,
            "all constant memory together has 64 KiB"
        );
        [size_of::<T>(), align_of::<T>()]
    };

    /// A copy of the value.
    #[inline(always)]
    pub fn get(&self) -> T {
        // SAFETY: nothing writes it while kernels run.
        unsafe { *self.0.get() }
    }

    /// The value itself, of which only what is used is read.
    #[inline(always)]
    pub fn get_ref(&self) -> &T {
        // SAFETY: nothing writes it while kernels run.
        unsafe { &*self.0.get() }
    }
}

/// The reference for which the name of a static with `#[constant]` stands.
#[doc(hidden)]
#[macro_export]
#[cfg(target_arch = "nvptx64")]
macro_rules! constant_reference {
    ($type:ty, $symbol:literal) => {
        // SAFETY: takes the address of a variable that the build backend declares in the PTX.
        unsafe {
            let address: u64;
            ::core::arch::asm!(
                ::core::concat!("mov.u64 {}, ", $symbol, ";"),
                out(reg64) address,
                options(pure, nomem, nostack, preserves_flags)
            );
            &*$crate::constant::generic(address).cast::<$type>()
        }
    };
}

/// As for the GPU, of which it has the type.
#[doc(hidden)]
#[macro_export]
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! constant_reference {
    ($type:ty, $symbol:literal) => {
        // SAFETY: panics.
        unsafe { &*$crate::constant::generic(0).cast::<$type>() }
    };
}

#[cfg(target_arch = "nvptx64")]
unsafe extern "C" {
    // LLVM bitcode in the sysroot (device/sysroot/shared_cast.ll), as for shared memory.
    fn __rustcuda_constant_to_generic(address: u64) -> *const u8;
}

/// A pointer to the constant variable at `address`.
#[doc(hidden)]
#[inline(always)]
pub unsafe fn generic(address: u64) -> *const u8 {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: promised by the caller.
    unsafe {
        __rustcuda_constant_to_generic(address)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = address;
        unreachable!("this function runs on a GPU only")
    }
}
