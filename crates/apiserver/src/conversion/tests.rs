//! Tests of the conversions, most of them from those of Kubernetes.

use serde_json::{Value, json};

use super::Conversion;
use crate::kinds::Kinds;

fn conversion(api_version: &str, kind: &str) -> Conversion {
    let kinds = Kinds::builtin();
    let shown = kinds.shared_by_kind(api_version, kind).unwrap();
    Conversion::of(shown, &kinds).unwrap()
}

fn autoscalers() -> Conversion {
    conversion("autoscaling/v1", "HorizontalPodAutoscaler")
}

fn stored(conversion: &Conversion, shown: &Value) -> Value {
    let mut object = shown.as_object().unwrap().clone();
    conversion.store(&mut object);
    Value::Object(object)
}

fn shown(conversion: &Conversion, stored: &Value) -> Value {
    let mut object = stored.as_object().unwrap().clone();
    conversion.show(&mut object);
    Value::Object(object)
}

#[test]
fn only_two_kinds_have_several_versions() {
    let kinds = Kinds::builtin();
    let converted = kinds.shared().filter_map(|kind| {
        let conversion = Conversion::of(kind, &kinds)?;
        Some((kind.api_version(), conversion.collection()))
    });
    let converted: Vec<_> = converted.collect();
    let expected = [
        ("autoscaling/v1", "horizontalpodautoscalers.autoscaling"),
        ("events.k8s.io/v1", "events"),
    ];
    assert_eq!(
        converted,
        expected.map(|(version, name)| (version.to_owned(), name.to_owned()))
    );
    let mut names: Vec<_> = kinds
        .iter()
        .map(crate::kinds::Kind::group_resource)
        .collect();
    names.dedup();
    assert_eq!(
        kinds.len() - names.len(),
        1,
        "only the autoscaler is in two versions of a group"
    );
    for kind in kinds
        .iter()
        .filter(|kind| kind.storage_version_hash.is_some())
    {
        let same =
            |other: &&crate::kinds::Kind| other.storage_version_hash == kind.storage_version_hash;
        let others = kinds.iter().filter(same).count();
        let name = kind.group_resource();
        let has_two = name.starts_with("horizontalpodautoscalers") || name.starts_with("events");
        assert_eq!(others, if has_two { 2 } else { 1 }, "{name}");
    }
}

#[test]
fn an_event_keeps_all_values() {
    let conversion = conversion("events.k8s.io/v1", "Event");
    let new = json!({
        "metadata": {"name": "a"}, "eventTime": "2026-01-31T12:00:00.000000Z", "action": "A", "reason": "R",
        "regarding": {"kind": "Pod"}, "related": {"kind": "Node"}, "note": "n", "type": "Normal",
        "reportingController": "c", "reportingInstance": "i", "series": {"count": 2, "lastObservedTime": null},
        "deprecatedSource": {"component": "s"}, "deprecatedFirstTimestamp": null,
        "deprecatedLastTimestamp": "2026-01-31T12:00:00Z", "deprecatedCount": 3,
    });
    let core = stored(&conversion, &new);
    assert_eq!(core["message"], "n");
    assert_eq!(core["involvedObject"], json!({"kind": "Pod"}));
    assert_eq!(core["source"], json!({"component": "s"}));
    assert_eq!(core["count"], 3);
    assert_eq!(core["reportingComponent"], "c");
    assert_eq!(core.get("note"), None);
    assert_eq!(shown(&conversion, &core), new);
}

#[test]
fn an_autoscaler_without_metrics_has_the_default_of_the_cpu() {
    let v2 = stored(
        &autoscalers(),
        &json!({"metadata": {}, "spec": {"maxReplicas": 1}}),
    );
    let target = json!({"type": "Utilization", "averageUtilization": 80});
    let metric = json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]);
    assert_eq!(v2["spec"]["metrics"], metric);
    let v1 = shown(&autoscalers(), &v2);
    assert_eq!(v1["spec"]["targetCPUUtilizationPercentage"], 80);
}

#[test]
fn every_source_of_a_metric_survives_version_1() {
    let selector = json!({"matchLabels": {"b": "1", "type": "2"},
        "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]});
    let v2 = json!({
        "metadata": {"name": "a"},
        "spec": {
            "maxReplicas": 1, "minReplicas": 1, "scaleTargetRef": {"kind": "D", "name": "n"},
            "metrics": [
                {"type": "Object", "object": {"describedObject": {"kind": "S", "name": "n"},
                    "metric": {"name": "m", "selector": selector}, "target": {"type": "AverageValue", "averageValue": "2"}}},
                {"type": "Object", "object": {"describedObject": {"kind": "S", "name": "n"},
                    "metric": {"name": "m"}, "target": {"type": "Value", "value": "0"}}},
                {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"}}},
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "1"}}},
                {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c",
                    "target": {"type": "Utilization", "averageUtilization": 4}}},
                {"type": "External", "external": {"metric": {"name": "m", "selector": selector}, "target": {"type": "Value", "value": "3"}}},
                {"type": "External", "external": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "3"}}},
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}}},
            ],
        },
        "status": {"desiredReplicas": 0, "currentMetrics": [
            {"type": "Object", "object": {"describedObject": {"kind": "S", "name": "n"}, "metric": {"name": "m"}, "current": {"value": "1", "averageValue": "2"}}},
            {"type": "Pods", "pods": {"metric": {"name": "m"}, "current": {"averageValue": "1"}}},
            {"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "1", "averageUtilization": 3}}},
            {"type": "External", "external": {"metric": {"name": "m"}, "current": {"value": "1", "averageValue": "2"}}},
        ], "conditions": [{"type": "T", "status": "True", "lastTransitionTime": null, "message": "<"}]},
    });
    let v1 = shown(&autoscalers(), &v2);
    let annotation =
        |name| &v1["metadata"]["annotations"][format!("autoscaling.alpha.kubernetes.io/{name}")];
    assert_eq!(v1["spec"]["targetCPUUtilizationPercentage"], 5);
    assert_eq!(v1["spec"].get("metrics"), None);
    assert_eq!(v1["status"]["currentCPUUtilizationPercentage"], 3);
    let conditions =
        r#"[{"type":"T","status":"True","lastTransitionTime":null,"message":"\u003c"}]"#;
    assert_eq!(*annotation("conditions"), conditions);
    let metrics = annotation("metrics").as_str().unwrap();
    let object = r#"[{"type":"Object","object":{"target":{"kind":"S","name":"n"},"metricName":"m","targetValue":"0","selector":{"matchLabels":{"b":"1","type":"2"},"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]},"averageValue":"2"}},"#;
    assert!(metrics.starts_with(object), "{metrics}");
    assert_eq!(stored(&autoscalers(), &v1), v2);
}

#[test]
fn malformed_annotations_are_ignored() {
    for text in [
        "",
        "x",
        "{}",
        r#"[{"type": 5}]"#,
        "[1]",
        r#"[{"pods": []}]"#,
    ] {
        let annotations = ["metrics", "current-metrics", "conditions"].map(|name| {
            (
                format!("autoscaling.alpha.kubernetes.io/{name}"),
                json!(text),
            )
        });
        let annotations: serde_json::Map<_, _> = annotations.into_iter().collect();
        let v1 = json!({"metadata": {"annotations": annotations},
            "spec": {"maxReplicas": 1, "targetCPUUtilizationPercentage": 5},
            "status": {"currentReplicas": 1, "desiredReplicas": 1, "currentCPUUtilizationPercentage": 6}});
        let v2 = stored(&autoscalers(), &v1);
        assert_eq!(v2["metadata"].get("annotations"), None);
        assert_eq!(v2["spec"]["metrics"].as_array().unwrap().len(), 1, "{text}");
        assert_eq!(
            v2["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"],
            5
        );
        let measured = &v2["status"]["currentMetrics"][0]["resource"]["current"];
        assert_eq!(*measured, json!({"averageUtilization": 6}), "{text}");
    }
}

#[test]
fn wrong_types_of_stored_values_do_not_stop_a_reader() {
    for wrong in [
        json!("x"),
        json!(5),
        json!([1, "x"]),
        json!({"a": [5]}),
        json!(null),
    ] {
        let metrics = json!([{"type": "Object", "object": wrong}, {"type": "Resource", "resource": wrong}, wrong]);
        for v2 in [
            json!({"metadata": {}, "spec": wrong, "status": wrong}),
            json!({"metadata": {}, "spec": {"metrics": wrong, "behavior": wrong},
                "status": {"currentMetrics": wrong, "conditions": wrong}}),
            json!({"metadata": {}, "spec": {"metrics": metrics, "behavior": {"scaleUp": wrong}},
                "status": {"currentMetrics": metrics, "conditions": [wrong]}}),
        ] {
            let v1 = shown(&autoscalers(), &v2);
            stored(&autoscalers(), &v1);
            stored(&autoscalers(), &v2);
        }
        let event =
            json!({"metadata": {}, "involvedObject": wrong, "message": wrong, "count": wrong});
        let events = conversion("events.k8s.io/v1", "Event");
        let new = shown(&events, &event);
        if !wrong.is_null() {
            assert_eq!(new["regarding"], wrong);
        }
        stored(&events, &new);
    }
}

#[cfg(feature = "persistence")]
#[test]
fn an_autoscaler_that_was_stored_in_version_1_is_upgraded() {
    let kinds = Kinds::builtin();
    let kind = kinds
        .by_kind("autoscaling/v2", "HorizontalPodAutoscaler")
        .unwrap();
    let v1 = json!({"spec": {"maxReplicas": 1, "targetCPUUtilizationPercentage": 5}});
    let v2 = super::upgraded(kind, v1.as_object().unwrap()).unwrap();
    assert_eq!(
        v2["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"],
        5
    );
    assert_eq!(super::upgraded(kind, &v2), None);
}
