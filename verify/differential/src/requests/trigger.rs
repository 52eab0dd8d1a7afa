//! [`Trigger`]: what each operation does to the server, in the words of its fault plans.

use serde_json::{Value, json};

/// What an operation does beside the change of its object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trigger {
    /// Rules that wait for requests.
    pub(super) rules: &'static str,
    /// Per turn what is done, one after the other; watches tell what they have to say in between.
    pub(super) turns: &'static [&'static [&'static str]],
    /// Milliseconds that pass behind each turn.
    pub(super) pass: &'static [u64],
    /// What happens to the events of this operation.
    pub(super) twist: Option<Twist>,
    /// Later turns end watches whose list has not ended.
    pub(super) ends_unfinished: bool,
}

/// What happens to an event on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Twist {
    /// Its object can't be decoded.
    Spoil,
}

/// An operation takes so long.
const OPERATION: u64 = 2_000;
/// Within it everyone has recovered from a fault, and has been well for longer than makes a back-off
/// begin anew.
pub(super) const RECOVERY: u64 = 300_000;
/// The same, and longer than a server that does not stream lists is not asked again.
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
    /// What an operation of this verb does.
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
    /// Does it to these events, one a line.
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
    fn a_twist_is_done_to_every_event_and_leaves_its_name_and_revision() {
        let event = r#"{"object":{"metadata":{"name":"a","resourceVersion":"7"}},"type":"ADDED"}"#;
        let spoilt = Twist::Spoil.apply(&format!("{event}\n{event}\n"));
        let expected = r#"{"object":{"metadata":{"annotations":7,"name":"a","resourceVersion":"7"}},"type":"ADDED"}"#;
        assert_eq!(spoilt, format!("{expected}\n{expected}\n"));
    }
}
