//! What `#[constant]` becomes.

use proc_macro::{Literal, Span, TokenStream, TokenTree};

use crate::error::{Error, Result};
use crate::function::{check_name, refuse_symbols, split_attributes};
use crate::parameter::{plain, punct};
use crate::record::Record;
use crate::template::fill;

/// The static has a type of its own, behind which stands the variable of the PTX.
const EXPANSION: &str = r#"
    $conditions
    #[doc(hidden)]
    #[allow(non_camel_case_types)]
    $visibility struct $name {}

    $attributes
    $visibility static $name: $name = $name {};

    $conditions
    impl ::core::ops::Deref for $name {
        type Target = $type;

        #[inline(always)]
        fn deref(&self) -> &$type {
            ::rustcuda_device::constant_reference!($type, $symbol)
        }
    }
"#;

pub fn constant(item: TokenStream) -> Result<TokenStream> {
    let (attributes, tokens) = split_attributes(item);
    let word = position(&tokens, |token| token.to_string() == "static").ok_or_else(wrong)?;
    let [TokenTree::Ident(name), colon, rest @ ..] = &tokens[word + 1..] else {
        return Err(wrong());
    };
    let equals = position(rest, |token| punct(token) == Some('=')).ok_or_else(wrong)?;
    let is_uninit = rest.iter().any(|token| token.to_string() == "UNINIT");
    if punct(colon) != Some(':') || !is_uninit {
        return Err(wrong());
    }
    check_name(name, "constant")?;
    refuse_symbols(&attributes, "constant")?;
    let kept = |keep: fn(&str) -> bool| -> TokenStream {
        let attributes = attributes.iter().filter(|attribute| keep(&attribute.name));
        attributes
            .map(|attribute| attribute.tokens.clone())
            .collect()
    };
    let rust_type: TokenStream = rest[..equals].iter().cloned().collect();
    let plain_name = plain(name);
    let symbol = TokenTree::from(Literal::string(&format!("__constant_{plain_name}")));
    let mut tokens_out = fill(
        EXPANSION,
        &[
            ("conditions", kept(|name| name == "cfg")),
            ("attributes", kept(|_| true)),
            ("visibility", tokens[..word].iter().cloned().collect()),
            ("name", TokenTree::from(name.clone()).into()),
            ("type", rust_type.clone()),
            ("symbol", symbol.into()),
        ],
    );
    let mut record = Record::new("constant", &plain_name);
    record.doc(&attributes);
    record.text(&format!("\x1etype\x1f{}", inner(&rest[..equals])));
    record.text("\x1escalar\x1f");
    record.piece("Text(<$of>::SCALAR)", rust_type.clone());
    record.text("\x1estorage\x1f");
    record.piece("Number(<$of>::STORAGE[0] as u64)", rust_type.clone());
    record.text("\x1f");
    record.piece("Number(<$of>::STORAGE[1] as u64)", rust_type);
    tokens_out.extend(record.finish(
        &format!("__rustcuda_constant_{plain_name}"),
        kept(|name| name == "cfg"),
        TokenStream::new(),
    ));
    Ok(tokens_out)
}

/// The text of `T` in `ConstantMemory<T>`.
fn inner(rust_type: &[TokenTree]) -> String {
    let text: TokenStream = match position(rust_type, |token| punct(token) == Some('<')) {
        Some(open) => rust_type[open + 1..rust_type.len() - 1]
            .iter()
            .cloned()
            .collect(),
        None => rust_type.iter().cloned().collect(),
    };
    text.to_string()
}

fn position(tokens: &[TokenTree], wanted: impl Fn(&TokenTree) -> bool) -> Option<usize> {
    tokens.iter().position(wanted)
}

fn wrong() -> Error {
    let message = "#[constant] goes on `static NAME: ConstantMemory<T> = ConstantMemory::UNINIT;`";
    Error::new(Span::call_site(), message)
}
