//! `gpu_printf!`: Rust's formats over the driver's vprintf.
//!
//! Every argument but a character is passed as 64 bits, so that the format can be made when the kernel is
//! compiled: C's, with `ll` at each integer.

use core::ffi::CStr;

use super::format::{Slots, Translator};
use crate::half::bf16;
use crate::intrinsics::intrinsics;

intrinsics! {
    "vprintf" fn vprintf(format: *const u8, arguments: *const u64) -> i32;
}

/// Prints from a thread, with Rust's formats: `{}`, `{:x}`, `{:#x}`, `{:08}`, `{:+}`, `{:<8}`, `{:>8}`,
/// `{:.3}`, `{:e}`, and what C has: letters (`{:.6f}`, `{:g}`, `{:c}`), `-` for `<`, and a space in the
/// place of a sign. Fills other than spaces and zeros, `^`, names and numbers are errors.
///
/// Takes integers, floats, `bool` (as 0 or 1), raw pointers and `&CStr`, in order and at most 32 of
/// them; a float without precision has six digits, and `{:e}` gives at least two to the exponent. Gives the number of arguments, or a negative
/// number where the buffer for all that a kernel prints was full.
///
/// ```
/// use rustcuda_device::prelude::*;
///
/// #[kernel]
/// pub fn show(x: &[f32]) {
///     let i = thread::index_1d().get();
///     if i < 4 {
///         gpu_printf!("x[{}] = {:.3} ({:#010x})\n", i, x[i], x[i].to_bits());
///     }
/// }
/// ```
#[macro_export]
macro_rules! gpu_printf {
    // The arguments stand outside of the block with the type, whose name they might use for another.
    ($format:expr $(, $argument:expr)* $(,)?) => {
        match ($($argument,)*) {
            arguments => {
                struct RustcudaFormat;
                impl $crate::debug::Format for RustcudaFormat {
                    const TEXT: &'static str = $format;
                    const PLACE: &'static str =
                        ::core::concat!(::core::file!(), ":", ::core::line!(), ":", ::core::column!());
                }
                $crate::debug::printf::<RustcudaFormat, { $crate::debug::capacity($format) }, _>(arguments)
            }
        }
    };
}

pub use gpu_printf;

/// What kind of value an argument is.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Kind {
    Signed,
    Unsigned,
    Float,
    Pointer,
    Text,
}

/// Values that [`gpu_printf!`](crate::gpu_printf) takes.
///
/// # Safety
///
/// Not for implementing: vprintf follows the word of a text.
#[diagnostic::on_unimplemented(
    message = "gpu_printf! cannot print a `{Self}`",
    note = "it prints integers, floats, bool, raw pointers and &CStr"
)]
pub unsafe trait GpuPrintfArg: Copy {
    /// What it is.
    #[doc(hidden)]
    const KIND: Kind;
    /// Bits of the value, which a hexadecimal number shows.
    #[doc(hidden)]
    const BITS: u32;

    /// The value as vprintf takes it: 64 bits, signed ones extended, floats as f64.
    #[doc(hidden)]
    fn word(self) -> u64;
}

macro_rules! printable {
    ($($type:ty, $kind:ident, $value:ident => $word:expr;)*) => {
        $(
            // SAFETY: the word is of the kind.
            unsafe impl GpuPrintfArg for $type {
                const KIND: Kind = Kind::$kind;
                const BITS: u32 = 8 * size_of::<$type>() as u32;

                #[inline(always)]
                fn word(self) -> u64 {
                    let $value = self;
                    $word
                }
            }
        )*
    };
}

printable! {
    bool, Unsigned, value => u64::from(value);
    u8, Unsigned, value => u64::from(value);
    u16, Unsigned, value => u64::from(value);
    u32, Unsigned, value => u64::from(value);
    u64, Unsigned, value => value;
    usize, Unsigned, value => value as u64;
    i8, Signed, value => value as u64;
    i16, Signed, value => value as u64;
    i32, Signed, value => value as u64;
    i64, Signed, value => value as u64;
    isize, Signed, value => value as u64;
    f32, Float, value => f64::from(value).to_bits();
    f64, Float, value => value.to_bits();
    bf16, Float, value => value.to_f64().to_bits();
    &CStr, Text, value => value.as_ptr() as u64;
}
// Not stable yet, so it must not disturb a check for the host.
#[cfg(target_arch = "nvptx64")]
printable! {
    f16, Float, value => f64::from(value).to_bits();
}

macro_rules! printable_pointers {
    ($($pointer:ty),*) => {
        $(
            // SAFETY: the word is of the kind.
            unsafe impl<T> GpuPrintfArg for $pointer {
                const KIND: Kind = Kind::Pointer;
                const BITS: u32 = 64;

                #[inline(always)]
                fn word(self) -> u64 {
                    self as u64
                }
            }
        )*
    };
}

printable_pointers!(*const T, *mut T);

/// A format, as a type.
#[doc(hidden)]
pub trait Format {
    const TEXT: &'static str;
    /// Where it stands; the compiler would only show where it is used here.
    const PLACE: &'static str;
}

/// A tuple of arguments.
#[doc(hidden)]
pub trait Arguments {
    const KINDS: &'static [(Kind, u32)];

    /// Calls vprintf, with each word where it looks for it.
    fn print(self, format: &[u8], slots: &Slots) -> i32;
}

pub(super) const MOST_ARGUMENTS: usize = 32;

impl Arguments for () {
    const KINDS: &'static [(Kind, u32)] = &[];

    #[inline(always)]
    fn print(self, format: &[u8], _: &Slots) -> i32 {
        // SAFETY: the format ends in a zero byte and wants no arguments.
        unsafe { vprintf(format.as_ptr(), core::ptr::null()) }
    }
}

macro_rules! tuples {
    () => {};
    ($first:ident $($rest:ident)*) => {
        impl<$first: GpuPrintfArg, $($rest: GpuPrintfArg),*> Arguments for ($first, $($rest,)*) {
            const KINDS: &'static [(Kind, u32)] =
                &[($first::KIND, $first::BITS), $(($rest::KIND, $rest::BITS)),*];

            #[inline(always)]
            #[allow(non_snake_case)]
            fn print(self, format: &[u8], slots: &Slots) -> i32 {
                let ($first, $($rest,)*) = self;
                let words = [$first.word(), $($rest.word()),*];
                let mut buffer = words;
                for (word, slot) in words.iter().zip(&slots.slots) {
                    // SAFETY: the slots are no larger than the words. Those of 64 bits begin with a word.
                    unsafe {
                        let place = buffer.as_mut_ptr().cast::<u32>().add(slot.at);
                        if slot.is_half {
                            place.write(*word as u32);
                        } else {
                            place.cast::<u64>().write(word & slot.mask);
                        }
                    }
                }
                // SAFETY: the format ends in a zero byte, and was made for these arguments.
                unsafe { vprintf(format.as_ptr(), buffer.as_ptr()) }
            }
        }
        tuples!($($rest)*);
    };
}

tuples!(A B C D E F G H I J K L M N O P Q R S T U V W X Y Z Aa Ab Ac Ad Ae Af);

/// Enough bytes for the C format of a text: `{}` becomes `%lld` at most.
#[doc(hidden)]
pub const fn capacity(text: &str) -> usize {
    2 * text.len() + 1
}

/// What `gpu_printf!` calls.
#[doc(hidden)]
#[inline(always)]
pub fn printf<F: Format, const CAPACITY: usize, A: Arguments>(arguments: A) -> i32 {
    let (format, slots) = const { &Translator::<CAPACITY>::new(F::TEXT, F::PLACE).run(A::KINDS) };
    arguments.print(format, slots)
}
