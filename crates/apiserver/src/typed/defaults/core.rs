//! Defaults of pods, volumes, services and nodes that depend on other fields.

use serde_json::{Value, json};

use super::image::pull_policy;
use super::{Members, default_to, has, object, text};

pub(super) fn container(container: &mut Members) {
    if text(container, "imagePullPolicy").is_empty() {
        let policy = pull_policy(text(container, "image"));
        container.insert("imagePullPolicy".to_owned(), json!(policy));
    }
}

pub(super) fn image_volume(volume: &mut Members) {
    if text(volume, "pullPolicy").is_empty() {
        let policy = pull_policy(text(volume, "reference"));
        volume.insert("pullPolicy".to_owned(), json!(policy));
    }
}

pub(super) fn volume(volume: &mut Members) {
    let mut sources = volume.iter().filter(|(name, _)| *name != "name");
    if sources.all(|(_, source)| source.is_null()) {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
}

pub(super) fn pod(pod: &mut Members) {
    let Some(spec) = object(pod, "spec") else {
        return;
    };
    let uses_host = spec.get("hostNetwork") == Some(&json!(true));
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let Some(container) = container.as_object_mut() else {
                continue;
            };
            if let Some(Value::Object(resources)) = container.get_mut("resources") {
                copy_missing(resources, "limits", "requests");
            }
            if uses_host {
                set_host_ports(container);
            }
        }
    }
    default_to(spec, "enableServiceLinks", json!(true));
}

/// Copies the quantities of one member to another, if it is absent there.
fn copy_missing(members: &mut Members, from: &str, to: &str) {
    let Some(Value::Object(found)) = members.get(from).cloned() else {
        return;
    };
    if let Some(target) = object(members, to) {
        for (name, quantity) in found {
            target.entry(name).or_insert(quantity);
        }
    }
}

/// Sets the ports of the host to those of the container.
fn set_host_ports(container: &mut Members) {
    let ports = container.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        let of_host = port.get("hostPort").and_then(Value::as_i64).unwrap_or(0);
        if let Some(number) = port.get("containerPort").cloned().filter(|_| of_host == 0) {
            port.insert("hostPort".to_owned(), number);
        }
    }
}

pub(super) fn service(service: &mut Members) {
    let Some(spec) = object(service, "spec") else {
        return;
    };
    for (name, value) in [("sessionAffinity", "None"), ("type", "ClusterIP")] {
        if text(spec, name).is_empty() {
            spec.insert(name.to_owned(), json!(value));
        }
    }
    match text(spec, "sessionAffinity") {
        "None" => drop(spec.remove("sessionAffinityConfig")),
        "ClientIP" => {
            let config = spec.get("sessionAffinityConfig").unwrap_or(&Value::Null);
            if config["clientIP"]["timeoutSeconds"].is_null() {
                let config = json!({"clientIP": {"timeoutSeconds": 10_800}});
                spec.insert("sessionAffinityConfig".to_owned(), config);
            }
        }
        _ => {}
    }
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        if text(port, "protocol").is_empty() {
            port.insert("protocol".to_owned(), json!("TCP"));
        }
        let target = port.get("targetPort");
        if target.is_none_or(|target| target.is_null() || *target == 0 || *target == "") {
            let number = port.get("port").cloned().unwrap_or(json!(0));
            port.insert("targetPort".to_owned(), number);
        }
    }
    if is_external(spec) && text(spec, "externalTrafficPolicy").is_empty() {
        spec.insert("externalTrafficPolicy".to_owned(), json!("Cluster"));
    }
    if matches!(
        text(spec, "type"),
        "NodePort" | "LoadBalancer" | "ClusterIP"
    ) {
        default_to(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    if text(spec, "type") == "LoadBalancer" {
        default_to(spec, "allocateLoadBalancerNodePorts", json!(true));
        set_ip_modes(service);
    }
}

/// Returns whether the `spec` of a service makes it accessible from outside of the cluster (`ExternallyAccessible`).
pub(crate) fn is_external(spec: &Members) -> bool {
    let addresses = spec.get("externalIPs").and_then(Value::as_array);
    match text(spec, "type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => addresses.is_some_and(|addresses| !addresses.is_empty()),
        _ => false,
    }
}

fn set_ip_modes(service: &mut Members) {
    let status = service.get_mut("status").and_then(Value::as_object_mut);
    let ingress = status.and_then(|status| status.get_mut("loadBalancer")?.get_mut("ingress"));
    let ingress = ingress.and_then(Value::as_array_mut);
    for point in ingress
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        if !text(point, "ip").is_empty() {
            default_to(point, "ipMode", json!("VIP"));
        }
    }
}

pub(super) fn persistent_volume(volume: &mut Members) {
    if let Some(status) = object(volume, "status")
        && text(status, "phase").is_empty()
    {
        status.insert("phase".to_owned(), json!("Pending"));
    }
    if let Some(spec) = object(volume, "spec") {
        if text(spec, "persistentVolumeReclaimPolicy").is_empty() {
            let policy = json!("Retain");
            spec.insert("persistentVolumeReclaimPolicy".to_owned(), policy);
        }
        default_to(spec, "volumeMode", json!("Filesystem"));
    }
}

pub(super) fn namespace(namespace: &mut Members) {
    let Some(metadata) = object(namespace, "metadata") else {
        return;
    };
    let name = text(metadata, "name").to_owned();
    if !name.is_empty()
        && let Some(labels) = object(metadata, "labels")
    {
        labels.insert("kubernetes.io/metadata.name".to_owned(), json!(name));
    }
}

pub(super) fn node_status(status: &mut Members) {
    if !has(status, "allocatable")
        && let Some(capacity) = status.get("capacity").cloned()
    {
        status.insert("allocatable".to_owned(), capacity);
    }
}

pub(super) fn limit_range_item(item: &mut Members) {
    if text(item, "type") != "Container" {
        return;
    }
    copy_missing(item, "max", "default");
    copy_missing(item, "default", "defaultRequest");
    copy_missing(item, "min", "defaultRequest");
}
