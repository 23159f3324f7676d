//! What `#[kernel(…)]` and the attributes beside it ask for.

use proc_macro::{Delimiter, Span, TokenStream, TokenTree};

use crate::error::{Error, Result};
use crate::function::{self, Function};
use crate::parameter::{split_at_commas, split_expressions};
use crate::template::fill;

/// Constant expressions, as they are written.
type Expressions = Vec<TokenStream>;

/// All that was asked for, each thing once.
#[derive(Default)]
pub struct Arguments {
    /// The most threads of a block and, if wanted, the fewest blocks per multiprocessor.
    pub launch_bounds: Option<Expressions>,
    /// Threads of a block along x, y and z.
    pub block: Option<Expressions>,
    /// Blocks of a cluster along x, y and z.
    pub cluster: Option<Expressions>,
    /// The types that the kernel's own type stands for.
    pub types: Vec<Vec<TokenTree>>,
}

/// Attributes beside `#[kernel]`, and the argument that each of them is.
const ATTRIBUTES: [(&str, &str); 2] = [
    ("launch_bounds", "launch_bounds"),
    ("cluster_launch", "cluster"),
];

const LAUNCH_BOUNDS: &str =
    "launch_bounds takes the most threads and, if wanted, the fewest blocks";
const EXTENTS: &str = "block and cluster take one to three numbers: along x, y and z";
const KNOWN: &str = "#[kernel] takes only `launch_bounds(most_threads, fewest_blocks)`, `block(x, y, z)`, \
                     `cluster(x, y, z)`, `unchecked_indexing` and, for a kernel with a type parameter, types";

/// Whether `#[kernel]` reads an attribute instead of leaving it to the compiler.
pub fn is_ours(attribute: &str) -> bool {
    ATTRIBUTES.iter().any(|(name, _)| *name == attribute)
}

/// What `#[kernel(arguments)]` and the attributes below it ask for.
pub fn of(arguments: TokenStream, function: &Function) -> Result<Arguments> {
    let mut found = Arguments::default();
    for argument in split_at_commas(arguments) {
        match argument.as_slice() {
            [] => {}
            [TokenTree::Ident(word)] if word.to_string() == "unchecked_indexing" => {}
            [TokenTree::Ident(name), TokenTree::Group(list)]
                if list.delimiter() == Delimiter::Parenthesis =>
            {
                found.add(&name.to_string(), name.span(), list.stream(), function)?;
            }
            [first, ..] if function.generic.is_none() => {
                return Err(Error::new(first.span(), KNOWN));
            }
            _ => found.types.push(argument),
        }
    }
    for attribute in &function.attributes {
        let Some((_, name)) = ATTRIBUTES.iter().find(|(name, _)| *name == attribute.name) else {
            continue;
        };
        let list = match attribute.rest.as_slice() {
            [TokenTree::Group(list)] if list.delimiter() == Delimiter::Parenthesis => list.stream(),
            _ => TokenStream::new(),
        };
        found.add(name, attribute.span, list, function)?;
    }
    Ok(found)
}

impl Arguments {
    fn add(
        &mut self,
        name: &str,
        span: Span,
        list: TokenStream,
        function: &Function,
    ) -> Result<()> {
        let (place, most, message) = match name {
            "launch_bounds" => (&mut self.launch_bounds, 2, LAUNCH_BOUNDS),
            "block" => (&mut self.block, 3, EXTENTS),
            "cluster" => (&mut self.cluster, 3, EXTENTS),
            _ => return Err(Error::new(span, KNOWN)),
        };
        let expressions = expressions(list);
        if !(1..=most).contains(&expressions.len()) {
            return Err(Error::new(span, message));
        }
        if place.replace(expressions).is_some() {
            let message = format!("this kernel has two {}", name.replace('_', " "));
            return Err(Error::new(function.name.span(), message));
        }
        Ok(())
    }
}

fn expressions(list: TokenStream) -> Expressions {
    split_expressions(list)
        .into_iter()
        .filter(|expression| !expression.is_empty())
        .map(|expression| expression.into_iter().collect())
        .collect()
}

/// Puts an attribute below the `#[kernel]` that it stands above, which then reads it.
pub fn hand_to_kernel(
    attribute: &'static str,
    arguments: TokenStream,
    item: TokenStream,
) -> Result<TokenStream> {
    let (attributes, rest) = function::split_attributes(item);
    if !attributes
        .iter()
        .any(|attribute| attribute.name == "kernel")
    {
        let message = format!("#[{attribute}] belongs on a function with #[kernel]");
        return Err(Error::new(Span::call_site(), message));
    }
    let name = TokenTree::from(proc_macro::Ident::new(attribute, Span::call_site()));
    let parts = [("name", name.into()), ("arguments", arguments)];
    let mut tokens: TokenStream = attributes
        .into_iter()
        .map(|attribute| attribute.tokens)
        .collect();
    tokens.extend(fill("#[$name($arguments)]", &parts));
    tokens.extend(rest);
    Ok(tokens)
}
