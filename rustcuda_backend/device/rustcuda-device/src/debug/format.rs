//! What `gpu_printf!` does when a kernel is compiled: C's format of Rust's.

use super::printf::{Kind, MOST_ARGUMENTS};

/// Where vprintf looks for an argument.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    /// The bits that are shown.
    pub(super) mask: u64,
    /// In words of 32 bits from the first argument's on.
    pub(super) at: usize,
    /// Whether it has 32 bits only.
    pub(super) is_half: bool,
}

/// Those of all arguments, one behind the other as C has them: `%c` takes an `int`, all else 64 bits.
#[doc(hidden)]
pub struct Slots {
    pub(super) slots: [Slot; MOST_ARGUMENTS],
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

/// The widest that Rust's formats can be.
const MOST_CHARACTERS: usize = u16::MAX as usize;

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
pub(super) struct Translator<const CAPACITY: usize> {
    text: &'static [u8],
    at: usize,
    format: [u8; CAPACITY],
    end: usize,
    place: &'static str,
}

impl<const CAPACITY: usize> Translator<CAPACITY> {
    pub(super) const fn new(text: &'static str, place: &'static str) -> Self {
        Self {
            text: text.as_bytes(),
            at: 0,
            format: [0; CAPACITY],
            end: 0,
            place,
        }
    }

    /// The format, with a zero byte at its end, and where vprintf looks for each argument.
    pub(super) const fn run(mut self, kinds: &[(Kind, u32)]) -> ([u8; CAPACITY], Slots) {
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
            if number > MOST_CHARACTERS {
                self.refuse("a width or precision is at most 65535");
            }
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
