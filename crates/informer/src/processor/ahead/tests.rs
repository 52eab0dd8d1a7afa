//! What is opened beside a handler, and for which one.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;

use super::*;
use crate::{
    decode::{Decoded, Decoder, open},
    indexer,
    object::{Opener, PackOptions},
    processor::Notification,
};

const OBJECTS: usize = 200;

/// Packed objects of so many bytes each, and what tells a handler of them all.
fn told(bytes: usize) -> (Vec<Object<ConfigMap>>, Expansion<ConfigMap>) {
    let opener = Opener::new(PackOptions::default(), open, Box::new(|_| {}));
    let decoder = Decoder::<ConfigMap>::new(&(), None).packing(Some(Arc::new(opener)));
    let object = |number: usize| {
        let json = format!(
            r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"m{number:03}","resourceVersion":"1"}},"data":{{"a":"{}"}}}}"#,
            "x".repeat(bytes)
        );
        match decoder.object(json.as_bytes(), None) {
            Decoded::Object(object) => object,
            _ => panic!("{number} is no object"),
        }
    };
    let (indexer, mut writer) = indexer::empty();
    writer.warm((0..OBJECTS).map(object).collect());
    let snapshot = indexer.snapshot();
    let objects = snapshot.iter().cloned().collect();
    (objects, Expansion::new(Notification::Join(snapshot)))
}

/// Tells one event to a handler that looks into its object, or does not; whether there was one.
fn tell(
    ahead: &mut Ahead<ConfigMap>,
    expansion: &mut Expansion<ConfigMap>,
    looks: bool,
) -> Option<usize> {
    let event = ahead.next(expansion)?;
    let noted = ahead.noted(&event);
    let object = now(&event).unwrap();
    if looks {
        object.get().unwrap();
    }
    if let Some(noted) = &noted {
        ahead.told(noted);
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
async fn for_a_handler_that_looks_into_objects_some_of_the_next_are_opened() {
    let (objects, mut expansion) = told(100);
    let mut ahead = Ahead::here();
    ahead.begin(&expansion);
    for number in 0..SEEN as usize {
        assert!(objects[number..].iter().all(|object| !object.is_open()));
        assert_eq!(tell(&mut ahead, &mut expansion, true), Some(number));
    }
    let mut opened_ahead = 0;
    for number in SEEN as usize..OBJECTS {
        if ahead.telling.len() == WINDOW - 1 && ahead.upcoming.len() == WINDOW {
            let upcoming = &objects[number + ahead.telling.len()..];
            until(|| upcoming[..WINDOW].iter().filter(|it| it.is_open()).count() == WINDOW / 2)
                .await;
            assert!(upcoming[WINDOW..].iter().all(|object| !object.is_open()));
            opened_ahead += 1;
        }
        assert_eq!(tell(&mut ahead, &mut expansion, true), Some(number));
    }
    assert_eq!(opened_ahead, 4);
    assert_eq!(tell(&mut ahead, &mut expansion, true), None);
    until(|| {
        while ahead.threads.try_join_next().is_some() {}
        ahead.threads.is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn for_a_handler_that_does_not_look_nothing_is_opened() {
    let (objects, mut expansion) = told(100);
    let mut ahead = Ahead::here();
    ahead.begin(&expansion);
    for number in 0..OBJECTS {
        assert_eq!(tell(&mut ahead, &mut expansion, false), Some(number));
        assert!(ahead.helpers.is_empty(), "{number}");
    }
    assert!(objects.iter().all(|object| !object.is_open()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_looks_no_more_is_left_alone() {
    let (_, mut expansion) = told(100);
    let mut ahead = Ahead::here();
    ahead.begin(&expansion);
    for number in 0..OBJECTS {
        assert_eq!(tell(&mut ahead, &mut expansion, number < 40), Some(number));
    }
    assert!(matches!(ahead.looking, Looking::Off) && ahead.helpers.is_empty());
}

#[test]
fn of_large_objects_fewer_are_taken_at_a_time() {
    for (bytes, expected) in [(100, WINDOW), (20_000, 4), (200_000, 1)] {
        let (_, mut expansion) = told(bytes);
        assert_eq!(window(&mut expansion).len(), expected, "{bytes}");
        assert_eq!(expansion.rest(), (OBJECTS - expected) as u64);
    }
}
