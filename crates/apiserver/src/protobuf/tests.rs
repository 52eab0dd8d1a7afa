//! Tests the decoding of complete request bodies, and the errors for rejected bodies.

use expect_test::{Expect, expect};
use kube_informer_protobuf::{put_bytes, put_varint};
use serde_json::json;

use super::*;

/// Encodes a length-delimited protobuf field: a string, bytes or a message.
fn bytes(number: u32, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut field = Vec::new();
    put_bytes(number, bytes.as_ref(), &mut field);
    field
}

fn varint(number: u32, value: u64) -> Vec<u8> {
    let mut field = Vec::new();
    put_varint(number, value, &mut field);
    field
}

fn body(api_version: &str, kind: &str, raw: impl AsRef<[u8]>) -> Vec<u8> {
    let type_meta = [bytes(1, api_version), bytes(2, kind)].concat();
    let tail = [bytes(3, ""), bytes(4, "")].concat();
    [
        &Envelope::MAGIC[..],
        &bytes(1, type_meta),
        &bytes(2, raw),
        &tail,
    ]
    .concat()
}

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

/// Encodes an object that has only `metadata.name`. The bytes are the same for all kinds in these tests.
fn named(name: &str) -> Vec<u8> {
    bytes(1, bytes(1, name))
}

#[test]
fn an_empty_envelope_defaults_to_the_expected_kind() {
    let wanted = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    for (api_version, kind) in [("v1", "ConfigMap"), ("", "ConfigMap"), ("v1", ""), ("", "")] {
        let sent = body(api_version, kind, named("a"));
        assert_eq!(decode(&sent, CONFIG_MAP).unwrap(), wanted);
    }
    let bare = [&Envelope::MAGIC[..], &bytes(2, named("a"))].concat();
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
        expect![[
            r#"Pod in version "v1" cannot be handled as a Pod: metadata.name: unexpected EOF"#
        ]],
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
