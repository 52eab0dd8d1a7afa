//! [`Identity`]: what identifies an object, and its labels.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The part of any object that identifies it, for objects that do not decode, or are not decoded yet.
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
    /// As they stand there, to be cut out.
    #[serde(borrow, deserialize_with = "as_it_stands")]
    pub(crate) annotations: Option<&'a [u8]>,
    /// As they stand there, to be cut out.
    #[serde(borrow, deserialize_with = "as_it_stands")]
    pub(crate) managed_fields: Option<&'a [u8]>,
}

/// Keys and values as they stood there.
#[derive(Debug, Default)]
pub(crate) struct Pairs<'a>(pub(crate) Vec<(Cow<'a, str>, Cow<'a, str>)>);

/// One text, borrowed where that is possible.
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

/// Labels that are none must not cost an object its name.
fn labels_if_they_are<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Pairs<'de>, D::Error> {
    // As text, for what is nested too deep would be no value.
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
    /// What is cut out most of the time, by name, as it stands there.
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

    /// As they stood there: of a key that is there twice both.
    pub(crate) fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.metadata.labels.0.iter();
        pairs.map(|(key, value)| (&**key, &**value))
    }

    pub(crate) fn label_map(&self) -> BTreeMap<String, String> {
        let own = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        self.labels().map(own).collect()
    }
}
