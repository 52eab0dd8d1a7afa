//! Generates the embedded server's table of fields from the OpenAPI document of Kubernetes.
//!
//! For each field, the table contains the type and the patch strategies, which a strategic merge patch uses.
//! The table contains the definitions of the served kinds, and all definitions to which these refer. The
//! definitions are sorted by name. A field with an unsupported type is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

/// Prefix of the references to definitions in the OpenAPI document.
const DEFINITIONS: &str = "#/definitions/";

/// The OpenAPI v2 document, with the fields that this module uses.
#[derive(Debug, Deserialize)]
struct Document {
    definitions: BTreeMap<String, Definition>,
}

#[derive(Debug, Deserialize)]
struct Definition {
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
}

/// Returns the text of the table of fields for the served kinds.
///
/// `served` contains each kind as `apiVersion/Kind`, such as `apps/v1/Deployment`. `text` is the OpenAPI
/// document, and `module` is the Go module that contains this document.
pub(super) fn table(module: &str, text: &str, served: &BTreeSet<String>) -> Result<String> {
    let document: Document =
        serde_json::from_str(text).context("swagger.json is not an OpenAPI v2 document")?;
    let mut kinds_of: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    for (name, definition) in &document.definitions {
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
    let mut table = header(module);
    for name in document.reachable(kinds_of.keys().copied())? {
        table.push_str(name);
        for kind in kinds_of.get(name).into_iter().flatten() {
            write!(table, "\t{kind}").expect("writing to a String does not fail");
        }
        table.push('\n');
        let definition = document.definition(name)?;
        for (field, property) in &definition.properties {
            let head = if definition.required.contains(field) {
                format!("{field}!")
            } else {
                field.clone()
            };
            let row = document
                .row(&head, property)
                .with_context(|| format!("{name}.{field}"))?;
            writeln!(table, "\t{row}").expect("writing to a String does not fail");
        }
    }
    Ok(table)
}

fn header(module: &str) -> String {
    format!(
        "# Written by `cargo xtask kinds` from {module} (api/openapi-spec/swagger.json); do not edit.\n\
         # A line that starts with a name is a definition, with the kinds it describes as apiVersion/Kind; tabs between the columns.\n\
         # Lines that start with a tab are its fields: name, type, patch strategies, merge key; empty columns at the end are left out. A required name ends with `!`.\n\
         # Types are a scalar's with its format, `any`, or a definition's name; `[]` before them makes a list, `{{}}` a map from strings.\n"
    )
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
    fn definition(&self, name: &str) -> Result<&Definition> {
        self.definitions
            .get(name)
            .with_context(|| format!("swagger.json refers to {name} and does not define it"))
    }

    /// Returns `roots` and all definitions to which they refer directly or indirectly, except scalars.
    fn reachable<'a>(&'a self, roots: impl Iterator<Item = &'a str>) -> Result<BTreeSet<&'a str>> {
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

    fn row(&self, field: &str, property: &Property) -> Result<String> {
        let columns = [
            field,
            &self.value_type(property)?,
            &property.strategy,
            &property.merge_key,
        ];
        ensure!(
            property.merge_key.is_empty() || property.strategy.contains("merge"),
            "a merge key without the strategy `merge`"
        );
        Ok(columns.join("\t").trim_end().to_owned())
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
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r##"{"definitions": {
        "x.Pod": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}],
            "properties": {
                "spec": {"$ref": "#/definitions/x.Spec"},
                "age": {"$ref": "#/definitions/x.Time"}}},
        "x.Spec": {"type": "object", "properties": {
            "containers": {"type": "array", "items": {"$ref": "#/definitions/x.Container"},
                "x-kubernetes-patch-strategy": "merge,retainKeys", "x-kubernetes-patch-merge-key": "name"},
            "cidrs": {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"},
            "extra": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
            "raw": {"$ref": "#/definitions/x.Raw"}}},
        "x.Container": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "spec": {"$ref": "#/definitions/x.Spec"}}},
        "x.Time": {"type": "string", "format": "date-time"},
        "x.Raw": {"type": "object"},
        "x.Other": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "Other"}]}
    }}"##;

    fn served(kinds: &[&str]) -> BTreeSet<String> {
        kinds.iter().map(|&kind| kind.to_owned()).collect()
    }

    #[test]
    fn reachable_definitions_have_strategies_and_merge_keys() {
        let table = table("m@v1", TEXT, &served(&["v1/Pod"])).unwrap();
        let rows: Vec<_> = table.lines().filter(|row| !row.starts_with('#')).collect();
        assert_eq!(
            rows,
            [
                "x.Container",
                "\tname!\tstring",
                "\tspec\tx.Spec",
                "x.Pod\tv1/Pod",
                "\tage\tstring:date-time",
                "\tspec\tx.Spec",
                "x.Raw",
                "x.Spec",
                "\tcidrs\t[]string\tmerge",
                "\tcontainers\t[]x.Container\tmerge,retainKeys\tname",
                "\textra\t{}[]string",
                "\traw\tx.Raw",
            ]
        );
    }

    #[test]
    fn a_group_is_part_of_the_kind_and_the_header_contains_the_module() {
        let table = table("m@v1", TEXT, &served(&["g/v1/Other"])).unwrap();
        assert!(table.starts_with("# Written by `cargo xtask kinds` from m@v1 "));
        assert!(table.ends_with("\nx.Other\tg/v1/Other\n"));
    }

    #[test]
    fn a_reference_to_a_missing_definition_is_an_error() {
        let text = TEXT.replace("x.Time\"}", "x.Tide\"}");
        let error = table("m@v1", &text, &served(&["v1/Pod"])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "swagger.json refers to x.Tide and does not define it"
        );
    }
}
