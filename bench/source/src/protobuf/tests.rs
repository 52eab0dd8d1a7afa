//! Tests that the protobuf encoder writes the same bytes as Go's encoder for the same objects.

use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::json;

use super::*;

/// A table of test objects that Kubernetes encoded. The table is compressed with gzip.
///
/// Columns: `apiVersion/Kind`, protobuf in hexadecimal digits, JSON.
const PAIRS: &[u8] = include_bytes!("../../../../crates/protobuf/src/corpus_v1_36.tsv.gz");

fn pair(kind: &str) -> (Vec<u8>, Value) {
    let mut text = String::new();
    GzDecoder::new(PAIRS).read_to_string(&mut text).unwrap();
    let row = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{kind}\t")))
        .unwrap();
    let (digits, json) = row.split_once('\t').unwrap();
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    let bytes = (0..digits.len()).step_by(2).map(byte).collect();
    (bytes, serde_json::from_str(json).unwrap())
}

fn enveloped(kind: &str, message: &[u8]) -> Vec<u8> {
    let (api_version, name) = kind.rsplit_once('/').unwrap();
    let mut type_meta = Vec::new();
    put_bytes(&mut type_meta, 1, api_version.as_bytes());
    put_bytes(&mut type_meta, 2, name.as_bytes());
    let mut out = MAGIC.to_vec();
    put_bytes(&mut out, 1, &type_meta);
    put_bytes(&mut out, 2, message);
    out.extend_from_slice(&[0x1a, 0, 0x22, 0]);
    out
}

#[test]
fn built_in_kinds_have_the_bytes_that_go_writes() {
    for kind in [
        "v1/Pod",
        "v1/ConfigMap",
        "v1/Secret",
        "v1/Service",
        "apps/v1/Deployment",
    ] {
        let (bytes, object) = pair(kind);
        let encoded = encode(kind, &object).unwrap();
        assert_eq!(enveloped(kind, &encoded), bytes, "{kind}");
    }
}

#[test]
fn ordered_json_is_the_same_object_with_its_metadata_first() {
    for kind in ["v1/Pod", "v1/ConfigMap", "v1/Secret"] {
        let (_, object) = pair(kind);
        let name = object["kind"].as_str().unwrap();
        let members = ordered_json(kind, &object).unwrap();
        assert!(
            members.starts_with(r#""metadata":{"name":"nameValue","generateName":"#),
            "{members}"
        );
        let text = format!(r#"{{"kind":"{name}","apiVersion":"v1",{members}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), object);
    }
}

#[test]
fn json_members_have_the_declaration_order_of_go() {
    let (_, object) = pair("v1/Pod");
    let members = ordered_json("v1/Pod", &object).unwrap();
    let owner = r#""ownerReferences":[{"apiVersion":"apiVersionValue","kind":"kindValue","name":"nameValue","uid":"#;
    assert!(members.contains(owner), "{members}");
    assert!(
        members.contains(r#""hostIP":"hostIPValue","hostIPs":["#),
        "{members}"
    );
}

#[test]
fn a_member_without_a_field_is_an_error_with_its_name() {
    let object =
        json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "imge": "b"}]}});
    let error = encode("v1/Pod", &object).unwrap_err();
    assert!(
        format!("{error:#}").contains("spec.containers[0][imge]"),
        "{error:#}"
    );
}

#[test]
fn varint_len_matches_the_written_bytes() {
    for number in [
        0,
        1,
        127,
        128,
        16_383,
        16_384,
        u64::from(u32::MAX),
        u64::MAX,
    ] {
        let mut out = Vec::new();
        put_varint(&mut out, number);
        assert_eq!(out.len(), varint_len(number), "{number}");
    }
}
