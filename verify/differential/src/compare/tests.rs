//! Tests [`compare`] and [`Coverage`] with an invented [`Component`], whose answers are fixed.

use harness::seeds::Origin;

use super::*;
use crate::{
    component::nothing_more,
    coverage::Coverage,
    sequence::{Limiter, Operation},
};

const MADE_UP: Component = Component {
    name: "made_up",
    draw: |_| unreachable!("sequences are made up"),
    versions: |_| &Version::ALL,
    replay: |_, _| unreachable!("answers are made up"),
    counterpart: None,
    behaviours: &["ask"],
    recognise: |moment| match moment.their()?.text()? {
        "closed" => Some(Accepted::Here("not_closed")),
        "lost" => Some(Accepted::FromHere("not_lost")),
        _ => None,
    },
    must_not: |step| step.seen.contains(&"broken").then_some("it is broken"),
};

fn sequence(length: usize) -> Sequence {
    Sequence {
        component: MADE_UP.name,
        flags: Vec::new(),
        limiter: None::<Limiter>,
        operations: vec![Operation::new("ask"); length],
    }
}

fn ours(answers: &[&str]) -> Vec<Step> {
    let step = |answer: &&str| Step {
        answer: Answer::said(*answer),
        seen: if *answer == "broken" {
            vec!["broken"]
        } else {
            Vec::new()
        },
    };
    answers.iter().map(step).collect()
}

fn outcome(here: &[&str], there: &[Option<&str>]) -> Outcome {
    let there: Vec<_> = there
        .iter()
        .map(|answer| answer.map(Answer::said))
        .collect();
    compare(
        &MADE_UP,
        Version::V37,
        &sequence(here.len()),
        (&ours(here), &there),
    )
}

#[test]
fn the_first_unexplained_difference_fails() {
    let outcome = outcome(
        &["a", "b", "c", "d"],
        &[Some("a"), Some("b"), Some("x"), Some("y")],
    );
    assert_eq!(outcome.failure.map(|failure| failure.at), Some(2));
    assert_eq!(outcome.compared, 3);
}

#[test]
fn operations_that_a_version_does_not_support_are_not_compared() {
    assert!(outcome(&["a", "b"], &[None, Some("b")]).failure.is_none());
}

#[test]
fn a_divergence_is_accepted_and_later_answers_are_compared() {
    let outcome = outcome(&["a", "b", "c"], &[Some("closed"), Some("b"), Some("x")]);
    assert_eq!(outcome.accepted, [(0, "not_closed")]);
    assert_eq!(outcome.failure.map(|failure| failure.at), Some(2));
}

#[test]
fn after_a_divergence_of_states_only_guarantees_are_checked() {
    let good = outcome(&["a", "b", "c"], &[Some("lost"), Some("x"), Some("y")]);
    assert_eq!(
        (good.accepted.as_slice(), good.compared),
        ([(0, "not_lost")].as_slice(), 1)
    );
    assert!(good.failure.is_none());
    let broken = outcome(&["a", "b", "broken"], &[Some("lost"), Some("x"), Some("y")]);
    let failure = broken.failure.unwrap();
    assert_eq!((failure.at, failure.reason), (2, Some("it is broken")));
}

#[test]
fn a_violated_guarantee_fails_even_if_the_answers_are_equal() {
    let outcome = outcome(&["broken"], &[Some("broken")]);
    assert_eq!(outcome.failure.unwrap().reason, Some("it is broken"));
}

#[test]
fn sets_are_equal_in_any_order_and_texts_are_not() {
    let set = |items: &[&str]| Answer::Set(items.iter().map(ToString::to_string).collect());
    assert!(set(&["a", "b"]).agrees(&set(&["b", "a"])));
    assert!(!set(&["a", "a"]).agrees(&set(&["a"])));
    assert!(!set(&["a"]).agrees(&Answer::said("a")));
    assert!(!Answer::said("a b").agrees(&Answer::said("b a")));
}

#[test]
fn rare_and_unknown_behaviours_and_short_sequences_are_reported() {
    let steps = ours(&["a"; 50]);
    let mut coverage = Coverage::default();
    for _ in 0..20 {
        coverage.drawn(&sequence(50), &steps);
    }
    let component = Component {
        behaviours: &["ask", "never"],
        must_not: nothing_more,
        ..MADE_UP
    };
    assert_eq!(
        coverage.findings(&component, Origin::Fixed),
        ["never: seen 0 times, 1 required"]
    );
    let nothing = Component {
        behaviours: &[],
        ..MADE_UP
    };
    assert_eq!(
        coverage.findings(&nothing, Origin::Fixed),
        ["\"ask\" is not in the table of behaviours"]
    );
    for _ in 0..30 {
        coverage.drawn(&sequence(39), &steps[..39]);
    }
    let findings = coverage.findings(&MADE_UP, Origin::Fixed);
    assert_eq!(
        findings,
        ["the median length is 39, at least 40 are needed"]
    );
}
