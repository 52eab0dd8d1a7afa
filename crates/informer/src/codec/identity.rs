//! Reads the identity of an object ([`Identity`]) without decoding the whole object.
//!
//! The identity consists of the name, namespace, uid, revision and labels.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The metadata that identify an object, readable even if the object does not decode.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Identity<'a> {
    #[serde(default, borrow)]
    pub(crate) metadata: IdentityMetadata<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct IdentityMetadata<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    pub(crate) namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) uid: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) resource_version: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "labels_if_they_are")]
    pub(crate) labels: Pairs<'a>,
    /// The annotations, as a slice of the object's JSON; `None` in protobuf.
    #[serde(borrow, deserialize_with = "as_it_stands")]
    pub(crate) annotations: Option<&'a [u8]>,
    /// The managed fields, as a slice of the object's JSON; `None` in protobuf.
    #[serde(borrow, deserialize_with = "as_it_stands")]
    pub(crate) managed_fields: Option<&'a [u8]>,
}

/// The labels of an object as key-value pairs, in their order in the object.
#[derive(Debug, Default)]
pub(crate) struct Pairs<'a>(pub(crate) Vec<(Cow<'a, str>, Cow<'a, str>)>);

/// A JSON string, borrowed from the input if the string contains no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    let text = Option::<Text<'de>>::deserialize(deserializer)?;
    Ok(text.map(|Text(text)| text))
}

fn as_it_stands<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de [u8]>, D::Error> {
    let value = Option::<&RawValue>::deserialize(deserializer)?;
    Ok(value.map(|value| value.get().as_bytes()))
}

/// Deserializes labels; invalid labels become an empty list instead of an error.
fn labels_if_they_are<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Pairs<'de>, D::Error> {
    // Labels that are nested too deep do not decode as a value, so they are first read as raw text.
    let labels = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(labels.get()).unwrap_or_default())
}

impl FromIterator<(String, String)> for Pairs<'_> {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter();
        Self(
            pairs
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        )
    }
}

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("labels")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some((Text(key), Text(value))) = map.next_entry()? {
                    pairs.push((key, value));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

impl<'a> Identity<'a> {
    /// Returns the fields `annotations` and `managedFields`: each field's name, and its JSON if present.
    pub(crate) fn prunable(&self) -> [(&'static str, Option<&'a [u8]>); 2] {
        let IdentityMetadata {
            annotations,
            managed_fields,
            ..
        } = &self.metadata;
        [
            ("annotations", *annotations),
            ("managedFields", *managed_fields),
        ]
    }

    /// Returns the labels in their order in the object, including duplicate keys.
    pub(crate) fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.metadata.labels.0.iter();
        pairs.map(|(key, value)| (&**key, &**value))
    }

    pub(crate) fn label_map(&self) -> BTreeMap<String, String> {
        let own = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        self.labels().map(own).collect()
    }
}
