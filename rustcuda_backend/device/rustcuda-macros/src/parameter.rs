//! A kernel's parameters: names, types, and which of them are slices.

use proc_macro::{Delimiter, Ident, TokenStream, TokenTree};

use crate::error::{Error, Result};

/// `name: type` or `mut name: type`.
pub struct Parameter {
    pub name: Ident,
    pub rust_type: TokenStream,
    /// Spelled `&[T]` or `DisjointSlice<T>`: becomes a pointer and a length in the PTX.
    pub is_slice: bool,
    /// A slice that says how long its rows are: has a third parameter in the PTX.
    pub has_row_width: bool,
}

impl Parameter {
    /// The name without the `r#` of a raw identifier.
    pub fn plain_name(&self) -> String {
        plain(&self.name)
    }
}

/// An identifier's text without `r#`.
pub fn plain(name: &Ident) -> String {
    let text = name.to_string();
    text.strip_prefix("r#").unwrap_or(&text).to_owned()
}

/// Takes tokens out of the invisible groups in which `macro_rules` passes on a type or a block.
pub fn without_invisible_groups(tokens: TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .flat_map(|token| match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                without_invisible_groups(group.stream())
            }
            other => other.into(),
        })
        .collect()
}

/// Splits constant expressions at their commas; in these `<` compares or shifts.
pub fn split_expressions(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let mut pieces = vec![Vec::new()];
    for token in tokens {
        if punct(&token) == Some(',') {
            pieces.push(Vec::new());
        } else {
            pieces.last_mut().expect("never empty").push(token);
        }
    }
    pieces
}

/// Reads what stands between the parentheses.
pub fn parse_list(list: TokenStream) -> Result<Vec<Parameter>> {
    let pieces = split_at_commas(without_invisible_groups(list));
    pieces
        .into_iter()
        .filter(|piece| !piece.is_empty())
        .map(parse)
        .collect()
}

/// Splits at the commas that stand in no bracket, angle brackets included.
pub fn split_at_commas(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let mut pieces = vec![Vec::new()];
    let mut depth = 0_usize;
    let mut after_dash = false;
    for token in tokens {
        let character = punct(&token);
        match character {
            Some('<') => depth += 1,
            // Not the `>` of `->`.
            Some('>') if !after_dash => depth = depth.saturating_sub(1),
            _ => {}
        }
        after_dash = character == Some('-');
        if character == Some(',') && depth == 0 {
            pieces.push(Vec::new());
        } else {
            pieces.last_mut().expect("never empty").push(token);
        }
    }
    pieces
}

fn parse(tokens: Vec<TokenTree>) -> Result<Parameter> {
    let first = &tokens[0];
    if punct(first) == Some('#') {
        return Err(Error::new(
            first.span(),
            "a kernel's parameter takes no attributes",
        ));
    }
    if let Some(word) = of_a_method(&tokens) {
        return Err(Error::new(
            word.span(),
            "a kernel is a free function, not a method: it has no `self` and no `Self`",
        ));
    }
    let start = usize::from(first.to_string() == "mut");
    let (Some(TokenTree::Ident(name)), Some(':')) =
        (tokens.get(start), tokens.get(start + 1).and_then(punct))
    else {
        return Err(Error::new(
            first.span(),
            "a kernel's parameter is `name: type` or `mut name: type`",
        ));
    };
    if name.to_string() == "_" {
        return Err(Error::new(
            name.span(),
            "give this parameter a name; Python's messages and help show it",
        ));
    }
    let rust_type = &tokens[start + 2..];
    refuse_shared_mutability(rust_type)?;
    Ok(Parameter {
        name: name.clone(),
        is_slice: is_slice(rust_type),
        has_row_width: has_row_width(rust_type),
        rust_type: rust_type.iter().cloned().collect(),
    })
}

/// `self` in `self`, `&self`, `&'a mut self` or `self: Type`, or `Self` anywhere.
fn of_a_method(tokens: &[TokenTree]) -> Option<TokenTree> {
    let receiver = match tokens {
        [ampersand, rest @ ..] if punct(ampersand) == Some('&') => without_lifetime(rest),
        _ => tokens,
    };
    let word = receiver.iter().find(|token| token.to_string() != "mut")?;
    if word.to_string() == "self" {
        return Some(word.clone());
    }
    with_self_type(tokens)
}

fn with_self_type(tokens: &[TokenTree]) -> Option<TokenTree> {
    tokens.iter().find_map(|token| match token {
        TokenTree::Group(group) => {
            let inner: Vec<_> = group.stream().into_iter().collect();
            with_self_type(&inner)
        }
        other => (other.to_string() == "Self").then(|| other.clone()),
    })
}

fn refuse_shared_mutability(rust_type: &[TokenTree]) -> Result<()> {
    let [ampersand, rest @ ..] = rust_type else {
        return Ok(());
    };
    let rest = without_lifetime(rest);
    if punct(ampersand) == Some('&') && rest.first().is_some_and(|token| token.to_string() == "mut")
    {
        let message = "every thread of the grid would hold this same `&mut`, which Rust forbids; take \
                       `DisjointSlice<T>`, which gives each thread its own elements, or `*mut T`";
        return Err(Error::new(ampersand.span(), message));
    }
    Ok(())
}

fn is_slice(rust_type: &[TokenTree]) -> bool {
    match rust_type {
        [ampersand, rest @ ..] if punct(ampersand) == Some('&') => match without_lifetime(rest) {
            [TokenTree::Group(group)] if group.delimiter() == Delimiter::Bracket => {
                // `&[T; 4]` is an array.
                !group
                    .stream()
                    .into_iter()
                    .any(|token| punct(&token) == Some(';'))
            }
            _ => false,
        },
        _ => {
            let path = rust_type
                .iter()
                .take_while(|token| punct(token) != Some('<'));
            path.last()
                .is_some_and(|token| token.to_string() == "DisjointSlice")
        }
    }
}

/// Whether it is `DisjointSlice<T, Runtime2DIndex>` or another whose rows the launch gives.
fn has_row_width(rust_type: &[TokenTree]) -> bool {
    let spaces = ["Runtime2DIndex", "RuntimeRowMajorTiles"];
    let mut words = rust_type.iter().map(ToString::to_string);
    is_slice(rust_type) && words.any(|word| spaces.contains(&word.as_str()))
}

fn without_lifetime(tokens: &[TokenTree]) -> &[TokenTree] {
    match tokens {
        [quote, TokenTree::Ident(_), rest @ ..] if punct(quote) == Some('\'') => rest,
        _ => tokens,
    }
}

/// The character of a punctuation token.
pub fn punct(token: &TokenTree) -> Option<char> {
    match token {
        TokenTree::Punct(punct) => Some(punct.as_char()),
        _ => None,
    }
}
