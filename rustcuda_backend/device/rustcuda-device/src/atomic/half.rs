//! Arithmetic on atomic floats of 16 bits, one or a pair.

use super::{Atomic, AtomicOrdering, Device, Scope};
use crate::half::{Bf16x2, F16x2, bf16};
use crate::requires::{Gpu, Has90};

macro_rules! halves {
    ($($(#[$attribute:meta])* $type:ident: $add:ident $(from $capability:ident)?;)*) => {
        $(
            $(#[$attribute])*
            impl<S: Scope> Atomic<$type, S> {
                /// Adds `value`, rounded to nearest, and returns the value before. A pair is added half by
                /// half; each half by itself is atomic.
                #[inline(always)]
                pub fn fetch_add(&self, value: $type, order: AtomicOrdering) -> $type
                $(where for<'pass> Gpu<'pass>: $capability)?
                {
                    // SAFETY: the memory is this atomic's own.
                    $type::from_bits(unsafe { S::$add(self.place(), value.to_bits(), order) })
                }

                /// Subtracts `value`, as [`fetch_add`](Self::fetch_add) does of its negative.
                #[inline(always)]
                pub fn fetch_sub(&self, value: $type, order: AtomicOrdering) -> $type
                $(where for<'pass> Gpu<'pass>: $capability)?
                {
                    self.fetch_add(-value, order)
                }

                /// Writes the smaller of the value and `value`, of each half of a pair, and returns the value
                /// before: a loop of compare-exchanges. Of a number and NaN, it is the number.
                #[inline(always)]
                pub fn fetch_min(&self, value: $type, order: AtomicOrdering) -> $type {
                    self.update(order, |old| old.min(value))
                }

                /// Writes the larger of the value and `value`, of each half of a pair, and returns the value
                /// before: a loop of compare-exchanges. Of a number and NaN, it is the number.
                #[inline(always)]
                pub fn fetch_max(&self, value: $type, order: AtomicOrdering) -> $type {
                    self.update(order, |old| old.max(value))
                }
            }
        )*
    };
}

halves! {
    #[cfg(target_arch = "nvptx64")]
    f16: add_f16;
    bf16: add_bf16 from Has90;
    F16x2: add_f16x2;
    Bf16x2: add_bf16x2 from Has90;
}

/// Adds the two `f16` in `value` to those at `address`, each by itself; returns those before.
/// Device scope, relaxed.
///
/// # Safety
///
/// `address` must be valid, aligned to 4, and only be used by atomic operations at this time.
#[inline(always)]
pub unsafe fn atom_add_f16x2(address: *mut u32, value: u32) -> u32 {
    // SAFETY: promised by the caller.
    unsafe { Device::add_f16x2(address, value, AtomicOrdering::Relaxed) }
}

/// Adds the two `bf16` in `value` to those at `address`, each by itself; returns those before.
/// Device scope, relaxed.
///
/// # Safety
///
/// As for [`atom_add_f16x2`].
#[inline(always)]
pub unsafe fn atom_add_bf16x2(address: *mut u32, value: u32) -> u32
where
    for<'pass> Gpu<'pass>: Has90,
{
    // SAFETY: promised by the caller.
    unsafe { Device::add_bf16x2(address, value, AtomicOrdering::Relaxed) }
}
