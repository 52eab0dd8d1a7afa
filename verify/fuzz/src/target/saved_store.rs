//! Fuzz target that loads any bytes as the file of a saved store, from which an informer can start.
//!
//! The load must either fail with a known reason or return objects. If the objects are saved and loaded
//! again, they must not change.

use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::{
    Object,
    fuzzing::{end_of_store, load_store, save_store},
    status::ColdReason,
};

use crate::planted::Bug;

pub(super) const WORDS: &[&str] = &[
    "\n",
    "{\"format\":1,",
    "\"format\":2",
    "\"saved\":1",
    "\"version\":\"1\"",
    "\"sources\":[]",
    "\"source\":0",
    "\"source\":4294967295",
    "\"name\":\"\"",
    "\"namespace\":\"n\"",
    "\"revision\":\"7\"",
    "\"object\":{\"metadata\":{}}",
    "\"broken\":{\"uid\":\"u\",\"labels\":{},\"field\":\"f\",\"reason\":\"r\"}",
    "{\"end\":{\"objects\":1,\"checksum\":\"0000000000000000\"}}\n",
    "null",
    "-1",
    "18446744073709551616",
];

/// Loads the input twice: first unchanged, then with a corrected checksum.
///
/// Mutations of the input alone would not produce a valid checksum.
pub(super) fn run(data: &[u8], _bug: Option<Bug>) -> String {
    let as_it_is = judge(data);
    let end = data.windows(7).rposition(|window| window == b"{\"end\":");
    let mut whole = data[..end.unwrap_or(data.len())].to_vec();
    whole.extend(end_of_store(&whole).into_bytes());
    format!("{as_it_is}; {}", judge(&whole))
}

fn judge(text: &[u8]) -> String {
    let sources = match load_store::<ConfigMap>(text) {
        Ok(sources) => sources,
        Err(ColdReason::Damaged(what)) => {
            let known = ["line ", "its checksum", "something stands", "it has more"];
            assert!(known.iter().any(|known| what.starts_with(known)), "{what}");
            return what.chars().filter(|char| !char.is_numeric()).collect();
        }
        Err(ColdReason::OtherFormat(_)) => return "another format".to_owned(),
        Err(other) => panic!("readable bytes returned {other:?}"),
    };
    let objects: usize = sources.iter().map(Vec::len).sum();
    if let Some(saved) = save_store(&sources) {
        let again = load_store::<ConfigMap>(&saved).expect("a saved store can be loaded");
        assert_eq!(shown(&again), shown(&sources), "it is saved differently");
        return format!("{} sources, {objects} objects", sources.len().min(3));
    }
    // A line of the file can exceed the size limit when it is written again.
    format!("{objects} objects, too large to be saved")
}

fn shown(sources: &[Vec<Object<ConfigMap>>]) -> String {
    let one = |object: &Object<ConfigMap>| {
        let state = object.live().map(|object| format!("{object:?}"));
        let broken = object.broken().map(ToString::to_string);
        format!(
            "{:?} {:?} {:?} {state:?} {broken:?}",
            object.object_name(),
            object.revision(),
            object.uid()
        )
    };
    let sources = sources.iter();
    let shown: Vec<Vec<_>> = sources
        .map(|objects| objects.iter().map(one).collect())
        .collect();
    format!("{shown:?}")
}
