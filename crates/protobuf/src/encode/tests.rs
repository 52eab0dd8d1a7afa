//! Tests of encoding: values that Kubernetes' test data does not contain, and values of the wrong type.

use serde_json::json;

use super::*;
use crate::tests::decoded;

const CRD: (&str, &str) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");

fn encoded((api_version, kind): (&str, &str), object: &Value) -> Result<Vec<u8>, String> {
    let id = Messages::builtin().of_kind(api_version, kind).unwrap();
    encode(id, object).map_err(|error| error.to_string())
}

/// Encodes an object, decodes the bytes, and returns the resulting JSON.
fn there_and_back(kind: (&str, &str), object: &Value) -> Value {
    decoded(kind, &encoded(kind, object).unwrap()).unwrap()
}

#[test]
fn each_form_of_a_schema_is_kept() {
    for schema in [
        json!({"items": {"type": "string"}}),
        json!({"items": [{"type": "string"}, {}]}),
        json!({"additionalProperties": true}),
        json!({"additionalProperties": false}),
        json!({"additionalProperties": {"type": "string"}}),
        json!({"dependencies": {"a": {"type": "string"}, "b": ["c"], "d": null}}),
        json!({"default": {"a": [1, "2", null]}, "minimum": 0.5, "maximum": 3}),
    ] {
        let versions = json!([{"name": "v1", "schema": {"openAPIV3Schema": schema}}]);
        let crd = there_and_back(CRD, &json!({"spec": {"versions": versions}}));
        let read = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        assert_eq!(*read, schema);
    }
}

#[test]
fn times_before_and_after_1970_are_kept() {
    let lease = ("coordination.k8s.io/v1", "Lease");
    for (time, micro) in [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678901Z"),
        ("1969-12-31T23:59:59Z", "1969-12-31T23:59:58.500000Z"),
        ("0001-01-01T00:00:01Z", "0001-01-01T00:00:00.000001Z"),
        ("9999-12-30T00:00:00Z", "9999-12-30T00:00:00.999999Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999999Z"),
        ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000001Z"),
    ] {
        let object = json!({"metadata": {"creationTimestamp": time}, "spec": {"renewTime": micro}});
        assert_eq!(there_and_back(lease, &object), object);
    }
    let never = json!({"metadata": {}, "spec": {"renewTime": "0001-01-01T00:00:00Z"}});
    assert_eq!(
        there_and_back(lease, &never)["spec"],
        json!({"renewTime": null})
    );
}

#[test]
fn a_port_by_number_or_by_name_and_bytes_are_kept() {
    let port = |port: Value| json!({"httpGet": {"port": port}});
    for probe in [port(json!(80)), port(json!("http")), port(json!(""))] {
        let container = json!({"name": "c", "livenessProbe": probe, "resources": {}});
        let pod = json!({"spec": {"containers": [container]}});
        let pod = there_and_back(("v1", "Pod"), &pod);
        assert_eq!(pod["spec"]["containers"][0]["livenessProbe"], probe);
    }
    let secret = json!({"metadata": {}, "data": {"a": "AP8/", "b": ""}});
    assert_eq!(there_and_back(("v1", "Secret"), &secret), secret);
}

#[test]
fn a_value_that_does_not_fit_its_field_is_an_error_with_its_path() {
    let refused = |kind, object: Value| encoded(kind, &object).unwrap_err();
    let pod = ("v1", "Pod");
    let spec = |spec: Value| refused(pod, json!({"spec": spec}));
    let container = |container: Value| spec(json!({"containers": [{}, container]}));
    let errors = [
        refused(pod, json!([])),
        refused(pod, json!({"nonesuch": 1})),
        refused(pod, json!({"spec": {"apiVersion": "v1"}})),
        refused(pod, json!({"metadata": {"labels": {"a": 1}}})),
        refused(pod, json!({"metadata": {"labels": []}})),
        refused(pod, json!({"metadata": {"creationTimestamp": "yesterday"}})),
        refused(
            pod,
            json!({"metadata": {"creationTimestamp": "10000-12-31T00:00:00Z"}}),
        ),
        refused(pod, json!({"metadata": {"generation": 0.5}})),
        spec(json!([])),
        spec(json!({"containers": {}})),
        spec(json!({"hostNetwork": "yes"})),
        spec(json!({"priority": 4_294_967_296_u64})),
        container(json!({"nonesuch": null})),
        container(json!({"resources": {"limits": {"cpu": 1}}})),
        container(json!({"livenessProbe": {"httpGet": {"port": 65_536.5}}})),
        refused(("v1", "Secret"), json!({"data": {"a": "?"}})),
    ];
    expect_test::expect![[r#"
        it must be an object
        [nonesuch]: there is no such field
        spec[apiVersion]: there is no such field
        metadata.labels[a]: it must be a text
        metadata.labels: it must be an object
        metadata.creationTimestamp: it must be a time as RFC 3339 text
        metadata.creationTimestamp: it must be a time as RFC 3339 text
        metadata.generation: it must be an integer with 64 bits
        spec: it must be an object
        spec.containers: it must be a list
        spec.hostNetwork: it must be true or false
        spec.priority: it must be an integer with 32 bits
        spec.containers[1][nonesuch]: there is no such field
        spec.containers[1].resources.limits[cpu]: it must be a quantity as text
        spec.containers[1].livenessProbe.httpGet.port: it must be an integer with 32 bits
        data[a]: it must be base64"#]]
    .assert_eq(&errors.join("\n"));
}
