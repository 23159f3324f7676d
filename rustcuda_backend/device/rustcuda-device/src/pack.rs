//! Elements that are loaded and stored 16 bytes at a time, the widest that every GPU has.

use core::ops::{Deref, DerefMut};
use core::{array, mem};

/// `N` elements of 16 bytes together, aligned to 16: `Pack<f32, 4>`, `Pack<f16, 8>`.
///
/// Copying one from or to memory is a single instruction, which memory-bound kernels need to be as
/// fast as a copy. Used as an array otherwise.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct Pack<T, const N: usize>(pub [T; N]);

/// How a pack crosses to memory: as a vector, which LLVM keeps in one piece.
#[cfg_attr(target_arch = "nvptx64", repr(simd))]
#[cfg_attr(not(target_arch = "nvptx64"), repr(C, align(16)))]
struct Vector<T, const N: usize>([T; N]);

/// Four `f32`.
pub type F32x4 = Pack<f32, 4>;
/// Eight `f16`.
// Not stable yet, so it must not disturb a check for the host.
#[cfg(target_arch = "nvptx64")]
pub type F16x8 = Pack<f16, 8>;

impl<T: Copy, const N: usize> Pack<T, N> {
    const IS_16_BYTES: () = assert!(
        size_of::<[T; N]>() == 16,
        "a Pack has 16 bytes, e.g. Pack<f32, 4>"
    );

    /// A pack whose element `k` is `element(k)`.
    #[inline(always)]
    pub fn from_fn(element: impl FnMut(usize) -> T) -> Self {
        Self(array::from_fn(element))
    }

    /// Loads the elements from `start` on; those beyond the slice's end are `fill`.
    ///
    /// One load where they all exist and their address is a multiple of 16, else one for each.
    #[inline(always)]
    pub fn load(slice: &[T], start: usize, fill: T) -> Self {
        let () = Self::IS_16_BYTES;
        let pointer = slice.as_ptr().wrapping_add(start).cast::<Vector<T, N>>();
        if start <= slice.len() && slice.len() - start >= N && pointer.is_aligned() {
            // SAFETY: in bounds and aligned; both types are their elements.
            return unsafe { mem::transmute_copy(&pointer.read()) };
        }
        Self::from_fn(|k| slice.get(start.saturating_add(k)).copied().unwrap_or(fill))
    }

    /// Stores the elements that the slice has place for.
    ///
    /// One store where it has place for all and its address is a multiple of 16, else one for each.
    #[inline(always)]
    pub fn store(self, slice: &mut [T]) {
        let () = Self::IS_16_BYTES;
        let pointer = slice.as_mut_ptr().cast::<Vector<T, N>>();
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

impl<T, const N: usize> Deref for Pack<T, N> {
    type Target = [T; N];

    #[inline(always)]
    fn deref(&self) -> &[T; N] {
        &self.0
    }
}

impl<T, const N: usize> DerefMut for Pack<T, N> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T; N] {
        &mut self.0
    }
}
