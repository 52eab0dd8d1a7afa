//! The columns of the kinds, and how a cell is computed from an object.
//!
//! Guarantees: names, order and priorities are those of Kubernetes' printers for the kinds listed here; priority 1 is shown by `-o wide` only.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::Object;
use crate::resource::Resource;

/// One column of a table.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) cell_type: &'static str,
    pub(crate) priority: u8,
    pub(crate) cell: fn(&Object, Timestamp) -> Value,
}

const fn text(name: &'static str, cell: fn(&Object, Timestamp) -> Value) -> Column {
    Column {
        name,
        cell_type: "string",
        priority: 0,
        cell,
    }
}

const fn number(name: &'static str, cell: fn(&Object, Timestamp) -> Value) -> Column {
    Column {
        name,
        cell_type: "integer",
        priority: 0,
        cell,
    }
}

const fn wide(name: &'static str, cell: fn(&Object, Timestamp) -> Value) -> Column {
    Column {
        name,
        cell_type: "string",
        priority: 1,
        cell,
    }
}

const NAME: Column = text("Name", |object, _| json!(object.text("name")));
const AGE: Column = text("Age", |object, now| json!(age(object, now)));

const ANY: &[Column] = &[NAME, AGE];
const PODS: &[Column] = &[
    NAME,
    text("Ready", |pod, _| json!(ready_containers(pod))),
    text("Status", |pod, _| json!(pod_status(pod))),
    number("Restarts", |pod, _| json!(restarts(pod))),
    AGE,
    wide("IP", |pod, _| or_none(at(pod, "/status/podIP"))),
    wide("Node", |pod, _| or_none(at(pod, "/spec/nodeName"))),
    wide("Nominated Node", |pod, _| {
        or_none(at(pod, "/status/nominatedNodeName"))
    }),
];
const DEPLOYMENTS: &[Column] = &[
    NAME,
    text("Ready", |it, _| {
        json!(format!(
            "{}/{}",
            count(it, "/status/readyReplicas"),
            desired(it)
        ))
    }),
    number("Up-to-date", |it, _| {
        json!(count(it, "/status/updatedReplicas"))
    }),
    number("Available", |it, _| {
        json!(count(it, "/status/availableReplicas"))
    }),
    AGE,
];
const REPLICA_SETS: &[Column] = &[
    NAME,
    number("Desired", |it, _| json!(desired(it))),
    number("Current", |it, _| json!(count(it, "/status/replicas"))),
    number("Ready", |it, _| json!(count(it, "/status/readyReplicas"))),
    AGE,
];
const NODES: &[Column] = &[
    NAME,
    text("Status", |node, _| json!(node_status(node))),
    text("Roles", |node, _| json!(node_roles(node))),
    AGE,
    text("Version", |node, _| {
        at(node, "/status/nodeInfo/kubeletVersion")
    }),
];
const NAMESPACES: &[Column] = &[
    NAME,
    text("Status", |namespace, _| at(namespace, "/status/phase")),
    AGE,
];

/// The columns of a kind.
pub(crate) fn columns_of(resource: &Resource) -> &'static [Column] {
    match resource.kind.group_resource().as_str() {
        "pods" => PODS,
        "deployments.apps" => DEPLOYMENTS,
        "replicasets.apps" => REPLICA_SETS,
        "nodes" => NODES,
        "namespaces" => NAMESPACES,
        _ => ANY,
    }
}

/// A duration as `kubectl` shows it (`duration.HumanDuration`): two units at most, fewer the longer it is.
pub(crate) fn human_duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let two = |unit: i64, name: &str, smaller: i64, smaller_name: &str| {
        let rest = seconds % unit / smaller;
        let rest = if rest == 0 {
            String::new()
        } else {
            format!("{rest}{smaller_name}")
        };
        format!("{}{name}{rest}", seconds / unit)
    };
    match seconds {
        ..0 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => two(MINUTE, "m", 1, "s"),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => two(HOUR, "h", MINUTE, "m"),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => two(DAY, "d", HOUR, "h"),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two(YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

fn age(object: &Object, now: Timestamp) -> String {
    let created: Result<Timestamp, _> = object.text("creationTimestamp").parse();
    created.map_or_else(
        |_| "<unknown>".to_owned(),
        |created| human_duration(now.as_second() - created.as_second()),
    )
}

/// The value at a JSON pointer; empty if there is none.
fn at(object: &Object, pointer: &str) -> Value {
    let (first, rest) = pointer[1..].split_once('/').unwrap_or((&pointer[1..], ""));
    let member = object.get(first);
    let found = member.and_then(|member| match rest {
        "" => Some(member),
        rest => member.pointer(&format!("/{rest}")),
    });
    found.cloned().unwrap_or_else(|| json!(""))
}

fn or_none(value: Value) -> Value {
    if value == "" { json!("<none>") } else { value }
}

fn count(object: &Object, pointer: &str) -> i64 {
    at(object, pointer).as_i64().unwrap_or(0)
}

/// `spec.replicas`, which is 1 where it is not said.
fn desired(object: &Object) -> i64 {
    at(object, "/spec/replicas").as_i64().unwrap_or(1)
}

fn container_statuses(pod: &Object) -> Vec<Value> {
    at(pod, "/status/containerStatuses")
        .as_array()
        .cloned()
        .unwrap_or_default()
}

fn ready_containers(pod: &Object) -> String {
    let all = at(pod, "/spec/containers").as_array().map_or(0, Vec::len);
    let ready = container_statuses(pod)
        .iter()
        .filter(|status| status["ready"] == true)
        .count();
    format!("{ready}/{all}")
}

fn restarts(pod: &Object) -> i64 {
    container_statuses(pod)
        .iter()
        .filter_map(|status| status["restartCount"].as_i64())
        .sum()
}

/// The phase, or what says more: the reason, a container's reason, or that it is being deleted.
fn pod_status(pod: &Object) -> String {
    if pod.is_deleting() {
        return "Terminating".to_owned();
    }
    let mut reasons = container_statuses(pod).into_iter().filter_map(|status| {
        let reason = |state: &str| status["state"][state]["reason"].as_str().map(str::to_owned);
        reason("waiting").or_else(|| reason("terminated"))
    });
    let own = at(pod, "/status/reason")
        .as_str()
        .filter(|reason| !reason.is_empty())
        .map(str::to_owned);
    let phase = at(pod, "/status/phase")
        .as_str()
        .filter(|phase| !phase.is_empty())
        .map(str::to_owned);
    reasons
        .next_back()
        .or(own)
        .or(phase)
        .unwrap_or_else(|| "Unknown".to_owned())
}

fn node_status(node: &Object) -> String {
    let conditions = at(node, "/status/conditions");
    let ready = conditions
        .as_array()
        .into_iter()
        .flatten()
        .find(|it| it["type"] == "Ready");
    let status = match ready.map(|ready| ready["status"] == "True") {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    };
    let cordoned = at(node, "/spec/unschedulable") == true;
    format!(
        "{status}{}",
        if cordoned { ",SchedulingDisabled" } else { "" }
    )
}

fn node_roles(node: &Object) -> String {
    let labels = node.meta("labels").and_then(Value::as_object);
    let roles: Vec<&str> = labels
        .into_iter()
        .flat_map(serde_json::Map::keys)
        .filter_map(|label| label.strip_prefix("node-role.kubernetes.io/"))
        .collect();
    if roles.is_empty() {
        "<none>".to_owned()
    } else {
        roles.join(",")
    }
}
