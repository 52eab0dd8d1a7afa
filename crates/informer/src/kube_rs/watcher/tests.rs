//! Tests the conversion of an informer's events to kube's events. Some of the objects fail to decode.

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::*;
use crate::{
    codec::Codec,
    decode,
    indexer::Cause,
    object::{Deleted, Form, FormOptions, ObjectName},
};

fn object(name: &str, revision: &str) -> Object<Pod> {
    let meta = json!({"name": name, "namespace": "default", "resourceVersion": revision});
    let pod = serde_json::from_value(json!({"metadata": meta})).unwrap();
    Object::new(pod).unwrap()
}

fn added(name: &str, revision: &str) -> Event<Pod> {
    Event::Added {
        object: object(name, revision),
        in_initial_list: true,
    }
}

fn updated(name: &str, revision: &str) -> Event<Pod> {
    Event::Updated {
        old: object(name, "1"),
        new: object(name, revision),
        cause: Cause::Watch,
    }
}

fn deleted(name: &str, revision: &str) -> Event<Pod> {
    Event::Deleted(Deleted::Known(object(name, revision)))
}

fn converted(events: impl IntoIterator<Item = Event<Pod>>) -> String {
    let mut words = Words::default();
    let mut lines = Vec::new();
    for event in events {
        let first = words.translate(event);
        let late = std::iter::from_fn(|| words.late());
        for event in first.into_iter().chain(late) {
            lines.push(match event {
                Told::Init => "init".to_owned(),
                Told::InitApply(object) => format!("init-apply {object:?}"),
                Told::InitDone => "init-done".to_owned(),
                Told::Apply(object) => format!("apply {object:?}"),
                Told::Delete(object) => format!("delete {object:?}"),
            });
        }
    }
    lines.join(", ")
}

#[test]
fn changes_after_the_initial_list_are_applied_and_deleted() {
    let events = [
        added("a", "1"),
        Event::Synced,
        updated("a", "2"),
        added("b", "3"),
        deleted("a", "4"),
    ];
    assert_eq!(
        converted(events),
        "init-apply default/a@1, init-done, apply default/a@2, apply default/b@3, delete default/a@4"
    );
}

#[test]
fn a_change_before_all_sources_are_listed_is_part_of_the_initial_list() {
    let events = [added("a", "1"), updated("a", "2"), Event::Synced];
    assert_eq!(
        converted(events),
        "init-apply default/a@1, init-apply default/a@2, init-done"
    );
}

#[test]
fn a_deletion_before_all_sources_are_listed_is_delivered_after_the_initial_list() {
    let events = [added("a", "1"), deleted("a", "2"), Event::Synced];
    assert_eq!(
        converted(events),
        "init-apply default/a@1, init-done, delete default/a@2"
    );
}

#[test]
fn an_object_recreated_before_all_sources_are_listed_is_not_deleted() {
    let events = [
        added("a", "1"),
        deleted("a", "2"),
        added("a", "3"),
        Event::Synced,
    ];
    assert_eq!(
        converted(events),
        "init-apply default/a@1, init-apply default/a@3, init-done"
    );
}

/// Creates a state of the pod `default/a` that is decoded on read. Decoding fails if `is_broken`.
fn lazy(revision: &str, is_broken: bool) -> Object<Pod> {
    let lazy = Form::new(FormOptions::Lazy, decode::open::<Pod>, Box::new(|_| {}));
    let mut json = json!({"metadata": {"name": "a", "namespace": "default"}});
    json["metadata"]["resourceVersion"] = json!(revision);
    if is_broken {
        json["spec"] = json!("no spec");
    }
    let json = json.to_string();
    let encoded = Codec::Json.object(json.as_bytes());
    let identity = encoded.identity().unwrap();
    let name = ObjectName::of(&identity).unwrap();
    lazy.keep(name, &identity, encoded, 0).unwrap()
}

#[test]
fn a_deletion_with_an_undecodable_final_state_has_the_last_delivered_state() {
    let added = |object| Event::Added {
        object,
        in_initial_list: true,
    };
    let changed = |object| Event::Updated {
        old: lazy("1", false),
        new: object,
        cause: Cause::Watch,
    };
    let deleted = |object| Event::Deleted(Deleted::Known(object));
    let good = || added(lazy("1", false));
    let bad = || lazy("2", true);
    for (events, expected) in [
        (
            vec![good(), Event::Synced, deleted(bad())],
            "init-apply default/a@1, init-done, delete default/a@1",
        ),
        (
            vec![good(), Event::Synced, changed(bad()), deleted(bad())],
            "init-apply default/a@1, init-done, delete default/a@1",
        ),
        (
            vec![good(), changed(bad()), deleted(bad()), Event::Synced],
            "init-apply default/a@1, init-done, delete default/a@1",
        ),
        (
            vec![
                good(),
                Event::Synced,
                changed(bad()),
                changed(lazy("3", false)),
                deleted(bad()),
            ],
            "init-apply default/a@1, init-done, apply default/a@3, delete default/a@3",
        ),
        (
            vec![
                good(),
                Event::Synced,
                changed(bad()),
                deleted(lazy("4", false)),
            ],
            "init-apply default/a@1, init-done, delete default/a@4",
        ),
        (
            vec![
                added(bad()),
                Event::Synced,
                deleted(bad()),
                good(),
                deleted(bad()),
            ],
            "init-done, apply default/a@1, delete default/a@1",
        ),
    ] {
        assert_eq!(converted(events), expected);
    }
}
