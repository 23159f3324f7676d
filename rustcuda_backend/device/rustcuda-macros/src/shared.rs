//! Shared memory in a kernel's body: `static mut TILE: SharedArray<f32, 256> = SharedArray::UNINIT;`.
//!
//! Rust knows no address spaces, so the static becomes a function that gives a pointer to it, every
//! `TILE` becomes `(*TILE_ptr())`, and a marker static tells the build backend to declare the storage.

use proc_macro::{Group, Ident, TokenStream, TokenTree};

use crate::parameter::{plain, punct};
use crate::template::{fill, respanned};

const POINTER_FUNCTION: &str = r#"
    #[inline(always)]
    #[allow(non_snake_case, clippy::all)]
    fn $pointer() -> *mut $type {
        #[used]
        #[unsafe(no_mangle)]
        static $marker: [usize; 2] = <$type>::STORAGE;
        let address: u64;
        // SAFETY: takes the address of a variable that the build backend declares in the PTX.
        unsafe {
            ::core::arch::asm!($move, out(reg64) address, options(pure, nomem, nostack, preserves_flags));
            ::rustcuda_device::shared::generic(address).cast()
        }
    }
"#;

/// Rewrites a block; statics are known in the whole block that they stand in, as items are.
pub fn rewrite(block: &Group, kernel: &str) -> Group {
    let tokens: Vec<_> = block.stream().into_iter().collect();
    let rewritten = rewrite_tokens(&tokens, kernel, &[]);
    with_stream(block, rewritten)
}

fn rewrite_tokens(tokens: &[TokenTree], kernel: &str, outer: &[String]) -> TokenStream {
    let mut names = outer.to_vec();
    names.extend(
        (0..tokens.len())
            .filter_map(|at| declaration(&tokens[at..]))
            .map(|found| found.name.to_string()),
    );
    let mut rewritten = TokenStream::new();
    let mut at = 0;
    while at < tokens.len() {
        if let Some(found) = declaration(&tokens[at..]) {
            rewritten.extend(pointer_function(&found, kernel));
            at += found.length;
            continue;
        }
        match &tokens[at] {
            TokenTree::Group(group) => {
                let inner: Vec<_> = group.stream().into_iter().collect();
                let inner = rewrite_tokens(&inner, kernel, &names);
                rewritten.extend([TokenTree::from(with_stream(group, inner))]);
            }
            TokenTree::Ident(name)
                if names.contains(&name.to_string())
                    && !is_member(&tokens[..at], &tokens[at + 1..]) =>
            {
                let place = fill("(*$pointer())", &[("pointer", pointer_name(name))]);
                rewritten.extend(respanned(place, name.span()));
            }
            other => rewritten.extend([other.clone()]),
        }
        at += 1;
    }
    rewritten
}

struct Declaration<'a> {
    name: &'a Ident,
    rust_type: TokenStream,
    /// In tokens, with the semicolon.
    length: usize,
}

/// Whether `tokens` begin with `static mut NAME: type = …::UNINIT;`.
fn declaration(tokens: &[TokenTree]) -> Option<Declaration<'_>> {
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
        name,
        rust_type: rest[..equals].iter().cloned().collect(),
        length: 4 + semicolon + 1,
    })
}

fn pointer_function(found: &Declaration<'_>, kernel: &str) -> TokenStream {
    let symbol = format!("{kernel}_{}", plain(found.name));
    let marker = Ident::new(&format!("__rustcuda_shared_{symbol}"), found.name.span());
    let instruction = proc_macro::Literal::string(&format!("mov.u64 {{}}, __shared_{symbol};"));
    fill(
        POINTER_FUNCTION,
        &[
            ("pointer", pointer_name(found.name)),
            ("type", found.rust_type.clone()),
            ("marker", TokenTree::from(marker).into()),
            ("move", TokenTree::from(instruction).into()),
        ],
    )
}

fn pointer_name(name: &Ident) -> TokenStream {
    TokenTree::from(Ident::new(&format!("{}_ptr", plain(name)), name.span())).into()
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
