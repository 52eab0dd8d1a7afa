//! Compares the kind in an object with the kind that the informer expects.
//!
//! [`Expected`] is the expected kind, and [`Named`] is the result of the comparison.

use crate::limits::one_line;

/// The API version and kind that every object of an informer must have.
pub(crate) struct Expected {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// Whether the informer requests only metadata. If so, `PartialObjectMetadata` is also accepted as the
    /// kind of an object.
    pub(super) metadata_only: bool,
    /// Possible first bytes of an accepted object's JSON, as API servers write it.
    pub(super) beginnings: Vec<String>,
    /// JSON `"apiVersion":…,"kind":…` of the expected kind, inserted into objects without a kind.
    pub(super) stamp: String,
}

/// Result of comparing an object's API version and kind with the expected ones.
pub(crate) enum Named {
    /// The expected kind, with the byte position of the value of `metadata`, if known.
    Expected(Option<usize>),
    /// The object states neither an API version nor a kind, or it can't be parsed.
    Nothing,
    /// An unexpected API version or kind; the text contains both.
    Other(String),
}

impl Expected {
    pub(crate) fn new(api_version: &str, kind: &str, metadata_only: bool) -> Self {
        let text = |value: &str| serde_json::Value::from(value).to_string();
        let (api_version_json, kind_json) = (text(api_version), text(kind));
        let stamp = format!(r#""apiVersion":{api_version_json},"kind":{kind_json}"#);
        let mut beginnings = vec![
            format!(r#"{{"kind":{kind_json},"apiVersion":{api_version_json}"#),
            format!("{{{stamp}"),
        ];
        if metadata_only {
            let metadata_alone = r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1""#;
            beginnings.insert(0, metadata_alone.to_owned());
        }
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            metadata_only,
            beginnings,
            stamp,
        }
    }

    pub(crate) fn stamp(&self) -> &str {
        &self.stamp
    }

    pub(super) fn compared(&self, api_version: &str, kind: &str) -> Named {
        let metadata_alone = self.metadata_only
            && kind == "PartialObjectMetadata"
            && api_version.starts_with("meta.k8s.io/");
        if metadata_alone || (kind == self.kind && api_version == self.api_version) {
            return Named::Expected(None);
        }
        let found = match (api_version, kind) {
            (_, "") => format!("{api_version} without kind"),
            ("", _) => format!("{kind} without API version"),
            _ => format!("{api_version} {kind}"),
        };
        Named::Other(one_line(found.trim_start(), KIND_BYTES))
    }
}

/// Maximum total bytes of an object's API version and kind in an error message.
const KIND_BYTES: usize = 128;
