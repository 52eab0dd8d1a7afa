//! Validates labels and label selectors in the fields of an object.

use serde_json::{Map, Value};

use super::field::Field;
use super::report::{Path, Report};
use crate::go_json::to_text;
use crate::name_syntax::{key_faults, value_faults};

/// Checks the keys and values of a map of labels.
pub(super) fn check_labels(labels: &Field<'_, '_>, report: &mut Report) {
    for (key, value) in labels.entries() {
        for fault in key_faults(key) {
            report.invalid(&labels.path, crate::quote::Quoted(key), fault);
        }
        for fault in value_faults(value.text()) {
            report.invalid(&labels.path, value.shown(), fault);
        }
    }
}

/// Checks a label selector (`ValidateLabelSelector`).
pub(super) fn check_selector(selector: &Field<'_, '_>, report: &mut Report) {
    check_labels(&selector.at("matchLabels"), report);
    let expressions = selector.at("matchExpressions");
    for expression in expressions.items() {
        let (values, operator) = (expression.at("values"), expression.at("operator"));
        match operator.text() {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                report.required(&values.path, why);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                values.forbidden(report, why);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => operator.invalid(report, "not a valid selector operator"),
        }
        expression.at("key").check_text(report, key_faults);
        for value in values.items() {
            value.check_text(report, value_faults);
        }
    }
}

/// Returns whether a selector selects labels, or `None` if the selector is invalid.
///
/// An absent selector selects nothing, and an empty one everything.
pub(super) fn selects(selector: &Field<'_, '_>, labels: &Value) -> Option<bool> {
    if !selector.exists() {
        return Some(false);
    }
    let mut report = Report::default();
    check_selector(selector, &mut report);
    if report.found() > 0 {
        return None;
    }
    let wanted = selector.at("matchLabels");
    let has = |key: &str| labels.get(key).filter(|value| !value.is_null());
    let mut entries = wanted.entries();
    let all_equal = entries.all(|(key, value)| has(key) == Some(value.value));
    let expressions = selector.at("matchExpressions");
    let mut expressions = expressions.items();
    let all_true = expressions.all(|expression| {
        let found = has(expression.at("key").text());
        let values = expression.value["values"].as_array();
        let is_one_of = |found: &Value| values.is_some_and(|values| values.contains(found));
        match expression.at("operator").text() {
            "In" => found.is_some_and(is_one_of),
            "NotIn" => !found.is_some_and(is_one_of),
            "Exists" => found.is_some(),
            _ => found.is_none(),
        }
    });
    Some(all_equal && all_true)
}

/// Returns whether a label selector in JSON is valid and selects labels.
pub(crate) fn selector_selects(selector: &Value, labels: &Value) -> bool {
    let path = Path::root("");
    let selector = Field {
        path,
        value: selector,
    };
    selects(&selector, labels) == Some(true)
}

/// Returns a selector as error messages show it, with its members in Go's order.
pub(super) fn shown_selector(selector: &Field<'_, '_>) -> String {
    let members: Vec<String> = ["matchLabels", "matchExpressions"]
        .into_iter()
        .filter(|name| !selector.at(name).is_empty())
        .map(|name| format!("\"{name}\":{}", to_text(&selector.value[name])))
        .collect();
    match selector.value {
        Value::Null => "null".to_owned(),
        _ => format!("{{{}}}", members.join(",")),
    }
}

/// Returns whether a selector has no labels and no expressions.
pub(super) fn is_empty_selector(selector: &Field<'_, '_>) -> bool {
    let members = selector.value.as_object();
    members.is_none_or(|members: &Map<String, Value>| {
        members.values().all(|value| match value {
            Value::Array(items) => items.is_empty(),
            Value::Object(labels) => labels.is_empty(),
            value => value.is_null(),
        })
    })
}
