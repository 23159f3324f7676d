//! Splitting tokens into items, as far as cutting the host part away needs it.

use std::collections::HashSet;

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

use crate::function::{Attribute, attribute};
use crate::parameter::punct;

/// One item, with its attributes.
pub struct Item {
    pub attributes: Vec<Attribute>,
    /// From its visibility to its end.
    pub tokens: Vec<TokenTree>,
    pub kind: Kind,
    /// What it defines; nothing for imports and implementations.
    pub names: Vec<String>,
    /// A trait's functions, by which code uses it without its name.
    pub methods: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Module,
    Import,
    Implementation,
    /// `name! { … }` that is no `macro_rules!`.
    MacroCall,
    Function,
    /// Types, traits, constants, statics, `macro_rules!`, foreign functions.
    Other,
}

impl Item {
    pub fn has_attribute(&self, names: &[&str]) -> bool {
        let mut attributes = self.attributes.iter();
        attributes.any(|attribute| names.contains(&attribute.name.as_str()))
    }

    /// The braces that it ends with, if it does.
    pub fn body(&self) -> Option<&Group> {
        self.tokens.last().and_then(braces)
    }

    pub fn into_tokens(self) -> TokenStream {
        let attributes = self
            .attributes
            .into_iter()
            .flat_map(|attribute| attribute.tokens);
        attributes.chain(self.tokens).collect()
    }
}

/// A file's or block's inner attributes, and its items.
pub fn split(tokens: TokenStream) -> (TokenStream, Vec<Item>) {
    let tokens: Vec<_> = crate::parameter::without_invisible_groups(tokens)
        .into_iter()
        .collect();
    let mut inner = TokenStream::new();
    let mut rest = tokens.as_slice();
    while let [hash, bang, group @ TokenTree::Group(_), after @ ..] = rest {
        if punct(hash) != Some('#') || punct(bang) != Some('!') {
            break;
        }
        inner.extend([hash.clone(), bang.clone(), group.clone()]);
        rest = after;
    }
    let mut items = Vec::new();
    while !rest.is_empty() {
        let mut attributes = Vec::new();
        while let [hash, TokenTree::Group(group), after @ ..] = rest {
            if punct(hash) != Some('#') {
                break;
            }
            attributes.push(attribute(hash.clone(), group));
            rest = after;
        }
        let (own, after) = rest.split_at(length(rest));
        rest = after;
        if let Some(head) = Head::of(own) {
            items.push(Item {
                attributes,
                tokens: own.to_vec(),
                kind: head.kind(),
                names: head.names(),
                methods: head.methods(),
            });
        }
    }
    (inner, items)
}

/// All identifiers in some tokens.
pub fn mentioned(tokens: impl IntoIterator<Item = TokenTree>) -> HashSet<String> {
    let mut names = HashSet::new();
    collect(tokens, &mut names);
    names
}

fn collect(tokens: impl IntoIterator<Item = TokenTree>, names: &mut HashSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => {
                names.insert(name.to_string());
            }
            TokenTree::Group(group) => collect(group.stream(), names),
            _ => {}
        }
    }
}

/// How many tokens the item takes that they begin with.
fn length(tokens: &[TokenTree]) -> usize {
    let to_semicolon = Head::of(tokens).is_some_and(|head| head.ends_with_semicolon());
    for (at, token) in tokens.iter().enumerate() {
        if punct(token) == Some(';') {
            return at + 1;
        }
        // In `impl Row<{ N }>` and `Row<{ N }, f32>` the braces are no body.
        let is_argument = matches!(tokens.get(at + 1).and_then(punct), Some('>' | ','));
        if braces(token).is_some() && !to_semicolon && !is_argument {
            return at + 1;
        }
    }
    tokens.len()
}

/// An item from its keyword on.
struct Head<'a> {
    keyword: String,
    after: &'a [TokenTree],
}

impl<'a> Head<'a> {
    fn of(mut tokens: &'a [TokenTree]) -> Option<Self> {
        loop {
            let [token, after @ ..] = tokens else {
                return None;
            };
            let word = token.to_string();
            let next = after.first().map(ToString::to_string).unwrap_or_default();
            let is_qualifier = match word.as_str() {
                "pub" | "unsafe" | "async" | "default" | "auto" | "safe" => true,
                "const" => ["fn", "unsafe", "extern", "async"].contains(&next.as_str()),
                // `extern "C" fn`; blocks and `extern crate` are items of their own.
                "extern" => after.get(1).is_some_and(|token| token.to_string() == "fn"),
                _ => !matches!(token, TokenTree::Ident(_) | TokenTree::Punct(_)),
            };
            if !is_qualifier {
                return Some(Self {
                    keyword: word,
                    after,
                });
            }
            tokens = after;
        }
    }

    fn ends_with_semicolon(&self) -> bool {
        match self.keyword.as_str() {
            "use" | "static" | "type" | "const" => true,
            "extern" => self.first_identifier() == ["crate"],
            _ => false,
        }
    }

    fn kind(&self) -> Kind {
        match self.keyword.as_str() {
            "mod" => Kind::Module,
            "use" => Kind::Import,
            "impl" => Kind::Implementation,
            "fn" => Kind::Function,
            "struct" | "enum" | "union" | "trait" | "static" | "const" | "type" | "extern"
            | "macro_rules" => Kind::Other,
            _ => Kind::MacroCall,
        }
    }

    fn names(&self) -> Vec<String> {
        match self.keyword.as_str() {
            "use" | "impl" => Vec::new(),
            "extern" if !self.ends_with_semicolon() => {
                let block = self.after.last().and_then(braces).map(Group::stream);
                let (_, items) = split(block.unwrap_or_default());
                items.into_iter().flat_map(|item| item.names).collect()
            }
            "extern" => self
                .after
                .iter()
                .map(ToString::to_string)
                .filter(|word| !["crate", "as", ";"].contains(&word.as_str()))
                .collect(),
            _ if self.kind() == Kind::MacroCall => Vec::new(),
            _ => self.first_identifier(),
        }
    }

    fn methods(&self) -> Vec<String> {
        if self.keyword != "trait" {
            return Vec::new();
        }
        let body = self.after.last().and_then(braces).map(Group::stream);
        let (_, items) = split(body.unwrap_or_default());
        items.into_iter().flat_map(|item| item.names).collect()
    }

    fn first_identifier(&self) -> Vec<String> {
        let identifiers = self.after.iter().filter_map(|token| match token {
            TokenTree::Ident(name) => Some(name.to_string()),
            _ => None,
        });
        identifiers.filter(|name| name != "mut").take(1).collect()
    }
}

fn braces(token: &TokenTree) -> Option<&Group> {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
        _ => None,
    }
}
