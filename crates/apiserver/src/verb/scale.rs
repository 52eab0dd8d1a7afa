//! Reads and writes the `scale` subresource, which represents the replicas of an object as a `Scale`.
//!
//! Guarantees:
//! - a `Scale` has the revision and the uid of its object. A write that contains another revision or uid is
//!   rejected with a conflict;
//! - a write changes only `spec.replicas` of the object.

use serde_json::{Value, json};

use super::patch::PatchBody;
use super::update::{change, check_path, check_uid};
use super::write::{How, Subject};
use crate::kinds::schema::Schema;
use crate::object::Object;
use crate::shared::Shared;
use crate::status::{ApiError, FieldError};

/// Returns the `Scale` of an object.
pub(crate) fn read(shared: &Shared, subject: Subject<'_>) -> Result<Value, ApiError> {
    let (_, object) = subject.read(shared)?;
    Ok(scale_of(&object))
}

/// Handles a PUT of a `Scale`, and returns the resulting `Scale`.
pub(crate) fn update(
    shared: &Shared,
    subject: Subject<'_>,
    scale: &Value,
    how: How,
) -> Result<Value, ApiError> {
    let members = scale.as_object().cloned().unwrap_or_default();
    check_path(subject, &Object::stored(members))?;
    write(shared, subject, how, |_| Ok(scale.clone()))
}

/// Handles a PATCH of a `Scale`, and returns the resulting `Scale`.
pub(crate) fn patch(
    shared: &Shared,
    subject: Subject<'_>,
    patch: &PatchBody,
    how: How,
) -> Result<Value, ApiError> {
    let is_custom = subject.resource.kind.custom;
    let definition = || {
        let found = Schema::builtin().of_kind("autoscaling/v1", "Scale");
        found.filter(|_| !is_custom)
    };
    write(shared, subject, how, |object| {
        let mut scale = scale_of(object);
        patch.apply(definition, &mut scale)?;
        Ok(scale)
    })
}

fn write(
    shared: &Shared,
    subject: Subject<'_>,
    how: How,
    compute: impl Fn(&Object) -> Result<Value, ApiError>,
) -> Result<Value, ApiError> {
    let entry = change(shared, subject, how, |object| {
        let scale = compute(object)?;
        let uid = scale["metadata"]["uid"].as_str().unwrap_or_default();
        check_uid(subject, uid, object.text("uid"), how)?;
        let replicas = match &scale["spec"]["replicas"] {
            Value::Null => 0,
            replicas => replicas
                .as_i64()
                .filter(|replicas| *replicas >= 0)
                .ok_or_else(|| {
                    let error = FieldError::invalid(
                        "spec.replicas",
                        replicas,
                        "must be greater than or equal to 0",
                    );
                    ApiError::invalid_scale(subject.name, &[error])
                })?,
        };
        let mut scaled = object.clone();
        let mut spec = object.part("spec");
        spec["replicas"] = json!(replicas);
        scaled.set("spec", Some(spec));
        let revision = scale["metadata"]["resourceVersion"]
            .as_str()
            .filter(|text| !text.is_empty());
        if let Some(revision) = revision {
            scaled.set_meta("resourceVersion", Some(json!(revision)));
        }
        Ok(scaled)
    })?;
    Ok(scale_of(&Object::stored(entry.object(subject.resource))))
}

fn scale_of(object: &Object) -> Value {
    let metadata: serde_json::Map<String, Value> = [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ]
    .into_iter()
    .filter_map(|member| Some((member.to_owned(), object.meta(member)?.clone())))
    .collect();
    let number = |part: &str| object.get(part).and_then(|part| part["replicas"].as_i64());
    let mut scale = json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": metadata,
        "spec": {},
        "status": {"replicas": number("status").unwrap_or(0)},
    });
    // Go omits these members if they are empty. An absent `spec.replicas` of the object means one replica.
    let replicas = number("spec").unwrap_or(1);
    if replicas != 0 {
        scale["spec"]["replicas"] = json!(replicas);
    }
    let selector = selector_of(object);
    if !selector.is_empty() {
        scale["status"]["selector"] = json!(selector);
    }
    scale
}

/// Returns `spec.selector` as text such as `app=a,tier in (b,c)`, sorted by label.
fn selector_of(object: &Object) -> String {
    let Some(selector) = object.get("spec").map(|spec| &spec["selector"]) else {
        return String::new();
    };
    let expressions = selector["matchExpressions"].as_array();
    let is_map = expressions.is_none() && !selector["matchLabels"].is_object();
    let labels = if is_map {
        selector.as_object()
    } else {
        selector["matchLabels"].as_object()
    };
    let labels = labels.into_iter().flatten();
    let labels = labels.filter_map(|(label, value)| {
        let term = format!("{label}={}", value.as_str()?);
        Some((label.as_str(), term))
    });
    let expressions = expressions.into_iter().flatten();
    let mut terms: Vec<_> = labels.chain(expressions.filter_map(term)).collect();
    terms.sort_by_key(|(label, _)| *label);
    let terms: Vec<_> = terms.into_iter().map(|(_, term)| term).collect();
    terms.join(",")
}

/// Returns the label key of one item of `matchExpressions`, and the item as text, such as `app in (a,b)`.
///
/// Returns `None` if the item is invalid.
fn term(expression: &Value) -> Option<(&str, String)> {
    let label = expression["key"].as_str()?;
    let values = expression["values"].as_array().into_iter().flatten();
    let mut values: Vec<_> = values.filter_map(Value::as_str).collect();
    values.sort_unstable();
    let values = values.join(",");
    let term = match expression["operator"].as_str()? {
        "In" => format!("{label} in ({values})"),
        "NotIn" => format!("{label} notin ({values})"),
        "Exists" => label.to_owned(),
        "DoesNotExist" => format!("!{label}"),
        _ => return None,
    };
    Some((label, term))
}
