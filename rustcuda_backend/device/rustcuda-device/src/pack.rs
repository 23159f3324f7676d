//! Elements that are loaded and stored together, 4, 8 or 16 bytes in one instruction.

use core::ops::{Deref, DerefMut};
use core::{array, fmt, mem};

use crate::{Bf16x2, F16x2, bf16};

/// `N` elements of 4, 8 or 16 bytes together, aligned to their size: `Pack<f32, 4>`, `Pack<bf16, 8>`.
///
/// Copying one from or to memory is a single instruction, which memory-bound kernels need to be as
/// fast as a copy; 16 bytes are the widest that every GPU has. Used as an array otherwise.
///
/// ```
/// use rustcuda_device::prelude::*;
///
/// /// Doubles eight numbers a thread.
/// #[kernel]
/// fn double(x: &[bf16], mut y: DisjointSlice<bf16>) {
///     let index = thread::index_1d();
///     let mut pack = Pack::<bf16, 8>::load(x, 8 * index.get(), bf16::ZERO);
///     for element in &mut *pack {
///         *element += *element;
///     }
///     // SAFETY: every thread writes its own eight elements.
///     pack.store(unsafe { y.chunk_mut::<8>(index) });
/// }
/// ```
#[repr(C)]
pub struct Pack<T: PackElement<N>, const N: usize>([T; N], [T::Whole; 0]);

/// Elements of which `N` make a [`Pack`]: numbers, and so many that they have 4, 8 or 16 bytes.
///
/// # Safety
///
/// Not for implementing: `Whole` must be as large as `N` of the type, of which all bits are values.
#[diagnostic::on_unimplemented(
    message = "a Pack has 4, 8 or 16 bytes, e.g. Pack<f32, 4>, not {N} elements of type `{Self}`",
    label = "not elements of 4, 8 or 16 bytes together"
)]
pub unsafe trait PackElement<const N: usize>: Copy {
    /// What the elements are in a register: loaded, stored and aligned as one.
    #[doc(hidden)]
    type Whole: Copy;
}

/// 16 bytes, as a vector, which LLVM keeps in one piece.
#[doc(hidden)]
#[derive(Clone, Copy)]
#[cfg_attr(target_arch = "nvptx64", repr(simd))]
#[cfg_attr(not(target_arch = "nvptx64"), repr(C, align(16)))]
pub struct Whole16([u32; 4]);

macro_rules! pack_elements {
    ($($($type:ident)*: $four:literal $eight:literal $sixteen:literal;)*) => {
        $($(
            // SAFETY: as many bytes.
            unsafe impl PackElement<$four> for $type {
                type Whole = u32;
            }
            // SAFETY: as many bytes.
            unsafe impl PackElement<$eight> for $type {
                type Whole = u64;
            }
            // SAFETY: as many bytes.
            unsafe impl PackElement<$sixteen> for $type {
                type Whole = Whole16;
            }
        )*)*
    };
}

pack_elements! {
    u8 i8: 4 8 16;
    u16 i16 bf16: 2 4 8;
    u32 i32 f32 F16x2 Bf16x2: 1 2 4;
}
// Not stable yet, so it must not disturb a check for the host.
#[cfg(target_arch = "nvptx64")]
pack_elements! {
    f16: 2 4 8;
}

macro_rules! pack_elements_of_8_bytes {
    ($($type:ident)*) => {
        $(
            // SAFETY: as many bytes.
            unsafe impl PackElement<1> for $type {
                type Whole = u64;
            }
            // SAFETY: as many bytes.
            unsafe impl PackElement<2> for $type {
                type Whole = Whole16;
            }
        )*
    };
}

pack_elements_of_8_bytes!(u64 i64 usize isize f64);

/// Four `f32`.
pub type F32x4 = Pack<f32, 4>;
/// Eight `bf16`.
pub type Bf16x8 = Pack<bf16, 8>;
/// Eight `f16`.
#[cfg(target_arch = "nvptx64")]
pub type F16x8 = Pack<f16, 8>;

impl<T: PackElement<N>, const N: usize> Pack<T, N> {
    /// A pack of these elements.
    #[inline(always)]
    pub const fn new(elements: [T; N]) -> Self {
        Self(elements, [])
    }

    /// A pack whose element `k` is `element(k)`.
    #[inline(always)]
    pub fn from_fn(element: impl FnMut(usize) -> T) -> Self {
        Self::new(array::from_fn(element))
    }

    /// A pack of the same element `N` times.
    #[inline(always)]
    pub const fn splat(element: T) -> Self {
        Self::new([element; N])
    }

    /// Its elements.
    #[inline(always)]
    pub const fn to_array(self) -> [T; N] {
        self.0
    }

    /// Loads the elements from `start` on; those beyond the slice's end are `fill`.
    ///
    /// One load where they all exist and their address is a multiple of their size, else one for each.
    #[inline(always)]
    pub fn load(slice: &[T], start: usize, fill: T) -> Self {
        let pointer = slice.as_ptr().wrapping_add(start).cast::<T::Whole>();
        if start <= slice.len() && slice.len() - start >= N && pointer.is_aligned() {
            // SAFETY: in bounds and aligned; both types are their elements.
            return unsafe { mem::transmute_copy(&pointer.read()) };
        }
        Self::from_fn(|k| slice.get(start.saturating_add(k)).copied().unwrap_or(fill))
    }

    /// Stores the elements that the slice has place for.
    ///
    /// One store where it has place for all and its address is a multiple of their size, else one for
    /// each.
    #[inline(always)]
    pub fn store(self, slice: &mut [T]) {
        let pointer = slice.as_mut_ptr().cast::<T::Whole>();
        if slice.len() >= N && pointer.is_aligned() {
            // SAFETY: in bounds and aligned; both types are their elements.
            unsafe { pointer.write(mem::transmute_copy(&self)) };
            return;
        }
        for (k, element) in self.0.into_iter().enumerate() {
            if let Some(place) = slice.get_mut(k) {
                *place = element;
            }
        }
    }
}

impl<T: PackElement<N>, const N: usize> Clone for Pack<T, N> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: PackElement<N>, const N: usize> Copy for Pack<T, N> {}

impl<T: PackElement<N>, const N: usize> From<[T; N]> for Pack<T, N> {
    #[inline(always)]
    fn from(elements: [T; N]) -> Self {
        Self::new(elements)
    }
}

impl<T: PackElement<N>, const N: usize> Deref for Pack<T, N> {
    type Target = [T; N];

    #[inline(always)]
    fn deref(&self) -> &[T; N] {
        &self.0
    }
}

impl<T: PackElement<N>, const N: usize> DerefMut for Pack<T, N> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T; N] {
        &mut self.0
    }
}

impl<T: PackElement<N> + fmt::Debug, const N: usize> fmt::Debug for Pack<T, N> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
