//! Tests that the client-go tests in `verify/clients/go` use every element of the fault-plan grammar.
//!
//! A grammar pattern stands for one element of the grammar, such as `cut after N events`.

use std::collections::BTreeSet;
use std::path::Path;

use super::edit::Edit;
use super::matching::Match;
use super::plan::parse;
use super::rule::{
    Action, After, Ending, ErrorResponse, Fault, FaultRule, Form, Moment, Restart, Share, Split,
    Statement, Which,
};

/// Path of the client-go tests, relative to the directory of this crate.
const TESTS: &str = "../../verify/clients/go";

/// Text before each fault plan in the source of a client-go test, and the character that ends the plan.
const PLAN: (&str, char) = ("{plan: `", '`');

/// Defines `$all`, the grammar patterns of all `$type` values, and the function `$of`, which returns the
/// pattern of one value.
///
/// A pattern is the notation of a value in a fault plan, such as `cut after N events`.
/// A new variant of `$type` without a pattern does not compile.
macro_rules! forms {
    ($all:ident, $of:ident($type:ty) { $($pattern:pat => $form:literal,)+ }) => {
        const $all: &[&str] = &[$($form),+];

        fn $of(value: &$type) -> &'static str {
            match value {
                $($pattern => $form,)+
            }
        }
    };
}

forms!(FAULTS, fault(Fault) {
    Fault::Answer(ErrorResponse { form: Form::Status, retry_after: None, .. }) => "CODE",
    Fault::Answer(ErrorResponse { form: Form::Status, retry_after: Some(_), .. }) => "CODE retry-after=N",
    Fault::Answer(ErrorResponse { form: Form::Plain, retry_after: None, .. }) => "CODE plain",
    Fault::Answer(ErrorResponse { form: Form::Plain, retry_after: Some(_), .. }) => "CODE plain retry-after=N",
    Fault::Answer(ErrorResponse { form: Form::TooLarge, .. }) => "504 too-large",
    Fault::Reset => "reset",
    Fault::RefuseStreaming => "refuse streaming",
    Fault::Delay(Moment::Answer, _) => "delay answer",
    Fault::Delay(Moment::FirstByte, _) => "delay first byte",
    Fault::Delay(Moment::EachEvent, _) => "delay each event",
    Fault::End(Ending::Cut, After::Events(_)) => "cut after N events",
    Fault::End(Ending::Cut, After::Bytes(_)) => "cut after N bytes",
    Fault::End(Ending::Break, After::Events(_)) => "break after N events",
    Fault::End(Ending::Break, After::Bytes(_)) => "break after N bytes",
    Fault::End(Ending::Freeze, After::Events(_)) => "freeze after N events",
    Fault::End(Ending::Freeze, After::Bytes(_)) => "freeze after N bytes",
    Fault::Split(Split::Every(_)) => "split every N bytes",
    Fault::Split(Split::At(_)) => "split at N",
    Fault::Split(Split::Randomly) => "split randomly",
    Fault::Edit(Edit::Drop, _) => "drop EVENTS",
    Fault::Edit(Edit::Duplicate, _) => "duplicate EVENTS",
    Fault::Edit(Edit::Swap, _) => "swap EVENTS",
    Fault::Edit(Edit::Garble, _) => "garble EVENTS",
    Fault::Edit(Edit::Spoil, _) => "spoil EVENTS",
    Fault::Edit(Edit::Retype, _) => "retype EVENTS",
    Fault::Send(..) => "send TEXT after N events",
});

forms!(EVENTS, events(Which) {
    Which::All => "events",
    Which::Nth(_) => "event N",
    Which::Every(_) => "every N events",
    Which::Share(_) => "P% of events",
    Which::Bookmarks => "bookmarks",
    Which::EndBookmark => "end-bookmark",
});

forms!(ACTIONS, action(Action) {
    Action::End(Ending::Cut, _) => "cut watch",
    Action::End(Ending::Break, _) => "break watch",
    Action::End(Ending::Freeze, _) => "freeze watch",
    Action::Thaw(_) => "thaw watch",
    Action::CloseSlow(_) => "close watch",
    Action::Send(..) => "send TEXT to watch",
    Action::SendBookmarks(_) => "send bookmarks",
    Action::ExpireHistory => "expire history",
    Action::Restart(Restart::Here) => "restart",
    Action::Restart(Restart::At(_)) => "restart at N",
    Action::Restart(Restart::Back(_)) => "restart back N",
    Action::Refuse(None) => "refuse connections",
    Action::Refuse(Some(_)) => "refuse connections for TIME",
    Action::Accept => "accept connections",
});

/// Grammar patterns of all conditions and limits of a rule.
const LIMITS: [&str; 6] = ["named", "in", "from", "skip=N", "chance=P%", "xN"];

/// Returns the grammar patterns of the conditions and limits that the rule uses, such as `skip=N`.
fn limits(rule: &FaultRule) -> impl Iterator<Item = &'static str> {
    // Destructured, so that a new field is a compile error here.
    let FaultRule {
        matches,
        fault: _,
        skip,
        chance,
        times,
    } = rule;
    let Match {
        verb: _,
        resource: _,
        name,
        namespace,
        user_agent,
    } = matches;
    let has = [
        name.is_some(),
        namespace.is_some(),
        user_agent.is_some(),
        *skip > 0,
        *chance != Share::ALWAYS,
        times.is_some(),
    ];
    LIMITS
        .into_iter()
        .zip(has)
        .filter_map(|(form, has)| has.then_some(form))
}

/// Returns the grammar patterns that a statement uses, such as `cut after N events`.
fn forms(statement: &Statement) -> Vec<&'static str> {
    match statement {
        Statement::Seed(_) => vec!["seed N"],
        Statement::Action(done) => vec![action(done)],
        Statement::Rule(rule) => {
            let mut forms = vec![fault(&rule.fault)];
            if let Fault::Edit(_, which) = rule.fault {
                forms.push(events(&which));
            }
            forms.extend(limits(rule));
            forms
        }
    }
}

/// Returns the fault plans in the sources of all client-go tests.
fn plans() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(TESTS);
    let mut plans = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the tests with client-go are in this repository")
    {
        let path = entry.unwrap().path();
        if path.to_string_lossy().ends_with("_test.go") {
            let text = std::fs::read_to_string(path).unwrap();
            let rows = text.split(PLAN.0).skip(1);
            plans.extend(rows.map(|row| row.split(PLAN.1).next().unwrap().to_owned()));
        }
    }
    plans
}

#[test]
fn client_go_tests_cover_every_fault() {
    let shown: BTreeSet<&str> = plans()
        .iter()
        .flat_map(|plan| parse(plan).unwrap_or_else(|error| panic!("{plan}: {error}")))
        .flat_map(|placed| forms(&placed.statement))
        .collect();
    let known = [FAULTS, EVENTS, ACTIONS, &LIMITS, &["seed N"]].concat();
    let missing: Vec<_> = known
        .into_iter()
        .filter(|form| !shown.contains(form))
        .collect();
    assert!(
        missing.is_empty(),
        "no row of {TESTS}/fault_*_test.go shows {missing:?}"
    );
}
