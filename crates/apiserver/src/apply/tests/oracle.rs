//! Compares random sequences of writes with those of Kubernetes, by the program in `verify/apply`.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::*;
use super::Custom;

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
        return json!({"result": manager.update(live, object.clone(), write)});
    }
    let force = if step["force"] == true {
        Force::Yes
    } else {
        Force::No
    };
    match manager.apply(live, object, write, force) {
        Ok(object) => json!({"result": object}),
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
    ["result", "code", "causes"].iter().all(|name| ours[name] == theirs[name])
        && (is_partial || letters(ours) == letters(theirs))
}

/// Compares what is stored after each write of random sequences.
///
/// The environment variable `SEQUENCES` sets the number of sequences, and `SEED` sets the first seed.
#[test]
#[ignore = "needs Go"]
fn random_writes_have_the_objects_owners_and_conflicts_of_kubernetes() {
    #[expect(clippy::disallowed_methods, reason = "a test has no arguments")]
    let setting = |name| std::env::var(name).map(|value| value.parse::<u64>().unwrap());
    let (first, count) = (
        setting("SEED").unwrap_or(1),
        setting("SEQUENCES").unwrap_or(300),
    );
    let mut go = Command::new("go")
        .args(["test", "-count=1", "-timeout=0", "-args"])
        .args([first.to_string(), count.to_string()])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../verify/apply"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("go is installed");
    let (mut sequences, mut steps, mut conflicts, mut errors) = (0, 0, 0, 0);
    let mut different = Vec::new();
    for line in BufReader::new(go.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if !line.starts_with('{') {
            continue;
        }
        let sequence: Value = serde_json::from_str(&line).unwrap();
        let schemas = sequence["schemas"].as_array().unwrap();
        let kinds: Vec<Custom> = schemas.iter().map(Custom::new).collect();
        for (at, step) in sequence["steps"].as_array().unwrap().iter().enumerate() {
            let (ours, theirs) = (outcome(&kinds, step), expected(step));
            steps += 1;
            conflicts += usize::from(theirs["code"] == 409);
            errors += usize::from(theirs["code"] == 500);
            if !is_same(&ours, &theirs) {
                let seed = &sequence["seed"];
                different.push(format!("seed {seed}, step {at}: {step}\nours: {ours}\n"));
                break;
            }
        }
        sequences += 1;
    }
    assert!(go.wait().unwrap().success());
    assert_eq!(sequences, count);
    let shown = different.iter().take(5).cloned().collect::<String>();
    assert!(different.is_empty(), "{} different: {shown}", different.len());
    println!("{sequences} sequences, {steps} writes, {conflicts} conflicts, {errors} errors");
}
