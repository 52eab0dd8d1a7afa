//! Tests the decoding of protobuf messages to JSON.
//!
//! Tests fields that are present, missing, empty, unknown, or sent more than once. Also tests the limits on
//! nesting and on the number of values.

use expect_test::expect;
use serde_json::{Value, json};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::{
    Messages, Options, decode,
    tests::{LIMITS, bytes, decoded, varint},
};

const POD: (&str, &str) = ("v1", "Pod");
const CRD: (&str, &str) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");

#[test]
fn an_empty_object_has_the_fields_that_go_always_writes() {
    let empty = |kind| decoded(kind, &[]).unwrap().to_string();
    expect![[r#"{"metadata":{},"spec":{"containers":null},"status":{}}"#]].assert_eq(&empty(POD));
    expect![[r#"{"metadata":{},"spec":{"selector":null,"strategy":{},"template":{"metadata":{},"spec":{"containers":null}}},"status":{}}"#]].assert_eq(&empty(("apps/v1", "Deployment")));
    expect![[r#"{"data":null,"metadata":{},"revision":0}"#]]
        .assert_eq(&empty(("apps/v1", "ControllerRevision")));
    expect![[r#"{"metadata":{}}"#]].assert_eq(&empty(("v1", "ConfigMap")));
    expect![[r#"{"eventTime":null,"firstTimestamp":null,"involvedObject":{},"lastTimestamp":null,"metadata":{},"reportingComponent":"","reportingInstance":"","source":{}}"#]].assert_eq(&empty(("v1", "Event")));
    expect![[r#"{"metadata":{},"spec":{},"status":{"loadBalancer":{}}}"#]]
        .assert_eq(&empty(("networking.k8s.io/v1", "Ingress")));
    expect![[r#"{"metadata":{},"spec":{},"status":{"replicas":0}}"#]]
        .assert_eq(&empty(("autoscaling/v1", "Scale")));
    expect![[r#"{"metadata":{},"spec":{"request":null,"signerName":""},"status":{}}"#]].assert_eq(
        &empty(("certificates.k8s.io/v1", "CertificateSigningRequest")),
    );
}

#[test]
fn sent_zero_values_are_omitted_as_in_go() {
    let container = [bytes(1, ""), bytes(2, ""), bytes(3, "")].concat();
    // `terminationGracePeriodSeconds` is a pointer, `hostNetwork` is not.
    let spec = [bytes(2, container), varint(4, 0), varint(11, 0)].concat();
    let pod = decoded(POD, &bytes(2, spec)).unwrap();
    assert_eq!(
        pod["spec"],
        json!({
            "containers": [{"name": "", "command": [""], "resources": {}}],
            "terminationGracePeriodSeconds": 0,
        })
    );
}

/// Tests varints that encode 0 in two bytes, which decoders accept but no encoder writes.
#[test]
fn a_zero_of_two_bytes_is_omitted_as_a_zero_of_one_byte() {
    let image = vec![0x12, 0x80, 0x00];
    let host_network = vec![0x58, 0x80, 0x00];
    let spec = [bytes(2, image), host_network].concat();
    let pod = decoded(POD, &bytes(2, spec)).unwrap();
    let containers = json!([{"name": "", "resources": {}}]);
    assert_eq!(pod["spec"], json!({"containers": containers}));
}

#[test]
fn an_inlined_message_adds_its_members_to_the_parent() {
    let secret = bytes(6, bytes(1, "s"));
    let volume = [bytes(1, "v"), bytes(2, secret)].concat();
    let pod = decoded(POD, &bytes(2, bytes(1, volume))).unwrap();
    let wanted = json!([{"name": "v", "secret": {"secretName": "s"}}]);
    assert_eq!(pod["spec"]["volumes"], wanted);
}

#[test]
fn a_split_message_is_merged_and_the_last_scalar_wins() {
    let labels = |key: &str| bytes(11, [bytes(1, key), bytes(2, "x")].concat());
    let parts = [
        bytes(1, [bytes(1, "a"), labels("one")].concat()),
        bytes(1, [bytes(1, "b"), labels("two")].concat()),
        bytes(1, bytes(3, "n")),
    ];
    let object = decoded(("v1", "ConfigMap"), &parts.concat()).unwrap();
    let wanted = json!({
        "name": "b",
        "namespace": "n",
        "labels": {"one": "x", "two": "x"},
    });
    assert_eq!(object["metadata"], wanted);
}

#[test]
fn a_truncated_part_of_a_split_message_is_rejected() {
    let torn = [bytes(1, [0x0a]), bytes(1, *b"\x01a")].concat();
    let refusal = decoded(("v1", "ConfigMap"), &torn).unwrap_err();
    assert_eq!(refusal, "metadata.name: unexpected EOF");
    // A value with its own JSON encoding can be split too: the seconds and nanoseconds of a time.
    let renewed = [bytes(4, varint(1, 1)), bytes(4, varint(2, 5_000))].concat();
    let lease = decoded(("coordination.k8s.io/v1", "Lease"), &bytes(2, renewed)).unwrap();
    assert_eq!(lease["spec"]["renewTime"], "1970-01-01T00:00:01.000005Z");
}

#[test]
fn maps_accept_partial_entries_and_keep_the_last_of_a_key() {
    let entry = |parts: &[Vec<u8>]| bytes(2, parts.concat());
    let raw = [
        entry(&[bytes(1, "a"), bytes(2, "1")]),
        entry(&[bytes(2, "2"), varint(9, 9), bytes(1, "a")]),
        entry(&[bytes(1, "b")]),
        entry(&[]),
    ];
    let object = decoded(("v1", "ConfigMap"), &raw.concat()).unwrap();
    assert_eq!(object["data"], json!({"a": "2", "b": "", "": ""}));
    let limits = bytes(1, bytes(1, "cpu"));
    let pod = decoded(POD, &bytes(2, bytes(2, bytes(8, limits)))).unwrap();
    let container = &pod["spec"]["containers"][0];
    assert_eq!(container["resources"], json!({"limits": {"cpu": "0"}}));
    let review = ("authentication.k8s.io/v1", "TokenReview");
    let extra = bytes(3, bytes(2, bytes(4, bytes(1, "scopes"))));
    let reviewed = decoded(review, &extra).unwrap();
    assert_eq!(reviewed["status"]["user"], json!({"extra": {"scopes": []}}));
}

#[test]
fn numbers_are_accepted_single_and_packed() {
    // `supplementalGroups` of the pod's security context.
    let groups = [varint(4, 1), bytes(4, [2, 0xac, 0x02]), varint(4, 4)].concat();
    let pod = decoded(POD, &bytes(2, bytes(14, groups))).unwrap();
    let context = &pod["spec"]["securityContext"];
    assert_eq!(context["supplementalGroups"], json!([1, 2, 300, 4]));
    let broken = bytes(2, bytes(14, bytes(4, [0x80])));
    let refusal = decoded(POD, &broken).unwrap_err();
    assert_eq!(
        refusal,
        "spec.securityContext.supplementalGroups: unexpected EOF"
    );
}

/// Decodes a CRD that contains the encoded `schema`, and returns the schema as JSON.
fn crd(schema: &[u8]) -> Result<Value, String> {
    let version = bytes(4, bytes(1, schema));
    let mut crd = decoded(CRD, &bytes(2, bytes(7, version)))?;
    Ok(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take())
}

#[test]
fn a_schema_has_the_json_form_that_was_sent() {
    let text = bytes(5, "string");
    let schema = |number, content: &[u8]| crd(&bytes(number, content)).unwrap();
    let plain = json!({"type": "string"});
    assert_eq!(schema(24, &bytes(1, &text)), json!({"items": plain}));
    assert_eq!(schema(24, &bytes(2, &text)), json!({"items": [plain]}));
    assert_eq!(schema(24, &[]), json!({"items": null}));
    let additional = |content: &[u8]| schema(30, content)["additionalProperties"].take();
    assert_eq!(additional(&[]), json!(false));
    assert_eq!(additional(&varint(1, 1)), json!(true));
    let both = [varint(1, 1), bytes(2, &text)].concat();
    assert_eq!(additional(&both), plain);
    let depends = |content: Vec<u8>| {
        let entry = [bytes(1, "a"), bytes(2, content)].concat();
        schema(32, &entry)["dependencies"]["a"].take()
    };
    assert_eq!(depends(bytes(1, &text)), plain);
    assert_eq!(depends(bytes(2, "b")), json!(["b"]));
    assert_eq!(depends(Vec::new()), Value::Null);
    assert_eq!(
        crd(&bytes(8, bytes(1, "[1]"))).unwrap(),
        json!({"default": [1]})
    );
    assert_eq!(crd(&bytes(3, "x")).unwrap(), json!({"$ref": "x"}));
}

#[test]
fn unknown_fields_of_any_wire_type_are_skipped() {
    let raw = [
        bytes(15, "?"),
        varint(14, 1),
        vec![0x69, 0, 0, 0, 0, 0, 0, 0, 0],
        vec![0x65, 0, 0, 0, 0],
        vec![0x6b, 0x08, 1, 0x6c],
        bytes(1, [bytes(1, "a"), bytes(90, "?")].concat()),
    ];
    let object = decoded(("v1", "ConfigMap"), &raw.concat()).unwrap();
    assert_eq!(object, json!({"metadata": {"name": "a"}}));
}

/// Returns an encoded schema with `times` nested schemas, each in the field `not` of its parent schema.
fn nested(times: usize) -> Vec<u8> {
    let mut schema = bytes(5, "string");
    for _ in 0..times {
        schema = bytes(28, &schema);
    }
    schema
}

#[test]
fn nesting_is_limited_as_in_json() {
    // The object, `spec`, `versions`, its item, `schema` and `openAPIV3Schema` are six levels.
    let deepest = crd(&nested(LIMITS.depth - 6)).unwrap();
    let object = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": deepest}}]}});
    assert!(serde_json::from_str::<Value>(&object.to_string()).is_ok());
    let refusal = crd(&nested(LIMITS.depth - 5)).unwrap_err();
    assert!(refusal.starts_with("spec.versions[0].schema.openAPIV3Schema.not.not."));
    assert!(refusal.ends_with(".not: nested deeper than 127 levels"));
    assert!(crd(&nested(100_000)).is_err());
}

#[test]
fn the_number_of_arrays_and_maps_is_limited() {
    let id = Messages::builtin().of_kind(POD.0, POD.1).unwrap();
    // The pod, `spec`, `containers`, and per container the container itself and `resources`.
    let raw = bytes(2, [0x12, 0].repeat(3));
    let with = |containers| {
        let options = Options {
            containers,
            ..LIMITS
        };
        let decoded = decode::<Value>(id, &raw, options);
        decoded.map_err(|error| error.to_string())
    };
    // `metadata` and `status` are written although they are missing.
    assert!(with(11).is_ok());
    let refused = with(10).unwrap_err();
    assert_eq!(refused, "status: more than 10 arrays and maps");
    assert!(with(4).unwrap_err().starts_with("spec.containers[0]"));
}

#[test]
fn lists_have_no_spare_capacity() {
    let item = bytes(2, bytes(1, "c"));
    for count in [1, 2, 3, 5, 9] {
        let raw = bytes(2, item.repeat(count));
        let id = Messages::builtin().of_kind(POD.0, POD.1).unwrap();
        let pod: Pod = decode(id, &raw, LIMITS).unwrap();
        let containers = pod.spec.unwrap().containers;
        assert_eq!((containers.len(), containers.capacity()), (count, count));
    }
}

#[test]
fn the_deepest_message_fits_into_the_stack_of_a_thread() {
    let version = bytes(4, bytes(1, nested(LIMITS.depth - 6)));
    let raw = bytes(2, bytes(7, version));
    let id = Messages::builtin().of_kind(CRD.0, CRD.1).unwrap();
    // The stack of a tokio worker and of a test.
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let decoded =
        thread.spawn(move || decode::<CustomResourceDefinition>(id, &raw, LIMITS).is_ok());
    assert!(decoded.unwrap().join().unwrap());
}

#[test]
fn the_nesting_of_embedded_json_is_limited() {
    let json = |depth: usize| {
        let json = "[".repeat(depth) + &"]".repeat(depth);
        crd(&bytes(8, bytes(1, json)))
    };
    assert!(json(127).is_ok());
    assert_eq!(
        json(128).unwrap_err(),
        "spec.versions[0].schema.openAPIV3Schema.default: json parse error: recursion limit exceeded at line 1 column 128"
    );
}

#[test]
fn the_number_of_values_of_a_small_body_is_limited() {
    // Empty containers of two bytes each, which become an object with a name and resources.
    let containers = |count: usize| bytes(2, [0x12, 0].repeat(count));
    let fits = LIMITS.values / 3 - 10;
    assert!(decoded(POD, &containers(fits)).is_ok());
    assert_eq!(
        decoded(POD, &containers(LIMITS.values / 3)).unwrap_err(),
        "spec.containers[166665].resources: more than 500000 values"
    );
    let packed = bytes(2, bytes(14, bytes(4, vec![1; LIMITS.values + 1])));
    assert_eq!(
        decoded(POD, &packed).unwrap_err(),
        "spec.securityContext.supplementalGroups: more than 500000 values"
    );
}
