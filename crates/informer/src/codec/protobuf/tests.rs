//! Tests that an object in protobuf is read like the same object in JSON.
//!
//! Also tests that invalid bytes result in an error.

use bytes::Bytes;
use expect_test::expect;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube_core::{DynamicObject, Resource};
use kube_informer_protobuf::{encode, put_bytes};
use serde_json::json;

use super::{
    super::{Codec, Encoded, Encoding},
    *,
};
use crate::pruning::Pruning;

mod split;

/// Returns a pod with fields of many types, such as maps, times, quantities and ports.
fn pod(name: &str) -> Value {
    json!({
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": format!("uid-{name}"),
            "resourceVersion": "7",
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"app": "web", "tier": "front"},
            "annotations": {"a.b/c": "d", "note": "ä"},
            "managedFields": [{
                "manager": "kubectl",
                "operation": "Apply",
                "time": "2026-01-02T03:04:05Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:nodeName": {}}},
            }],
        },
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "env": [{"name": "A", "value": "b"}],
                    "ports": [{"containerPort": 80}],
                    "resources": {"limits": {"cpu": "100m", "memory": "1Gi"}},
                    "readinessProbe": {"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 3},
                },
                {"name": "d", "resources": {}},
            ],
            // JSON inlines a volume's source into the volume, and protobuf does not.
            "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
            "terminationGracePeriodSeconds": 0,
        },
        "status": {"phase": "Running", "startTime": "2026-01-02T03:04:06Z"},
    })
}

fn schema(api_version: &str, kind: &str) -> Schema {
    Schema::of_kind(api_version, kind).unwrap()
}

fn message_of(kind: &str, object: &Value) -> Vec<u8> {
    encode(schema("v1", kind).0, object).unwrap()
}

/// Returns `raw` in an envelope with API version `v1` and kind `kind`.
fn enveloped(kind: &str, raw: &[u8]) -> Vec<u8> {
    with_kind(raw, &Expected::new("v1", kind, false))
}

fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut field = Vec::new();
    put_bytes(number, bytes, &mut field);
    field
}

fn pod_of(encoded: Encoded<'_>) -> Pod {
    encoded.decode().unwrap()
}

#[test]
fn an_object_has_the_identity_and_the_kind_of_its_json() {
    let object = pod("a");
    let raw = message_of("Pod", &object);
    let json = object.to_string();
    let expected = Codec::Json.object(json.as_bytes()).identity().unwrap();
    let codec = Codec::Protobuf(schema("v1", "Pod"));
    for bytes in [raw.clone(), enveloped("Pod", &raw)] {
        let encoded = codec.object(&bytes);
        for identity in [
            encoded.identity(),
            encoded.identity_at(0, true),
            encoded.identity_in_place(),
        ] {
            let identity = identity.unwrap();
            let of = |identity: &Identity<'_>| {
                let metadata = &identity.metadata;
                let name = (
                    metadata.name.clone().into_owned(),
                    metadata.uid.clone().into_owned(),
                );
                let revision = metadata.resource_version.clone().into_owned();
                let namespace = metadata.namespace.clone().map(Cow::into_owned);
                (name, revision, namespace, identity.label_map())
            };
            assert_eq!(of(&identity), of(&expected));
        }
    }
    let expected = Expected::new("v1", "Pod", false);
    assert!(matches!(
        codec.object(&raw).named(&expected),
        Named::Nothing
    ));
    assert!(codec.object(&raw).begins_with_metadata().is_some());
    // An item of a list of metadata has no envelope, and is of the kind of metadata.
    let metadata =
        Codec::Protobuf(Schema::of_kind("meta.k8s.io/v1", "PartialObjectMetadata").unwrap());
    let of_metadata = Expected::new("v1", "Pod", true);
    assert!(matches!(
        metadata.object(&raw).named(&of_metadata),
        Named::Expected(_)
    ));
    let stated = enveloped("Pod", &raw);
    assert!(matches!(
        codec.object(&stated).named(&expected),
        Named::Expected(_)
    ));
    let other = enveloped("Secret", &raw);
    let other = codec.object(&other).named(&expected);
    assert!(matches!(other, Named::Other(found) if found == "v1 Secret"));
    // The fields after the metadata are invalid.
    let torn = [&raw[..], &[0x0f]].concat();
    assert!(codec.object(&torn).identity().is_none());
    assert_eq!(
        codec
            .object(&torn)
            .identity_in_place()
            .unwrap()
            .metadata
            .name,
        "a"
    );
    assert!(codec.object(&torn).decode::<Pod>().is_err());
}

#[test]
fn an_object_whose_metadata_are_sent_in_parts_has_one_identity() {
    let parts = [
        field(1, b"a"),
        field(3, b"default"),
        field(1, b"b"),
        field(5, b"u"),
    ];
    let label = |key: &str| field(11, &[field(1, key.as_bytes()), field(2, b"x")].concat());
    let raw = [
        field(1, &parts[..2].concat()),
        field(2, b""),
        field(1, &[&parts[2..].concat()[..], &label("one")].concat()),
        field(1, &label("two")),
    ];
    let raw = raw.concat();
    let encoded = Codec::Protobuf(schema("v1", "Pod")).object(&raw);
    let read = pod_of(encoded).metadata;
    for identity in [
        encoded.identity().unwrap(),
        encoded.identity_in_place().unwrap(),
    ] {
        assert_eq!(Some(&*identity.metadata.name), read.name.as_deref());
        assert_eq!(
            identity.metadata.namespace.as_deref(),
            read.namespace.as_deref()
        );
        assert_eq!(Some(&*identity.metadata.uid), read.uid.as_deref());
        assert_eq!(Some(identity.label_map()), read.labels);
    }
    assert_eq!(
        (read.name.as_deref(), read.uid.as_deref()),
        (Some("b"), Some("u"))
    );
}

#[test]
fn a_dynamic_object_has_the_members_of_its_json() {
    let object = pod("a");
    let stated = enveloped("Pod", &message_of("Pod", &object));
    let codec = Codec::Protobuf(schema("v1", "Pod"));
    let read: DynamicObject = codec.object(&stated).decode().unwrap();
    let mut whole = object;
    whole["apiVersion"] = json!("v1");
    whole["kind"] = json!("Pod");
    assert_eq!(serde_json::to_value(&read).unwrap(), whole);
    assert_eq!(read.meta().name.as_deref(), Some("a"));
    let text = codec.object(&stated).json().into_owned();
    assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), whole);
    assert_eq!(&*codec.object(&[0x0f]).json(), b"null");
}

#[test]
fn pruning_has_the_effect_that_it_has_on_json() {
    let object = pod("a");
    let json = object.to_string();
    let raw = message_of("Pod", &object);
    let codec = Codec::Protobuf(schema("v1", "Pod"));
    let path = |path: &str| path.parse().unwrap();
    let mut shorter = 0;
    for (pruned, kept) in [
        (&["metadata.managedFields"][..], None),
        (&["metadata.annotations", "spec"], None),
        (&["metadata.annotations['a.b/c']"], None),
        (
            &[
                "spec.containers.env",
                "spec.containers[*].resources.limits['cpu']",
            ],
            None,
        ),
        (
            &[
                "spec.containers.readinessProbe.httpGet.path",
                "spec.volumes.secret",
            ],
            None,
        ),
        (
            &[
                "metadata.managedFields.fieldsV1['f:spec']",
                "status.startTime",
            ],
            None,
        ),
        (&["nonesuch", "spec.nodeName"], None),
        (&[], Some(&["spec.containers.name", "status.phase"][..])),
        (&["spec.containers.name"], Some(&["spec.containers"])),
        (&[], Some(&[])),
    ] {
        let mut pruning = Pruning::default();
        if let Some(kept) = kept {
            pruning.keep(kept.iter().map(|kept| path(kept)));
        }
        let pruned_paths = pruned.iter().map(|pruned| path(pruned));
        pruning
            .prune::<crate::pruning::Pruned<Pod>>(pruned_paths)
            .unwrap();
        let cut_json = Codec::Json
            .object(json.as_bytes())
            .cut(&pruning)
            .into_owned();
        let cut_raw = codec.object(&raw).cut(&pruning).into_owned();
        let from_json: Pod = Codec::Json.object(&cut_json).decode().unwrap();
        assert_eq!(
            pod_of(codec.object(&cut_raw)),
            from_json,
            "{pruned:?} {kept:?}"
        );
        shorter += usize::from(cut_raw.len() < raw.len());
    }
    // Go writes `nodeName` although it is empty.
    assert_eq!(shorter, 10);
}

#[test]
fn an_error_names_the_field_and_quotes_no_value() {
    let codec = Codec::Protobuf(schema("v1", "Secret"));
    let data = [field(1, b"password"), field(2, b"hunter2")].concat();
    let wrong = [field(2, &data), field(5, b"x")].concat();
    let unfit = codec.object(&wrong).decode::<Secret>().unwrap_err();
    assert_eq!(unfit.field, "immutable");
    assert_eq!(unfit.reason, "proto: wrong wireType = 2");
    let torn = codec.object(&[0x12, 0x7f]).decode::<Secret>().unwrap_err();
    assert_eq!((&*torn.field, &*torn.reason), ("data", "unexpected EOF"));
    let measured = codec.object(&field(2, &data)).measured::<Secret>().unwrap();
    assert_eq!(measured.value.data.unwrap()["password"].0, b"hunter2");
    assert!(measured.heap_bytes > 0);
}

#[test]
fn the_text_of_an_error_of_the_type_is_not_shown() {
    #[derive(Debug, Deserialize)]
    struct Strict {
        #[serde(rename = "type", deserialize_with = "refuse")]
        _type: String,
    }
    fn refuse<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
        let text = String::deserialize(deserializer)?;
        Err(serde::de::Error::custom(format!("{text} is refused")))
    }
    let secret = json!({"type": "hunter2"});
    let raw = message_of("Secret", &secret);
    let unfit = Codec::Protobuf(schema("v1", "Secret"))
        .object(&raw)
        .decode::<Strict>();
    let unfit = unfit.unwrap_err();
    assert_eq!(unfit.field, "type");
    assert!(!unfit.reason.contains("hunter2"), "{}", unfit.reason);
}

#[test]
fn an_object_with_too_many_maps_is_an_error_before_it_uses_their_memory() {
    let raw = field(2, &[0x12, 0].repeat(PARTS));
    let encoded = Codec::Protobuf(schema("v1", "Pod")).object(&raw);
    let unfit = encoded.decode::<Pod>().unwrap_err();
    assert_eq!(unfit.reason, "more than 500000 arrays and maps");
}

#[test]
fn the_status_of_an_error_response_can_be_protobuf() {
    let details = json!({"retryAfterSeconds": 7});
    let status = json!({"code": 429, "message": "slow down", "details": details});
    let body = enveloped("Status", &message_of("Status", &status));
    let error = crate::transport::Error::from_status_body(500, &body);
    assert_eq!(error.class(), crate::transport::Class::TooManyRequests);
    assert_eq!(error.retry_after(), Some(std::time::Duration::from_secs(7)));
}

#[test]
fn the_end_bookmark_of_a_streaming_list_is_recognized() {
    let bookmark = |value: &str| {
        let annotations = json!({"other": "true", "k8s.io/initial-events-end": value});
        let object = json!({"metadata": {"resourceVersion": "5", "annotations": annotations}});
        enveloped("Pod", &message_of("Pod", &object))
    };
    let codec = Codec::Protobuf(schema("v1", "Pod"));
    assert!(codec.object(&bookmark("true")).ends_initial_events());
    assert!(!codec.object(&bookmark("false")).ends_initial_events());
    assert!(!codec.object(&enveloped("Pod", b"")).ends_initial_events());
}
