//! Fuzz target for label selectors.
//!
//! Formatting a parsed selector must yield a text that parses to an equal selector. The library and the
//! embedded server must accept the same input, and select the same objects.

use std::{cell::OnceCell, collections::BTreeMap};

use kube_informer::{
    Selector,
    selector::{Operator, Requirement},
};
use kube_informer_apiserver::Server;
use serde_json::json;

use crate::{
    asked::{encoded, get},
    planted::Bug,
};

pub(super) const WORDS: &[&str] = &[
    "a",
    "b",
    "x.io/a",
    "in",
    "notin",
    " in ",
    " notin ",
    "(",
    ")",
    ",",
    "=",
    "==",
    "!=",
    "!",
    ">",
    "<",
    " ",
    "\t",
    "1",
    "5",
    "007",
    "-1",
    "9223372036854775807",
    "9223372036854775808",
    "é",
    "A_b.c-d",
    "()",
    "(,)",
    "(a,)",
    "a in (a,b)",
    "!b",
];

/// Labels of the objects to which each selector is applied, one entry per object.
const OBJECTS: [&[(&str, &str)]; 9] = [
    &[],
    &[("a", "")],
    &[("a", "a")],
    &[("a", "b"), ("b", "a")],
    &[("a", "5"), ("in", "notin")],
    &[("a", "007"), ("b", "9223372036854775807")],
    &[("a", "9223372036854775808"), ("x.io/a", "1")],
    &[("b", "b"), ("x.io/a", "A_b.c-d")],
    &[("notin", "in"), ("a", "1")],
];

thread_local! {
    static SERVER: OnceCell<Server> = const { OnceCell::new() };
}

fn labels(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    of.iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn server() -> Server {
    let objects = OBJECTS.iter().enumerate().map(|(number, of)| {
        let metadata = json!({"name": number.to_string(), "labels": labels(of)});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    });
    Server::builder().seed(objects).build()
}

pub(super) fn run(data: &[u8], bug: Option<Bug>) -> String {
    let Ok(text) = std::str::from_utf8(data) else {
        return "no text".to_owned();
    };
    let server = SERVER.with(|server| server.get_or_init(self::server).clone());
    let asked = |text: &str| {
        get(
            &server,
            &format!("/api/v1/configmaps?labelSelector={}", encoded(text)),
        )
    };
    let answer = asked(text);
    let selector = match text.parse::<Selector>() {
        Ok(selector) => selector,
        Err(error) => {
            assert!(error.position() <= text.len());
            assert_eq!(
                answer.code, 400,
                "the library rejects it ({error}), the server does not"
            );
            let error_text = error.to_string();
            let expected = error_text.rsplit_once("expected ").map(|(_, what)| what);
            return match error.invalid_label() {
                Some(_) => "an invalid label".to_owned(),
                None => expected.unwrap_or("no integer").to_owned(),
            };
        }
    };
    assert_eq!(
        answer.code, 200,
        "the server rejects what the library accepts: {}",
        answer.json["message"]
    );
    let printed = selector.to_string();
    assert_eq!(
        printed.parse().as_ref(),
        Ok(&selector),
        "it prints {printed:?}"
    );
    let here = OBJECTS
        .iter()
        .map(|of| matches(&selector, of, bug))
        .collect::<Vec<_>>();
    for answer in [answer, asked(&printed)] {
        let mut there = vec![false; OBJECTS.len()];
        for item in answer.items() {
            let name = item["metadata"]["name"].as_str().unwrap_or_default();
            there[name.parse::<usize>().expect("names are numbers")] = true;
        }
        assert_eq!(
            here, there,
            "library and server select different objects with {printed:?}"
        );
    }
    let operators = selector
        .requirements()
        .iter()
        .map(|requirement| operator(requirement.operator()));
    format!("{:?}", operators.take(3).collect::<Vec<_>>())
}

fn matches(selector: &Selector, of: &[(&str, &str)], bug: Option<Bug>) -> bool {
    let labels = labels(of);
    let is_missed = |requirement: &Requirement| {
        matches!(requirement.operator(), Operator::NotIn(_))
            && !labels.contains_key(requirement.key())
    };
    if bug == Some(Bug::NotInWantsLabel) && selector.requirements().iter().any(is_missed) {
        return false;
    }
    selector.matches_labels(&labels)
}

fn operator(operator: &Operator) -> &'static str {
    match operator {
        Operator::Exists => "exists",
        Operator::DoesNotExist => "does not",
        Operator::Equals(_) => "=",
        Operator::NotEquals(_) => "!=",
        Operator::In(_) => "in",
        Operator::NotIn(_) => "notin",
        Operator::GreaterThan(_) => ">",
        Operator::LessThan(_) => "<",
    }
}
