//! Tests that decoding and encoding agree with Kubernetes' Go code.
//!
//! The test data contains each object in protobuf and in JSON, as the Go code encodes it. Other tests check
//! that decoding malformed bytes does not panic.

use std::{io::Read as _, sync::OnceLock};

use flate2::read::GzDecoder;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

mod drawn;
mod kinds;

/// One object of each kind with every field set, as protobuf and as JSON; from `cargo xtask kinds`.
const CORPUS: &[u8] = include_bytes!("corpus_v1_36.tsv.gz");

/// Limits that no valid object in the tests exceeds.
pub(super) const LIMITS: Options = Options {
    depth: 127,
    containers: 500_000,
    values: 500_000,
    missing: Missing::Zero,
};

/// Returns the bytes of a length-delimited field.
pub(super) fn bytes(number: u32, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut field = Vec::new();
    put_bytes(number, bytes.as_ref(), &mut field);
    field
}

/// Returns the bytes of a field that contains a varint.
pub(super) fn varint(number: u32, value: u64) -> Vec<u8> {
    let mut field = Vec::new();
    put_varint(number, value, &mut field);
    field
}

/// Decodes a message of a built-in kind to JSON, without `apiVersion` and `kind`.
pub(super) fn decoded(kind: (&str, &str), raw: &[u8]) -> Result<Value, String> {
    let id = Messages::builtin().of_kind(kind.0, kind.1).unwrap();
    decode(id, raw, LIMITS).map_err(|error| error.to_string())
}

/// One object in protobuf and in JSON. Kubernetes' Go code encoded both.
struct Pair {
    api_version: String,
    kind: String,
    /// A response body: [`Envelope::MAGIC`], and the envelope with the object's message.
    protobuf: Vec<u8>,
    json: Value,
}

impl Pair {
    /// Returns the bytes of the object's message, without the envelope.
    fn raw(&self) -> &[u8] {
        let envelope = self.protobuf.strip_prefix(&Envelope::MAGIC).unwrap();
        let envelope = Envelope::read(envelope).unwrap();
        assert_eq!(
            (&*envelope.api_version, &*envelope.kind),
            (&*self.api_version, &*self.kind)
        );
        envelope.raw
    }

    fn message(&self) -> MessageId {
        let found = Messages::builtin().of_kind(&self.api_version, &self.kind);
        found.unwrap_or_else(|| Messages::builtin().delete_options())
    }

    fn read<T: serde::de::DeserializeOwned>(&self, raw: &[u8]) -> Result<T, Error> {
        let type_meta = (&*self.api_version, &*self.kind);
        decode_with(self.message(), Some(type_meta), raw, LIMITS, |message| {
            T::deserialize(message)
        })
    }
}

/// Returns one pair for each object in [`CORPUS`].
fn pairs() -> &'static [Pair] {
    static PAIRS: OnceLock<Vec<Pair>> = OnceLock::new();
    PAIRS.get_or_init(|| {
        let mut lines = String::new();
        GzDecoder::new(CORPUS).read_to_string(&mut lines).unwrap();
        lines.lines().map(|line| pair(line, 1)).collect()
    })
}

/// Parses a line of test data, which contains one object in columns separated by tabs.
///
/// Column 0 contains `apiVersion/Kind`, and column 2 contains the JSON. Columns 1 and 3 contain protobuf in
/// hexadecimal; `protobuf` is the index of the one to parse. [`CORPUS`] has no column 3.
fn pair(line: &str, protobuf: usize) -> Pair {
    let columns: Vec<_> = line.split('\t').collect();
    let (api_version, kind) = columns[0].rsplit_once('/').unwrap();
    let digits = columns[protobuf].as_bytes().chunks(2);
    let protobuf = digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    Pair {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        protobuf,
        json: serde_json::from_str(columns[2]).unwrap(),
    }
}

#[test]
fn every_kind_decodes_to_kubernetes_json() {
    for pair in pairs() {
        let decoded: Value = pair.read(pair.raw()).unwrap();
        let (version, kind) = (&pair.api_version, &pair.kind);
        assert!(
            decoded == pair.json,
            "{version} {kind}\n{decoded:#}\n{:#}",
            pair.json
        );
    }
    let unproven: Vec<_> = Messages::builtin()
        .kinds()
        .map(|(kind, _)| kind)
        .filter(|kind| {
            let is_it = |pair: &Pair| format!("{}/{}", pair.api_version, pair.kind) == **kind;
            !pairs().iter().any(is_it)
        })
        .collect();
    assert_eq!(
        unproven,
        [
            "apidiscovery.k8s.io/v2/APIGroupDiscoveryList",
            "apiregistration.k8s.io/v1/APIService",
            "meta.k8s.io/v1/PartialObjectMetadata",
            "v1/APIGroup",
            "v1/APIGroupList",
            "v1/APIResourceList",
            "v1/APIVersions",
            "v1/Status",
        ]
    );
}

#[test]
fn every_kind_is_encoded_to_the_bytes_that_go_writes() {
    for pair in pairs() {
        let (version, kind) = (&pair.api_version, &pair.kind);
        let encoded = encode(pair.message(), &pair.json).unwrap();
        let decoded: Value = pair.read(&encoded).unwrap();
        assert!(
            decoded == pair.json,
            "{version} {kind}\n{decoded:#}\n{:#}",
            pair.json
        );
        assert_eq!(encoded, pair.raw(), "{version} {kind}");
    }
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
    let metadata = bytes(1, bytes(1, "v1.g"));
    let raw = [metadata, bytes(2, spec), bytes(3, bytes(1, condition))].concat();
    let wanted = json!({
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
    assert_eq!(
        decoded(("apiregistration.k8s.io/v1", "APIService"), &raw).unwrap(),
        wanted
    );
}

/// Returns the message `raw` with its fields in descending order of field number.
///
/// The fields of nested messages are also in descending order. Map entries are unchanged.
fn reversed(id: MessageId, raw: &[u8]) -> Vec<u8> {
    let message = Messages::builtin().get(id);
    let fields: Vec<_> = WireFields::new(raw).map(Result::unwrap).collect();
    let mut turned = Vec::new();
    // Fields with one number stay in their order, which is that of a list's items.
    for fields in fields.chunk_by(|a, b| a.0 == b.0).rev() {
        for (number, value) in fields {
            let field = &message.fields[message.position(*number).unwrap()];
            match (field.value, field.container, *value) {
                (Type::Message(inner), Container::One | Container::List, WireValue::Bytes(raw))
                    if !Messages::builtin().get(inner).fields.is_empty() =>
                {
                    put_bytes(*number, &reversed(inner, raw), &mut turned);
                }
                (_, _, WireValue::Bytes(raw)) => put_bytes(*number, raw, &mut turned),
                (_, _, WireValue::Varint(value)) => put_varint(*number, value, &mut turned),
                (_, _, WireValue::Fixed64(bits)) => put_fixed64(*number, bits, &mut turned),
                (_, _, other) => unreachable!("{other:?}"),
            }
        }
    }
    turned
}

#[test]
fn the_order_of_fields_does_not_change_an_object() {
    for pair in pairs() {
        let turned = reversed(pair.message(), pair.raw());
        assert_eq!(turned.len(), pair.raw().len());
        let decoded: Value = pair.read(&turned).unwrap();
        assert_eq!(decoded, pair.json, "{} {}", pair.api_version, pair.kind);
    }
}

/// Removes null members from JSON objects at all depths.
///
/// The protobuf encoding of a null field and of a missing field is the same.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(
                members
                    .map(|(name, value)| (name, without_nulls(value)))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

proptest! {
    #[test]
    fn any_bytes_result_in_an_object_or_an_error(
        pair in 0..71_usize,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
        cuts in any::<bool>(),
    ) {
        let pair = &pairs()[pair % pairs().len()];
        let mut raw = pair.raw().to_vec();
        for (place, byte) in edits {
            let place = place.index(raw.len());
            raw[place] = byte;
        }
        if cuts {
            raw.truncate(cut.index(raw.len()));
        }
        if let Ok(decoded) = pair.read::<Value>(&raw) {
            // An accepted object can be written and parsed again, in both encodings.
            let text = decoded.to_string();
            prop_assert_eq!(&serde_json::from_str::<Value>(&text).unwrap(), &decoded);
            let encoded = encode(pair.message(), &decoded).unwrap();
            let again: Value = pair.read(&encoded).unwrap();
            prop_assert_eq!(without_nulls(again), without_nulls(decoded));
        }
        // The typed object is the one that the JSON of the same bytes results in.
        kinds::compare(pair, &raw);
    }
}
