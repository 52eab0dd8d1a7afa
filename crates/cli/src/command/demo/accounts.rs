//! Counts the requests of each process of the demo, and returns table rows with the counts.
//!
//! A process is a group of control loops that share a `User-Agent`. The requests are read from the embedded
//! server's request log. The caller provides the number of cache reads. The module does not print the table.
//!
//! Guarantees: every request with the `User-Agent` of a process counts, whether it succeeds or not.

use std::sync::Arc;

use kube_informer_apiserver::{LoggedRequest, RequestLog, Verb};
use serde_json::{Value, json};

use crate::output::Row;

/// The verbs that the demo uses, each with the heading of its table column.
const VERBS: [(Verb, &str); 6] = [
    (Verb::List, "list"),
    (Verb::Watch, "watch"),
    (Verb::Get, "get"),
    (Verb::Create, "create"),
    (Verb::Patch, "patch"),
    (Verb::Delete, "delete"),
];

pub(super) fn columns() -> Vec<&'static str> {
    let verbs = VERBS.iter().map(|(_, name)| *name);
    verbs.chain(["cache reads"]).collect()
}

/// Returns one row per `User-Agent` in `reads`.
pub(super) fn rows(log: Option<&RequestLog>, reads: &[(Arc<str>, u64)]) -> Vec<Row> {
    let row = |(user_agent, reads): &(Arc<str>, u64)| {
        let own = log.map(|log| log.by_user_agent(user_agent));
        let count = |verb| own.as_ref().map(|own| own.verb(verb).len() as u64);
        let numbers = VERBS.iter().map(|(verb, _)| count(*verb));
        Row {
            name: user_agent.to_string(),
            numbers: numbers.chain([Some(*reads)]).collect(),
        }
    };
    reads.iter().map(row).collect()
}

/// Returns the sequence number of the log's newest request, or 0.
pub(super) fn last_sequence(log: &RequestLog) -> u64 {
    log.iter().last().map_or(0, |request| request.sequence)
}

/// Returns the number of list requests after the request number `sequence`, including streaming lists.
///
/// Counts only the requests with a `User-Agent` in `reads`. The numbers in `reads` have no effect.
pub(super) fn lists_since(log: &RequestLog, sequence: u64, reads: &[(Arc<str>, u64)]) -> usize {
    let theirs = |request: &LoggedRequest| {
        reads
            .iter()
            .any(|(user_agent, _)| **user_agent == *request.user_agent)
    };
    let is_list = |request: &LoggedRequest| {
        request.verb == Verb::List || request.options.send_initial_events == Some(true)
    };
    log.iter()
        .filter(|request| request.sequence > sequence && theirs(request) && is_list(request))
        .count()
}

pub(super) fn json_lines(log: &RequestLog) -> String {
    let line = |request: &LoggedRequest| -> Value {
        json!({
            "sequence": request.sequence,
            "arrivedSeconds": request.arrived.as_secs_f64(),
            "userAgent": request.user_agent,
            "verb": request.verb.as_str(),
            "resource": request.resource,
            "namespace": request.namespace,
            "name": request.name,
            "subresource": request.subresource,
            "status": request.status,
            "revision": request.revision,
        })
    };
    let lines: Vec<_> = log
        .iter()
        .map(|request| line(request).to_string())
        .collect();
    lines.join("\n")
}
