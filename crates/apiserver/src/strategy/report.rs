//! Collects the errors of a definition, and represents the paths of its fields.
//!
//! Guarantees:
//! - the errors have the order in which they were found, and the form of Kubernetes' `field.Error`;
//! - at most [`ERRORS_MAX`] errors are kept, and none after their texts have reached [`BYTES_MAX`];
//! - the text of an error that is not kept is never built.

use std::fmt::{self, Display, Formatter};

use crate::quote::Quoted;
use crate::status::FieldError;

/// Maximum number of reported errors. Kubernetes has no such limit.
pub(super) const ERRORS_MAX: usize = 1_000;

/// Size in bytes of all error texts after which no further error is reported. Kubernetes has no such limit.
///
/// One error can contain a value of a megabyte, and a path as long as a request.
pub(super) const BYTES_MAX: usize = 2 * 1024 * 1024;

/// The path of a field: a last step, and the path before it.
#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Name(&'a str),
    Key(&'a str),
    Index(usize),
}

impl Path<'_> {
    pub(super) const fn root(name: &str) -> Path<'_> {
        Path {
            parent: None,
            step: Step::Name(name),
        }
    }

    /// Returns the path of a member, such as `spec.names`.
    pub(super) const fn child<'b>(&'b self, name: &'b str) -> Path<'b> {
        Path {
            parent: Some(self),
            step: Step::Name(name),
        }
    }

    /// Returns the path of an entry of a map, such as `properties[spec]`.
    pub(super) const fn key<'b>(&'b self, key: &'b str) -> Path<'b> {
        Path {
            parent: Some(self),
            step: Step::Key(key),
        }
    }

    pub(super) const fn index(&self, at: usize) -> Path<'_> {
        Path {
            parent: Some(self),
            step: Step::Index(at),
        }
    }
}

impl Display for Path<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(f, "{parent}")?;
        }
        match self.step {
            Step::Name(name) if self.parent.is_some() => write!(f, ".{name}"),
            Step::Name(name) => f.write_str(name),
            Step::Key(key) => write!(f, "[{key}]"),
            Step::Index(at) => write!(f, "[{at}]"),
        }
    }
}

/// The errors found so far.
#[derive(Default)]
pub(crate) struct Report {
    errors: Vec<FieldError>,
    /// Size of the texts of `errors`.
    bytes: usize,
    /// Number of errors found, including those that are not kept.
    found: usize,
}

impl Report {
    /// Returns the number of errors found, including those that are not kept.
    pub(super) fn found(&self) -> usize {
        self.found
    }

    /// Returns whether further errors are not kept.
    pub(super) fn is_full(&self) -> bool {
        self.errors.len() >= ERRORS_MAX || self.bytes >= BYTES_MAX
    }

    pub(super) fn into_errors(self) -> Vec<FieldError> {
        self.errors
    }

    /// Adds the errors of another report, sorted by their texts.
    pub(super) fn add_sorted(&mut self, other: Report) {
        let left_out = other.found - other.errors.len();
        let mut errors = other.errors;
        errors.sort_by_cached_key(|error| format!("{}: {}", error.field, error.body));
        for error in errors {
            self.add(|| error);
        }
        self.found += left_out;
    }

    pub(super) fn add_error(&mut self, error: FieldError) {
        self.add(|| error);
    }

    pub(super) fn invalid(&mut self, field: &Path<'_>, value: impl Display, detail: impl Display) {
        self.add(|| FieldError::invalid(field.to_string(), value, &detail.to_string()));
    }

    pub(super) fn required(&mut self, field: &Path<'_>, detail: impl Display) {
        self.add(|| FieldError::required(field.to_string(), &detail.to_string()));
    }

    pub(super) fn forbidden(&mut self, field: &Path<'_>, detail: impl Display) {
        self.add(|| FieldError::forbidden(field.to_string(), &detail.to_string()));
    }

    pub(super) fn duplicate(&mut self, field: &Path<'_>, value: impl Display) {
        self.add(|| FieldError {
            field: field.to_string().into(),
            reason: "FieldValueDuplicate",
            body: format!("Duplicate value: {value}"),
        });
    }

    pub(super) fn not_found(&mut self, field: &Path<'_>, value: impl Display) {
        self.add(|| FieldError {
            field: field.to_string().into(),
            reason: "FieldValueNotFound",
            body: format!("Not found: {value}"),
        });
    }

    pub(super) fn too_many(&mut self, field: &Path<'_>, found: usize, max: usize) {
        self.add(|| FieldError {
            field: field.to_string().into(),
            reason: "FieldValueTooMany",
            body: format!("Too many: {found}: must have at most {max} items"),
        });
    }

    pub(super) fn unsupported(
        &mut self,
        field: &Path<'_>,
        value: impl Display,
        supported: &[&str],
    ) {
        self.add(|| {
            let supported: Vec<String> = supported
                .iter()
                .map(|one| Quoted(one).to_string())
                .collect();
            let supported = supported.join(", ");
            FieldError {
                field: field.to_string().into(),
                reason: "FieldValueNotSupported",
                body: format!("Unsupported value: {value}: supported values: {supported}"),
            }
        });
    }

    fn add(&mut self, error: impl FnOnce() -> FieldError) {
        self.found += 1;
        if !self.is_full() {
            let error = error();
            self.bytes += error.field.len() + error.body.len();
            self.errors.push(error);
        }
    }
}
