//! [`Expected`]: the kind that every object of an informer must be of, and what one says of its own.

use std::borrow::Cow;

use memchr::memmem;

use crate::limits::one_line;

/// The kind that every object must be of.
pub(super) struct Expected {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// Metadata alone is asked for, which has a kind of its own; a server that can't do that sends
    /// the whole object.
    pub(super) metadata_only: bool,
    /// How an object of the kind begins, in the orders that API servers write.
    pub(super) beginnings: Vec<String>,
    /// `"apiVersion":…,"kind":…`: the items of a list don't say it, and a dynamic object has nowhere
    /// else to know it from.
    pub(super) stamp: Option<String>,
}

/// What an object says of its kind.
pub(super) enum Named {
    /// With where its metadata begin, if that was seen.
    Expected(Option<usize>),
    /// It says nothing, or nothing that can be read.
    Nothing,
    Other(String),
}

impl Expected {
    pub(super) fn find(&self, bytes: &[u8]) -> Named {
        let begins = |beginning: &&String| bytes.starts_with(beginning.as_bytes());
        if let Some(beginning) = self.beginnings.iter().find(begins) {
            let is_next = bytes[beginning.len()..].starts_with(METADATA.as_bytes());
            return Named::Expected(is_next.then_some(beginning.len() + METADATA.len()));
        }
        let Ok(types) = serde_json::from_slice::<Types<'_>>(bytes) else {
            return Named::Nothing;
        };
        if types.kind.is_none() && types.api_version.is_none() {
            return Named::Nothing;
        }
        let (kind, api_version) = (
            types.kind.unwrap_or_default(),
            types.api_version.unwrap_or_default(),
        );
        let metadata_alone = self.metadata_only
            && kind == "PartialObjectMetadata"
            && api_version.starts_with("meta.k8s.io/");
        if metadata_alone || (kind == self.kind && api_version == self.api_version) {
            return Named::Expected(None);
        }
        let found = match (&*api_version, &*kind) {
            (_, "") => format!("{api_version} without kind"),
            ("", _) => format!("{kind} without API version"),
            _ => format!("{api_version} {kind}"),
        };
        Named::Other(one_line(found.trim_start(), KIND_BYTES))
    }
}

/// How the items of a list begin that name no kind.
pub(super) const ITEM: &str = r#"{"metadata":"#;

/// What comes next where the kind is named first.
const METADATA: &str = r#","metadata":"#;

/// Where the metadata begin, if they are of the object itself and nothing but texts stands before them.
pub(super) fn metadata_at(bytes: &[u8]) -> Option<usize> {
    const KEY: &[u8] = br#""metadata":"#;
    let at = memmem::find(bytes, KEY)?;
    let before = bytes[..at]
        .iter()
        .filter(|byte| matches!(byte, b'{' | b'['));
    (before.count() == 1).then_some(at + KEY.len())
}

/// So much of what an object says of its kind is repeated in an error.
const KIND_BYTES: usize = 128;

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Types<'a> {
    #[serde(borrow)]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
}
