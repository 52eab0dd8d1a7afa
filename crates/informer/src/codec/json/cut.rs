//! Cuts members out of an object's JSON as text: what stays is as it was, byte for byte, but for the
//! commas of what goes.

use std::{borrow::Cow, fmt, ops::Range};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error as _, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::pruning::{Fate, Members};

/// The JSON of an object without what this says; as it is if it can't be read.
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

/// The same of an object of whose metadata these have been found, as parts of these very bytes. `None` if
/// more is to be cut than that, or it stands there in an unusual way.
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

/// From the key of a member to the end of its value, if the key stands there without escapes.
fn member(json: &[u8], key: &str, value: &[u8]) -> Option<Range<usize>> {
    let at = offset(json, value);
    let before = json[..at].trim_ascii_end().strip_suffix(b":")?;
    let before = before.trim_ascii_end().strip_suffix(b"\"")?;
    let before = before.strip_suffix(key.as_bytes())?.strip_suffix(b"\"")?;
    Some(before.len()..at + value.len())
}

/// The object without what the cuts are around, which are in order.
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
            // It was the last one, so the comma before it goes with it, if there still is one.
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

/// Notes where in `whole` the members to cut of the map `part` stand, each from its key to its value's
/// end, in order.
fn find(
    members: &Members,
    whole: &[u8],
    part: &str,
    cuts: &mut Vec<Range<usize>>,
) -> serde_json::Result<()> {
    let mut found_all = false;
    let search = Search {
        members,
        // Only then is it known when nothing more can come.
        left: (!members.cuts_others()).then(|| members.named().len()),
        whole,
        cuts,
        found_all: &mut found_all,
    };
    let searched = search.deserialize(&mut serde_json::Deserializer::from_str(part));
    if found_all { Ok(()) } else { searched }
}

/// The same in a value, which may be an array of maps. Arrays in arrays are not looked into, so how deep
/// this goes is the length of a path, whatever is sent.
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

/// A look at the members of one map.
struct Search<'s> {
    members: &'s Members,
    /// So many named members have not been found, if it matters.
    left: Option<usize>,
    whole: &'s [u8],
    cuts: &'s mut Vec<Range<usize>>,
    /// Whether it ended because the rest of the map is of no account.
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

/// What a key says that stands there like this.
fn name(key: &str) -> serde_json::Result<Cow<'_, str>> {
    let quoted = key.strip_prefix('"').and_then(|key| key.strip_suffix('"'));
    match quoted {
        Some(plain) if !plain.contains('\\') => Ok(Cow::Borrowed(plain)),
        _ => serde_json::from_str(key).map(Cow::Owned),
    }
}

/// Where a part begins in the whole that it was borrowed from.
fn offset(whole: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr() - whole.as_ptr().addr()
}
