//! Splits the text of a JSON object into its members.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object in the order of the text, with the text of their values.
pub(super) type RawMembers<'a> = Vec<(Cow<'a, str>, &'a str)>;

/// Returns the members of an object.
///
/// # Panics
///
/// Panics if the text is not a JSON object.
pub(super) fn raw_members(object: &[u8]) -> RawMembers<'_> {
    let mut deserializer = serde_json::Deserializer::from_slice(object);
    let members = deserializer.deserialize_map(Members);
    members.expect("an entry was written as JSON")
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = RawMembers<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawMembers<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some((name, value)) = map.next_entry::<Cow<'de, str>, &RawValue>()? {
            members.push((name, value.get()));
        }
        Ok(members)
    }
}
