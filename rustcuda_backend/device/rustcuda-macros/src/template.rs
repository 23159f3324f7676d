//! Rust source as text with holes, so that expansions can be read as the code they become.

use proc_macro::{Group, Ident, Span, TokenStream, TokenTree};

/// Parses `source` and puts `parts` where it says `$name`; their tokens keep their spans. Where it
/// says `rustcuda_device`, that becomes the crate through which the author has these macros.
///
/// Panics where `source` is no Rust or names a part that is not given: a bug in this crate.
pub fn fill(source: &str, parts: &[(&str, TokenStream)]) -> TokenStream {
    let tokens = source.parse().expect("templates are Rust");
    fill_tokens(tokens, parts)
}

fn fill_tokens(tokens: TokenStream, parts: &[(&str, TokenStream)]) -> TokenStream {
    let mut filled = TokenStream::new();
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(ref dollar) if dollar.as_char() == '$' => {
                let name = tokens.next().expect("a name follows `$`").to_string();
                let part = parts.iter().find(|(known, _)| *known == name);
                filled.extend(part.unwrap_or_else(|| panic!("no part `{name}`")).1.clone());
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), fill_tokens(group.stream(), parts));
                inner.set_span(group.span());
                filled.extend([TokenTree::from(inner)]);
            }
            TokenTree::Ident(name) if name.to_string() == "rustcuda_device" => {
                filled.extend([TokenTree::from(Ident::new(crate::ROOT, name.span()))]);
            }
            other => filled.extend([other]),
        }
    }
    filled
}

/// Makes errors and warnings about these tokens point at `span`.
pub fn respanned(tokens: TokenStream, span: Span) -> TokenStream {
    let tokens = tokens.into_iter().map(|token| match token {
        TokenTree::Group(group) => {
            let mut inner = Group::new(group.delimiter(), respanned(group.stream(), span));
            inner.set_span(span);
            TokenTree::from(inner)
        }
        mut other => {
            other.set_span(span);
            other
        }
    });
    tokens.collect()
}
