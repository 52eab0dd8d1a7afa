//! Contains the faults that the embedded server injects at each operation of a generated sequence.
//!
//! An operation is named by a verb, such as `gone`. Its faults are texts in the grammar of fault plans.

use serde_json::{Value, json};

/// The faults that the server injects at one operation, and the virtual time that passes after each fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trigger {
    /// Fault injection plan for requests that arrive after the operation starts; may be empty.
    ///
    /// The server receives the plan before the operation changes objects.
    pub(super) rules: &'static str,
    /// Fault injection plans of each turn, in order. A turn is a step of the operation, after which virtual
    /// time passes.
    ///
    /// An operation has a second turn if time must pass between its faults. After each plan, the server
    /// delivers the pending watch events. Only the first turn changes objects, before its plans.
    pub(super) turns: &'static [&'static [&'static str]],
    /// Virtual time, in milliseconds, after each turn (step of the operation): one value per element of
    /// `turns`.
    ///
    /// If the reflector does not request streaming lists, longer times are reduced to [`RECOVERY`].
    pub(super) pass: &'static [u64],
    /// Change that is applied to watch events before they are delivered.
    pub(super) twist: Option<Twist>,
    /// Whether the server closes all unfinished streaming lists at the end of the operation's second step.
    ///
    /// A streaming list is unfinished until it has sent the bookmark with the annotation
    /// `k8s.io/initial-events-end`.
    pub(super) ends_unfinished: bool,
}

/// A change that is applied to watch events before they are delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Twist {
    /// Makes the object of each event fail to decode.
    Spoil,
}

/// Virtual time that passes after an operation without a fault, in milliseconds.
const OPERATION: u64 = 2_000;
/// Virtual time for client-go and the library to recover and reset their backoff, in milliseconds.
pub(super) const RECOVERY: u64 = 300_000;
/// Virtual time that passes after a fault if the reflector requests streaming lists, in milliseconds.
///
/// After the server rejects a streaming list, the library requests none for one hour. This time is longer, so
/// the library then requests streaming lists again.
const HOUR: u64 = 3_700_000;

const GONE: &str = concat!(
    r#"send "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","#,
    r#"\"reason\":\"Expired\",\"message\":\"too old\",\"code\":410}}\n" to watch configmaps"#
);
const INTERNAL: &str = concat!(
    r#"send "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","#,
    r#"\"reason\":\"InternalError\",\"message\":\"broken\",\"code\":500}}\n" to watch configmaps"#
);
const UNAVAILABLE: &str = concat!(
    r#"send "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","#,
    r#"\"reason\":\"ServiceUnavailable\",\"message\":\"later\",\"code\":503}}\n" to watch configmaps"#
);
const THROTTLED: &str = concat!(
    r#"send "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","#,
    r#"\"reason\":\"TooManyRequests\",\"message\":\"slow down\",\"code\":429}}\n" to watch configmaps"#
);
const GARBAGE: &str = r#"send "<html>\n" to watch configmaps"#;
const HALF: &str = r#"send "{\"type\":\"ADDED\",\"obj" to watch configmaps"#;
const CUT: &str = "cut watch configmaps";

const PLAIN: Trigger = Trigger {
    rules: "",
    turns: &[&[]],
    pass: &[OPERATION],
    twist: None,
    ends_unfinished: false,
};

const FAULT: Trigger = Trigger {
    pass: &[HOUR],
    ..PLAIN
};

impl Trigger {
    /// Returns the faults of the operation `verb`, and the virtual time that passes after them.
    pub(super) fn of(verb: &str) -> Self {
        match verb {
            "bookmark" => Self {
                turns: &[&["send bookmarks to watch configmaps"]],
                ..PLAIN
            },
            "start" => FAULT,
            "close" => FAULT.with(&[&[CUT]]),
            "close_at_once" => Self {
                rules: "watch configmaps: cut x1",
                ..FAULT.with(&[&[CUT]])
            },
            "break" => FAULT.with(&[&["break watch configmaps"]]),
            "cut_amid" => FAULT.with(&[&[HALF, CUT]]),
            "gone" | "end_early" => FAULT.with(&[&[GONE]]),
            "internal" => FAULT.with(&[&[INTERNAL]]),
            "unavailable" => FAULT.with(&[&[UNAVAILABLE]]),
            "throttled" => FAULT.with(&[&[THROTTLED]]),
            "garbage" => FAULT.with(&[&[GARBAGE]]),
            "restart" => FAULT.with(&[&["restart"]]),
            "compaction" => FAULT.with(&[&["expire history; cut watch configmaps"]]),
            "spoil" => Self {
                twist: Some(Twist::Spoil),
                ..FAULT
            },
            "end_never" => Self {
                rules: "watch configmaps: drop end-bookmark x1",
                turns: &[&[GONE], &[]],
                pass: &[RECOVERY, HOUR],
                ends_unfinished: true,
                ..FAULT
            },
            "unsupported" => Self {
                rules: "watch configmaps: refuse streaming x1",
                turns: &[&[GONE], &[GONE]],
                pass: &[RECOVERY, HOUR],
                ..FAULT
            },
            _ => PLAIN,
        }
    }

    const fn with(self, turns: &'static [&'static [&'static str]]) -> Self {
        Self { turns, ..self }
    }
}

impl Twist {
    /// Returns `events` with the change `self` applied to each event. Each line of `events` is a JSON event.
    pub(super) fn apply(self, events: &str) -> String {
        let twisted = events.lines().filter_map(|line| {
            let mut event: Value = serde_json::from_str(line).ok()?;
            match self {
                Self::Spoil => event["object"]["metadata"]["annotations"] = json!(7),
            }
            Some(format!("{event}\n"))
        });
        twisted.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_twist_changes_every_event_and_keeps_its_name_and_revision() {
        let event = r#"{"object":{"metadata":{"name":"a","resourceVersion":"7"}},"type":"ADDED"}"#;
        let spoilt = Twist::Spoil.apply(&format!("{event}\n{event}\n"));
        let expected = r#"{"object":{"metadata":{"annotations":7,"name":"a","resourceVersion":"7"}},"type":"ADDED"}"#;
        assert_eq!(spoilt, format!("{expected}\n{expected}\n"));
    }
}
