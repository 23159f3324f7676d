//! What `#[kernel]` tells the build backend about a kernel, by a static in the PTX.
//!
//! The static `__rustcuda_kernel_<name>` holds UTF-8 text: lines separated by `\x1e`, their fields
//! by `\x1f`.
//!
//! | line | fields |
//! |---|---|
//! | `rustcuda` | the format's version, `1`; always the first line |
//! | `name` | the kernel's name |
//! | `doc` | its doc comment, if there is one, lines separated by newlines |
//! | `launch_bounds` | most threads per block, fewest blocks per multiprocessor or 0; if given |
//! | `block` | threads of a block along x, y and z; if given |
//! | `cluster` | blocks of a cluster along x, y and z; if given |
//! | `parameter` | name and type, in order; one line each |
//!
//! A struct is spelled with its fields, `P{a: f32, b: [u8; 3]}`, and doc comments stand before the
//! names, between two `\x1d`.
//!
//! `#[kernel]` writes it by means of this module; other code has no use for it.

use crate::bf16;
use crate::disjoint::DisjointSlice;
use crate::index::SpaceLayout;

/// Numbers and `bool`: what a kernel can be passed, and what its pointers and slices can hold.
///
/// # Safety
///
/// Not for implementing: Python passes what the name says.
#[diagnostic::on_unimplemented(
    message = "Python has no tensors and no numbers of type `{Self}`",
    label = "not a number that a kernel can be passed",
    note = "use bool, an integer of 8 to 64 bits, f16, bf16, f32 or f64; point to memory of another kind with `*mut u8`"
)]
pub unsafe trait Scalar: Copy {
    /// Its name in Rust.
    const NAME: &'static str;
}

macro_rules! scalars {
    ($($type:ident)*) => {
        $(
            // SAFETY: its own name.
            unsafe impl Scalar for $type {
                const NAME: &'static str = stringify!($type);
            }

            // SAFETY: spelled as it is.
            unsafe impl KernelParam for $type {
                const SPELLING: [&'static str; 3] = ["", Self::NAME, ""];
            }
        )*
    };
}

scalars!(bool u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 bf16);
// Not stable yet, so it must not disturb a check for the host.
#[cfg(target_arch = "nvptx64")]
scalars!(f16);

/// The types that a kernel's parameters can have; for structs there is `#[derive(KernelParam)]`.
///
/// # Safety
///
/// Python passes what the spelling says.
#[diagnostic::on_unimplemented(
    message = "a kernel's parameter of type `{Self}` cannot be passed from Python",
    label = "cannot be passed from Python",
    note = "take numbers, bool, arrays of them, structs with `#[derive(KernelParam)]`, `*const T`, `*mut T`, `&[T]` to read, or `DisjointSlice<T>` to write"
)]
pub unsafe trait KernelParam {
    /// Its spelling in records: what stands before the scalar, the scalar, and what stands after.
    const SPELLING: [&'static str; 3];
    /// Whether it is a pointer with a length.
    const IS_SLICE: bool = false;
}

// SAFETY: spelled as it is.
unsafe impl<T: Scalar> KernelParam for *const T {
    const SPELLING: [&'static str; 3] = ["*const ", T::NAME, ""];
}

// SAFETY: spelled as it is.
unsafe impl<T: Scalar> KernelParam for *mut T {
    const SPELLING: [&'static str; 3] = ["*mut ", T::NAME, ""];
}

// SAFETY: spelled as it is.
unsafe impl<T: Scalar> KernelParam for &T {
    const SPELLING: [&'static str; 3] = ["&", T::NAME, ""];
}

// SAFETY: spelled as it is.
unsafe impl<T: Scalar> KernelParam for &[T] {
    const SPELLING: [&'static str; 3] = ["&[", T::NAME, "]"];
    const IS_SLICE: bool = true;
}

/// What structs that kernels take by value can hold.
#[diagnostic::on_unimplemented(
    message = "a struct that kernels take cannot hold a `{Self}`",
    label = "Python has no counterpart of it",
    note = "fields are numbers, bool, arrays of them, and structs with `#[derive(KernelParam)]`; pass pointers and \
            slices as parameters of their own"
)]
pub trait StructField: KernelParam {
    /// [`KernelParam::SPELLING`], for those that can be fields.
    const FIELD: [&'static str; 3] = Self::SPELLING;
}

impl<T: Scalar + KernelParam> StructField for T {}

impl<T: Scalar, const N: usize> StructField for [T; N] {}

// SAFETY: spelled as it is.
unsafe impl<T: Scalar, const N: usize> KernelParam for [T; N] {
    const SPELLING: [&'static str; 3] = ["[", T::NAME, ArrayEnd::<N>::TEXT];
}

/// What stands behind the scalar in an array's spelling: `; 4]`.
struct ArrayEnd<const N: usize>;

impl<const N: usize> ArrayEnd<N> {
    // Of the most digits that there are.
    const BYTES: [u8; 23] = {
        assert!(
            N > 0,
            "an array without elements is no parameter of a kernel"
        );
        let mut bytes = [0; 23];
        let end = put(&mut bytes, 0, "; ");
        let end = put_number(&mut bytes, end, N as u64);
        put(&mut bytes, end, "]");
        bytes
    };
    const TEXT: &'static str = {
        let (shown, _) = Self::BYTES.split_at(3 + digits(N as u64));
        text(shown)
    };
}

// SAFETY: spelled as it is.
unsafe impl<T: Scalar, Space: SpaceLayout> KernelParam for DisjointSlice<'_, T, Space> {
    const SPELLING: [&'static str; 3] = ["DisjointSlice<", T::NAME, Space::RECORDED];
    const IS_SLICE: bool = true;
}

/// A parameter that the PTX has as a pointer and a length, and a third where [`Space`](Self::Space)
/// is not `()`.
#[diagnostic::on_unimplemented(
    message = "a kernel's parameter of type `{Self}` cannot be passed from Python",
    label = "cannot be passed from Python",
    note = "slices are `&[T]` to read or `DisjointSlice<T>` to write"
)]
pub trait SliceParam {
    /// The PTX parameter before the length.
    type Pointer;
    /// The PTX parameter behind the length, or `()`.
    type Space;

    /// Puts them together.
    ///
    /// # Safety
    ///
    /// They must describe memory that is valid as this type asks for.
    unsafe fn from_parts(pointer: Self::Pointer, length: usize, space: Self::Space) -> Self;
}

impl<'a, T: Scalar> SliceParam for &'a [T] {
    // LLVM knows of it to be read only and not aliased, as it does of `&[T]`: such loads go through the
    // read-only cache (LDG.CONSTANT). Never null: the loader has another address for empty tensors.
    type Pointer = &'a [T; 0];
    type Space = ();

    #[inline(always)]
    unsafe fn from_parts(pointer: Self::Pointer, length: usize, (): ()) -> Self {
        // SAFETY: promised by the caller.
        unsafe { core::slice::from_raw_parts(pointer.as_ptr(), length) }
    }
}

impl<T: Scalar, Space: SpaceLayout> SliceParam for DisjointSlice<'_, T, Space> {
    // So LLVM does not ask whether the elements that it gives out are at null, which is how Rust tells
    // that there is none.
    type Pointer = core::ptr::NonNull<T>;
    type Space = Space::Data;

    #[inline(always)]
    unsafe fn from_parts(pointer: Self::Pointer, length: usize, space: Space::Data) -> Self {
        // SAFETY: promised by the caller.
        unsafe { Self::from_raw_parts_with_space(pointer.as_ptr(), length, space) }
    }
}

/// A piece of a record.
#[derive(Clone, Copy)]
pub enum Piece {
    /// Text as it is.
    Text(&'static str),
    /// The author's text, in which the record's separators become spaces.
    Doc(&'static str),
    /// A type, see [`KernelParam::SPELLING`].
    Type([&'static str; 3]),
    /// A number in decimal.
    Number(u64),
}

/// The record's size in bytes.
pub const fn length(pieces: &[Piece]) -> usize {
    let mut total = 0;
    let mut at = 0;
    while at < pieces.len() {
        total += match pieces[at] {
            Piece::Text(text) | Piece::Doc(text) => text.len(),
            Piece::Type([before, scalar, after]) => before.len() + scalar.len() + after.len(),
            Piece::Number(number) => digits(number),
        };
        at += 1;
    }
    total
}

/// The record itself.
pub const fn join<const N: usize>(pieces: &[Piece]) -> [u8; N] {
    let mut joined = [0; N];
    let mut end = 0;
    let mut at = 0;
    while at < pieces.len() {
        end = match pieces[at] {
            Piece::Text(text) => put(&mut joined, end, text),
            Piece::Doc(text) => {
                let start = end;
                let end = put(&mut joined, start, text);
                without_separators(&mut joined, start, end);
                end
            }
            Piece::Type([before, scalar, after]) => {
                let end = put(&mut joined, end, before);
                let end = put(&mut joined, end, scalar);
                put(&mut joined, end, after)
            }
            Piece::Number(number) => put_number(&mut joined, end, number),
        };
        at += 1;
    }
    joined
}

/// A record's text.
pub const fn text(joined: &'static [u8]) -> &'static str {
    match core::str::from_utf8(joined) {
        Ok(text) => text,
        Err(_) => unreachable!(),
    }
}

const fn put(joined: &mut [u8], start: usize, text: &str) -> usize {
    let text = text.as_bytes();
    let mut at = 0;
    while at < text.len() {
        joined[start + at] = text[at];
        at += 1;
    }
    start + at
}

const fn without_separators(joined: &mut [u8], start: usize, end: usize) {
    let mut at = start;
    while at < end {
        if matches!(joined[at], 0x1d..=0x1f) {
            joined[at] = b' ';
        }
        at += 1;
    }
}

const fn put_number(joined: &mut [u8], start: usize, number: u64) -> usize {
    let end = start + digits(number);
    let mut rest = number;
    let mut at = end;
    while at > start {
        at -= 1;
        joined[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    end
}

const fn digits(number: u64) -> usize {
    match number.checked_ilog10() {
        Some(most) => most as usize + 1,
        None => 1,
    }
}
