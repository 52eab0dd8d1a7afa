//! Parses JSON objects with `serde_json`, as the expected result for the library's own parsers.
//!
//! [`Members`] contains all members of an object in textual order, including duplicates.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The members of a JSON object in textual order, including duplicates.
pub(super) struct Members<'a>(pub(super) Vec<(Key<'a>, &'a RawValue)>);

/// Name of a JSON member, owned if it contains an escape sequence.
#[derive(Deserialize)]
pub(super) struct Key<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl<'a> Members<'a> {
    /// Returns whether each of `names` occurs at most once and no member name has an escape sequence.
    pub(super) fn are_plain(&self, names: &[&str]) -> bool {
        let of = |name: &&str| self.0.iter().filter(|(key, _)| key.0 == *name).count();
        names.iter().all(|name| of(name) <= 1)
            && self
                .0
                .iter()
                .all(|(key, _)| matches!(key.0, Cow::Borrowed(_)))
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().find(|(key, _)| key.0 == name);
        found.map(|(_, value)| value.get())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}
