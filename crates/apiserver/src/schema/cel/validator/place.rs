//! The values that are checked, and the errors about them.

use std::fmt::{self, Write as _};
use std::rc::Rc;

use super::super::eval::Inputs;
use super::super::value::{Value, from_data};
use super::correlation::Correlation;
use super::{CompiledRule, Node, Place};
use crate::schema::outcome::shown;
use crate::status::FieldError;

pub(super) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

pub(super) const COST_EXCEEDED: &str = "operation cancelled: actual cost limit exceeded";

/// The path of a field.
pub(super) struct Path<'a> {
    parent: Option<Rc<Path<'a>>>,
    segment: Segment<'a>,
}

/// One step of a path.
pub(super) enum Segment<'a> {
    Child(&'a str),
    Key(&'a str),
    Index(usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = &self.parent {
            write!(f, "{parent}")?;
        }
        match self.segment {
            Segment::Child(name) if self.parent.is_none() => f.write_str(name),
            Segment::Child(name) => write!(f, ".{name}"),
            Segment::Key(key) => write!(f, "[{key}]"),
            Segment::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// The values of the variables of the rules of a node.
pub(super) struct RuleInputs<'a> {
    pub(super) plain: Inputs<'a>,
    pub(super) optional: Inputs<'a>,
}

impl<'a> RuleInputs<'a> {
    pub(super) fn new(node: &'a Node, place: &Place<'a>) -> RuleInputs<'a> {
        let self_value = from_data(place.new, &node.data_schema);
        let old = place.old.map(|old| from_data(old, &node.data_schema));
        let optional = match old.clone() {
            Some(old) => old.map(Value::some),
            None => Ok(Value::Optional(None)),
        };
        RuleInputs {
            plain: Inputs {
                self_value: self_value.clone(),
                old_self: old.unwrap_or_else(|| Err("no such attribute(s): oldSelf".to_owned())),
            },
            optional: Inputs {
                self_value,
                old_self: optional,
            },
        }
    }
}

impl<'a> Place<'a> {
    /// Returns the path of a part of the value.
    pub(super) fn below(&self, segment: Segment<'a>) -> Rc<Path<'a>> {
        let parent = self.path.clone();
        Rc::new(Path { parent, segment })
    }

    pub(super) fn error(&self, reason: &'static str, body: String) -> FieldError {
        let path = self.path.as_ref();
        let field = path.map_or_else(|| "<nil>".to_owned(), ToString::to_string);
        FieldError {
            field: field.into(),
            reason,
            body,
        }
    }

    /// Returns the correlations of a field: its own, and that of the closest value around it.
    pub(super) fn field_correlation(
        &self,
        name: &str,
    ) -> (Option<Rc<Correlation<'a>>>, Option<Rc<Correlation<'a>>>) {
        match &self.correlation {
            None => (None, self.parent.clone()),
            // The server converts both objects to one version, so these fields are equal in any case.
            Some(_) if self.parent.is_none() && matches!(name, "apiVersion" | "kind") => {
                (None, None)
            }
            Some(correlation) => (correlation.field(name), Some(Rc::clone(correlation))),
        }
    }

    pub(super) fn is_unchanged(&self) -> bool {
        let closest = self.correlation.as_ref().or(self.parent.as_ref());
        closest.is_some_and(|correlation| correlation.is_unchanged())
    }
}

/// Returns the error of a rule, by the reason that the rule gives.
pub(super) fn violation_error(
    node: &Node,
    compiled: &CompiledRule,
    place: &Place<'_>,
    message: &str,
) -> FieldError {
    let is_composite = matches!(node.schema.kind.as_str(), "object" | "array");
    let value = if is_composite {
        String::new()
    } else {
        shown(place.new)
    };
    let with_value = |kind: &str| {
        if value.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind}: {value}")
        }
    };
    match compiled.rule.reason.as_deref() {
        Some("FieldValueForbidden") => {
            place.error("FieldValueForbidden", format!("Forbidden: {message}"))
        }
        Some("FieldValueRequired") => {
            place.error("FieldValueRequired", format!("Required value: {message}"))
        }
        Some("FieldValueDuplicate") => {
            place.error("FieldValueDuplicate", with_value("Duplicate value"))
        }
        _ => {
            let mut body = with_value("Invalid value");
            let _ = write!(body, ": {message}");
            place.error("FieldValueInvalid", body)
        }
    }
}
