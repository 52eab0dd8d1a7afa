//! Fuzz target for the library's JSON parser, which must return the same values and errors as `serde_json`.
//!
//! The parser also finds the end of a JSON value in an input of several chunks. The position of the end must
//! not depend on the split into chunks.

use std::fmt;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::fuzzing::{read_json, scan_json};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use super::pieces;
use crate::planted::Bug;

/// Minimum number of digits of a number that triggers the planted bug `LongNumberHidesRest`.
const LONG: usize = 19;

pub(super) fn run(data: &[u8], bug: Option<Bug>) -> String {
    let read = spoilt(data, bug);
    let way = same::<Value>(data, &read);
    same::<ConfigMap>(data, &read);
    same::<Vec<IgnoredAny>>(data, &read);
    same::<Vec<Option<i64>>>(data, &read);
    let end = ends_alike(data);
    format!("{way}, {end}")
}

/// Asserts that the library and `serde_json` return the same value or error, and returns a summary.
///
/// The library parses `read`, and `serde_json` parses `data`. The two inputs differ only if a planted bug
/// damages `read`.
fn same<T: DeserializeOwned + PartialEq + fmt::Debug>(data: &[u8], read: &[u8]) -> String {
    let expected = serde_json::from_slice::<T>(data).map_err(|error| error.to_string());
    let found = read_json::<T>(read);
    let found = found.map(|(value, _)| value);
    // The text distinguishes a negative zero from a positive one.
    assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    match expected {
        Ok(_) => "a value".to_owned(),
        Err(error) => error
            .chars()
            .take_while(|it| !it.is_ascii_digit())
            .collect(),
    }
}

/// Checks that the library finds the same end of a value for every split of `data`.
///
/// Returns `ends` or, for an incomplete value, `goes on`.
fn ends_alike(data: &[u8]) -> &'static str {
    let whole = scan_json(&[data]);
    for chunks in pieces::cuts(data) {
        let chunks: Vec<&[u8]> = chunks.iter().map(|chunk| &chunk[..]).collect();
        assert_eq!(
            scan_json(&chunks),
            whole,
            "another split has another result"
        );
    }
    let is_nested = matches!(data.first(), Some(b'{' | b'['));
    if is_nested && serde_json::from_slice::<IgnoredAny>(data).is_ok() {
        let end = whole.map(|(end, _)| end);
        assert_eq!(
            end,
            Some(data.trim_ascii_end().len()),
            "the value ends at another place"
        );
    }
    if whole.is_some() { "ends" } else { "goes on" }
}

/// Returns a copy of `data`, damaged if `bug` is `LongNumberHidesRest`.
///
/// The damaged copy lacks some bytes after each sequence of at least [`LONG`] digits: all non-digit bytes
/// before the next `,`, `]` or `}`.
fn spoilt(data: &[u8], bug: Option<Bug>) -> Vec<u8> {
    if bug != Some(Bug::LongNumberHidesRest) {
        return data.to_vec();
    }
    let (mut kept, mut digits, mut hides) = (Vec::new(), 0, false);
    for byte in data {
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        hides &= !matches!(byte, b',' | b']' | b'}');
        if !hides || digits > 0 {
            kept.push(*byte);
        }
        hides |= digits >= LONG;
    }
    kept
}
