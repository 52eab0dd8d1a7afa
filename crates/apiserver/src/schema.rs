//! Applies the OpenAPI schemas of `CustomResourceDefinition`s to objects: pruning, defaults and validation.
//!
//! Guarantees:
//! - the rules and messages are those of kube-apiserver 1.36;
//! - where Kubernetes reports errors in random order, the order is by member name;
//! - the time and the memory for one object are limited, whatever the schema: see [`DEFAULTS_BYTES_MAX`] and
//!   [`Outcome`](outcome::Outcome).
//!
//! The schema itself is validated by the module `strategy::definition`.

mod cel;
mod correlate;
mod default_check;
mod defaults;
mod embedded;
mod field_path;
mod format;
mod list_type;
mod merging;
mod model;
mod number;
mod outcome;
mod place;
mod shape;
mod validate;
mod walk;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

pub(crate) use cel::Validator as CelValidator;
pub(crate) use default_check::{default_errors, has_unpruned_defaults};
pub(crate) use field_path::{Tokens, unquoted};
pub(crate) use model::{Model, Stored, Undecodable};

/// The members of an object that its schema need not specify.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// One node of a schema: the rules for one JSON value, and the schemas of the values below it.
///
/// Members that have no effect on an object, such as descriptions, are not kept.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_excessive_bools, reason = "independent of each other")]
pub(crate) struct Schema {
    /// Name of the required JSON type. Empty if every type is accepted.
    #[serde(rename = "type")]
    type_name: String,
    format: String,
    nullable: bool,
    default: Option<DefaultValue>,

    properties: BTreeMap<String, Box<Schema>>,
    /// The names of the properties that have a default.
    #[serde(skip)]
    defaulted: Vec<String>,
    additional_properties: Option<Additional>,
    #[serde(deserialize_with = "items")]
    items: Option<Box<Schema>>,
    required: Vec<String>,
    max_properties: Option<i64>,
    min_properties: Option<i64>,
    max_items: Option<i64>,
    min_items: Option<i64>,

    max_length: Option<i64>,
    min_length: Option<i64>,
    pattern: LazyPattern,

    maximum: Option<f64>,
    exclusive_maximum: bool,
    minimum: Option<f64>,
    exclusive_minimum: bool,
    multiple_of: Option<f64>,

    #[serde(rename = "enum")]
    allowed: Vec<Value>,
    all_of: Vec<Schema>,
    one_of: Vec<Schema>,
    any_of: Vec<Schema>,
    not: Option<Box<Schema>>,

    /// Whether unknown members of this value are kept.
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    preserves: bool,
    /// Whether the value is an object with `apiVersion`, `kind` and `metadata`.
    #[serde(rename = "x-kubernetes-embedded-resource")]
    embeds: bool,
    #[serde(rename = "x-kubernetes-int-or-string")]
    is_int_or_string: bool,
    #[serde(rename = "x-kubernetes-list-type")]
    list_type: String,
    #[serde(rename = "x-kubernetes-list-map-keys")]
    list_map_keys: Vec<String>,
    #[serde(rename = "x-kubernetes-map-type")]
    map_type: String,
    /// The rules in CEL, which [`cel`] compiles.
    #[serde(rename = "x-kubernetes-validations")]
    rules: Vec<Value>,
}

/// The value of `additionalProperties`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub(crate) enum Additional {
    /// The names of further members are not restricted. The value `false` is not valid in a definition.
    Any(bool),
    Schema(Box<Schema>),
}

/// What a schema says about a member of an object.
#[derive(Clone, Copy)]
enum Member<'a> {
    /// The schema does not know the member.
    Unknown,
    /// The schema accepts the member, and says nothing about its value.
    Any,
    /// The member has this schema.
    Of(&'a Schema),
}

/// The value of `default`.
#[derive(Clone, Debug, PartialEq)]
struct DefaultValue {
    value: Value,
    /// Size in bytes of the value as JSON.
    bytes: usize,
}

/// The value of `pattern`, which is compiled when the first text is matched.
#[derive(Clone, Debug, Default)]
struct LazyPattern {
    text: String,
    compiled: OnceLock<Result<crate::go_regex::Pattern, String>>,
}

/// Reads the value of `items`. As in Kubernetes, a value that is no object counts as absent.
fn items<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<Schema>>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Object(members) => Schema::deserialize(Value::Object(members))
            .map(|schema| Some(Box::new(schema)))
            .map_err(D::Error::custom),
        _ => Ok(None),
    }
}

// === impl Schema ===

impl Schema {
    /// Reads the schema of one version of a definition, the value of `openAPIV3Schema`.
    ///
    /// # Errors
    ///
    /// Returns an error if a member has a wrong JSON type.
    pub(crate) fn read(schema: &Value) -> serde_json::Result<Schema> {
        let mut schema = Schema::parse(schema)?;
        schema.prune_defaults();
        Ok(schema)
    }

    /// Reads a schema to validate it. Its defaults remain as they are, and it sets none.
    fn parse(schema: &Value) -> serde_json::Result<Schema> {
        Schema::deserialize(schema)
    }

    fn member(&self, name: &str) -> Member<'_> {
        if let Some(property) = self.properties.get(name) {
            return Member::Of(property);
        }
        match &self.additional_properties {
            None => Member::Unknown,
            Some(Additional::Any(_)) => Member::Any,
            Some(Additional::Schema(schema)) => Member::Of(schema),
        }
    }

    /// Returns the schema of a member and the step to it from `path`, such as `.name`, or `[name]` of a map.
    fn step(&self, name: &str, path: &str) -> Option<(&Schema, String)> {
        let below = self.member(name).schema()?;
        let step = match self.properties.contains_key(name) {
            false => format!("[{name}]"),
            true if path.is_empty() => name.to_owned(),
            true => format!(".{name}"),
        };
        Some((below, step))
    }

    /// Returns whether any node has rules in CEL.
    pub(crate) fn has_rules(&self) -> bool {
        self.any(&|node| !node.rules.is_empty() || node.all_of.iter().any(Schema::has_rules))
    }

    /// Returns whether any node for which `test` is true determines a part of an object.
    ///
    /// Alternatives such as `anyOf` only validate, so they are not searched.
    fn any(&self, test: &impl Fn(&Schema) -> bool) -> bool {
        let additional = match &self.additional_properties {
            Some(Additional::Schema(schema)) => Some(schema),
            _ => None,
        };
        let boxed = additional.into_iter().chain(&self.items);
        test(self)
            || boxed.into_iter().any(|schema| schema.any(test))
            || self.properties.values().any(|schema| schema.any(test))
    }
}

// === impl Member ===

impl<'a> Member<'a> {
    fn schema(self) -> Option<&'a Schema> {
        match self {
            Member::Of(schema) => Some(schema),
            Member::Unknown | Member::Any => None,
        }
    }
}

// === impl DefaultValue ===

impl<'de> Deserialize<'de> for DefaultValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DefaultValue, D::Error> {
        Value::deserialize(deserializer).map(DefaultValue::from)
    }
}

impl From<Value> for DefaultValue {
    fn from(value: Value) -> DefaultValue {
        let bytes = value.to_string().len();
        DefaultValue { value, bytes }
    }
}

// === impl LazyPattern ===

impl LazyPattern {
    /// Returns the compiled pattern, or the error of an invalid one.
    fn compiled(&self) -> &Result<crate::go_regex::Pattern, String> {
        self.compiled
            .get_or_init(|| crate::go_regex::Pattern::compile(&self.text))
    }
}

impl<'de> Deserialize<'de> for LazyPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LazyPattern, D::Error> {
        Ok(LazyPattern {
            text: String::deserialize(deserializer)?,
            compiled: OnceLock::new(),
        })
    }
}

impl PartialEq for LazyPattern {
    fn eq(&self, other: &LazyPattern) -> bool {
        self.text == other.text
    }
}

#[cfg(test)]
mod tests;
