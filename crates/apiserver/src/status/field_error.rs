//! What is wrong with one field, in the words of Kubernetes' validation.

use std::fmt::{Debug, Display};

/// One field error, as validation collects them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldError {
    pub(crate) field: &'static str,
    pub(crate) reason: &'static str,
    /// What follows the field and a colon.
    pub(crate) body: String,
}

impl FieldError {
    pub(crate) fn forbidden(field: &'static str, body: &str) -> FieldError {
        FieldError {
            field,
            reason: "FieldValueForbidden",
            body: format!("Forbidden: {body}"),
        }
    }

    pub(crate) fn invalid(field: &'static str, value: impl Display, body: &str) -> FieldError {
        FieldError {
            field,
            reason: "FieldValueInvalid",
            body: format!("Invalid value: {value}: {body}"),
        }
    }

    pub(crate) fn required(field: &'static str, body: &str) -> FieldError {
        FieldError {
            field,
            reason: "FieldValueRequired",
            body: format!("Required value: {body}"),
        }
    }

    /// `value` is shown as Go shows it: a string in quotes, a list of strings in brackets.
    pub(crate) fn unsupported(
        field: &'static str,
        value: impl Debug,
        supported: &[&str],
    ) -> FieldError {
        let supported: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
        FieldError {
            field,
            reason: "FieldValueNotSupported",
            body: format!(
                "Unsupported value: {value:?}: supported values: {}",
                supported.join(", ")
            ),
        }
    }
}
