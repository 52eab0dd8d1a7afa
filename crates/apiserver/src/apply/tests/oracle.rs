//! Compares random sequences of writes with those of Kubernetes, by the program in `verify/apply`.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::planted::{self, Bug};
use super::super::*;
use super::Custom;
use crate::go_json::to_text;

/// Returns what the server stores, as `{"result": …}`, or its error.
fn outcome(kinds: &[Custom], step: &Value) -> Value {
    let text = |name: &str| step[name].as_str().unwrap();
    let api_version = format!("example.com/{}", text("version"));
    let names = step["ignored"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|name| name.as_str().unwrap()).collect();
    let paths: Vec<&[&str]> = names.iter().map(std::slice::from_ref).collect();
    let ignored = Set::of(&paths);
    let empty = json!({"apiVersion": api_version, "kind": "Thing"});
    let schema = usize::try_from(step["schema"].as_u64().unwrap()).unwrap();
    let manager = FieldManager {
        versions: &kinds[schema],
        api_version: &api_version,
        kind: "Thing",
        subresource: text("subresource"),
        ignored: &ignored,
        empty: &empty,
    };
    let write = Write {
        manager: text("manager"),
        now: Timestamp::from_second(step["time"].as_i64().unwrap()).unwrap(),
    };
    let (live, object) = (&step["live"], &step["object"]);
    if text("verb") == "update" {
        return json!({"result": sent(&manager.update(live, object.clone(), write))});
    }
    let force = if step["force"] == true {
        Force::Yes
    } else {
        Force::No
    };
    match manager.apply(live, object, write, force) {
        Ok(object) => json!({"result": sent(&object)}),
        Err(ApplyError::BadRequest(error)) => json!({"error": error, "code": 400}),
        Err(ApplyError::Internal(error)) => json!({"error": error, "code": 500}),
        Err(ApplyError::Conflict(conflicts)) => {
            let causes = conflicts.causes().into_iter();
            let causes = causes.map(|cause| {
                let (reason, field, message) = (cause.reason, cause.field, cause.message);
                format!("{reason}|{field}|{message}")
            });
            let mut causes: Vec<String> = causes.collect();
            causes.sort();
            json!({"error": conflicts.message(), "code": 409, "causes": causes})
        }
    }
}

/// Returns an object as a client receives it: the number 2.0 is 2.
fn sent(object: &Value) -> Value {
    serde_json::from_str(&to_text(object)).unwrap()
}

/// Returns the outcome of Kubernetes.
fn expected(step: &Value) -> Value {
    let mut members = step.as_object().unwrap().clone();
    members.retain(|name, _| ["result", "error", "code", "causes"].contains(&name.as_str()));
    Value::Object(members)
}

/// Returns whether two outcomes are the same.
///
/// Go reports errors, and members of an object in a path, in random order. After an undeclared field, it does not
/// report the other errors of the object.
fn is_same(ours: &Value, theirs: &Value) -> bool {
    let letters = |outcome: &Value| {
        let error = outcome["error"].as_str().unwrap_or_default();
        let mut letters: Vec<char> = error.chars().collect();
        letters.sort_unstable();
        letters
    };
    let is_partial = |outcome: &Value| {
        let error = outcome["error"].as_str().unwrap_or_default();
        error.contains("field not declared in schema")
    };
    let is_partial = is_partial(ours) && is_partial(theirs);
    ["result", "code", "causes"]
        .iter()
        .all(|name| ours[name] == theirs[name])
        && (is_partial || letters(ours) == letters(theirs))
}

/// The sequences of the program in `verify/apply`.
fn sequences(first: u64, count: u64) -> impl Iterator<Item = Value> {
    let mut go = Command::new("go")
        .args(["test", "-count=1", "-timeout=0", "-args"])
        .args([first.to_string(), count.to_string()])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../verify/apply"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("go is installed");
    let lines = BufReader::new(go.stdout.take().unwrap()).lines();
    // `go test` adds lines of its own.
    let lines = lines
        .map(Result::unwrap)
        .filter(|line| line.starts_with('{'));
    let sequences = lines.map(|line| serde_json::from_str(&line).unwrap());
    let end = std::iter::from_fn(move || {
        assert!(go.wait().unwrap().success());
        None
    });
    sequences.chain(end)
}

fn setting(name: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "a test has no arguments")]
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap())
}

/// Returns the first difference of a sequence.
fn difference(sequence: &Value) -> Option<String> {
    let kinds = sequence["schemas"].as_array().unwrap().iter();
    let kinds: Vec<Custom> = kinds.map(Custom::new).collect();
    let mut steps = sequence["steps"].as_array().unwrap().iter().enumerate();
    steps.find_map(|(at, step)| {
        let ours = outcome(&kinds, step);
        let seed = &sequence["seed"];
        let text = || format!("seed {seed}, step {at}: {step}\nours: {ours}\n");
        (!is_same(&ours, &expected(step))).then(text)
    })
}

/// Compares what is stored after each write of random sequences.
///
/// The environment variable `SEQUENCES` sets the number of sequences, and `SEED` sets the first seed.
#[test]
#[ignore = "needs Go"]
fn random_writes_have_the_objects_owners_and_conflicts_of_kubernetes() {
    let count = setting("SEQUENCES").unwrap_or(300);
    let (mut number, mut different) = (0, Vec::new());
    // Applies that succeed, conflict or fail, and updates with and without owners.
    let mut covered = [0; 5];
    for sequence in sequences(setting("SEED").unwrap_or(1), count) {
        number += 1;
        different.extend(difference(&sequence));
        for step in sequence["steps"].as_array().unwrap() {
            let is_owned = step["result"]["metadata"].get("managedFields").is_some();
            let case = match (step["verb"].as_str(), step["code"].as_u64()) {
                (Some("apply"), None) => 0,
                (Some("apply"), Some(409)) => 1,
                (Some("apply"), Some(_)) => 2,
                _ if is_owned => 3,
                _ => 4,
            };
            covered[case] += 1;
        }
    }
    println!("{number} sequences: {covered:?} writes");
    assert_eq!(number, count);
    let shown = different.iter().take(5).cloned().collect::<String>();
    assert!(
        different.is_empty(),
        "{} different: {shown}",
        different.len()
    );
    assert!(
        covered.iter().all(|times| times * 5 >= count),
        "{covered:?}"
    );
}

/// Plants one bug after the other, which the comparison must find.
#[test]
#[ignore = "needs Go"]
fn random_writes_find_every_planted_bug() {
    let sequences: Vec<Value> = sequences(1, 300).collect();
    let is_missed = |bug: &Bug| {
        planted::plant(Some(*bug));
        let found = sequences
            .iter()
            .position(|sequence| difference(sequence).is_some());
        planted::plant(None);
        println!("{bug:?}: {found:?}");
        found.is_none()
    };
    let missed: Vec<Bug> = Bug::ALL.into_iter().filter(is_missed).collect();
    assert!(missed.is_empty(), "{missed:?}");
}
