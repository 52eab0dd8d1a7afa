//! Tests that exactly the intentional differences between two servers are recognized.
//!
//! The tests compare constructed answers, and run no server.

use serde_json::json;

use super::*;
use crate::divergences;

fn response(status: u16, body: Value) -> Answer {
    Answer::Response(Response {
        status,
        headers: Vec::new(),
        body: Content::Json(body.into()),
    })
}

#[test]
fn the_name_is_in_the_list() {
    assert!(divergences::read().unwrap().contains_key(NULL_ITEMS));
}

#[test]
fn a_difference_without_meaning_is_removed() {
    let mut answers = [response(200, json!({"items": null}))];
    assert_eq!(settle(&mut answers), [NULL_ITEMS]);
    assert!(settle(&mut answers).is_empty(), "{answers:?}");
}
