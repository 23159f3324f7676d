//! `use` declarations, one for each name that they import.

use proc_macro::{TokenStream, TokenTree};

use crate::item::Item;
use crate::parameter::{punct, split_expressions};

/// One path that a `use` imports.
pub struct Import {
    /// The path and its `as name`.
    tokens: Vec<TokenTree>,
    /// Its segments; the last is `*` of a glob.
    pub path: Vec<String>,
    /// The name that it has here: `*` of a glob.
    pub name: String,
}

impl Import {
    pub fn is_glob(&self) -> bool {
        self.name == "*"
    }

    /// The crate or module that the path begins with.
    pub fn root(&self) -> &str {
        self.path.first().map_or("", String::as_str)
    }

    /// The `use` of this path alone, with the attributes and the visibility of the whole.
    pub fn into_tokens(self, whole: &Item) -> TokenStream {
        let keyword = whole
            .tokens
            .iter()
            .position(|token| token.to_string() == "use");
        let attributes = whole
            .attributes
            .iter()
            .flat_map(|attribute| attribute.tokens.clone());
        attributes
            .chain(
                whole
                    .tokens
                    .iter()
                    .take(keyword.map_or(0, |at| at + 1))
                    .cloned(),
            )
            .chain(self.tokens)
            .chain(whole.tokens.last().cloned())
            .collect()
    }
}

/// All paths that a `use` item imports.
pub fn imports(item: &Item) -> Vec<Import> {
    let tree = item
        .tokens
        .iter()
        .skip_while(|token| token.to_string() != "use")
        .skip(1);
    let tree: Vec<_> = tree
        .take_while(|token| punct(token) != Some(';'))
        .cloned()
        .collect();
    let mut found = Vec::new();
    flatten(&[], &tree, &mut found);
    found
}

fn flatten(prefix: &[TokenTree], tree: &[TokenTree], found: &mut Vec<Import>) {
    let mut path = prefix.to_vec();
    for token in tree {
        if let TokenTree::Group(group) = token {
            for branch in split_expressions(group.stream()) {
                if !branch.is_empty() {
                    flatten(&path, &branch, found);
                }
            }
            return;
        }
        path.push(token.clone());
    }
    found.push(import(path));
}

fn import(mut tokens: Vec<TokenTree>) -> Import {
    let mut path: Vec<String> = tokens
        .iter()
        .map(ToString::to_string)
        .filter(|word| word != ":")
        .collect();
    let renamed = path.iter().position(|word| word == "as");
    let alias = renamed.map(|at| path.split_off(at).pop().unwrap_or_default());
    // `a::{self}` imports `a`, but `a::self` is no path.
    if path.len() > 1 && path.last().is_some_and(|word| word == "self") {
        path.pop();
        let this = tokens.iter().rposition(|token| token.to_string() == "self");
        let this = this.expect("the path ends in it");
        tokens.drain(this - 2..=this);
    }
    let name = alias.or_else(|| path.last().cloned()).unwrap_or_default();
    Import { tokens, path, name }
}
