//! Compares the protobuf and JSON encodings of random objects of all kinds with those that Go writes.
//!
//! The Go programs in `verify/encodings` generate the objects and write each of them as protobuf and as JSON.
//! `cargo test` ignores the tests, because they need Go. The environment variable `OBJECTS` sets the number
//! of objects, and `SEED` sets the first seed.

use std::{
    env,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use serde::Deserialize as _;

use super::*;

/// Default number of objects of each test.
const OBJECTS: u64 = 2_000;

/// Runs the Go program in `verify/encodings/{version}`, and calls `check` for each generated object.
///
/// Both arguments of `check` contain the object's JSON. The first contains the object's protobuf. The second
/// contains the protobuf that Go writes after it decodes the JSON.
fn drawn(version: &str, check: fn(&Pair, &Pair)) {
    #[expect(clippy::disallowed_methods, reason = "a test has no arguments")]
    let setting = |name| env::var(name).map(|value| value.parse::<u64>().unwrap());
    let (first, count) = (
        setting("SEED").unwrap_or(1),
        setting("OBJECTS").unwrap_or(OBJECTS),
    );
    let folder = format!(
        "{}/../../verify/encodings/{version}",
        env!("CARGO_MANIFEST_DIR")
    );
    let mut go = Command::new("go")
        .args(["run", ".", &first.to_string(), &count.to_string()])
        .args(Messages::builtin().kinds().map(|(kind, _)| kind))
        .current_dir(folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("go is installed");
    let mut seed = first;
    for line in BufReader::new(go.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let (pair, from_json) = (pair(&line, 1), pair(&line, 3));
        let checked = std::panic::catch_unwind(|| check(&pair, &from_json));
        assert!(
            checked.is_ok(),
            "seed {seed}, {} {}",
            pair.api_version,
            pair.kind
        );
        seed += 1;
    }
    assert!(go.wait().unwrap().success());
    assert_eq!(seed, first + count);
}

/// Panics with the path of the first difference, if there is one.
fn assert_equal(ours: &Value, theirs: &Value, path: &str) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (name, our) in ours {
                let their = theirs.get(name);
                let their = their.unwrap_or_else(|| panic!("Go has no {path}.{name}"));
                assert_equal(our, their, &format!("{path}.{name}"));
            }
            for name in theirs.keys() {
                assert!(ours.contains_key(name), "{path}.{name} is missing");
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (at, (our, their)) in ours.iter().zip(theirs).enumerate() {
                assert_equal(our, their, &format!("{path}[{at}]"));
            }
        }
        _ => assert_eq!(ours, theirs, "{path}"),
    }
}

#[test]
#[ignore = "needs Go"]
fn random_objects_of_1_36_are_decoded_and_encoded_as_by_go() {
    drawn("v36", |pair, from_json| {
        assert_equal(&pair.read(pair.raw()).unwrap(), &pair.json, "");
        kinds::compare(pair, pair.raw());
        let encoded = encode(pair.message(), &pair.json).unwrap();
        let same = encoded
            .iter()
            .zip(from_json.raw())
            .take_while(|(our, their)| our == their);
        let same = same.count();
        assert!(encoded == from_json.raw(), "differs at byte {same}");
    });
}

#[test]
#[ignore = "needs Go"]
fn random_objects_of_1_37_are_decoded_as_by_go() {
    drawn("v37", |pair, _| {
        // 1.37 omits some empty lists where 1.36 writes null. An informer receives neither.
        let options = Options {
            missing: Missing::Nothing,
            ..LIMITS
        };
        let type_meta = (&*pair.api_version, &*pair.kind);
        let decoded = decode_with(
            pair.message(),
            Some(type_meta),
            pair.raw(),
            options,
            |message| Value::deserialize(message),
        );
        let decoded = without_nulls(decoded.unwrap());
        assert_equal(&decoded, &without_nulls(pair.json.clone()), "");
        kinds::compare(pair, pair.raw());
    });
}

#[test]
#[ignore = "needs Go"]
fn random_objects_of_1_32_are_decoded_as_by_go() {
    drawn("v32", |pair, _| {
        // 1.32 writes null where 1.36 writes nothing.
        let decoded = without_nulls(pair.read(pair.raw()).unwrap());
        assert_equal(&decoded, &without_nulls(pair.json.clone()), "");
        kinds::compare(pair, pair.raw());
    });
}
