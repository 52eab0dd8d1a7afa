//! Tests when the cache's background task compresses objects from watch events, and which thread trains
//! dictionaries.

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

/// Returns a decoder that has a trained dictionary, and leaves compression to the background task.
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
    assert!(packed.packing().train(false));
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

/// Returns a decoder that must train a second dictionary, because its objects have changed.
///
/// `samples` is the number of objects that a dictionary is trained from.
fn outgrown(samples: usize) -> Arc<PackedDecoder<ConfigMap>> {
    let decoder = PackedDecoder::new(PackOptions::new(samples), open, Box::new(|_| {}));
    let mut rng = fastrand::Rng::with_seed(1);
    (0..samples).for_each(|number| _ = decoder.packing().pack(&json(number)));
    assert!(decoder.packing().train(false));
    for number in 0..8000 {
        decoder.packing().pack(&json(number));
    }
    for _ in 0..1000 + samples {
        let other: Vec<u8> = (0..300).map(|_| rng.u8(b'a'..b'e')).collect();
        decoder.packing().pack(&other.repeat(2));
    }
    assert!(decoder.packing().is_due(false));
    Arc::new(decoder)
}

#[tokio::test]
async fn a_dictionary_of_few_objects_is_trained_in_place() {
    let decoder = outgrown(SAMPLES);
    let mut training = Training::new();
    training.tend(&decoder, false).await;
    assert_eq!(decoder.packing().generation(), 2);
    assert!(training.under_way.is_empty());
}

#[tokio::test]
async fn only_the_first_dictionary_delays_a_list() {
    let mut training = Training::new();
    let first =
        PackedDecoder::<ConfigMap>::new(PackOptions::new(OFFLOADED_MIN), open, Box::new(|_| {}));
    let first = Arc::new(first);
    (0..OFFLOADED_MIN).for_each(|number| _ = first.packing().pack(&json(number)));
    let mut making = tokio_test::task::spawn(training.tend(&first, false));
    assert!(
        making.poll().is_pending(),
        "another thread trains the dictionary"
    );
    making.await;
    assert_eq!(first.packing().generation(), 1);
    assert!(training.under_way.is_empty());

    let decoder = outgrown(OFFLOADED_MIN);
    training.tend(&decoder, false).await;
    training.tend(&decoder, false).await;
    assert_eq!(training.under_way.len(), 1);
    training.under_way.join_next().await.unwrap().unwrap();
    assert_eq!(decoder.packing().generation(), 2);
    training.tend(&decoder, false).await;
    assert!(training.under_way.is_empty(), "no training is due");
}
