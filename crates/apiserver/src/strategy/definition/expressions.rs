//! Checks the rules of a schema, `x-kubernetes-validations`, apart from their expressions.
//!
//! Guarantees: the errors and their order are those of `ValidateCustomResourceDefinitionOpenAPISchema` in
//! Kubernetes.
//!
//! The module does not compile the expressions, and does not estimate their cost.

use super::field_path::{self, Brackets};
use super::schema::Schema;
use super::shown::JsonText;
use crate::quote::Quoted;
use crate::strategy::report::{Path, Report};

/// The reasons that a rule can give for an error.
const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

const BREAKS: [char; 2] = ['\n', '\r'];

/// Adds the errors of a schema's rules.
///
/// As in Kubernetes, the paths of fields are not checked if the schema can't be converted to a structural schema.
pub(super) fn check(
    schema: Schema<'_>,
    is_convertible: bool,
    path: &Path<'_>,
    report: &mut Report,
) {
    let list = path.child("x-kubernetes-validations");
    for (at, rule) in schema.schemas("x-kubernetes-validations").enumerate() {
        let path = list.index(at);
        check_texts(rule, &path, report);
        let field = rule.text("fieldPath");
        if field.is_empty() {
            continue;
        }
        let field_path = path.child("fieldPath");
        if field.trim().is_empty() {
            let why = "must be non-empty if specified";
            report.invalid(&field_path, Quoted(field), why);
        }
        if field.contains(BREAKS) {
            let why = "must not contain line breaks";
            report.invalid(&field_path, Quoted(field), why);
        }
        let resolves = || field_path::resolve(field, Some(schema), Brackets::Allowed).is_ok();
        if is_convertible && !resolves() {
            report.invalid(&field_path, Quoted(field), "must be a valid path");
        }
    }
}

/// Checks the expression, the messages and the reason of a rule.
fn check_texts(rule: Schema<'_>, path: &Path<'_>, report: &mut Report) {
    let (expression, message) = (rule.text("rule").trim(), rule.text("message"));
    let message_path = path.child("message");
    if expression.is_empty() {
        report.required(&path.child("rule"), "rule is not specified");
    } else if !message.is_empty() && message.trim().is_empty() {
        let why = "must be non-empty if specified";
        report.invalid(&message_path, Quoted(message), why);
    } else if message.trim().contains(BREAKS) {
        let why = "must not contain line breaks";
        report.invalid(&message_path, Quoted(message), why);
    } else if expression.contains(BREAKS) && message.is_empty() {
        let why = "message must be specified if rule contains line breaks";
        report.required(&message_path, why);
    }
    let computed = rule.text("messageExpression");
    if !computed.is_empty() && computed.trim().is_empty() {
        let why = "messageExpression must be non-empty if specified";
        report.required(&path.child("messageExpression"), why);
    }
    let reason = rule.optional_text("reason");
    if let Some(reason) = reason.filter(|reason| !REASONS.contains(reason)) {
        report.unsupported(&path.child("reason"), JsonText(reason), &REASONS);
    }
}
