//! Label and field selectors: parsing, and comparison with stored objects.
//!
//! Guarantees:
//! - the grammar is Kubernetes': `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1,m<2` for labels, `a=b,c!=d` with backslash
//!   escapes for fields;
//! - malformed input is an error with Kubernetes' message, and never a selector with another meaning;
//! - a table ([`field`]) lists the field labels of each kind; any other label is rejected.

pub(crate) mod field;
pub(crate) mod label;
mod texts;

use crate::status::ApiError;

pub(crate) use field::{FieldSelector, FieldTable, Fields};
pub(crate) use label::{LabelSelector, Labels};

/// The parts of an object that selectors compare.
#[derive(Clone, Copy)]
pub(crate) struct Selectable<'a> {
    /// `namespace/name`, or `name` in cluster scope.
    pub(crate) key: &'a str,
    pub(crate) labels: &'a Labels,
    pub(crate) fields: &'a Fields,
}

/// The objects of a resource that a request selects.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Selection {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
}

impl<'a> Selectable<'a> {
    pub(crate) fn name(self) -> &'a str {
        self.key.split_once('/').map_or(self.key, |(_, name)| name)
    }

    /// The namespace; `None` in cluster scope.
    pub(crate) fn namespace(self) -> Option<&'a str> {
        self.key.split_once('/').map(|(namespace, _)| namespace)
    }
}

impl Selection {
    /// Parses both selectors for one kind.
    pub(crate) fn parse(
        table: FieldTable,
        labels: &str,
        fields: &str,
    ) -> Result<Selection, ApiError> {
        let labels = LabelSelector::parse(labels).map_err(ApiError::bad_request)?;
        let fields = FieldSelector::parse(table, fields)?;
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
