//! Checks objects that are embedded in other objects (`x-kubernetes-embedded-resource`).
//!
//! Guarantees: after [`coerce`], `apiVersion` and `kind` of an embedded object are strings, and its `metadata`
//! has only the members and JSON types of Kubernetes' `ObjectMeta`.

use serde_json::{Map, Value};

use super::Schema;
use super::outcome::{ErrorList, shown};
use super::walk::{Visited, Walk};
use crate::metadata::MetadataRules;
use crate::name_syntax::{NameRule, dns_1035_faults};
use crate::object::Object;
use crate::quote::Quoted;
use crate::status::FieldError;
use crate::typed::{self, ValueType};

/// What to do with a member of a wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    /// Reject the object.
    Reject,
    /// Remove the member, as for an object that is already stored.
    Drop,
}

/// Maximum number of unknown members that are reported. Kubernetes has no such limit here.
const UNKNOWN_MAX: usize = 100;

/// Removes unknown members from the metadata of each embedded object.
///
/// Returns the paths of at most 100 removed members, such as `spec.template.metadata.unknown`. If
/// `is_resource` is set, the object itself counts as an embedded object.
///
/// # Errors
///
/// Returns an error if `apiVersion`, `kind` or `metadata` of an embedded object has a wrong type, and
/// `malformed` is [`Malformed::Reject`].
pub(super) fn coerce(
    schema: &Schema,
    members: &mut Map<String, Value>,
    is_resource: bool,
    malformed: Malformed,
) -> Result<Vec<String>, FieldError> {
    let mut coercion = Coercion {
        malformed,
        path: String::new(),
        unknown: Vec::new(),
    };
    coercion.members(schema, members, is_resource || schema.embeds)?;
    Ok(coercion.unknown)
}

/// Does the same with a value, and the objects that are embedded in it. `path` is the path of the value.
pub(super) fn coerce_value(
    schema: &Schema,
    value: &mut Value,
    path: String,
    malformed: Malformed,
) -> Result<(), FieldError> {
    let mut coercion = Coercion {
        malformed,
        path,
        unknown: Vec::new(),
    };
    coercion.value(schema, value)
}

struct Coercion {
    malformed: Malformed,
    /// Path of the current value.
    path: String,
    unknown: Vec<String>,
}

impl Coercion {
    fn below<T>(&mut self, step: &str, go: impl FnOnce(&mut Coercion) -> T) -> T {
        let length = self.path.len();
        self.path.push_str(step);
        let done = go(self);
        self.path.truncate(length);
        done
    }

    fn members(
        &mut self,
        schema: &Schema,
        members: &mut Map<String, Value>,
        embeds: bool,
    ) -> Result<(), FieldError> {
        if embeds {
            self.types(members)?;
            self.metadata(members)?;
        }
        for (name, value) in members {
            let Some((below, step)) = schema.step(name, &self.path) else {
                continue;
            };
            self.below(&step, |this| this.value(below, value))?;
        }
        Ok(())
    }

    fn value(&mut self, schema: &Schema, value: &mut Value) -> Result<(), FieldError> {
        match value {
            Value::Object(members) => self.members(schema, members, schema.embeds),
            Value::Array(items) => {
                let Some(below) = &schema.items else {
                    return Ok(());
                };
                for (at, item) in items.iter_mut().enumerate() {
                    self.below(&format!("[{at}]"), |this| this.value(below, item))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn types(&mut self, members: &mut Map<String, Value>) -> Result<(), FieldError> {
        for name in ["apiVersion", "kind"] {
            let Some(value) = members.get(name).filter(|value| !value.is_string()) else {
                continue;
            };
            if self.malformed == Malformed::Reject {
                let field = child(&self.path, name);
                return Err(FieldError::invalid(field, shown(value), "must be a string"));
            }
            members.remove(name);
        }
        Ok(())
    }

    fn metadata(&mut self, members: &mut Map<String, Value>) -> Result<(), FieldError> {
        let Some(metadata) = members.get_mut("metadata") else {
            return Ok(());
        };
        if self.malformed == Malformed::Drop
            && let Value::Object(metadata) = metadata
        {
            metadata.retain(|name, value| {
                let alone = Value::Object(Map::from_iter([(name.clone(), value.clone())]));
                typed::metadata_fault(&alone).is_none()
            });
        }
        if let Some(why) = typed::metadata_fault(metadata) {
            if self.malformed == Malformed::Drop {
                return Ok(());
            }
            let field = child(&self.path, "metadata");
            return Err(FieldError::invalid(field, shown(metadata), &why));
        }
        if metadata.is_null() {
            *metadata = Value::Object(Map::new());
        }
        let decoded = typed::decode(metadata.take(), ValueType::metadata());
        for name in decoded.complaints.unknown() {
            if self.unknown.len() < UNKNOWN_MAX {
                let path = format!("{}.{name}", child(&self.path, "metadata"));
                self.unknown.push(path);
            }
        }
        *metadata = decoded.value;
        if let Value::Object(metadata) = metadata {
            typed::complete_metadata(metadata);
        }
        Ok(())
    }
}

/// Returns the errors of the embedded objects in an object.
pub(super) fn validate(schema: &Schema, object: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors = ErrorList::default();
    Walk::new(String::new(), check(&mut errors)).object(schema, object);
    errors.into()
}

/// Returns the errors of the embedded objects in a value. `path` is the path of the value.
pub(super) fn validate_value(schema: &Schema, value: &Value, path: String) -> Vec<FieldError> {
    let mut errors = ErrorList::default();
    Walk::new(path, check(&mut errors)).value(schema, value);
    errors.into()
}

/// Returns a function that adds the errors of the embedded objects that it visits.
fn check(errors: &mut ErrorList) -> impl FnMut(&Schema, Visited<'_>, &str) -> bool {
    |schema, visited, path| {
        if let Visited::Object(members) = visited
            && schema.embeds
        {
            validate_one(members, path, errors);
        }
        !errors.is_full()
    }
}

/// Validates one embedded object (`validateEmbeddedResource`).
fn validate_one(members: &Map<String, Value>, path: &str, errors: &mut ErrorList) {
    for name in ["apiVersion", "kind"] {
        let field = child(path, name);
        match members.get(name) {
            None => errors.push(FieldError::required(field, "")),
            Some(Value::String(text)) => {
                if let Some(why) = type_fault(name, text) {
                    errors.push(FieldError::invalid(field, Quoted(text), &why));
                }
            }
            Some(other) => {
                errors.push(FieldError::invalid(field, shown(other), "must be a string"));
            }
        }
    }
    let Some(metadata) = members.get("metadata") else {
        return;
    };
    let field = child(path, "metadata");
    if let Some(why) = typed::metadata_fault(metadata) {
        errors.push(FieldError::invalid(field, shown(metadata), &why));
        return;
    }
    let alone = Map::from_iter([("metadata".to_owned(), metadata.clone())]);
    let mut object = Object::stored(alone);
    if object.text("name").is_empty() {
        object.set_meta("name", Some(Value::from("fakename")));
    }
    let rules = MetadataRules {
        names: NameRule::PathSegment,
        ..MetadataRules::GENERIC
    };
    for error in rules.check_new(&object) {
        errors.push(FieldError {
            field: child(path, &error.field).into(),
            ..error
        });
    }
}

fn child(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Returns the error in the `apiVersion` or the `kind` of an embedded object.
fn type_fault(name: &str, text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("must not be empty".to_owned());
    }
    if name == "apiVersion" {
        let is_version = text.matches('/').count() < 2;
        return (!is_version).then(|| format!("unexpected GroupVersion string: {text}"));
    }
    let faults = dns_1035_faults(&text.to_lowercase());
    let lead = "may have mixed case, but should otherwise match: ";
    (!faults.is_empty()).then(|| format!("{lead}{}", faults.join(",")))
}
