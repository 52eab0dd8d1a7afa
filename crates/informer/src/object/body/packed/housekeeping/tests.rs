//! Tests when the cache's background task compresses objects from watch events.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;

use super::{
    super::{super::Form, PackOptions},
    *,
};
use crate::decode::{Decoded, Decoder, open};

const SAMPLES: usize = 16;

fn json(number: usize) -> Vec<u8> {
    let data = "something that each of them has in common with all the others ".repeat(20);
    let json = format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"m{number}","resourceVersion":"{number}"}},"data":{{"all":"{data}","own":"{}"}}}}"#,
        fastrand::Rng::with_seed(number as u64).u64(..)
    );
    json.into_bytes()
}

/// Returns a decoder that has a dictionary, and leaves compression to the background task.
fn decoder() -> Decoder<ConfigMap> {
    let packed = PackedDecoder::new(PackOptions::new(SAMPLES), open, Box::new(|_| {}));
    let packed = Arc::new(packed);
    let decoder = Decoder::<ConfigMap>::new(&(), None).keeping(Form::Packed {
        decoder: Arc::clone(&packed),
        is_urgent: false,
    });
    for number in 0..SAMPLES {
        decode(&decoder, number);
    }
    assert!(packed.packing().renew(false));
    assert!(decode(&decoder, 0).packed_bytes().unwrap() < json(0).len() / 4);
    decoder.urgent()
}

fn decode(decoder: &Decoder<ConfigMap>, number: usize) -> Object<ConfigMap> {
    match decoder.object(crate::codec::Codec::Json.object(&json(number)), None) {
        Decoded::Object(object) => object,
        _ => panic!("{number} is not an object"),
    }
}

fn is_small(object: &Object<ConfigMap>) -> bool {
    let revision = object.revision().to_string();
    let sent = String::from_utf8(json(revision.parse().unwrap())).unwrap();
    let data = object.get().unwrap().data.clone().unwrap();
    assert!(sent.contains(&data["own"]), "{object:?}");
    object.packed_bytes().unwrap() < 400
}

#[tokio::test]
async fn pending_objects_are_packed_at_a_limit_a_bookmark_or_the_end() {
    let decoder = decoder();
    let objects: Vec<_> = (0..PENDING_MAX)
        .map(|number| decode(&decoder, number))
        .collect();
    let mut pending = Pending::new();
    for object in &objects {
        assert!(!is_small(object), "{object:?}");
        pending.push(object);
    }
    assert!(objects.iter().all(is_small));

    let few = [decode(&decoder, 1), decode(&decoder, 2)];
    pending.push(&few[0]);
    pending.push(&objects[0]);
    assert!(!is_small(&few[0]));
    pending.pack();
    assert!(is_small(&few[0]));
    pending.push(&few[1]);
    drop(pending);
    assert!(is_small(&few[1]));
}

#[test]
fn objects_are_packed_a_few_at_a_time_and_all_at_the_end() {
    let decoder = decoder();
    let objects: Vec<_> = (0..3 * TURN)
        .map(|number| decode(&decoder, number))
        .collect();
    let small = || objects.iter().filter(|object| is_small(object)).count();
    let mut packing = tokio_test::task::spawn(Unpacked(objects.clone()).pack());
    for turns in 0..3 {
        assert!(packing.poll().is_pending());
        assert_eq!(small(), turns * TURN);
        assert!(packing.is_woken());
    }
    drop(packing);
    assert_eq!(small(), objects.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_several_threads_packing_runs_in_parallel() {
    let decoder = decoder();
    let objects: Vec<_> = (0..PENDING_MAX)
        .map(|number| decode(&decoder, number))
        .collect();
    let mut pending = Pending::new();
    for object in &objects {
        pending.push(object);
    }
    assert_eq!(pending.packing.len(), 1);
    // A reflector that ends cancels neither started nor pending packing.
    drop(pending);
    while !objects.iter().all(is_small) {
        tokio::task::yield_now().await;
    }
}
