//! Parses the text of the requests that a reflector sent after one operation of a test sequence.
//!
//! The answer of an operation is a text with all requests that followed, and the content of the store. Each
//! request is parsed into its parameters, its result, and the kind of the pause before it.

use super::super::THEN;
use crate::component::Moment;

/// Verbs of the operations that break the connection of an open watch.
pub(super) const LOSE: [&str; 2] = ["break", "cut_amid"];

/// Verbs of the operations that close an open watch early.
const CLOSE: [&str; 4] = ["close", "close_at_once", "restart", "compaction"];

/// Kind of the pause before a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    None,
    /// The next delay of an exponential backoff.
    Backoff,
    /// The pause before a repeated request: the time in `Retry-After`, or client-go's 1 s after a reset
    /// connection.
    Repeat,
    /// The time after which the library's reflector ends a streaming list that delivers nothing.
    InitialEvents,
    /// Any pause before a probe (a LIST with `limit=1`) that the library sends during an open watch.
    ///
    /// The library delays such a probe until one minute after the last answered probe.
    Minute,
    /// Any other pause, which no rule accepts.
    Strange,
}

/// A list or watch request that a reflector sent, parsed from the recorded result of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) pause: Pause,
    pub(super) asked: &'a str,
    pub(super) outcome: &'a str,
    /// The previous request, and the result of that request. Probes during an open watch do not count.
    ///
    /// `None` for the first request of a turn. An operation has one or two turns. In a turn, the test changes
    /// objects or injects faults, and then virtual time passes.
    pub(super) before: Option<(&'a str, &'a str)>,
    pub(super) turn: usize,
    /// Whether the library may send the request without a pause, as after an expired watch.
    pub(super) is_free: bool,
    /// Whether the request follows an expired watch, or a watch that delivered undecodable data.
    pub(super) is_stuck: bool,
}

/// Identifies the reflector that sent a request: client-go's or the library's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Theirs,
    Ours,
}

/// Splits what a reflector reports after an operation into the requests that the reflector sent, and the
/// content of its store.
///
/// Returns `None` if the report has no content of the store.
pub(super) fn split(answer: &str) -> Option<(Vec<&str>, &str)> {
    let (requests, store) = answer.split_at(answer.rfind("store [")?);
    let requests = requests.split("; ").filter(|part| !part.is_empty());
    Some((requests.collect(), store))
}

/// Returns whether a pause with the text `label` can be the backoff delay `nth`, counted from 0.
///
/// A backoff delay is random between a minimum and twice the minimum. The minimum is 0.8 s for the first
/// delay, doubles with each further delay, and is at most 30 s.
///
/// `label` stands for a range of pauses: `0.8` for pauses up to 1.6 s, `1.6` for longer pauses up to 3.2 s,
/// and so on.
fn is_nth(label: &str, nth: usize) -> bool {
    const LABELS: [&str; 6] = ["0.8", "1.6", "3.2", "6.4", "12.8", "25.6"];
    match LABELS.get(nth) {
        Some(expected) => label == *expected,
        // The delay is between 30 and 60 s.
        None => label == "25.6" || label == "51.2",
    }
}

pub(super) fn requests<'a>(parts: &[&'a str], side: Side, verb: &str) -> Vec<Request<'a>> {
    let mut requests = Vec::new();
    let (mut backoff, mut fresh, mut turn, mut before) = (0, true, 0, None);
    for part in parts {
        if *part == THEN {
            (backoff, fresh, before) = (0, true, None);
            turn += 1;
            continue;
        }
        let (label, rest) = match part
            .strip_prefix("after ")
            .and_then(|p| p.split_once(" s "))
        {
            Some((label, rest)) => (Some(label), rest),
            None => (None, *part),
        };
        // A text that is not a request is not equal to any request.
        let (asked, outcome) = rest.rsplit_once(": ").unwrap_or((rest, ""));
        let last = before.map_or("", |(_, outcome): (&str, &str)| outcome);
        let was_told = last.contains(" for ");
        let watches = before.is_some_and(|(asked, outcome)| is_watch(asked) && outcome == "200");
        let pause = match label {
            None => Pause::None,
            Some(_) if side == Side::Ours && watches && is_probe(asked) => Pause::Minute,
            Some("12.8") if was_told => Pause::Repeat,
            Some("0.8") if last == "reset" && side == Side::Theirs => Pause::Repeat,
            Some(label) if is_nth(label, backoff) => Pause::Backoff,
            Some("6.4") if side == Side::Ours => Pause::InitialEvents,
            Some(_) => Pause::Strange,
        };
        let is_step = pause == Pause::Backoff || pause == Pause::Repeat && side == Side::Ours;
        backoff += usize::from(is_step);
        requests.push(Request {
            pause,
            asked,
            outcome,
            before,
            turn,
            is_free: fresh && pause == Pause::None && is_free(verb, before),
            is_stuck: has_expired(verb, before) || before.is_none() && verb == "garbage",
        });
        if pause == Pause::Minute {
            // The watch continues while the probe is sent.
            continue;
        }
        fresh &= pause == Pause::None && !is_free(verb, before);
        // After the pause of an outage, the next request may be sent without a pause.
        fresh |= side == Side::Ours && pause != Pause::None && is_outage(verb, before);
        before = Some((asked, outcome));
    }
    requests
}

/// Returns whether the library may send a request without a pause.
///
/// True after an expired watch, and after a streaming list that ended too early. For the arguments, see
/// [`has_expired`].
fn is_free(verb: &str, before: Option<(&str, &str)>) -> bool {
    let is_closed = before.is_some_and(|(asked, outcome)| is_stream(asked) && outcome == "closed");
    is_closed || has_expired(verb, before)
}

/// Returns whether a request follows a watch that failed because its revision had expired (410 Gone).
///
/// `before` is the previous request, with its outcome. `None` means that the request directly follows the
/// test operation `verb`. The function then returns whether this operation sends a 410 error to the open
/// watch.
fn has_expired(verb: &str, before: Option<(&str, &str)>) -> bool {
    const EXPIRES: [&str; 4] = ["gone", "end_early", "end_never", "unsupported"];
    match before {
        None => EXPIRES.contains(&verb),
        Some((asked, outcome)) => is_watch(asked) && ["410", "expired"].contains(&outcome),
    }
}

/// Returns whether the request `before` failed because the server or a proxy was unavailable.
///
/// `None` means that no request was sent since the test operation `verb`. The function then returns whether
/// this operation breaks the connection of the open watch.
fn is_outage(verb: &str, before: Option<(&str, &str)>) -> bool {
    match before {
        None => LOSE.contains(&verb),
        Some((_, outcome)) => {
            ["reset", "refused", "502"].contains(&outcome) || outcome.starts_with("503")
        }
    }
}

/// Returns whether `outcome` is a temporary rejection, after which the library sends the same watch again.
pub(super) fn is_away(outcome: &str) -> bool {
    ["401", "502", "503"].contains(&outcome)
}

pub(super) fn is_stream(asked: &str) -> bool {
    asked.contains(" sendInitialEvents=true")
}

/// Returns whether the request is a watch, but not a streaming list.
pub(super) fn is_watch(asked: &str) -> bool {
    asked.starts_with("watch ") && !is_stream(asked)
}

pub(super) fn is_probe(asked: &str) -> bool {
    asked.starts_with("list ") && asked.ends_with(" resourceVersionMatch=NotOlderThan limit=1")
}

pub(super) fn is_page(asked: &str) -> bool {
    asked.starts_with("list ") && asked.contains(" continue=next")
}

/// Returns the resource version in a request's parameters, or an empty text.
pub(super) fn revision(asked: &str) -> &str {
    let value = asked
        .split(' ')
        .find_map(|word| word.strip_prefix("resourceVersion="));
    value.unwrap_or_default()
}

/// Returns the revisions that client-go's lists requested in earlier operations.
///
/// These revisions may have expired since then.
pub(super) fn expired(moment: &Moment<'_>) -> Vec<String> {
    let before = moment.theirs[..moment.at].iter().flatten();
    let texts = before.filter_map(|answer| answer.text());
    let lists = texts.flat_map(|text| text.split("; ")).filter_map(|part| {
        let asked = part.rsplit_once(": ")?.0;
        let asked = asked.split_once(" s ").map_or(asked, |(_, asked)| asked);
        let is_list = asked.starts_with("list ") || is_stream(asked);
        is_list.then(|| revision(asked).to_owned())
    });
    lists.filter(|revision| !revision.is_empty()).collect()
}

/// Returns whether a list after the current operation may have a newer revision than the last watch event.
///
/// True if the latest change was to a resource that the reflector does not watch. Such a change increases
/// the server's revision without a watch event.
pub(super) fn lags_behind(moment: &Moment<'_>) -> bool {
    let done = moment.sequence.operations[..=moment.at].iter().rev();
    let verbs = done.flat_map(|operation| {
        let batch = operation.batch.iter().rev().map(|change| change.verb);
        batch.chain([operation.verb])
    });
    // Removing an absent object changes nothing.
    let mut last = verbs.filter(|verb| ["put", "spoil", "bookmark", "elsewhere"].contains(verb));
    last.next() == Some("elsewhere")
}

/// Returns one value per request of the library after the current operation. The value is `true` if the
/// request may be a probe (a LIST with `limit=1`).
///
/// Probes are permitted after a watch is closed, loses its connection, or fails because the server is
/// unavailable. The permission ends with the next list or probe, unless the server is unavailable again.
pub(super) fn owed(moment: &Moment<'_>) -> Vec<bool> {
    let mut owed = false;
    let mut before = Vec::new();
    let operations = &moment.sequence.operations[..=moment.at];
    for (operation, step) in operations.iter().zip(moment.ours) {
        owed |= LOSE.contains(&operation.verb) || CLOSE.contains(&operation.verb);
        before.clear();
        let parts = step.answer.text().and_then(split);
        let parts = parts.map_or_else(Vec::new, |(parts, _)| parts);
        for request in requests(&parts, Side::Ours, operation.verb) {
            before.push(owed);
            let lost = is_outage(operation.verb, Some((request.asked, request.outcome)));
            let closed = ["closed", "complete and closed"].contains(&request.outcome);
            if request.asked.starts_with("list ") || is_stream(request.asked) {
                owed &= lost;
                owed |= request.outcome == "complete and closed";
            } else {
                owed |= lost || closed;
            }
        }
    }
    before
}
