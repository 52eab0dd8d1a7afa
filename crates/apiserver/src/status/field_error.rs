//! Represents errors of invalid fields, in the wording of Kubernetes' `field.Error`.
//!
//! [`ApiError`](super::ApiError) combines all field errors of one request into one response.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Display;

use serde_json::Value;

/// The error of one invalid field of an object, or of one invalid request option.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldError {
    pub(crate) field: Cow<'static, str>,
    pub(crate) reason: &'static str,
    /// The error text without the name of the field, such as `Required value: …`.
    pub(crate) body: String,
}

impl FieldError {
    /// Returns the text of several errors. Equal errors are listed once.
    pub(crate) fn list(errors: &[FieldError]) -> String {
        let mut known = BTreeSet::new();
        // A client can cause hundreds of thousands of errors.
        let distinct = errors
            .iter()
            .filter(|error| known.insert((&error.field, &error.body)));
        let sentences = distinct.map(|error| format!("{}: {}", error.field, error.body));
        let sentences: Vec<String> = sentences.collect();
        match sentences.as_slice() {
            [only] => only.clone(),
            several => format!("[{}]", several.join(", ")),
        }
    }

    pub(crate) fn forbidden(field: impl Into<Cow<'static, str>>, body: &str) -> FieldError {
        FieldError {
            field: field.into(),
            reason: "FieldValueForbidden",
            body: format!("Forbidden: {body}"),
        }
    }

    pub(crate) fn invalid(
        field: impl Into<Cow<'static, str>>,
        value: impl Display,
        body: &str,
    ) -> FieldError {
        FieldError {
            field: field.into(),
            reason: "FieldValueInvalid",
            body: format!("Invalid value: {value}: {body}"),
        }
    }

    pub(crate) fn too_long(field: &'static str, max: usize) -> FieldError {
        FieldError {
            field: field.into(),
            reason: "FieldValueTooLong",
            body: format!("Too long: may not be more than {max} bytes"),
        }
    }

    /// Returns the error for a missing field. `body` can be empty.
    pub(crate) fn required(field: impl Into<Cow<'static, str>>, body: &str) -> FieldError {
        let colon = if body.is_empty() { "" } else { ": " };
        FieldError {
            field: field.into(),
            reason: "FieldValueRequired",
            body: format!("Required value{colon}{body}"),
        }
    }

    pub(crate) fn unsupported(
        field: impl Into<Cow<'static, str>>,
        value: impl Into<Value>,
        supported: &[&str],
    ) -> FieldError {
        let supported: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
        FieldError {
            field: field.into(),
            reason: "FieldValueNotSupported",
            body: format!(
                "Unsupported value: {}: supported values: {}",
                value.into(),
                supported.join(", ")
            ),
        }
    }
}
