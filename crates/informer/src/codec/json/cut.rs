//! Removes members from an object's JSON text, according to the pruning rules of an informer.
//!
//! All other bytes stay the same, except commas next to removed members.

use std::{borrow::Cow, fmt, ops::Range};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error as _, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::pruning::{Fate, Members};

/// Removes the members that the pruning rules drop. If the function finds invalid JSON, it removes nothing.
pub(in crate::codec) fn cut<'a>(members: &Members, json: &'a [u8]) -> Cow<'a, [u8]> {
    let Ok(text) = std::str::from_utf8(json) else {
        return Cow::Borrowed(json);
    };
    let mut cuts = Vec::new();
    match find(members, json, text, &mut cuts) {
        Ok(()) => without(json, cuts),
        Err(_) => Cow::Borrowed(json),
    }
}

/// Like [`cut`], but for a caller that has already found the values of two members of `metadata`.
///
/// `found` contains the name and the value of each member. The value is a slice of `json`, or `None` if the
/// object does not have the member.
///
/// Returns `None` in three cases, in which the caller must use [`cut`]:
/// - the pruning rules in `members` can drop anything outside the two members;
/// - a rule drops one of the two members, and the key of this member is escaped;
/// - a rule drops parts of one of the two members, and the value of this member is invalid.
pub(in crate::codec) fn cut_found<'a>(
    members: &Members,
    found: [(&str, Option<&[u8]>); 2],
    json: &'a [u8],
) -> Option<Cow<'a, [u8]>> {
    if members.cuts_others() {
        return None;
    }
    let mut cuts = Vec::new();
    for (name, fate) in members.named() {
        match fate {
            Fate::Partly(metadata) if name == "metadata" && !metadata.cuts_others() => {
                find_among(metadata, found, json, &mut cuts)?;
            }
            _ => return None,
        }
    }
    cuts.sort_unstable_by_key(|cut| cut.start);
    Some(without(json, cuts))
}

fn find_among(
    metadata: &Members,
    found: [(&str, Option<&[u8]>); 2],
    json: &[u8],
    cuts: &mut Vec<Range<usize>>,
) -> Option<()> {
    for (name, fate) in metadata.named() {
        let (_, value) = found.iter().find(|(found, _)| found == name)?;
        match (value, fate) {
            (None, _) | (_, Fate::Kept) => {}
            (Some(value), Fate::Cut) => cuts.push(member(json, name, value)?),
            (Some(value), Fate::Partly(members)) => {
                let value = std::str::from_utf8(value).ok()?;
                find_in(members, json, value, cuts).ok()?;
            }
        }
    }
    Some(())
}

/// Returns the byte range from a member's key to the end of `value`, or `None` for an escaped key.
fn member(json: &[u8], key: &str, value: &[u8]) -> Option<Range<usize>> {
    let at = offset(json, value);
    let before = json[..at].trim_ascii_end().strip_suffix(b":")?;
    let before = before.trim_ascii_end().strip_suffix(b"\"")?;
    let before = before.strip_suffix(key.as_bytes())?.strip_suffix(b"\"")?;
    Some(before.len()..at + value.len())
}

/// Removes the byte ranges `cuts` and superfluous commas. The ranges must be in ascending order.
fn without(json: &[u8], cuts: Vec<Range<usize>>) -> Cow<'_, [u8]> {
    if cuts.is_empty() {
        return Cow::Borrowed(json);
    }
    let mut rest = Vec::with_capacity(json.len());
    let mut at = 0;
    for cut in cuts {
        rest.extend_from_slice(&json[at..cut.start]);
        at = cut.end + spaces(&json[cut.end..]);
        if json.get(at) == Some(&b',') {
            at += 1;
        } else {
            // The last member: the comma before it is removed, if there is one.
            let kept = rest.trim_ascii_end();
            let kept = kept.strip_suffix(b",").unwrap_or(kept).len();
            rest.truncate(kept);
        }
    }
    rest.extend_from_slice(&json[at..]);
    Cow::Owned(rest)
}

fn spaces(json: &[u8]) -> usize {
    json.len() - json.trim_ascii_start().len()
}

/// Finds the members to drop in the map `part`, and appends their byte ranges to `cuts` in ascending order.
///
/// A range extends from the key to the end of the value, relative to `whole`. `part` must be a slice of
/// `whole`.
fn find(
    members: &Members,
    whole: &[u8],
    part: &str,
    cuts: &mut Vec<Range<usize>>,
) -> serde_json::Result<()> {
    let mut found_all = false;
    let search = Search {
        members,
        // If members without a rule are dropped, each member must be read.
        left: (!members.cuts_others()).then(|| members.named().len()),
        whole,
        cuts,
        found_all: &mut found_all,
    };
    let searched = search.deserialize(&mut serde_json::Deserializer::from_str(part));
    if found_all { Ok(()) } else { searched }
}

/// Like [`find`], but for the map `value`, or for each map of the array `value`.
///
/// Does nothing for any other value.
fn find_in(
    members: &Members,
    whole: &[u8],
    value: &str,
    cuts: &mut Vec<Range<usize>>,
) -> serde_json::Result<()> {
    if value.starts_with('{') {
        return find(members, whole, value, cuts);
    }
    if value.starts_with('[') {
        let elements: Vec<&RawValue> = serde_json::from_str(value)?;
        let maps = elements.into_iter().map(RawValue::get);
        for map in maps.filter(|element| element.starts_with('{')) {
            find(members, whole, map, cuts)?;
        }
    }
    Ok(())
}

/// Visitor that searches one JSON map for the members to drop.
struct Search<'s> {
    members: &'s Members,
    /// Number of members with a pruning rule in `members` that were not found yet. At 0, the search stops.
    ///
    /// `None` if members without a rule are dropped. The search must then read the whole map.
    left: Option<usize>,
    whole: &'s [u8],
    cuts: &'s mut Vec<Range<usize>>,
    /// Set to true when all members with a pruning rule are found.
    ///
    /// The search then stops early and returns an error, which the caller must ignore.
    found_all: &'s mut bool,
}

impl<'a> DeserializeSeed<'a> for Search<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for Search<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut map: A) -> Result<(), A::Error> {
        while self.left != Some(0) {
            let Some(key) = map.next_key::<&'a RawValue>()? else {
                return Ok(());
            };
            let value: &'a RawValue = map.next_value()?;
            let name = name(key.get()).map_err(A::Error::custom)?;
            let named = self.members.named().get(&*name);
            match named.unwrap_or(self.members.others()) {
                Fate::Kept => {}
                Fate::Cut => {
                    let start = offset(self.whole, key.get().as_bytes());
                    let end = offset(self.whole, value.get().as_bytes()) + value.get().len();
                    self.cuts.push(start..end);
                }
                Fate::Partly(members) => find_in(members, self.whole, value.get(), self.cuts)
                    .map_err(A::Error::custom)?,
            }
            if named.is_some() {
                self.left = self.left.map(|left| left - 1);
            }
        }
        *self.found_all = true;
        Err(A::Error::custom("nothing more is looked for"))
    }
}

/// Decodes the JSON text of a key, which has quotes and may contain escapes.
fn name(key: &str) -> serde_json::Result<Cow<'_, str>> {
    let quoted = key.strip_prefix('"').and_then(|key| key.strip_suffix('"'));
    match quoted {
        Some(plain) if !plain.contains('\\') => Ok(Cow::Borrowed(plain)),
        _ => serde_json::from_str(key).map(Cow::Owned),
    }
}

/// Returns the byte position in `whole` of `part`, which must be a slice of `whole`.
fn offset(whole: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr() - whole.as_ptr().addr()
}
