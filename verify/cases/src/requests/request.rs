//! Formats an API request as a command in the text of a case.

use std::fmt::Write as _;

use serde_json::Value;

pub(super) struct Request {
    pub(super) text: String,
    has_query: bool,
}

impl Request {
    pub(super) fn new(method: &str, path: &str) -> Self {
        Self {
            text: format!("> {method} {path}"),
            has_query: false,
        }
    }

    pub(super) fn query(&mut self, parameter: &str) {
        self.text.push(if self.has_query { '&' } else { '?' });
        self.text.push_str(parameter);
        self.has_query = true;
    }

    /// Adds a header. No parameter of the query can follow.
    pub(super) fn header(&mut self, name: &str, value: &str) {
        let _ = write!(self.text, "\n> {name}: {value}");
    }

    pub(super) fn body(&mut self, body: &Value) {
        let _ = write!(self.text, "\n  {body}");
    }
}
