//! Builds the documents below `/openapi/v3`, which clients and `kubectl explain` request, and from them that at
//! `/openapi/v2` ([`v2`]).
//!
//! Guarantees:
//! - there is one document per served group and version;
//! - a document contains only operations that the server supports;
//! - fields, types, formats, and rules for patches and apply of built-in kinds are those of Kubernetes' own documents.
//!   Descriptions are omitted, except for one that says so, and so are defaults;
//! - the kind of a `CustomResourceDefinition` is described by its schema, with descriptions. Any other custom
//!   kind is described as an object without known fields.

pub(super) mod gnostic;
pub(super) mod v2;

use std::collections::{BTreeMap, BTreeSet};

use kube_informer_protobuf::{
    Container, Field, Form, ListType, MapType, MessageId, Messages, Type,
};
use serde_json::{Map, Value, json};

use crate::kinds::{Kind, Kinds, Scope};

/// Prefix of a `$ref` to a schema in the same document.
const SCHEMAS: &str = "#/components/schemas/";

/// Name of the OpenAPI schema of patch bodies, which permits any JSON object.
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

/// Name of the OpenAPI schema of `metadata`.
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// A built-in kind, whose `metadata` has the type of every object's.
const ANY_KIND: (&str, &str) = ("v1", "Pod");

/// Description of the member `apiVersion` of custom objects, as in Kubernetes.
const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";

/// Description of the member `kind` of custom objects, as in Kubernetes.
const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// Description of the member `metadata` of custom objects, as in Kubernetes.
const METADATA: &str = "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// Description of the built-in types, whose own descriptions the server does not have. `kubectl explain` shows it.
const WITHOUT_DESCRIPTIONS: &str = "The embedded server has no descriptions of built-in types. See https://kubernetes.io/docs/reference/kubernetes-api/.";

/// Names of the query parameters of create, update and patch operations.
const WRITE_PARAMETERS: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];

/// Media types of patch requests. Custom kinds do not support the last one.
const PATCHES: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
    "application/strategic-merge-patch+json",
];

/// A resource or subresource whose operations a document describes.
struct Endpoint<'a> {
    /// Kind of the resource, or of the parent resource for a subresource.
    owner: &'a Kind,
    /// `apiVersion` of the objects in requests and responses.
    api_version: String,
    kind: &'a str,
    verbs: &'a [String],
}

/// Returns the document at `/openapi/v3`: the URLs of all other documents, with the hashes that `hash_of` returns.
pub(crate) fn index(kinds: &Kinds, hash_of: impl Fn(&Kind) -> Option<String>) -> Value {
    let mut paths = Map::new();
    for kind in kinds.iter() {
        let path = root(kind);
        if !paths.contains_key(&path)
            && let Some(hash) = hash_of(kind)
        {
            let url = format!("/openapi/v3/{path}?hash={hash}");
            paths.insert(path, json!({"serverRelativeURL": url}));
        }
    }
    json!({"paths": paths})
}

/// Returns the OpenAPI document of a group and version, or `None` if the version has no operations.
///
/// `schema_of` returns the schema of a custom kind, if its definition has one.
pub(crate) fn document(
    kinds: &Kinds,
    (group, version): (&str, &str),
    schema_of: impl Fn(&Kind) -> Option<Value>,
) -> Option<Value> {
    let mut paths = Map::new();
    let mut schemas = Schemas::default();
    let served = kinds
        .iter()
        .filter(|kind| kind.group == group && kind.version == version);
    for kind in served {
        add_paths(kind, &mut paths, &mut schemas);
        if kind.custom
            && let Some(schema) = schema_of(kind)
        {
            schemas.define(kind, schema);
        }
    }
    if paths.is_empty() {
        return None;
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": paths,
        "components": {"schemas": schemas.write()},
    }))
}

/// Returns the document of all groups in version 2 of OpenAPI.
pub(crate) fn all(kinds: &Kinds, schema_of: impl Fn(&Kind) -> Option<Value>) -> Value {
    let mut versions: Vec<_> = kinds
        .iter()
        .map(|kind| (kind.group.as_str(), kind.version.as_str()))
        .collect();
    versions.dedup();
    let documents = versions.into_iter();
    v2::document(documents.filter_map(|version| document(kinds, version, &schema_of)))
}

/// Returns the prefix of a kind's URL paths, such as `api/v1` or `apis/apps/v1`.
fn root(kind: &Kind) -> String {
    let prefix = if kind.group.is_empty() { "api" } else { "apis" };
    format!("{prefix}/{}", kind.api_version())
}

fn add_paths(kind: &Kind, paths: &mut Map<String, Value>, schemas: &mut Schemas) {
    let root = root(kind);
    let plural = &kind.plural;
    let everywhere = format!("/{root}/{plural}");
    let own = Endpoint {
        owner: kind,
        api_version: kind.api_version(),
        kind: &kind.kind,
        verbs: &kind.verbs,
    };
    let collection = match kind.scope {
        Scope::Namespaced => {
            add(
                paths,
                &everywhere,
                own.operations(&[("get", "list")], schemas),
            );
            format!("/{root}/namespaces/{{namespace}}/{plural}")
        }
        Scope::Cluster => everywhere,
    };
    let of_collection = [
        ("get", "list"),
        ("post", "create"),
        ("delete", "deletecollection"),
    ];
    add(paths, &collection, own.operations(&of_collection, schemas));
    let of_object = [
        ("get", "get"),
        ("put", "update"),
        ("patch", "patch"),
        ("delete", "delete"),
    ];
    let object = format!("{collection}/{{name}}");
    add(paths, &object, own.operations(&of_object, schemas));
    for subresource in &kind.subresources {
        let below = Endpoint {
            owner: kind,
            api_version: group_version(&subresource.group, &subresource.version),
            kind: &subresource.kind,
            verbs: &subresource.verbs,
        };
        let of_part = [
            ("get", "get"),
            ("post", "create"),
            ("put", "update"),
            ("patch", "patch"),
        ];
        let path = format!("{object}/{}", subresource.name);
        add(paths, &path, below.operations(&of_part, schemas));
    }
}

/// Adds a path with operations and path parameters to `paths`.
fn add(paths: &mut Map<String, Value>, path: &str, mut operations: Map<String, Value>) {
    if operations.is_empty() {
        return;
    }
    let in_path: Vec<Value> = ["name", "namespace"]
        .iter()
        .filter(|name| path.contains(&format!("{{{name}}}")))
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    if !in_path.is_empty() {
        operations.insert("parameters".to_owned(), Value::Array(in_path));
    }
    paths.insert(path.to_owned(), Value::Object(operations));
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

fn group_version_kind(api_version: &str, kind: &str) -> Value {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    json!({"group": group, "version": version, "kind": kind})
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("{SCHEMAS}{schema}")})
}

// === impl Endpoint ===

impl Endpoint<'_> {
    /// Returns the OpenAPI operations of this endpoint, as a map from HTTP method to operation.
    ///
    /// `wanted` contains pairs of an HTTP method and a Kubernetes verb. Verbs that the endpoint does not
    /// support are omitted. The schemas to which the operations refer are added to `schemas`.
    fn operations(&self, wanted: &[(&str, &str)], schemas: &mut Schemas) -> Map<String, Value> {
        let served = wanted
            .iter()
            .filter(|(_, verb)| self.verbs.iter().any(|known| known == verb));
        served
            .map(|(method, verb)| ((*method).to_owned(), self.operation(verb, schemas)))
            .collect()
    }

    fn operation(&self, verb: &str, schemas: &mut Schemas) -> Value {
        let schema = schemas.need(&self.api_version, self.kind, self.owner.custom);
        let action = match verb {
            "create" => "post",
            "update" => "put",
            verb => verb,
        };
        let mut operation = json!({
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": group_version_kind(&self.api_version, self.kind),
            "responses": {"200": {"description": "OK"}},
        });
        if matches!(verb, "get" | "create" | "update" | "patch") {
            let shown = json!({"application/json": {"schema": reference(&schema)}});
            operation["responses"]["200"]["content"] = shown;
        }
        if !matches!(verb, "create" | "update" | "patch") {
            return operation;
        }
        let parameters = WRITE_PARAMETERS
            .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}));
        let mut parameters = parameters.to_vec();
        if verb == "patch" {
            let force = json!({"name": "force", "in": "query", "schema": {"type": "boolean"}});
            parameters.push(force);
        }
        operation["parameters"] = json!(parameters);
        let content: Map<String, Value> = if verb == "patch" {
            let last = PATCHES.len() - usize::from(self.owner.custom);
            let patches = PATCHES[..last].iter();
            schemas.needs_patch = true;
            patches
                .map(|media_type| {
                    (
                        (*media_type).to_owned(),
                        json!({"schema": reference(PATCH)}),
                    )
                })
                .collect()
        } else {
            let sent = json!({"schema": reference(&schema)});
            [("*/*".to_owned(), sent)].into_iter().collect()
        };
        operation["requestBody"] = json!({"content": content, "required": true});
        operation
    }
}

/// The schemas to which the operations of one document refer.
#[derive(Default)]
struct Schemas {
    /// Maps the name of each referenced built-in type, such as `io.k8s.api.core.v1.Pod`, to its message, and to the
    /// pairs `(apiVersion, kind)` by which the operations refer to the type.
    needed: BTreeMap<String, (MessageId, BTreeSet<(String, String)>)>,
    /// The names of the referenced schemas of custom kinds, with their `(apiVersion, kind)`.
    custom: BTreeMap<String, (String, String)>,
    /// The schemas of definitions, by name.
    defined: BTreeMap<String, Value>,
    needs_patch: bool,
}

// === impl Schemas ===

impl Schemas {
    /// Records that the document refers to the schema of a kind, and returns the schema's name.
    fn need(&mut self, api_version: &str, kind: &str, custom: bool) -> String {
        let described = (api_version.to_owned(), kind.to_owned());
        let messages = Messages::v1_36();
        let known = messages.of_kind(api_version, kind);
        if let Some(id) = known.filter(|_| !custom) {
            let name = messages.get(id).openapi_name();
            let needed = self.needed.entry(name.clone());
            let (_, kinds) = needed.or_insert_with(|| (id, BTreeSet::new()));
            kinds.insert(described);
            return name;
        }
        let name = custom_name(api_version, kind);
        self.custom.insert(name.clone(), described);
        name
    }

    /// Adds the schema of a kind from its definition.
    fn define(&mut self, kind: &Kind, mut schema: Value) {
        if !schema["properties"].is_object() {
            schema["properties"] = json!({});
        }
        for (member, description) in [("apiVersion", API_VERSION), ("kind", KIND)] {
            let property = json!({"type": "string", "description": description});
            schema["properties"][member] = property;
        }
        let metadata = json!({"description": METADATA, "allOf": [reference(OBJECT_META)]});
        schema["properties"]["metadata"] = metadata;
        if let Some(id) = metadata_message() {
            let needed = self.needed.entry(OBJECT_META.to_owned());
            needed.or_insert_with(|| (id, BTreeSet::new()));
        }
        let name = custom_name(&kind.api_version(), &kind.kind);
        self.defined.insert(name, schema);
    }

    /// Returns all schemas to which the operations refer, directly or indirectly, by name.
    fn write(mut self) -> Value {
        let mut written = Map::new();
        let needed = self.needed.values();
        let mut open: Vec<MessageId> = needed.map(|(id, _)| *id).collect();
        while let Some(id) = open.pop() {
            let name = Messages::v1_36().get(id).openapi_name();
            if written.contains_key(&name) {
                continue;
            }
            let mut schema = object(id, &mut open);
            let needed = self.needed.get(&name);
            if let Some((_, kinds)) = needed.filter(|(_, kinds)| !kinds.is_empty()) {
                schema["x-kubernetes-group-version-kind"] = kinds
                    .iter()
                    .map(|(api_version, kind)| group_version_kind(api_version, kind))
                    .collect();
            }
            written.insert(name, schema);
        }
        for (name, (api_version, kind)) in self.custom {
            let defined = self.defined.remove(&name);
            let mut schema = defined.unwrap_or_else(
                || json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            );
            let kinds = [group_version_kind(&api_version, &kind)];
            schema["x-kubernetes-group-version-kind"] = json!(kinds);
            written.insert(name, schema);
        }
        if self.needs_patch {
            written.insert(PATCH.to_owned(), json!({"type": "object"}));
        }
        Value::Object(written)
    }
}

/// Returns the name of a custom kind's schema, such as `com.example.v1.Widget`.
fn custom_name(api_version: &str, kind: &str) -> String {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let mut name: Vec<&str> = group.rsplit('.').filter(|part| !part.is_empty()).collect();
    name.extend([version, kind]);
    name.join(".")
}

/// Returns the message of every object's `metadata`.
fn metadata_message() -> Option<MessageId> {
    let messages = Messages::v1_36();
    let (api_version, kind) = ANY_KIND;
    let kind = messages.get(messages.of_kind(api_version, kind)?);
    let mut fields = kind.fields.iter();
    match fields.find(|field| field.name == "metadata")?.value {
        Type::Message(id) => Some(id),
        _ => None,
    }
}

/// Returns the OpenAPI schema of a message, and adds the messages to which it refers to `open`.
fn object(id: MessageId, open: &mut Vec<MessageId>) -> Value {
    let messages = Messages::v1_36();
    let message = messages.get(id);
    let mut fields = BTreeMap::new();
    if message.form == Form::Object {
        add_fields(id, &mut fields);
    }
    let mut properties: Map<String, Value> = Map::new();
    if message.is_kind || id == messages.delete_options() {
        for name in ["apiVersion", "kind"] {
            properties.insert(name.to_owned(), json!({"type": "string"}));
        }
    }
    for (name, field) in &fields {
        properties.insert((*name).to_owned(), property(field, open));
    }
    let mut schema = json!({"type": "object", "description": WITHOUT_DESCRIPTIONS});
    if !properties.is_empty() {
        schema["properties"] = Value::Object(properties);
    }
    let required = fields.into_iter().filter(|(_, field)| field.is_required());
    let required: Vec<&str> = required.map(|(name, _)| name).collect();
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if message.is_atomic {
        schema["x-kubernetes-map-type"] = json!("atomic");
    }
    schema
}

/// Adds the fields of a message, and of the messages that are inlined in it, by name.
fn add_fields(id: MessageId, fields: &mut BTreeMap<&'static str, &'static Field>) {
    for field in &Messages::v1_36().get(id).fields {
        match field.value {
            Type::Message(inner) if field.is_inline() => add_fields(inner, fields),
            _ => {
                fields.insert(field.name, field);
            }
        }
    }
}

/// Returns the OpenAPI schema of a field, and adds the message to which it refers to `open`.
fn property(field: &Field, open: &mut Vec<MessageId>) -> Value {
    let mut property = match field.container {
        Container::One => typed(field.value, open),
        Container::List => json!({"type": "array", "items": typed(field.value, open)}),
        Container::Map => {
            json!({"type": "object", "additionalProperties": typed(field.value, open)})
        }
    };
    let strategies: Vec<&str> = field.patch_strategies().collect();
    if !strategies.is_empty() {
        property["x-kubernetes-patch-strategy"] = json!(strategies.join(","));
    }
    if let Some(key) = field.merge_key() {
        property["x-kubernetes-patch-merge-key"] = json!(key);
    }
    match field.list_type() {
        None => {}
        Some(ListType::Atomic) => property["x-kubernetes-list-type"] = json!("atomic"),
        Some(ListType::Set) => property["x-kubernetes-list-type"] = json!("set"),
        Some(ListType::Map(keys)) => {
            property["x-kubernetes-list-type"] = json!("map");
            let keys: Vec<&str> = keys.split(',').collect();
            property["x-kubernetes-list-map-keys"] = json!(keys);
        }
    }
    match field.map_type() {
        None => {}
        Some(MapType::Atomic) => property["x-kubernetes-map-type"] = json!("atomic"),
        Some(MapType::Granular) => property["x-kubernetes-map-type"] = json!("granular"),
    }
    property
}

/// Returns the OpenAPI schema of a single value, and adds the message to which it refers to `open`.
fn typed(value: Type, open: &mut Vec<MessageId>) -> Value {
    let scalar = |name: &str, format: &str| json!({"type": name, "format": format});
    let id = match value {
        Type::Bool => return json!({"type": "boolean"}),
        Type::Bytes => return scalar("string", "byte"),
        Type::Double => return scalar("number", "double"),
        Type::Int32 => return scalar("integer", "int32"),
        Type::Int64 => return scalar("integer", "int64"),
        Type::Text => return json!({"type": "string"}),
        Type::Message(id) => id,
    };
    let message = Messages::v1_36().get(id);
    match message.form {
        Form::IntOrString => {
            let types = json!([{"type": "integer"}, {"type": "string"}]);
            json!({"oneOf": types, "format": "int-or-string"})
        }
        Form::MicroTime | Form::Time => scalar("string", "date-time"),
        Form::Quantity => json!({"type": "string"}),
        Form::List => message.fields.first().map_or_else(
            || json!({}),
            |items| json!({"type": "array", "items": typed(items.value, open)}),
        ),
        Form::Object | Form::Either | Form::Json => {
            open.push(id);
            json!({"allOf": [reference(&message.openapi_name())]})
        }
    }
}
