//! Defines the members that kube-apiserver 1.36 writes in the JSON of every object of a built-in kind.
//!
//! The values are those of an object in which no field is set, such as the object of a bookmark. The objects
//! that this server stores need not have these members.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::{Map, Value};

use super::Kind;

/// Table of the JSON members that kube-apiserver 1.36 writes for an object of a built-in kind if no field is
/// set. The file's header explains the format.
const V1_36: &str = include_str!("zero_v1_36.tsv");

/// Returns the JSON members that kube-apiserver 1.36 writes for an object of this kind if no field is set.
///
/// For a pod, the result is `{"spec": {"containers": null}, "status": {}}`. The result never contains
/// `apiVersion`, `kind` or an empty `metadata`. For a custom kind, the result is empty.
pub(crate) fn members(kind: &Kind) -> Map<String, Value> {
    static TABLE: OnceLock<BTreeMap<&'static str, &'static str>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        V1_36
            .lines()
            .filter_map(|row| row.split_once('\t'))
            .collect()
    });
    let name = format!("{}/{}", kind.api_version(), kind.kind);
    let row = table.get(name.as_str()).filter(|_| !kind.custom);
    row.map_or_else(Map::new, |row| {
        serde_json::from_str(row).expect("the rows of the table are JSON objects")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::{Kinds, Scope};

    #[test]
    fn every_row_describes_a_built_in_kind() {
        let kinds = Kinds::builtin();
        let described = kinds.iter().filter(|kind| !members(kind).is_empty());
        let rows = V1_36.lines().filter(|row| !row.starts_with('#'));
        assert_eq!(described.count(), rows.count());
    }

    #[test]
    fn a_custom_kind_has_no_members_of_a_built_in_one() {
        let pod = Kinds::builtin().by_kind("v1", "Pod").cloned().unwrap();
        let expected = json!({"spec": {"containers": null}, "status": {}});
        assert_eq!(Value::from(members(&pod)), expected);
        let custom = Kind::custom("", "v1", "Pod", "pods", Scope::Namespaced);
        assert!(members(&custom).is_empty());
    }
}
