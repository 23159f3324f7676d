//! Arithmetic on atomic integers.

use super::{Atomic, AtomicOrdering, Scope};

macro_rules! integers {
    ($($type:ident as $bits:ident: $add:ident $and:ident $or:ident $xor:ident $min:ident $max:ident;)*) => {
        $(
            impl<S: Scope> Atomic<$type, S> {
                integers! { @operations $type $bits
                    /// Adds `value`, wrapping around, and returns the value before.
                    fetch_add $add;
                    /// Keeps the bits that `value` has too, and returns the value before.
                    fetch_and $and;
                    /// Sets the bits that `value` has, and returns the value before.
                    fetch_or $or;
                    /// Flips the bits that `value` has, and returns the value before.
                    fetch_xor $xor;
                    /// Writes `value` where it is smaller, and returns the value before.
                    fetch_min $min;
                    /// Writes `value` where it is larger, and returns the value before.
                    fetch_max $max;
                }

                /// Subtracts `value`, wrapping around, and returns the value before.
                #[inline(always)]
                pub fn fetch_sub(&self, value: $type, order: AtomicOrdering) -> $type {
                    self.fetch_add(value.wrapping_neg(), order)
                }
            }
        )*
    };
    (@operations $type:ident $bits:ident $($(#[doc = $doc:literal])* $name:ident $instruction:ident;)*) => {
        $(
            $(#[doc = $doc])*
            #[inline(always)]
            pub fn $name(&self, value: $type, order: AtomicOrdering) -> $type {
                // SAFETY: the memory is this atomic's own.
                unsafe { S::$instruction(self.place(), value as $bits, order) as $type }
            }
        )*
    };
}

integers! {
    u32 as u32: add_u32 and_b32 or_b32 xor_b32 min_u32 max_u32;
    i32 as u32: add_u32 and_b32 or_b32 xor_b32 min_s32 max_s32;
    u64 as u64: add_u64 and_b64 or_b64 xor_b64 min_u64 max_u64;
    i64 as u64: add_u64 and_b64 or_b64 xor_b64 min_s64 max_s64;
}
