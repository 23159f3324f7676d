//! Cutting the host part out of a crate: `#![cuda_device::device_only]`, which the build sets.
//!
//! Kept are modules with `#[cuda_module]`, items with `#[kernel]`, `#[device]` or `#[constant]`, and
//! whatever in the crate has a name that kept tokens mention; implementations if their type and
//! trait are kept. All else is host code. Kept tokens are passed on as they are, so that errors
//! point at the author's lines.

use std::collections::HashSet;
use std::path::PathBuf;

use proc_macro::{Group, Literal, TokenStream, TokenTree};

use crate::import::{Import, imports};
use crate::item::{self, Item, Kind, mentioned};
use crate::parameter::punct;
use crate::template::fill;

/// Attributes of what runs on the GPU.
const DEVICE: &[&str] = &["kernel", "device", "constant", "panic_handler"];
const HOST_CRATES: &[&str] = &["cuda_core", "cuda_host", "cuda_async", "cuda_bindings"];
/// What device code names of these crates.
const SHARED_NAMES: &[&str] = &["DeviceCopy", "cuda_module"];
/// What nothing on a GPU has.
const STD_NAMES: &[&str] = &[
    "Box", "String", "Vec", "eprintln", "format", "println", "vec",
];

/// Paths that begin with `std` are looked up in `core`.
const STD: &str = "extern crate core as std;";
/// In place of the standard prelude: that and the methods of floats, for all modules.
const PRELUDE: &str = "#[prelude_import] use ::cuda_device::std_prelude::*;";

/// Tells cargo, by rustc, to compile anew when a file changes that was read here.
const READ: &str = "const _: &[u8] = include_bytes!($path);";

/// Links a crate whose kernels belong to the module.
const LINK: &str = "extern crate $name as _;";

pub fn device_only(linked: TokenStream, tokens: TokenStream) -> TokenStream {
    let (inner, items) = item::split(tokens);
    let mut nodes = nodes(items, false);
    let scope = Scope::of(&nodes);
    let mut needed = HashSet::new();
    while mark(&mut nodes, &scope, &mut needed) {}
    let mut kept = inner;
    kept.extend(fill(STD, &[]));
    for name in linked.into_iter().filter(|token| punct(token).is_none()) {
        kept.extend(fill(LINK, &[("name", name.into())]));
    }
    kept.extend(emit(nodes, &needed, &scope));
    kept
}

/// An item and what is decided about it.
struct Node {
    item: Item,
    /// The module's own, if it is one whose content is known.
    children: Option<Module>,
    /// Whether it stands in a `#[cuda_module]`.
    in_device_module: bool,
    mentions: HashSet<String>,
    is_kept: bool,
}

struct Module {
    inner: TokenStream,
    nodes: Vec<Node>,
    /// Where its content is, if it is `mod name;`.
    file: Option<PathBuf>,
}

/// What the crate's names stand for.
struct Scope {
    /// All that the crate defines.
    defined: HashSet<String>,
    /// Names of what only the host has.
    host: HashSet<String>,
    /// `macro_rules!` that write kernels.
    kernel_macros: HashSet<String>,
}

fn nodes(items: Vec<Item>, in_device_module: bool) -> Vec<Node> {
    let node = |item: Item| {
        let children = (item.kind == Kind::Module)
            .then(|| module(&item, in_device_module))
            .flatten();
        Node {
            mentions: mentioned(item.tokens.iter().cloned().chain(attribute_tokens(&item))),
            item,
            children,
            in_device_module,
            is_kept: false,
        }
    };
    items.into_iter().map(node).collect()
}

/// Of documentation nothing counts as mentioned.
fn attribute_tokens(item: &Item) -> impl Iterator<Item = TokenTree> {
    let attributes = item
        .attributes
        .iter()
        .filter(|attribute| attribute.name != "doc");
    attributes.flat_map(|attribute| attribute.tokens.clone())
}

fn module(item: &Item, in_device_module: bool) -> Option<Module> {
    let (file, content) = match item.body() {
        Some(group) => (None, group.stream()),
        None => {
            let file = file_of(item)?.canonicalize().ok()?;
            let content = std::fs::read_to_string(&file).ok()?.parse().ok()?;
            (Some(file), content)
        }
    };
    let (inner, items) = item::split(content);
    Some(Module {
        inner,
        nodes: nodes(items, in_device_module || is_device_module(item)),
        file,
    })
}

/// The file of `mod name;`.
fn file_of(item: &Item) -> Option<PathBuf> {
    let this = item.tokens.first()?.span().local_file()?;
    let directory = match this.file_stem()?.to_str()? {
        "main" | "lib" | "mod" => this.parent()?.to_owned(),
        _ => this.with_extension(""),
    };
    if let Some(path) = item
        .attributes
        .iter()
        .find(|attribute| attribute.name == "path")
    {
        let written = path.rest.last()?.to_string();
        return Some(this.parent()?.join(written.trim_matches('"')));
    }
    let name = item.names.first()?;
    let candidates = [format!("{name}.rs"), format!("{name}/mod.rs")];
    let mut files = candidates.iter().map(|file| directory.join(file));
    files.find(|file| file.is_file())
}

impl Scope {
    fn of(nodes: &[Node]) -> Self {
        let mut scope = Self {
            defined: HashSet::new(),
            host: STD_NAMES
                .iter()
                .chain(HOST_CRATES)
                .map(ToString::to_string)
                .collect(),
            kernel_macros: HashSet::new(),
        };
        scope.add(nodes);
        scope
    }

    fn add(&mut self, nodes: &[Node]) {
        for node in nodes {
            self.defined.extend(node.item.names.iter().cloned());
            if node.item.kind == Kind::Import {
                let foreign = imports(&node.item).into_iter().filter(is_host_import);
                self.host.extend(foreign.map(|import| import.name));
            }
            if node.mentions.contains("macro_rules") && writes_kernels(&node.mentions) {
                self.kernel_macros.extend(node.item.names.iter().cloned());
            }
            if let Some(module) = &node.children {
                self.add(&module.nodes);
            }
        }
    }

    fn is_host(&self, mentions: &HashSet<String>) -> bool {
        !self.host.is_disjoint(mentions)
    }
}

fn writes_kernels(mentions: &HashSet<String>) -> bool {
    ["cuda_module", "kernel", "device"]
        .iter()
        .any(|name| mentions.contains(*name))
}

/// Of the host's crates only the names that device code has in common are there.
fn is_host_import(import: &Import) -> bool {
    HOST_CRATES.contains(&import.root())
        && !SHARED_NAMES.contains(&import.path.last().map_or("", String::as_str))
}

/// Keeps what is newly needed; false where that was nothing.
fn mark(nodes: &mut [Node], scope: &Scope, needed: &mut HashSet<String>) -> bool {
    let mut changed = false;
    for node in nodes {
        if let Some(module) = &mut node.children {
            changed |= mark(&mut module.nodes, scope, needed);
            if !node.is_kept && (is_device_module(&node.item) || has_kept(&module.nodes)) {
                node.is_kept = true;
                needed.extend(mentioned(attribute_tokens(&node.item)));
                changed = true;
            }
            continue;
        }
        if node.item.kind == Kind::Import {
            for import in imports(&node.item) {
                if is_wanted(&import, needed, scope) {
                    for segment in import.path {
                        changed |= needed.insert(segment);
                    }
                }
            }
        } else if !node.is_kept && is_needed(node, scope, needed) {
            node.is_kept = true;
            changed = true;
            if node.item.kind == Kind::Implementation {
                // Methods for the host go, so what they mention is not needed.
                let methods = without_host_methods(&node.item, scope);
                needed.extend(mentioned(methods));
            } else {
                needed.extend(node.mentions.iter().cloned());
            }
        }
    }
    changed
}

fn is_needed(node: &Node, scope: &Scope, needed: &HashSet<String>) -> bool {
    let item = &node.item;
    if item.has_attribute(DEVICE) || node.mentions.contains("ptx-kernel") {
        return true;
    }
    match item.kind {
        Kind::Implementation => is_needed_implementation(item, scope, needed),
        Kind::MacroCall => {
            let name = item
                .tokens
                .first()
                .map(ToString::to_string)
                .unwrap_or_default();
            !scope.is_host(&node.mentions)
                && (scope.kernel_macros.contains(&name)
                    || writes_kernels(&node.mentions)
                    || name == "include"
                    || node.in_device_module
                    || item
                        .tokens
                        .last()
                        .is_some_and(|_| !needed.is_disjoint(&node.mentions)))
        }
        Kind::Function if node.in_device_module && !scope.is_host(&node.mentions) => true,
        Kind::Other if node.in_device_module => true,
        _ => {
            let is_named = |name: &String| name != "main" && needed.contains(name);
            let is_called = || item.methods.iter().any(|name| needed.contains(name));
            item.names.iter().any(is_named) || !scope.is_host(&node.mentions) && is_called()
        }
    }
}

/// `impl Type`, `impl Trait for Type`: whether both are kept, or come from elsewhere.
fn is_needed_implementation(item: &Item, scope: &Scope, needed: &HashSet<String>) -> bool {
    let header: Vec<_> = item.tokens[..item.tokens.len() - 1]
        .iter()
        .skip_while(|token| token.to_string() != "impl")
        .skip(1)
        .cloned()
        .collect();
    let header = without_generics(&header);
    let position = header.iter().position(|token| token.to_string() == "for");
    let (implemented, own_type) = match position {
        Some(at) => (&header[..at], &header[at + 1..]),
        None => (&header[..0], header),
    };
    let is_kept = |name: &String| needed.contains(name) || !scope.defined.contains(name);
    let (implemented, own_type) = (path_end(implemented), path_end(own_type));
    let is_ours = [&implemented, &own_type]
        .into_iter()
        .flatten()
        .any(|name| scope.defined.contains(name));
    is_ours
        && implemented.iter().all(is_kept)
        && own_type.iter().all(is_kept)
        && implemented
            .iter()
            .all(|name| !scope.host.contains(name) || SHARED_NAMES.contains(&name.as_str()))
}

/// What follows the `<…>` of `impl<…>`.
fn without_generics(tokens: &[TokenTree]) -> &[TokenTree] {
    if tokens.first().and_then(punct) != Some('<') {
        return tokens;
    }
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match punct(token) {
            Some('<') => depth += 1,
            Some('>') if at > 0 && punct(&tokens[at - 1]) != Some('-') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &tokens[at + 1..];
        }
    }
    tokens
}

/// `Row` of `&'a crate::matrix::Row<T>`.
fn path_end(tokens: &[TokenTree]) -> Option<String> {
    let path = tokens
        .iter()
        .take_while(|token| punct(token) != Some('<') && token.to_string() != "where");
    let names = path.filter_map(|token| match token {
        TokenTree::Ident(name) => Some(name.to_string()),
        _ => None,
    });
    names.last()
}

/// Whether an import serves device code: by its name; as a trait's, whose methods have other names; or
/// because it brings in all of a place that is kept.
fn is_wanted(import: &Import, needed: &HashSet<String>, scope: &Scope) -> bool {
    if is_host_import(import) {
        return false;
    }
    if import.is_glob() {
        let place = import
            .path
            .len()
            .checked_sub(2)
            .map_or("", |at| &import.path[at]);
        return match place {
            "super" | "self" | "crate" => true,
            _ if scope.defined.contains(place) => needed.contains(place),
            _ => import.root() != "std",
        };
    }
    let is_device_trait = import.root() == "cuda_device"
        && import
            .path
            .last()
            .is_some_and(|name| name.starts_with(char::is_uppercase));
    is_device_trait || import.name == "_" && import.root() != "std" || needed.contains(&import.name)
}

fn emit(nodes: Vec<Node>, needed: &HashSet<String>, scope: &Scope) -> TokenStream {
    let mut tokens = TokenStream::new();
    for node in nodes {
        let Node {
            item,
            children,
            is_kept,
            ..
        } = node;
        if item.has_attribute(&["prelude_import"]) {
            tokens.extend(fill(PRELUDE, &[]));
        } else if let Some(module) = children {
            tokens.extend(emit_module(item, is_kept, module, needed, scope));
        } else if item.kind == Kind::Import {
            for import in imports(&item) {
                if is_wanted(&import, needed, scope) {
                    tokens.extend(import.into_tokens(&item));
                }
            }
        } else if is_kept && item.kind == Kind::Implementation {
            tokens.extend(without_host_methods(&item, scope));
        } else if is_kept || item.names == ["core"] {
            tokens.extend(item.into_tokens());
        }
    }
    tokens
}

/// A module with what is kept of it; where all of its file is, as it stands, for the sake of errors' places.
fn emit_module(
    item: Item,
    is_kept: bool,
    module: Module,
    needed: &HashSet<String>,
    scope: &Scope,
) -> TokenStream {
    if is_kept && module.file.is_some() && is_whole(&module.nodes, needed, scope) {
        return item.into_tokens();
    }
    let mut tokens = TokenStream::new();
    if let Some(path) = module.file.as_ref().and_then(|file| file.to_str()) {
        let path = TokenTree::from(Literal::string(path));
        tokens.extend(fill(READ, &[("path", path.into())]));
    }
    if !is_kept {
        return tokens;
    }
    let name = item.tokens.len() - 1;
    let mut content = module.inner;
    content.extend(emit(module.nodes, needed, scope));
    let mut group = Group::new(proc_macro::Delimiter::Brace, content);
    group.set_span(item.tokens[name].span());
    let head = item
        .attributes
        .into_iter()
        .flat_map(|attribute| attribute.tokens);
    tokens.extend(head);
    tokens.extend(item.tokens.into_iter().take(name));
    tokens.extend([TokenTree::from(group)]);
    tokens
}

fn is_device_module(item: &Item) -> bool {
    item.has_attribute(&["cuda_module"])
}

/// Whether a module is worth having; imports alone are not.
fn has_kept(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| node.is_kept)
}

fn is_whole(nodes: &[Node], needed: &HashSet<String>, scope: &Scope) -> bool {
    nodes.iter().all(|node| match &node.children {
        Some(module) => is_whole(&module.nodes, needed, scope),
        None if node.item.kind == Kind::Import => imports(&node.item)
            .iter()
            .all(|import| is_wanted(import, needed, scope)),
        None => node.is_kept,
    })
}

/// An implementation, of a type that both sides use, without the functions that only the host can have.
fn without_host_methods(item: &Item, scope: &Scope) -> TokenStream {
    let (head, body) = item.tokens.split_at(item.tokens.len() - 1);
    let TokenTree::Group(group) = &body[0] else {
        return item.tokens.iter().cloned().collect();
    };
    let (inner, items) = item::split(group.stream());
    let mut content = inner;
    for member in items {
        if !scope.is_host(&mentioned(member.tokens.iter().cloned())) {
            content.extend(member.into_tokens());
        }
    }
    let mut rest = Group::new(group.delimiter(), content);
    rest.set_span(group.span());
    let attributes = item
        .attributes
        .iter()
        .flat_map(|attribute| attribute.tokens.clone());
    let head = head.iter().cloned();
    attributes.chain(head).chain([rest.into()]).collect()
}
