//! Fuzz target for bodies in YAML: the embedded server reads an object, writes it as YAML, and reads this text.
//!
//! Both objects must be equal.

use std::cell::OnceCell;

use bytes::Bytes;
use http::Request;
use kube_informer_apiserver::{Kind, Scope, Server};

use super::custom::outcome;
use crate::{
    asked::{Answer, ask},
    planted::Bug,
};

pub(super) const WORDS: &[&str] = &[
    "a: ",
    "- ",
    "? ",
    ": ",
    "\n",
    "\n  ",
    "\t",
    "&a ",
    "*a",
    "<<: *a",
    "!!str ",
    "!!binary ",
    "!!float ",
    "|\n  ",
    ">-\n  ",
    "|+2\n",
    "\"\\u2028\"",
    "\"\\x41\\n\"",
    "'it''s'",
    "\"no\"",
    "yes",
    "~",
    "null",
    "0x1F",
    "017",
    "0o17",
    "1_000",
    "1:30",
    "1e3",
    ".inf",
    ".nan",
    "-0.0",
    "2001-01-01",
    "{",
    "}",
    "[",
    "]",
    ",",
    "# c",
    "---",
    "...",
    "%YAML",
    "\u{feff}",
    "\u{85}",
    "\r\n",
    "=",
];

const OBJECTS: &str = "/apis/example.com/v1/namespaces/default/widgets?dryRun=All";

thread_local! {
    static SERVER: OnceCell<Server> = const { OnceCell::new() };
}

/// The input is the value of the member `spec`.
pub(super) fn run(data: &[u8], bug: Option<Bug>) -> String {
    let Ok(text) = std::str::from_utf8(data) else {
        return "no text".to_owned();
    };
    let kind = || Kind::custom("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    let server = || Server::builder().kind(kind()).build();
    let server = SERVER.with(|one| one.get_or_init(server).clone());
    let spec = text.replace('\n', "\n  ");
    let head = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec:\n  ";
    let body = format!("{head}{spec}\n");
    let read = create(&server, body.clone(), "application/json");
    if read.code != 201 {
        return outcome("rejected", &read);
    }
    let emitted = create(&server, body, "application/yaml");
    let mut emitted = String::from_utf8(emitted.body).expect("YAML is text");
    if bug == Some(Bug::NoIsUnquoted) {
        emitted = emitted.replace("\"no\"", "no");
    }
    let again = create(&server, emitted.clone(), "application/json");
    assert_eq!(again.code, 201, "{}: {emitted}", again.json);
    assert_eq!(again.json["spec"], read.json["spec"], "{emitted}");
    // The style of the text names the path.
    let signs = emitted.split_once("spec:").map_or("", |(_, spec)| spec);
    let mut signs: Vec<char> = signs.chars().filter(char::is_ascii_punctuation).collect();
    signs.sort_unstable();
    signs.dedup();
    format!("{signs:?}")
}

fn create(server: &Server, body: String, accept: &str) -> Answer {
    let request = Request::post(OBJECTS).header("content-type", "application/yaml");
    let request = request.header("accept", accept).body(Bytes::from(body));
    ask(server, request.expect("the request is valid"))
}
