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
    /// Its `#[cfg(…)]`s; other attributes, such as doc comments, have nothing to stand on.
    conditions: TokenStream,
    name: Ident,
    rust_type: TokenStream,
    /// In tokens, from the first attribute to the semicolon.
    length: usize,
}

fn rewrite_tokens(tokens: &[TokenTree], function: &str, outer: &[Declaration]) -> TokenStream {
    let known = known(tokens, outer);
    let mut rewritten = TokenStream::new();
    let mut at = 0;
    while at < tokens.len() {
        if let Some(found) = declaration(&tokens[at..]) {
            rewritten.extend(marker(&found));
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
                let meant: Vec<_> = known
                    .iter()
                    .filter(|found| found.name.to_string() == name.to_string())
                    .collect();
                match meant.as_slice() {
                    [] => rewritten.extend([tokens[at].clone()]),
                    meant => rewritten.extend(place(meant, function, name)),
                }
            }
            other => rewritten.extend([other.clone()]),
        }
        at += 1;
    }
    rewritten
}

/// The statics that these tokens can name: their own, and those outside that they do not hide.
fn known(tokens: &[TokenTree], outer: &[Declaration]) -> Vec<Declaration> {
    let mut known = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let found = declaration(&tokens[at..]);
        at += found.as_ref().map_or(1, |found| found.length);
        known.extend(found);
    }
    let own: Vec<String> = known.iter().map(|found| found.name.to_string()).collect();
    let seen = |found: &&Declaration| !own.contains(&found.name.to_string());
    known.extend(outer.iter().filter(seen).cloned());
    known
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

/// Reads `static mut NAME: type = …::UNINIT;` and attributes before it from the start of `tokens`, if
/// they are that.
fn declaration(tokens: &[TokenTree]) -> Option<Declaration> {
    if let [hash, TokenTree::Group(group), rest @ ..] = tokens
        && punct(hash) == Some('#')
    {
        let mut found = declaration(rest)?;
        let first = group.stream().into_iter().next();
        if first.is_some_and(|word| word.to_string() == "cfg") {
            found.conditions = tokens[..2]
                .iter()
                .cloned()
                .chain(found.conditions)
                .collect();
        }
        found.length += 2;
        return Some(found);
    }
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
        conditions: TokenStream::new(),
        name: name.clone(),
        rust_type: rest[..equals].iter().cloned().collect(),
        length: 4 + semicolon + 1,
    })
}

/// What stands where the static stood: a type whose path is that of the static, `impl` blocks included,
/// so that functions which a macro has written twice have memory of their own.
fn marker(found: &Declaration) -> TokenStream {
    fill(
        "$conditions #[allow(non_camel_case_types, dead_code)] struct $marker;",
        &[
            ("conditions", found.conditions.clone()),
            ("marker", marker_name(found)),
        ],
    )
}

fn marker_name(found: &Declaration) -> TokenStream {
    let name = format!("__rustcuda_shared_{}", plain(&found.name));
    TokenTree::from(Ident::new(&name, found.name.span())).into()
}

/// What stands for one use of the static: of those of this name, the one whose `cfg` holds.
fn place(meant: &[&Declaration], function: &str, used: &Ident) -> TokenStream {
    let place = match meant {
        [only] if only.conditions.is_empty() => {
            fill("(*$pointer)", &[("pointer", pointer(only, function))])
        }
        _ => {
            let arms = meant.iter().map(|found| {
                let parts = [
                    ("conditions", found.conditions.clone()),
                    ("pointer", pointer(found, function)),
                ];
                fill("$conditions () => $pointer,", &parts)
            });
            fill("(*match () { $arms })", &[("arms", arms.collect())])
        }
    };
    respanned(place, used.span())
}

fn pointer(found: &Declaration, function: &str) -> TokenStream {
    let declared = found.name.span();
    fill(
        "::rustcuda_device::shared_pointer!($type, $marker, $name, $line, $column)",
        &[
            ("marker", marker_name(found)),
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
    )
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
