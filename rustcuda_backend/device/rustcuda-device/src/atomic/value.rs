//! Values as the bits that instructions take.

use super::{AtomicOrdering, Scope};
use crate::half::{Bf16x2, F16x2, bf16};

/// A value of 16, 32 or 64 bits.
///
/// # Safety
///
/// Not for implementing: `Bits` must be as large and as aligned as the type.
pub unsafe trait AtomicValue: Copy {
    #[doc(hidden)]
    type Bits: Word;
    #[doc(hidden)]
    fn to_bits(self) -> Self::Bits;
    #[doc(hidden)]
    fn from_bits(bits: Self::Bits) -> Self;
}

macro_rules! values {
    ($($type:ident as $bits:ident: |$value:ident| $to_bits:expr, |$word:ident| $from_bits:expr;)*) => {
        $(
            // SAFETY: the same number of bits, in the same place.
            unsafe impl AtomicValue for $type {
                type Bits = $bits;

                #[inline(always)]
                fn to_bits(self) -> $bits {
                    let $value = self;
                    $to_bits
                }

                #[inline(always)]
                fn from_bits($word: $bits) -> Self {
                    $from_bits
                }
            }
        )*
    };
}

values! {
    u32 as u32: |value| value, |bits| bits;
    i32 as u32: |value| value as u32, |bits| bits as i32;
    f32 as u32: |value| value.to_bits(), |bits| f32::from_bits(bits);
    u64 as u64: |value| value, |bits| bits;
    i64 as u64: |value| value as u64, |bits| bits as i64;
    f64 as u64: |value| value.to_bits(), |bits| f64::from_bits(bits);
    F16x2 as u32: |value| value.to_bits(), |bits| F16x2::from_bits(bits);
    Bf16x2 as u32: |value| value.to_bits(), |bits| Bf16x2::from_bits(bits);
    bf16 as u16: |value| value.to_bits(), |bits| bf16::from_bits(bits);
}
#[cfg(target_arch = "nvptx64")]
values! {
    f16 as u16: |value| value.to_bits(), |bits| f16::from_bits(bits);
}

/// The unsigned integer of a width, and what instructions do with it.
pub trait Word: Copy + Eq {
    unsafe fn load<S: Scope>(place: *mut Self, order: AtomicOrdering) -> Self;
    unsafe fn store<S: Scope>(place: *mut Self, value: Self, order: AtomicOrdering);
    unsafe fn exchange<S: Scope>(place: *mut Self, value: Self, order: AtomicOrdering) -> Self;
    unsafe fn compare_exchange<S: Scope>(
        place: *mut Self,
        current: Self,
        new: Self,
        order: AtomicOrdering,
    ) -> Self;
}

macro_rules! words {
    ($($bits:ident $load:ident $store:ident $compare_exchange:ident $($exchange:ident)?;)*) => {
        $(
            // SAFETY of all: promised by the callers.
            impl Word for $bits {
                #[inline(always)]
                unsafe fn load<S: Scope>(place: *mut Self, order: AtomicOrdering) -> Self {
                    unsafe { S::$load(place, order) }
                }

                #[inline(always)]
                unsafe fn store<S: Scope>(place: *mut Self, value: Self, order: AtomicOrdering) {
                    unsafe { S::$store(place, value, order) }
                }

                #[inline(always)]
                unsafe fn exchange<S: Scope>(place: *mut Self, value: Self, order: AtomicOrdering) -> Self {
                    words!(@exchange S place value order $load $compare_exchange $($exchange)?)
                }

                #[inline(always)]
                unsafe fn compare_exchange<S: Scope>(
                    place: *mut Self, current: Self, new: Self, order: AtomicOrdering,
                ) -> Self {
                    unsafe { S::$compare_exchange(place, current, new, order) }
                }
            }
        )*
    };
    (@exchange $scope:ident $place:ident $value:ident $order:ident $load:ident $compare_exchange:ident $exchange:ident) => {
        unsafe { $scope::$exchange($place, $value, $order) }
    };
    // PTX has no exchange of this width.
    (@exchange $scope:ident $place:ident $value:ident $order:ident $load:ident $compare_exchange:ident) => {
        unsafe {
            let mut old = $scope::$load($place, AtomicOrdering::Relaxed);
            loop {
                let now = $scope::$compare_exchange($place, old, $value, $order);
                if now == old {
                    return old;
                }
                old = now;
            }
        }
    };
}

words! {
    u16 load_b16 store_b16 compare_exchange_b16;
    u32 load_b32 store_b32 compare_exchange_b32 exchange_b32;
    u64 load_b64 store_b64 compare_exchange_b64 exchange_b64;
}
