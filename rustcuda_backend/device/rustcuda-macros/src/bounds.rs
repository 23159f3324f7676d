//! Launch bounds, as an argument of `#[kernel]` and as an attribute beside it.

use proc_macro::{Delimiter, Span, TokenStream, TokenTree};

use crate::error::{Error, Result};
use crate::function::{self, Function};
use crate::parameter::{split_at_commas, split_expressions};

/// Two constant expressions.
pub struct Bounds {
    pub most_threads: TokenStream,
    pub fewest_blocks: TokenStream,
}

/// The bounds that `#[kernel(…)]` or an attribute below it gives.
pub fn of(arguments: TokenStream, function: &Function) -> Result<Option<Bounds>> {
    let mut found = Vec::new();
    for argument in split_at_commas(arguments) {
        match argument.as_slice() {
            [] => {}
            [TokenTree::Ident(name), TokenTree::Group(list)]
                if name.to_string() == "launch_bounds" =>
            {
                found.push(parse(name.span(), list.stream())?);
            }
            [first, ..] => {
                let message = "#[kernel] takes only `launch_bounds(most_threads, fewest_blocks)`";
                return Err(Error::new(first.span(), message));
            }
        }
    }
    for attribute in function
        .attributes
        .iter()
        .filter(|attribute| attribute.name == "launch_bounds")
    {
        match attribute.rest.as_slice() {
            [TokenTree::Group(list)] if list.delimiter() == Delimiter::Parenthesis => {
                found.push(parse(list.span(), list.stream())?);
            }
            _ => {
                return Err(parse(Span::call_site(), TokenStream::new())
                    .err()
                    .expect("bounds are missing"));
            }
        }
    }
    if found.len() > 1 {
        return Err(Error::new(
            function.name.span(),
            "this kernel has two launch bounds",
        ));
    }
    Ok(found.pop())
}

fn parse(span: Span, list: TokenStream) -> Result<Bounds> {
    let mut expressions: Vec<TokenStream> = split_expressions(list)
        .into_iter()
        .filter(|expression| !expression.is_empty())
        .map(|expression| expression.into_iter().collect())
        .collect();
    if !(1..=2).contains(&expressions.len()) {
        return Err(Error::new(
            span,
            "launch_bounds takes the most threads and, if wanted, the fewest blocks",
        ));
    }
    let none = TokenStream::from(TokenTree::from(proc_macro::Literal::u32_unsuffixed(0)));
    let fewest_blocks = if expressions.len() == 2 {
        expressions.remove(1)
    } else {
        none
    };
    Ok(Bounds {
        most_threads: expressions.remove(0),
        fewest_blocks,
    })
}

/// Puts `#[launch_bounds(…)]` below the `#[kernel]` that it stands above, which then reads it.
pub fn hand_to_kernel(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let (attributes, rest) = function::split_attributes(item);
    if !attributes
        .iter()
        .any(|attribute| attribute.name == "kernel")
    {
        let message = "#[launch_bounds] belongs on a function with #[kernel]";
        return Err(Error::new(Span::call_site(), message));
    }
    let own = crate::template::fill("#[launch_bounds($arguments)]", &[("arguments", arguments)]);
    let mut tokens: TokenStream = attributes
        .into_iter()
        .map(|attribute| attribute.tokens)
        .collect();
    tokens.extend(own);
    tokens.extend(rest);
    Ok(tokens)
}
