//! Defines the type of a printer column, and functions that compute the values of cells.
//!
//! Guarantees: an absent or malformed field results in a default such as `<none>`, never in an error.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::Object;

/// A printer column, whose `cell` computes the value for an object at the given time.
///
/// The table of columns ([`described`](super::described)) has its type, format, priority and description.
#[derive(Debug)]
pub(crate) struct Column {
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "a test compares it with the table")
    )]
    pub(crate) name: &'static str,
    pub(crate) cell: fn(&Object, Timestamp) -> Value,
}

pub(super) const fn column(name: &'static str, cell: fn(&Object, Timestamp) -> Value) -> Column {
    Column { name, cell }
}

pub(super) const NAME: Column = column("Name", |object, _| json!(object.text("name")));
pub(super) const AGE: Column = column("Age", |object, now| json!(age(object, now)));

/// Text that most columns show if an object has no value for the column.
pub(super) const NONE: &str = "<none>";

/// Formats a duration in seconds as `kubectl` does (`duration.HumanDuration`), such as `2m5s`.
///
/// A negative duration is `<invalid>`, except for a deviation of one second.
pub(crate) fn human_duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let two = |unit: i64, name: &str, smaller: i64, smaller_name: &str| {
        let rest = seconds % unit / smaller;
        let rest = if rest == 0 {
            String::new()
        } else {
            format!("{rest}{smaller_name}")
        };
        format!("{}{name}{rest}", seconds / unit)
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => two(MINUTE, "m", 1, "s"),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => two(HOUR, "h", MINUTE, "m"),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => two(DAY, "d", HOUR, "h"),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two(YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

pub(super) fn age(object: &Object, now: Timestamp) -> String {
    let created: Result<Timestamp, _> = object.text("creationTimestamp").parse();
    created.map_or_else(
        |_| "<unknown>".to_owned(),
        |created| human_duration(now.as_second() - created.as_second()),
    )
}

/// Returns the value at a JSON pointer, or an empty string if the value is absent or null.
pub(super) fn at(object: &Object, pointer: &str) -> Value {
    let (first, rest) = pointer[1..].split_once('/').unwrap_or((&pointer[1..], ""));
    let member = object.get(first);
    let found = member.and_then(|member| match rest {
        "" => Some(member),
        rest => member.pointer(&format!("/{rest}")),
    });
    let found = found.filter(|value| !value.is_null());
    found.cloned().unwrap_or_else(|| json!(""))
}

pub(super) fn or_none(value: Value) -> Value {
    if value == "" { json!("<none>") } else { value }
}

pub(super) fn count(object: &Object, pointer: &str) -> i64 {
    at(object, pointer).as_i64().unwrap_or(0)
}

/// Returns the integer `spec.replicas`, or 1 if the field is absent.
pub(super) fn desired(object: &Object) -> i64 {
    at(object, "/spec/replicas").as_i64().unwrap_or(1)
}

pub(super) fn or(value: Value, default: &str) -> Value {
    if value == "" { json!(default) } else { value }
}

pub(super) fn string(object: &Object, pointer: &str) -> String {
    at(object, pointer).as_str().unwrap_or_default().to_owned()
}

pub(super) fn list(object: &Object, pointer: &str) -> Vec<Value> {
    at(object, pointer).as_array().cloned().unwrap_or_default()
}

/// Returns the number of members or items of the value at a JSON pointer.
pub(super) fn size(object: &Object, pointer: &str) -> usize {
    match at(object, pointer) {
        Value::Object(members) => members.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    }
}

/// Joins the strings at the JSON pointer `pointer` in each of `items` with commas.
pub(super) fn joined(items: &[Value], pointer: &str) -> String {
    let texts = items
        .iter()
        .filter_map(|item| item.pointer(pointer)?.as_str());
    texts.collect::<Vec<_>>().join(",")
}

/// Formats labels as `key=value` pairs separated by commas, or as `<none>`.
pub(super) fn labels(labels: &Value) -> String {
    let pairs = labels.as_object().into_iter().flatten();
    let pairs: Vec<String> = pairs
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    none_if_empty(pairs.join(","))
}

/// Formats a `metav1.LabelSelector` as text, such as `app=web,tier in (a,b)`, or as `<none>`.
///
/// As in Kubernetes, all terms are sorted by key, and the values of a term are sorted.
pub(super) fn selector(selector: &Value) -> String {
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let equal = equal.map(|(key, value)| {
        let value = value.as_str().unwrap_or_default();
        (key.as_str(), format!("{key}={value}"))
    });
    let expressions = selector["matchExpressions"].as_array();
    let expressions = expressions.into_iter().flatten().map(|term| {
        let key = term["key"].as_str().unwrap_or_default();
        let values = term["values"].as_array().into_iter().flatten();
        let mut values: Vec<&str> = values.filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match term["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        };
        (key, text)
    });
    let mut terms: Vec<(&str, String)> = equal.chain(expressions).collect();
    terms.sort_by_key(|(key, _)| *key);
    let terms: Vec<String> = terms.into_iter().map(|(_, text)| text).collect();
    none_if_empty(terms.join(","))
}

pub(super) fn none_if_empty(text: String) -> String {
    if text.is_empty() {
        NONE.to_owned()
    } else {
        text
    }
}

/// Formats the duration from `time` to `now`, or returns `unknown` if `time` is not a timestamp.
pub(super) fn since(time: &Value, now: Timestamp, unknown: &str) -> String {
    let time: Option<Timestamp> = time.as_str().and_then(|time| time.parse().ok());
    time.map_or_else(
        || unknown.to_owned(),
        |time| human_duration(now.as_second() - time.as_second()),
    )
}
