//! The objects that this program writes. Each object contains a number that identifies the write that stored
//! it. Most objects also contain a text that is larger than one page of the database file.
//!
//! Guarantees: [`Seen::read`] returns an error for a partially stored object.

use std::fmt;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// The kinds of the written objects: two namespaced kinds and one cluster-scoped kind.
pub(crate) const KINDS: [Kind; 3] = [
    Kind {
        name: "ConfigMap",
        collection: "/api/v1/namespaces/default/configmaps",
        resource: "configmaps",
    },
    Kind {
        name: "Secret",
        collection: "/api/v1/namespaces/default/secrets",
        resource: "secrets",
    },
    Kind {
        name: "Node",
        collection: "/api/v1/nodes",
        resource: "nodes",
    },
];

/// A kind of objects, with the URL path of its collection in the API.
#[derive(Debug)]
pub(crate) struct Kind {
    name: &'static str,
    pub(crate) collection: &'static str,
    pub(crate) resource: &'static str,
}

/// The identity of one object: the index of its kind in [`KINDS`], and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) kind: usize,
    pub(crate) name: String,
}

/// An object that the server has returned: its identity, the number stored in it, and its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) key: Key,
    pub(crate) value: u64,
    pub(crate) revision: u64,
}

impl Key {
    pub(crate) fn uri(&self) -> String {
        format!("{}/{}", KINDS[self.kind].collection, self.name)
    }

    /// Returns the object's JSON, with `value` and a text of at most `bytes` bytes in its annotations.
    pub(crate) fn object(&self, value: u64, bytes: usize) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": KINDS[self.kind].name,
            "metadata": {"name": self.name, "annotations": annotations(value, bytes)},
        })
    }
}

/// Returns two annotations: the number `value`, and a text of at most `bytes` bytes.
///
/// The text consists of the decimal digits of `value`, repeated.
pub(crate) fn annotations(value: u64, bytes: usize) -> Value {
    let digits = value.to_string();
    let padding = digits.repeat(bytes / digits.len());
    json!({"value": digits, "padding": padding})
}

impl Seen {
    /// Parses an object from the server's JSON.
    ///
    /// # Errors
    /// Returns an error if a part of the object is missing or invalid. The annotation `padding` is invalid
    /// if it contains anything except repetitions of the number in the annotation `value`.
    pub(crate) fn read(kind: usize, object: &Value) -> Result<Self> {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let name = text(&metadata["name"]).context("an object without a name")?;
        let annotations = &metadata["annotations"];
        let digits = text(&annotations["value"]).with_context(|| format!("{name} has no value"))?;
        let padding = text(&annotations["padding"]).with_context(|| format!("{name} is cut"))?;
        ensure!(
            padding.replace(&digits, "").is_empty() && metadata["uid"].is_string(),
            "{name} is stored partially"
        );
        Ok(Self {
            key: Key { kind, name },
            value: digits.parse()?,
            revision: revision(object)?,
        })
    }
}

/// Returns the `resourceVersion` of an object or a list as a number.
///
/// # Errors
/// Returns an error if the revision is missing or not a number.
pub(crate) fn revision(object: &Value) -> Result<u64> {
    let revision = object["metadata"]["resourceVersion"].as_str();
    Ok(revision.context("no revision")?.parse()?)
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", KINDS[self.kind].resource, self.name)
    }
}
