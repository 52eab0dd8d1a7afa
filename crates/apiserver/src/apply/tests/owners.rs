//! Tests of owners, conflicts and removed fields.

use serde_json::json;

use super::*;

/// A spec with two texts, a map of texts, and a struct.
fn spec() -> Value {
    let text = json!({"type": "string"});
    json!({"type": "object", "properties": {
        "a": text,
        "b": text,
        "labels": {"type": "object", "additionalProperties": text},
        "inner": {"type": "object", "properties": {"c": text, "d": text}},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"c": text, "d": text}},
    }})
}

#[test]
fn a_field_of_another_manager_is_taken_only_with_force() {
    let mut stored = Stored::of_spec(&spec());
    stored
        .apply("one", &json!({"spec": {"a": "x", "b": "y"}}))
        .unwrap();
    stored.update("two", &json!({"spec": {"a": "u", "b": "y"}}));
    assert_eq!(stored.fields("one"), json!({"f:spec": {"f:b": {}}}));
    assert_eq!(stored.fields("two"), json!({"f:spec": {"f:a": {}}}));
    let changed = json!({"spec": {"a": "v", "b": "w"}});
    assert_eq!(
        stored.apply("three", &changed).unwrap_err(),
        "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.b\n\
         conflicts with \"two\" using example.com/v1:\n- .spec.a"
    );
    assert_eq!(
        stored
            .apply("two", &json!({"spec": {"b": "w"}}))
            .unwrap_err(),
        "Apply failed with 1 conflict: conflict with \"one\": .spec.b"
    );
    let object = stored.force("three", &changed);
    assert_eq!(object["spec"], changed["spec"]);
    assert_eq!(stored.fields("one"), Value::Null);
    assert_eq!(stored.fields("two"), Value::Null);
    assert_eq!(
        stored.fields("three"),
        json!({"f:spec": {"f:a": {}, "f:b": {}}})
    );
}

#[test]
fn managers_that_apply_the_same_value_share_a_field() {
    let mut stored = Stored::of_spec(&spec());
    stored
        .apply("one", &json!({"spec": {"a": "x", "inner": {"c": "1"}}}))
        .unwrap();
    stored.apply("two", &json!({"spec": {"a": "x"}})).unwrap();
    // The field remains while the other manager applies it.
    let object = stored.apply("one", &json!({"spec": {}})).unwrap();
    assert_eq!(object["spec"], json!({"a": "x"}));
    let object = stored.apply("one", &json!({})).unwrap();
    assert_eq!(object["spec"], json!({"a": "x"}));
    let object = stored.apply("two", &json!({})).unwrap();
    assert_eq!(object.get("spec"), None);
    assert_eq!(object["metadata"].get("managedFields"), None);
}

#[test]
fn a_field_that_an_update_has_added_remains() {
    let mut stored = Stored::of_spec(&spec());
    stored
        .apply(
            "one",
            &json!({"spec": {"labels": {"k": "x"}, "inner": {"c": "1"}}}),
        )
        .unwrap();
    stored.update(
        "two",
        &json!({"spec": {"labels": {"k": "x", "l": "y"}, "inner": {"c": "1", "d": "2"}}}),
    );
    assert_eq!(
        stored.fields("two"),
        json!({"f:spec": {"f:labels": {"f:l": {}}, "f:inner": {"f:d": {}}}})
    );
    let object = stored.apply("one", &json!({"spec": {"a": "x"}})).unwrap();
    assert_eq!(
        object["spec"],
        json!({"a": "x", "labels": {"l": "y"}, "inner": {"d": "2"}})
    );
}

#[test]
fn an_atomic_object_has_one_owner() {
    let mut stored = Stored::of_spec(&spec());
    stored
        .apply("one", &json!({"spec": {"whole": {"c": "1", "d": "2"}}}))
        .unwrap();
    assert_eq!(stored.fields("one"), json!({"f:spec": {"f:whole": {}}}));
    assert_eq!(
        stored
            .apply("two", &json!({"spec": {"whole": {"c": "1"}}}))
            .unwrap_err(),
        "Apply failed with 1 conflict: conflict with \"one\": .spec.whole"
    );
    let object = stored.force("two", &json!({"spec": {"whole": {"c": "1"}}}));
    assert_eq!(object["spec"], json!({"whole": {"c": "1"}}));
}

#[test]
fn fields_below_a_value_that_became_atomic_are_replaced_by_it() {
    let mut stored = Stored::of_spec(&spec());
    stored
        .apply("one", &json!({"spec": {"inner": {"c": "1"}, "a": "x"}}))
        .unwrap();
    let mut changed = spec();
    changed["properties"]["inner"]["x-kubernetes-map-type"] = json!("atomic");
    stored.kind = Custom::new(&json!({"v1": {"type": "object", "properties": {"spec": changed}}}));
    stored.update(
        "two",
        &json!({"spec": {"inner": {"c": "1"}, "a": "x", "b": "y"}}),
    );
    assert_eq!(
        stored.fields("one"),
        json!({"f:spec": {"f:inner": {}, "f:a": {}}})
    );
}

#[test]
fn times_change_only_with_the_object_or_the_fields_of_an_update() {
    let mut stored = Stored::of_spec(&spec());
    let applied = json!({"spec": {"a": "x"}});
    stored.apply("one", &applied).unwrap();
    stored.update("two", &json!({"spec": {"a": "x", "b": "y"}}));
    let times = ["one 1970-01-01T00:00:01Z", "two 1970-01-01T00:00:02Z"];
    assert_eq!(stored.times(), times);
    stored.apply("one", &applied).unwrap();
    stored.update("two", &json!({"spec": {"a": "x", "b": "y"}}));
    assert_eq!(stored.times(), times);
    stored.update("two", &json!({"spec": {"a": "x", "b": "z"}}));
    assert_eq!(stored.times()[1], "two 1970-01-01T00:00:05Z");
}

#[test]
fn times_are_restored_if_nothing_else_has_changed() {
    let entry = |time: &str, fields: &str| json!({"manager": "one", "time": time, "fieldsV1": {fields: {}}});
    let object = |entries: Value, a: &str| json!({"metadata": {"managedFields": entries}, "a": a});
    let old = object(json!([entry("1", "f:a")]), "x");
    for (new, is_restored) in [
        (object(json!([entry("2", "f:a")]), "x"), true),
        (object(json!([entry("2", "f:a")]), "y"), false),
        (object(json!([entry("2", "f:b")]), "x"), false),
        (
            object(json!([entry("2", "f:a"), entry("2", "f:a")]), "x"),
            false,
        ),
    ] {
        let mut kept = new.clone();
        keep_times(&old, &mut kept);
        assert_eq!(kept, if is_restored { old.clone() } else { new });
    }
}

#[test]
fn the_oldest_of_many_updaters_are_merged() {
    let mut stored = Stored::of_spec(&spec());
    for number in 0..12 {
        let mut labels = stored.object["spec"]["labels"].clone();
        labels[format!("k{number:02}")] = json!("x");
        stored.update(
            &format!("m{number:02}"),
            &json!({"spec": {"labels": labels}}),
        );
    }
    let times = stored.times();
    assert_eq!(times.len(), 10);
    assert_eq!(times[0], "ancient-changes 1970-01-01T00:00:03Z");
    assert_eq!(times[1], "m03 1970-01-01T00:00:04Z");
    assert_eq!(
        stored.fields("ancient-changes"),
        json!({"f:spec": {".": {}, "f:labels": {".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {}}}})
    );
}

#[test]
fn an_object_without_owners_gets_them_with_its_first_apply() {
    let mut stored = Stored::of_spec(&spec());
    stored.update("one", &json!({"spec": {"a": "x"}}));
    // An empty list, or one empty entry, removes the owners.
    for entries in [json!([]), json!([{}])] {
        let mut new = stored.object.clone();
        new["metadata"]["managedFields"] = entries;
        stored.replace("one", new);
        assert_eq!(stored.object["metadata"].get("managedFields"), None);
    }
    stored.update("one", &json!({"spec": {"a": "y"}}));
    assert_eq!(stored.object["metadata"].get("managedFields"), None);
    assert_eq!(
        stored
            .apply("two", &json!({"spec": {"a": "z"}}))
            .unwrap_err(),
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using example.com/v1: .spec.a"
    );
    stored.apply("two", &json!({"spec": {"b": "z"}})).unwrap();
    assert_eq!(
        stored.fields("before-first-apply"),
        json!({"f:spec": {".": {}, "f:a": {}}})
    );
}

#[test]
fn kubectl_takes_over_the_fields_of_client_side_apply() {
    let name = "kubectl.kubernetes.io/last-applied-configuration";
    let mut stored = Stored::of_spec(&spec());
    let last = thing(&json!({"spec": {"a": "x"}})).to_string();
    let metadata = json!({"name": "a", "namespace": "default", "annotations": {name: last}});
    stored.update(
        "kubectl-client-side-apply",
        &json!({"metadata": metadata, "spec": {"a": "x"}}),
    );
    let applied = json!({"spec": {"a": "y"}});
    let conflict = "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" \
                    using example.com/v1: .spec.a";
    assert_eq!(stored.apply("other", &applied).unwrap_err(), conflict);
    let object = stored.apply("kubectl", &applied).unwrap();
    assert_eq!(object["spec"], json!({"a": "y"}));
    let annotation = object["metadata"]["annotations"][name].as_str().unwrap();
    assert_eq!(annotation, format!("{}\n", thing(&applied)));
}

#[test]
fn ignored_fields_have_no_owner() {
    let text = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let schema = json!({"type": "object", "properties": {"spec": text, "status": text}});
    let mut stored = Stored::of_schemas(&json!({ "v1": schema }));
    stored.ignored = Set::of(&[&["status"]]);
    stored
        .apply("one", &json!({"spec": {"a": "x"}, "status": {"a": "y"}}))
        .unwrap();
    assert_eq!(stored.fields("one"), json!({"f:spec": {"f:a": {}}}));
    (stored.subresource, stored.ignored) = ("status", Set::of(&[&["spec"]]));
    stored.update("one", &json!({"spec": {"a": "z"}, "status": {"a": "z"}}));
    let entries = &stored.object["metadata"]["managedFields"];
    assert_eq!(entries[1]["subresource"], "status");
    assert_eq!(entries[1]["fieldsV1"], json!({"f:status": {"f:a": {}}}));
    stored.subresource = "";
    assert_eq!(
        stored
            .apply("two", &json!({"status": {"a": "v"}}))
            .unwrap_err(),
        "Apply failed with 1 conflict: conflict with \"one\" with subresource \"status\" \
         using example.com/v1: .status.a"
    );
}

#[test]
fn invalid_applied_objects_are_rejected_with_the_messages_of_kubernetes() {
    let mut stored = Stored::of_spec(&spec());
    let typed = "500 failed to create typed patch object (default/a; example.com/v1, Kind=Thing): ";
    for (members, error) in [
        (
            json!({"kind": "Other"}),
            "400 invalid object type: example.com/v1, Kind=Other".to_owned(),
        ),
        (
            json!({"apiVersion": "v1"}),
            "400 invalid object type: /v1, Kind=Thing".to_owned(),
        ),
        (
            json!({"metadata": {"managedFields": []}}),
            "400 metadata.managedFields must be nil".to_owned(),
        ),
        (
            json!({"spec": {"c": 1}}),
            format!("{typed}.spec.c: field not declared in schema"),
        ),
        (
            json!({"spec": {"a": 1, "b": [1.5, "x", null], "inner": [true]}}),
            format!(
                "{typed}errors:\n  .spec.a: expected string, got &value.valueUnstructured{{Value:1}}\n  \
                 .spec.b: expected string, got &value.valueUnstructured{{Value:[]interface {{}}{{1.5, \"x\", \
                 interface {{}}(nil)}}}}\n  .spec.inner: expected map, got &{{[true]}}"
            ),
        ),
    ] {
        assert_eq!(stored.apply("one", &members).unwrap_err(), error);
    }
}

#[test]
fn owners_of_an_unknown_version_prevent_tracking_for_a_custom_kind() {
    let mut stored = Stored::of_spec(&spec());
    stored.update("one", &json!({"spec": {"a": "x"}}));
    stored.object["metadata"]["managedFields"][0]["apiVersion"] = json!("example.com/v9");
    assert_eq!(
        stored
            .apply("two", &json!({"spec": {"b": "x"}}))
            .unwrap_err(),
        "500 request to convert CR to an invalid group/version: example.com/v9"
    );
    let object = stored.update("two", &json!({"spec": {"b": "x"}}));
    assert_eq!(object["metadata"].get("managedFields"), None);
}
