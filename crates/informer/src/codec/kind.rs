//! [`Expected`]: the kind that an informer's objects must have, and [`Named`]: the kind that an object states.

use crate::limits::one_line;

/// The kind that every object of an informer must have.
pub(crate) struct Expected {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// Whether metadata alone is requested. It has a kind of its own, and a server without support for it sends
    /// whole objects.
    pub(super) metadata_only: bool,
    /// How an object of the kind can begin in the JSON of API servers.
    pub(super) beginnings: Vec<String>,
    /// `"apiVersion":…,"kind":…` in JSON.
    pub(super) stamp: String,
}

/// The kind that an object states.
pub(crate) enum Named {
    /// The expected kind, and the position of the metadata if known.
    Expected(Option<usize>),
    /// No kind, or an invalid one.
    Nothing,
    /// Another kind: API version and kind.
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

    /// Compares an object's API version and kind with the expected ones.
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

/// Maximum bytes of a kind in an error message.
const KIND_BYTES: usize = 128;
