//! Tests the objects that a [`Corpus`] generates, for every kind, in JSON and in protobuf.

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::*;

const UNCHANGED: Version = Version {
    revision: 4_000_000_001,
    stamp: 0,
};

fn json(corpus: &Corpus, at: usize) -> Value {
    let members = String::from_utf8(corpus.object(at, UNCHANGED, Encoding::Json)).unwrap();
    serde_json::from_str(&format!("{}{members}", corpus.kind().json_start())).unwrap()
}

/// Removes every object member that is null, at every depth.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

fn survives<K: Serialize + DeserializeOwned>(kind: CorpusKind) {
    let corpus = Corpus::new(kind, 500, 7).unwrap();
    for at in 0..500 {
        let mut object = json(&corpus, at);
        without_nulls(&mut object);
        let typed: K = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(serde_json::to_value(&typed).unwrap(), object);
    }
}

#[test]
fn every_object_decodes_as_its_type_without_loss() {
    survives::<Pod>(CorpusKind::Pods);
    survives::<ConfigMap>(CorpusKind::Configmaps);
    survives::<Secret>(CorpusKind::Secrets);
}

#[test]
fn both_encodings_contain_the_same_object() {
    for kind in [
        CorpusKind::Pods,
        CorpusKind::Configmaps,
        CorpusKind::Secrets,
    ] {
        let corpus = Corpus::new(kind, 300, 7).unwrap();
        for at in 0..300 {
            let name = corpus.kind().api_version_and_kind();
            let expected = crate::protobuf::encode(&name, &json(&corpus, at)).unwrap();
            assert_eq!(corpus.object(at, UNCHANGED, Encoding::Protobuf), expected);
        }
    }
}

#[test]
fn names_ascend_and_identities_are_unique() {
    for kind in [CorpusKind::Pods, CorpusKind::Custom] {
        let corpus = Corpus::new(kind, 4_000, 3).unwrap();
        let mut keys = Vec::new();
        let mut uids = std::collections::BTreeSet::new();
        for at in 0..corpus.len() {
            let metadata = json(&corpus, at)["metadata"].take();
            let text = |name: &str| metadata[name].as_str().unwrap().to_owned();
            keys.push(format!("{}/{}", text("namespace"), text("name")));
            uids.insert(text("uid"));
        }
        assert!(keys.is_sorted_by(|a, b| a < b));
        assert_eq!((corpus.workloads(), uids.len()), (800, 4_000));
    }
}

#[test]
fn a_seed_determines_the_objects() {
    let object = |seed| {
        Corpus::new(CorpusKind::Pods, 100, seed)
            .unwrap()
            .object(50, UNCHANGED, Encoding::Json)
    };
    assert_eq!(object(1), object(1));
    assert_ne!(object(1), object(2));
}

#[test]
fn a_version_changes_only_the_revision_and_the_stamp() {
    let corpus = Corpus::new(CorpusKind::Pods, 100, 1).unwrap();
    let changed = Version {
        revision: 4_000_000_777,
        stamp: 1_780_000_000_123_456_789,
    };
    let (before, after) = (
        corpus.object(9, UNCHANGED, Encoding::Json),
        corpus.object(9, changed, Encoding::Json),
    );
    let after = String::from_utf8(after).unwrap();
    assert!(after.contains(r#""bench/ts":"1780000000123456789""#));
    assert!(after.contains(r#""resourceVersion":"4000000777""#));
    let undone = after
        .replace("1780000000123456789", "0000000000000000000")
        .replace("4000000777", "4000000001");
    assert_eq!(undone.as_bytes(), before);
}

#[test]
fn pods_have_the_documented_sizes() {
    let corpus = Corpus::new(CorpusKind::Pods, 10_000, 1).unwrap();
    let mean = |encoding| {
        let bytes: usize = corpus
            .lengths(0..10_000, encoding)
            .map(|(len, count)| len * count)
            .sum();
        bytes / 10_000
    };
    let (text, binary) = (mean(Encoding::Json), mean(Encoding::Protobuf));
    assert!((8_000..8_200).contains(&text), "{text} bytes of JSON");
    assert!(
        (5_300..5_700).contains(&binary),
        "{binary} bytes of protobuf"
    );
    let pod = json(&corpus, 4_321);
    for entry in pod["metadata"]["managedFields"].as_array().unwrap() {
        let bytes = entry.to_string().len();
        assert!(
            (1_000..1_250).contains(&bytes),
            "{bytes} bytes of managed fields"
        );
    }
    for container in pod["spec"]["containers"].as_array().unwrap() {
        assert_eq!(container["env"].as_array().unwrap().len(), 10);
    }
}

#[test]
fn lengths_match_the_objects() {
    let corpus = Corpus::new(CorpusKind::Secrets, 77, 1).unwrap();
    for range in [0..77, 5..6, 10..60] {
        let lengths = corpus.lengths(range.clone(), Encoding::Protobuf);
        let total: usize = lengths.map(|(len, count)| len * count).sum();
        let written: usize = range
            .map(|at| corpus.object(at, UNCHANGED, Encoding::Protobuf).len())
            .sum();
        assert_eq!(total, written);
    }
}

#[test]
fn a_corpus_has_at_least_one_object() {
    assert_eq!(Corpus::new(CorpusKind::Pods, 1, 1).unwrap().len(), 1);
    assert!(Corpus::new(CorpusKind::Pods, 0, 1).is_err());
}
