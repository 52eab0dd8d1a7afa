//! Tests the count of stored objects that are not decoded yet.
//!
//! One test runs readers and a writer concurrently. Another tests `Object::found_broken`, which returns a
//! copy with the decode error if an object has failed to decode.

use std::thread;

use super::*;
use crate::{
    codec::{Codec, Encoded, Unfit},
    object::{
        ObjectName,
        body::{Form, lazy::LazyDecoder},
    },
};

fn decode(encoded: Encoded<'_>) -> Result<String, Unfit> {
    let text = String::from_utf8_lossy(encoded.bytes()).into_owned();
    if text.contains("bad") {
        return Err(Unfit {
            field: "data".to_owned(),
            reason: "planted".to_owned(),
        });
    }
    Ok(text)
}

fn lazy() -> Arc<LazyDecoder<String>> {
    Arc::new(LazyDecoder::new(decode, Box::new(|_| {})))
}

fn object(lazy: &Arc<LazyDecoder<String>>, name: &str) -> Object<String> {
    let json = format!(r#"{{"metadata":{{"name":"{name}","uid":"u","labels":{{"a":"b"}}}}}}"#);
    let encoded = Codec::Json.object(json.as_bytes());
    let identity = encoded.identity().unwrap();
    Form::Lazy(Arc::clone(lazy))
        .keep(ObjectName::of(&identity).unwrap(), &identity, encoded, 7)
        .unwrap()
}

#[test]
fn an_object_counts_as_unread_until_it_is_read_or_removed() {
    let lazy = lazy();
    let moment = UnreadMoment::first(Arc::clone(lazy.unread())).next();
    let [read, bad, removed, before] =
        ["read", "bad", "removed", "before"].map(|it| object(&lazy, it));
    before.get().unwrap();
    for object in [&read, &bad, &removed, &before] {
        object.enters_store();
    }
    assert_eq!(moment.count(), 3, "one was read before");
    for _ in 0..2 {
        read.get().unwrap();
        assert_eq!(moment.count(), 2);
    }
    bad.get().unwrap_err();
    assert_eq!(moment.count(), 1, "one was found broken");
    removed.leaves_store();
    assert_eq!(moment.count(), 0);
    removed.get().unwrap();
    read.leaves_store();
    assert_eq!(moment.count(), 0);
}

#[test]
fn an_ended_moment_keeps_its_count() {
    let lazy = lazy();
    let [first, second] = ["first", "second"].map(|it| object(&lazy, it));
    let older = UnreadMoment::first(Arc::clone(lazy.unread())).next();
    first.enters_store();
    second.enters_store();
    let newer = older.next();
    first.leaves_store();
    assert_eq!((older.count(), newer.count()), (2, 1));
    second.get().unwrap();
    assert_eq!((older.count(), newer.count()), (2, 0));
}

#[test]
fn the_same_state_in_another_epoch_is_counted_once() {
    use crate::object::Epoch;

    let lazy = lazy();
    let moment = UnreadMoment::first(Arc::clone(lazy.unread())).next();
    let old = object(&lazy, "a");
    old.enters_store();
    let new = old.clone().in_epoch(Epoch::NONE);
    assert!(!new.is_same(&old));
    old.leaves_store();
    new.enters_store();
    assert_eq!(moment.count(), 1);
    old.get().unwrap();
    assert_eq!(moment.count(), 0);
}

#[test]
fn concurrent_readers_and_a_writer_lose_no_count() {
    let lazy = lazy();
    let moment = UnreadMoment::first(Arc::clone(lazy.unread())).next();
    for round in 0..200 {
        let objects: Vec<_> = (0..16).map(|n| object(&lazy, &format!("p{n}"))).collect();
        thread::scope(|scope| {
            scope.spawn(|| {
                for object in &objects {
                    object.enters_store();
                }
                for object in &objects[..8] {
                    object.leaves_store();
                }
            });
            for offset in 0..2 {
                let objects = &objects;
                scope.spawn(move || {
                    let read = objects.iter().skip(offset).step_by(2);
                    read.for_each(|object| drop(object.get().unwrap()));
                });
            }
        });
        assert_eq!(moment.count(), 0, "round {round}");
        assert_eq!(object(&lazy, "x").found_broken().map(drop), None);
    }
}

#[test]
fn an_object_that_failed_to_decode_becomes_a_broken_one_of_the_same_state() {
    let lazy = lazy();
    let bad = object(&lazy, "bad");
    assert!(bad.found_broken().is_none(), "it was not read");
    let error = bad.get().unwrap_err();
    let broken = bad.found_broken().unwrap();
    assert_eq!(broken.broken(), Some(&error));
    assert_eq!(broken.object_name(), bad.object_name());
    assert_eq!(broken.revision(), bad.revision());
    assert_eq!(broken.uid_hash(), bad.uid_hash());
    assert!(broken.found_broken().is_none());
    let good = object(&lazy, "good");
    good.get().unwrap();
    assert!(good.found_broken().is_none());
}
