//! Tests the paths of decoding errors: compares them with fixed paths, and with the paths that the crate
//! `serde_path_to_error` records.

use k8s_openapi::api::core::v1::{Pod, Secret};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

fn failed<K: DeserializeOwned>(json: &str) -> (serde_json::Error, String) {
    let error = serde_json::from_str::<K>(json).err().unwrap();
    let path = failed_path(json.as_bytes(), &error);
    (error, path)
}

#[test]
fn the_path_is_that_of_the_value_with_the_wrong_type() {
    for (pod, path) in [
        (
            r#"{"spec":{"containers":[{"name":"a"},{"name":7}]}}"#,
            "spec.containers[1].name",
        ),
        (
            r#"{"spec":{"containers":[{"name":{}}]}}"#,
            "spec.containers[0].name",
        ),
        (r#"{"spec":{"containers":{"name":7}}}"#, "spec.containers"),
        (
            r#"{"spec":{"hostNetwork":"x","nodeName":"y"}}"#,
            "spec.hostNetwork",
        ),
        (
            "{\n \"spec\": {\n  \"hostNetwork\": [\n ]\n }\n}",
            "spec.hostNetwork",
        ),
        (
            r#"{"metadata":{"labels":{"a\"},\"b":1}}}"#,
            "metadata.labels.a\"},\"b",
        ),
        (
            r#"{"metadata":{"labels":{"n\u0061":"\\","x":1}}}"#,
            "metadata.labels.x",
        ),
        (
            r#"{"metadata":{"creationTimestamp":"soon","name":"a"}}"#,
            "metadata.creationTimestamp",
        ),
        (
            r#"{"spec":{"containers":[{"name":"a","resources":3}]}}"#,
            "spec.containers[0].resources",
        ),
        ("7", "."),
        ("[]", "."),
    ] {
        assert_eq!(failed::<Pod>(pod).1, path, "{pod}");
    }
    let secret = r#"{"data":{"password":"not base64!"}}"#;
    assert_eq!(failed::<Secret>(secret).1, "data.password");
}

#[test]
fn the_path_of_a_missing_field_is_that_of_its_object() {
    #[derive(Debug, serde::Deserialize)]
    struct Outer {
        #[expect(dead_code, reason = "only decoded")]
        inner: Vec<Inner>,
    }
    #[derive(Debug, serde::Deserialize)]
    struct Inner {
        #[expect(dead_code, reason = "only decoded")]
        size: u8,
    }
    assert_eq!(
        failed::<Outer>(r#"{"inner":[{"size":1},{"other":{}}]}"#).1,
        "inner[1]"
    );
    assert_eq!(failed::<Outer>("{}").1, ".");
}

#[test]
fn invalid_json_has_the_path_at_which_it_ends() {
    assert_eq!(
        failed::<Pod>(r#"{"spec":{"containers":[{"name":"a"#).1,
        "spec.containers[0].name"
    );
    assert_eq!(failed::<Pod>("").1, ".");
    assert_eq!(
        failed::<Pod>(r#"{"spec":{"nodeName":x}}"#).1,
        "spec.nodeName"
    );
}

/// Replaces one value in `value` by `new`. `at` is the number of the replaced value. Returns whether `value`
/// contains a value with this number.
///
/// The values are numbered depth first, and `value` itself has the number 0. If the result is false, `at` is
/// decreased by the number of values in `value`. The recursion then continues with the next sibling.
fn replace(value: &mut Value, at: &mut usize, new: &Value) -> bool {
    if *at == 0 {
        *value = new.clone();
        return true;
    }
    *at -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| replace(item, at, new)),
        Value::Object(members) => members.values_mut().any(|member| replace(member, at, new)),
        _ => false,
    }
}

proptest! {
    #[test]
    fn the_path_equals_that_of_a_deserializer_that_records_paths(
        at in 0..60_usize,
        new in prop_oneof![
            Just(json!(true)), Just(json!(-7)), Just(json!("a\"[{")), Just(json!({"a": [1]})),
            Just(json!([{"b": 1}])), Just(json!(1.5)), Just(json!([])), Just(json!({})),
        ],
        is_pretty in any::<bool>(),
    ) {
        let mut pod = json!({
            "metadata": {
                "name": "a", "labels": {"x,y": "1", "z\\\"": "2"}, "generation": 3,
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}],
                "managedFields": [{"manager": "m", "fieldsV1": {"f:a": {}}}],
            },
            "spec": {
                "hostNetwork": true, "priority": 4,
                "containers": [
                    {"name": "c", "args": ["a", "b"], "ports": [{"containerPort": 80}]},
                    {"name": "d", "livenessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 2}},
                ],
                "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "w"}],
            },
            "status": {"podIPs": [{"ip": "10.0.0.1"}], "startTime": "2026-01-01T00:00:00Z"},
        });
        replace(&mut pod, &mut { at }, &new);
        let text = if is_pretty { serde_json::to_string_pretty(&pod) } else { serde_json::to_string(&pod) };
        let text = text.unwrap();
        let mut deserializer = serde_json::Deserializer::from_str(&text);
        if let Err(recorded) = serde_path_to_error::deserialize::<_, Pod>(&mut deserializer) {
            let error = serde_json::from_str::<Pod>(&text).err().unwrap();
            let (path, recorded) = (failed_path(text.as_bytes(), &error), recorded.path().to_string());
            // An array or object in place of the first item has the position of its array.
            let is_first_item = recorded == format!("{path}[0]");
            prop_assert!(path == recorded || is_first_item, "{path}, not {recorded}: {error}: {text}");
        }
    }
}
