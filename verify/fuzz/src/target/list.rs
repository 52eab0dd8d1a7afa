//! Fuzz target for the library's parser of list responses.
//!
//! The parser must return the same items and the same list metadata for every split of the body into chunks.
//! If the body is valid JSON, the items and the resource version must equal those that `serde_json` finds.

use bytes::Bytes;
use kube_informer::{
    fuzzing::{Split, split_list},
    object::ResourceVersion,
};
use serde_json::value::RawValue;

use super::{members::Members, pieces};
use crate::planted::Bug;

/// Members of a list that the parser uses. It may reject a list in which one of them occurs twice.
const READ: [&str; 4] = ["items", "metadata", "kind", "apiVersion"];

pub(super) fn run(data: &[u8], bug: Option<Bug>) -> String {
    let whole = split_list([Bytes::copy_from_slice(data)]);
    for chunks in pieces::cuts(data) {
        let chunks = chunks.into_iter().map(|chunk| spoilt(chunk, bug));
        let cut = split_list(chunks);
        assert_eq!(cut, whole, "another split has another result");
    }
    if let Ok(list) = serde_json::from_slice::<Members<'_>>(data)
        && list.are_plain(&READ)
    {
        compare(&list, &whole);
    }
    match &whole.end {
        Ok(end) => format!(
            "{} items, {} {} {:?}",
            whole.pieces.len().min(4),
            !end.kind.is_empty(),
            end.continue_token.is_some(),
            end.remaining.map(i64::signum)
        ),
        Err(error) => error.chars().take(60).collect(),
    }
}

/// Compares the parser's result `split` with `list`, which `serde_json` has parsed from the same body.
///
/// A successful result must contain the items and the revision of `list`. An error is permitted, but must not
/// report malformed JSON, incomplete JSON or a second `items`, because the body has none of these defects.
fn compare(list: &Members<'_>, split: &Split) {
    let items = list.get("items").unwrap_or("null");
    match &split.end {
        Ok(end) => {
            let items: Vec<&RawValue> = serde_json::from_str(items).unwrap_or_default();
            let expected: Vec<_> = items.iter().map(|item| item.get().as_bytes()).collect();
            let found: Vec<_> = split.pieces.iter().map(|(_, bytes)| &bytes[..]).collect();
            assert_eq!(found, expected, "the items differ");
            let metadata = list.get("metadata").unwrap_or("null");
            // Other members can have values that `serde_json` skips, but does not parse, such as half of a surrogate pair.
            let metadata = serde_json::from_str::<Members<'_>>(metadata).ok();
            let revision = metadata.as_ref().and_then(|it| it.get("resourceVersion"));
            let revision = revision.and_then(|text| serde_json::from_str(text).ok());
            let revision: String = revision.unwrap_or_default();
            let revision = ResourceVersion::from(revision.as_str()).to_string();
            assert_eq!(end.revision, revision, "another revision");
        }
        Err(error) => {
            let structural = ["ended before", "not a single JSON object", "items twice"];
            let is_structural = structural.iter().any(|what| error.contains(what));
            assert!(!is_structural, "valid JSON, but: {error}");
        }
    }
}

fn spoilt(chunk: Bytes, bug: Option<Bug>) -> Bytes {
    match chunk.split_last() {
        Some((b'\\', rest)) if bug == Some(Bug::EscapeLostAtCut) => chunk.slice_ref(rest),
        _ => chunk,
    }
}
