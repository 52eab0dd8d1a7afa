//! Defines the type [`Target`] and the table [`TARGETS`] of all fuzz targets. Each target is implemented in a
//! submodule.

mod continue_token;
mod custom;
mod decode;
mod members;
mod json;
mod label_selector;
mod list;
mod message;
mod field_selector;
mod patch;
mod pieces;
mod protobuf;
mod refusal;
mod request;
mod rule;
mod saved_store;
mod store;
mod watch;
mod yaml;

use std::fmt;

use crate::planted::Bug;

/// A fuzz target: its name, its test function, and its settings for the mutation of inputs.
pub struct Target {
    /// Name of the target on the command line, and of its files in `corpus` and `libfuzzer`.
    pub name: &'static str,
    /// Tests the code with an input and an optional planted [`Bug`]. Panics if the code has a defect.
    ///
    /// Returns a name for the path of the input through the code, such as the first words of an error
    /// message. An input with a new name is used for later mutations.
    pub run: fn(&[u8], Option<Bug>) -> String,
    /// Texts that mutations insert into inputs.
    pub dictionary: &'static [&'static str],
    /// Number of mutated inputs in a default run, which takes a few seconds in a debug build.
    pub runs: u32,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

const JSON: &[&str] = &[
    "{", "}", "[", "]", ",", ",,", ":", "\"", "\\\"", "\\", "\\u0022", "\\ud800", "null", "0", "-",
    "1e9", "\n", "\r\n", " ", "\u{fe0f}",
];

const REQUEST: &[&str] = &[
    "GET ",
    "POST ",
    "PUT ",
    "PATCH ",
    "DELETE ",
    "HEAD ",
    "\n###\n",
    "\n\n",
    "%2F",
    "%00",
    "%",
    "//",
    "?",
    "&",
    "watch=1",
    "limit=1",
    "continue=",
    "resourceVersion=0",
    "resourceVersion=99999999999999999999",
    "resourceVersionMatch=Exact",
    "sendInitialEvents=true",
    "timeoutSeconds=0",
    "dryRun=All",
    "fieldValidation=Strict",
    "labelSelector=",
    "fieldSelector=metadata.name%3Da",
    "pretty=true",
    "content-type: application/json",
    "accept: application/json;as=Table;v=v1;g=meta.k8s.io",
    "accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "accept-encoding: gzip",
    "/api/v1/namespaces/default/pods",
    "/status",
    "/binding",
    "/scale",
    "/finalize",
    "/apis/example.com/v1",
    "\"finalizers\":[\"x\"]",
    "\"generateName\":\"a-\"",
    "\"resourceVersion\":\"1\"",
    "\"uid\":\"x\"",
    "{}",
    "null",
];

/// Table of all fuzz targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "list",
        run: list::run,
        dictionary: JSON,
        runs: 20_000,
    },
    Target {
        name: "watch",
        run: watch::run,
        dictionary: JSON,
        runs: 20_000,
    },
    Target {
        name: "decode",
        run: decode::run,
        dictionary: JSON,
        runs: 20_000,
    },
    Target {
        name: "json",
        run: json::run,
        dictionary: JSON,
        runs: 20_000,
    },
    Target {
        name: "label_selector",
        run: label_selector::run,
        dictionary: label_selector::WORDS,
        runs: 6_000,
    },
    Target {
        name: "field_selector",
        run: field_selector::run,
        dictionary: field_selector::WORDS,
        runs: 6_000,
    },
    Target {
        name: "continue_token",
        run: continue_token::run,
        dictionary: continue_token::WORDS,
        runs: 4_000,
    },
    Target {
        name: "patch",
        run: patch::run,
        dictionary: patch::WORDS,
        runs: 3_000,
    },
    Target {
        name: "request",
        run: request::run,
        dictionary: REQUEST,
        runs: 3_000,
    },
    Target {
        name: "custom",
        run: custom::run,
        dictionary: custom::WORDS,
        runs: 1_000,
    },
    Target {
        name: "rule",
        run: rule::run,
        dictionary: rule::WORDS,
        runs: 400,
    },
    Target {
        name: "yaml",
        run: yaml::run,
        dictionary: yaml::WORDS,
        runs: 1_000,
    },
    Target {
        name: "protobuf",
        run: protobuf::run,
        dictionary: protobuf::WORDS,
        runs: 3_000,
    },
    Target {
        name: "message",
        run: message::run,
        dictionary: &[],
        runs: 20_000,
    },
    Target {
        name: "store",
        run: store::run,
        dictionary: &[],
        runs: 3_000,
    },
    Target {
        name: "saved_store",
        run: saved_store::run,
        dictionary: saved_store::WORDS,
        runs: 10_000,
    },
    Target {
        name: "refusal",
        run: refusal::run,
        dictionary: refusal::WORDS,
        runs: 20_000,
    },
];

/// Runs the target named `name` with the input `data`, without a planted bug.
///
/// # Panics
/// Panics if no target has this name, or if the tested code has a defect.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    let target = target.unwrap_or_else(|| panic!("no target {name}"));
    (target.run)(data, None);
}
