//! Elements that are loaded and stored 16 bytes at a time, the widest that every GPU has.

use core::ops::{Deref, DerefMut};

/// `N` elements of 16 bytes together, aligned to 16: `Pack<f32, 4>`, `Pack<f16, 8>`.
///
/// Copying one from or to memory is a single instruction. Used as an array otherwise.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct Pack<T, const N: usize>(pub [T; N]);

impl<T, const N: usize> Pack<T, N> {
    const IS_16_BYTES: () = assert!(size_of::<[T; N]>() == 16, "a Pack has 16 bytes, e.g. Pack<f32, 4>");

    /// The first `N` elements; None if there are fewer or their address is no multiple of 16.
    #[inline(always)]
    pub fn first(slice: &[T]) -> Option<&Self> {
        let () = Self::IS_16_BYTES;
        let pointer = slice.as_ptr().cast::<Self>();
        // SAFETY: long enough and aligned; a Pack is its elements.
        (slice.len() >= N && pointer.is_aligned()).then(|| unsafe { &*pointer })
    }

    /// The first `N` elements; None if there are fewer or their address is no multiple of 16.
    #[inline(always)]
    pub fn first_mut(slice: &mut [T]) -> Option<&mut Self> {
        let () = Self::IS_16_BYTES;
        let pointer = slice.as_mut_ptr().cast::<Self>();
        // SAFETY: long enough and aligned; a Pack is its elements.
        (slice.len() >= N && pointer.is_aligned()).then(|| unsafe { &mut *pointer })
    }

    /// A pack whose every element is what `function` makes of this one's.
    #[inline(always)]
    pub fn map<U>(self, function: impl FnMut(T) -> U) -> Pack<U, N> {
        Pack(self.0.map(function))
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
