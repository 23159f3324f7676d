//! `gpu_printf!`: Rust's formats over the driver's vprintf.
//!
//! Every argument is passed as 64 bits, so that the format can be made when the kernel is compiled:
//! C's, with `ll` at each integer.

use core::ffi::CStr;

use crate::half::bf16;
use crate::intrinsics::intrinsics;

intrinsics! {
    "vprintf" fn vprintf(format: *const u8, arguments: *const u64) -> i32;
}

/// Prints from a thread, with Rust's formats: `{}`, `{:x}`, `{:#x}`, `{:08}`, `{:+}`, `{:<8}`, `{:.3}`,
/// `{:e}`, and the letters of C (`{:.6f}`, `{:g}`).
///
/// Takes integers, floats, `bool` (as 0 or 1), raw pointers and `&CStr`, in order and at most 32 of
/// them; a float without precision has six digits. Gives the number of arguments, or a negative
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
    ($format:expr $(, $argument:expr)* $(,)?) => {{
        struct Format;
        impl $crate::debug::Format for Format {
            const TEXT: &'static str = $format;
            const PLACE: &'static str =
                ::core::concat!(::core::file!(), ":", ::core::line!(), ":", ::core::column!());
        }
        $crate::debug::printf::<Format, { $crate::debug::capacity($format) }, _>(($($argument,)*))
    }};
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

    /// Calls vprintf; each word is cut down to its mask.
    fn print(self, format: &[u8], masks: &[u64; MOST_ARGUMENTS]) -> i32;
}

const MOST_ARGUMENTS: usize = 32;

impl Arguments for () {
    const KINDS: &'static [(Kind, u32)] = &[];

    #[inline(always)]
    fn print(self, format: &[u8], _: &[u64; MOST_ARGUMENTS]) -> i32 {
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
            fn print(self, format: &[u8], masks: &[u64; MOST_ARGUMENTS]) -> i32 {
                let ($first, $($rest,)*) = self;
                let mut words = [$first.word(), $($rest.word()),*];
                for (word, mask) in words.iter_mut().zip(masks) {
                    *word &= mask;
                }
                // SAFETY: the format ends in a zero byte, and was made for these arguments.
                unsafe { vprintf(format.as_ptr(), words.as_ptr()) }
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
    let (format, masks) = const { &Translator::<CAPACITY>::new(F::TEXT, F::PLACE).run(A::KINDS) };
    arguments.print(format, masks)
}

/// Turns Rust's format into one of C, at compile time.
struct Translator<const CAPACITY: usize> {
    text: &'static [u8],
    at: usize,
    format: [u8; CAPACITY],
    end: usize,
    place: &'static str,
}

impl<const CAPACITY: usize> Translator<CAPACITY> {
    const fn new(text: &'static str, place: &'static str) -> Self {
        Self {
            text: text.as_bytes(),
            at: 0,
            format: [0; CAPACITY],
            end: 0,
            place,
        }
    }

    /// The format, with a zero byte at its end, and a mask for each argument.
    const fn run(mut self, kinds: &[(Kind, u32)]) -> ([u8; CAPACITY], [u64; MOST_ARGUMENTS]) {
        let mut masks = [u64::MAX; MOST_ARGUMENTS];
        let mut argument = 0;
        while self.at < self.text.len() {
            let byte = self.next();
            let doubled = self.at < self.text.len() && self.text[self.at] == byte;
            match byte {
                0 => self.refuse("a zero byte would end the text"),
                b'%' => self.put(b"%%"),
                b'{' | b'}' if doubled => {
                    self.at += 1;
                    self.put(&[byte]);
                }
                b'}' => self.refuse("a `}` without its `{`; to print one, write `}}`"),
                b'{' => {
                    if !matches!(self.peek(), b':' | b'}') {
                        self.refuse(
                            "arguments have no names or numbers; write `{}`, in their order",
                        );
                    }
                    if argument == kinds.len() {
                        self.refuse("more places than arguments");
                    }
                    let (kind, bits) = kinds[argument];
                    if !self.conversion(kind) {
                        masks[argument] = u64::MAX >> (64 - bits);
                    }
                    argument += 1;
                }
                byte => self.put(&[byte]),
            }
        }
        if argument < kinds.len() {
            self.refuse("more arguments than places");
        }
        (self.format, masks)
    }

    /// Translates from behind a `{` to its `}`; gives whether the argument is shown as a number, not
    /// as its bits.
    const fn conversion(&mut self, kind: Kind) -> bool {
        self.put(b"%");
        if self.peek() == b':' {
            self.at += 1;
        }
        self.flags();
        self.digits();
        if self.peek() == b'.' {
            if !matches!(kind, Kind::Float | Kind::Text) {
                self.refuse("only floats and texts have a precision");
            }
            self.put(b".");
            self.at += 1;
            self.digits();
        }
        let letter = self.peek();
        if letter != b'}' {
            self.at += 1;
        }
        if self.peek() != b'}' {
            self.refuse("an unknown format behind `{:`");
        }
        self.at += 1;
        let letter = match c_letter(kind, letter) {
            Some(letter) => letter,
            None => self.refuse("this format does not fit its argument"),
        };
        if matches!(kind, Kind::Signed | Kind::Unsigned) && letter != b'c' {
            self.put(b"ll");
        }
        self.put(&[letter]);
        !matches!(letter, b'x' | b'X' | b'o')
    }

    const fn flags(&mut self) {
        loop {
            match self.peek() {
                b'<' => self.put(b"-"),
                // To the right is where C puts everything.
                b'>' => {}
                // C has it for these letters only; in `{:#?}` it changes nothing for a single value.
                b'#' if !has_other_form(self.last_letter()) => {}
                flag @ (b'-' | b'+' | b' ' | b'#' | b'0') => self.put(&[flag]),
                _ => return,
            }
            self.at += 1;
        }
    }

    /// The letter before the next `}`.
    const fn last_letter(&self) -> u8 {
        let mut at = self.at;
        while at + 1 < self.text.len() && self.text[at + 1] != b'}' {
            at += 1;
        }
        self.text[at]
    }

    const fn digits(&mut self) {
        while self.peek().is_ascii_digit() {
            let digit = self.next();
            self.put(&[digit]);
        }
    }

    const fn next(&mut self) -> u8 {
        let byte = self.peek();
        self.at += 1;
        byte
    }

    const fn peek(&self) -> u8 {
        if self.at >= self.text.len() {
            self.refuse("a `{` without its `}`; to print one, write `{{`");
        }
        self.text[self.at]
    }

    const fn put(&mut self, bytes: &[u8]) {
        put(&mut self.format, &mut self.end, bytes);
    }

    /// Ends the compilation.
    const fn refuse(&self, message: &str) -> ! {
        let (mut text, mut end) = ([0; 1024], 0);
        put(&mut text, &mut end, self.place.as_bytes());
        put(&mut text, &mut end, b": gpu_printf!: ");
        put(&mut text, &mut end, message.as_bytes());
        match core::str::from_utf8(text.split_at(end).0) {
            Ok(text) => panic!("{}", text),
            Err(_) => panic!("gpu_printf!: a wrong format"),
        }
    }
}

/// C's letter for a value, if there is one; `}` stands for none in Rust's format.
const fn c_letter(kind: Kind, letter: u8) -> Option<u8> {
    match (kind, letter) {
        (Kind::Signed, b'}' | b'?' | b'd' | b'i') => Some(b'd'),
        (Kind::Unsigned, b'}' | b'?' | b'd' | b'i' | b'u') => Some(b'u'),
        (Kind::Signed | Kind::Unsigned, b'x' | b'X' | b'o' | b'c') => Some(letter),
        (Kind::Float, b'}' | b'?' | b'f' | b'F') => Some(b'f'),
        (Kind::Float, b'e' | b'E' | b'g' | b'G' | b'a' | b'A') => Some(letter),
        (Kind::Pointer, b'}' | b'?' | b'p') => Some(b'p'),
        (Kind::Text, b'}' | b's') => Some(b's'),
        _ => None,
    }
}

/// Whether C has another form for a letter, that of the flag `#`.
const fn has_other_form(letter: u8) -> bool {
    matches!(
        letter,
        b'x' | b'X' | b'o' | b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A'
    )
}

/// Adds bytes as far as there is room.
const fn put(buffer: &mut [u8], end: &mut usize, bytes: &[u8]) {
    let mut at = 0;
    while at < bytes.len() && *end < buffer.len() {
        buffer[*end] = bytes[at];
        *end += 1;
        at += 1;
    }
}
