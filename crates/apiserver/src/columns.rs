//! Defines the printer columns of each kind: the columns that `kubectl get` shows.
//!
//! Guarantees:
//! - For the kinds with columns in this module, the names, types, order and priorities match those of
//!   Kubernetes' printers.
//! - The kind of a `CustomResourceDefinition` has the definition's columns ([`defined`]).
//! - Any other kind has the columns Name and Age.
//!
//! `kubectl get` shows a column with priority 1 only with `-o wide`.

mod cell;
pub(crate) mod defined;
mod path;
pub(crate) mod workload;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::Object;

use cell::{
    AGE, NAME, NONE, at, count, joined, labels, list, none_if_empty, number, or, or_none, selector,
    since, size, string, text, wide,
};

pub(crate) use cell::Column;

const CREATED_AT: Column = Column {
    cell_type: "date",
    ..text("Created At", |it, _| json!(it.text("creationTimestamp")))
};

pub(crate) const ANY: &[Column] = &[NAME, AGE];
pub(crate) const DATED: &[Column] = &[NAME, CREATED_AT];
pub(crate) const NAMESPACES: &[Column] =
    &[NAME, text("Status", |it, _| at(it, "/status/phase")), AGE];
pub(crate) const CONFIG_MAPS: &[Column] = &[
    NAME,
    text("Data", |it, _| {
        json!(size(it, "/data") + size(it, "/binaryData"))
    }),
    AGE,
];
pub(crate) const SECRETS: &[Column] = &[
    NAME,
    text("Type", |it, _| or(at(it, "/type"), "Opaque")),
    text("Data", |it, _| json!(size(it, "/data"))),
    AGE,
];
pub(crate) const SERVICES: &[Column] = &[
    NAME,
    text("Type", |it, _| or(at(it, "/spec/type"), "ClusterIP")),
    text("Cluster-IP", |it, _| or_none(at(it, "/spec/clusterIP"))),
    text("External-IP", |it, _| json!(external_ip(it))),
    text("Port(s)", |it, _| json!(service_ports(it))),
    AGE,
    wide("Selector", |it, _| json!(labels(&at(it, "/spec/selector")))),
];
pub(crate) const ENDPOINTS: &[Column] =
    &[NAME, text("Endpoints", |it, _| json!(endpoints(it))), AGE];
pub(crate) const INGRESSES: &[Column] = &[
    NAME,
    text("Class", |it, _| or_none(at(it, "/spec/ingressClassName"))),
    text("Hosts", |it, _| json!(hosts(it))),
    text("Address", |it, _| json!(load_balancers(it))),
    text("Ports", |it, _| {
        let tls = size(it, "/spec/tls") > 0;
        json!(if tls { "80, 443" } else { "80" })
    }),
    AGE,
];
pub(crate) const INGRESS_CLASSES: &[Column] = &[
    NAME,
    text("Controller", |it, _| at(it, "/spec/controller")),
    text("Parameters", |it, _| json!(class_parameters(it))),
    AGE,
];
pub(crate) const NETWORK_POLICIES: &[Column] = &[
    NAME,
    text("Pod-Selector", |it, _| {
        json!(selector(&at(it, "/spec/podSelector")))
    }),
    AGE,
];
pub(crate) const PERSISTENT_VOLUMES: &[Column] = &[
    NAME,
    text("Capacity", |it, _| at(it, "/spec/capacity/storage")),
    text("Access Modes", |it, _| {
        json!(access_modes(it, "/spec/accessModes"))
    }),
    text("Reclaim Policy", |it, _| {
        or(at(it, "/spec/persistentVolumeReclaimPolicy"), "Retain")
    }),
    text("Status", |it, _| json!(phase(it))),
    text("Claim", |it, _| json!(claim(it))),
    text("StorageClass", |it, _| at(it, "/spec/storageClassName")),
    VOLUME_ATTRIBUTES_CLASS,
    text("Reason", |it, _| at(it, "/status/reason")),
    AGE,
    VOLUME_MODE,
];
pub(crate) const PERSISTENT_VOLUME_CLAIMS: &[Column] = &[
    NAME,
    text("Status", |it, _| json!(phase(it))),
    text("Volume", |it, _| at(it, "/spec/volumeName")),
    text("Capacity", |it, _| match at(it, "/spec/volumeName") {
        volume if volume == "" => volume,
        _ => at(it, "/status/capacity/storage"),
    }),
    text("Access Modes", |it, _| match at(it, "/spec/volumeName") {
        volume if volume == "" => volume,
        _ => json!(access_modes(it, "/status/accessModes")),
    }),
    text("StorageClass", |it, _| at(it, "/spec/storageClassName")),
    VOLUME_ATTRIBUTES_CLASS,
    AGE,
    VOLUME_MODE,
];
const VOLUME_ATTRIBUTES_CLASS: Column = text("VolumeAttributesClass", |it, _| {
    or(at(it, "/spec/volumeAttributesClassName"), "<unset>")
});
const VOLUME_MODE: Column = wide("VolumeMode", |it, _| {
    or(at(it, "/spec/volumeMode"), "Filesystem")
});
pub(crate) const STORAGE_CLASSES: &[Column] = &[
    NAME,
    text("Provisioner", |it, _| at(it, "/provisioner")),
    text("ReclaimPolicy", |it, _| {
        or(at(it, "/reclaimPolicy"), "Delete")
    }),
    text("VolumeBindingMode", |it, _| {
        or(at(it, "/volumeBindingMode"), "Immediate")
    }),
    text("AllowVolumeExpansion", |it, _| {
        json!(at(it, "/allowVolumeExpansion") == true)
    }),
    AGE,
];
pub(crate) const EVENTS: &[Column] = &[
    text("Last Seen", |it, now| json!(last_seen(it, now))),
    text("Type", |it, _| at(it, "/type")),
    text("Reason", |it, _| at(it, "/reason")),
    text("Object", |it, _| json!(event_object(it))),
    wide("Subobject", |it, _| subject(it)["fieldPath"].clone()),
    wide("Source", |it, _| json!(event_source(it))),
    text("Message", |it, _| {
        json!(either(it, "/message", "/note").as_str().map(str::trim))
    }),
    wide("First Seen", |it, now| json!(first_seen(it, now))),
    wide("Count", |it, _| json!(event_count(it))),
    Column {
        priority: 1,
        ..NAME
    },
];
pub(crate) const AUTOSCALERS: &[Column] = &[
    NAME,
    text("Reference", |it, _| {
        let target = |member| string(it, &format!("/spec/scaleTargetRef/{member}"));
        json!(format!("{}/{}", target("kind"), target("name")))
    }),
    text("Targets", |it, _| json!(targets(it))),
    text("MinPods", |it, _| match at(it, "/spec/minReplicas") {
        Value::Number(least) => json!(least.to_string()),
        _ => json!("1"),
    }),
    text("MaxPods", |it, _| json!(count(it, "/spec/maxReplicas"))),
    text("Replicas", |it, _| {
        json!(count(it, "/status/currentReplicas"))
    }),
    AGE,
];
pub(crate) const DISRUPTION_BUDGETS: &[Column] = &[
    NAME,
    text("Min Available", |it, _| {
        amount(&at(it, "/spec/minAvailable"))
    }),
    text("Max Unavailable", |it, _| {
        amount(&at(it, "/spec/maxUnavailable"))
    }),
    number("Allowed Disruptions", |it, _| {
        json!(count(it, "/status/disruptionsAllowed"))
    }),
    AGE,
];
pub(crate) const LEASES: &[Column] = &[
    NAME,
    text("Holder", |it, _| at(it, "/spec/holderIdentity")),
    AGE,
];
pub(crate) const BINDINGS: &[Column] = &[
    NAME,
    text("Role", |it, _| {
        let (kind, name) = (string(it, "/roleRef/kind"), string(it, "/roleRef/name"));
        json!(format!("{kind}/{name}"))
    }),
    AGE,
    wide("Users", |it, _| json!(subjects(it, "User"))),
    wide("Groups", |it, _| json!(subjects(it, "Group"))),
    wide("ServiceAccounts", |it, _| {
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
    let current = list(autoscaler, "/status/currentMetrics");
    let shown = metrics.iter().enumerate().map(|(nth, metric)| {
        let name = metric["resource"]["name"].as_str().unwrap_or_default();
        let target = &metric["resource"]["target"];
        let measured = current.get(nth).map(|it| it["resource"]["current"].clone());
        let measured = measured.unwrap_or_default();
        let share = |value: &Value| value.as_i64().map(|percent| format!("{percent}%"));
        let unknown = || "<unknown>".to_owned();
        if let Some(wanted) = share(&target["averageUtilization"]) {
            let is = share(&measured["averageUtilization"]).unwrap_or_else(unknown);
            return format!("{name}: {is}/{wanted}");
        }
        let Some(wanted) = target["averageValue"].as_str() else {
            return unknown();
        };
        let is = measured["averageValue"].as_str().map(str::to_owned);
        format!("{name}: {}/{wanted}", is.unwrap_or_else(unknown))
    });
    let shown: Vec<String> = shown.collect();
    match shown.as_slice() {
        [] => NONE.to_owned(),
        [a, b, rest @ ..] if !rest.is_empty() => format!("{a}, {b} + {} more...", rest.len()),
        few => few.join(", "),
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
