//! Shared memory in a function's body: `static mut TILE: SharedArray<f32, 256> = SharedArray::UNINIT;`.
//!
//! Rust knows no address spaces, so the static goes, and every `TILE` becomes a place behind a pointer
//! to a variable of the PTX. Size and alignment are in that variable's name, by which the build backend
//! declares it; so they may depend on constants and type parameters of the function.

use proc_macro::{Group, Ident, Literal, TokenStream, TokenTree};

use crate::parameter::{plain, punct};
use crate::template::{fill, respanned};

/// Rewrites a block; statics are known in the whole block that they stand in, as items are.
pub fn rewrite(block: &Group, function: &str) -> Group {
    let tokens: Vec<_> = block.stream().into_iter().collect();
    let rewritten = rewrite_tokens(&tokens, function, &[]);
    with_stream(block, rewritten)
}

/// A static that is shared memory.
#[derive(Clone)]
struct Declaration {
    name: Ident,
    rust_type: TokenStream,
    /// In tokens, with the semicolon.
    length: usize,
}

fn rewrite_tokens(tokens: &[TokenTree], function: &str, outer: &[Declaration]) -> TokenStream {
    // The innermost of a name comes first.
    let here = (0..tokens.len()).filter_map(|at| declaration(&tokens[at..]));
    let known: Vec<Declaration> = here.chain(outer.iter().cloned()).collect();
    let mut rewritten = TokenStream::new();
    let mut at = 0;
    while at < tokens.len() {
        if let Some(found) = declaration(&tokens[at..]) {
            at += found.length;
            continue;
        }
        if is_unroll(&tokens[at..]) {
            at += 2;
            continue;
        }
        match &tokens[at] {
            TokenTree::Group(group) => {
                let inner: Vec<_> = group.stream().into_iter().collect();
                let inner = rewrite_tokens(&inner, function, &known);
                rewritten.extend([TokenTree::from(with_stream(group, inner))]);
            }
            TokenTree::Ident(name) if !is_member(&tokens[..at], &tokens[at + 1..]) => {
                match known
                    .iter()
                    .find(|found| found.name.to_string() == name.to_string())
                {
                    Some(found) => rewritten.extend(place(found, function, name)),
                    None => rewritten.extend([tokens[at].clone()]),
                }
            }
            other => rewritten.extend([other.clone()]),
        }
        at += 1;
    }
    rewritten
}

/// Whether `tokens` begin with `#[unroll]` or `#[unroll(N)]`: LLVM decides by itself what to unroll,
/// and Rust has no such attribute.
fn is_unroll(tokens: &[TokenTree]) -> bool {
    let [hash, TokenTree::Group(group), ..] = tokens else {
        return false;
    };
    let first = group.stream().into_iter().next();
    punct(hash) == Some('#') && first.is_some_and(|word| word.to_string() == "unroll")
}

/// Reads `static mut NAME: type = …::UNINIT;` from the start of `tokens`, if they are that.
fn declaration(tokens: &[TokenTree]) -> Option<Declaration> {
    let [
        TokenTree::Ident(word),
        TokenTree::Ident(mutable),
        TokenTree::Ident(name),
        colon,
        rest @ ..,
    ] = tokens
    else {
        return None;
    };
    if word.to_string() != "static" || mutable.to_string() != "mut" || punct(colon) != Some(':') {
        return None;
    }
    let equals = rest.iter().position(|token| punct(token) == Some('='))?;
    let semicolon = rest.iter().position(|token| punct(token) == Some(';'))?;
    if semicolon < equals || rest[semicolon - 1].to_string() != "UNINIT" {
        return None;
    }
    Some(Declaration {
        name: name.clone(),
        rust_type: rest[..equals].iter().cloned().collect(),
        length: 4 + semicolon + 1,
    })
}

/// What stands for one use of the static.
fn place(found: &Declaration, function: &str, used: &Ident) -> TokenStream {
    let declared = found.name.span();
    let place = fill(
        "(*::rustcuda_device::shared_pointer!($type, $name, $line, $column))",
        &[
            ("type", found.rust_type.clone()),
            (
                "name",
                literal(Literal::string(&format!(
                    "{function}_{}",
                    plain(&found.name)
                ))),
            ),
            ("line", number(declared.line())),
            ("column", number(declared.column())),
        ],
    );
    respanned(place, used.span())
}

fn number(value: usize) -> TokenStream {
    literal(Literal::usize_unsuffixed(value))
}

fn literal(literal: Literal) -> TokenStream {
    TokenTree::from(literal).into()
}

/// Whether its neighbours make a name that of a field, or a part of a path.
fn is_member(before: &[TokenTree], after: &[TokenTree]) -> bool {
    if after.first().and_then(punct) == Some(':') {
        return true;
    }
    match before {
        // `..NAME` is a range.
        [.., first, second] if punct(first) == Some('.') && punct(second) == Some('.') => false,
        [.., first, second] if punct(first) == Some(':') && punct(second) == Some(':') => true,
        [.., last] => punct(last) == Some('.'),
        [] => false,
    }
}

fn with_stream(group: &Group, stream: TokenStream) -> Group {
    let mut new = Group::new(group.delimiter(), stream);
    new.set_span(group.span());
    new
}
