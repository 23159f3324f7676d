//! `ptx_asm!`: CUDA C++'s `asm` made into Rust's.

use std::collections::HashMap;

use proc_macro::{Group, Ident, Literal, Span, TokenStream, TokenTree};

use crate::error::{Error, Result};
use crate::parameter::{punct, split_expressions};
use crate::template::fill;

/// One of `in("r") x`, `out("=r") y`, `inout("+r") z`.
struct Operand {
    direction: String,
    /// The letter: `r`.
    constraint: String,
    value: TokenStream,
}

const USAGE: &str = "ptx_asm! takes a template, then out(\"=r\") and inout(\"+r\") operands, then \
                     in(\"r\") ones, clobber(\"memory\") and options(register_only)";

pub fn ptx_asm(tokens: TokenStream) -> Result<TokenStream> {
    let mut arguments = split_expressions(tokens).into_iter();
    let template: Vec<TokenTree> = arguments.next().unwrap_or_default();
    let [TokenTree::Literal(template)] = template.as_slice() else {
        return Err(Error::new(Span::call_site(), USAGE));
    };
    let mut operands = Vec::new();
    let mut is_register_only = false;
    for argument in arguments {
        let [word, TokenTree::Group(list), value @ ..] = argument.as_slice() else {
            if argument.is_empty() {
                continue;
            }
            return Err(Error::new(argument[0].span(), USAGE));
        };
        let inside = list.stream().to_string();
        match word.to_string().as_str() {
            "clobber" => {}
            "options" => is_register_only = inside.contains("register_only"),
            direction @ ("in" | "out" | "inout") => operands.push(Operand {
                direction: direction.to_owned(),
                constraint: inside.trim_matches(['"', '=', '+', '&']).to_owned(),
                value: value.iter().cloned().collect(),
            }),
            _ => return Err(Error::new(word.span(), USAGE)),
        }
    }
    expand(template, &operands, is_register_only)
}

fn expand(template: &Literal, operands: &[Operand], is_register_only: bool) -> Result<TokenStream> {
    let mut arguments = TokenStream::new();
    for operand in operands {
        arguments.extend(operand.tokens()?);
    }
    let has_output = operands.iter().any(|operand| operand.direction != "in");
    let options = match (is_register_only, has_output) {
        (true, true) => "options(pure, nomem, nostack)",
        (true, false) => "options(nomem, nostack)",
        (false, _) => "options(nostack)",
    };
    let texts = pieces(template, operands)?;
    Ok(fill(
        &format!("::core::arch::asm!($texts $arguments {options})"),
        &[("texts", texts), ("arguments", arguments)],
    ))
}

impl Operand {
    fn tokens(&self) -> Result<TokenStream> {
        let class = match self.constraint.as_str() {
            "h" => "reg16",
            "r" => "reg32",
            "l" => "reg64",
            "f" => "reg32",
            "d" => "reg64",
            "q" => "reg128",
            "n" => return Ok(fill("const $value,", &[("value", self.value.clone())])),
            "C" => return Ok(TokenStream::new()),
            _ => return Err(self.wrong("h, r, l, q, f, d, n and C are the constraints")),
        };
        let identifier = |name: &str| -> TokenStream {
            TokenTree::from(Ident::new(name, Span::call_site())).into()
        };
        let parts = [
            ("direction", identifier(&self.direction)),
            ("class", identifier(class)),
            ("value", self.value.clone()),
        ];
        Ok(fill("$direction($class) $value,", &parts))
    }

    /// The text of a `C` operand, which the compiler has to see: `b".wide\0"`.
    fn text(&self) -> Result<String> {
        let written = self.value.to_string();
        let text = written
            .strip_prefix("b\"")
            .and_then(|text| text.strip_suffix('"'));
        let text = text.map(|text| text.trim_end_matches("\\0").to_owned());
        text.ok_or_else(|| {
            self.wrong("write a text operand out, as b\"…\\0\": constants cannot be read here")
        })
    }

    fn wrong(&self, message: &str) -> Error {
        let span = self
            .value
            .clone()
            .into_iter()
            .next()
            .map_or(Span::call_site(), |token| token.span());
        Error::new(span, message)
    }
}

/// The template in Rust's syntax: `%0` becomes `{0}`, `%%` becomes `%`, braces are doubled; texts of `C`
/// operands stand in it.
fn pieces(template: &Literal, operands: &[Operand]) -> Result<TokenStream> {
    let written = template.to_string();
    let (open, close) = match (written.find('"'), written.rfind('"')) {
        (Some(open), Some(close)) if open < close => (open, close),
        _ => return Err(Error::new(template.span(), USAGE)),
    };
    let mut text = String::new();
    let mut rest = written[open + 1..close].chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '{' | '}' => text.extend([character, character]),
            '%' if rest.next_if_eq(&'%').is_some() => text.push('%'),
            '%' => {
                let mut number = String::new();
                while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                    number.push(digit);
                }
                let place = number.parse::<usize>().ok();
                let operand = place.and_then(|place| operands.get(place));
                let (Some(place), Some(operand)) = (place, operand) else {
                    return Err(Error::new(
                        template.span(),
                        format!(
                            "the template names an operand %{number} that is not there; write %% for %"
                        ),
                    ));
                };
                if operand.constraint == "C" {
                    text.push_str(&operand.text()?);
                    continue;
                }
                text.push_str(&format!("{{{}}}", rust_place(place, operands)));
            }
            other => text.push(other),
        }
    }
    let source = format!("{}{}{}", &written[..=open], text, &written[close..]);
    let literal: TokenStream = source
        .parse()
        .map_err(|_| Error::new(template.span(), USAGE))?;
    Ok(fill("$literal,", &[("literal", literal)]))
}

/// An operand's number among those that Rust's `asm!` is given: texts are none.
fn rust_place(place: usize, operands: &[Operand]) -> usize {
    operands[..place]
        .iter()
        .filter(|operand| operand.constraint != "C")
        .count()
}

/// Writes the texts out that `in("C") NAME` names, where a function's own `const NAME: … = b"…";` gives
/// them: `ptx_asm!` sees its own tokens only.
pub fn with_texts(function: TokenStream) -> TokenStream {
    let mut texts = HashMap::new();
    collect(function.clone(), &mut texts);
    if texts.is_empty() {
        return function;
    }
    written_out(function, &texts)
}

fn collect(tokens: TokenStream, texts: &mut HashMap<String, TokenTree>) {
    let tokens: Vec<_> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => collect(group.stream(), texts),
            TokenTree::Ident(word) if word.to_string() == "const" => {
                let end = tokens[at..]
                    .iter()
                    .position(|token| punct(token) == Some(';'));
                let value = end.map(|end| &tokens[at + end - 1]);
                if let (Some(TokenTree::Ident(name)), Some(TokenTree::Literal(text))) =
                    (tokens.get(at + 1), value)
                    && text.to_string().starts_with("b\"")
                {
                    texts.insert(name.to_string(), text.clone().into());
                }
            }
            _ => {}
        }
    }
}

fn written_out(tokens: TokenStream, texts: &HashMap<String, TokenTree>) -> TokenStream {
    let mut out: Vec<TokenTree> = Vec::new();
    for token in tokens {
        let is_text_operand = out
            .last()
            .is_some_and(|before| before.to_string().replace(' ', "") == "(\"C\")");
        out.push(match token {
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), written_out(group.stream(), texts));
                inner.set_span(group.span());
                inner.into()
            }
            TokenTree::Ident(name) if is_text_operand => {
                texts.get(&name.to_string()).cloned().unwrap_or(name.into())
            }
            other => other,
        });
    }
    out.into_iter().collect()
}
