//! Reads and writes YAML as kube-apiserver does, with the rules of `sigs.k8s.io/yaml` 1.6.0.
//!
//! Guarantees:
//! - [`read`] resolves scalars as Go does: `yes`, `on` and `y` are booleans, `017` is an octal number, and
//!   `1:30` is a text;
//! - [`to_text`] returns the text that Go writes for a JSON value, with the exceptions that the submodule
//!   `emit` lists;
//! - the size of a value that was read is limited, also if the text repeats parts of itself by anchors.
//!
//! [`documents`] is for the texts that the user of the server passes to it, and reads them as kubectl does.

mod timestamp;
mod resolve;
mod order;
mod style;
mod emit;
mod key;
mod unread;
mod read;

use serde_json::Value;

pub(crate) use emit::TooLong;
pub(crate) use read::read;
pub(crate) use unread::Unread;

use emit::Emitter;

/// Media type of YAML.
pub(crate) const CONTENT_TYPE: &str = "application/yaml";

/// Parses the documents of a YAML text, except empty ones.
///
/// # Errors
///
/// Returns a description of the first syntax error, with its line.
pub(crate) fn documents(text: &str) -> Result<Vec<Value>, String> {
    let parsed: Result<Vec<Value>, _> = serde_saphyr::from_multiple(text);
    let mut documents = parsed.map_err(|error| error.to_string())?;
    documents.retain(|document| !document.is_null());
    Ok(documents)
}

/// Returns the YAML text of a value. The text ends with a line feed.
///
/// Recursive: a value of unlimited depth overflows the stack.
pub(crate) fn to_text(value: &Value) -> Result<String, TooLong> {
    let mut text = String::new();
    Emitter::new(&mut text).document(value)?;
    Ok(text)
}

/// Appends the text of an item of a list. The list is a member of the object that the text contains.
pub(crate) fn append_item(text: &mut String, item: &Value) -> Result<(), TooLong> {
    Emitter::new(text).item(item)
}

#[cfg(test)]
mod tests;
