//! The objects that this program writes. Each object contains a number that identifies the write that stored
//! it. Most objects also contain a text that is larger than one page of the database file.
//!
//! Guarantees: [`Seen::read`] returns an error for a partially stored object.

use std::{fmt, ops::Range};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// The group of the custom kinds.
pub(crate) const GROUP: &str = "crash.example.com";

/// The kinds of the written objects: built-in kinds, custom resource definitions, and the kinds that these define.
///
/// There are namespaced and cluster-scoped kinds.
pub(crate) const KINDS: [Kind; 6] = [
    Kind {
        api_version: "v1",
        name: "ConfigMap",
        collection: "/api/v1/namespaces/default/configmaps",
        resource: "configmaps",
    },
    Kind {
        api_version: "v1",
        name: "Secret",
        collection: "/api/v1/namespaces/default/secrets",
        resource: "secrets",
    },
    Kind {
        api_version: "v1",
        name: "Node",
        collection: "/api/v1/nodes",
        resource: "nodes",
    },
    Kind {
        api_version: "apiextensions.k8s.io/v1",
        name: "CustomResourceDefinition",
        collection: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        resource: "customresourcedefinitions.apiextensions.k8s.io",
    },
    Kind {
        api_version: "crash.example.com/v1",
        name: "Gadget",
        collection: "/apis/crash.example.com/v1/namespaces/default/gadgets",
        resource: "gadgets.crash.example.com",
    },
    Kind {
        api_version: "crash.example.com/v1",
        name: "Widget",
        collection: "/apis/crash.example.com/v1/widgets",
        resource: "widgets.crash.example.com",
    },
];

/// Indices in [`KINDS`] of the kinds that are always served, except for [`DEFINITION`].
pub(crate) const BUILTIN: Range<usize> = 0..DEFINITION;
/// Index in [`KINDS`] of `CustomResourceDefinition`.
pub(crate) const DEFINITION: usize = 3;
/// Indices in [`KINDS`] of the kinds that are served while their definition is stored.
pub(crate) const CUSTOM: Range<usize> = DEFINITION + 1..KINDS.len();

/// A kind of objects, with the URL path of its collection in the API.
#[derive(Debug)]
pub(crate) struct Kind {
    api_version: &'static str,
    pub(crate) name: &'static str,
    pub(crate) collection: &'static str,
    /// Plural name and group, which is also the name of the kind's definition.
    pub(crate) resource: &'static str,
}

impl Kind {
    pub(crate) fn is_namespaced(&self) -> bool {
        self.collection.contains("/namespaces/")
    }
}

/// Start of the annotations with the numbers of an object that several managers write.
pub(crate) const VALUE_OF: &str = "value-";

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
    /// Returns the identity of the definition of a custom kind.
    pub(crate) fn of_definition(kind: usize) -> Self {
        Self {
            kind: DEFINITION,
            name: KINDS[kind].resource.to_owned(),
        }
    }

    pub(crate) fn uri(&self) -> String {
        format!("{}/{}", KINDS[self.kind].collection, self.name)
    }

    /// Returns the object's JSON without content.
    pub(crate) fn bare(&self) -> Value {
        json!({
            "apiVersion": KINDS[self.kind].api_version,
            "kind": KINDS[self.kind].name,
            "metadata": {"name": self.name},
        })
    }

    /// Returns the object's JSON, with `value` and a text of at most `bytes` bytes in its annotations.
    ///
    /// An object of a custom kind has a field that its definition does not have, so the server removes this field.
    pub(crate) fn object(&self, value: u64, bytes: usize) -> Value {
        let mut object = self.bare();
        object["metadata"]["annotations"] = annotations(value, bytes);
        if CUSTOM.contains(&self.kind) {
            object["spec"] = json!({"unknown": "unknown"});
        }
        object
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
    /// The number of an object that several managers write is the highest of their numbers, which increase.
    ///
    /// # Errors
    /// Returns an error if a part of the object is missing or invalid. The annotation `padding` is invalid
    /// if it contains anything except repetitions of the number in the annotation `value`.
    pub(crate) fn read(kind: usize, object: &Value) -> Result<Self> {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let name = text(&metadata["name"]).context("an object without a name")?;
        let annotations = &metadata["annotations"];
        if let Some(value) = newest_value(annotations) {
            ensure!(metadata["uid"].is_string(), "{name} is stored partially");
            let (key, revision) = (Key { kind, name }, revision(object)?);
            return Ok(Self {
                key,
                value,
                revision,
            });
        }
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

    /// Parses a list, and returns its objects and its revision.
    ///
    /// # Errors
    /// Returns an error if a part of the list is missing, or if [`Seen::read`] rejects an object.
    pub(crate) fn list(kind: usize, list: &Value) -> Result<(Vec<Self>, u64)> {
        let items = list["items"].as_array().context("a list without items")?;
        let seen: Result<Vec<Self>> = items.iter().map(|item| Self::read(kind, item)).collect();
        Ok((seen?, revision(list)?))
    }
}

/// Returns the highest number in the annotations of an object that several managers write.
fn newest_value(annotations: &Value) -> Option<u64> {
    let annotations = annotations.as_object()?.iter();
    let values = annotations.filter(|(name, _)| name.starts_with(VALUE_OF));
    let values = values.filter_map(|(_, value)| value.as_str()?.parse().ok());
    values.max()
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
