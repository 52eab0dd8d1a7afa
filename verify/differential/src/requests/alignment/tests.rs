//! Tests the rules that explain why client-go and the library send different requests. Each test checks
//! requests that a rule accepts, and similar requests that the rule rejects.

use super::*;
use crate::sequence::{Answer, Operation, Sequence, Step};

/// The name of a test operation, and the requests that client-go and the library send after it.
type Told<'a> = (&'static str, &'a str, &'a str);

/// Returns the names of the divergences, and whether the stores may differ after the requests.
///
/// Returns `None` if a difference is unexplained.
fn accepted(told: &[Told<'_>]) -> Option<(Vec<&'static str>, bool)> {
    let sequence = Sequence {
        component: "requests",
        flags: Vec::new(),
        limiter: None,
        operations: told
            .iter()
            .map(|(verb, _, _)| Operation::new(verb))
            .collect(),
    };
    let said = |text: &str| Answer::said(format!("{text}; store [default/a@5]"));
    let steps: Vec<_> = told
        .iter()
        .map(|(_, _, ours)| Step {
            answer: said(ours),
            seen: Vec::new(),
        })
        .collect();
    let answers: Vec<_> = told
        .iter()
        .map(|(_, theirs, _)| Some(said(theirs)))
        .collect();
    let alignment = align(&Moment {
        sequence: &sequence,
        at: told.len() - 1,
        ours: &steps,
        theirs: &answers,
    })?;
    let mut names = alignment.names;
    names.sort_unstable();
    Some((names, alignment.parts))
}

fn one(name: &'static str) -> (Vec<&'static str>, bool) {
    (vec![name], false)
}

const LISTED: &str = "after 0.8 s list resourceVersion=5: 200; watch resourceVersion=5: 200";
const AT_ONCE_LISTED: &str = "list resourceVersion=5: 200; watch resourceVersion=5: 200";

#[test]
fn only_the_first_list_after_an_expiry_may_be_sent_immediately() {
    assert_eq!(
        accepted(&[("gone", LISTED, AT_ONCE_LISTED)]),
        Some(one("the_first_relist_is_at_once"))
    );
    assert_eq!(accepted(&[("internal", LISTED, AT_ONCE_LISTED)]), None);
    let theirs = "after 0.8 s list resourceVersion=5: 200; watch resourceVersion=5: 410; \
                  after 1.6 s list resourceVersion=5: 200; watch resourceVersion=5: 200";
    let ours = |second| {
        format!(
            "list resourceVersion=5: 200; watch resourceVersion=5: 410; \
             {second}list resourceVersion=5: 200; watch resourceVersion=5: 200"
        )
    };
    let waits = ours("after 0.8 s ");
    assert_eq!(
        accepted(&[("gone", theirs, &waits)]),
        Some(one("the_first_relist_is_at_once"))
    );
    assert_eq!(accepted(&[("gone", theirs, &ours(""))]), None);
}

#[test]
fn a_pause_that_is_not_the_next_one_of_its_backoff_is_rejected() {
    for pause in ["1.6", "3.2", "51.2"] {
        let ours = LISTED.replace("0.8", pause);
        assert_eq!(accepted(&[("internal", LISTED, &ours)]), None, "{pause}");
        assert_eq!(accepted(&[("internal", &ours, LISTED)]), None, "{pause}");
        assert_eq!(
            accepted(&[("gone", &ours, AT_ONCE_LISTED)]),
            None,
            "{pause}"
        );
    }
}

#[test]
fn a_different_store_or_revision_or_outcome_or_number_of_requests_is_rejected() {
    let other = AT_ONCE_LISTED.replace("list resourceVersion=5", "list resourceVersion=4");
    assert_eq!(accepted(&[("gone", LISTED, &other)]), None);
    let other = AT_ONCE_LISTED.replace(
        "watch resourceVersion=5: 200",
        "watch resourceVersion=5: 500",
    );
    assert_eq!(accepted(&[("gone", LISTED, &other)]), None);
    let other = format!("{AT_ONCE_LISTED}; watch resourceVersion=5: 200");
    assert_eq!(accepted(&[("gone", LISTED, &other)]), None);
    assert_eq!(accepted(&[("gone", LISTED, "")]), None);
    let other = format!("{AT_ONCE_LISTED}; store [default/b@6]");
    assert_eq!(accepted(&[("gone", LISTED, &other)]), None);
}

#[test]
fn a_probe_is_accepted_after_a_lost_connection_that_has_not_been_probed() {
    let theirs = "watch resourceVersion=5: 200";
    let ours = "after 0.8 s list resourceVersion=5 resourceVersionMatch=NotOlderThan limit=1: 200; \
                watch resourceVersion=5: 200";
    let name = "a_lost_connection_is_probed";
    assert_eq!(accepted(&[("break", theirs, ours)]), Some(one(name)));
    assert_eq!(accepted(&[("close", theirs, ours)]), None);
    assert_eq!(
        accepted(&[("break", theirs, &ours.replace("=5 r", "=4 r"))]),
        None
    );
    assert_eq!(
        accepted(&[("break", theirs, &ours.replace("after 0.8 s ", ""))]),
        None
    );
    assert_eq!(
        accepted(&[("break", theirs, &ours.replace("limit=1", "limit=2"))]),
        None
    );

    let refused = "watch resourceVersion=5: refused; after 0.8 s watch resourceVersion=5: 200";
    let probed = format!("watch resourceVersion=5: refused; {ours}");
    assert_eq!(accepted(&[("close", refused, &probed)]), Some(one(name)));

    let twice = "watch resourceVersion=5: reset; after 0.8 s watch resourceVersion=5: reset; \
                 after 0.8 s watch resourceVersion=5: 200";
    let owes = format!(
        "watch resourceVersion=5: reset; {}; after 1.6 s watch resourceVersion=5: 200",
        ours.replace(
            "watch resourceVersion=5: 200",
            "watch resourceVersion=5: reset"
        )
    );
    let later = ours.replace("after 0.8 s ", "");
    assert_eq!(
        accepted(&[("close", twice, &owes), ("close", theirs, &later)]),
        Some(one(name))
    );
    let listed = ("gone", LISTED, AT_ONCE_LISTED);
    assert_eq!(
        accepted(&[("close", twice, &owes), listed, ("put", theirs, &later)]),
        None
    );
}

#[test]
fn a_probe_after_a_closed_watch_is_sent_immediately_or_after_a_minute() {
    let name = "a_lost_connection_is_probed";
    let theirs = "watch resourceVersion=5: 200";
    let probed = |at| {
        format!(
            "list resourceVersion={at} resourceVersionMatch=NotOlderThan limit=1: 200; \
             watch resourceVersion={at}: 200"
        )
    };
    let ours = probed(5);
    assert_eq!(accepted(&[("close", theirs, &ours)]), Some(one(name)));
    assert_eq!(accepted(&[("put", theirs, &ours)]), None);
    assert_eq!(
        accepted(&[("close", theirs, &ours), ("put", theirs, &ours)]),
        None,
        "it has been asked"
    );

    let closes = format!("watch resourceVersion=5: closed; {theirs}");
    let early = |later: &str| {
        format!(
            "{}; {theirs}; {later}",
            ours.replace(
                "watch resourceVersion=5: 200",
                "watch resourceVersion=5: closed"
            )
        )
    };
    let beside =
        "after 51.2 s list resourceVersion=7 resourceVersionMatch=NotOlderThan limit=1: 200";
    let later = early(beside);
    assert_eq!(
        accepted(&[("close_at_once", &closes, &later)]),
        Some((vec![name, name], false))
    );
    let watched = early(&format!("after 51.2 s {}", probed(7)));
    assert_eq!(
        accepted(&[("close_at_once", &closes, &watched)]),
        None,
        "the watch continues"
    );
    let again = format!("{later}; {beside}");
    assert_eq!(accepted(&[("close_at_once", &closes, &again)]), None);
}

#[test]
fn a_list_of_the_newest_state_is_accepted_only_for_a_revision_that_has_expired_before() {
    let ours = AT_ONCE_LISTED.replace("list resourceVersion=5", "list limit=500");
    let first = ("gone", LISTED, AT_ONCE_LISTED);
    let (expired, at_once) = (
        "an_expiry_that_may_come_again_asks_for_the_newest",
        "the_first_relist_is_at_once",
    );
    assert_eq!(
        accepted(&[first, ("gone", LISTED, &ours)]),
        Some((vec![expired, at_once], false))
    );
    assert_eq!(accepted(&[("gone", LISTED, &ours)]), None);

    let in_pages = LISTED.replace("list resourceVersion=5", "list resourceVersion=5 limit=2");
    let ours_in_pages = AT_ONCE_LISTED.replace("list resourceVersion=5", "list limit=2");
    assert_eq!(
        accepted(&[("gone", &in_pages, &ours_in_pages)]),
        Some((vec![expired, at_once], false))
    );
    let paused = LISTED.replace("list resourceVersion=5", "list limit=2");
    assert_eq!(
        accepted(&[("garbage", &in_pages, &paused)]),
        Some(one(expired))
    );
    assert_eq!(accepted(&[("internal", &in_pages, &paused)]), None);

    let newer = ours.replace("watch resourceVersion=5", "watch resourceVersion=9");
    assert_eq!(
        accepted(&[first, ("gone", LISTED, &newer)]),
        Some((vec![expired, at_once], true)),
        "client-go has an older state"
    );
    let older = ours.replace("watch resourceVersion=5", "watch resourceVersion=4");
    assert_eq!(accepted(&[first, ("gone", LISTED, &older)]), None);
}

#[test]
fn a_list_may_replace_only_a_streaming_list_that_was_given_up() {
    let stream = "watch resourceVersion=5 sendInitialEvents=true";
    let listed = "list resourceVersion=5: 200; watch resourceVersion=5: 200";
    let theirs = format!("{stream}: 422; {listed}; then; after 0.8 s {stream}: 200");
    let ours = format!("{stream}: 422; {listed}; then; {listed}");
    assert_eq!(
        accepted(&[("unsupported", &theirs, &ours)]),
        Some((vec![NOT_ASKED, AT_ONCE], false))
    );
    assert_eq!(accepted(&[("gone", &theirs, &ours)]), None);

    let vain = |times: usize| {
        let theirs = vec![format!("{stream}: closed"); times].join("; ");
        let mut ours = vec![format!("{stream}: closed")];
        ours.extend(
            ["0.8", "1.6"][..times - 1]
                .iter()
                .map(|pause| format!("after {pause} s {stream}: closed")),
        );
        (
            format!("after 0.8 s {theirs}; {stream}: 200"),
            format!("{}; {listed}", ours.join("; ")),
        )
    };
    let (theirs, ours) = vain(3);
    assert_eq!(
        accepted(&[("end_early", &theirs, &ours)]),
        Some((vec![STREAM_FAILED, STREAM_FAILED, THREE, AT_ONCE], false))
    );
    let (theirs, ours) = vain(2);
    assert_eq!(accepted(&[("end_early", &theirs, &ours)]), None);
}

#[test]
fn only_an_undecodable_object_explains_a_missing_request() {
    let name = "an_object_that_can_not_be_decoded_is_kept";
    assert_eq!(accepted(&[("spoil", LISTED, "")]), Some(one(name)));
    assert_eq!(accepted(&[("garbage", LISTED, "")]), None);
    assert_eq!(accepted(&[("spoil", AT_ONCE_LISTED, "")]), None);
}

#[test]
fn a_temporarily_rejected_watch_may_be_retried_where_client_go_lists() {
    let probe = "list resourceVersion=5 resourceVersionMatch=NotOlderThan limit=1: 200";
    let theirs = |at| {
        format!(
            "watch resourceVersion=5: 503; after 0.8 s list resourceVersion=5: 200; \
             watch resourceVersion=5: 503; after 1.6 s list resourceVersion=5: 200; \
             watch resourceVersion={at}: 200"
        )
    };
    let ours = format!(
        "watch resourceVersion=5: 503; after 0.8 s {probe}; watch resourceVersion=5: 503; \
         after 1.6 s watch resourceVersion=5: 200"
    );
    assert_eq!(
        accepted(&[("close", &theirs(5), &ours)]),
        Some((vec![PROBE, KEPT], false))
    );
    assert_eq!(
        accepted(&[("close", &theirs(7), &ours)]),
        Some((vec![KEPT], true)),
        "their list was newer"
    );
    let refused = |with: &str| (theirs(5).replace("503", with), ours.replace("503", with));
    for with in ["500", "403", "410"] {
        let (theirs, ours) = refused(with);
        assert_eq!(accepted(&[("close", &theirs, &ours)]), None, "{with}");
    }
    let unprobed = ours.replace(&format!("{probe}; "), "");
    let (theirs, unprobed) = (
        theirs(5).replace("503", "401"),
        unprobed.replace("503", "401"),
    );
    assert_eq!(accepted(&[("close", &theirs, &unprobed)]), Some(one(KEPT)));
    for (is, was) in [
        ("after 1.6 s ", ""),
        (
            "watch resourceVersion=5: 200",
            "watch resourceVersion=4: 200",
        ),
        (
            "watch resourceVersion=5: 200",
            "watch resourceVersion=5: 403",
        ),
        (
            "after 1.6 s watch resourceVersion=5: 200",
            "after 1.6 s list resourceVersion=5: 200",
        ),
    ] {
        let other = unprobed.replace(is, was);
        assert_eq!(accepted(&[("close", &theirs, &other)]), None, "{other}");
    }
    assert_eq!(
        accepted(&[(
            "put",
            &theirs,
            &unprobed.replace("watch resourceVersion=5: 401; after 0.8 s", "after 0.8 s")
        )]),
        None,
        "nothing was refused"
    );
}

#[test]
fn only_an_empty_streaming_list_may_be_confirmed_by_a_list() {
    let stream = "watch resourceVersion=5 sendInitialEvents=true: 200";
    let ours = format!("{stream}; list limit=500: 200; watch resourceVersion=6: 200");
    let accepted = |ours: &str, store: &str| {
        let said = |text: &str| Answer::said(format!("{text}; store {store}"));
        let sequence = Sequence {
            component: "requests",
            flags: Vec::new(),
            limiter: None,
            operations: vec![Operation::new("gone")],
        };
        let steps = [Step {
            answer: said(ours),
            seen: Vec::new(),
        }];
        align(&Moment {
            sequence: &sequence,
            at: 0,
            ours: &steps,
            theirs: &[Some(said(stream))],
        })
        .map(|alignment| alignment.names)
    };
    assert_eq!(accepted(&ours, "[]"), Some(vec![CONFIRMED]));
    assert_eq!(accepted(&ours, "[default/a@5]"), None);
    for (is, was) in [
        ("list limit=500", "list resourceVersion=5"),
        ("list limit=500: 200", "list limit=500: 503"),
        ("; watch resourceVersion=6: 200", ""),
        ("; list", "; after 0.8 s list"),
    ] {
        let other = ours.replace(is, was);
        assert_eq!(accepted(&other, "[]"), None, "{other}");
    }
}
