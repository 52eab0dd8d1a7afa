//! Parses YAML, in which `yes` and `on` are booleans as for kubectl.
//!
//! Guarantees: the size of a parsed value is limited, also if the text repeats parts of itself by anchors.

use serde_json::Value;

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
