//! Checks the printer columns and the subresources of a definition.
//!
//! Guarantees: the errors and their order are those of `ValidateCustomResourceColumnDefinition` and
//! `ValidateCustomResourceDefinitionSubresources` in Kubernetes.

use serde_json::Value;

use super::shown::JsonText;
use crate::quote::Quoted;
use crate::strategy::report::{Path, Report};

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];

/// Adds the errors of one printer column.
pub(super) fn check_column(column: &Value, path: &Path<'_>, report: &mut Report) {
    let text = |member: &str| column[member].as_str().unwrap_or_default();
    if text("name").is_empty() {
        report.required(&path.child("name"), "");
    }
    let why = || format!("must be one of {}", TYPES.join(","));
    match text("type") {
        "" => report.required(&path.child("type"), why()),
        kind if TYPES.contains(&kind) => {}
        kind => report.invalid(&path.child("type"), Quoted(kind), why()),
    }
    let format = text("format");
    if !format.is_empty() && !FORMATS.contains(&format) {
        let why = format!("must be one of {}", FORMATS.join(","));
        report.invalid(&path.child("format"), Quoted(format), why);
    }
    // As in Kubernetes, with the name of the member in the beta version.
    let path = path.child("JSONPath");
    match text("jsonPath") {
        "" => report.required(&path, ""),
        found => {
            check_path(found, &path, report);
        }
    }
}

/// Adds an error if a path does not start with a dot. Returns whether it does.
fn check_path(found: &str, path: &Path<'_>, report: &mut Report) -> bool {
    if !found.starts_with('.') {
        let why = "must be a simple json path starting with .";
        report.invalid(path, Quoted(found), why);
    }
    found.starts_with('.')
}

/// Adds the errors of the paths in `scale`.
pub(super) fn check_subresources(
    subresources: Option<&Value>,
    path: &Path<'_>,
    report: &mut Report,
) {
    let scale = subresources.and_then(|subresources| subresources.get("scale"));
    let Some(scale) = scale.filter(|scale| scale.is_object()) else {
        return;
    };
    let text = |member: &str| scale[member].as_str().unwrap_or_default();
    for (member, name, prefix, why) in [
        (
            "specReplicasPath",
            "scale.specReplicasPath",
            ".spec.",
            "should be a json path under .spec",
        ),
        (
            "statusReplicasPath",
            "scale.statusReplicasPath",
            ".status.",
            "should be a json path under .status",
        ),
    ] {
        let path = path.child(name);
        match text(member) {
            "" => report.required(&path, ""),
            found => {
                if check_path(found, &path, report) && !found.starts_with(prefix) {
                    report.invalid(&path, Quoted(found), why);
                }
            }
        }
    }
    let found = text("labelSelectorPath");
    let path = path.child("scale.labelSelectorPath");
    let is_below = [".spec.", ".status."]
        .iter()
        .any(|prefix| found.starts_with(prefix));
    if !found.is_empty() && check_path(found, &path, report) && !is_below {
        let why = "should be a json path under either .spec or .status";
        report.invalid(&path, JsonText(found), why);
    }
}
