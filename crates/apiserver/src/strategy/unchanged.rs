//! Compares values as Kubernetes' `equality.Semantic` does.

use serde_json::Value;

use crate::quantity::Quantity;

/// Returns whether two values of a pod or a template are the same.
///
/// An absent member is the same as one without a value, and quantities are the same if their values are.
pub(super) fn is_unchanged(new: &Value, old: &Value) -> bool {
    new == old || is_same(new, old, false)
}

fn is_same(new: &Value, old: &Value, are_quantities: bool) -> bool {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            let is_kept = |(name, value): (&String, &Value)| {
                let old = old.get(name).unwrap_or(&Value::Null);
                is_same(value, old, are_quantities || holds_quantities(name))
            };
            let mut removed = old.iter().filter(|(name, _)| !new.contains_key(*name));
            new.iter().all(is_kept) && removed.all(|(_, old)| is_same(&Value::Null, old, false))
        }
        (Value::Array(new), Value::Array(old)) if new.len() == old.len() => {
            let mut pairs = new.iter().zip(old);
            pairs.all(|(new, old)| is_same(new, old, false))
        }
        (Value::String(new), Value::String(old)) if are_quantities => {
            new == old || {
                let parsed = [new, old].map(|text| Quantity::parse(text));
                matches!(parsed, [Ok(new), Ok(old)] if new.compare(old).is_eq())
            }
        }
        (Value::Null, Value::Array(items)) | (Value::Array(items), Value::Null) => items.is_empty(),
        _ => new == old,
    }
}

/// Returns whether a member of a pod's `spec` is a quantity or has quantities as members.
fn holds_quantities(name: &str) -> bool {
    matches!(
        name,
        "limits" | "requests" | "overhead" | "sizeLimit" | "divisor"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_unchanged;

    #[test]
    fn quantities_and_absent_values_are_compared_by_value() {
        for (new, old, expected) in [
            (
                json!({"limits": {"cpu": "1000m"}}),
                json!({"limits": {"cpu": "1"}}),
                true,
            ),
            (
                json!({"limits": {"cpu": "1001m"}}),
                json!({"limits": {"cpu": "1"}}),
                false,
            ),
            (json!({"name": "1000m"}), json!({"name": "1"}), false),
            (json!({"a": null, "b": []}), json!({}), true),
            (json!({"a": {}}), json!({}), false),
            (json!({}), json!({"a": null, "b": []}), true),
            (json!({}), json!({"a": 1}), false),
            (json!({}), json!({"a": {}}), false),
            (
                json!([{"sizeLimit": "1Ki"}]),
                json!([{"sizeLimit": "1024"}]),
                true,
            ),
        ] {
            assert_eq!(is_unchanged(&new, &old), expected, "{new} {old}");
        }
    }
}
