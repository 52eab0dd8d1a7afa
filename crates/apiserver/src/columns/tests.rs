//! Tests that durations in table cells have the format of `kubectl`.

use super::cell::human_duration;

#[test]
fn durations_have_the_precision_of_kubectl() {
    for (seconds, expected) in [
        (-5, "0s"),
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
