//! What `#[derive(KernelParam)]` becomes.

use proc_macro::{Ident, Span, TokenStream, TokenTree};

use crate::error::{Error, Result};
use crate::function::{Attribute, split_attributes};
use crate::parameter::{plain, punct, split_at_commas};
use crate::record::Pieces;
use crate::template::fill;

const EXPANSION: &str = r#"
    const _: () = {
        const PIECES: &[::rustcuda_device::record::Piece] = &[$pieces];
        const TEXT: [u8; ::rustcuda_device::record::length(PIECES)] =
            ::rustcuda_device::record::join(PIECES);

        // SAFETY: the fields are spelled in their order, and lie as C has them.
        unsafe impl ::rustcuda_device::record::KernelParam for $name {
            const SPELLING: [&'static str; 3] = ["", ::rustcuda_device::record::text(&TEXT), ""];
        }
        impl ::rustcuda_device::record::StructField for $name {}
    };
"#;

/// Stands before and behind a doc comment; never occurs in Rust source text.
const DOC: &str = "\x1d";

pub fn derive(item: TokenStream) -> Result<TokenStream> {
    let (attributes, tokens) = split_attributes(item);
    let word = tokens
        .iter()
        .position(|token| token.to_string() == "struct");
    let Some((TokenTree::Ident(name), rest)) =
        word.and_then(|word| tokens[word + 1..].split_first())
    else {
        return Err(Error::new(
            Span::call_site(),
            "kernels take numbers and structs; enums and unions have no counterpart in Python",
        ));
    };
    check_layout(&attributes, name)?;
    let [TokenTree::Group(body)] = rest else {
        return Err(Error::new(
            name.span(),
            "a struct that kernels take has named fields and is not generic",
        ));
    };
    let mut pieces = Pieces::new();
    pieces.doc(&attributes, DOC, DOC);
    pieces.text(&format!("{}{{", plain(name)));
    let mut separator = "";
    for field in split_at_commas(body.stream()) {
        let (attributes, field) = split_attributes(field.into_iter().collect());
        let Some(colon) = field.iter().position(|token| punct(token) == Some(':')) else {
            continue; // behind the last comma
        };
        let rust_type: TokenStream = field[colon + 1..].iter().cloned().collect();
        let TokenTree::Ident(field) = &field[colon - 1] else {
            unreachable!("a field's name stands before its colon");
        };
        pieces.text(separator);
        pieces.doc(&attributes, DOC, DOC);
        pieces.text(&format!("{}: ", plain(field)));
        pieces.piece(
            "Type(<$of as ::rustcuda_device::record::StructField>::FIELD)",
            rust_type,
        );
        separator = ", ";
    }
    if separator.is_empty() {
        return Err(Error::new(
            name.span(),
            "a struct without fields is no parameter of a kernel",
        ));
    }
    pieces.text("}");
    Ok(fill(
        EXPANSION,
        &[
            ("pieces", pieces.finish()),
            ("name", TokenTree::from(name.clone()).into()),
        ],
    ))
}

/// Makes sure that the fields lie as in C, which is how Python packs them.
fn check_layout(attributes: &[Attribute], name: &Ident) -> Result<()> {
    let reprs: String = attributes
        .iter()
        .filter(|attribute| attribute.name == "repr")
        .flat_map(|attribute| attribute.rest.iter().map(ToString::to_string))
        .collect();
    if reprs == "(C)" {
        return Ok(());
    }
    Err(Error::new(
        name.span(),
        "a struct that kernels take needs #[repr(C)], and no other layout: Python packs its fields as C does",
    ))
}
