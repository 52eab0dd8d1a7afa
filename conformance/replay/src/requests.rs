//! The reflector's requests against those of client-go's reflector: each talks to an embedded server of
//! its own, which are given the same changes and faults, so that both have the same revisions.
//!
//! Each answer is the list of requests that an operation has led to, with what became of them and the
//! pause before each, and what the store has in the end. Pauses are random between once and twice of
//! what they grow from, so that is what is compared of them.

mod conversation;
mod host;
mod line;
mod reflector;
mod trigger;

use crate::{
    compare::Moment,
    component::{Accepted, Component, nothing_more},
    draw::Draw,
    oracle::Version,
    sequence::{Operation, Sequence},
};

use self::{conversation::Conversation, line::Line};

/// See the module.
pub(crate) const COMPONENT: Component = Component {
    name: "requests",
    draw,
    versions: |_| &Version::ALL,
    replay: reflector::replay,
    counterpart: Some(|sequence| Box::new(Conversation::new(sequence))),
    behaviours: BEHAVIOURS,
    recognise,
    must_not: nothing_more,
};

/// Everything is asked for by a streaming list.
const STREAMING: &str = "streaming";
/// Lists come in pages.
const PAGES: &str = "pages";

const BEHAVIOURS: &[&str] = &["put", "remove", "start", "close"];

fn draw(draw: &mut Draw) -> Sequence {
    let flags = draw.flags(&[(50, STREAMING), (35, PAGES)]);
    let length = draw.length();
    let operations = (0..length).map(|at| {
        let verb = match at {
            3 => "start",
            _ if at < 3 => "put",
            _ => draw.weighted(&[(6, "put"), (3, "remove"), (2, "close")]),
        };
        let operation = Operation::new(verb);
        match verb {
            "put" | "remove" => operation.about(draw.thing()),
            _ => operation,
        }
    });
    Sequence {
        component: COMPONENT.name,
        operations: operations.collect(),
        flags,
        limiter: None,
    }
}

/// Writes what an operation has led to.
fn say(lines: &[Line], store: &str) -> String {
    join(lines.iter().map(ToString::to_string).collect(), store)
}

fn join(mut parts: Vec<String>, store: &str) -> String {
    parts.push(format!("store {store}"));
    parts.join("; ")
}

/// What these requests show.
fn seen(_: &[Line]) -> Vec<&'static str> {
    Vec::new()
}

fn recognise(_: &Moment<'_>) -> Option<Accepted> {
    None
}
