//! Reads lists, watches and objects of the Kubernetes API in JSON.
//!
//! Guarantees:
//! - [`ListSplitter`] and [`WatchSplitter`] accept a body in chunks that end at any byte;
//! - an item or event that is completely in one chunk is not copied.

mod cut;
mod fast_path;
mod list;
mod watch;

pub(super) use self::cut::{cut, cut_found};
pub(crate) use self::{list::ListSplitter, watch::WatchSplitter};

use std::borrow::Cow;

use memchr::memmem;
use serde::Deserialize;

use super::{Expected, Identity, IdentityMetadata, Named};

/// First bytes that API servers write for a list item without a kind.
const ITEM: &[u8] = br#"{"metadata":"#;

/// The JSON text that API servers write between an object's type fields and the value of `metadata`.
///
/// The type fields are `kind` and `apiVersion`.
const METADATA: &[u8] = br#","metadata":"#;

pub(super) fn begins_with_metadata(json: &[u8]) -> Option<usize> {
    json.starts_with(ITEM).then_some(ITEM.len())
}

pub(super) fn named(json: &[u8], expected: &Expected) -> Named {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Types<'a> {
        #[serde(borrow)]
        api_version: Option<Cow<'a, str>>,
        #[serde(borrow)]
        kind: Option<Cow<'a, str>>,
    }
    let begins = |beginning: &&String| json.starts_with(beginning.as_bytes());
    if let Some(beginning) = expected.beginnings.iter().find(begins) {
        let is_next = json[beginning.len()..].starts_with(METADATA);
        return Named::Expected(is_next.then_some(beginning.len() + METADATA.len()));
    }
    match serde_json::from_slice::<Types<'_>>(json) {
        Ok(Types {
            api_version: None,
            kind: None,
        })
        | Err(_) => Named::Nothing,
        Ok(Types { api_version, kind }) => {
            expected.compared(&api_version.unwrap_or_default(), &kind.unwrap_or_default())
        }
    }
}

pub(super) fn with_kind(json: &[u8], stamp: &str) -> Vec<u8> {
    let brace = json.iter().position(|&byte| byte == b'{');
    let at = brace.unwrap_or_default() + 1;
    let (before, behind) = json.split_at(at.min(json.len()));
    let empty = behind.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}');
    let mut stamped = Vec::with_capacity(json.len() + stamp.len() + 1);
    stamped.extend_from_slice(before);
    stamped.extend_from_slice(stamp.as_bytes());
    stamped.extend_from_slice(if empty { b"" } else { b"," });
    stamped.extend_from_slice(behind);
    stamped
}

pub(super) fn identity_at(json: &[u8], at: usize, is_quick: bool) -> Option<Identity<'_>> {
    let quick = is_quick.then(|| fast_path::identity(json, at)).flatten();
    quick.or_else(|| {
        let mut deserializer = serde_json::Deserializer::from_slice(json.get(at..)?);
        let metadata = IdentityMetadata::deserialize(&mut deserializer).ok()?;
        Some(Identity { metadata })
    })
}

pub(super) fn identity_in_place(json: &[u8]) -> Option<Identity<'_>> {
    let in_place = metadata_at(json).and_then(|at| identity_at(json, at, true));
    in_place.or_else(|| serde_json::from_slice(json).ok())
}

/// Returns the byte position of the value of `metadata` in an object's JSON text.
///
/// Returns `None` if the text has no `metadata`, or if a nested map or array begins before the first
/// `metadata`. In the second case, this `metadata` may belong to the nested map and not to the object.
fn metadata_at(json: &[u8]) -> Option<usize> {
    const KEY: &[u8] = br#""metadata":"#;
    let at = memmem::find(json, KEY)?;
    let before = json[..at].iter().filter(|byte| matches!(byte, b'{' | b'['));
    (before.count() == 1).then_some(at + KEY.len())
}

pub(super) fn ends_initial_events(json: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Bookmark<'a> {
        #[serde(borrow)]
        metadata: Metadata<'a>,
    }
    #[derive(Deserialize)]
    struct Metadata<'a> {
        #[serde(borrow)]
        annotations: Annotations<'a>,
    }
    #[derive(Deserialize)]
    struct Annotations<'a> {
        #[serde(borrow, rename = "k8s.io/initial-events-end")]
        end: Cow<'a, str>,
    }
    serde_json::from_slice::<Bookmark<'_>>(json)
        .is_ok_and(|bookmark| bookmark.metadata.annotations.end == "true")
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

#[cfg(test)]
mod tests;
