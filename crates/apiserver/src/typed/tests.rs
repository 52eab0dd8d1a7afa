//! Tests of the decoder of typed objects.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use flate2::read::GzDecoder;
use serde_json::{Map, Value, json};

use super::presence::complete_as;
use super::*;
use crate::kinds::{Kind, Kinds, Scope};

/// Returns what a server stores of a body, or the fault, as `{"value": …, "complaints": …}` or `{"fault": …}`.
fn outcome(kind: &Kind, body: &str) -> Value {
    let decoded = read(body.as_bytes(), ValueType::of(kind)).unwrap();
    if let Some(fault) = decoded.fault {
        return json!({"fault": fault.message});
    }
    let mut object = match decoded.value {
        Value::Object(object) => object,
        _ => Map::new(),
    };
    object.insert("apiVersion".to_owned(), json!(kind.api_version()));
    object.insert("kind".to_owned(), json!(kind.kind));
    if object.get("metadata").is_none_or(Value::is_null) {
        object.insert("metadata".to_owned(), json!({}));
    }
    complete_as(kind, &mut object, false);
    let mut outcome = json!({"value": object});
    let complaints: Vec<String> = decoded.complaints.texts().collect();
    if !complaints.is_empty() {
        outcome["complaints"] = json!(complaints);
    }
    outcome
}

/// Returns the path of the first difference between two values, with both values.
fn difference(ours: &Value, theirs: &Value, path: &str) -> Option<String> {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let names = ours.keys().chain(theirs.keys());
            let mut names = names.map(|name| {
                let [our, their] = [ours, theirs].map(|members| members.get(name));
                let path = format!("{path}.{name}");
                match (our, their) {
                    (Some(our), Some(their)) => difference(our, their, &path),
                    (our, their) => Some(format!("{path}: {our:?} instead of {their:?}")),
                }
            });
            names.find_map(|found| found)
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            let mut items = ours.iter().zip(theirs).enumerate();
            items.find_map(|(at, (our, their))| difference(our, their, &format!("{path}[{at}]")))
        }
        _ => (ours != theirs).then(|| format!("{path}: {ours} instead of {theirs}")),
    }
}

fn outcome_of(api_version: &str, kind: &str, body: &str) -> Value {
    let kinds = Kinds::builtin();
    outcome(kinds.by_kind(api_version, kind).unwrap(), body)
}

#[test]
fn the_first_wrong_type_is_reported_unless_a_decoder_of_a_type_fails() {
    let unmarshal = |what: &str| format!("json: cannot unmarshal {what}");
    for (body, expected) in [
        (
            r#"{"spec":{"hostPID":"x","containers":{}}}"#,
            unmarshal("string into Go struct field PodSpec.spec.hostPID of type bool"),
        ),
        (
            r#"{"spec":{"containers":[{"ports":[{"protocol":1}]}]}}"#,
            unmarshal(
                "number into Go struct field ContainerPort.spec.containers.ports.protocol of type v1.Protocol",
            ),
        ),
        (
            r#"{"spec":{"volumes":[{"emptyDir":7}]}}"#,
            unmarshal(
                "number into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource",
            ),
        ),
        (
            r#"{"spec":{"priority":1e3}}"#,
            unmarshal("number 1e3 into Go struct field PodSpec.spec.priority of type int32"),
        ),
        (
            r#"{"spec":{"hostPID":"x"},"metadata":{"creationTimestamp":"now"}}"#,
            "parsing time \"now\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"now\" as \"2006\"".to_owned(),
        ),
        (
            r#"{"spec":{"overhead":{"cpu":{}},"hostPID":"x"}}"#,
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'".to_owned(),
        ),
    ] {
        assert_eq!(outcome_of("v1", "Pod", body), json!({"fault": expected}), "{body}");
    }
}

#[test]
fn duplicates_and_nulls_are_those_of_go() {
    for (body, spec) in [
        (
            r#"{"spec":{"hostname":"a","hostname":null,"priority":1,"priority":null}}"#,
            json!({"containers": null, "hostname": "a"}),
        ),
        (
            r#"{"spec":{"nodeSelector":{"a":"1","b":"1"},"nodeSelector":{"b":null}},"spec":{"hostPID":true}}"#,
            json!({"containers": null, "nodeSelector": {"a": "1", "b": ""}, "hostPID": true}),
        ),
        (
            r#"{"spec":{"containers":[{"name":"a"},{"name":"b"}],"containers":[{"image":"i"}]}}"#,
            json!({"containers": [{"name": "a", "image": "i", "resources": {}}]}),
        ),
        (
            r#"{"spec":{"containers":[null],"nodeName":null,"volumes":null,"tolerations":[]}}"#,
            json!({"containers": [{"name": "", "resources": {}}]}),
        ),
    ] {
        assert_eq!(
            outcome_of("v1", "Pod", body)["value"]["spec"],
            spec,
            "{body}"
        );
    }
}

#[test]
fn nulls_and_other_values_without_content_are_those_of_go() {
    for (kind, body, path, expected) in [
        (
            "v1/Pod",
            r#"{"spec":{"tolerations":[]},"spec":{"tolerations":[null,{"key":null,"operator":"Exists"}],"nodeSelector":{"a":null}}}"#,
            "/spec",
            json!({"containers": null, "nodeSelector": {"a": ""}, "tolerations": [{}, {"operator": "Exists"}]}),
        ),
        (
            "v1/Pod",
            r#"{"spec":{"containers":[{"name":"a","args":["x"]}],"containers":[{"args":[null,"b"],"env":[null]},null]}}"#,
            "/spec/containers",
            json!([
                {"name": "a", "args": ["x", "b"], "env": [{"name": ""}], "resources": {}},
                {"name": "", "resources": {}},
            ]),
        ),
        (
            "v1/Pod",
            r#"{"metadata":{"labels":{"a":"b"},"labels":{"c":null},"finalizers":["x"],"finalizers":[null,"y",null]}}"#,
            "/metadata",
            json!({"labels": {"a": "b", "c": ""}, "finalizers": ["x", "y", ""]}),
        ),
        (
            "v1/Pod",
            r#"{"metadata":{"creationTimestamp":"0001-01-01T00:00:00Z","managedFields":[{"manager":"m","time":"0001-01-01T00:00:00Z"}]}}"#,
            "/metadata",
            json!({"managedFields": [{"manager": "m", "time": null}]}),
        ),
        (
            "v1/Pod",
            r#"{"spec":{"priority":null,"activeDeadlineSeconds":null,"securityContext":null,"terminationGracePeriodSeconds":0}}"#,
            "/spec",
            json!({"containers": null, "terminationGracePeriodSeconds": 0}),
        ),
        (
            "v1/Secret",
            r#"{"data":{"a":[104,105],"b":[1,null,2],"c":null,"d":[]}}"#,
            "/data",
            json!({"a": "aGk=", "b": "AQAC", "c": "", "d": ""}),
        ),
        (
            "apiextensions.k8s.io/v1/CustomResourceDefinition",
            r#"{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"items":1,"dependencies":{"a":true,"b":["x"],"c":"y"}}}}]}}"#,
            "/spec/versions/0/schema/openAPIV3Schema",
            json!({"items": null, "dependencies": {"a": null, "b": ["x"], "c": null}}),
        ),
    ] {
        let (api_version, kind) = kind.rsplit_once('/').unwrap();
        let outcome = outcome_of(api_version, kind, body);
        assert_eq!(outcome["value"].pointer(path), Some(&expected), "{body}");
    }
}

#[test]
fn a_list_of_bytes_with_a_wrong_item_is_kept() {
    let secret = json!({"data": {"a": [104, 300]}});
    let decoded = decode(secret.clone(), ValueType::named("v1", "Secret"));
    assert_eq!(decoded.value, secret);
    let message = decoded.fault.unwrap().message;
    let expected =
        "json: cannot unmarshal number 300 into Go struct field Secret.data of type uint8";
    assert_eq!(message, expected);
}

#[test]
fn numbers_of_strategic_merge_patches_are_converted() {
    let converted = |spec: Value| convert(json!({"spec": spec}), ValueType::named("v1", "Pod"));
    let sound = converted(
        json!({"priority": 1e3, "activeDeadlineSeconds": 2.0, "terminationGracePeriodSeconds": 3}),
    );
    assert!(sound.fault.is_none());
    let expected =
        json!({"priority": 1000, "activeDeadlineSeconds": 2, "terminationGracePeriodSeconds": 3});
    assert_eq!(sound.value["spec"], expected);
    let cut = converted(json!({"priority": 3_000_000_000_u32}));
    assert_eq!(cut.value["spec"]["priority"], -1_294_967_296);
    for (spec, expected) in [
        (json!({"priority": 1.5}), "cannot convert float64 to int32"),
        (json!({"hostPID": 1}), "unrecognized type: bool"),
        (json!({"hostname": 1}), "cannot convert int64 to string"),
        (json!({"hostname": 1.5}), "unrecognized type: string"),
        (json!({"priority": "1"}), "unrecognized type: int32"),
    ] {
        assert_eq!(converted(spec).fault.unwrap().converted, expected);
    }
}

#[test]
fn unknown_fields_are_kept_only_on_request() {
    let pod = json!({"spec": {"containers": null, "new": {"a": null}}, "x": 1});
    let pods = ValueType::named("v1", "Pod");
    let kept = decode_leniently(pod.clone(), pods);
    assert_eq!(kept.value, json!({"spec": {"new": {"a": null}}, "x": 1}));
    let dropped = decode(pod, pods);
    assert_eq!(dropped.value, json!({"spec": {}}));
    let texts: Vec<String> = dropped.complaints.texts().collect();
    assert_eq!(
        texts,
        [r#"unknown field "spec.new""#, r#"unknown field "x""#]
    );
}

#[test]
fn only_the_metadata_of_a_custom_object_is_decoded() {
    let body = r#"{"metadata":{"labels":{},"creationTimestamp":"2026-01-01T01:00:00+01:00","x":1},"spec":{"a":null,"b":[]}}"#;
    let decoded = read(body.as_bytes(), ValueType::Custom).unwrap();
    assert_eq!(
        decoded.value,
        json!({
            "metadata": {"labels": {}, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"a": null, "b": []},
        })
    );
    let wrong = metadata_fault(&json!({"name": 1}));
    let expected =
        "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string";
    assert_eq!(wrong.as_deref(), Some(expected));
}

#[test]
fn a_schema_can_be_another_value() {
    let body = |items: &str| {
        format!(
            r#"{{"spec":{{"versions":[{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{items}}}}}]}}}}"#
        )
    };
    let of = |schema: &str| {
        outcome_of(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            &body(schema),
        )
    };
    let schema = |outcome: &Value| {
        outcome["value"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
    };
    let sound = of(
        r#"{"items":[{"type":"string","x":1}],"additionalProperties":true,"enum":[null,{"a":[]}]}"#,
    );
    assert_eq!(
        schema(&sound),
        json!({"items": [{"type": "string"}], "additionalProperties": true, "enum": [null, {"a": []}]})
    );
    assert_eq!(sound.get("complaints"), None, "as in Kubernetes");
    assert_eq!(
        of(r#"{"additionalProperties":1}"#),
        json!({"fault": "boolean or JSON schema expected"})
    );
    let fault = of(r#"{"title":1,"items":{"title":[]}}"#);
    let place = "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items.title";
    let expected =
        format!("json: cannot unmarshal array into Go struct field {place} of type string");
    assert_eq!(fault, json!({"fault": expected}));
}

#[test]
fn what_is_added_to_an_object_is_limited() {
    let kinds = Kinds::builtin();
    let size = |object: &Map<String, Value>| serde_json::to_vec(object).unwrap().len();
    for (kind, list, count) in [("Pod", "containers", 50_000), ("Service", "ports", 200_000)] {
        let kind = kinds.by_kind("v1", kind).unwrap();
        let items = |count| vec![json!({}); count];
        let mut many = Map::from_iter([("spec".to_owned(), json!({list: items(count)}))]);
        set_defaults(kind, &mut many).unwrap_err();
        assert!(size(&many) < 2 * DEFAULTS_BYTES_MAX);
        let mut few = Map::from_iter([("spec".to_owned(), json!({list: items(10_000)}))]);
        set_defaults(kind, &mut few).unwrap();
    }
    let status = json!({"containerStatuses": vec![json!({}); 200_000]});
    let mut many = Map::from_iter([("status".to_owned(), status)]);
    complete(kinds.by_kind("v1", "Pod").unwrap(), &mut many);
    let size = size(&many);
    assert!(
        (DEFAULTS_BYTES_MAX..3 * DEFAULTS_BYTES_MAX).contains(&size),
        "{size}"
    );
}

#[test]
fn a_pod_has_both_names_of_its_service_account() {
    let kinds = Kinds::builtin();
    let kind = kinds.by_kind("apps/v1", "Deployment").unwrap();
    for (sent, expected) in [
        (json!({"serviceAccount": "a"}), ["a", "a"]),
        (json!({"serviceAccountName": "a"}), ["a", "a"]),
        (
            json!({"serviceAccountName": "a", "serviceAccount": "b"}),
            ["a", "a"],
        ),
    ] {
        let spec = json!({"template": {"spec": sent}});
        let mut object = Map::from_iter([("spec".to_owned(), spec)]);
        complete(kind, &mut object);
        let spec = &object["spec"]["template"]["spec"];
        let names = ["serviceAccountName", "serviceAccount"].map(|name| &spec[name]);
        assert_eq!(names, expected, "{sent}");
    }
}

#[test]
fn a_name_that_can_not_be_parsed_again_is_an_unknown_field() {
    let kinds = Kinds::builtin();
    let labels = r#"{"metadata":{"labels":{"$serde_json::private::RawValue":"x","a":"b"}}}"#;
    let kind = kinds.by_kind("v1", "ConfigMap").unwrap();
    let custom = Kind::custom("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    for kind in [kind, &custom] {
        let decoded = read(labels.as_bytes(), ValueType::of(kind)).unwrap();
        let text = decoded.value.to_string();
        assert_eq!(
            text, r#"{"metadata":{"labels":{"a":"b"}}}"#,
            "{}",
            kind.kind
        );
    }
}

/// Bodies of random objects, and the objects after Kubernetes 1.36.3 has decoded them, set the defaults of its scheme,
/// and stored them: apiVersion/Kind, the body and the object in each line, with tabs between.
const DEFAULTED: &[u8] = include_bytes!("defaults/examples.tsv.gz");

#[test]
fn defaults_are_those_of_kubernetes() {
    let kinds = Kinds::builtin();
    let mut text = String::new();
    GzDecoder::new(DEFAULTED).read_to_string(&mut text).unwrap();
    for line in text.lines() {
        let [name, body, expected] = line.splitn(3, '\t').collect::<Vec<_>>().try_into().unwrap();
        let (api_version, kind) = name.rsplit_once('/').unwrap();
        let kind = kinds.by_kind(api_version, kind).unwrap();
        let decoded = read(body.as_bytes(), ValueType::of(kind)).unwrap();
        let mut object = decoded.value.as_object().unwrap().clone();
        object.insert("apiVersion".to_owned(), json!(api_version));
        object.insert("kind".to_owned(), json!(kind.kind));
        set_defaults(kind, &mut object).unwrap();
        complete_as(kind, &mut object, false);
        let expected: Value = serde_json::from_str(expected).unwrap();
        let found = difference(&Value::Object(object), &expected, "");
        assert_eq!(found, None, "{name} {body}");
    }
    assert_eq!(text.lines().count(), 328);
}

/// Compares the decoder with Go's for random bodies of all kinds.
///
/// The environment variable `OBJECTS` sets the number of bodies, and `SEED` sets the first seed.
#[test]
#[ignore = "needs Go"]
fn random_bodies_are_decoded_as_by_go() {
    #[expect(clippy::disallowed_methods, reason = "a test has no arguments")]
    let setting = |name| std::env::var(name).map(|value| value.parse::<u64>().unwrap());
    let (first, count) = (
        setting("SEED").unwrap_or(1),
        setting("OBJECTS").unwrap_or(2_000),
    );
    let kinds = Kinds::builtin();
    let named = |kind: &Kind| format!("{}/{}", kind.api_version(), kind.kind);
    let mut go = Command::new("go")
        .args(["run", ".", "bodies", &first.to_string(), &count.to_string()])
        .args(kinds.iter().map(named))
        .current_dir(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../verify/encodings/v36"
        ))
        .stdout(Stdio::piped())
        .spawn()
        .expect("go is installed");
    let mut seed = first;
    let mut different = Vec::new();
    for line in BufReader::new(go.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let [name, body, expected] = line.splitn(3, '\t').collect::<Vec<_>>().try_into().unwrap();
        let kind = kinds.iter().find(|kind| named(kind) == name).unwrap();
        let expected: Value = serde_json::from_str(expected).unwrap();
        if let Some(found) = difference(&outcome(kind, body), &expected, "") {
            different.push(format!("seed {seed}, {name}: {found}"));
        }
        seed += 1;
    }
    assert!(go.wait().unwrap().success());
    assert_eq!(seed, first + count);
    assert!(different.is_empty(), "{}: {different:#?}", different.len());
}
