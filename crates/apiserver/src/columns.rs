//! Defines the printer columns of each kind: the columns that `kubectl get` shows.
//!
//! Guarantees:
//! - The columns and cells of built-in kinds are those of Kubernetes' printers; [`described`] has the columns'
//!   types, formats, priorities and descriptions.
//! - A custom kind has the columns of its `CustomResourceDefinition`, or Name and Age ([`defined`]).

mod cell;
pub(crate) mod cluster;
pub(crate) mod defined;
pub(crate) mod described;
mod path;
mod pod;
pub(crate) mod workload;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::Object;

use cell::{
    AGE, NAME, NONE, at, column, count, joined, labels, list, none_if_empty, or, or_none, selector,
    since, size, string,
};

pub(crate) use cell::Column;

const CREATED_AT: Column = column("Created At", |it, _| json!(it.text("creationTimestamp")));

pub(crate) const ANY: &[Column] = &[NAME, AGE];
pub(crate) const DATED: &[Column] = &[NAME, CREATED_AT];
pub(crate) const NAMESPACES: &[Column] =
    &[NAME, column("Status", |it, _| at(it, "/status/phase")), AGE];
pub(crate) const CONFIG_MAPS: &[Column] = &[
    NAME,
    column("Data", |it, _| {
        json!(size(it, "/data") + size(it, "/binaryData"))
    }),
    AGE,
];
pub(crate) const SECRETS: &[Column] = &[
    NAME,
    column("Type", |it, _| or(at(it, "/type"), "Opaque")),
    column("Data", |it, _| json!(size(it, "/data"))),
    AGE,
];
pub(crate) const SERVICES: &[Column] = &[
    NAME,
    column("Type", |it, _| or(at(it, "/spec/type"), "ClusterIP")),
    column("Cluster-IP", |it, _| or_none(at(it, "/spec/clusterIPs/0"))),
    column("External-IP", |it, _| json!(external_ip(it))),
    column("Port(s)", |it, _| json!(service_ports(it))),
    AGE,
    column("Selector", |it, _| json!(labels(&at(it, "/spec/selector")))),
];
pub(crate) const ENDPOINTS: &[Column] =
    &[NAME, column("Endpoints", |it, _| json!(endpoints(it))), AGE];
pub(crate) const INGRESSES: &[Column] = &[
    NAME,
    column("Class", |it, _| or_none(at(it, "/spec/ingressClassName"))),
    column("Hosts", |it, _| json!(hosts(it))),
    column("Address", |it, _| json!(load_balancers(it))),
    column("Ports", |it, _| {
        let tls = size(it, "/spec/tls") > 0;
        json!(if tls { "80, 443" } else { "80" })
    }),
    AGE,
];
pub(crate) const INGRESS_CLASSES: &[Column] = &[
    column("Name", |it, _| {
        json!(default_name(
            it,
            &["ingressclass.kubernetes.io/is-default-class"]
        ))
    }),
    column("Controller", |it, _| at(it, "/spec/controller")),
    column("Parameters", |it, _| json!(class_parameters(it))),
    AGE,
];
pub(crate) const NETWORK_POLICIES: &[Column] = &[
    NAME,
    column("Pod-Selector", |it, _| {
        json!(selector(&at(it, "/spec/podSelector")))
    }),
    AGE,
];
pub(crate) const PERSISTENT_VOLUMES: &[Column] = &[
    NAME,
    column("Capacity", |it, _| at(it, "/spec/capacity/storage")),
    column("Access Modes", |it, _| {
        json!(access_modes(it, "/spec/accessModes"))
    }),
    column("Reclaim Policy", |it, _| {
        or(at(it, "/spec/persistentVolumeReclaimPolicy"), "Retain")
    }),
    column("Status", |it, _| json!(phase(it))),
    column("Claim", |it, _| json!(claim(it))),
    column("StorageClass", |it, _| at(it, "/spec/storageClassName")),
    VOLUME_ATTRIBUTES_CLASS,
    column("Reason", |it, _| at(it, "/status/reason")),
    AGE,
    VOLUME_MODE,
];
pub(crate) const PERSISTENT_VOLUME_CLAIMS: &[Column] = &[
    NAME,
    column("Status", |it, _| json!(phase(it))),
    column("Volume", |it, _| at(it, "/spec/volumeName")),
    column("Capacity", |it, _| match at(it, "/spec/volumeName") {
        volume if volume == "" => volume,
        _ => at(it, "/status/capacity/storage"),
    }),
    column("Access Modes", |it, _| match at(it, "/spec/volumeName") {
        volume if volume == "" => volume,
        _ => json!(access_modes(it, "/status/accessModes")),
    }),
    column("StorageClass", |it, _| at(it, "/spec/storageClassName")),
    VOLUME_ATTRIBUTES_CLASS,
    AGE,
    VOLUME_MODE,
];
const VOLUME_ATTRIBUTES_CLASS: Column = column("VolumeAttributesClass", |it, _| {
    or(at(it, "/spec/volumeAttributesClassName"), "<unset>")
});
const VOLUME_MODE: Column = column("VolumeMode", |it, _| {
    or(at(it, "/spec/volumeMode"), "Filesystem")
});
pub(crate) const STORAGE_CLASSES: &[Column] = &[
    column("Name", |it, _| {
        let annotations = [
            "storageclass.kubernetes.io/is-default-class",
            "storageclass.beta.kubernetes.io/is-default-class",
        ];
        json!(default_name(it, &annotations))
    }),
    column("Provisioner", |it, _| at(it, "/provisioner")),
    column("ReclaimPolicy", |it, _| {
        or(at(it, "/reclaimPolicy"), "Delete")
    }),
    column("VolumeBindingMode", |it, _| {
        or(at(it, "/volumeBindingMode"), "Immediate")
    }),
    column("AllowVolumeExpansion", |it, _| {
        json!(at(it, "/allowVolumeExpansion") == true)
    }),
    AGE,
];
pub(crate) const EVENTS: &[Column] = &[
    column("Last Seen", |it, now| json!(last_seen(it, now))),
    column("Type", |it, _| at(it, "/type")),
    column("Reason", |it, _| at(it, "/reason")),
    column("Object", |it, _| json!(event_object(it))),
    column("Subobject", |it, _| subject(it)["fieldPath"].clone()),
    column("Source", |it, _| json!(event_source(it))),
    column("Message", |it, _| {
        json!(either(it, "/message", "/note").as_str().map(str::trim))
    }),
    column("First Seen", |it, now| json!(first_seen(it, now))),
    column("Count", |it, _| json!(event_count(it))),
    NAME,
];
pub(crate) const AUTOSCALERS: &[Column] = &[
    NAME,
    column("Reference", |it, _| {
        let target = |member| string(it, &format!("/spec/scaleTargetRef/{member}"));
        json!(format!("{}/{}", target("kind"), target("name")))
    }),
    column("Targets", |it, _| json!(targets(it))),
    column("MinPods", |it, _| match at(it, "/spec/minReplicas") {
        Value::Number(least) => json!(least.to_string()),
        _ => json!("<unset>"),
    }),
    column("MaxPods", |it, _| json!(count(it, "/spec/maxReplicas"))),
    column("Replicas", |it, _| {
        json!(count(it, "/status/currentReplicas"))
    }),
    AGE,
];
pub(crate) const DISRUPTION_BUDGETS: &[Column] = &[
    NAME,
    column("Min Available", |it, _| {
        amount(&at(it, "/spec/minAvailable"))
    }),
    column("Max Unavailable", |it, _| {
        amount(&at(it, "/spec/maxUnavailable"))
    }),
    column("Allowed Disruptions", |it, _| {
        json!(count(it, "/status/disruptionsAllowed"))
    }),
    AGE,
];
pub(crate) const LEASES: &[Column] = &[
    NAME,
    column("Holder", |it, _| at(it, "/spec/holderIdentity")),
    AGE,
];
pub(crate) const BINDINGS: &[Column] = &[
    NAME,
    column("Role", |it, _| {
        let (kind, name) = (string(it, "/roleRef/kind"), string(it, "/roleRef/name"));
        json!(format!("{kind}/{name}"))
    }),
    AGE,
    column("Users", |it, _| json!(subjects(it, "User"))),
    column("Groups", |it, _| json!(subjects(it, "Group"))),
    column("ServiceAccounts", |it, _| {
        json!(subjects(it, "ServiceAccount"))
    }),
];

/// Returns `Terminating` for an object that is being deleted, otherwise its `status.phase`.
fn phase(object: &Object) -> String {
    if object.is_deleting() {
        return "Terminating".to_owned();
    }
    string(object, "/status/phase")
}

fn external_ip(service: &Object) -> String {
    let own = joined(&list(service, "/spec/externalIPs"), "");
    match string(service, "/spec/type").as_str() {
        "ExternalName" => string(service, "/spec/externalName"),
        "LoadBalancer" => match (load_balancers(service), own) {
            (given, own) if given.is_empty() && own.is_empty() => "<pending>".to_owned(),
            (given, own) if given.is_empty() || own.is_empty() => given + &own,
            (given, own) => format!("{given},{own}"),
        },
        _ => none_if_empty(own),
    }
}

fn load_balancers(object: &Object) -> String {
    let given = list(object, "/status/loadBalancer/ingress");
    let addresses = given.iter().filter_map(|it| {
        let address = it["ip"].as_str().filter(|ip| !ip.is_empty());
        address.or(it["hostname"].as_str())
    });
    addresses.collect::<Vec<_>>().join(",")
}

fn service_ports(service: &Object) -> String {
    let ports = list(service, "/spec/ports");
    let ports: Vec<String> = ports
        .iter()
        .map(|port| {
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            match port["nodePort"].as_i64().filter(|node| *node > 0) {
                Some(node) => format!("{}:{node}/{protocol}", port["port"]),
                None => format!("{}/{protocol}", port["port"]),
            }
        })
        .collect();
    none_if_empty(ports.join(","))
}

/// Joins up to three texts with commas and counts the others, as in `a,b,c + 2 more...`.
///
/// `more` is the suffix, in this example `...`.
fn shortened(texts: &[String], more: &str) -> String {
    match texts {
        [a, b, c, rest @ ..] if !rest.is_empty() => {
            format!("{a},{b},{c} + {} more{more}", rest.len())
        }
        few => few.join(","),
    }
}

fn endpoints(object: &Object) -> String {
    let mut found = Vec::new();
    for subset in list(object, "/subsets") {
        let of = |member: &str| subset[member].as_array().cloned().unwrap_or_default();
        let addresses = of("addresses");
        let ips = || addresses.iter().filter_map(|it| it["ip"].as_str());
        let ports = of("ports");
        if ports.is_empty() {
            found.extend(ips().map(str::to_owned));
        }
        for port in &ports {
            found.extend(ips().map(|ip| format!("{ip}:{}", port["port"])));
        }
    }
    none_if_empty(shortened(&found, "..."))
}

fn hosts(ingress: &Object) -> String {
    let rules = list(ingress, "/spec/rules");
    let hosts = rules.iter().filter_map(|rule| rule["host"].as_str());
    let hosts: Vec<String> = hosts
        .filter(|host| !host.is_empty())
        .map(str::to_owned)
        .collect();
    if hosts.is_empty() {
        return "*".to_owned();
    }
    shortened(&hosts, "...")
}

/// Returns the name of a class, as in `a (default)` if one of the annotations is `true`.
fn default_name(class: &Object, annotations: &[&str]) -> String {
    let name = class.text("name");
    let set = class.meta("annotations");
    let is_default = |key: &&str| set.is_some_and(|set| set[*key] == "true");
    if annotations.iter().any(is_default) {
        format!("{name} (default)")
    } else {
        name.to_owned()
    }
}

fn class_parameters(class: &Object) -> String {
    let part = |member: &str| string(class, &format!("/spec/parameters/{member}"));
    let (group, kind, name) = (part("apiGroup"), part("kind"), part("name"));
    match (group.is_empty(), name.is_empty()) {
        (_, true) => NONE.to_owned(),
        (true, false) => format!("{kind}/{name}"),
        (false, false) => format!("{kind}.{group}/{name}"),
    }
}

fn access_modes(object: &Object, pointer: &str) -> String {
    let modes = list(object, pointer);
    let has = |mode: &str| modes.iter().any(|it| it == mode);
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let short = short.into_iter().filter(|(mode, _)| has(mode));
    short.map(|(_, short)| short).collect::<Vec<_>>().join(",")
}

fn claim(volume: &Object) -> String {
    let part = |member: &str| string(volume, &format!("/spec/claimRef/{member}"));
    let (namespace, name) = (part("namespace"), part("name"));
    if name.is_empty() {
        return String::new();
    }
    format!("{namespace}/{name}")
}

/// Returns the value at the JSON pointer `core`, or at `events` if the value at `core` is missing, empty or
/// 0.
///
/// `core` points to a field of the core/v1 Event, and `events` to its equivalent in `events.k8s.io/v1`.
fn either(event: &Object, core: &str, events: &str) -> Value {
    match at(event, core) {
        value if value == "" || value == 0 => at(event, events),
        value => value,
    }
}

fn subject(event: &Object) -> Value {
    let mut subject = either(event, "/involvedObject", "/regarding");
    if subject["fieldPath"].is_null() && subject.is_object() {
        subject["fieldPath"] = json!("");
    }
    subject
}

fn event_object(event: &Object) -> String {
    let subject = subject(event);
    let kind = subject["kind"].as_str().unwrap_or_default().to_lowercase();
    match subject["name"].as_str() {
        None | Some("") => kind,
        Some(name) => format!("{kind}/{name}"),
    }
}

fn event_source(event: &Object) -> String {
    let component = either(event, "/source/component", "/reportingComponent");
    let component = if component == "" {
        at(event, "/reportingController")
    } else {
        component
    };
    let host = either(event, "/source/host", "/reportingInstance");
    let (component, host) = (
        component.as_str().unwrap_or_default(),
        host.as_str().unwrap_or_default(),
    );
    if host.is_empty() {
        component.to_owned()
    } else {
        format!("{component}, {host}")
    }
}

fn first_seen(event: &Object, now: Timestamp) -> String {
    let first = either(event, "/firstTimestamp", "/deprecatedFirstTimestamp");
    let moment = at(event, "/eventTime");
    since(&first, now, &since(&moment, now, "<unknown>"))
}

fn last_seen(event: &Object, now: Timestamp) -> String {
    if size(event, "/series") > 0 {
        return since(&at(event, "/series/lastObservedTime"), now, "<unknown>");
    }
    let last = either(event, "/lastTimestamp", "/deprecatedLastTimestamp");
    since(&last, now, &first_seen(event, now))
}

fn event_count(event: &Object) -> i64 {
    if size(event, "/series") > 0 {
        return count(event, "/series/count");
    }
    let times = either(event, "/count", "/deprecatedCount");
    times.as_i64().filter(|times| *times > 0).unwrap_or(1)
}

/// Returns the metrics of a `HorizontalPodAutoscaler` as text, such as `cpu: 20%/50%`.
fn targets(autoscaler: &Object) -> String {
    let metrics = list(autoscaler, "/spec/metrics");
    let measured = list(autoscaler, "/status/currentMetrics");
    let shown = metrics.iter().enumerate();
    let shown: Vec<String> = shown
        .map(|(nth, metric)| target(metric, measured.get(nth).unwrap_or(&Value::Null)))
        .collect();
    match shown.as_slice() {
        [] => NONE.to_owned(),
        [a, b, rest @ ..] if !rest.is_empty() => format!("{a}, {b} + {} more...", rest.len()),
        few => few.join(", "),
    }
}

/// Returns the measured value and the target of a metric of a `HorizontalPodAutoscaler`.
fn target(metric: &Value, measured: &Value) -> String {
    let (member, of_resource) = match metric["type"].as_str() {
        Some("External") => ("external", false),
        Some("Object") => ("object", false),
        Some("Pods") => ("pods", false),
        Some("Resource") => ("resource", true),
        Some("ContainerResource") => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let (target, current) = (&metric[member]["target"], &measured[member]["current"]);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let percent = |value: &Value| value.as_i64().map(|percent| format!("{percent}%"));
    let or_unknown = |value: Option<String>| value.unwrap_or_else(|| "<unknown>".to_owned());
    let name = metric[member]["name"].as_str().unwrap_or_default();
    match (text(&target["averageValue"]), of_resource) {
        (Some(average), _) => {
            let is = or_unknown(text(&current["averageValue"]));
            match member {
                "pods" => format!("{is}/{average}"),
                _ if of_resource => format!("{name}: {is}/{average}"),
                _ => format!("{is}/{average} (avg)"),
            }
        }
        (None, true) => {
            let wanted = percent(&target["averageUtilization"]);
            let wanted = wanted.unwrap_or_else(|| "<auto>".to_owned());
            let is = or_unknown(percent(&current["averageUtilization"]));
            format!("{name}: {is}/{wanted}")
        }
        (None, false) => {
            let is = or_unknown(text(&current["value"]));
            format!("{is}/{}", text(&target["value"]).unwrap_or_default())
        }
    }
}

/// Returns a number or a non-empty string as text, and `N/A` for any other value.
fn amount(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.to_string()),
        Value::String(text) if !text.is_empty() => json!(text),
        _ => json!("N/A"),
    }
}

fn subjects(binding: &Object, kind: &str) -> String {
    let subjects = list(binding, "/subjects");
    let of_kind = subjects.iter().filter(|subject| subject["kind"] == kind);
    let names = of_kind.map(|subject| {
        let name = subject["name"].as_str().unwrap_or_default();
        match subject["namespace"].as_str() {
            Some(namespace) if kind == "ServiceAccount" => format!("{namespace}/{name}"),
            _ => name.to_owned(),
        }
    });
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
