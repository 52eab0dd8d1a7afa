//! Sets the data sources of claims, as `pkg/api/persistentvolumeclaim/util.go` in Kubernetes does.

use serde_json::{Value, json};

use super::Part;
use crate::object::Object;

/// The members of the spec: the older one, and the one that can name any kind.
const MEMBERS: [&str; 2] = ["dataSource", "dataSourceRef"];

pub(super) fn create(claim: &mut Object) {
    settle(claim, &Value::Null);
}

pub(super) fn update(claim: &mut Object, old: &Object, part: Part) {
    if matches!(part, Part::Main | Part::All) {
        settle(claim, &old.part("spec"));
    }
}

/// Drops the sources that can't be set, and copies the other one. `old` is the spec of the stored claim, or null.
fn settle(claim: &mut Object, old: &Value) {
    let has = |spec: &Value| MEMBERS.map(|name| spec[name].is_object());
    let Some(mut spec) = claim
        .get("spec")
        .filter(|spec| has(spec).contains(&true))
        .cloned()
    else {
        return;
    };
    let [had_source, had_reference] = has(old);
    let is_elsewhere = is_text(&spec["dataSourceRef"]["namespace"]);
    if is_elsewhere && !had_reference {
        remove(&mut spec, "dataSourceRef");
    }
    let is_new = spec["dataSourceRef"].is_object();
    let is_kept = had_source || had_reference || is_new;
    if !is_kept && !is_claim_or_snapshot(&spec["dataSource"]) {
        remove(&mut spec, "dataSource");
    }
    normalize(&mut spec);
    claim.set("spec", Some(spec));
}

/// Copies the only source to the other member (`NormalizeDataSources`).
pub(super) fn normalize(spec: &mut Value) {
    let [source, reference] = MEMBERS.map(|name| spec[name].clone());
    if source.is_object() && reference.is_null() {
        spec["dataSourceRef"] = source;
    } else if source.is_null() && reference.is_object() && !is_text(&reference["namespace"]) {
        spec["dataSource"] = reference;
        remove(&mut spec["dataSource"], "namespace");
    }
}

fn is_claim_or_snapshot(source: &Value) -> bool {
    let group = source["apiGroup"].as_str().unwrap_or_default();
    source["kind"] == "PersistentVolumeClaim" && group.is_empty()
        || source["kind"] == "VolumeSnapshot" && group == "snapshot.storage.k8s.io"
}

fn is_text(value: &Value) -> bool {
    !value.is_null() && *value != json!("")
}

fn remove(members: &mut Value, name: &str) {
    if let Some(members) = members.as_object_mut() {
        members.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_copied_or_dropped() {
        let object = |spec: &Value| {
            let claim = json!({"spec": spec});
            Object::stored(claim.as_object().cloned().unwrap_or_default())
        };
        let snapshot =
            json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "a"});
        let other = json!({"apiGroup": "example.com", "kind": "Hello", "name": "a"});
        let far = json!({"kind": "PersistentVolumeClaim", "name": "a", "namespace": "far"});
        let both = |source: &Value| json!({"dataSource": source, "dataSourceRef": source});
        for (old, sent, expected) in [
            (None, json!({"dataSource": snapshot}), both(&snapshot)),
            (None, json!({"dataSourceRef": snapshot}), both(&snapshot)),
            (None, json!({"dataSourceRef": other}), both(&other)),
            (None, json!({"dataSource": other}), json!({})),
            (None, json!({"dataSourceRef": far}), json!({})),
            (
                Some(both(&other)),
                json!({"dataSource": other}),
                both(&other),
            ),
            (Some(json!({})), json!({"dataSource": other}), json!({})),
            (
                Some(json!({"dataSourceRef": far})),
                json!({"dataSourceRef": far}),
                json!({"dataSourceRef": far}),
            ),
            (
                None,
                json!({"dataSource": "x", "a": 1}),
                json!({"dataSource": "x", "a": 1}),
            ),
        ] {
            let mut claim = object(&sent);
            match &old {
                None => create(&mut claim),
                Some(old) => update(&mut claim, &object(old), Part::Main),
            }
            assert_eq!(claim.part("spec"), expected, "{old:?} {sent}");
        }
    }
}
