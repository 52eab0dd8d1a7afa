//! Describes why the bytes of an object do not decode ([`Unfit`]), without quoting the object's values.

use crate::json::failed_path;

/// Path of the field that does not decode, and the reason.
#[derive(Debug)]
pub(crate) struct Unfit {
    pub(crate) field: String,
    pub(crate) reason: String,
}

impl Unfit {
    /// Describes why `json` does not decode, without serde's message, which may quote a secret value.
    pub(super) fn of_json(json: &[u8], error: &serde_json::Error) -> Self {
        Self {
            field: failed_path(json, error),
            reason: reason(error),
        }
    }
}

fn reason(error: &serde_json::Error) -> String {
    use serde_json::error::Category;

    let what = match error.classify() {
        Category::Data => "a value of another type than expected, or a missing field,",
        Category::Eof => "the JSON ends early",
        // The parser has no category for this error; its text quotes nothing.
        Category::Syntax if error.to_string().starts_with("recursion limit exceeded") => {
            "nested too deep"
        }
        Category::Syntax | Category::Io => "invalid JSON",
    };
    format!("{what} (line {}, column {})", error.line(), error.column())
}
