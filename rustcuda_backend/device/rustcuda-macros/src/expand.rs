//! What `#[kernel]` becomes.

use proc_macro::{Ident, Span, TokenStream, TokenTree};

use crate::arguments::{self, Arguments};
use crate::error::{Error, Result};
use crate::function::{self, Function, not_generic};
use crate::parameter::{Parameter, plain};
use crate::promises;
use crate::record::Record;
use crate::shared;
use crate::template::fill;

/// The inner function holds the author's signature and body; it disappears by inlining.
const ENTRY: &str = r#"
    #[cfg(target_arch = "nvptx64")]
    $attributes
    #[unsafe(no_mangle)]
    #[allow(improper_ctypes_definitions)]
    $visibility $unsafety extern "ptx-kernel" fn $entry($entry_parameters) {
        #[allow(unused_imports)]
        use ::rustcuda_device::FloatExt as _;
        #[inline(always)]
        #[allow(dangerous_implicit_autorefs, clippy::too_many_arguments)]
        $unsafety fn $name($written_parameters) $body
        #[allow(unused_unsafe)]
        // SAFETY: the launcher passes what the record promises.
        let () = unsafe { $name($arguments) };
    }

    $record
"#;

/// One of the kernels that a generic one becomes: its type is an alias there.
const INSTANCE: &str = r#"
    #[cfg(target_arch = "nvptx64")]
    $conditions
    const _: () = {
        #[allow(dead_code)]
        type $parameter = $type;
        $entry
    };
"#;

/// The function as it is written, for editors and `cargo check`.
const HOST: &str = r#"
    #[cfg(not(target_arch = "nvptx64"))]
    $attributes
    #[allow(dangerous_implicit_autorefs)]
    $visibility $unsafety fn $name $generics ($written_parameters) $where {
        $inner
        #[allow(unused_imports)]
        use ::rustcuda_device::FloatExt as _;
        $body
    }
"#;

pub fn kernel(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let function = function::parse(item)?;
    let arguments = arguments::of(arguments, &function)?;
    let mut expanded = match &function.generic {
        None => entry(&function, &arguments, &function.name)?,
        Some(generic) if arguments.types.is_empty() => {
            return Err(not_generic(generic.parameter.span()));
        }
        Some(generic) => instances(&function, &arguments, &generic.parameter)?,
    };
    let body = shared::rewrite(&function.body, &plain(&function.name));
    let (inner, body) = function::split_inner_attributes(body.stream());
    let (generics, conditions) = match &function.generic {
        Some(generic) => (generic.tokens.clone(), generic.conditions.clone()),
        None => Default::default(),
    };
    expanded.extend(fill(
        HOST,
        &[
            (
                "attributes",
                kept(&function, |name| !arguments::is_ours(name)),
            ),
            ("visibility", function.visibility.clone()),
            ("unsafety", function.unsafety.clone()),
            ("name", TokenTree::from(function.name.clone()).into()),
            ("generics", generics),
            ("written_parameters", function.written_parameters.clone()),
            ("where", conditions),
            ("inner", inner),
            ("body", body),
        ],
    ));
    Ok(expanded)
}

/// A kernel for each of the types, `scale_f32` for `f32`.
fn instances(function: &Function, arguments: &Arguments, parameter: &Ident) -> Result<TokenStream> {
    let mut expanded = TokenStream::new();
    let mut names = Vec::new();
    for rust_type in &arguments.types {
        let name = format!("{}_{}", plain(&function.name), last_segment(rust_type)?);
        if names.contains(&name) {
            let message = format!(
                "two of the types make a kernel called `{name}`; leave one out, or rename it"
            );
            return Err(Error::new(rust_type[0].span(), message));
        }
        names.push(name.clone());
        let entry = entry(
            function,
            arguments,
            &Ident::new(&name, function.name.span()),
        )?;
        let parts = [
            ("conditions", kept(function, |name| name == "cfg")),
            ("parameter", TokenTree::from(parameter.clone()).into()),
            ("type", rust_type.iter().cloned().collect()),
            ("entry", entry),
        ];
        expanded.extend(fill(INSTANCE, &parts));
    }
    Ok(expanded)
}

/// `f16` of `core::primitive::f16`: the last name outside of `<…>`.
fn last_segment(rust_type: &[TokenTree]) -> Result<String> {
    let path = rust_type
        .iter()
        .take_while(|token| token.to_string() != "<");
    match path.last() {
        Some(TokenTree::Ident(name)) => Ok(plain(name)),
        _ => {
            let span = rust_type.first().map_or(Span::call_site(), TokenTree::span);
            let message = "a kernel's type needs a name, after which the kernel is called; give it one: type Name = …;";
            Err(Error::new(span, message))
        }
    }
}

fn entry(function: &Function, arguments: &Arguments, name: &Ident) -> Result<TokenStream> {
    refuse_taken(name)?;
    let body = shared::rewrite(&function.body, &plain(name));
    Ok(fill(
        ENTRY,
        &[
            (
                "attributes",
                kept(function, |name| !arguments::is_ours(name)),
            ),
            ("visibility", function.visibility.clone()),
            ("unsafety", function.unsafety.clone()),
            ("entry", TokenTree::from(name.clone()).into()),
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
            ("body", TokenTree::from(body).into()),
            ("record", record(function, arguments, &plain(name))),
        ],
    ))
}

/// Names that LLVM, ptxas, libdevice or the sysroot have: calls of theirs would be calls of the kernel, and
/// the other way round. The build backend has the same list, for kernels without `#[kernel]`.
fn refuse_taken(name: &Ident) -> Result<()> {
    let taken = ["vprintf", "malloc", "free", "memcmp", "bcmp", "WARP_SZ"];
    let text = plain(name);
    if !text.starts_with("__") && !taken.contains(&text.as_str()) {
        return Ok(());
    }
    let message = format!(
        "CUDA or the compiler keeps the name `{text}` for itself; rename the kernel, e.g. to `{}_kernel`",
        text.trim_matches('_')
    );
    Err(Error::new(name.span(), message))
}

fn kept(function: &Function, keep: fn(&str) -> bool) -> TokenStream {
    let attributes = function
        .attributes
        .iter()
        .filter(|attribute| keep(&attribute.name));
    attributes
        .map(|attribute| attribute.tokens.clone())
        .collect()
}

/// A slice becomes a pointer and a length: the loads then are known to be from global memory.
fn entry_parameters(parameter: &Parameter) -> TokenStream {
    let source = match (parameter.is_slice, parameter.has_row_width) {
        (true, true) => {
            "$pointer: <$type as ::rustcuda_device::record::SliceParam>::Pointer, $length: usize, $width: u32,"
        }
        (true, false) => {
            "$pointer: <$type as ::rustcuda_device::record::SliceParam>::Pointer, $length: usize,"
        }
        _ => "$pointer: $type,",
    };
    fill(source, &parts(parameter))
}

fn argument(parameter: &Parameter) -> TokenStream {
    let source = match (parameter.is_slice, parameter.has_row_width) {
        (true, true) => {
            "<$type as ::rustcuda_device::record::SliceParam>::from_parts($pointer, $length, $width),"
        }
        (true, false) => {
            // The record's check makes sure that it is `()`.
            "<$type as ::rustcuda_device::record::SliceParam>::from_parts($pointer, $length, ::core::mem::zeroed()),"
        }
        _ => "$pointer,",
    };
    fill(source, &parts(parameter))
}

/// An alias of a slice type would stay one parameter that Python cannot pass, and one of a space would
/// hide that the slice has a third.
fn check(parameter: &Parameter) -> TokenStream {
    let source = match (parameter.is_slice, parameter.has_row_width) {
        (true, true) => return TokenStream::new(),
        (true, false) => {
            r#"
                assert!(
                    size_of::<<$type as ::rustcuda_device::record::SliceParam>::Space>() == 0,
                    "spell the space of a kernel's slice with its name, `Runtime2DIndex` or \
                     `RuntimeRowMajorTiles`, not through an alias"
                );
            "#
        }
        _ => {
            r#"
                assert!(
                    !<$type as ::rustcuda_device::record::KernelParam>::IS_SLICE,
                    "spell slice parameters of a kernel `&[T]` or `DisjointSlice<T>`, not through an alias"
                );
            "#
        }
    };
    fill(source, &parts(parameter))
}

fn parts(parameter: &Parameter) -> [(&'static str, TokenStream); 4] {
    let name = parameter.plain_name();
    let identifier = |part: &str| -> TokenStream {
        TokenTree::from(Ident::new(&format!("{part}_{name}"), parameter.name.span())).into()
    };
    [
        ("type", parameter.rust_type.clone()),
        ("pointer", identifier("pointer")),
        ("length", identifier("length")),
        ("width", identifier("width")),
    ]
}

fn record(function: &Function, arguments: &Arguments, name: &str) -> TokenStream {
    let mut record = Record::new("name", name);
    record.doc(&function.attributes);
    let mut checks = promises::write(&mut record, arguments, name);
    checks.extend(function.parameters.iter().map(check));
    for parameter in &function.parameters {
        record.text(&format!("\x1eparameter\x1f{}\x1f", parameter.plain_name()));
        record.piece(
            "Type(<$of as ::rustcuda_device::record::KernelParam>::SPELLING)",
            parameter.rust_type.clone(),
        );
    }
    record.finish(
        &format!("__rustcuda_kernel_{name}"),
        kept(function, |name| name == "cfg"),
        checks,
    )
}
