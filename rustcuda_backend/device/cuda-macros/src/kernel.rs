//! cuda-oxide's forms of `#[kernel]`, made into those of `rustcuda-macros`.

use proc_macro::{Delimiter, Group, Ident, Literal, Span, TokenStream, TokenTree};

use crate::error::{Error, Result};
use crate::function::{Attribute, split_attributes};
use crate::parameter::{punct, split_at_commas};
use crate::template::fill;
use crate::{device, expand, ptx_asm};

/// A body that knows its launch context by the name that the author chose.
const IN_CONTEXT: &str = r#"
    let $name = ::cuda_device::thread::launch_context::<::cuda_device::thread::$domain>();
    $body
"#;

/// The parameter by which one kernel hands its context to another.
const CONTEXT: &str = "_: ::cuda_device::thread::LaunchContextRef<
    '_, ::cuda_device::thread::$domain, ::cuda_device::thread::U32Coordinates>";

/// A function that becomes no kernel, and a warning that says so.
const NOT_EMITTED: &str = r#"
    $function
    const _: () = {
        #[allow(non_upper_case_globals)]
        #[deprecated(note = "a generic kernel, of which none is emitted; list types: #[kernel(f32, f64)]")]
        const $name: () = ();
        $name
    };
"#;

pub fn kernel(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let (attributes, mut rest) = split_attributes(ptx_asm::with_texts(item));
    let (mut arguments, context) = taken_context(arguments);
    let contract = Contract::of(&attributes)?;
    if let (Some(name), Some(TokenTree::Group(body))) = (context, rest.last_mut()) {
        let parts = [
            ("name", TokenTree::from(name).into()),
            ("domain", identifier(&format!("Domain{}", contract.domain))),
            ("body", body.stream()),
        ];
        let mut whole = Group::new(Delimiter::Brace, fill(IN_CONTEXT, &parts));
        whole.set_span(body.span());
        *body = whole;
    }
    let generic = Generic::of(&rest);
    let has_types = !arguments.is_empty();
    if let Some(block) = contract.block {
        arguments.extend(fill("block($block),", &[("block", block)]));
    }
    let attributes = attributes
        .into_iter()
        .filter(|attribute| !IGNORED.contains(&attribute.name.as_str()));
    match generic {
        Generic::No => {}
        Generic::OneType if has_types => {}
        Generic::OneType | Generic::Other => {
            add_context(&mut rest, &contract.domain);
            let attributes =
                attributes.filter(|attribute| !LAUNCHES.contains(&attribute.name.as_str()));
            let function = attributes
                .flat_map(|attribute| attribute.tokens)
                .chain(rest.clone());
            let name = rest
                .iter()
                .skip_while(|token| token.to_string() != "fn")
                .nth(1);
            let parts = [
                ("function", device::device(function.collect())?),
                ("name", name.cloned().into_iter().collect()),
            ];
            return Ok(fill(NOT_EMITTED, &parts));
        }
    }
    let item = attributes
        .flat_map(|attribute| attribute.tokens)
        .chain(rest);
    expand::kernel(arguments, item.collect())
}

/// Gives a generic kernel the last parameter that other kernels pass when they call it: their context.
fn add_context(function: &mut [TokenTree], domain: &str) {
    let lists = function.iter_mut().filter_map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => Some(group),
        _ => None,
    });
    // Bounds such as `F: Fn(u32)` have parentheses too, before the parameters or behind them.
    let mut lists = lists.filter(|list| list.stream().to_string().contains(':'));
    if let Some(list) = lists.next() {
        let parameters = list.stream().to_string();
        let comma = if parameters.trim_end().ends_with(',') {
            ""
        } else {
            ","
        };
        let source = format!("$parameters {comma} {CONTEXT}");
        let parts = [
            ("parameters", list.stream()),
            ("domain", identifier(&format!("Domain{domain}"))),
        ];
        *list = Group::new(Delimiter::Parenthesis, fill(&source, &parts));
    }
}

/// Attributes beside `#[kernel]` that are of use to the host only, or were read here.
const IGNORED: &[&str] = &["launch_contract", "cooperative_launch"];
/// Those that only a kernel can have.
const LAUNCHES: &[&str] = &["launch_bounds", "cluster_launch"];

/// Takes `launch_context = NAME` out of the arguments.
fn taken_context(arguments: TokenStream) -> (TokenStream, Option<Ident>) {
    let mut rest = TokenStream::new();
    let mut context = None;
    for argument in split_at_commas(arguments) {
        match argument.as_slice() {
            [TokenTree::Ident(word), equals, TokenTree::Ident(name)]
                if word.to_string() == "launch_context" && punct(equals) == Some('=') =>
            {
                context = Some(name.clone());
            }
            // It allows to leave checks out, and stock rustc does not.
            [TokenTree::Ident(word)] if word.to_string() == "unchecked_indexing" => {}
            [] => {}
            _ => {
                let argument = argument.into_iter().collect();
                rest.extend(fill("$argument,", &[("argument", argument)]));
            }
        }
    }
    (rest, context)
}

/// What of `#[launch_contract(…)]` concerns the GPU.
struct Contract {
    domain: String,
    block: Option<TokenStream>,
}

impl Contract {
    fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut contract = Self {
            domain: "1".to_owned(),
            block: None,
        };
        let found = attributes
            .iter()
            .find(|attribute| attribute.name == "launch_contract");
        let Some([TokenTree::Group(list)]) = found.map(|attribute| attribute.rest.as_slice())
        else {
            return Ok(contract);
        };
        for entry in split_at_commas(list.stream()) {
            match entry.as_slice() {
                [word, _, TokenTree::Group(axes)] if word.to_string() == "block" => {
                    contract.block = Some(axes.stream());
                }
                [word, _, TokenTree::Literal(number)] if word.to_string() == "domain" => {
                    contract.domain = domain(number)?;
                }
                _ => {}
            }
        }
        Ok(contract)
    }
}

fn domain(number: &Literal) -> Result<String> {
    let text = number.to_string();
    if ["1", "2", "3"].contains(&text.as_str()) {
        return Ok(text);
    }
    Err(Error::new(
        number.span(),
        "a launch has the domain 1, 2 or 3",
    ))
}

/// What a function is generic over.
enum Generic {
    No,
    OneType,
    Other,
}

impl Generic {
    fn of(function: &[TokenTree]) -> Self {
        let name = function.iter().position(|token| token.to_string() == "fn");
        let after = name.map_or(&function[..0], |at| {
            function.get(at + 2..).unwrap_or_default()
        });
        if after.first().and_then(punct) != Some('<') {
            return Self::No;
        }
        let mut depth = 0;
        for (at, token) in after.iter().enumerate() {
            match punct(token) {
                Some('<') => depth += 1,
                Some('>') if punct(&after[at - 1]) != Some('-') => depth -= 1,
                Some(',') if depth == 1 && punct(&after[at + 1]) != Some('>') => {
                    return Self::Other;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        match &after[1] {
            TokenTree::Ident(word) if word.to_string() != "const" => Self::OneType,
            _ => Self::Other,
        }
    }
}

fn identifier(name: &str) -> TokenStream {
    TokenTree::from(Ident::new(name, Span::call_site())).into()
}

/// Puts `#[launch_contract(…)]` below the `#[kernel]` that it stands above, which then reads it.
pub fn hand_to_kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let (attributes, rest) = split_attributes(item);
    let is_above_kernel = attributes
        .iter()
        .any(|attribute| attribute.name == "kernel");
    let own = fill(
        "#[launch_contract($arguments)]",
        &[("arguments", arguments)],
    );
    let attributes = attributes
        .into_iter()
        .flat_map(|attribute| attribute.tokens);
    let own = own.into_iter().filter(|_| is_above_kernel);
    attributes.chain(own).chain(rest).collect()
}
