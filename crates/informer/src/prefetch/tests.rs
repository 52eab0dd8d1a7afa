//! Tests which objects are decoded before a handler reads them, and for which handlers.
//!
//! The objects are from a packed cache, which stores encoded objects and decodes an object on each read.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;

use super::*;
use crate::codec::Codec;
use crate::{
    decode::{Decoded, Decoder, open},
    indexer,
    object::{Form, FormOptions},
    processor::Notification,
};

const OBJECTS: usize = 200;

/// Returns [`OBJECTS`] packed objects with `bytes` bytes of data each, and the `Added` events with which a
/// new handler receives these objects.
fn deliver(bytes: usize) -> (Vec<Object<ConfigMap>>, Expansion<ConfigMap>) {
    let form = Form::new(FormOptions::packed(None), open, Box::new(|_| {}));
    let decoder = Decoder::<ConfigMap>::new(&(), None).keeping(form);
    let object = |number: usize| {
        let json = format!(
            r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"m{number:03}","resourceVersion":"1"}},"data":{{"a":"{}"}}}}"#,
            "x".repeat(bytes)
        );
        match decoder.object(Codec::Json.object(json.as_bytes()), None) {
            Decoded::Object(object) => object,
            _ => panic!("object {number} was not decoded"),
        }
    };
    let (indexer, mut writer) = indexer::empty();
    writer.put_known((0..OBJECTS).map(object).collect());
    let snapshot = indexer.snapshot();
    let objects = snapshot.iter().cloned().collect();
    (objects, Expansion::new(Notification::Join(snapshot)))
}

/// Returns the index of the next event's object, or `None` at the end; reads the object if `reads` is true.
fn next(prefetch: &mut Prefetch<ConfigMap>, reads: bool) -> Option<usize> {
    let event = prefetch.next()?;
    let object = now(&event).unwrap();
    if reads {
        object.get().unwrap();
    }
    object.name()[1..].parse().ok()
}

async fn until(mut holds: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("not in ten seconds");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_second_object_of_a_window_is_decoded_for_a_handler_that_reads() {
    let (objects, expansion) = deliver(100);
    let mut prefetch = Prefetch::default();
    prefetch.begin(expansion);
    for number in 0..SEEN as usize {
        assert!(
            objects[number..]
                .iter()
                .all(|object| !object.was_just_decoded())
        );
        assert_eq!(next(&mut prefetch, true), Some(number));
    }
    let mut prefetched = 0;
    for number in SEEN as usize..OBJECTS {
        if prefetch.current.len() == WINDOW - 1 && prefetch.upcoming.len() == WINDOW {
            let upcoming = &objects[number + prefetch.current.len()..];
            until(|| {
                upcoming[..WINDOW]
                    .iter()
                    .filter(|it| it.was_just_decoded())
                    .count()
                    == WINDOW / 2
            })
            .await;
            assert!(
                upcoming[WINDOW..]
                    .iter()
                    .all(|object| !object.was_just_decoded())
            );
            prefetched += 1;
        }
        assert_eq!(next(&mut prefetch, true), Some(number));
    }
    assert_eq!(prefetched, 4);
    assert_eq!(next(&mut prefetch, true), None);
    until(|| {
        while prefetch.threads.try_join_next().is_some() {}
        prefetch.threads.is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_decoded_for_a_handler_that_does_not_read() {
    let (objects, expansion) = deliver(100);
    let mut prefetch = Prefetch::default();
    prefetch.begin(expansion);
    for number in 0..OBJECTS {
        assert_eq!(next(&mut prefetch, false), Some(number));
        assert!(prefetch.decoders.is_empty(), "{number}");
    }
    assert!(objects.iter().all(|object| !object.was_just_decoded()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prefetch_ends_when_the_handler_stops_reading() {
    let (_, expansion) = deliver(100);
    let mut prefetch = Prefetch::default();
    prefetch.begin(expansion);
    for number in 0..OBJECTS {
        assert_eq!(next(&mut prefetch, number < 40), Some(number));
    }
    assert!(matches!(prefetch.read_count, ReadCount::Off) && prefetch.decoders.is_empty());
}

#[test]
fn a_window_has_fewer_events_if_objects_are_large() {
    for (bytes, expected) in [(100, WINDOW), (20_000, 4), (200_000, 1)] {
        let (_, mut expansion) = deliver(bytes);
        assert_eq!(window(&mut expansion).len(), expected, "{bytes}");
        assert_eq!(expansion.rest(), (OBJECTS - expected) as u64);
    }
}
