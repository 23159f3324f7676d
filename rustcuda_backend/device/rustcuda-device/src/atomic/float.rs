//! Arithmetic on atomic floats.

use super::{Atomic, AtomicOrdering, Scope};

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
