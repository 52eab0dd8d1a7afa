//! The parts of an `openAPIV3Schema` that the rules of a schema depend on.
//!
//! Guarantees:
//! - Reading never fails: a member of another type than Kubernetes requires counts as absent, because the
//!   definition's own validation reports it.
//! - A schema deeper than [`MAX_DEPTH`] is cut off there. Rules below that depth have no effect.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

/// Maximum depth of nested schemas that are read.
const MAX_DEPTH: usize = 100;

/// One node of a schema.
#[derive(Clone, Debug, Default)]
pub(super) struct Schema {
    pub(super) kind: String,
    pub(super) format: String,
    pub(super) nullable: bool,
    pub(super) extensions: Extensions,
    pub(super) limits: Limits,
    /// `None` also stands for an empty object, as in Kubernetes.
    pub(super) properties: Option<BTreeMap<String, Arc<Schema>>>,
    pub(super) items: Option<Arc<Schema>>,
    /// The schema of `additionalProperties`. A boolean has no effect on rules.
    pub(super) additional: Option<Arc<Schema>>,
    /// The schema of an embedded resource with the fields that rules can always access.
    pub(super) resource: Option<Arc<Schema>>,
    pub(super) rules: Vec<Rule>,
    /// Only the rules, properties and items of these schemas have an effect.
    pub(super) all_of: Vec<Schema>,
}

/// What limits the sizes of the values of one schema node.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    pub(super) max_length: Option<i64>,
    pub(super) max_items: Option<i64>,
    pub(super) max_properties: Option<i64>,
    pub(super) required: Vec<String>,
    /// The size of the longest value in bytes, if the values are listed.
    pub(super) longest_enum: Option<i64>,
    pub(super) has_default: bool,
    /// Whether `additionalProperties` is a schema or a boolean.
    pub(super) has_additional: bool,
}

/// The Kubernetes extensions of one schema node.
#[derive(Clone, Debug, Default)]
pub(super) struct Extensions {
    pub(super) int_or_string: bool,
    pub(super) embedded_resource: bool,
    pub(super) preserve_unknown_fields: bool,
    pub(super) list_type: Option<String>,
    pub(super) list_map_keys: Vec<String>,
    pub(super) map_type: Option<String>,
}

/// One entry of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default)]
pub(super) struct Rule {
    /// The expression.
    pub(super) source: String,
    pub(super) message: String,
    pub(super) message_expression: String,
    pub(super) reason: Option<String>,
    pub(super) field_path: String,
    pub(super) optional_old_self: Option<bool>,
}

impl Schema {
    pub(super) fn parse(json: &Json) -> Schema {
        parse(json, MAX_DEPTH)
    }

    /// Returns whether this node or a node below it, except under `allOf`, has rules.
    pub(super) fn has_rules(&self) -> bool {
        !self.rules.is_empty() || self.children().any(|child| child.has_rules())
    }

    /// Returns the nodes directly below.
    fn children(&self) -> impl Iterator<Item = &Arc<Schema>> {
        let properties = self.properties.iter().flatten().map(|(_, schema)| schema);
        properties.chain(&self.items).chain(&self.additional)
    }

    /// Returns the schema with the fields that rules of a resource can always access: `apiVersion`, `kind`,
    /// `metadata.name` and `metadata.generateName`.
    pub(super) fn with_type_and_object_meta(&self) -> Schema {
        if self.declares_type_and_object_meta() {
            return self.clone();
        }
        let text = || {
            Arc::new(Schema {
                kind: "string".to_owned(),
                ..Schema::default()
            })
        };
        let metadata = Schema {
            kind: "object".to_owned(),
            properties: Some(BTreeMap::from([
                ("name".to_owned(), text()),
                ("generateName".to_owned(), text()),
            ])),
            ..Schema::default()
        };
        let mut result = self.clone();
        let properties = result.properties.get_or_insert_default();
        properties.insert("kind".to_owned(), text());
        properties.insert("apiVersion".to_owned(), text());
        properties.insert("metadata".to_owned(), Arc::new(metadata));
        result.items = None;
        result
    }

    /// Returns the maximum count of values directly below one value, for each schema below. `None` if there is no
    /// limit.
    pub(super) fn max_below(&self) -> Option<u64> {
        let limit = |limit: Option<i64>| limit.map(|limit| limit.max(0).cast_unsigned());
        match self.kind.as_str() {
            "object" if self.limits.has_additional => limit(self.limits.max_properties),
            "array" => limit(self.limits.max_items),
            _ => Some(1),
        }
    }

    fn declares_type_and_object_meta(&self) -> bool {
        let is = |schema: Option<&Arc<Schema>>, kind| schema.is_some_and(|one| one.kind == kind);
        let metadata = self.property("metadata");
        is(self.property("kind"), "string")
            && is(self.property("apiVersion"), "string")
            && is(metadata, "object")
            && is(metadata.and_then(|one| one.property("name")), "string")
            && is(
                metadata.and_then(|one| one.property("generateName")),
                "string",
            )
    }

    pub(super) fn property(&self, name: &str) -> Option<&Arc<Schema>> {
        self.properties.as_ref()?.get(name)
    }
}

fn parse(json: &Json, depth: usize) -> Schema {
    let (Some(node), Some(depth)) = (json.as_object(), depth.checked_sub(1)) else {
        return Schema::default();
    };
    let nested = |member: &str| {
        let schema = node.get(member).filter(|one| one.is_object())?;
        Some(Arc::new(parse(schema, depth)))
    };
    let properties = node.get("properties").and_then(Json::as_object);
    let properties = properties.filter(|one| !one.is_empty()).map(|all| {
        let all = all.iter();
        all.map(|(name, one)| (name.clone(), Arc::new(parse(one, depth))))
            .collect()
    });
    let mut schema = Schema {
        kind: text(node, "type"),
        format: text(node, "format"),
        nullable: flag(node, "nullable"),
        extensions: Extensions {
            int_or_string: flag(node, "x-kubernetes-int-or-string"),
            embedded_resource: flag(node, "x-kubernetes-embedded-resource"),
            preserve_unknown_fields: flag(node, "x-kubernetes-preserve-unknown-fields"),
            list_type: optional_text(node, "x-kubernetes-list-type"),
            list_map_keys: array(node, "x-kubernetes-list-map-keys")
                .filter_map(|key| key.as_str().map(str::to_owned))
                .collect(),
            map_type: optional_text(node, "x-kubernetes-map-type"),
        },
        limits: limits(node),
        properties,
        items: nested("items"),
        additional: nested("additionalProperties"),
        rules: array(node, "x-kubernetes-validations").map(rule).collect(),
        all_of: array(node, "allOf").map(|one| parse(one, depth)).collect(),
        resource: None,
    };
    if schema.extensions.embedded_resource {
        schema.resource = Some(Arc::new(schema.with_type_and_object_meta()));
    }
    schema
}

fn limits(node: &Map<String, Json>) -> Limits {
    let number = |member: &str| node.get(member).and_then(Json::as_i64);
    let texts = |member| array(node, member).filter_map(Json::as_str);
    let sizes = texts("enum").map(|text| i64::try_from(text.len()).unwrap_or(i64::MAX));
    let has_values = array(node, "enum").next().is_some();
    Limits {
        max_length: number("maxLength"),
        max_items: number("maxItems"),
        max_properties: number("maxProperties"),
        required: texts("required").map(str::to_owned).collect(),
        longest_enum: has_values.then(|| sizes.max().unwrap_or(0)),
        has_default: node.get("default").is_some_and(|value| !value.is_null()),
        has_additional: node
            .get("additionalProperties")
            .is_some_and(|value| !value.is_null()),
    }
}

fn rule(json: &Json) -> Rule {
    let Some(node) = json.as_object() else {
        return Rule::default();
    };
    Rule {
        source: text(node, "rule"),
        message: text(node, "message"),
        message_expression: text(node, "messageExpression"),
        reason: optional_text(node, "reason"),
        field_path: text(node, "fieldPath"),
        optional_old_self: node.get("optionalOldSelf").and_then(Json::as_bool),
    }
}

fn text(node: &Map<String, Json>, member: &str) -> String {
    optional_text(node, member).unwrap_or_default()
}

fn optional_text(node: &Map<String, Json>, member: &str) -> Option<String> {
    node.get(member)?.as_str().map(str::to_owned)
}

fn flag(node: &Map<String, Json>, member: &str) -> bool {
    node.get(member).and_then(Json::as_bool) == Some(true)
}

fn array<'a>(node: &'a Map<String, Json>, member: &str) -> impl Iterator<Item = &'a Json> {
    node.get(member)
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
}
