//! Looking into a kernel that runs: printing, assertions, clocks.
//!
//! What kernels print comes out at the end of the launch's stream or of the context at the latest;
//! `torch.cuda.synchronize()` waits for it. It goes to the process's own standard output, which
//! notebooks do not show.

use core::ffi::CStr;

use crate::intrinsics::{intrinsics, ptx};

intrinsics! {
    "vprintf" fn vprintf(format: *const u8, arguments: *const u64) -> i32;
    "__assertfail" fn assert_fail(message: *const u8, file: *const u8, line: u32, function: *const u8, character_size: usize);
    "llvm.trap" fn llvm_trap();
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
        }
        $crate::debug::printf::<Format, { $crate::debug::capacity($format) }, _>(($($argument,)*))
    }};
}

/// Ends the launch with an error where the condition does not hold, and prints it with place, block and
/// thread, or a message instead of it.
///
/// `assert!` is less to carry, as it prints nothing unless the feature `panic-message` is on.
///
/// ```
/// use rustcuda_device::prelude::*;
///
/// #[kernel]
/// pub fn check(x: &[f32]) {
///     let i = thread::index_1d().get();
///     gpu_assert!(i >= x.len() || x[i] >= 0.0, "no square root of a negative number");
/// }
/// ```
#[macro_export]
macro_rules! gpu_assert {
    ($condition:expr $(,)?) => {
        $crate::gpu_assert!(@ $condition, ::core::stringify!($condition))
    };
    ($condition:expr, $message:literal $(,)?) => {
        $crate::gpu_assert!(@ $condition, $message)
    };
    (@ $condition:expr, $message:expr) => {
        if !$condition {
            $crate::debug::fail(
                ::core::concat!($message, "\0"),
                ::core::concat!(::core::file!(), "\0"),
                ::core::line!(),
                ::core::concat!(::core::module_path!(), "\0"),
            );
        }
    };
}

pub use {gpu_assert, gpu_printf};

/// What `gpu_assert!` calls; all texts end in a zero byte.
#[doc(hidden)]
#[cold]
#[inline(never)]
pub fn fail(message: &str, file: &str, line: u32, function: &str) -> ! {
    // SAFETY: the texts end in a zero byte.
    unsafe { assert_fail(message.as_ptr(), file.as_ptr(), line, function.as_ptr(), 1) };
    trap()
}

/// Ends the launch with an error.
#[inline(always)]
pub fn trap() -> ! {
    // SAFETY: has no requirements, and does not return.
    unsafe {
        llvm_trap();
        core::hint::unreachable_unchecked()
    }
}

/// Stops here where a debugger watches; ends the launch with an error where none does.
#[inline(always)]
pub fn breakpoint() {
    // SAFETY: has no requirements.
    unsafe { ptx!("brkpt;", options(nomem, nostack, preserves_flags)) }
}

macro_rules! clocks {
    ($($(#[doc = $doc:literal])* $name:ident = $instruction:literal;)*) => {
        $(
            $(#[doc = $doc])*
            #[inline(always)]
            pub fn $name() -> u64 {
                let ticks: u64;
                // SAFETY: reads a special register; not `nomem`, so that it stays between the accesses
                // whose time is wanted.
                unsafe { ptx!($instruction, out(reg64) ticks, options(nostack, preserves_flags)) };
                ticks
            }
        )*
    };
}

clocks! {
    /// The multiprocessor's clock, in cycles; differences count.
    clock64 = "mov.u64 {}, %clock64;";
    /// Nanoseconds of the GPU's global clock, which ticks every microsecond or so.
    globaltimer = "mov.u64 {}, %globaltimer;";
}

/// Counts one up in the profiler's counter `N`, 0 to 15.
#[inline(always)]
pub fn prof_trigger<const N: u32>() {
    const { assert!(N < 16, "the profiler's counters are 0 to 15") };
    // SAFETY: has no requirements.
    unsafe { ptx!("pmevent {};", const N, options(nomem, nostack, preserves_flags)) }
}

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
#[diagnostic::on_unimplemented(
    message = "gpu_printf! cannot print a `{Self}`",
    note = "it prints integers, floats, bool, raw pointers and &CStr"
)]
pub trait GpuPrintfArg: Copy {
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
            impl GpuPrintfArg for $type {
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
            impl<T> GpuPrintfArg for $pointer {
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
    let (format, masks) = const { &translate::<CAPACITY>(F::TEXT, A::KINDS) };
    arguments.print(format, masks)
}

/// Rust's format as one of C, with a zero byte at its end, and a mask for each argument.
const fn translate<const CAPACITY: usize>(
    text: &str,
    kinds: &[(Kind, u32)],
) -> ([u8; CAPACITY], [u64; MOST_ARGUMENTS]) {
    let text = text.as_bytes();
    let (mut format, mut end) = ([0; CAPACITY], 0);
    let mut masks = [u64::MAX; MOST_ARGUMENTS];
    let (mut at, mut argument) = (0, 0);
    while at < text.len() {
        let next = if at + 1 < text.len() { text[at + 1] } else { 0 };
        match text[at] {
            0 => panic!("gpu_printf!: a zero byte would end the text"),
            b'%' => {
                put(&mut format, &mut end, b"%%");
                at += 1;
            }
            byte @ (b'{' | b'}') if next == byte => {
                put(&mut format, &mut end, &[byte]);
                at += 2;
            }
            b'}' => panic!("gpu_printf!: a `}}` without its `{{`; to print one, write `}}}}`"),
            b'{' => {
                assert!(
                    argument < kinds.len(),
                    "gpu_printf!: more places than arguments"
                );
                let (kind, bits) = kinds[argument];
                let (after, is_whole) = place(text, at + 1, kind, &mut format, &mut end);
                if !is_whole {
                    masks[argument] = u64::MAX >> (64 - bits);
                }
                at = after;
                argument += 1;
            }
            byte => {
                put(&mut format, &mut end, &[byte]);
                at += 1;
            }
        }
    }
    assert!(
        argument == kinds.len(),
        "gpu_printf!: more arguments than places"
    );
    (format, masks)
}

/// Translates a place from behind its `{`; gives where it ends, and whether its argument is shown with
/// its sign, not its bits.
const fn place(
    text: &[u8],
    start: usize,
    kind: Kind,
    format: &mut [u8],
    end: &mut usize,
) -> (usize, bool) {
    let mut at = start;
    put(format, end, b"%");
    if byte(text, at) == b':' {
        at += 1;
    } else {
        assert!(
            byte(text, at) == b'}',
            "gpu_printf!: arguments have no names or numbers; write `{{}}`, in their order"
        );
    }
    loop {
        match byte(text, at) {
            b'<' => put(format, end, b"-"),
            b'>' => {}
            flag @ (b'-' | b'+' | b' ' | b'#' | b'0') => put(format, end, &[flag]),
            _ => break,
        }
        at += 1;
    }
    at = digits(text, at, format, end);
    if byte(text, at) == b'.' {
        assert!(
            matches!(kind, Kind::Float | Kind::Text),
            "gpu_printf!: only floats and texts have a precision"
        );
        put(format, end, b".");
        at = digits(text, at + 1, format, end);
    }
    let letter = byte(text, at);
    if letter != b'}' {
        at += 1;
    }
    assert!(
        byte(text, at) == b'}',
        "gpu_printf!: an unknown format behind `{{:`"
    );
    let conversion = conversion(kind, letter);
    if matches!(kind, Kind::Signed | Kind::Unsigned) && conversion != b'c' {
        put(format, end, b"ll");
    }
    put(format, end, &[conversion]);
    (at + 1, !matches!(conversion, b'x' | b'X' | b'o'))
}

/// C's letter for a value; `}` stands for none in Rust's format.
const fn conversion(kind: Kind, letter: u8) -> u8 {
    match (kind, letter) {
        (Kind::Signed, b'}' | b'?' | b'd' | b'i') => b'd',
        (Kind::Unsigned, b'}' | b'?' | b'd' | b'i' | b'u') => b'u',
        (Kind::Signed | Kind::Unsigned, b'x' | b'X' | b'o' | b'c') => letter,
        (Kind::Float, b'}' | b'?' | b'f' | b'F') => b'f',
        (Kind::Float, b'e' | b'E' | b'g' | b'G' | b'a' | b'A') => letter,
        (Kind::Pointer, b'}' | b'?' | b'p') => b'p',
        (Kind::Text, b'}' | b's') => b's',
        _ => panic!("gpu_printf!: this format does not fit its argument"),
    }
}

const fn digits(text: &[u8], start: usize, format: &mut [u8], end: &mut usize) -> usize {
    let mut at = start;
    while byte(text, at).is_ascii_digit() {
        put(format, end, &[text[at]]);
        at += 1;
    }
    at
}

const fn byte(text: &[u8], at: usize) -> u8 {
    assert!(
        at < text.len(),
        "gpu_printf!: a `{{` without its `}}`; to print one, write `{{{{`"
    );
    text[at]
}

const fn put(format: &mut [u8], end: &mut usize, bytes: &[u8]) {
    let mut at = 0;
    while at < bytes.len() {
        format[*end] = bytes[at];
        *end += 1;
        at += 1;
    }
}
