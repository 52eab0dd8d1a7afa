//! Label and field selectors: read from a query, compared with stored objects.
//!
//! Guarantees:
//! - the grammar is Kubernetes': `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1,m<2` for labels, `a=b,c!=d` with backslash escapes for fields;
//! - what can't be read is an error with the server's sentence, never a selector that selects something else;
//! - which field labels a kind knows is a table ([`field`]); any other is refused.

pub(crate) mod field;
pub(crate) mod label;
mod texts;

use crate::kinds::Kind;
use crate::status::ApiError;
use crate::storage::Entry;

pub(crate) use field::{FieldSelector, FieldTable};
pub(crate) use label::{LabelSelector, Labels};

/// Which objects of a resource a request is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Selection {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
}

impl Selection {
    /// Reads both selectors for one kind.
    pub(crate) fn parse(
        kind: &Kind,
        table: FieldTable,
        labels: &str,
        fields: &str,
    ) -> Result<Selection, ApiError> {
        let labels = LabelSelector::parse(labels).map_err(ApiError::bad_request)?;
        let fields = FieldSelector::parse(kind, table, fields)?;
        Ok(Selection { labels, fields })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    pub(crate) fn matches(&self, entry: &Entry) -> bool {
        self.labels.matches(&entry.labels) && self.fields.matches(entry)
    }
}

#[cfg(test)]
mod tests;
