//! Reads the OpenAPI documents of Kubernetes: the types of fields, and how patches and server-side apply merge them.
//!
//! Types and extensions come from the document of version 2, which describes all groups. Only the documents of
//! version 3 have defaults. A field with an unsupported type is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

/// Prefix of the references to definitions in the OpenAPI document.
const DEFINITIONS: &str = "#/definitions/";

/// The OpenAPI v2 document, with the fields that this module uses.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    definitions: BTreeMap<String, Definition>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Definition {
    #[serde(default)]
    properties: BTreeMap<String, Property>,
    #[serde(rename = "type")]
    value: Option<String>,
    #[serde(default)]
    format: String,
    #[serde(default)]
    required: Vec<String>,
    #[serde(default, rename = "x-kubernetes-group-version-kind")]
    kinds: Vec<GroupVersionKind>,
    #[serde(default, rename = "x-kubernetes-map-type")]
    map_type: String,
}

#[derive(Debug, Deserialize)]
struct GroupVersionKind {
    group: String,
    version: String,
    kind: String,
}

#[derive(Debug, Deserialize)]
struct Property {
    #[serde(rename = "$ref")]
    reference: Option<String>,
    #[serde(rename = "type")]
    value: Option<String>,
    #[serde(default)]
    format: String,
    items: Option<Box<Property>>,
    #[serde(rename = "additionalProperties")]
    members: Option<Box<Property>>,
    #[serde(default, rename = "x-kubernetes-patch-strategy")]
    strategy: String,
    #[serde(default, rename = "x-kubernetes-patch-merge-key")]
    merge_key: String,
    #[serde(default, rename = "x-kubernetes-list-type")]
    list_type: String,
    #[serde(default, rename = "x-kubernetes-list-map-keys")]
    list_keys: Vec<String>,
    #[serde(default, rename = "x-kubernetes-map-type")]
    map_type: String,
    /// The default, which only the documents of version 3 have.
    default: Option<Value>,
}

/// What the OpenAPI documents say about one field of a type.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Described {
    /// A scalar's type with its format, `any`, or a definition's name; `[]` before them makes a list, `{}` a map.
    pub(super) value_type: String,
    /// The extensions of the field as in the table of messages, such as `required patch=merge key=name`.
    pub(super) words: Vec<String>,
    /// The default of a scalar.
    pub(super) default: Option<Value>,
}

/// The parts of an OpenAPI v3 document that contain defaults.
#[derive(Debug, Deserialize)]
struct Version3 {
    #[serde(default)]
    components: Components,
}

#[derive(Debug, Default, Deserialize)]
struct Components {
    #[serde(default)]
    schemas: BTreeMap<String, Definition>,
}

/// Returns a scalar type with its format, such as `string:date-time`.
fn with_format(scalar: &str, format: &str) -> String {
    if format.is_empty() {
        return scalar.to_owned();
    }
    format!("{scalar}:{format}")
}

impl GroupVersionKind {
    fn path(&self) -> String {
        format!("{}/{}", super::join(&self.group, &self.version), self.kind)
    }
}

impl Document {
    /// Parses an OpenAPI v2 document.
    pub(super) fn parse(text: &str) -> Result<Document> {
        serde_json::from_str(text).context("swagger.json is not an OpenAPI v2 document")
    }

    /// Reads the documents in `api/openapi-spec` of a Go module.
    pub(super) fn read(module: &Path) -> Result<Document> {
        let folder = module.join("api/openapi-spec");
        let read = |path: &Path| {
            std::fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))
        };
        let mut document = Document::parse(&read(&folder.join("swagger.json"))?)?;
        let entries = std::fs::read_dir(folder.join("v3")).context("no OpenAPI v3 documents")?;
        for entry in entries {
            let path = entry?.path();
            document
                .add_defaults(&read(&path)?)
                .with_context(|| path.display().to_string())?;
        }
        Ok(document)
    }

    /// Adds the defaults in an OpenAPI v3 document.
    pub(super) fn add_defaults(&mut self, text: &str) -> Result<()> {
        let document: Version3 = serde_json::from_str(text).context("no OpenAPI v3 document")?;
        for (name, schema) in document.components.schemas {
            let Some(known) = self.definitions.get_mut(&name) else {
                continue;
            };
            for (field, property) in schema.properties {
                if let Some(known) = known.properties.get_mut(&field) {
                    known.default = property.default;
                }
            }
        }
        Ok(())
    }

    /// Returns the served kinds that each definition describes, as `apiVersion/Kind`.
    pub(super) fn kinds(
        &self,
        served: &BTreeSet<String>,
    ) -> Result<BTreeMap<&str, BTreeSet<String>>> {
        let mut kinds_of: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        let mut owners: BTreeMap<String, &str> = BTreeMap::new();
        for (name, definition) in &self.definitions {
            for kind in definition.kinds.iter().map(GroupVersionKind::path) {
                if !served.contains(&kind) {
                    continue;
                }
                if let Some(other) = owners.insert(kind.clone(), name) {
                    bail!("{kind} is defined by both {other} and {name}");
                }
                kinds_of.entry(name).or_default().insert(kind);
            }
        }
        Ok(kinds_of)
    }

    pub(super) fn definition(&self, name: &str) -> Result<&Definition> {
        self.definitions
            .get(name)
            .with_context(|| format!("swagger.json refers to {name} and does not define it"))
    }

    /// Returns `roots` and all definitions to which they refer directly or indirectly, except scalars.
    pub(super) fn reachable<'a>(
        &'a self,
        roots: impl Iterator<Item = &'a str>,
    ) -> Result<BTreeSet<&'a str>> {
        let mut reached: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&str> = roots.collect();
        while let Some(name) = open.pop() {
            let definition = self.definition(name)?;
            if definition.is_scalar() || !reached.insert(name) {
                continue;
            }
            let references = definition.properties.values().filter_map(Property::target);
            open.extend(references);
        }
        Ok(reached)
    }

    /// Returns what the documents say about each field of a definition.
    pub(super) fn fields<'a>(
        &'a self,
        definition: &'a Definition,
    ) -> impl Iterator<Item = Result<(&'a str, Described)>> {
        let properties = definition.properties.iter();
        properties.map(|(name, property)| {
            let is_required = definition.required.contains(name);
            let described = Described {
                value_type: self.value_type(property)?,
                words: property.words(is_required)?,
                default: property.default.clone(),
            };
            Ok((name.as_str(), described))
        })
    }

    fn value_type(&self, property: &Property) -> Result<String> {
        if let Some(name) = property.reference() {
            let definition = self.definition(name)?;
            return Ok(match &definition.value {
                Some(scalar) if definition.is_scalar() => with_format(scalar, &definition.format),
                _ => name.to_owned(),
            });
        }
        Ok(
            match (
                property.value.as_deref(),
                &property.items,
                &property.members,
            ) {
                (Some("array"), Some(items), None) => format!("[]{}", self.value_type(items)?),
                (Some("object"), None, Some(members)) => {
                    format!("{{}}{}", self.value_type(members)?)
                }
                (Some(scalar @ ("string" | "integer" | "number" | "boolean")), None, None) => {
                    with_format(scalar, &property.format)
                }
                (None | Some("object"), None, None) => "any".to_owned(),
                (other, ..) => bail!("unsupported type: {other:?}"),
            },
        )
    }
}

impl Definition {
    /// Returns whether the definition is a scalar type, such as a quantity or a time.
    fn is_scalar(&self) -> bool {
        self.properties.is_empty()
            && self
                .value
                .as_deref()
                .is_some_and(|value| value != "object" && value != "array")
    }

    /// Returns whether the definition lists fields.
    pub(super) fn has_fields(&self) -> bool {
        !self.properties.is_empty()
    }

    /// Returns whether server-side apply replaces values of the type as a whole.
    pub(super) fn is_atomic(&self) -> bool {
        self.map_type == "atomic"
    }
}

impl Property {
    fn reference(&self) -> Option<&str> {
        self.reference.as_deref()?.strip_prefix(DEFINITIONS)
    }

    /// Returns the name of the definition to which the property, its items or its values refer.
    fn target(&self) -> Option<&str> {
        let nested = self.items.as_deref().or(self.members.as_deref());
        self.reference().or_else(|| nested?.target())
    }

    /// Returns the extensions of the field as words of the table of messages.
    fn words(&self, is_required: bool) -> Result<Vec<String>> {
        ensure!(
            self.merge_key.is_empty() || self.strategy.contains("merge"),
            "a merge key without the strategy `merge`"
        );
        ensure!(
            self.list_keys.is_empty() == (self.list_type != "map"),
            "keys of a list of the type {:?}",
            self.list_type
        );
        let mut list = self.list_type.clone();
        if !self.list_keys.is_empty() {
            list = format!("{list}:{}", self.list_keys.join(","));
        }
        let values = [
            ("patch", &self.strategy),
            ("key", &self.merge_key),
            ("list", &list),
            ("map", &self.map_type),
        ];
        let words = values.into_iter().filter(|(_, value)| !value.is_empty());
        let words = words.map(|(name, value)| format!("{name}={value}"));
        let required = is_required.then(|| "required".to_owned());
        Ok(required.into_iter().chain(words).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r##"{"definitions": {
        "x.Pod": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}],
            "properties": {
                "spec": {"$ref": "#/definitions/x.Spec"},
                "age": {"$ref": "#/definitions/x.Time"}}},
        "x.Spec": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
            "containers": {"type": "array", "items": {"$ref": "#/definitions/x.Container"},
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"],
                "x-kubernetes-patch-strategy": "merge,retainKeys", "x-kubernetes-patch-merge-key": "name"},
            "cidrs": {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"},
            "extra": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}},
                "x-kubernetes-map-type": "atomic"},
            "raw": {"$ref": "#/definitions/x.Raw"}}},
        "x.Container": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "spec": {"$ref": "#/definitions/x.Spec"}}},
        "x.Time": {"type": "string", "format": "date-time"},
        "x.Raw": {"type": "object"},
        "x.Other": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "Other"}]}
    }}"##;

    fn served(kinds: &[&str]) -> BTreeSet<String> {
        kinds.iter().map(|&kind| kind.to_owned()).collect()
    }

    fn fields(document: &Document, name: &str) -> Vec<String> {
        let fields = document.fields(document.definition(name).unwrap());
        let shown = fields.map(|field| {
            let (name, described) = field.unwrap();
            let Described {
                value_type,
                words,
                default,
            } = described;
            let default = default.map_or(String::new(), |value| format!(" default {value}"));
            format!("{name}: {value_type} {}{default}", words.join(" "))
        });
        shown.collect()
    }

    #[test]
    fn reachable_definitions_have_types_and_extensions() {
        let document = Document::parse(TEXT).unwrap();
        let reachable = document.reachable(["x.Pod"].into_iter()).unwrap();
        let expected = ["x.Container", "x.Pod", "x.Raw", "x.Spec"];
        assert_eq!(reachable, BTreeSet::from(expected));
        assert_eq!(
            fields(&document, "x.Spec"),
            [
                "cidrs: []string patch=merge",
                "containers: []x.Container patch=merge,retainKeys key=name list=map:name,port",
                "extra: {}[]string map=atomic",
                "raw: x.Raw ",
            ]
        );
        assert!(document.definition("x.Spec").unwrap().is_atomic());
        assert_eq!(
            fields(&document, "x.Container"),
            ["name: string required", "spec: x.Spec "]
        );
        assert_eq!(
            fields(&document, "x.Pod"),
            ["age: string:date-time ", "spec: x.Spec "]
        );
    }

    #[test]
    fn defaults_come_from_documents_of_version_3() {
        let mut document = Document::parse(TEXT).unwrap();
        let text = r#"{"components": {"schemas": {
            "x.Container": {"properties": {"name": {"type": "string", "default": "a"}, "other": {"default": 1}}},
            "x.Unknown": {"properties": {"name": {"default": "b"}}}}}}"#;
        document.add_defaults(text).unwrap();
        document.add_defaults("{}").unwrap();
        assert_eq!(
            fields(&document, "x.Container"),
            ["name: string required default \"a\"", "spec: x.Spec "]
        );
    }

    #[test]
    fn only_served_kinds_are_described() {
        let document = Document::parse(TEXT).unwrap();
        let kinds = document.kinds(&served(&["g/v1/Other", "v1/None"])).unwrap();
        let expected = [("x.Other", BTreeSet::from(["g/v1/Other".to_owned()]))];
        assert_eq!(kinds, BTreeMap::from(expected));
    }

    #[test]
    fn a_reference_to_a_missing_definition_is_an_error() {
        let text = TEXT.replace("x.Time\"}", "x.Tide\"}");
        let document = Document::parse(&text).unwrap();
        let error = document.reachable(["x.Pod"].into_iter()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "swagger.json refers to x.Tide and does not define it"
        );
    }
}
