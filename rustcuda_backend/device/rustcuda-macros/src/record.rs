//! The text that tells the build backend of a kernel or a constant, in pieces as
//! `rustcuda_device::record` describes them.

use proc_macro::{Ident, Literal, Span, TokenStream, TokenTree};

use crate::function::Attribute;
use crate::template::fill;

const RECORD: &str = r#"
    #[cfg(target_arch = "nvptx64")]
    $conditions
    const _: () = {
        const PIECES: &[::rustcuda_device::record::Piece] = &[$pieces];
        #[used]
        #[unsafe(no_mangle)]
        static $name: [u8; ::rustcuda_device::record::length(PIECES)] =
            ::rustcuda_device::record::join(PIECES);
        $checks
    };
"#;

/// Text in pieces that only the compiler can put together.
pub struct Pieces(TokenStream);

impl Pieces {
    pub fn new() -> Self {
        Self(TokenStream::new())
    }

    pub fn text(&mut self, text: &str) {
        let literal = TokenTree::from(Literal::string(text));
        self.piece("Text($of)", literal.into());
    }

    /// A piece whose template says `$of`.
    pub fn piece(&mut self, template: &str, of: TokenStream) {
        let template = format!("::rustcuda_device::record::Piece::{template},");
        self.0.extend(fill(&template, &[("of", of)]));
    }

    /// The doc comment, if there is one, between two texts; its lines are separated by newlines.
    pub fn doc(&mut self, attributes: &[Attribute], before: &str, after: &str) {
        let mut separator = before;
        for attribute in attributes
            .iter()
            .filter(|attribute| attribute.name == "doc")
        {
            // `= "…"`; anything else, such as `(hidden)`, is no text.
            if let [TokenTree::Punct(equals), expression @ ..] = attribute.rest.as_slice()
                && equals.as_char() == '='
            {
                self.text(separator);
                self.piece("Doc($of)", expression.iter().cloned().collect());
                separator = "\n";
            }
        }
        if separator != before {
            self.text(after);
        }
    }

    /// What stands between the brackets of a list of pieces.
    pub fn finish(self) -> TokenStream {
        self.0
    }
}

/// A record under construction.
pub struct Record {
    pieces: Pieces,
}

impl Record {
    /// Begins with a line that says what it is of: `name` and the kernel's name, for one.
    pub fn new(kind: &str, name: &str) -> Self {
        let mut record = Self {
            pieces: Pieces::new(),
        };
        record.text(&format!("rustcuda\x1f1\x1e{kind}\x1f{name}"));
        record
    }

    pub fn text(&mut self, text: &str) {
        self.pieces.text(text);
    }

    pub fn number(&mut self, expression: TokenStream) {
        self.piece("Number(($of) as u64)", expression);
    }

    /// A line of numbers.
    pub fn numbers(&mut self, line: &str, expressions: Vec<TokenStream>) {
        self.text(&format!("\x1e{line}"));
        for expression in expressions {
            self.text("\x1f");
            self.number(expression);
        }
    }

    /// A piece whose template says `$of`.
    pub fn piece(&mut self, template: &str, of: TokenStream) {
        self.pieces.piece(template, of);
    }

    /// A line with the doc comment, if there is one.
    pub fn doc(&mut self, attributes: &[Attribute]) {
        self.pieces.doc(attributes, "\x1edoc\x1f", "");
    }

    /// The static, under `#[cfg]`s of the item, with more that the compiler shall check.
    pub fn finish(self, name: &str, conditions: TokenStream, checks: TokenStream) -> TokenStream {
        let name = TokenTree::from(Ident::new(name, Span::call_site()));
        let parts = [
            ("conditions", conditions),
            ("pieces", self.pieces.finish()),
            ("name", name.into()),
            ("checks", checks),
        ];
        fill(RECORD, &parts)
    }
}
