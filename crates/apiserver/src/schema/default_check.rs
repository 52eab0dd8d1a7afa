//! Validates the defaults of a schema, when a definition is created or changed.
//!
//! Guarantees:
//! - the errors are those of `ValidateDefaults` in Kubernetes. Members are visited by name;
//! - the rules of all defaults together have the cost limit of one object, as in Kubernetes. The checks without rules
//!   are limited in the same way, which is a limit of our own.

use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::Schema;
use super::cel::{self, Budget, Rules};
use super::embedded::{self, Malformed};
use super::outcome::shown;
use super::place::{Place, Step};
use super::shape::{self, Unknown};
use super::validate::{CHECKS_MAX, Form, Validator};
use crate::status::FieldError;

/// Adds the errors of the defaults in a schema, given as JSON at `path` of a definition.
///
/// Adds none if the schema can't be read. With `requires_pruned`, a default must not have unknown members.
/// `add` returns whether further errors are wanted.
pub(crate) fn default_errors(
    json: &Value,
    path: &str,
    requires_pruned: bool,
    add: &mut dyn FnMut(FieldError) -> bool,
) {
    let Ok(mut root) = Schema::parse(json) else {
        return;
    };
    root.embeds = true;
    if !root.any(&|node| node.default.is_some()) {
        return;
    }
    let rules = cel::Validator::new(json, true);
    let mut check = Check {
        requires_pruned,
        path: path.to_owned(),
        add,
        checks: CHECKS_MAX,
        budget: Budget::OF_OBJECT,
    };
    // Where the walk ends has no meaning.
    let _ = check.node(&root, rules.rules(), &mut Place::of(&root));
}

/// Returns whether a schema, given as JSON, has defaults with unknown members.
pub(crate) fn has_unpruned_defaults(json: &Value) -> bool {
    Schema::parse(json).is_ok_and(|schema| schema.has_unpruned_defaults())
}

struct Check<'c> {
    requires_pruned: bool,
    /// Path of the current node in the definition.
    path: String,
    add: &'c mut dyn FnMut(FieldError) -> bool,
    /// Number of checks that are left.
    checks: usize,
    /// What is left for the rules.
    budget: Budget,
}

impl Check<'_> {
    fn node<'a>(
        &mut self,
        node: &'a Schema,
        rules: Rules<'_>,
        place: &mut Place<'a>,
    ) -> ControlFlow<()> {
        let mut own = Place::of(node);
        let place = if node.embeds { &mut own } else { place };
        if let Some(default) = &node.default {
            self.below(".default", |check| {
                check.default(node, rules, &default.value, place)
            })?;
        }
        if let Some(items) = &node.items {
            place.below(Step::Item, |place| {
                self.below(".items", |check| check.node(items, rules.items(), place))
            })?;
        }
        for (name, property) in &node.properties {
            let path = format!(".properties[{name}]");
            place.below(Step::property(name, node.embeds), |place| {
                self.below(&path, |check| {
                    check.node(property, rules.property(name), place)
                })
            })?;
        }
        ControlFlow::Continue(())
    }

    fn below<T>(&mut self, step: &str, go: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        self.path.push_str(step);
        let done = go(self);
        self.path.truncate(length);
        done
    }

    fn add(&mut self, error: FieldError) -> ControlFlow<()> {
        if (self.add)(error) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }

    fn add_all(&mut self, errors: Vec<FieldError>) -> ControlFlow<()> {
        errors.into_iter().try_for_each(|error| self.add(error))
    }

    fn default(
        &mut self,
        node: &Schema,
        rules: Rules<'_>,
        default: &Value,
        place: &Place<'_>,
    ) -> ControlFlow<()> {
        let mut value = default.clone();
        let errors = if place.is_in_meta {
            self.metadata_errors(default, place)
        } else {
            self.embedded_errors(node, &mut value)?
        };
        if !errors.is_empty() {
            return self.add_all(errors);
        }
        let validator = Validator::new(&self.path, Form::Default, &mut self.checks);
        let outcome = validator.validate(node, &value, None);
        if !outcome.is_valid() {
            self.add_all(outcome.into_errors())?;
            return match self.checks {
                // One of the errors says it.
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            };
        }
        if rules.exist() {
            self.rule_errors(rules, &value)?;
        }
        ControlFlow::Continue(())
    }

    /// Returns the error of a default below the metadata of an embedded object.
    fn metadata_errors(&self, default: &Value, place: &Place<'_>) -> Vec<FieldError> {
        let Value::Object(mut object) = place.around(default.clone()) else {
            return Vec::new();
        };
        for (name, value) in [("apiVersion", "validation/v1"), ("kind", "Validation")] {
            object.entry(name).or_insert_with(|| json!(value));
        }
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

    /// Removes unknown members from the metadata of objects that are embedded in a default, and returns the errors of
    /// these objects. Adds an error about other unknown members.
    fn embedded_errors(
        &mut self,
        node: &Schema,
        default: &mut Value,
    ) -> ControlFlow<(), Vec<FieldError>> {
        let mut unknown = Unknown::default();
        if self.requires_pruned {
            shape::prune(&mut default.clone(), Some(node), &mut unknown);
        }
        let path = self.path.clone();
        let outcome = embedded::coerce_value(node, default, path, Malformed::Reject);
        if !unknown.found.is_empty() {
            // As in Kubernetes, the message has the metadata without what is unknown in it.
            let why = "must not have unknown fields";
            self.add(FieldError::invalid(self.path.clone(), shown(default), why))?;
        }
        ControlFlow::Continue(match outcome {
            Err(error) => vec![error],
            Ok(()) => embedded::validate_value(node, default, self.path.clone()),
        })
    }

    /// Adds the errors of the rules, for a value that does not change or else for a new value.
    ///
    /// Breaks if the rules of the schema's defaults exceed their limit.
    fn rule_errors(&mut self, rules: Rules<'_>, default: &Value) -> ControlFlow<()> {
        let mut outcome = rules.validate(default, Some(default), self.budget, false);
        if outcome.errors.is_empty() {
            let alone = rules.validate(default, None, self.budget, false);
            outcome.left = outcome.left.min(alone.left);
            outcome.errors = alone.errors;
        }
        self.budget = outcome.left;
        for error in outcome.errors {
            let path = &self.path;
            let field = match &*error.field {
                "<nil>" => path.clone(),
                below if below.starts_with('[') => format!("{path}{below}"),
                below => format!("{path}.{below}"),
            };
            self.add(FieldError {
                field: field.into(),
                ..error
            })?;
        }
        if self.budget.is_exceeded() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_checks_are_one_error() {
        let allowed: Vec<usize> = (0..3_000).collect();
        let list = json!({"type": "array", "items": {"type": "integer", "enum": allowed}, "default": vec![0; 2_000]});
        let schema = json!({"type": "object", "properties": {"a": list, "b": list, "c": list}});
        let mut errors = Vec::new();
        default_errors(&schema, "s", true, &mut |error| {
            errors.push(error);
            true
        });
        let [error] = errors.as_slice() else {
            panic!("{errors:?}");
        };
        assert!(error.body.contains("more than 5000000 checks"), "{error:?}");
    }
}
