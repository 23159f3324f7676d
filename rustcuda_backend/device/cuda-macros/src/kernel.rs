//! cuda-oxide's forms of `#[kernel]`, made into those of `rustcuda-macros`.

use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

use crate::error::{Error, Result};
use crate::expand;
use crate::function::{Attribute, split_attributes};
use crate::parameter::{punct, split_at_commas, without_invisible_groups};
use crate::shared;
use crate::template::fill;

/// Beside `#[kernel]`: what reaches the PTX only through `#[kernel]`, and what only the host's launches use.
const LAUNCH_ATTRIBUTES: &[&str] = &[
    "launch_bounds",
    "launch_contract",
    "cluster_launch",
    "cooperative_launch",
];

/// What stands in the parentheses of `#[kernel(…)]`.
#[derive(Default)]
struct Arguments {
    /// The types that a generic kernel is made for.
    types: Vec<TokenStream>,
    /// The name by which the body has its launch context.
    launch_context: Option<Ident>,
}

pub fn kernel(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let arguments = Arguments::parse(arguments)?;
    let (attributes, rest) = split_attributes(without_unrolls(item));
    let mut function = Function::parse(attributes, rest)?;
    if let Some(name) = arguments.launch_context {
        function.begin_body(fill(
            "let $name = ::cuda_device::thread::launch_context();",
            &[("name", TokenTree::from(name).into())],
        ));
    }
    if function.generics.is_empty() {
        return expand::kernel(function.bounds(), function.into_tokens());
    }
    function.instances(&arguments.types)
}

impl Arguments {
    fn parse(tokens: TokenStream) -> Result<Self> {
        let mut found = Self::default();
        for argument in split_at_commas(tokens) {
            match argument.as_slice() {
                [] => {}
                // Bounds checks of slices cannot be left out for one function of a crate alone.
                [TokenTree::Ident(word)] if word.to_string() == "unchecked_indexing" => {}
                [TokenTree::Ident(word), equals, TokenTree::Ident(name)]
                    if word.to_string() == "launch_context" && punct(equals) == Some('=') =>
                {
                    found.launch_context = Some(name.clone());
                }
                [first, second, ..] if punct(second) == Some('=') => {
                    let message =
                        "#[kernel] takes types, `launch_context = NAME` and `unchecked_indexing`";
                    return Err(Error::new(first.span(), message));
                }
                types => found.types.push(types.iter().cloned().collect()),
            }
        }
        Ok(found)
    }
}

/// A function, generic or not.
struct Function {
    attributes: Vec<Attribute>,
    /// Visibility and `unsafe`.
    qualifiers: TokenStream,
    name: Ident,
    /// `T: Copy` of `<T: Copy>`.
    generics: Vec<TokenTree>,
    parameters: TokenStream,
    /// From `where` on, or nothing.
    condition: TokenStream,
    body: Group,
}

impl Function {
    fn parse(attributes: Vec<Attribute>, tokens: Vec<TokenTree>) -> Result<Self> {
        let not_a_function = || Error::new(Span::call_site(), "#[kernel] goes on a function");
        let keyword = tokens.iter().position(|token| token.to_string() == "fn");
        let keyword = keyword.ok_or_else(not_a_function)?;
        let mut rest = tokens[keyword + 1..].iter().cloned().peekable();
        let Some(TokenTree::Ident(name)) = rest.next() else {
            return Err(not_a_function());
        };
        let mut generics = Vec::new();
        let parameters = loop {
            match rest.next() {
                Some(TokenTree::Group(group)) if is_list(&group, &generics) => {
                    break group.stream();
                }
                Some(token) => generics.push(token),
                None => return Err(not_a_function()),
            }
        };
        let mut rest: Vec<_> = rest.collect();
        let Some(TokenTree::Group(body)) = rest.pop() else {
            return Err(not_a_function());
        };
        if generics.len() > 1 {
            generics.remove(0);
            generics.pop();
        }
        Ok(Self {
            attributes,
            qualifiers: tokens[..keyword].iter().cloned().collect(),
            name,
            generics,
            parameters,
            condition: rest.into_iter().collect(),
            body,
        })
    }

    fn begin_body(&mut self, statements: TokenStream) {
        let content = statements.into_iter().chain(self.body.stream()).collect();
        let mut body = Group::new(Delimiter::Brace, content);
        body.set_span(self.body.span());
        self.body = body;
    }

    /// `launch_bounds(…)` as an argument of our own `#[kernel]`; a contract's block is a bound as well.
    fn bounds(&self) -> TokenStream {
        let argument = |wanted: &str| {
            let mut attributes = self.attributes.iter();
            let found = attributes.find(|attribute| attribute.name == wanted)?;
            match found.rest.as_slice() {
                [TokenTree::Group(list)] => Some(list.stream()),
                _ => None,
            }
        };
        let block = || {
            let contract = split_at_commas(argument("launch_contract")?);
            let block = contract
                .into_iter()
                .find_map(|entry| match entry.as_slice() {
                    [word, _, TokenTree::Group(axes)] if word.to_string() == "block" => {
                        Some(axes.stream())
                    }
                    _ => None,
                })?;
            let axes = split_at_commas(block);
            let axes = axes.into_iter().filter(|axis| !axis.is_empty());
            let factors: Vec<TokenStream> = axes
                .map(|axis| {
                    let axis = axis.into_iter().collect();
                    fill("($axis) *", &[("axis", axis)])
                })
                .collect();
            Some(fill(
                "$factors 1",
                &[("factors", factors.into_iter().collect())],
            ))
        };
        match argument("launch_bounds").or_else(block) {
            Some(bounds) => fill("launch_bounds($bounds)", &[("bounds", bounds)]),
            None => TokenStream::new(),
        }
    }

    fn kept_attributes(&self) -> TokenStream {
        let attributes = self.attributes.iter();
        attributes
            .filter(|attribute| !LAUNCH_ATTRIBUTES.contains(&attribute.name.as_str()))
            .map(|attribute| attribute.tokens.clone())
            .collect()
    }

    fn into_tokens(self) -> TokenStream {
        fill(
            "$attributes $qualifiers fn $name($parameters) $condition $body",
            &[
                ("attributes", self.kept_attributes()),
                ("qualifiers", self.qualifiers),
                ("name", TokenTree::from(self.name).into()),
                ("parameters", self.parameters),
                ("condition", self.condition),
                ("body", TokenTree::from(self.body).into()),
            ],
        )
    }

    /// One kernel for each type, which calls the generic function; without types none, as no code but the
    /// host's says which there are.
    fn instances(self, types: &[TokenStream]) -> Result<TokenStream> {
        let generic = self
            .generics
            .first()
            .map(ToString::to_string)
            .unwrap_or_default();
        let body = shared::rewrite(&self.body, &self.name.to_string());
        let mut tokens = fill(
            "$attributes #[allow(dead_code)] #[inline(always)] \
             $qualifiers fn $name<$generics>($parameters) $condition $body",
            &[
                ("attributes", self.kept_attributes()),
                ("qualifiers", self.qualifiers.clone()),
                ("name", TokenTree::from(self.name.clone()).into()),
                ("generics", self.generics.iter().cloned().collect()),
                ("parameters", self.parameters.clone()),
                ("condition", self.condition.clone()),
                ("body", TokenTree::from(body).into()),
            ],
        );
        for chosen in types {
            let suffix = chosen.clone().into_iter().filter_map(|token| match token {
                TokenTree::Ident(name) => Some(name.to_string()),
                _ => None,
            });
            let suffix = suffix.last().unwrap_or_else(|| "Unknown".to_owned());
            let name = Ident::new(&format!("{}_{suffix}", self.name), self.name.span());
            let parameters = replaced(self.parameters.clone(), &generic, chosen);
            let names = split_at_commas(parameters.clone())
                .into_iter()
                .filter_map(|parameter| {
                    let name = parameter
                        .into_iter()
                        .find(|token| token.to_string() != "mut")?;
                    Some(fill("$name,", &[("name", name.into())]))
                });
            let call = fill(
                "{ $unsafety { $function::<$type>($names) } }",
                &[
                    ("unsafety", self.unsafety()),
                    ("function", TokenTree::from(self.name.clone()).into()),
                    ("type", chosen.clone()),
                    ("names", names.collect()),
                ],
            );
            let instance = fill(
                "$qualifiers fn $name($parameters) $call",
                &[
                    ("qualifiers", self.qualifiers.clone()),
                    ("name", TokenTree::from(name).into()),
                    ("parameters", parameters),
                    ("call", call),
                ],
            );
            tokens.extend(expand::kernel(self.bounds(), instance)?);
        }
        Ok(tokens)
    }

    fn unsafety(&self) -> TokenStream {
        let qualifiers = self.qualifiers.clone().into_iter();
        qualifiers
            .filter(|token| token.to_string() == "unsafe")
            .collect()
    }
}

/// Whether these parentheses are the parameters, rather than those of a bound such as `F: Fn(u32)`.
fn is_list(group: &Group, generics: &[TokenTree]) -> bool {
    let opened = generics
        .iter()
        .filter(|token| punct(token) == Some('<'))
        .count();
    let closed = generics
        .windows(2)
        .filter(|pair| punct(&pair[1]) == Some('>') && punct(&pair[0]) != Some('-'));
    group.delimiter() == Delimiter::Parenthesis && opened == closed.count()
}

/// The tokens with a type in place of each `name`.
fn replaced(tokens: TokenStream, name: &str, chosen: &TokenStream) -> TokenStream {
    let token = |token: TokenTree| match token {
        TokenTree::Ident(found) if found.to_string() == name => chosen.clone(),
        TokenTree::Group(group) => {
            let mut inner = Group::new(group.delimiter(), replaced(group.stream(), name, chosen));
            inner.set_span(group.span());
            TokenTree::from(inner).into()
        }
        other => other.into(),
    };
    tokens.into_iter().flat_map(token).collect()
}

/// Takes `#[unroll]` and `#[unroll(N)]` off loops: attributes of expressions are for macros not to be had,
/// and LLVM unrolls by its own judgement.
pub fn without_unrolls(tokens: TokenStream) -> TokenStream {
    let tokens: Vec<_> = without_invisible_groups(tokens).into_iter().collect();
    let mut kept = TokenStream::new();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at..] {
            [hash, TokenTree::Group(attribute), ..]
                if punct(hash) == Some('#') && is_unroll(attribute) =>
            {
                at += 2;
                continue;
            }
            [TokenTree::Group(group), ..] => {
                let mut inner = Group::new(group.delimiter(), without_unrolls(group.stream()));
                inner.set_span(group.span());
                kept.extend([TokenTree::from(inner)]);
            }
            [other, ..] => kept.extend([other.clone()]),
            [] => {}
        }
        at += 1;
    }
    kept
}

fn is_unroll(attribute: &Group) -> bool {
    let mut words = attribute.stream().into_iter();
    attribute.delimiter() == Delimiter::Bracket
        && words
            .next()
            .is_some_and(|word| word.to_string() == "unroll")
}

/// A device function: shared memory in it is that of the kernel that calls it.
pub fn device(item: TokenStream) -> TokenStream {
    let item: Vec<_> = without_unrolls(item).into_iter().collect();
    let name = item
        .iter()
        .skip_while(|token| token.to_string() != "fn")
        .nth(1)
        .map(ToString::to_string);
    match (name, item.split_last()) {
        (Some(name), Some((TokenTree::Group(body), head))) => {
            let body = TokenTree::from(shared::rewrite(body, &name));
            head.iter().cloned().chain([body]).collect()
        }
        _ => item.into_iter().collect(),
    }
}

/// Puts an attribute below the `#[kernel]` that it stands above, which then reads it.
pub fn hand_to_kernel(name: &str, arguments: TokenStream, item: TokenStream) -> TokenStream {
    let (attributes, rest) = split_attributes(item);
    let is_above_kernel = attributes
        .iter()
        .any(|attribute| attribute.name == "kernel");
    let own = fill(
        "#[$name($arguments)]",
        &[
            (
                "name",
                TokenTree::from(Ident::new(name, Span::call_site())).into(),
            ),
            ("arguments", arguments),
        ],
    );
    let attributes = attributes
        .into_iter()
        .flat_map(|attribute| attribute.tokens);
    let own = own.into_iter().filter(|_| is_above_kernel);
    attributes.chain(own).chain(rest).collect()
}
