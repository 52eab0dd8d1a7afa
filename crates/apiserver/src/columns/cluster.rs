//! Defines the printer columns of the kinds that configure a cluster: admission, storage, network, devices and
//! quotas.
//!
//! Guarantees: order and cells match Kubernetes' printers.

use serde_json::{Value, json};

use super::cell::{
    AGE, Column, NAME, NONE, at, column, count, human_duration, joined, list, none_if_empty,
    or_none, size, string,
};
use super::shortened;
use crate::object::Object;

/// Text of an optional field without a value.
const UNSET: &str = "<unset>";

pub(crate) const API_SERVICES: &[Column] = &[
    NAME,
    column("Service", |it, _| json!(service(it))),
    column("Available", |it, _| json!(available(it))),
    AGE,
];
pub(crate) const COMPONENT_STATUSES: &[Column] = &[
    NAME,
    column("Status", |it, _| {
        let healthy = condition(&list(it, "/conditions"), "Healthy")["status"].clone();
        json!(match healthy.as_str() {
            None => "Unknown",
            Some("True") => "Healthy",
            Some(_) => "Unhealthy",
        })
    }),
    column("Message", |it, _| health(it, "message")),
    column("Error", |it, _| health(it, "error")),
];
pub(crate) const RESOURCE_QUOTAS: &[Column] = &[
    NAME,
    column("Request", |it, _| json!(quota(it, false))),
    column("Limit", |it, _| json!(quota(it, true))),
    AGE,
];
pub(crate) const WEBHOOK_CONFIGURATIONS: &[Column] = &[
    NAME,
    column("Webhooks", |it, _| json!(size(it, "/webhooks"))),
    AGE,
];
pub(crate) const VALIDATING_POLICIES: &[Column] = &[
    NAME,
    column("Validations", |it, _| json!(size(it, "/spec/validations"))),
    PARAM_KIND,
    AGE,
];
pub(crate) const MUTATING_POLICIES: &[Column] = &[
    NAME,
    column("Mutations", |it, _| json!(size(it, "/spec/mutations"))),
    PARAM_KIND,
    AGE,
];
const PARAM_KIND: Column = column("ParamKind", |it, _| match at(it, "/spec/paramKind") {
    Value::Object(_) => {
        let (version, kind) = ("/spec/paramKind/apiVersion", "/spec/paramKind/kind");
        json!(format!("{}/{}", string(it, version), string(it, kind)))
    }
    _ => json!(UNSET),
});
pub(crate) const POLICY_BINDINGS: &[Column] = &[
    NAME,
    column("PolicyName", |it, _| at(it, "/spec/policyName")),
    column("ParamRef", |it, _| json!(param_ref(it))),
    AGE,
];
pub(crate) const SIGNING_REQUESTS: &[Column] = &[
    NAME,
    AGE,
    column("SignerName", |it, _| or_none(at(it, "/spec/signerName"))),
    column("Requestor", |it, _| at(it, "/spec/username")),
    column("RequestedDuration", |it, _| {
        let seconds = at(it, "/spec/expirationSeconds").as_i64();
        json!(seconds.map_or_else(|| NONE.to_owned(), human_duration))
    }),
    column("Condition", |it, _| json!(signing_state(it))),
];
pub(crate) const ENDPOINT_SLICES: &[Column] = &[
    NAME,
    column("AddressType", |it, _| at(it, "/addressType")),
    column("Ports", |it, _| json!(slice_ports(it))),
    column("Endpoints", |it, _| {
        let endpoints = list(it, "/endpoints");
        let addresses = endpoints.iter().filter_map(|it| it["addresses"].as_array());
        let addresses = addresses.flatten().filter_map(Value::as_str);
        json!(unset_if_empty(
            &addresses.map(str::to_owned).collect::<Vec<_>>()
        ))
    }),
    AGE,
];
pub(crate) const FLOW_SCHEMAS: &[Column] = &[
    NAME,
    column("PriorityLevel", |it, _| {
        at(it, "/spec/priorityLevelConfiguration/name")
    }),
    column("MatchingPrecedence", |it, _| {
        json!(count(it, "/spec/matchingPrecedence"))
    }),
    column("DistinguisherMethod", |it, _| {
        or_none(at(it, "/spec/distinguisherMethod/type"))
    }),
    AGE,
    column("MissingPL", |it, _| {
        let conditions = list(it, "/status/conditions");
        match condition(&conditions, "Dangling")["status"].as_str() {
            Some(status) => json!(status),
            None => json!("?"),
        }
    }),
];
pub(crate) const PRIORITY_LEVELS: &[Column] = &[
    NAME,
    column("Type", |it, _| at(it, "/spec/type")),
    column("NominalConcurrencyShares", |it, _| {
        or_none(at(it, "/spec/limited/nominalConcurrencyShares"))
    }),
    column("Queues", |it, _| queuing(it, "queues")),
    column("HandSize", |it, _| queuing(it, "handSize")),
    column("QueueLengthLimit", |it, _| queuing(it, "queueLengthLimit")),
    AGE,
];
/// Kubernetes has no column for the last cell.
pub(crate) const IP_ADDRESSES: &[Column] =
    &[NAME, column("ParentRef", |it, _| json!(parent(it))), AGE];
pub(crate) const SERVICE_CIDRS: &[Column] = &[
    NAME,
    column("CIDRs", |it, _| json!(joined(&list(it, "/spec/cidrs"), ""))),
    AGE,
];
pub(crate) const RUNTIME_CLASSES: &[Column] =
    &[NAME, column("Handler", |it, _| at(it, "/handler")), AGE];
pub(crate) const PRIORITY_CLASSES: &[Column] = &[
    NAME,
    column("Value", |it, _| json!(count(it, "/value"))),
    column("Global-Default", |it, _| {
        json!(is_set(it, "/globalDefault"))
    }),
    AGE,
    column("PreemptionPolicy", |it, _| at(it, "/preemptionPolicy")),
];
pub(crate) const RESOURCE_CLAIMS: &[Column] =
    &[NAME, column("State", |it, _| json!(claim_state(it))), AGE];
pub(crate) const RESOURCE_SLICES: &[Column] = &[
    NAME,
    column("Node", |it, _| at(it, "/spec/nodeName")),
    column("Driver", |it, _| at(it, "/spec/driver")),
    column("Pool", |it, _| at(it, "/spec/pool/name")),
    AGE,
];
pub(crate) const CSI_DRIVERS: &[Column] = &[
    NAME,
    column("AttachRequired", |it, _| {
        json!(at(it, "/spec/attachRequired") != false)
    }),
    column("PodInfoOnMount", |it, _| {
        json!(is_set(it, "/spec/podInfoOnMount"))
    }),
    column("StorageCapacity", |it, _| {
        json!(is_set(it, "/spec/storageCapacity"))
    }),
    column("TokenRequests", |it, _| {
        match at(it, "/spec/tokenRequests").as_array() {
            Some(requests) => json!(joined(requests, "/audience")),
            None => json!(UNSET),
        }
    }),
    column("RequiresRepublish", |it, _| {
        json!(is_set(it, "/spec/requiresRepublish"))
    }),
    column("Modes", |it, _| {
        let modes = list(it, "/spec/volumeLifecycleModes");
        json!(none_if_empty(joined(&modes, "")))
    }),
    AGE,
];
pub(crate) const CSI_NODES: &[Column] = &[
    NAME,
    column("Drivers", |it, _| json!(size(it, "/spec/drivers"))),
    AGE,
];
pub(crate) const VOLUME_ATTACHMENTS: &[Column] = &[
    NAME,
    column("Attacher", |it, _| at(it, "/spec/attacher")),
    column("PV", |it, _| at(it, "/spec/source/persistentVolumeName")),
    column("Node", |it, _| at(it, "/spec/nodeName")),
    column("Attached", |it, _| json!(is_set(it, "/status/attached"))),
    AGE,
];
pub(crate) const VOLUME_ATTRIBUTES_CLASSES: &[Column] = &[
    NAME,
    column("DriverName", |it, _| at(it, "/driverName")),
    AGE,
];

fn is_set(object: &Object, pointer: &str) -> bool {
    at(object, pointer) == true
}

/// Returns the condition of this type, or null.
fn condition(conditions: &[Value], name: &str) -> Value {
    let mut conditions = conditions.iter();
    let found = conditions.find(|condition| condition["type"] == name);
    found.cloned().unwrap_or_default()
}

fn service(api_service: &Object) -> String {
    match at(api_service, "/spec/service") {
        Value::Object(service) => {
            let part = |name: &str| {
                service
                    .get(name)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            format!("{}/{}", part("namespace"), part("name"))
        }
        _ => "Local".to_owned(),
    }
}

fn available(api_service: &Object) -> String {
    let available = condition(&list(api_service, "/status/conditions"), "Available");
    let status = available["status"].as_str().unwrap_or("Unknown");
    match available["reason"].as_str() {
        Some(reason) if status != "True" && !reason.is_empty() => format!("{status} ({reason})"),
        _ => status.to_owned(),
    }
}

fn health(component: &Object, member: &str) -> Value {
    let healthy = condition(&list(component, "/conditions"), "Healthy");
    json!(healthy[member].as_str().unwrap_or_default())
}

/// Returns the used and hard amounts of the limits, or of all other resources.
fn quota(quota: &Object, limits: bool) -> String {
    let (hard, used) = (at(quota, "/status/hard"), at(quota, "/status/used"));
    let amount = |value: &Value| value.as_str().unwrap_or("0").to_owned();
    let hard = hard.as_object().into_iter().flatten();
    let hard = hard.filter(|(name, _)| name.starts_with("limits.") == limits);
    let shown =
        hard.map(|(name, hard)| format!("{name}: {}/{}", amount(&used[name]), amount(hard)));
    shown.collect::<Vec<_>>().join(", ")
}

fn param_ref(binding: &Object) -> String {
    let param = at(binding, "/spec/paramRef");
    let part = |member: &str| param[member].as_str().unwrap_or_default();
    match (part("namespace"), part("name"), &param["selector"]) {
        (_, "", selector @ Value::Object(_)) => selector_text(selector),
        (_, "", _) => UNSET.to_owned(),
        ("", name, _) => format!("*/{name}"),
        (namespace, name, _) => format!("{namespace}/{name}"),
    }
}

/// Returns a label selector in the format of its Go method `String`.
fn selector_text(selector: &Value) -> String {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let labels: Vec<String> = labels
        .map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default()))
        .collect();
    let terms = selector["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten();
    let terms: Vec<String> = terms
        .map(|term| {
            let values = term["values"].as_array().into_iter().flatten();
            let values: Vec<&str> = values.filter_map(Value::as_str).collect();
            let part = |member: &str| term[member].as_str().unwrap_or_default();
            let (key, operator, values) = (part("key"), part("operator"), values.join(" "));
            format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
        })
        .collect();
    let (labels, terms) = (labels.concat(), terms.concat());
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{terms}}},}}"
    )
}

fn signing_state(request: &Object) -> String {
    let conditions = list(request, "/status/conditions");
    let has = |name: &str| conditions.iter().any(|condition| condition["type"] == name);
    let mut state = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        state.push_str(",Failed");
    }
    if at(request, "/status/certificate") != "" {
        state.push_str(",Issued");
    }
    state
}

fn slice_ports(slice: &Object) -> String {
    let ports = list(slice, "/ports");
    let ports = ports.iter().map(|port| {
        let number = port["port"].as_i64().map(|port| port.to_string());
        let name = || port["name"].as_str().map(str::to_owned);
        number.or_else(name).unwrap_or_else(|| "*".to_owned())
    });
    unset_if_empty(&ports.collect::<Vec<_>>())
}

fn unset_if_empty(texts: &[String]) -> String {
    let shown = shortened(texts, "...");
    if shown.is_empty() {
        return UNSET.to_owned();
    }
    shown
}

fn queuing(level: &Object, member: &str) -> Value {
    let pointer = format!("/spec/limited/limitResponse/queuing/{member}");
    or_none(at(level, &pointer))
}

fn parent(address: &Object) -> String {
    let parent = at(address, "/spec/parentRef");
    if !parent.is_object() {
        return NONE.to_owned();
    }
    let part = |member: &str| parent[member].as_str().unwrap_or_default();
    let resource = match part("group") {
        "" => part("resource").to_lowercase(),
        group => format!("{}.{group}", part("resource")).to_lowercase(),
    };
    let parts = [resource.as_str(), part("namespace"), part("name")];
    let shown = |(at, text): &(usize, &str)| *at != 1 || !text.is_empty();
    let parts = parts.into_iter().enumerate().filter(shown);
    parts.map(|(_, text)| text).collect::<Vec<_>>().join("/")
}

fn claim_state(claim: &Object) -> String {
    let allocated = at(claim, "/status/allocation").is_object();
    let states = [
        ("deleted", claim.is_deleting()),
        ("pending", !allocated && !claim.is_deleting()),
        ("allocated", allocated),
        (
            "reserved",
            allocated && size(claim, "/status/reservedFor") > 0,
        ),
    ];
    let states = states.into_iter().filter(|(_, is)| *is);
    states.map(|(state, _)| state).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: &Value) -> Object {
        Object::stored(value.as_object().cloned().unwrap_or_default())
    }

    fn shown(columns: &[Column], value: &Value) -> Vec<Value> {
        let now = jiff::Timestamp::UNIX_EPOCH;
        let own = columns
            .iter()
            .filter(|it| !["Name", "Age"].contains(&it.name));
        own.map(|column| (column.cell)(&object(value), now))
            .collect()
    }

    #[test]
    fn cells_have_the_texts_of_kubernetes_printers() {
        for (columns, value, expected) in [
            (
                ENDPOINT_SLICES,
                json!({"addressType": "IPv4", "ports": [{"port": 80}, {"name": "a"}, {}, {"port": 1}],
                    "endpoints": [{"addresses": ["10.0.0.1"]}]}),
                json!(["IPv4", "80,a,* + 1 more...", "10.0.0.1"]),
            ),
            (
                ENDPOINT_SLICES,
                json!({}),
                json!(["", "<unset>", "<unset>"]),
            ),
            (
                RESOURCE_QUOTAS,
                json!({"status": {"hard": {"pods": "2", "limits.cpu": "1", "cpu": "3"}, "used": {"pods": "1"}}}),
                json!(["cpu: 0/3, pods: 1/2", "limits.cpu: 0/1"]),
            ),
            (
                SIGNING_REQUESTS,
                json!({"spec": {"expirationSeconds": 3600}, "status": {"certificate": "eA==",
                    "conditions": [{"type": "Approved"}, {"type": "Failed"}]}}),
                json!([NONE, "", "60m", "Approved,Failed,Issued"]),
            ),
            (
                POLICY_BINDINGS,
                json!({"spec": {"policyName": "p", "paramRef": {"selector": {"matchLabels": {"a": "b"}}}}}),
                json!([
                    "p",
                    "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{},}"
                ]),
            ),
            (
                POLICY_BINDINGS,
                json!({"spec": {"paramRef": {"name": "n"}}}),
                json!(["", "*/n"]),
            ),
            (API_SERVICES, json!({}), json!(["Local", "Unknown"])),
            (
                API_SERVICES,
                json!({"spec": {"service": {"namespace": "a", "name": "b"}},
                    "status": {"conditions": [{"type": "Available", "status": "False", "reason": "R"}]}}),
                json!(["a/b", "False (R)"]),
            ),
            (
                CSI_DRIVERS,
                json!({"spec": {"tokenRequests": [{"audience": "a"}, {"audience": "b"}]}}),
                json!([true, false, false, "a,b", false, NONE]),
            ),
            (
                IP_ADDRESSES,
                json!({"spec": {"parentRef": {"resource": "services", "namespace": "n", "name": "s"}}}),
                json!(["services/n/s"]),
            ),
            (
                RESOURCE_CLAIMS,
                json!({"status": {"allocation": {}, "reservedFor": [{}]}}),
                json!(["allocated,reserved"]),
            ),
            (FLOW_SCHEMAS, json!({}), json!(["", 0, NONE, "?"])),
            (
                PRIORITY_LEVELS,
                json!({"spec": {"limited": {"nominalConcurrencyShares": 5}}}),
                json!(["", 5, NONE, NONE, NONE]),
            ),
        ] {
            assert_eq!(json!(shown(columns, &value)), expected, "{value}");
        }
    }
}
