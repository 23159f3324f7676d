//! Errors that point at the author's own tokens.

use proc_macro::{Literal, Span, TokenStream, TokenTree};

use crate::template::{fill, respanned};

/// What is wrong, and where in the author's source.
pub struct Error {
    message: String,
    span: Span,
}

impl Error {
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            span,
        }
    }

    /// `::core::compile_error! { "message" }`, all of it at the span.
    pub fn into_tokens(self) -> TokenStream {
        let message = TokenTree::from(Literal::string(&self.message));
        let invocation = fill(
            "::core::compile_error! { $message }",
            &[("message", message.into())],
        );
        respanned(invocation, self.span)
    }
}

pub type Result<T> = core::result::Result<T, Error>;
