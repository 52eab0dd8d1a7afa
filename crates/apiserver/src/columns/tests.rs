//! Tests that durations and selectors in table cells have the format of `kubectl`.

use serde_json::json;

use super::cell::{human_duration, selector};

#[test]
fn durations_have_the_precision_of_kubectl() {
    for (seconds, expected) in [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600 + 60, "8h"),
        (47 * 3600, "47h"),
        (50 * 3600, "2d2h"),
        (9 * 86_400, "9d"),
        (800 * 86_400, "2y70d"),
        (3_000 * 86_400, "8y"),
    ] {
        assert_eq!(human_duration(seconds), expected, "{seconds}");
    }
}

#[test]
fn terms_of_a_selector_are_sorted_by_key_and_their_values_too() {
    let mixed = json!({
        "matchLabels": {"d": "x", "b": "y"},
        "matchExpressions": [
            {"key": "e", "operator": "NotIn", "values": ["z", "a"]},
            {"key": "c", "operator": "In", "values": ["z", "a"]},
            {"key": "a", "operator": "Exists"},
            {"key": "f", "operator": "DoesNotExist"},
        ],
    });
    assert_eq!(selector(&mixed), "a,b=y,c in (a,z),d=x,e notin (a,z),!f");
    for odd in [
        json!(null),
        json!("a"),
        json!({"matchLabels": [], "matchExpressions": {}}),
    ] {
        assert_eq!(selector(&odd), "<none>", "{odd}");
    }
}
