//! Parses label and field selectors, and matches them against stored objects.
//!
//! Guarantees:
//! - the syntax is that of Kubernetes: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1,m<2` for labels, and
//!   `a=b,c!=d` with backslash escapes for fields;
//! - a malformed selector results in an error with Kubernetes' message;
//! - a field selector is rejected if it contains an unsupported field. The [`field`] module lists the
//!   supported fields of each kind.

pub(crate) mod field;
pub(crate) mod label;
mod texts;

use crate::status::ApiError;

pub(crate) use field::{FieldSelector, FieldTable, Fields, SelectableField};
pub(crate) use label::{LabelSelector, Labels};

/// The parts of a stored object that label and field selectors compare.
#[derive(Clone, Copy)]
pub(crate) struct Selectable<'a> {
    /// Key of the object: `namespace/name`, or `name` for a cluster-scoped object.
    pub(crate) key: &'a str,
    pub(crate) labels: &'a Labels,
    pub(crate) fields: &'a Fields,
}

/// The label selector and field selector of a request; an object is selected if both match.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Selection {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
}

impl<'a> Selectable<'a> {
    pub(crate) fn name(self) -> &'a str {
        self.key.split_once('/').map_or(self.key, |(_, name)| name)
    }

    pub(crate) fn namespace(self) -> Option<&'a str> {
        self.key.split_once('/').map(|(namespace, _)| namespace)
    }
}

impl Selection {
    /// Parses a label selector, and a field selector for the fields in `known`: a table and further fields.
    ///
    /// Calls `check` after the syntax check and before the check of field names. Kubernetes checks the other
    /// parameters of a request at this point.
    ///
    /// # Errors
    ///
    /// Returns the error of `check`.
    ///
    /// Returns a 400 error if a selector is malformed, or if the field selector contains an unsupported
    /// field.
    pub(crate) fn parse(
        known: (FieldTable, &[SelectableField]),
        labels: &str,
        fields: &str,
        check: impl FnOnce() -> Result<(), ApiError>,
    ) -> Result<Selection, ApiError> {
        let labels = LabelSelector::parse(labels).map_err(ApiError::bad_request)?;
        let terms = field::terms(fields)?;
        check()?;
        let fields = FieldSelector::of(known, terms)?;
        Ok(Selection { labels, fields })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    pub(crate) fn matches(&self, object: Selectable<'_>) -> bool {
        self.labels.matches(object.labels) && self.fields.matches(object)
    }
}

#[cfg(test)]
mod tests;
