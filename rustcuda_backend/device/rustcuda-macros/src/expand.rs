//! What `#[kernel]` becomes.

use proc_macro::{Ident, Literal, Span, TokenStream, TokenTree};

use crate::bounds::{self, Bounds};
use crate::error::Result;
use crate::function::{self, Function};
use crate::parameter::{Parameter, plain};
use crate::shared;
use crate::template::fill;

/// The inner function holds the author's signature and body; it disappears by inlining.
const EXPANSION: &str = r#"
    #[cfg(target_arch = "nvptx64")]
    $attributes
    #[unsafe(no_mangle)]
    #[allow(improper_ctypes_definitions)]
    $visibility $unsafety extern "ptx-kernel" fn $name($entry_parameters) {
        #[allow(unused_imports)]
        use ::rustcuda_device::FloatExt as _;
        #[inline(always)]
        #[allow(dangerous_implicit_autorefs, clippy::too_many_arguments)]
        $unsafety fn $name($written_parameters) $device_body
        #[allow(unused_unsafe)]
        // SAFETY: the launcher passes what the record promises.
        let () = unsafe { $name($arguments) };
    }

    #[cfg(target_arch = "nvptx64")]
    $conditions
    const _: () = {
        const PIECES: &[::rustcuda_device::record::Piece] = &[$pieces];
        #[used]
        #[unsafe(no_mangle)]
        static $record: [u8; ::rustcuda_device::record::length(PIECES)] =
            ::rustcuda_device::record::join(PIECES);
        $checks
    };

    #[cfg(not(target_arch = "nvptx64"))]
    $attributes
    #[allow(static_mut_refs)]
    $visibility $unsafety fn $name($written_parameters) {
        #[allow(unused_imports)]
        use ::rustcuda_device::FloatExt as _;
        $host_body
    }
"#;

pub fn kernel(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let function = function::parse(item)?;
    let bounds = bounds::of(arguments, &function)?;
    let name = plain(&function.name);
    let kept = |keep: fn(&str) -> bool| -> TokenStream {
        let attributes = function
            .attributes
            .iter()
            .filter(|attribute| keep(&attribute.name));
        attributes
            .map(|attribute| attribute.tokens.clone())
            .collect()
    };
    Ok(fill(
        EXPANSION,
        &[
            ("attributes", kept(|name| name != "launch_bounds")),
            ("conditions", kept(|name| name == "cfg")),
            ("visibility", function.visibility.clone()),
            ("unsafety", function.unsafety.clone()),
            ("name", TokenTree::from(function.name.clone()).into()),
            ("written_parameters", function.written_parameters.clone()),
            (
                "entry_parameters",
                function.parameters.iter().map(entry_parameters).collect(),
            ),
            (
                "arguments",
                function.parameters.iter().map(argument).collect(),
            ),
            (
                "device_body",
                TokenTree::from(shared::rewrite(&function.body, &name)).into(),
            ),
            ("host_body", TokenTree::from(function.body.clone()).into()),
            (
                "record",
                identifier(&format!("__rustcuda_kernel_{name}"), Span::call_site()),
            ),
            ("pieces", pieces(&function, bounds)),
            ("checks", function.parameters.iter().map(check).collect()),
        ],
    ))
}

/// A slice becomes a pointer and a length: the loads then are known to be from global memory.
fn entry_parameters(parameter: &Parameter) -> TokenStream {
    let source = if parameter.is_slice {
        "$pointer: <$type as ::rustcuda_device::record::SliceParam>::Pointer, $length: usize,"
    } else {
        "$pointer: $type,"
    };
    fill(source, &parts(parameter))
}

fn argument(parameter: &Parameter) -> TokenStream {
    let source = if parameter.is_slice {
        "<$type as ::rustcuda_device::record::SliceParam>::from_parts($pointer, $length),"
    } else {
        "$pointer,"
    };
    fill(source, &parts(parameter))
}

/// An alias of a slice type would stay one parameter that Python cannot pass.
fn check(parameter: &Parameter) -> TokenStream {
    if parameter.is_slice {
        return TokenStream::new();
    }
    let source = r#"
        assert!(
            !<$type as ::rustcuda_device::record::KernelParam>::IS_SLICE,
            "spell slice parameters of a kernel `&[T]` or `DisjointSlice<T>`, not through an alias"
        );
    "#;
    fill(source, &parts(parameter))
}

fn parts(parameter: &Parameter) -> [(&'static str, TokenStream); 3] {
    let name = parameter.plain_name();
    let span = parameter.name.span();
    [
        ("type", parameter.rust_type.clone()),
        ("pointer", identifier(&format!("pointer_{name}"), span)),
        ("length", identifier(&format!("length_{name}"), span)),
    ]
}

/// The record's text in pieces, as `rustcuda_device::record` describes it.
fn pieces(function: &Function, bounds: Option<Bounds>) -> TokenStream {
    let mut pieces = text(&format!(
        "rustcuda\x1f1\x1ename\x1f{}",
        plain(&function.name)
    ));
    let mut separator = "\x1edoc\x1f";
    for attribute in function
        .attributes
        .iter()
        .filter(|attribute| attribute.name == "doc")
    {
        // `= "…"`; anything else, such as `(hidden)`, is no text.
        if let [TokenTree::Punct(equals), expression @ ..] = attribute.rest.as_slice()
            && equals.as_char() == '='
        {
            pieces.extend(text(separator));
            pieces.extend(fill(
                "::rustcuda_device::record::Piece::Text($doc),",
                &[("doc", expression.iter().cloned().collect())],
            ));
            separator = "\n";
        }
    }
    if let Some(bounds) = bounds {
        pieces.extend(text("\x1elaunch_bounds\x1f"));
        pieces.extend(number(bounds.most_threads));
        pieces.extend(text("\x1f"));
        pieces.extend(number(bounds.fewest_blocks));
    }
    for parameter in &function.parameters {
        pieces.extend(text(&format!(
            "\x1eparameter\x1f{}\x1f",
            parameter.plain_name()
        )));
        pieces.extend(fill(
            "::rustcuda_device::record::Piece::Type(<$type as ::rustcuda_device::record::KernelParam>::SPELLING),",
            &parts(parameter),
        ));
    }
    pieces
}

fn text(text: &str) -> TokenStream {
    let literal = TokenTree::from(Literal::string(text));
    fill(
        "::rustcuda_device::record::Piece::Text($text),",
        &[("text", literal.into())],
    )
}

fn number(expression: TokenStream) -> TokenStream {
    fill(
        "::rustcuda_device::record::Piece::Number(($expression) as u64),",
        &[("expression", expression)],
    )
}

fn identifier(name: &str, span: Span) -> TokenStream {
    TokenTree::from(Ident::new(name, span)).into()
}
