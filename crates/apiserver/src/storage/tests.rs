//! Tests that the store behaves like a simple model, and encodes stored objects and events correctly.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::{Entry, EventType, FRAMES_KEPT, LOG_AGE, OBJECT_BYTES_MAX, Shape, Storage, TableShape};
use crate::kinds::Kinds;
use crate::negotiate::{Encoding, IncludeObject};
use crate::resource::{CollectionId, Registry, Resource};

const COLLECTION: CollectionId = CollectionId(0);

fn pods() -> Arc<Resource> {
    let registry = Registry::new(&Kinds::builtin());
    Arc::clone(
        registry
            .by_path("", "v1", "pods")
            .expect("pods are built in"),
    )
}

fn entry(resource: &Resource, key: &str, revision: u64) -> Arc<Entry> {
    let object = json!({"metadata": {"name": key}});
    Arc::new(Entry::new(
        resource,
        key.into(),
        object.as_object().unwrap(),
        revision,
    ))
}

fn put(storage: &mut Storage, resource: &Resource, key: &str) {
    let entry = entry(resource, key, storage.revision() + 1);
    storage.commit(COLLECTION, &key.into(), Some(entry));
}

proptest! {
    #[test]
    fn every_state_within_the_log_can_be_reconstructed(
        writes in prop::collection::vec((0_usize..6, any::<bool>()), 1..60),
        compact_at in 0_usize..60,
    ) {
        let resource = pods();
        let mut storage = Storage::new(1);
        let mut present: BTreeMap<String, u64> = BTreeMap::new();
        let mut moments = vec![present.clone()];
        for (nth, (key, remove)) in writes.into_iter().enumerate() {
            if nth == compact_at {
                storage.compact();
            }
            let key = format!("ns/{key}");
            if remove && present.remove(&key).is_some() {
                storage.commit(COLLECTION, &key.as_str().into(), None);
            } else {
                put(&mut storage, &resource, &key);
                present.insert(key, storage.revision());
            }
            moments.push(present.clone());
        }
        for (revision, expected) in (0_u64..).zip(&moments) {
            let Ok(rewind) = storage.rewind(COLLECTION, revision) else {
                prop_assert!(revision < storage.horizon(COLLECTION));
                continue;
            };
            let seen = rewind.snapshot();
            let seen: BTreeMap<String, u64> =
                seen.range("", "").map(|entry| (entry.key.to_string(), entry.revision)).collect();
            prop_assert_eq!(&seen, expected);

            let mut replayed = expected.clone();
            for event in storage.events_after(COLLECTION, revision) {
                match &event.new {
                    Some(new) => replayed.insert(new.key.to_string(), new.revision),
                    None => replayed.remove(event.key()),
                };
            }
            prop_assert_eq!(&replayed, &present);
        }
    }
}

#[test]
fn a_range_starts_and_ends_with_its_prefix() {
    let resource = pods();
    let mut storage = Storage::new(1);
    for key in ["a/x", "a/y", "a-b/x", "b/x"] {
        put(&mut storage, &resource, key);
    }
    let snapshot = storage.snapshot(COLLECTION);
    let keys = |prefix: &str, start: &str| -> Vec<String> {
        snapshot
            .range(prefix, start)
            .map(|entry| entry.key.to_string())
            .collect()
    };
    assert_eq!(keys("", ""), ["a-b/x", "a/x", "a/y", "b/x"]);
    assert_eq!(keys("a/", ""), ["a/x", "a/y"]);
    assert_eq!(keys("a/", "x\0"), ["a/y"]);
    assert_eq!(keys("", "a/x\0"), ["a/y", "b/x"]);
}

#[tokio::test(start_paused = true)]
async fn events_are_dropped_after_five_minutes() {
    let resource = pods();
    let mut storage = Storage::new(1);
    put(&mut storage, &resource, "a");
    tokio::time::advance(LOG_AGE).await;
    put(&mut storage, &resource, "b");
    assert_eq!(storage.horizon(COLLECTION), 0, "exactly at the age limit");
    tokio::time::advance(Duration::from_secs(1)).await;
    put(&mut storage, &resource, "c");
    assert_eq!(storage.horizon(COLLECTION), 1);
    assert_eq!(storage.events_after(COLLECTION, 1).len(), 2);
}

fn configured() -> Entry {
    let object = json!({
        "apiVersion": "v1",
        "binaryData": {},
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"l": "v"}},
        "spec": {"nodeName": "n"},
    });
    Entry::new(&pods(), "ns/a".into(), object.as_object().unwrap(), 7)
}

#[test]
fn an_entry_is_written_as_object_item_and_metadata() {
    let entry = configured();
    let written = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        write(&mut bytes);
        String::from_utf8(bytes).unwrap()
    };
    let metadata = r#"{"name":"a","resourceVersion":"7","labels":{"l":"v"}}"#;
    let members = format!(r#""metadata":{metadata},"spec":{{"nodeName":"n"}},"binaryData":{{}}"#);
    assert_eq!(
        written(&|out| entry.write_object(&pods(), out)),
        format!(r#"{{"kind":"Pod","apiVersion":"v1",{members}}}"#)
    );
    assert_eq!(
        written(&|out| entry.write_item(out)),
        format!("{{{members}}}")
    );
    assert_eq!(entry.metadata(), metadata.as_bytes());
}

#[test]
fn another_revision_changes_nothing_but_the_revision() {
    let entry = configured();
    let later = entry.at_revision(123);
    let mut expected = entry.object(&pods());
    expected["metadata"]["resourceVersion"] = json!("123");
    assert_eq!(later.object(&pods()), expected);
    assert_eq!(
        later.metadata(),
        br#"{"name":"a","resourceVersion":"123","labels":{"l":"v"}}"#
    );
    assert_eq!(
        (later.labels.get("l"), later.fields),
        (Some("v"), entry.fields)
    );
}

#[test]
fn characters_that_go_escapes_do_not_make_an_object_too_large() {
    let resource = pods();
    let entry = |text: &str, count: usize| {
        let object = json!({"metadata": {"name": "a"}, "data": text.repeat(count)});
        Entry::new(&resource, "a".into(), object.as_object().unwrap(), 1)
    };
    for (text, bytes) in [("<", 1), ("&", 1), ("\u{2028}", 3), ("a", 1)] {
        assert!(!entry(text, (OBJECT_BYTES_MAX - 1_000) / bytes).is_too_large());
        assert!(entry(text, OBJECT_BYTES_MAX / bytes + 1).is_too_large());
    }
}

#[cfg(feature = "persistence")]
#[test]
fn an_object_of_an_earlier_version_gets_the_members_of_this_one() {
    let resource = pods();
    let metadata = r#""metadata":{"name":"a","resourceVersion":"5"}"#;
    let members = format!(r#"{metadata},"spec":{{"serviceAccountName":"b"}}"#);
    let restored = Entry::restored(&resource, "a", members.as_bytes(), 11..metadata.len());
    let object = restored.unwrap().object(&resource);
    assert_eq!(object["spec"]["serviceAccount"], "b");
}

#[test]
fn a_frame_is_encoded_once_and_shared_until_it_is_dropped() {
    let resource = pods();
    let mut storage = Storage::new(1);
    let made = std::cell::Cell::new(0);
    let event = storage.commit(COLLECTION, &"a".into(), Some(entry(&resource, "a", 1)));
    let frame = |event_type, shape| {
        let frame = event.frame(event_type, shape, &resource, |entry, out| {
            made.set(made.get() + 1);
            out.extend(entry.key.bytes());
            Ok::<_, Infallible>(())
        });
        frame.unwrap()
    };
    let first = frame(EventType::Added, Shape::Object(Encoding::Json));
    let again = frame(EventType::Added, Shape::Object(Encoding::Json));
    assert_eq!((first.as_ptr(), made.get()), (again.as_ptr(), 1));
    frame(EventType::Modified, Shape::Object(Encoding::Json));
    frame(EventType::Added, Shape::Metadata(Encoding::Json));
    assert_eq!(made.get(), 3, "another type or shape is another frame");
    let unfit = event.frame(
        EventType::Added,
        Shape::Object(Encoding::Protobuf),
        &resource,
        |_, _| Err("it can't be encoded"),
    );
    assert_eq!(unfit, Err("it can't be encoded"), "it is not kept");
    frame(EventType::Added, Shape::Object(Encoding::Protobuf));
    assert_eq!(made.get(), 4, "another encoding is another frame");

    for _ in 1..FRAMES_KEPT {
        put(&mut storage, &resource, "b");
    }
    frame(EventType::Added, Shape::Object(Encoding::Json));
    assert_eq!(made.get(), 4);
    put(&mut storage, &resource, "b");
    frame(EventType::Added, Shape::Object(Encoding::Json));
    assert_eq!((made.get(), &first[..]), (5, &b"a"[..]));
}

#[test]
fn a_table_is_shared_within_its_second() {
    let resource = pods();
    let mut storage = Storage::new(1);
    let made = std::cell::Cell::new(0);
    let event = storage.commit(COLLECTION, &"a".into(), Some(entry(&resource, "a", 1)));
    let frame = |introduces, second| {
        let shape = Shape::Table(TableShape {
            include: IncludeObject::Metadata,
            introduces,
            now: jiff::Timestamp::from_second(second).unwrap(),
        });
        let frame = event.frame(EventType::Added, shape, &resource, |_, _| {
            made.set(made.get() + 1);
            Ok::<_, Infallible>(())
        });
        frame.unwrap();
        made.get()
    };
    assert_eq!([frame(true, 1), frame(true, 1)], [1, 1]);
    assert_eq!([frame(false, 1), frame(true, 1)], [2, 2], "both are kept");
    assert_eq!(
        [frame(false, 2), frame(false, 1)],
        [3, 4],
        "one table is kept per second"
    );
}

#[test]
fn a_full_history_drops_the_oldest_events_of_the_largest_log() {
    let resource = pods();
    let mut storage = Storage::new(2);
    let busy = CollectionId(1);
    let object = entry(&resource, "a", 1);
    // Revisions have one digit first, then two.
    storage.history_bytes_max = 10 * 2 * (object.bytes() + 1);
    let mut write = |collection: CollectionId| {
        let entry = entry(&resource, "a", storage.revision() + 1);
        storage.commit(collection, &"a".into(), Some(entry));
        (
            storage.log(COLLECTION).len(),
            storage.log(busy).len(),
            storage.object_bytes() / object.bytes(),
        )
    };
    assert_eq!(write(COLLECTION), (1, 0, 1));
    for nth in 1..10 {
        assert_eq!(write(busy), (1, nth, 2));
    }
    for _ in 0..20 {
        assert_eq!(write(busy), (1, 9, 2));
    }
    assert_eq!(
        write(COLLECTION),
        (2, 8, 2),
        "events of other logs are dropped too"
    );
    assert_eq!(storage.horizon(COLLECTION), 0);
    let first = storage.log(busy).front().unwrap().revision;
    assert_eq!(storage.horizon(busy), first - 1);
    storage.commit(busy, &"a".into(), None);
    assert_eq!(storage.object_bytes(), object.bytes() + 1);
    storage.compact();
    assert_eq!(storage.log(busy).len(), 0);
    put(&mut storage, &resource, "b");
    assert_eq!(storage.log(COLLECTION).len(), 1, "there is room again");
}
