//! Collects the errors of one validation, and converts them to field errors.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::go_json::to_text as go_json;
use crate::quote::{Quoted, go_text};
use crate::status::FieldError;

use super::number::Number;

/// Maximum number of errors of one validation; further errors are dropped.
///
/// Kubernetes has no such limit. A list of a million invalid items would need 100 MB for its errors.
const ERRORS_MAX: usize = 1_000;

/// Size in bytes of the errors of one validation after which further errors are dropped.
///
/// Kubernetes has no such limit. Each error has the path of its value, which can be as long as a request.
const ERROR_BYTES_MAX: usize = 8 << 20;

/// The first errors of one validation.
#[derive(Debug, Default)]
pub(super) struct ErrorList {
    errors: Vec<FieldError>,
    bytes: usize,
}

/// The result of validating a value against one node of a schema.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    faults: Vec<Fault>,
    /// The texts of `faults`.
    texts: BTreeSet<Arc<str>>,
    /// The size of all errors that were added, and of their texts.
    pub(super) bytes: usize,
    /// The number of successful checks, which selects the alternative of `anyOf` or `oneOf` whose errors are
    /// reported.
    pub(super) matches: usize,
}

/// One error of a validation.
#[derive(Debug)]
struct Fault {
    /// Text that identifies the error; an error with the same text is reported once.
    text: Arc<str>,
    error: FieldError,
}

/// Path of a value in an object, such as `spec.ports[0]`, and the path of the validated part of the object.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// Path of the validated part, such as `status`. Empty for the whole object.
    pub(super) part: &'a str,
    /// Path of the value below the part, as in messages.
    pub(super) path: &'a str,
}

// === impl ErrorList ===

impl ErrorList {
    /// Returns whether further errors are dropped.
    pub(super) fn is_full(&self) -> bool {
        is_full(self.errors.len(), self.bytes)
    }

    pub(super) fn push(&mut self, error: FieldError) {
        if !self.is_full() {
            self.bytes += size(&error);
            self.errors.push(error);
        }
    }
}

impl From<ErrorList> for Vec<FieldError> {
    fn from(list: ErrorList) -> Vec<FieldError> {
        list.errors
    }
}

fn is_full(count: usize, bytes: usize) -> bool {
    count >= ERRORS_MAX || bytes >= ERROR_BYTES_MAX
}

fn size(error: &FieldError) -> usize {
    error.field.len() + error.body.len()
}

// === impl Outcome ===

impl Outcome {
    /// The outcome of a successful check.
    pub(super) const MATCH: Outcome = Outcome {
        faults: Vec::new(),
        texts: BTreeSet::new(),
        bytes: 0,
        matches: 1,
    };

    pub(super) fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }

    /// Adds the errors and the successful checks of `other`.
    pub(super) fn merge(&mut self, other: Outcome) {
        self.matches += other.matches;
        for fault in other.faults {
            self.add(fault);
        }
    }

    /// Removes the errors, which an update does not report if the value has not changed.
    pub(super) fn forgiven(mut self) -> Outcome {
        self.faults.clear();
        self.texts.clear();
        self.bytes = 0;
        self
    }

    pub(super) fn into_errors(self) -> Vec<FieldError> {
        self.faults.into_iter().map(|fault| fault.error).collect()
    }

    fn add(&mut self, fault: Fault) {
        let is_full = is_full(self.faults.len(), self.bytes);
        if !is_full && self.texts.insert(Arc::clone(&fault.text)) {
            self.bytes += fault.text.len() + size(&fault.error);
            self.faults.push(fault);
        }
    }

    fn add_error(&mut self, text: String, error: FieldError) {
        self.add(Fault {
            text: text.into(),
            error,
        });
    }

    /// Adds an error that concerns the whole validated part.
    pub(super) fn general(&mut self, place: Place<'_>, text: String) {
        let error = FieldError::invalid(place.part_field().to_owned(), "\"\"", &text);
        self.add_error(text, error);
    }

    /// Adds the error of a value. `rule` continues the path in the message, as in `should be one of ...`.
    pub(super) fn invalid(&mut self, place: Place<'_>, value: &Value, rule: &str) {
        let text = format!("{} in body {rule}", place.path);
        let error = FieldError::invalid(place.field(), shown(value), &text);
        self.add_error(text, error);
    }

    /// Adds an error whose message does not start with the path.
    pub(super) fn invalid_text(&mut self, place: Place<'_>, value: &Value, text: String) {
        let error = FieldError::invalid(place.field(), shown(value), &text);
        self.add_error(text, error);
    }

    /// Adds the error of a value with a wrong type. `found` is the type, or the text of a wrong format.
    pub(super) fn wrong_type(&mut self, place: Place<'_>, expected: &str, found: &str) {
        let found = Quoted(found).to_string();
        let text = format!("{} in body must be of type {expected}: {found}", place.path);
        let mut error = FieldError::invalid(place.field(), found, &text);
        error.reason = "FieldValueTypeInvalid";
        self.add_error(text, error);
    }

    /// Adds the error of a missing member `name`.
    pub(super) fn required(&mut self, place: Place<'_>, name: &str) {
        let path = format!("{}.{name}", place.path);
        let place = Place {
            path: &path,
            ..place
        };
        let error = FieldError::required(place.field(), "");
        self.add_error(format!("{path} is required"), error);
    }

    pub(super) fn unsupported(&mut self, place: Place<'_>, value: &Value, allowed: &[Value]) {
        let quoted: Vec<String> = allowed
            .iter()
            .map(|value| match value {
                Value::String(text) => Quoted(text).to_string(),
                other => Quoted(&go_json(other)).to_string(),
            })
            .collect();
        let error = FieldError {
            field: place.field().into(),
            reason: "FieldValueNotSupported",
            body: format!(
                "Unsupported value: {}: supported values: {}",
                shown(value),
                quoted.join(", ")
            ),
        };
        let known = go_text(&Value::from(allowed));
        self.add_error(format!("{} should be one of {known}", place.path), error);
    }

    pub(super) fn too_long(&mut self, place: Place<'_>, max: i64) {
        let error = FieldError {
            field: place.field().into(),
            reason: "FieldValueTooLong",
            body: match max {
                1 => "Too long: may not be more than 1 byte".to_owned(),
                max if max < 0 => "Too long: value is too long".to_owned(),
                max => format!("Too long: may not be more than {max} bytes"),
            },
        };
        self.add_error(
            format!("{} should be at most {max} chars long", place.path),
            error,
        );
    }

    /// Adds the error of a list or an object with too many items or members (`what`).
    pub(super) fn too_many(&mut self, place: Place<'_>, count: usize, max: i64, what: &str) {
        let error = FieldError {
            field: place.field().into(),
            reason: "FieldValueTooMany",
            body: match max {
                1 => format!("Too many: {count}: must have at most 1 item"),
                max if max < 0 => format!("Too many: {count}: has too many items"),
                max => format!("Too many: {count}: must have at most {max} items"),
            },
        };
        self.add_error(
            format!("{} should have at most {max} {what}", place.path),
            error,
        );
    }
}

// === impl Place ===

impl<'a> Place<'a> {
    /// Returns the field of an error, such as `spec.ports[0]`.
    fn field(self) -> String {
        let below = self.path.strip_prefix('.').unwrap_or(self.path);
        match (self.part, below) {
            (_, "") => self.part_field().to_owned(),
            ("", below) => below.to_owned(),
            (part, below) => format!("{part}.{below}"),
        }
    }

    /// Returns the field of an error about the whole validated part.
    fn part_field(self) -> &'a str {
        match self.part {
            "" => "<nil>",
            part => part,
        }
    }
}

/// Returns a value as Kubernetes shows an invalid value.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => Quoted(text).to_string(),
        Value::Number(number) => Number::of(number).to_string(),
        other => go_json(other),
    }
}
