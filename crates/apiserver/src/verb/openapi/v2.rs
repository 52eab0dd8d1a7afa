//! Builds the document at `/openapi/v2`, which Go clients and older tools request, from those of version 3.
//!
//! Guarantees:
//! - the document has the paths, operations and schemas of all documents of version 3;
//! - the schema of a definition lacks what version 2 can't express, as in Kubernetes' `ToStructuralOpenAPIV2`.

use serde_json::{Map, Value, json};

use super::SCHEMAS;

/// Prefix of a `$ref` to a schema in the document.
const DEFINITIONS: &str = "#/definitions/";

/// Members of a schema that version 2 does not have, and `default`, which Kubernetes leaves out too.
const UNSUPPORTED: [&str; 5] = ["allOf", "anyOf", "default", "not", "oneOf"];

/// Returns the document of all groups, given their documents of version 3.
pub(crate) fn document(documents: impl IntoIterator<Item = Value>) -> Value {
    let (mut paths, mut definitions) = (Map::new(), Map::new());
    for mut document in documents {
        for (path, item) in members(document["paths"].take()) {
            paths.insert(path, path_item(item));
        }
        for (name, mut schema) in members(document["components"]["schemas"].take()) {
            convert(&mut schema);
            definitions.insert(name, schema);
        }
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1.36.3"},
        "paths": paths,
        "definitions": definitions,
    })
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Converts the operations of a path, and its parameters.
fn path_item(item: Value) -> Value {
    let converted = members(item).into_iter().map(|(member, value)| {
        let value = match member.as_str() {
            "parameters" => parameters(value).into(),
            _ => operation(value),
        };
        (member, value)
    });
    Value::Object(converted.collect())
}

fn operation(mut operation: Value) -> Value {
    let content = operation["responses"]["200"]["content"].take();
    if let Value::Object(response) = &mut operation["responses"]["200"] {
        response.remove("content");
        if let Some((_, body)) = members(content).into_iter().next() {
            response.insert("schema".to_owned(), converted(body["schema"].clone()));
        }
    }
    operation["produces"] = json!(["application/json"]);
    let body = operation
        .as_object_mut()
        .and_then(|it| it.remove("requestBody"));
    let mut sent = parameters(operation["parameters"].take());
    if let Some(mut body) = body {
        let content = members(body["content"].take());
        operation["consumes"] = content.keys().cloned().collect();
        let schema = content
            .into_iter()
            .next()
            .map(|(_, body)| body["schema"].clone());
        let schema = converted(schema.unwrap_or_default());
        sent.insert(
            0,
            json!({"name": "body", "in": "body", "required": true, "schema": schema}),
        );
    }
    match &mut operation {
        Value::Object(members) if sent.is_empty() => {
            members.remove("parameters");
        }
        operation => operation["parameters"] = Value::Array(sent),
    }
    operation
}

/// Moves the type of each parameter out of its schema.
fn parameters(parameters: Value) -> Vec<Value> {
    let Value::Array(mut parameters) = parameters else {
        return Vec::new();
    };
    for parameter in &mut parameters {
        let schema = parameter.as_object_mut().and_then(|it| it.remove("schema"));
        parameter["type"] = schema
            .map(|schema| schema["type"].clone())
            .unwrap_or_default();
        parameter["uniqueItems"] = json!(true);
    }
    parameters
}

fn converted(mut schema: Value) -> Value {
    convert(&mut schema);
    schema
}

/// Converts a schema to one of version 2.
fn convert(schema: &mut Value) {
    let Value::Object(members) = schema else {
        return;
    };
    if let Some(reference) = reference(members) {
        let target = reference.strip_prefix(SCHEMAS).unwrap_or(&reference);
        let target = format!("{DEFINITIONS}{target}");
        members.insert("$ref".to_owned(), Value::from(target));
    }
    for member in UNSUPPORTED {
        members.remove(member);
    }
    let has =
        |members: &Map<String, Value>, member: &str| members.get(member) == Some(&json!(true));
    if members.get("format") == Some(&json!("int-or-string")) {
        members.insert("type".to_owned(), json!("string"));
    }
    let is_any = has(members, "x-kubernetes-preserve-unknown-fields");
    let is_nullable = members.remove("nullable") == Some(json!(true));
    // kubectl expects no items or properties in a schema without a type.
    if is_nullable || is_any {
        members.remove("items");
        members.remove("properties");
    }
    let is_type = |members: &Map<String, Value>, name| members.get("type") == Some(&json!(name));
    let is_open = is_type(members, "array") && !members.contains_key("items");
    if is_nullable || is_open || is_any && is_type(members, "object") {
        members.remove("type");
    }
    leave_out_nullable(members);
    for member in ["items", "additionalProperties"] {
        if let Some(inner) = members.get_mut(member) {
            convert(inner);
        }
    }
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.values_mut().for_each(convert);
    }
}

/// Removes the properties that can be null from those that are required.
fn leave_out_nullable(members: &mut Map<String, Value>) {
    let Some(Value::Array(mut required)) = members.remove("required") else {
        return;
    };
    let is_nullable = |schema: Option<&Value>| schema.is_some_and(|it| it["nullable"] == true);
    let properties = members.get("properties");
    required.retain(|name| {
        let property = properties.and_then(|all| all.get(name.as_str()?));
        !is_nullable(property)
    });
    if !required.is_empty() && !is_nullable(members.get("additionalProperties")) {
        members.insert("required".to_owned(), Value::Array(required));
    }
}

/// Returns the schema to which a schema refers directly, or as the only part of `allOf`.
fn reference(members: &Map<String, Value>) -> Option<String> {
    let inner = || members.get("allOf")?.as_array()?.first()?.get("$ref");
    let found = members.get("$ref").or_else(inner)?;
    // In a schema of JSON schemas, `$ref` is a property and not a reference.
    found.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_lack_what_version_2_can_not_express() {
        // The rows of `TestToStructuralOpenAPIV2` of apiextensions-apiserver.
        for (schema, expected) in [
            (
                json!({"type": "object", "nullable": true, "properties": {"a": {}}}),
                json!({}),
            ),
            (
                json!({"type": "array", "nullable": true, "items": {"type": "string"}}),
                json!({}),
            ),
            (
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {}}}),
                json!({"x-kubernetes-preserve-unknown-fields": true}),
            ),
            (json!({"type": "array"}), json!({})),
            (
                json!({"type": "object", "required": ["a", "b"], "properties": {
                    "a": {"type": "string", "nullable": true}, "b": {"type": "string", "pattern": "x"}}}),
                json!({"type": "object", "required": ["b"], "properties": {
                    "a": {}, "b": {"type": "string", "pattern": "x"}}}),
            ),
            (
                json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}], "x-kubernetes-int-or-string": true}}}),
                json!({"type": "object", "properties": {"a": {"x-kubernetes-int-or-string": true}}}),
            ),
            (
                json!({"type": "object", "properties": {"default": {"type": "string", "default": "x"}}}),
                json!({"type": "object", "properties": {"default": {"type": "string"}}}),
            ),
            (
                json!({"description": "d", "allOf": [{"$ref": "#/components/schemas/x.Y"}]}),
                json!({"description": "d", "$ref": "#/definitions/x.Y"}),
            ),
        ] {
            assert_eq!(converted(schema.clone()), expected, "{schema}");
        }
    }
}
