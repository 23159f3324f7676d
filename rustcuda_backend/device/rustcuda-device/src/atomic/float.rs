//! Arithmetic on atomic floats.

use super::{Atomic, AtomicOrdering, Scope};
use crate::requires::{Gpu, Has90};

macro_rules! floats {
    ($($type:ident as $bits:ident: $add:ident $min_unsigned:ident $max_unsigned:ident $min_signed:ident $max_signed:ident;)*) => {
        $(
            impl<S: Scope> Atomic<$type, S> {
                /// Adds `value`, rounded to nearest, and returns the value before.
                ///
                /// Of `f32` in global memory the hardware takes and gives subnormal numbers as 0.
                #[inline(always)]
                pub fn fetch_add(&self, value: $type, order: AtomicOrdering) -> $type {
                    // SAFETY: the memory is this atomic's own.
                    $type::from_bits(unsafe { S::$add(self.place(), value.to_bits(), order) })
                }

                /// Subtracts `value`, as [`fetch_add`](Self::fetch_add) does of its negative.
                #[inline(always)]
                pub fn fetch_sub(&self, value: $type, order: AtomicOrdering) -> $type {
                    self.fetch_add(-value, order)
                }

                /// Writes `value` where it is smaller, -0 smaller than 0, and returns the value before.
                ///
                /// One instruction on integers, whose order floats have if NaN is not among them: the
                /// value before must not be NaN, and a `value` that is NaN changes nothing.
                #[inline(always)]
                pub fn fetch_min(&self, value: $type, order: AtomicOrdering) -> $type {
                    let value = if value.is_nan() { $type::INFINITY } else { value };
                    let (place, bits) = (self.place(), value.to_bits());
                    // SAFETY: the memory is this atomic's own. Negative floats are the larger, the
                    // smaller their bits as a signed integer are; and any is larger unsigned.
                    $type::from_bits(unsafe {
                        if value.is_sign_negative() {
                            S::$max_unsigned(place, bits, order)
                        } else {
                            S::$min_signed(place, bits, order)
                        }
                    })
                }

                /// Writes `value` where it is larger, 0 larger than -0, and returns the value before.
                ///
                /// As to NaN, see [`fetch_min`](Self::fetch_min).
                #[inline(always)]
                pub fn fetch_max(&self, value: $type, order: AtomicOrdering) -> $type {
                    let value = if value.is_nan() { $type::NEG_INFINITY } else { value };
                    let (place, bits) = (self.place(), value.to_bits());
                    // SAFETY: as for `fetch_min`.
                    $type::from_bits(unsafe {
                        if value.is_sign_negative() {
                            S::$min_unsigned(place, bits, order)
                        } else {
                            S::$max_signed(place, bits, order)
                        }
                    })
                }
            }
        )*
    };
}

floats! {
    f32 as u32: add_f32 min_u32 max_u32 min_s32 max_s32;
    f64 as u64: add_f64 min_u64 max_u64 min_s64 max_s64;
}

#[cfg(target_arch = "nvptx64")]
impl<S: Scope> Atomic<f16, S> {
    /// Adds `value`, rounded to nearest, and returns the value before.
    #[inline(always)]
    pub fn fetch_add(&self, value: f16, order: AtomicOrdering) -> f16 {
        // SAFETY: the memory is this atomic's own.
        f16::from_bits(unsafe { S::add_f16(self.place(), value.to_bits(), order) })
    }

    /// Subtracts `value`, rounded to nearest, and returns the value before.
    #[inline(always)]
    pub fn fetch_sub(&self, value: f16, order: AtomicOrdering) -> f16 {
        self.fetch_add(-value, order)
    }

    /// Writes the smaller of the value and `value`, and returns the value before: a loop of
    /// compare-exchanges. Of a number and NaN, the number is the smaller.
    #[inline(always)]
    pub fn fetch_min(&self, value: f16, order: AtomicOrdering) -> f16 {
        self.update(order, |old| {
            if old <= value || value.is_nan() {
                old
            } else {
                value
            }
        })
    }

    /// Writes the larger of the value and `value`, and returns the value before: a loop of
    /// compare-exchanges. Of a number and NaN, the number is the larger.
    #[inline(always)]
    pub fn fetch_max(&self, value: f16, order: AtomicOrdering) -> f16 {
        self.update(order, |old| {
            if old >= value || value.is_nan() {
                old
            } else {
                value
            }
        })
    }
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
    unsafe { super::Device::add_f16x2(address, value, AtomicOrdering::Relaxed) }
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
    unsafe { super::Device::add_bf16x2(address, value, AtomicOrdering::Relaxed) }
}
