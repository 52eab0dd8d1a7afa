//! Reads and writes the `spec` of a service.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::object::Object;

pub(crate) type Members = Map<String, Value>;

pub(crate) fn members(service: &Object) -> Members {
    let spec = service.get("spec").and_then(Value::as_object);
    spec.cloned().unwrap_or_default()
}

pub(crate) fn text<'a>(spec: &'a Members, name: &str) -> &'a str {
    spec.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn texts(spec: &Members, name: &str) -> Vec<String> {
    let list = spec.get(name).and_then(Value::as_array);
    let texts = list.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

pub(crate) fn set_texts(spec: &mut Members, name: &str, texts: &[String]) {
    if texts.is_empty() {
        spec.remove(name);
    } else {
        spec.insert(name.to_owned(), json!(texts));
    }
}

pub(crate) fn number(members: &Members, name: &str) -> i64 {
    members.get(name).and_then(Value::as_i64).unwrap_or(0)
}

pub(crate) fn needs_address(spec: &Members) -> bool {
    text(spec, "type") != "ExternalName"
}

pub(crate) fn is_balancer(spec: &Members) -> bool {
    text(spec, "type") == "LoadBalancer"
}

/// Returns whether the ports have node ports, or are those of a load balancer that has none.
pub(crate) fn has_node_ports(spec: &Members) -> bool {
    matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
}

/// Returns whether ports without node ports get some.
pub(crate) fn allocates_node_ports(spec: &Members) -> bool {
    has_node_ports(spec)
        && !(is_balancer(spec) && spec.get("allocateLoadBalancerNodePorts") == Some(&json!(false)))
}

pub(crate) fn needs_health_port(spec: &Members) -> bool {
    is_balancer(spec) && text(spec, "externalTrafficPolicy") == "Local"
}

/// Returns whether the service has no address and no selector, so that its families are open.
pub(crate) fn is_without_selector(spec: &Members) -> bool {
    let selector = spec.get("selector").and_then(Value::as_object);
    text(spec, "clusterIP") == "None" && selector.is_none_or(Members::is_empty)
}

pub(crate) fn ports(spec: &Members) -> impl Iterator<Item = &Members> {
    let ports = spec.get("ports").and_then(Value::as_array);
    ports.into_iter().flatten().filter_map(Value::as_object)
}

pub(crate) fn ports_mut(spec: &mut Members) -> impl Iterator<Item = &mut Members> {
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    ports.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Returns the node ports, without that of health checks.
pub(crate) fn node_ports(spec: &Members) -> BTreeSet<i64> {
    let ports = ports(spec).map(|port| number(port, "nodePort"));
    ports.filter(|port| *port != 0).collect()
}
