//! [`Expected`]: the kind that every object of an informer must have, and [`Named`]: the kind that one says it has.

use crate::limits::one_line;

/// The kind that every object must have.
pub(crate) struct Expected {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// Metadata alone is requested, which has a kind of its own; a server that can't do that sends the whole
    /// object.
    pub(super) metadata_only: bool,
    /// How an object of the kind begins in JSON, in the orders that API servers write.
    pub(super) beginnings: Vec<String>,
    /// `"apiVersion":…,"kind":…` in JSON.
    pub(super) stamp: String,
}

/// The kind that an object says it has.
pub(crate) enum Named {
    /// The expected one, with the position of its metadata, if that was seen.
    Expected(Option<usize>),
    /// It names none, or none that can be read.
    Nothing,
    /// Another one: API version and kind.
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

    /// What an object says that has this API version and kind in it.
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

/// Maximum length of the kind that an error repeats, in bytes.
const KIND_BYTES: usize = 128;
