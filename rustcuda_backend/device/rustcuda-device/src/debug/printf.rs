//! `gpu_printf!`: Rust's formats over the driver's vprintf.
//!
//! Every argument but a character is passed as 64 bits, so that the format can be made when the kernel is
//! compiled: C's, with `ll` at each integer.

use core::ffi::CStr;

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

const MOST_ARGUMENTS: usize = 32;

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

/// Where vprintf looks for an argument.
#[derive(Clone, Copy)]
struct Slot {
    /// The bits that are shown.
    mask: u64,
    /// In words of 32 bits from the first argument's on.
    at: usize,
    /// Whether it has 32 bits only.
    is_half: bool,
}

/// Those of all arguments, one behind the other as C has them: `%c` takes an `int`, all else 64 bits.
#[doc(hidden)]
pub struct Slots {
    slots: [Slot; MOST_ARGUMENTS],
    count: usize,
    end: usize,
}

impl Slots {
    const fn add(&mut self, mask: u64, is_half: bool) {
        let at = if is_half {
            self.end
        } else {
            self.end.next_multiple_of(2)
        };
        self.slots[self.count] = Slot { mask, at, is_half };
        self.count += 1;
        self.end = at + if is_half { 1 } else { 2 };
    }
}

/// What a format says of an argument before the letter.
struct Shape {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
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

    /// The format, with a zero byte at its end, and where vprintf looks for each argument.
    const fn run(mut self, kinds: &[(Kind, u32)]) -> ([u8; CAPACITY], Slots) {
        let mut slots = Slots {
            slots: [Slot {
                mask: 0,
                at: 0,
                is_half: false,
            }; MOST_ARGUMENTS],
            count: 0,
            end: 0,
        };
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
                    if slots.count == kinds.len() {
                        self.refuse("more places than arguments");
                    }
                    let (kind, bits) = kinds[slots.count];
                    self.conversion(kind, bits, &mut slots);
                }
                byte => self.put(&[byte]),
            }
        }
        if slots.count < kinds.len() {
            self.refuse("more arguments than places");
        }
        (self.format, slots)
    }

    /// Translates from behind a `{` to its `}`; gives where the argument's value goes.
    const fn conversion(&mut self, kind: Kind, bits: u32, slots: &mut Slots) {
        if self.peek() == b':' {
            self.at += 1;
        }
        let mut shape = self.shape(kind);
        let written = self.peek();
        if written != b'}' {
            self.at += 1;
        }
        if self.peek() != b'}' {
            self.refuse("an unknown format behind `{:`");
        }
        self.at += 1;
        let letter = match c_letter(kind, written) {
            Some(letter) => letter,
            None => self.refuse("this format does not fit its argument"),
        };
        let is_number =
            matches!(kind, Kind::Float | Kind::Signed | Kind::Unsigned) && letter != b'c';
        if !is_number && (shape.zero || shape.plus || shape.alternate && letter == b'p') {
            self.refuse("only numbers have a sign, and zeros in front");
        }
        self.prefix(&mut shape, letter);
        self.put(b"%");
        self.put_if(shape.left && !shape.zero, b"-");
        self.put_if(shape.plus, b"+");
        self.put_if(shape.space, b" ");
        self.put_if(shape.zero, b"0");
        self.put_if(
            shape.alternate && matches!(kind, Kind::Float) && has_other_form(written),
            b"#",
        );
        if shape.width > 0 {
            self.put_number(shape.width);
        }
        if let Some(precision) = shape.precision {
            self.put(b".");
            self.put_number(precision);
        }
        self.put_if(is_number && !matches!(kind, Kind::Float), b"ll");
        self.put(&[letter]);
        let shows_bits = matches!(letter, b'x' | b'X' | b'o');
        slots.add(
            if shows_bits {
                u64::MAX >> (64 - bits)
            } else {
                u64::MAX
            },
            letter == b'c',
        );
    }

    /// Writes what Rust has in front of a number and C not always: `+` if it cannot be negative, and `0x`.
    const fn prefix(&mut self, shape: &mut Shape, letter: u8) {
        let base: &[u8] = match letter {
            b'x' | b'X' if shape.alternate => b"0x",
            b'o' if shape.alternate => b"0o",
            _ => b"",
        };
        let has_sign = shape.plus && matches!(letter, b'u' | b'x' | b'X' | b'o');
        let length = base.len() + has_sign as usize;
        if length == 0 {
            return;
        }
        if shape.width > 0 && !shape.zero && !shape.left {
            self.refuse(
                "in front of `0x`, or of the `+` of what is never negative, no spaces can be put; write `{:#010x}` \
                 for zeros behind it, or `{:<#10x}`",
            );
        }
        shape.width = shape.width.saturating_sub(length);
        self.put_if(has_sign, b"+");
        self.put(base);
        shape.plus = shape.plus && !has_sign;
    }

    /// What stands before the letter.
    const fn shape(&mut self, kind: Kind) -> Shape {
        let is_text = matches!(kind, Kind::Text);
        let mut shape = Shape {
            // As Rust does.
            left: is_text,
            plus: false,
            space: false,
            alternate: false,
            zero: false,
            width: 0,
            precision: None,
        };
        if self.at + 1 < self.text.len() && matches!(self.text[self.at + 1], b'<' | b'>' | b'^') {
            if self.peek() != b' ' {
                self.refuse(
                    "gaps are filled by spaces only, or by zeros in front of numbers: `{:08}`",
                );
            }
            self.at += 1;
        }
        loop {
            match self.peek() {
                b'<' | b'-' => shape.left = true,
                b'>' => shape.left = false,
                b'^' => self.refuse("nothing can be put in the middle, only `{:<8}` and `{:>8}`"),
                b'+' => shape.plus = true,
                b' ' => shape.space = true,
                b'#' => shape.alternate = true,
                b'0' => shape.zero = true,
                _ => break,
            }
            self.at += 1;
        }
        shape.width = self.number();
        if self.peek() == b'.' {
            if !is_text && !matches!(kind, Kind::Float) {
                self.refuse("only floats and texts have a precision");
            }
            self.at += 1;
            shape.precision = Some(self.number());
        }
        shape
    }

    const fn number(&mut self) -> usize {
        let mut number = 0;
        while self.peek().is_ascii_digit() {
            number = 10 * number + (self.next() - b'0') as usize;
        }
        number
    }

    const fn put_number(&mut self, number: usize) {
        if number > 9 {
            self.put_number(number / 10);
        }
        self.put(&[b'0' + (number % 10) as u8]);
    }

    const fn put_if(&mut self, condition: bool, bytes: &[u8]) {
        if condition {
            self.put(bytes);
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
