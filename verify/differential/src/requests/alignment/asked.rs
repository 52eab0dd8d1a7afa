//! The requests of an answer, read back from its text: what each asked, what became of it, and what kind
//! of pause came before it.

use super::super::THEN;
use crate::component::Moment;

/// The verbs that break an open watch off.
pub(super) const LOSE: [&str; 2] = ["break", "cut_amid"];

/// Those that have an open watch closed before its time.
const CLOSE: [&str; 4] = ["close", "close_at_once", "restart", "compaction"];

/// What is between a request and what happened before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    None,
    /// The next one of a back-off: each is twice as long as the one before.
    Backoff,
    /// As long as the server has said, or what client-go waits before it repeats a request whose
    /// connection was reset.
    Repeat,
    /// As long as a streaming list is waited for that brings nothing.
    InitialEvents,
    /// What is left of the minute in which a probe comes too early, while a watch is open.
    Minute,
    /// Any other, which is never right.
    Strange,
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) pause: Pause,
    pub(super) asked: &'a str,
    pub(super) outcome: &'a str,
    /// The last one before it, of the same operation and turn.
    pub(super) before: Option<(&'a str, &'a str)>,
    pub(super) turn: usize,
    /// It follows the first failure of this turn, which need not mean that anything is wrong.
    pub(super) is_free: bool,
    /// It follows a watch that has expired, or told what can't be read: that may come again.
    pub(super) is_stuck: bool,
}

/// Which side a list is of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Theirs,
    Ours,
}

/// The requests of an answer, and its store.
pub(super) fn split(answer: &str) -> Option<(Vec<&str>, &str)> {
    let (requests, store) = answer.split_at(answer.rfind("store [")?);
    let requests = requests.split("; ").filter(|part| !part.is_empty());
    Some((requests.collect(), store))
}

/// The label of the nth pause of a back-off, from 0.
fn is_nth(label: &str, nth: usize) -> bool {
    const LABELS: [&str; 6] = ["0.8", "1.6", "3.2", "6.4", "12.8", "25.6"];
    match LABELS.get(nth) {
        Some(expected) => label == *expected,
        // Between 30 and 60 s.
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
        // What is no request is like no other.
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
            // It stands beside the watch, which goes on.
            continue;
        }
        fresh &= pause == Pause::None && !is_free(verb, before);
        // The pause of an outage earns that what comes behind it need not wait.
        fresh |= side == Side::Ours && pause != Pause::None && is_outage(verb, before);
        before = Some((asked, outcome));
    }
    requests
}

/// Whether what follows this need not wait, for nothing may be wrong.
fn is_free(verb: &str, before: Option<(&str, &str)>) -> bool {
    let is_closed = before.is_some_and(|(asked, outcome)| is_stream(asked) && outcome == "closed");
    is_closed || has_expired(verb, before)
}

/// Whether this is a watch that has expired.
fn has_expired(verb: &str, before: Option<(&str, &str)>) -> bool {
    const EXPIRES: [&str; 4] = ["gone", "end_early", "end_never", "unsupported"];
    match before {
        None => EXPIRES.contains(&verb),
        Some((asked, outcome)) => is_watch(asked) && ["410", "expired"].contains(&outcome),
    }
}

/// Whether the server, or what stands before it, was not there.
fn is_outage(verb: &str, before: Option<(&str, &str)>) -> bool {
    match before {
        None => LOSE.contains(&verb),
        Some((_, outcome)) => {
            ["reset", "refused", "502"].contains(&outcome) || outcome.starts_with("503")
        }
    }
}

/// Whether a watch that is refused so keeps its revision.
pub(super) fn is_away(outcome: &str) -> bool {
    ["401", "502", "503"].contains(&outcome)
}

pub(super) fn is_stream(asked: &str) -> bool {
    asked.contains(" sendInitialEvents=true")
}

/// A watch that begins at a revision, with nothing that is there already.
pub(super) fn is_watch(asked: &str) -> bool {
    asked.starts_with("watch ") && !is_stream(asked)
}

pub(super) fn is_probe(asked: &str) -> bool {
    asked.starts_with("list ") && asked.ends_with(" resourceVersionMatch=NotOlderThan limit=1")
}

pub(super) fn is_page(asked: &str) -> bool {
    asked.starts_with("list ") && asked.contains(" continue=next")
}

/// The revision that is asked for, empty for none.
pub(super) fn revision(asked: &str) -> &str {
    let value = asked
        .split(' ')
        .find_map(|word| word.strip_prefix("resourceVersion="));
    value.unwrap_or_default()
}

/// The revisions of lists that have followed an expired watch before.
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

/// Whether something may have happened since the last event or bookmark that no watch sends.
pub(super) fn lags_behind(moment: &Moment<'_>) -> bool {
    let done = moment.sequence.operations[..=moment.at].iter().rev();
    let verbs = done.flat_map(|operation| {
        let batch = operation.batch.iter().rev().map(|change| change.verb);
        batch.chain([operation.verb])
    });
    // A removal of what is not there changes nothing.
    let mut last = verbs.filter(|verb| ["put", "spoil", "bookmark", "elsewhere"].contains(verb));
    last.next() == Some("elsewhere")
}

/// Before which requests of ours a lost connection, or a watch closed before its time, has not been asked
/// about.
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
