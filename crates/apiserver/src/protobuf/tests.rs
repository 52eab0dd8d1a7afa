//! Tests of whole protobuf bodies: Kubernetes' encodings of every kind, rejected bodies, and malformed bytes.

use std::io::Read as _;

use expect_test::{Expect, expect};
use flate2::read::GzDecoder;
use proptest::prelude::*;

use super::*;
use crate::kinds::Kinds;

/// One object of each kind with every field set, in protobuf and in JSON, as written by `cargo xtask kinds`.
const CORPUS: &[u8] = include_bytes!("corpus_v1_36.tsv.gz");

/// Returns an encoded length-delimited field: text, bytes or a message.
pub(super) fn bytes(number: u8, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    let mut field = seven_bits_a_byte(u64::from(number) << 3 | 2);
    field.extend(seven_bits_a_byte(bytes.len() as u64));
    field.extend_from_slice(bytes);
    field
}

/// Returns an encoded varint field.
pub(super) fn varint(number: u8, value: u64) -> Vec<u8> {
    let mut field = seven_bits_a_byte(u64::from(number) << 3);
    field.extend(seven_bits_a_byte(value));
    field
}

fn seven_bits_a_byte(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
    bytes
}

fn body(api_version: &str, kind: &str, raw: impl AsRef<[u8]>) -> Vec<u8> {
    let type_meta = [bytes(1, api_version), bytes(2, kind)].concat();
    let tail = [bytes(3, ""), bytes(4, "")].concat();
    [&MAGIC[..], &bytes(1, type_meta), &bytes(2, raw), &tail].concat()
}

/// One object of [`CORPUS`]: `apiVersion`, kind, protobuf body, and JSON.
type Pair = (String, String, Vec<u8>, Value);

/// The parsed corpus, which is parsed once for all mutations of its bodies.
static PAIRS: std::sync::OnceLock<Vec<Pair>> = std::sync::OnceLock::new();

fn expected<'a>(api_version: &'a str, kind: &'a str) -> Expected<'a> {
    if kind == "DeleteOptions" {
        return Expected::DELETE_OPTIONS;
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Expected {
        group,
        version,
        kind,
    }
}

const CONFIG_MAP: Expected<'static> = Expected {
    group: "",
    version: "v1",
    kind: "ConfigMap",
};

/// Returns an encoded message whose metadata contains this name, such as a config map.
fn named(name: &str) -> Vec<u8> {
    bytes(1, bytes(1, name))
}

/// Parses [`CORPUS`] and returns all objects in it.
fn pairs() -> Vec<Pair> {
    let mut lines = String::new();
    GzDecoder::new(CORPUS).read_to_string(&mut lines).unwrap();
    let pair = |line: &str| {
        let columns: Vec<_> = line.split('\t').collect();
        let (api_version, kind) = columns[0].rsplit_once('/').unwrap();
        let digits = columns[1].as_bytes().chunks(2);
        let protobuf = digits
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect();
        let json = serde_json::from_str(columns[2]).unwrap();
        (api_version.to_owned(), kind.to_owned(), protobuf, json)
    };
    lines.lines().map(pair).collect()
}

#[test]
fn every_kind_decodes_to_kubernetes_json() {
    let pairs = pairs();
    for (api_version, kind, protobuf, json) in &pairs {
        let decoded = decode(protobuf, expected(api_version, kind)).unwrap();
        assert!(
            decoded == *json,
            "{api_version} {kind}\n{decoded:#}\n{json:#}"
        );
    }
    let kinds = Kinds::builtin();
    let unproven: Vec<_> = kinds
        .iter()
        .filter(|kind| {
            let own = (kind.api_version(), kind.kind.clone());
            !pairs.iter().any(|pair| pair.0 == own.0 && pair.1 == own.1)
        })
        .map(crate::kinds::Kind::group_resource)
        .collect();
    assert_eq!(unproven, ["apiservices.apiregistration.k8s.io"]);
}

#[test]
fn the_kind_without_a_pair_decodes() {
    let service = [bytes(1, "ns"), bytes(2, "name"), varint(3, 443)].concat();
    let spec = [
        bytes(1, service),
        bytes(2, "g"),
        bytes(3, "v1"),
        varint(4, 1),
        bytes(5, "CA"),
        varint(7, 100),
        varint(8, 15),
    ]
    .concat();
    let condition = [bytes(1, "Available"), bytes(2, "True"), bytes(3, "")].concat();
    let raw = [named("v1.g"), bytes(2, spec), bytes(3, bytes(1, condition))].concat();
    let (api_version, kind) = ("apiregistration.k8s.io/v1", "APIService");
    let decoded = decode(&body(api_version, kind, raw), expected(api_version, kind));
    let wanted = json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "v1.g"},
        "spec": {
            "service": {"namespace": "ns", "name": "name", "port": 443},
            "group": "g",
            "version": "v1",
            "insecureSkipTLSVerify": true,
            "caBundle": "Q0E=",
            "groupPriorityMinimum": 100,
            "versionPriority": 15,
        },
        "status": {"conditions": [{"type": "Available", "status": "True", "lastTransitionTime": null}]},
    });
    assert_eq!(decoded.unwrap(), wanted);
}

#[test]
fn an_empty_envelope_defaults_to_the_expected_kind() {
    let wanted = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    for (api_version, kind) in [("v1", "ConfigMap"), ("", "ConfigMap"), ("v1", ""), ("", "")] {
        let sent = body(api_version, kind, named("a"));
        assert_eq!(decode(&sent, CONFIG_MAP).unwrap(), wanted);
    }
    let bare = [&MAGIC[..], &bytes(2, named("a"))].concat();
    assert_eq!(decode(&bare, CONFIG_MAP).unwrap(), wanted);
}

fn refused(sent: &[u8], expected: Expected<'_>, wanted: &Expect) {
    let error = decode(sent, expected).unwrap_err();
    assert_eq!(error.code(), 400);
    wanted.assert_eq(&error.status().message);
}

#[test]
fn a_body_that_is_not_protobuf_is_rejected_with_its_prefix() {
    let refuse = |sent: &[u8], wanted| refused(sent, CONFIG_MAP, &wanted);
    refuse(
        b"",
        expect![
            "the object provided is unrecognized (must be of type ConfigMap): empty data (<empty>)"
        ],
    );
    refuse(
        b"{\"kind\": \"ConfigMap\", \"apiVersion\": \"v1\"}",
        expect![[
            r#"the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] ({"kind": "ConfigMap", "apiVers ...)"#
        ]],
    );
    refuse(
        b"k8s\0",
        expect![
            "the object provided is unrecognized (must be of type ConfigMap): empty body (6b387300)"
        ],
    );
    refuse(
        b"k8s\0\xff",
        expect![
            "the object provided is unrecognized (must be of type ConfigMap): unexpected EOF (6b387300ff)"
        ],
    );
    refuse(
        b"k8s\0\x08\x01",
        expect![
            "the object provided is unrecognized (must be of type ConfigMap): proto: wrong wireType = 0 (6b3873000801)"
        ],
    );
    refuse(
        &[0xff; 31],
        expect![
            "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff ...)"
        ],
    );
}

#[test]
fn an_unexpected_kind_is_rejected() {
    let refuse = |api_version, kind, wanted| {
        refused(&body(api_version, kind, named("a")), CONFIG_MAP, &wanted);
    };
    refuse(
        "v1",
        "Pod",
        expect![[
            r#"Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): unknown conversion"#
        ]],
    );
    refuse(
        "v1",
        "Foo",
        expect![[
            r#"Foo in version "v1" cannot be handled as a ConfigMap: no kind "Foo" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111""#
        ]],
    );
    refuse(
        "apps/v1",
        "ConfigMap",
        expect![[
            r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "apps/v1" in scheme "pkg/runtime/scheme.go:111""#
        ]],
    );
    let scaler = body("autoscaling/v1", "HorizontalPodAutoscaler", named("a"));
    let autoscaling = expected("autoscaling/v2", "HorizontalPodAutoscaler");
    refused(
        &scaler,
        autoscaling,
        &expect![
            "the API version in the data (autoscaling/v1) does not match the expected API version (autoscaling/v2)"
        ],
    );
    let role = body("apps/v1", "Deployment", named("a"));
    let rbac = expected("rbac.authorization.k8s.io/v1", "Role");
    refused(
        &role,
        rbac,
        &expect![[
            r#"Deployment in version "v1" cannot be handled as a Role: converting (v1.Deployment) to (rbac.Role): unknown conversion"#
        ]],
    );
}

#[test]
fn an_unreadable_field_is_reported_by_its_json_path() {
    let refuse = |raw: Vec<u8>, wanted| {
        refused(&body("v1", "Pod", raw), expected("v1", "Pod"), &wanted);
    };
    refuse(
        bytes(1, varint(2, 1)),
        expect![[
            r#"Pod in version "v1" cannot be handled as a Pod: metadata.generateName: proto: wrong wireType = 0"#
        ]],
    );
    refuse(
        bytes(1, [0x0a, 2, b'a']),
        expect![[r#"Pod in version "v1" cannot be handled as a Pod: metadata: unexpected EOF"#]],
    );
    let containers = [bytes(2, ""), bytes(2, varint(1, 7))].concat();
    refuse(
        bytes(2, containers),
        expect![[
            r#"Pod in version "v1" cannot be handled as a Pod: spec.containers[1].name: proto: wrong wireType = 0"#
        ]],
    );
    let limits = bytes(1, [bytes(1, "cpu"), bytes(2, varint(1, 1))].concat());
    refuse(
        bytes(2, bytes(2, bytes(8, limits))),
        expect![[
            r#"Pod in version "v1" cannot be handled as a Pod: spec.containers[0].resources.limits[cpu]: proto: wrong wireType = 0"#
        ]],
    );
    // A volume's source is inlined into the volume.
    let volume = bytes(1, bytes(2, bytes(2, varint(1, 1))));
    refuse(
        bytes(2, volume),
        expect![[
            r#"Pod in version "v1" cannot be handled as a Pod: spec.volumes[0].emptyDir.medium: proto: wrong wireType = 0"#
        ]],
    );
    refuse(
        varint(2, 1),
        expect![[
            r#"Pod in version "v1" cannot be handled as a Pod: spec: proto: wrong wireType = 0"#
        ]],
    );
}

#[test]
fn delete_options_of_any_group_are_accepted() {
    let raw = [varint(1, 5), bytes(4, "Orphan"), bytes(5, "All")].concat();
    for api_version in ["v1", "apps/v1", "meta.k8s.io/v1", "example.com/v1", ""] {
        let sent = body(api_version, "DeleteOptions", &raw);
        let decoded = decode(&sent, Expected::DELETE_OPTIONS).unwrap();
        assert_eq!(decoded["gracePeriodSeconds"], 5);
        assert_eq!(decoded["propagationPolicy"], "Orphan");
        assert_eq!(decoded["dryRun"], json!(["All"]));
    }
    let refuse = |sent: &[u8], wanted| refused(sent, Expected::DELETE_OPTIONS, &wanted);
    refuse(
        &body("v1", "ConfigMap", ""),
        expect![[
            r#"no kind "ConfigMap" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111""#
        ]],
    );
    refuse(
        &body("v1", "DeleteOptions", bytes(1, "x")),
        expect!["gracePeriodSeconds: proto: wrong wireType = 2"],
    );
    refuse(b"k8s\0", expect!["empty body"]);
}

proptest! {
    #[test]
    fn any_bytes_result_in_an_object_or_an_error(
        pair in 0..71_usize,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
        cuts in any::<bool>(),
    ) {
        let pairs = PAIRS.get_or_init(pairs);
        let (api_version, kind, protobuf, _) = &pairs[pair % pairs.len()];
        let mut sent = protobuf.clone();
        for (place, byte) in edits {
            let place = place.index(sent.len());
            sent[place] = byte;
        }
        if cuts {
            sent.truncate(cut.index(sent.len()));
        }
        if let Ok(decoded) = decode(&sent, expected(api_version, kind)) {
            // An accepted object can be written and parsed again.
            let text = decoded.to_string();
            prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), decoded);
        }
    }
}
