//! Fuzz target for the library's parser of watch responses, which splits a body into events.
//!
//! The parser receives each body as a single chunk, and then several times in smaller chunks. For a valid
//! body, the result must always be the events that `serde_json` finds. For an invalid body, the events from
//! smaller chunks must be a prefix of the events from the single chunk.

use bytes::Bytes;
use kube_informer::fuzzing::{Split, split_watch};
use serde_json::value::RawValue;

use super::{members::Members, pieces};
use crate::planted::Bug;

/// Number of characters after which the library truncates an unknown event type.
const TYPE_CHARS: usize = 64;

pub(super) fn run(data: &[u8], bug: Option<Bug>) -> String {
    let whole = split_watch([Bytes::copy_from_slice(data)]);
    let events = events(data);
    for chunks in pieces::cuts(data) {
        let mut cut = split_watch(chunks.clone());
        if bug == Some(Bug::NumberCutIsGarbage) && chunks.iter().any(ends_in_number) {
            cut.end = Err("garbage".to_owned());
        }
        match &events {
            Some(events) => {
                assert_eq!(&cut.pieces, events, "the events differ");
                assert_eq!(cut.end, whole.end, "another split ends differently");
            }
            None => compare(&cut, &whole),
        }
    }
    match &whole.end {
        Ok(_) => {
            let last = whole.pieces.last().map_or("", |(kind, _)| kind.as_str());
            let known = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"].contains(&last);
            let last = if known { last } else { "other" };
            format!("{} events, the last {last}", whole.pieces.len().min(4))
        }
        Err(error) => error.clone(),
    }
}

/// Returns the type and the object of each event, parsed with `serde_json`.
///
/// Returns `None` for a malformed event, a duplicate `type` or `object`, or a member name with an escape.
fn events(data: &[u8]) -> Option<Vec<(String, Bytes)>> {
    let events = serde_json::Deserializer::from_slice(data).into_iter::<&RawValue>();
    events.map(|event| one(event.ok()?)).collect()
}

fn one(event: &RawValue) -> Option<(String, Bytes)> {
    let members: Members<'_> = serde_json::from_str(event.get()).ok()?;
    let kind: String = serde_json::from_str(members.get("type")?).ok()?;
    let object = members.get("object")?;
    let object = Bytes::copy_from_slice(object.as_bytes());
    let kind = kind.chars().take(TYPE_CHARS).collect();
    members
        .are_plain(&["type", "object"])
        .then_some((kind, object))
}

/// Compares the results for an invalid body: `cut` from several chunks, and `whole` from a single chunk.
///
/// The events in `cut` must be a prefix of those in `whole`. If events are missing in `cut`, then `cut` must
/// end with an error, and the object of the first missing event must be invalid JSON.
fn compare(cut: &Split, whole: &Split) {
    let (found, all) = (&cut.pieces, &whole.pieces);
    assert!(
        all.starts_with(found),
        "{found:?} is not a prefix of {all:?}"
    );
    if cut.end == whole.end && found.len() == all.len() {
        return;
    }
    let refused = all.get(found.len());
    let is_json = |bytes: &Bytes| serde_json::from_slice::<&RawValue>(bytes).is_ok();
    let for_a_reason = match refused {
        Some((_, bytes)) => !is_json(bytes),
        None => whole.end.is_err(),
    };
    assert!(
        cut.end.is_err() && for_a_reason,
        "in pieces it ends with {:?} after {} of {} events",
        cut.end,
        found.len(),
        all.len()
    );
}

fn ends_in_number(chunk: &Bytes) -> bool {
    chunk.contains(&b'\n') && chunk.last().is_some_and(u8::is_ascii_digit)
}
