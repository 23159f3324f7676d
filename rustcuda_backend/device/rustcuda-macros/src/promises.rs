//! What a kernel promises of its launches: constant expressions, whose values must be whole numbers.

use proc_macro::{Ident, Literal, Span, TokenStream, TokenTree};

use crate::arguments::Arguments;
use crate::record::Record;
use crate::template::{fill, respanned};

/// Beside the record: a function that takes whole numbers only, and says of which kernel others are.
const WHOLE: &str = r#"
    #[diagnostic::on_unimplemented(message = $message, label = "not a whole number")]
    #[allow(non_camel_case_types)]
    trait $trait: Copy {}
    impl $trait for u8 {}
    impl $trait for u16 {}
    impl $trait for u32 {}
    impl $trait for u64 {}
    impl $trait for u128 {}
    impl $trait for usize {}
    impl $trait for i8 {}
    impl $trait for i16 {}
    impl $trait for i32 {}
    impl $trait for i64 {}
    impl $trait for i128 {}
    impl $trait for isize {}
    #[allow(non_snake_case)]
    const fn $trait<T: $trait>(number: T) -> T {
        number
    }
"#;

/// Writes the promises into the record, and returns the items that must stand beside it.
pub fn write(record: &mut Record, arguments: &Arguments, kernel: &str) -> TokenStream {
    let promises = [
        ("launch_bounds", &arguments.launch_bounds, 2, "0"),
        ("block", &arguments.block, 3, "1"),
        ("cluster", &arguments.cluster, 3, "1"),
    ];
    let mut items = TokenStream::new();
    for (line, expressions, count, rest) in promises {
        let Some(expressions) = expressions else {
            continue;
        };
        let whole = Ident::new(&format!("Whole_{line}"), Span::call_site());
        let message = format!("{line} of kernel `{kernel}` takes whole numbers, not a `{{Self}}`");
        let parts = [
            ("message", TokenTree::from(Literal::string(&message)).into()),
            ("trait", TokenTree::from(whole.clone()).into()),
        ];
        items.extend(fill(WHOLE, &parts));
        let expressions = expressions
            .iter()
            .map(|of| number(line, kernel, &whole, of));
        record.numbers(line, padded(expressions.collect(), count, rest));
    }
    items
}

/// The expression as a `u64`, refused where its value is negative. What is larger becomes the largest, which
/// the build backend refuses: cut off, it might be a number that it takes.
fn number(line: &str, kernel: &str, whole: &Ident, expression: &TokenStream) -> TokenStream {
    let message = format!("{line} of kernel `{kernel}` has a negative number");
    let message = TokenTree::from(Literal::string(&message)).into();
    let check = fill("assert!(number >= 0, $message);", &[("message", message)]);
    fill(
        "{
            let number = $whole($of) as i128;
            $check
            if number > u64::MAX as i128 { u64::MAX } else { number as u64 }
        }",
        &[
            ("whole", TokenTree::from(whole.clone()).into()),
            ("of", expression.clone()),
            ("check", respanned(check, first_span(expression))),
        ],
    )
}

/// Where tokens begin.
fn first_span(tokens: &TokenStream) -> Span {
    let first = tokens.clone().into_iter().next();
    first.map_or(Span::call_site(), |token| token.span())
}

/// The expressions, with `rest` for those left out.
fn padded(expressions: Vec<TokenStream>, count: usize, rest: &str) -> Vec<TokenStream> {
    let mut padded = expressions;
    padded.resize_with(count, || fill(rest, &[]));
    padded
}
