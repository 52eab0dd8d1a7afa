//! Writes the JSON of annotations with the members in the order of Go's types.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::go_json;

/// The members of all types of the annotations, in an order that agrees with that of each type.
const ORDER: [&str; 39] = [
    // Metrics and conditions.
    "type",
    "status",
    "lastTransitionTime",
    "reason",
    "message",
    "object",
    "pods",
    "resource",
    "containerResource",
    "external",
    // References to objects, and the sources of metrics.
    "kind",
    "target",
    "name",
    "apiVersion",
    "metricName",
    "metricSelector",
    "targetValue",
    "currentValue",
    "targetAverageUtilization",
    "targetAverageValue",
    "currentAverageUtilization",
    "currentAverageValue",
    "selector",
    "averageValue",
    "container",
    // Label selectors.
    LABELS,
    "matchExpressions",
    "key",
    "operator",
    "values",
    // The behavior.
    "ScaleUp",
    "ScaleDown",
    "StabilizationWindowSeconds",
    "SelectPolicy",
    "Policies",
    "Tolerance",
    "Type",
    "Value",
    "PeriodSeconds",
];

/// The member whose value is a map, which Go sorts by name.
const LABELS: &str = "matchLabels";

/// Returns a value as `json.Marshal` writes the type of Go that it belongs to.
pub(super) fn to_text(value: &Value) -> String {
    go_json::to_text(&Ordered(value))
}

struct Ordered<'a>(&'a Value);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Array(items) => serializer.collect_seq(items.iter().map(Ordered)),
            Value::Object(members) => {
                let mut sorted: Vec<_> = members.iter().collect();
                sorted.sort_by_key(|(name, _)| ORDER.iter().position(|one| one == name));
                let mut map = serializer.serialize_map(Some(sorted.len()))?;
                for (name, value) in sorted {
                    match name.as_str() {
                        LABELS => map.serialize_entry(name, value)?,
                        _ => map.serialize_entry(name, &Ordered(value))?,
                    }
                }
                map.end()
            }
            other => other.serialize(serializer),
        }
    }
}
