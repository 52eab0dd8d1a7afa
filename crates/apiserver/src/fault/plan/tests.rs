//! Tests the parser of fault plans: which plans it accepts, how it prints the parsed statements, and its
//! error messages.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::parse;

/// Returns the parsed statements of `plan`, one per line, or the parser's error message.
fn printed(plan: &str) -> String {
    match parse(plan) {
        Ok(statements) => {
            let lines = statements.iter().map(|placed| placed.statement.to_string());
            lines.map(|line| line + "\n").collect()
        }
        Err(error) => format!("{error}\n"),
    }
}

fn check(plan: &str, expected: &Expect) {
    expected.assert_eq(&printed(plan));
}

/// A fault plan that contains every element of the grammar.
const EVERYTHING: &str = r#"
    seed 17
    list pods: 429 retry-after=2 x3; get *: 503; * *: 429 plain; watch pods: 504 too-large
    create pods: reset skip=1 chance=2.5% x2
    watch *: refuse streaming
    list pods: delay 5s; list pods: delay answer 1500ms; get pods: delay first byte 2m; watch pods: delay each event 1h
    watch pods: cut after 3 events; list pods: break after 1 byte; watch pods: freeze
    watch *: split every 7 bytes; list *: split at 1,20,20; watch *: split randomly
    watch *: drop events; watch *: duplicate event 3; watch *: swap every 2 events
    watch *: garble 0.0001% of events; watch *: spoil bookmarks; watch *: retype end-bookmark
    watch *: send "a\n;#:" after 1 event
    patch "odd;name" named a in "b c" from kubectl/v1.36: 500
    cut watch pods named a; break watch *; freeze watch pods in default; thaw watch *
    close watch * from "my agent"; send "x" to watch pods; send bookmarks to watch *
    expire history; restart; restart at 12; restart back 3
    refuse connections; refuse connections for 200ms; accept connections
"#;

#[test]
fn every_statement_is_printed_in_the_grammar() {
    check(
        EVERYTHING,
        &expect![[r#"
            seed 17
            list pods: 429 retry-after=2 x3
            get *: 503
            * *: 429 plain
            watch pods: 504 too-large
            create pods: reset skip=1 chance=2.5% x2
            watch *: refuse streaming
            list pods: delay answer 5s
            list pods: delay answer 1500ms
            get pods: delay first byte 120s
            watch pods: delay each event 3600s
            watch pods: cut after 3 events
            list pods: break after 1 bytes
            watch pods: freeze after 0 bytes
            watch *: split every 7 bytes
            list *: split at 1,20,20
            watch *: split randomly
            watch *: drop events
            watch *: duplicate event 3
            watch *: swap every 2 events
            watch *: garble 0.0001% of events
            watch *: spoil bookmarks
            watch *: retype end-bookmark
            watch *: send "a\n;#:" after 1 events
            patch "odd;name" named a in "b c" from kubectl/v1.36: 500
            cut watch pods named a
            break watch *
            freeze watch pods in default
            thaw watch *
            close watch * from "my agent"
            send "x" to watch pods
            send bookmarks to watch *
            expire history
            restart
            restart at 12
            restart back 3
            refuse connections
            refuse connections for 200ms
            accept connections
        "#]],
    );
}

#[test]
fn a_printed_plan_parses_to_the_same_plan() {
    let values = |plan: &str| -> Vec<_> {
        let statements = parse(plan).expect("a valid plan");
        statements
            .into_iter()
            .map(|placed| placed.statement)
            .collect()
    };
    assert_eq!(values(&printed(EVERYTHING)), values(EVERYTHING));
}

#[test]
fn comments_and_empty_statements_are_ignored() {
    check(
        "# all of it\n;; list pods: 500 # but once: x1\n\n",
        &expect![[r#"
            list pods: 500
        "#]],
    );
    check("", &expect![""]);
}

#[test]
fn mistakes_are_reported_with_position_and_expected_input() {
    let mistakes = [
        "list pods: 429\nwatch pods: cut after 3 evnts",
        "kill pods: 500",
        "list: 500",
        "list pods 500",
        "list pods: 200",
        "list pods: explode",
        "list pods: 500 x",
        "list pods: 500 chance=101%",
        "list pods: 500 500",
        "list pods: 429 retry-after=soon",
        "watch pods: split every 0 bytes",
        "watch pods: split at 5,3",
        "list pods: delay 25h",
        "list pods: delay 5",
        "watch pods: drop some",
        "watch pods: send text after 3 events",
        "watch pods: send \"text after 3 events",
        "watch pods: send \"\\q\" after 3 events",
        "  list pods: cut after 3 events",
        "get pods: refuse streaming",
        "cut list pods",
        "restart at",
        "ä: 500",
    ];
    let told: String = mistakes.into_iter().map(printed).collect();
    expect![[r#"
        fault plan, line 2, column 25: expected one of events, bytes, event, byte, found `evnts`
        fault plan, line 1, column 1: expected `*`, a verb (get, list, watch, create, update, patch, delete, deletecollection, other) or an action (cut, break, freeze, thaw, close, send, expire, restart, refuse, accept, seed), found `kill`
        fault plan, line 1, column 5: expected a resource, such as pods, or `*`, found `:`
        fault plan, line 1, column 11: expected `:`, `named`, `in` or `from`, found `500`
        fault plan, line 1, column 12: expected an HTTP status from 400 to 599, or one of reset, refuse, delay, cut, break, freeze, split, drop, duplicate, swap, garble, spoil, retype, send, found `200`
        fault plan, line 1, column 12: expected an HTTP status from 400 to 599, or one of reset, refuse, delay, cut, break, freeze, split, drop, duplicate, swap, garble, spoil, retype, send, found `explode`
        fault plan, line 1, column 16: expected a number of requests, such as `x3`
        fault plan, line 1, column 16: expected a share of requests, such as `chance=2.5%`
        fault plan, line 1, column 16: expected `xN`, `skip=N`, `chance=P%` or the end of the statement, found `500`
        fault plan, line 1, column 16: expected seconds, found `soon`
        fault plan, line 1, column 25: expected a number above 0, found `0`
        fault plan, line 1, column 22: expected byte offsets in growing order, such as `5,20`, found `5,3`
        fault plan, line 1, column 18: expected a time of at most 24h, such as `200ms` or `5s`, found `25h`
        fault plan, line 1, column 18: expected a time of at most 24h, such as `200ms` or `5s`, found `5`
        fault plan, line 1, column 18: expected `events`, `event N`, `every N events`, `P% of events`, `bookmarks` or `end-bookmark`, found `some`
        fault plan, line 1, column 18: expected text in quotes, such as "garbage\n", found `text`
        fault plan, line 1, column 18: the text in quotes has no closing quote
        fault plan, line 1, column 18: the text in quotes is not a JSON string
        fault plan, line 1, column 3: `cut after 3 events` is for watches only
        fault plan, line 1, column 1: `refuse streaming` is for watches only
        fault plan, line 1, column 5: expected `watch` and a resource: an action is about open watches, found `list`
        fault plan, line 1, column 11: expected a number, found the end of the plan
        fault plan, line 1, column 1: expected `*`, a verb (get, list, watch, create, update, patch, delete, deletecollection, other) or an action (cut, break, freeze, thaw, close, send, expire, restart, refuse, accept, seed), found `ä`
    "#]].assert_eq(&told);
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "\\PC*|[a-z*:;\"#\\n 0-9%.=x-]{0,60}") {
        let _ = parse(&text);
    }

    #[test]
    fn names_of_any_kind_survive_printing(name in "\\PC*|[\n\t\r ;:\"#*\\\\a-z]{0,9}") {
        let plan = format!("get * named {}: 500", serde_json::Value::from(name));
        let once = printed(&plan);
        prop_assert_eq!(&printed(&once), &once);
        prop_assert!(once.ends_with(": 500\n"), "{}", once);
    }

    #[test]
    fn words_in_any_order_are_a_plan_or_an_error(
        words in prop::collection::vec(prop::sample::select(
            EVERYTHING.split_whitespace().collect::<Vec<_>>()
        ), 0..12)
    ) {
        let plan = words.join(" ");
        if let Ok(statements) = parse(&plan) {
            for placed in statements {
                let text = placed.statement.to_string();
                let again = parse(&text).expect("a printed plan can be parsed");
                prop_assert_eq!(&again[0].statement, &placed.statement);
            }
        }
    }
}
