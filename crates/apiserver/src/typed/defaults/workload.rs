//! Defaults of workloads, policies and requests for devices that depend on other fields.

use serde_json::{Value, json};

use super::{Members, default_to, has, object, text};

pub(super) fn deployment_strategy(strategy: &mut Members) {
    if text(strategy, "type").is_empty() {
        strategy.insert("type".to_owned(), json!("RollingUpdate"));
    }
    if text(strategy, "type") == "RollingUpdate"
        && let Some(update) = object(strategy, "rollingUpdate")
    {
        default_to(update, "maxUnavailable", json!("25%"));
        default_to(update, "maxSurge", json!("25%"));
    }
}

pub(super) fn daemon_set_strategy(strategy: &mut Members) {
    if text(strategy, "type").is_empty() {
        strategy.insert("type".to_owned(), json!("RollingUpdate"));
    }
    if text(strategy, "type") == "RollingUpdate"
        && let Some(update) = object(strategy, "rollingUpdate")
    {
        default_to(update, "maxUnavailable", json!(1));
        default_to(update, "maxSurge", json!(0));
    }
}

pub(super) fn stateful_set_strategy(strategy: &mut Members) {
    if text(strategy, "type").is_empty() {
        strategy.insert("type".to_owned(), json!("RollingUpdate"));
        default_to(strategy, "rollingUpdate", json!({}));
    }
    if text(strategy, "type") == "RollingUpdate"
        && let Some(Value::Object(update)) = strategy.get_mut("rollingUpdate")
    {
        default_to(update, "partition", json!(0));
    }
}

/// Sets the kind of the templates of claims. In Kubernetes, the conversion of a stateful set does.
pub(super) fn claim_templates(spec: &mut Members) {
    let templates = spec
        .get_mut("volumeClaimTemplates")
        .and_then(Value::as_array_mut);
    let templates = templates.into_iter().flatten();
    for template in templates.filter_map(Value::as_object_mut) {
        template.insert("apiVersion".to_owned(), json!("v1"));
        template.insert("kind".to_owned(), json!("PersistentVolumeClaim"));
    }
}

pub(super) fn replication_controller(controller: &mut Members) {
    let labels = controller
        .get("spec")
        .map(|spec| &spec["template"]["metadata"]["labels"]);
    let Some(labels) = labels.filter(|labels| labels.is_object()).cloned() else {
        return;
    };
    if let Some(spec) = object(controller, "spec") {
        set_map(spec, "selector", &labels);
    }
    if let Some(metadata) = object(controller, "metadata") {
        set_map(metadata, "labels", &labels);
    }
}

/// Sets a map if it is empty.
fn set_map(members: &mut Members, name: &str, map: &Value) {
    let known = members.get(name).and_then(Value::as_object);
    if known.is_none_or(Members::is_empty) {
        members.insert(name.to_owned(), map.clone());
    }
}

pub(super) fn job(job: &mut Members) {
    let Some(spec) = object(job, "spec") else {
        return;
    };
    if !has(spec, "completions") && !has(spec, "parallelism") {
        spec.insert("completions".to_owned(), json!(1));
    }
    default_to(spec, "parallelism", json!(1));
    let limit = if has(spec, "backoffLimitPerIndex") {
        i32::MAX
    } else {
        6
    };
    default_to(spec, "backoffLimit", json!(limit));
    default_to(spec, "completionMode", json!("NonIndexed"));
    default_to(spec, "suspend", json!(false));
    let replacement = if has(spec, "podFailurePolicy") {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    default_to(spec, "podReplacementPolicy", json!(replacement));
    default_to(spec, "manualSelector", json!(false));
    let labels = spec
        .get("template")
        .map(|template| &template["metadata"]["labels"]);
    let labels = labels.filter(|labels| labels.is_object()).cloned();
    if let (Some(labels), Some(metadata)) = (labels, object(job, "metadata")) {
        set_map(metadata, "labels", &labels);
    }
}

pub(super) fn scaling_behavior(behavior: &mut Members) {
    let up = json!({
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ],
    });
    let down = json!({
        "selectPolicy": "Max",
        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
    });
    for (name, defaults) in [("scaleUp", up), ("scaleDown", down)] {
        let (Some(rules), Value::Object(defaults)) = (object(behavior, name), defaults) else {
            continue;
        };
        for (member, default) in defaults {
            default_to(rules, &member, default);
        }
    }
}

pub(super) fn network_policy(spec: &mut Members) {
    let types = spec.get("policyTypes").and_then(Value::as_array);
    if types.is_some_and(|types| !types.is_empty()) {
        return;
    }
    let egress = spec.get("egress").and_then(Value::as_array);
    let types = if egress.is_some_and(|rules| !rules.is_empty()) {
        json!(["Ingress", "Egress"])
    } else {
        json!(["Ingress"])
    };
    spec.insert("policyTypes".to_owned(), types);
}

pub(super) fn subject(subject: &mut Members) {
    if text(subject, "apiGroup").is_empty() && matches!(text(subject, "kind"), "User" | "Group") {
        let group = json!("rbac.authorization.k8s.io");
        subject.insert("apiGroup".to_owned(), group);
    }
}

pub(super) fn device_request(request: &mut Members) {
    if text(request, "allocationMode").is_empty() {
        request.insert("allocationMode".to_owned(), json!("ExactCount"));
    }
    let count = request.get("count").and_then(Value::as_i64).unwrap_or(0);
    if text(request, "allocationMode") == "ExactCount" && count == 0 {
        request.insert("count".to_owned(), json!(1));
    }
}
