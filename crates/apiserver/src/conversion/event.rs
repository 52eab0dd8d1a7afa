//! Converts events between `events.k8s.io/v1` and `v1`, whose fields have other names.

use super::{Rules, rename};

pub(super) const RULES: Rules = Rules {
    shown: ("events.k8s.io/v1", "Event"),
    stored: "v1",
    store: |event| rename(event, NAMES),
    show: |event| rename(event, NAMES.map(|(shown, stored)| (stored, shown))),
};

/// The names of a field in `events.k8s.io/v1` and `v1`, where they differ.
const NAMES: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];
