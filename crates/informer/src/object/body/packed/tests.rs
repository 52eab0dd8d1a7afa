//! Tests of objects that a cache stores as compressed bytes and decodes when they are read.
//!
//! Each object returns its own content although all objects share one decoder. If an object fails to decode,
//! the error is reported only once, even if the object is read several times.

use std::sync::atomic::AtomicUsize;

use k8s_openapi::api::core::v1::ConfigMap;

use super::{super::Form, *};

fn decode(encoded: Encoded<'_>) -> Result<ConfigMap, Unfit> {
    serde_json::from_slice(encoded.bytes()).map_err(|_| Unfit {
        field: "data".to_owned(),
        reason: "planted".to_owned(),
    })
}

fn decoder(reported: &Arc<AtomicUsize>) -> Arc<PackedDecoder<ConfigMap>> {
    let reported = Arc::clone(reported);
    let on_broken = move |_: &DecodeError| {
        reported.fetch_add(1, Ordering::Relaxed);
    };
    let options = PackOptions::new(OBJECTS_MIN);
    Arc::new(PackedDecoder::new(options, decode, Box::new(on_broken)))
}

fn object(decoder: &Arc<PackedDecoder<ConfigMap>>, number: usize, data: &str) -> Object<ConfigMap> {
    let json = format!(r#"{{"metadata":{{"name":"m{number}","uid":"u{number}"}},"data":{data}}}"#);
    let encoded = Codec::Json.object(json.as_bytes());
    let identity = encoded.identity().unwrap();
    Form::Packed {
        decoder: Arc::clone(decoder),
        is_urgent: false,
    }
    .keep(ObjectName::of(&identity).unwrap(), &identity, encoded, 0)
    .unwrap()
}

#[test]
fn bodies_that_share_a_slot_keep_their_own_objects() {
    let decoder = decoder(&Arc::default());
    let objects: Vec<_> = (0..3 * RECENT_MAX)
        .map(|number| object(&decoder, number, r#"{"a":"b"}"#))
        .collect();
    let name = |map: &ConfigMap| map.metadata.name.clone().unwrap_or_default();
    let held: Vec<_> = objects.iter().map(|it| it.get().unwrap()).collect();
    let last = objects.last().unwrap();
    assert!(Arc::ptr_eq(held.last().unwrap(), &last.get().unwrap()));
    for (object, held) in objects.iter().zip(&held) {
        assert_eq!(object.name(), name(held));
        assert_eq!(object.name(), name(&object.get().unwrap()));
        assert_eq!(object.uid(), held.metadata.uid.as_deref().unwrap());
    }
}

#[test]
fn an_unreferenced_object_stays_decoded_until_a_few_others_are_read() {
    let decoder = decoder(&Arc::default());
    let first = object(&decoder, 0, "{}");
    let weak = Arc::downgrade(&first.get().unwrap());
    for number in 1..=HOT {
        assert!(weak.upgrade().is_some(), "{number}");
        object(&decoder, number, "{}").get().unwrap();
    }
    assert!(weak.upgrade().is_none());
    assert!(first.get().is_ok());
}

#[test]
fn a_body_that_does_not_decode_is_reported_once_by_name() {
    let reported = Arc::default();
    let decoder = decoder(&reported);
    let broken = object(&decoder, 7, "5");
    assert_eq!(reported.load(Ordering::Relaxed), 0);
    let clone = broken.clone();
    for object in [&broken, &clone] {
        let error = object.get().unwrap_err();
        assert_eq!(error.to_string(), "m7 can't be decoded: planted at data");
        assert_eq!(reported.load(Ordering::Relaxed), 1);
    }
    assert!(
        broken.broken().is_none(),
        "it was not read before it was replaced"
    );
}

#[test]
fn a_decoded_object_is_packed_in_its_current_state_with_its_identity() {
    let decoder = decoder(&Arc::default());
    let mut map: ConfigMap = serde_json::from_str(
        r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"5","labels":{"k":"v"}}}"#,
    )
    .unwrap();
    let live = Object::new(map.clone()).unwrap();
    let packed = decoder.convert(live.clone());
    assert_eq!(*packed.get().unwrap(), map);
    assert!(packed.is_unchanged(&live));
    assert_eq!((packed.uid(), packed.labels().get("k")), ("u", Some("v")));
    map.metadata.labels = None;
    assert_ne!(*packed.get().unwrap(), map);
    assert!(
        decoder.convert(packed.clone()).is_same(&packed),
        "an error is reported once"
    );
}
