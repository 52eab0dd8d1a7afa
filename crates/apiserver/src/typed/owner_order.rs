//! Orders the members of `fieldsV1` in objects of built-in kinds.
//!
//! Guarantees: the order is that of the paths in Kubernetes, in which the port 80 is before 443. Custom objects have the
//! order of the names instead.

use std::cmp::Ordering;

use serde_json::{Map, Value};

/// Returns the members of `fieldsV1`, or of an object in it, in the order of the paths.
pub(super) fn sorted(members: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut sorted: Vec<_> = members.iter().collect();
    let is_ordered_by_name = |name: &String| name.starts_with("f:") || name == ".";
    if !members.keys().all(is_ordered_by_name) {
        sorted.sort_by_cached_key(|(name, _)| Step::of(name));
    }
    sorted
}

/// A step of a path, in the order of Kubernetes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Itself,
    Field(String),
    Key(Vec<(String, Scalar)>),
    Value(Scalar),
    Index(i64),
    Unknown(String),
}

/// A value that identifies an item of a list. Numbers are before texts, and texts before booleans.
struct Scalar(Value);

impl Step {
    fn of(name: &str) -> Step {
        let parsed = |text: &str| serde_json::from_str(text).ok();
        let known = match name.split_once(':') {
            None if name == "." => Some(Step::Itself),
            Some(("f", field)) => Some(Step::Field(field.to_owned())),
            Some(("k", text)) => parsed(text).and_then(|value| match value {
                Value::Object(members) => {
                    let members = members.into_iter();
                    Some(Step::Key(
                        members.map(|(name, value)| (name, Scalar(value))).collect(),
                    ))
                }
                _ => None,
            }),
            Some(("v", text)) => parsed(text).map(|value| Step::Value(Scalar(value))),
            Some(("i", text)) => text.parse().ok().map(Step::Index),
            _ => None,
        };
        known.unwrap_or_else(|| Step::Unknown(name.to_owned()))
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Scalar) -> Ordering {
        let rank = |value: &Value| match value {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            _ => 3,
        };
        match (&self.0, &other.0) {
            (Value::Number(one), Value::Number(other)) => {
                let float = |number: &serde_json::Number| number.as_f64().unwrap_or_default();
                float(one).total_cmp(&float(other))
            }
            (Value::String(one), Value::String(other)) => one.cmp(other),
            (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
            (one, other) => rank(one).cmp(&rank(other)),
        }
    }
}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Scalar) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Scalar {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_have_the_order_of_their_paths() {
        let names = [
            ".",
            "f:a",
            "f:b",
            r#"k:{"port":80,"protocol":"TCP"}"#,
            r#"k:{"port":80,"protocol":"UDP"}"#,
            r#"k:{"port":443,"protocol":"TCP"}"#,
            "v:9",
            "v:10",
            r#"v:"a b""#,
            r#"v:"a""#,
            "v:true",
            "i:2",
            "i:10",
            "x",
        ];
        let members = names.iter().map(|name| ((*name).to_owned(), json!({})));
        let members: Map<String, Value> = members.collect();
        let found: Vec<&str> = sorted(&members)
            .into_iter()
            .map(|(name, _)| &**name)
            .collect();
        let mut expected = names;
        expected.swap(8, 9);
        assert_eq!(found, expected);
    }
}
