//! Checks the selectable fields of a definition.
//!
//! Guarantees: the errors and their order are those of `ValidateCustomResourceSelectableFields` in Kubernetes.
//! Without a schema, no path is valid. Kubernetes stops with a panic in this case.

use std::collections::BTreeSet;

use serde_json::Value;

use super::field_path::{Brackets, resolve};
use super::schema::Schema;
use crate::quote::Quoted;
use crate::strategy::report::{Path, Report};

/// Maximum number of selectable fields of a version (`MaxSelectableFields` in Kubernetes).
pub(super) const FIELDS_MAX: usize = 8;

/// Limit on the number of fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    Applies,
    /// The stored definition has the same fields, and more than [`FIELDS_MAX`].
    Lifted,
}

/// Adds the errors of selectable fields of an object with a schema.
pub(super) fn check(
    fields: &[Value],
    schema: Option<Schema<'_>>,
    limit: Limit,
    path: &Path<'_>,
    report: &mut Report,
) {
    let mut seen = BTreeSet::new();
    for (at, field) in fields.iter().enumerate() {
        let field_path = path.index(at);
        let field_path = field_path.child("jsonPath");
        let shown = field["jsonPath"].as_str().unwrap_or_default();
        if shown.is_empty() {
            report.required(&field_path, "");
            continue;
        }
        let found = match resolve(shown, schema, Brackets::Forbidden) {
            Ok(found) => found,
            Err(why) => {
                let why = format!("is an invalid path: {why}");
                report.invalid(&field_path, Quoted(shown), why);
                continue;
            }
        };
        if found.root == "metadata" {
            let why = "must not point to fields in metadata";
            report.invalid(&field_path, Quoted(shown), why);
        }
        let kind = found.schema.map(|schema| schema.text("type"));
        if !matches!(kind, Some("string" | "boolean" | "integer")) {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            report.invalid(&field_path, Quoted(shown), why);
        }
        if !seen.insert(found.path) {
            report.duplicate(&field_path, Quoted(shown));
        }
    }
    if seen.len() > FIELDS_MAX && limit == Limit::Applies {
        report.too_many(path, seen.len(), FIELDS_MAX);
    }
}
