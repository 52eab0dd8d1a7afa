//! Fuzz target: splits the body of a watch response into events, with the body in chunks of different sizes.
//!
//! The events of a valid body must equal those of a JSON parser, for all chunk sizes. For an invalid body,
//! the library may return fewer events from several chunks than from a single chunk.

use bytes::Bytes;
use kube_informer::fuzzing::{Split, split_watch};
use serde_json::value::RawValue;

use super::{members::Members, pieces};
use crate::planted::Bug;

/// Maximum number of characters of an unknown event type. The library truncates longer types.
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

/// Parses a body with `serde_json`, and returns the type and the object of each event.
///
/// Returns `None` if an event is malformed, contains the member `type` or `object` twice, or contains a
/// member whose name is written with a JSON escape.
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

/// Checks that the library handles an invalid body in several chunks like the same body in a single chunk.
///
/// `cut` contains the events of the body in several chunks, and `whole` those of the body in a single chunk.
/// The library may reject the body earlier if it arrives in several chunks. The events before the rejection
/// must be the same.
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
