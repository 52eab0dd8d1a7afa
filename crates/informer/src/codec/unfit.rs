//! Describes why the bytes of an object do not decode ([`Unfit`]), without quoting the object's values.

use serde::de::DeserializeOwned;

/// The reason why an object does not decode. `field` is the path of the invalid field.
#[derive(Debug)]
pub(crate) struct Unfit {
    pub(crate) field: String,
    pub(crate) reason: String,
}

/// Finds the field at which `json` does not match the type `K`, and describes `error`.
///
/// The description omits serde's message. The message may quote the field's value, which may be secret.
pub(super) fn locate<K: DeserializeOwned>(json: &[u8], error: &serde_json::Error) -> Unfit {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let field = match serde_path_to_error::deserialize::<_, K>(&mut deserializer) {
        Err(located) => located.path().to_string(),
        Ok(_) => ".".to_owned(),
    };
    let reason = reason(error);
    Unfit { field, reason }
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
