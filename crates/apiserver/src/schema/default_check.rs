//! Validates the defaults of a schema, when a definition is created or changed.
//!
//! Guarantees: the errors are those of `ValidateDefaults` in Kubernetes. Members are visited by name.

use serde_json::{Map, Value, json};

use super::defaults::Step;
use super::embedded::{self, Malformed};
use super::outcome::shown;
use super::shape::Unknown;
use super::validate::{Form, Validator};
use super::{Schema, cel};
use crate::status::FieldError;

/// Members of an embedded object whose defaults are validated together with the object.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Text of the error about a default with unknown members.
pub(crate) const UNKNOWN_MEMBERS: &str = "must not have unknown fields";

/// Returns the errors of the defaults in a schema, given as JSON at `path` of a definition.
///
/// Returns none if the schema can't be read. With `requires_pruned`, a default must not have unknown members.
pub(crate) fn default_errors(json: &Value, path: &str, requires_pruned: bool) -> Vec<FieldError> {
    let Ok(mut root) = Schema::parse(json.clone()) else {
        return Vec::new();
    };
    root.embeds = true;
    let mut check = Check {
        requires_pruned,
        path: path.to_owned(),
        errors: Vec::new(),
    };
    check.node(&root, json, &mut Place::of(&root));
    check.errors
}

struct Check {
    requires_pruned: bool,
    /// Path of the current node in the definition.
    path: String,
    errors: Vec<FieldError>,
}

/// The place of a node in the closest embedded object around it.
struct Place<'a> {
    resource: &'a Schema,
    steps: Vec<Step>,
    is_inside_meta: bool,
}

impl<'a> Place<'a> {
    fn of(resource: &'a Schema) -> Place<'a> {
        Place {
            resource,
            steps: Vec::new(),
            is_inside_meta: false,
        }
    }

    /// Returns an object with a type and with `value` at this place.
    fn object(&self, value: Value) -> Map<String, Value> {
        let Value::Object(mut object) = Step::around(&self.steps, value) else {
            return Map::new();
        };
        for (name, value) in [("apiVersion", "validation/v1"), ("kind", "Validation")] {
            object.entry(name).or_insert_with(|| json!(value));
        }
        object
    }
}

impl Check {
    fn node<'a>(&mut self, node: &'a Schema, json: &Value, place: &mut Place<'a>) {
        let mut own = Place::of(node);
        let place = if node.embeds { &mut own } else { place };
        if let Some(default) = &node.default {
            self.below(".default", |check| {
                check.default(node, json, &default.value, place);
            });
        }
        if let Some(items) = &node.items {
            place.steps.push(Step::Item);
            self.below(".items", |check| check.node(items, &json["items"], place));
            place.steps.pop();
        }
        for (name, property) in &node.properties {
            let was_inside = place.is_inside_meta;
            place.is_inside_meta |= node.embeds && META.contains(&name.as_str());
            place.steps.push(Step::Property(name.clone()));
            let step = format!(".properties[{name}]");
            let json = &json["properties"][name];
            self.below(&step, |check| check.node(property, json, place));
            place.steps.pop();
            place.is_inside_meta = was_inside;
        }
    }

    fn below(&mut self, step: &str, go: impl FnOnce(&mut Check)) {
        let length = self.path.len();
        self.path.push_str(step);
        go(self);
        self.path.truncate(length);
    }

    fn default(&mut self, node: &Schema, json: &Value, default: &Value, place: &Place<'_>) {
        let found = if place.is_inside_meta {
            self.metadata_errors(default, place)
        } else {
            self.embedded_errors(node, default)
        };
        let is_valid = found.is_empty();
        self.errors.extend(found);
        if is_valid {
            let found =
                Validator::validate(&self.path, node, default, None, Form::Default).into_errors();
            let is_valid = found.is_empty();
            self.errors.extend(found);
            if is_valid && !node.rules.is_empty() {
                self.rule_errors(json, default, place);
            }
        }
    }

    /// Returns the error of a default below the metadata of an embedded object.
    fn metadata_errors(&self, default: &Value, place: &Place<'_>) -> Vec<FieldError> {
        let mut object = place.object(default.clone());
        let invalid = |why: String| {
            let why = format!("must result in valid metadata: {why}");
            vec![FieldError::invalid(self.path.clone(), shown(default), &why)]
        };
        match embedded::coerce(place.resource, &mut object, true, Malformed::Reject) {
            Err(error) => invalid(FieldError::list(&[error])),
            Ok(_) => match embedded::validate(place.resource, &object) {
                errors if errors.is_empty() => errors,
                errors => invalid(FieldError::list(&errors)),
            },
        }
    }

    /// Returns the errors about unknown members of a default, and about objects embedded in it.
    fn embedded_errors(&mut self, node: &Schema, default: &Value) -> Vec<FieldError> {
        let whole = || Map::from_iter([("default".to_owned(), default.clone())]);
        let alone = Schema::with_property("default", node);
        let mut unknown = Unknown::default();
        alone.prune(&mut whole(), &mut unknown);
        let mut coerced = whole();
        let outcome = embedded::coerce(&alone, &mut coerced, false, Malformed::Reject);
        if self.requires_pruned && !unknown.found.is_empty() {
            // As in Kubernetes, the message has the metadata without what is unknown in it.
            let value = shown(&coerced["default"]);
            let error = FieldError::invalid(self.path.clone(), value, UNKNOWN_MEMBERS);
            self.errors.push(error);
        }
        let above = self.path.strip_suffix("default").unwrap_or_default();
        let placed = |error: FieldError| FieldError {
            field: format!("{above}{}", error.field).into(),
            ..error
        };
        if let Err(error) = outcome {
            return vec![placed(error)];
        }
        let errors = embedded::validate(&alone, &coerced);
        errors.into_iter().map(placed).collect()
    }

    /// Adds the errors of the node's rules, both for a new value and for one that does not change.
    fn rule_errors(&mut self, json: &Value, default: &Value, place: &Place<'_>) {
        let rules = cel::Validator::new(json, place.steps.is_empty());
        let mut found = rules.validate(default, Some(default)).errors;
        if found.is_empty() {
            found = rules.validate(default, None).errors;
        }
        let path = &self.path;
        self.errors.extend(found.into_iter().map(|error| {
            FieldError {
                field: match error.field.as_str() {
                    "<nil>" => path.clone(),
                    below if below.starts_with('[') => format!("{path}{below}"),
                    below => format!("{path}.{below}"),
                }
                .into(),
                reason: error.reason,
                body: error.body,
            }
        }));
    }
}
