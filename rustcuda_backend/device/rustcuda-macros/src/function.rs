//! Taking a function item apart.

use core::iter::Peekable;

use proc_macro::{Delimiter, Group, Ident, Spacing, Span, TokenStream, TokenTree};

use crate::error::{Error, Result};
use crate::parameter::{self, Parameter, punct, split_at_commas};

/// One `#[…]` before an item.
pub struct Attribute {
    /// Last segment of its path: `kernel` of `#[rustcuda_device::kernel]`.
    pub name: String,
    /// What follows the path: `(…)`, `= …` or nothing.
    pub rest: Vec<TokenTree>,
    /// All of it.
    pub tokens: TokenStream,
    pub span: Span,
}

/// `<T: Bound> … where …`.
pub struct Generic {
    /// The type parameter, the only one.
    pub parameter: Ident,
    /// All between the function's name and its parameters.
    pub tokens: TokenStream,
    /// `where` and all that follows it, or nothing.
    pub conditions: TokenStream,
}

/// A function that can be a kernel.
pub struct Function {
    pub attributes: Vec<Attribute>,
    pub visibility: TokenStream,
    /// `unsafe`, or nothing.
    pub unsafety: TokenStream,
    pub name: Ident,
    pub generic: Option<Generic>,
    pub parameters: Vec<Parameter>,
    /// The parameters as they are written, without the parentheses.
    pub written_parameters: TokenStream,
    pub body: Group,
}

/// Splits the attributes off an item; the rest begins at its visibility.
pub fn split_attributes(item: TokenStream) -> (Vec<Attribute>, Vec<TokenTree>) {
    let tokens: Vec<_> = parameter::without_invisible_groups(item)
        .into_iter()
        .collect();
    let mut attributes = Vec::new();
    let mut at = 0;
    while let [TokenTree::Punct(hash), TokenTree::Group(group), ..] = &tokens[at..] {
        if hash.as_char() != '#' {
            break;
        }
        attributes.push(attribute(hash.clone().into(), group));
        at += 2;
    }
    (attributes, tokens[at..].to_vec())
}

/// Splits the `#![…]` off a body: nothing may stand before them.
pub fn split_inner_attributes(body: TokenStream) -> (TokenStream, TokenStream) {
    let tokens: Vec<_> = body.into_iter().collect();
    let mut at = 0;
    while let [hash, mark, TokenTree::Group(_), ..] = &tokens[at..]
        && punct(hash) == Some('#')
        && punct(mark) == Some('!')
    {
        at += 3;
    }
    let (inner, rest) = tokens.split_at(at);
    (
        inner.iter().cloned().collect(),
        rest.iter().cloned().collect(),
    )
}

pub fn attribute(hash: TokenTree, group: &Group) -> Attribute {
    let inner: Vec<_> = group.stream().into_iter().collect();
    let is_path = |token: &TokenTree| match token {
        TokenTree::Ident(_) => true,
        TokenTree::Punct(punct) => punct.as_char() == ':',
        _ => false,
    };
    let path = inner.iter().take_while(|token| is_path(token)).count();
    Attribute {
        name: inner[..path]
            .last()
            .map(ToString::to_string)
            .unwrap_or_default(),
        rest: inner[path..].to_vec(),
        tokens: [hash, group.clone().into()].into_iter().collect(),
        span: group.span(),
    }
}

/// What decides a symbol, which for kernels and constants is decided already, or makes another function of it.
const NOT_FOR_SYMBOLS: [&str; 5] = [
    "no_mangle",
    "export_name",
    "link_section",
    "linkage",
    "test",
];

/// Refuses attributes that a kernel or a constant cannot have, also those in `unsafe(…)` and `cfg_attr(…)`.
pub fn refuse_symbols(attributes: &[Attribute], what: &str) -> Result<()> {
    for attribute in attributes {
        if let Some(word) = word_of(&attribute.tokens, &NOT_FOR_SYMBOLS) {
            let message = format!(
                "a {what} takes no #[{word}]: it is a symbol already, which Python finds by its own name; \
                 leave the attribute out"
            );
            return Err(Error::new(word.span(), message));
        }
    }
    Ok(())
}

/// The first identifier of these, also within brackets.
fn word_of(tokens: &TokenStream, words: &[&str]) -> Option<Ident> {
    tokens.clone().into_iter().find_map(|token| match token {
        TokenTree::Group(group) => word_of(&group.stream(), words),
        TokenTree::Ident(word) => words.contains(&word.to_string().as_str()).then_some(word),
        _ => None,
    })
}

/// Makes sure that PTX can have a name.
pub fn check_name(name: &Ident, what: &str) -> Result<()> {
    if name.to_string().is_ascii() {
        return Ok(());
    }
    let message = format!("PTX has ASCII names only; rename the {what}");
    Err(Error::new(name.span(), message))
}

/// Reads the function that `#[kernel]` stands on, refusing all that a kernel cannot be.
pub fn parse(item: TokenStream) -> Result<Function> {
    let (attributes, tokens) = split_attributes(item);
    let mut tokens = tokens.into_iter().peekable();
    let mut visibility = TokenStream::new();
    let mut unsafety = TokenStream::new();
    let mut last = Span::call_site();
    let name = loop {
        let token = tokens.next().ok_or_else(|| not_a_function(last))?;
        last = token.span();
        match token.to_string().as_str() {
            "fn" => match tokens.next() {
                Some(TokenTree::Ident(name)) => break name,
                _ => return Err(not_a_function(last)),
            },
            "pub" => visibility.extend([token]),
            "unsafe" => unsafety.extend([token]),
            word @ ("async" | "const" | "extern" | "gen") => {
                return Err(Error::new(last, format!("a kernel cannot be `{word}`")));
            }
            // The `(crate)` of `pub(crate)`.
            _ if matches!(token, TokenTree::Group(_)) && !visibility.is_empty() => {
                visibility.extend([token])
            }
            _ => return Err(not_a_function(last)),
        }
    };
    check_name(&name, "kernel")?;
    refuse_symbols(&attributes, "kernel")?;
    let mut generic = match tokens.peek() {
        Some(token) if punct(token) == Some('<') => Some(generic(&mut tokens)?),
        _ => None,
    };
    let list = match tokens.next() {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => group,
        _ => return Err(not_a_function(last)),
    };
    if let Some(generic) = &mut generic {
        generic.conditions = conditions(&mut tokens);
    }
    let body = body(&mut tokens)?;
    Ok(Function {
        attributes,
        visibility,
        unsafety,
        name,
        generic,
        parameters: parameter::parse_list(list.stream())?,
        written_parameters: list.stream(),
        body,
    })
}

/// Reads `<T: Bound>`, which has one type and nothing else.
fn generic(tokens: &mut impl Iterator<Item = TokenTree>) -> Result<Generic> {
    let mut read = Vec::new();
    let mut depth = 0;
    for token in tokens {
        depth += match punct(&token) {
            Some('<') => 1,
            Some('>') => -1,
            _ => 0,
        };
        read.push(token);
        if depth == 0 {
            break;
        }
    }
    let several = split_at_commas(read[1..read.len() - 1].iter().cloned().collect()).len() > 1;
    match &read[1] {
        TokenTree::Ident(parameter) if parameter.to_string() != "const" && !several => {
            Ok(Generic {
                parameter: parameter.clone(),
                tokens: read.iter().cloned().collect(),
                conditions: TokenStream::new(),
            })
        }
        _ => Err(not_generic(read[0].span())),
    }
}

/// The error for generics other than one type whose values are listed.
pub fn not_generic(span: Span) -> Error {
    let message = "a kernel cannot be generic, over lifetimes neither: it has no caller in Rust that would \
                   choose; leave lifetimes out, and list the types of the one type parameter that it may \
                   have: #[kernel(f32, f64)]";
    Error::new(span, message)
}

/// Takes `where …` off the tokens, if it is there.
fn conditions(tokens: &mut Peekable<impl Iterator<Item = TokenTree>>) -> TokenStream {
    if tokens
        .peek()
        .is_none_or(|token| token.to_string() != "where")
    {
        return TokenStream::new();
    }
    let is_body = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
    let mut read = TokenStream::new();
    while let Some(token) = tokens.next_if(|token| !is_body(token)) {
        read.extend([token]);
    }
    read
}

fn body(tokens: &mut impl Iterator<Item = TokenTree>) -> Result<Group> {
    match tokens.next() {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => Ok(group),
        Some(TokenTree::Punct(punct))
            if punct.as_char() == '-' && punct.spacing() == Spacing::Joint =>
        {
            let message =
                "a kernel returns nothing; write results through `*mut T` or `DisjointSlice<T>`";
            Err(Error::new(punct.span(), message))
        }
        Some(other) => Err(Error::new(
            other.span(),
            "a kernel's body must follow its parameters",
        )),
        None => Err(Error::new(Span::call_site(), "a kernel needs a body")),
    }
}

fn not_a_function(span: Span) -> Error {
    Error::new(span, "#[kernel] goes on a function")
}
