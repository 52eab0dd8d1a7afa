//! What is decoded in advance, and for which handler.

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

/// Packed objects of this size, and the notification that delivers all of them.
fn told(bytes: usize) -> (Vec<Object<ConfigMap>>, Expansion<ConfigMap>) {
    let form = Form::new(FormOptions::packed(None), open, Box::new(|_| {}));
    let decoder = Decoder::<ConfigMap>::new(&(), None).keeping(form);
    let object = |number: usize| {
        let json = format!(
            r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"m{number:03}","resourceVersion":"1"}},"data":{{"a":"{}"}}}}"#,
            "x".repeat(bytes)
        );
        match decoder.object(Codec::Json.object(json.as_bytes()), None) {
            Decoded::Object(object) => object,
            _ => panic!("{number} is no object"),
        }
    };
    let (indexer, mut writer) = indexer::empty();
    writer.put_known((0..OBJECTS).map(object).collect());
    let snapshot = indexer.snapshot();
    let objects = snapshot.iter().cloned().collect();
    (objects, Expansion::new(Notification::Join(snapshot)))
}

/// Tells one event to a handler that reads its object, or does not; whether there was one.
fn tell(
    prefetch: &mut Prefetch<ConfigMap>,
    expansion: &mut Expansion<ConfigMap>,
    reads: bool,
) -> Option<usize> {
    let event = prefetch.next(expansion)?;
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
async fn for_a_handler_that_reads_objects_some_of_the_next_are_decoded() {
    let (objects, mut expansion) = told(100);
    let mut prefetch = Prefetch::here();
    prefetch.begin(&expansion);
    for number in 0..SEEN as usize {
        assert!(
            objects[number..]
                .iter()
                .all(|object| !object.was_just_decoded())
        );
        assert_eq!(tell(&mut prefetch, &mut expansion, true), Some(number));
    }
    let mut prefetched = 0;
    for number in SEEN as usize..OBJECTS {
        if prefetch.telling.len() == WINDOW - 1 && prefetch.upcoming.len() == WINDOW {
            let upcoming = &objects[number + prefetch.telling.len()..];
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
        assert_eq!(tell(&mut prefetch, &mut expansion, true), Some(number));
    }
    assert_eq!(prefetched, 4);
    assert_eq!(tell(&mut prefetch, &mut expansion, true), None);
    until(|| {
        while prefetch.threads.try_join_next().is_some() {}
        prefetch.threads.is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn for_a_handler_that_does_not_read_nothing_is_decoded() {
    let (objects, mut expansion) = told(100);
    let mut prefetch = Prefetch::here();
    prefetch.begin(&expansion);
    for number in 0..OBJECTS {
        assert_eq!(tell(&mut prefetch, &mut expansion, false), Some(number));
        assert!(prefetch.decoders.is_empty(), "{number}");
    }
    assert!(objects.iter().all(|object| !object.was_just_decoded()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_stops_reading_is_left_alone() {
    let (_, mut expansion) = told(100);
    let mut prefetch = Prefetch::here();
    prefetch.begin(&expansion);
    for number in 0..OBJECTS {
        assert_eq!(
            tell(&mut prefetch, &mut expansion, number < 40),
            Some(number)
        );
    }
    assert!(matches!(prefetch.reading, Reading::Off) && prefetch.decoders.is_empty());
}

#[test]
fn of_large_objects_fewer_are_taken_at_a_time() {
    for (bytes, expected) in [(100, WINDOW), (20_000, 4), (200_000, 1)] {
        let (_, mut expansion) = told(bytes);
        assert_eq!(window(&mut expansion).len(), expected, "{bytes}");
        assert_eq!(expansion.rest(), (OBJECTS - expected) as u64);
    }
}
