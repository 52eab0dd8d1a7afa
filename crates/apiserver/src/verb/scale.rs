//! Reads and writes the `scale` subresource, which represents the replicas of an object as a `Scale`.
//!
//! Guarantees:
//! - a `Scale` has the revision and the uid of its object. A write that contains another revision or uid is
//!   rejected with a conflict;
//! - a write changes only the desired replicas of the object: `spec.replicas`, or the field that the
//!   definition of a custom kind names.

mod owners;

use serde_json::{Value, json};

use super::apply::{Applied, Apply};
use super::patch::PatchBody;
use super::update::{change, check_path, check_uid};
use super::write::{How, Subject, Tracking};
use crate::kinds::Subresource;
use crate::object::Object;
use crate::resource::Resource;
use crate::shared::Shared;
use crate::status::{ApiError, FieldError};
use crate::typed::{self, ValueType};

use owners::{ScaleWrite, write_scale};

/// Replicas of a `Scale` if the object lacks the field. The value is that of Kubernetes' `invalidSpecReplicas`.
const UNSET: i64 = i32::MIN as i64;

/// Returns the `Scale` of an object.
///
/// # Errors
///
/// Returns a 500 error, as Kubernetes does, if an object of a custom kind lacks the field of the replicas.
pub(crate) fn read(shared: &Shared, subject: Subject<'_>) -> Result<Value, ApiError> {
    let (_, object) = subject.read(shared)?;
    let scale = scale_of(subject.resource, &object);
    match &subject.resource.kind.scale {
        Some(paths) if scale["spec"]["replicas"] == UNSET => {
            let path = &paths.replicas;
            let why = format!("the spec replicas field {path:?} does not exist");
            Err(ApiError::internal(&why))
        }
        _ => Ok(shown(scale)),
    }
}

/// Handles a PUT of a `Scale`, and returns the resulting `Scale`.
pub(crate) fn update(
    shared: &Shared,
    subject: Subject<'_>,
    scale: &Value,
    how: How<'_>,
) -> Result<Value, ApiError> {
    let members = scale.as_object().cloned().unwrap_or_default();
    check_path(subject, &Object::stored(members))?;
    write(shared, subject, how, |object| {
        let replaced = ScaleWrite::Update(scale.clone());
        owned(shared, subject, object, replaced, how)
    })
}

/// Handles an apply of a `Scale`, and returns the resulting `Scale`.
pub(crate) fn apply(
    shared: &Shared,
    subject: Subject<'_>,
    (applied, options): (&Applied, Apply<'_>),
    how: How<'_>,
) -> Result<Value, ApiError> {
    let kind = Subresource::scale().expected_kind();
    let value_type = ValueType::of(&kind);
    let how = How {
        tracking: Tracking::By(options.manager),
        ..how
    };
    write(shared, subject, how, |object| {
        let apply = ScaleWrite::Apply {
            patch: &applied.value,
            force: options.force,
        };
        let (scale, owners) = owned(shared, subject, object, apply, how)?;
        options.judge(applied)?;
        let text = scale.to_string();
        let decoded = typed::convert(scale, value_type);
        let fault = decoded.fault.map(|fault| fault.message);
        let scale = Object::of(&kind, decoded.value, fault);
        let scale = scale.map_err(|error| ApiError::no_such_object(&text, &error.why()))?;
        check_path(subject, &scale)?;
        Ok((scale.into_value(), owners))
    })
}

/// Returns a `Scale` after a write, and the owners of the fields of its object.
fn owned(
    shared: &Shared,
    subject: Subject<'_>,
    object: &Object,
    write: ScaleWrite<'_>,
    how: How<'_>,
) -> Result<(Value, Option<Value>), ApiError> {
    match (how.tracking, write) {
        (Tracking::By(name), write) => {
            let scale = shown(scale_of(subject.resource, object));
            write_scale(shared, subject.resource, (object, scale), write, name)
        }
        (_, ScaleWrite::Update(scale)) => Ok((scale, object.meta("managedFields").cloned())),
        (_, ScaleWrite::Apply { .. }) => Err(ApiError::unsupported_patch()),
    }
}

/// Handles a PATCH of a `Scale`, and returns the resulting `Scale`.
pub(crate) fn patch(
    shared: &Shared,
    subject: Subject<'_>,
    patch: &PatchBody,
    how: How<'_>,
) -> Result<Value, ApiError> {
    let kind = Subresource::scale().expected_kind();
    let value_type = ValueType::of(&kind);
    let of_owner = if subject.resource.kind.custom {
        // A strategic merge patch of the scale of a custom object is rejected, as one of the object.
        ValueType::Custom
    } else {
        value_type
    };
    write(shared, subject, how, |object| {
        let mut scale = scale_of(subject.resource, object);
        patch.apply(of_owner, &mut scale)?;
        let text = scale.to_string();
        let decoded = patch.decode(scale, value_type);
        let scale = patch.result(&kind, &text, decoded.value, decoded.fault)?;
        let patched = ScaleWrite::Update(scale.into_value());
        owned(shared, subject, object, patched, how)
    })
}

fn write(
    shared: &Shared,
    subject: Subject<'_>,
    how: How<'_>,
    compute: impl Fn(&Object) -> Result<(Value, Option<Value>), ApiError>,
) -> Result<Value, ApiError> {
    let done = match how.tracking {
        Tracking::Off => how,
        _ => How {
            tracking: Tracking::Done,
            ..how
        },
    };
    let entry = change(shared, subject, done, |object| {
        let (scale, owners) = compute(object)?;
        let uid = scale["metadata"]["uid"].as_str().unwrap_or_default();
        check_uid(subject, uid, object.text("uid"), how)?;
        let replicas = match &scale["spec"]["replicas"] {
            Value::Null => 0,
            replicas if *replicas == UNSET => {
                let path = subject.resource.kind.scale.as_ref();
                let path = path.map_or(".spec.replicas", |paths| &paths.replicas);
                let why = format!("the spec replicas field {path:?} cannot be empty");
                return Err(ApiError::bad_request(why));
            }
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
        let path = subject.resource.kind.scale.as_ref();
        let path = path.map_or("spec.replicas", |paths| &paths.replicas);
        let mut scaled = with_field(object, path, json!(replicas));
        scaled.set_meta("managedFields", owners);
        let revision = scale["metadata"]["resourceVersion"]
            .as_str()
            .filter(|text| !text.is_empty());
        if let Some(revision) = revision {
            scaled.set_meta("resourceVersion", Some(json!(revision)));
        }
        Ok(scaled)
    })?;
    let object = Object::stored(entry.object(subject.resource));
    Ok(shown(scale_of(subject.resource, &object)))
}

/// Removes [`UNSET`] replicas from a `Scale`.
fn shown(mut scale: Value) -> Value {
    if scale["spec"]["replicas"] == UNSET {
        scale["spec"] = json!({});
    }
    scale
}

/// Returns a field of an object, such as `.spec.replicas`.
fn field<'a>(object: &'a Object, path: &str) -> Option<&'a Value> {
    let mut names = path.trim_start_matches('.').split('.');
    let first = object.get(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name))
}

/// Returns a copy of `object` with another value of a field, such as `.spec.replicas`.
fn with_field(object: &Object, path: &str, value: Value) -> Object {
    let names: Vec<&str> = path.trim_start_matches('.').split('.').collect();
    let [first, rest @ ..] = names.as_slice() else {
        return object.clone();
    };
    let mut changed = object.clone();
    let mut part = object.part(first);
    let mut at = &mut part;
    for name in rest {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[*name];
    }
    *at = value;
    changed.set(first, Some(part));
    changed
}

/// Returns the `Scale` of an object. Its `spec.replicas` are [`UNSET`] if an object of a custom kind lacks the
/// field.
fn scale_of(resource: &Resource, object: &Object) -> Value {
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
    let paths = resource.kind.scale.as_ref();
    let number = |path: &str| field(object, path).and_then(Value::as_i64);
    let current = paths.map_or(".status.replicas", |paths| &paths.current_replicas);
    let mut scale = json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": metadata,
        "spec": {},
        "status": {"replicas": number(current).unwrap_or(0)},
    });
    // Go omits these members if they are empty. An absent `spec.replicas` of a built-in object means one replica.
    let replicas = match paths {
        Some(paths) => number(&paths.replicas).unwrap_or(UNSET),
        None => number(".spec.replicas").unwrap_or(1),
    };
    if replicas != 0 {
        scale["spec"]["replicas"] = json!(replicas);
    }
    let selector = match paths {
        Some(paths) => {
            let selector = field(object, &paths.selector).and_then(Value::as_str);
            selector.unwrap_or_default().to_owned()
        }
        None => selector_of(object),
    };
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
