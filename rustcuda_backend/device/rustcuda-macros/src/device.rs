//! What `#[device]` becomes.

use proc_macro::{Delimiter, Group, Span, TokenStream, TokenTree};

use crate::error::{Error, Result};
use crate::function::{split_attributes, split_inner_attributes};
use crate::parameter::plain;
use crate::shared;
use crate::template::fill;

const FUNCTION: &str = r#"
    $attributes
    #[allow(dangerous_implicit_autorefs)]
    $head {
        $inner
        #[allow(unused_imports)]
        use ::rustcuda_device::FloatExt as _;
        $body
    }
"#;

pub fn device(item: TokenStream) -> Result<TokenStream> {
    let (attributes, mut rest) = split_attributes(item);
    let attributes: TokenStream = attributes
        .into_iter()
        .map(|attribute| attribute.tokens)
        .collect();
    let Some(TokenTree::Group(body)) = rest.pop() else {
        return Err(not_on_this());
    };
    if body.delimiter() != Delimiter::Brace {
        return Err(not_on_this());
    }
    let word = rest.iter().position(|token| token.to_string() == "fn");
    let head: TokenStream = rest.iter().cloned().collect();
    match word.and_then(|word| rest.get(word + 1)) {
        Some(TokenTree::Ident(name)) => {
            let body = shared::rewrite(&body, &plain(name)).stream();
            let (inner, body) = split_inner_attributes(body);
            let parts = [
                ("attributes", attributes),
                ("head", head),
                ("inner", inner),
                ("body", body),
            ];
            Ok(fill(FUNCTION, &parts))
        }
        _ if rest.iter().any(|token| token.to_string() == "extern") => {
            let body = TokenTree::from(Group::new(Delimiter::Brace, made_public(body.stream())));
            let parts = [
                ("attributes", attributes),
                ("head", head),
                ("body", body.into()),
            ];
            Ok(fill("$attributes $head $body", &parts))
        }
        _ => Err(not_on_this()),
    }
}

/// Puts `pub` before each declaration of an `extern` block that has no visibility.
fn made_public(declarations: TokenStream) -> TokenStream {
    let mut made = TokenStream::new();
    let mut has_visibility = false;
    for token in declarations {
        match token.to_string().as_str() {
            "pub" => has_visibility = true,
            "fn" | "unsafe" | "safe" | "static" if !has_visibility => {
                made.extend(fill("pub", &[]));
                has_visibility = true;
            }
            ";" => has_visibility = false,
            _ => {}
        }
        made.extend([token]);
    }
    made
}

fn not_on_this() -> Error {
    let message = "#[device] goes on a function, or on a block of extern functions";
    Error::new(Span::call_site(), message)
}
