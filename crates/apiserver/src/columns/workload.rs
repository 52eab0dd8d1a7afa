//! Defines the printer columns of pods, of the workloads that create pods, and of nodes.
//!
//! Guarantees: names, types, order and priorities match Kubernetes' printers. `kubectl get` shows a column
//! with priority 1 only with `-o wide`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cell::{
    AGE, Column, NAME, NONE, at, count, desired, human_duration, joined, labels, list,
    none_if_empty, number, or_none, selector, since, size, string, text, wide,
};
use crate::object::Object;

const CONTAINERS: Column = wide("Containers", |it, _| {
    json!(joined(&containers(it), "/name"))
});
const IMAGES: Column = wide("Images", |it, _| json!(joined(&containers(it), "/image")));
const SELECTOR: Column = wide("Selector", |it, _| {
    json!(selector(&at(it, "/spec/selector")))
});

pub(crate) const PODS: &[Column] = &[
    NAME,
    text("Ready", |pod, _| json!(ready_containers(pod))),
    text("Status", |pod, _| json!(pod_status(pod))),
    text("Restarts", |pod, now| json!(restarts(pod, now))),
    AGE,
    wide("IP", |pod, _| or_none(at(pod, "/status/podIP"))),
    wide("Node", |pod, _| or_none(at(pod, "/spec/nodeName"))),
    wide("Nominated Node", |pod, _| {
        or_none(at(pod, "/status/nominatedNodeName"))
    }),
    wide("Readiness Gates", |pod, _| json!(readiness_gates(pod))),
];
pub(crate) const DEPLOYMENTS: &[Column] = &[
    NAME,
    text("Ready", |it, _| json!(ready_of_desired(it))),
    text("Up-to-date", |it, _| {
        json!(count(it, "/status/updatedReplicas"))
    }),
    text("Available", |it, _| {
        json!(count(it, "/status/availableReplicas"))
    }),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
pub(crate) const REPLICA_SETS: &[Column] = &[
    NAME,
    number("Desired", |it, _| json!(desired(it))),
    number("Current", |it, _| json!(count(it, "/status/replicas"))),
    number("Ready", |it, _| json!(count(it, "/status/readyReplicas"))),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
pub(crate) const REPLICATION_CONTROLLERS: &[Column] = &[
    NAME,
    number("Desired", |it, _| json!(desired(it))),
    number("Current", |it, _| json!(count(it, "/status/replicas"))),
    number("Ready", |it, _| json!(count(it, "/status/readyReplicas"))),
    AGE,
    CONTAINERS,
    IMAGES,
    wide("Selector", |it, _| json!(labels(&at(it, "/spec/selector")))),
];
pub(crate) const STATEFUL_SETS: &[Column] = &[
    NAME,
    text("Ready", |it, _| json!(ready_of_desired(it))),
    AGE,
    CONTAINERS,
    IMAGES,
];
pub(crate) const DAEMON_SETS: &[Column] = &[
    NAME,
    number("Desired", |it, _| {
        json!(count(it, "/status/desiredNumberScheduled"))
    }),
    number("Current", |it, _| {
        json!(count(it, "/status/currentNumberScheduled"))
    }),
    number("Ready", |it, _| json!(count(it, "/status/numberReady"))),
    number("Up-to-date", |it, _| {
        json!(count(it, "/status/updatedNumberScheduled"))
    }),
    number("Available", |it, _| {
        json!(count(it, "/status/numberAvailable"))
    }),
    text("Node Selector", |it, _| {
        json!(labels(&at(it, "/spec/template/spec/nodeSelector")))
    }),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
pub(crate) const JOBS: &[Column] = &[
    NAME,
    text("Status", |job, _| json!(job_status(job))),
    text("Completions", |job, _| json!(completions(job))),
    text("Duration", |job, now| json!(job_duration(job, now))),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
pub(crate) const CRON_JOBS: &[Column] = &[
    NAME,
    text("Schedule", |it, _| at(it, "/spec/schedule")),
    text("Timezone", |it, _| or_none(at(it, "/spec/timeZone"))),
    Column {
        cell_type: "boolean",
        ..text("Suspend", |it, _| {
            let suspended = at(it, "/spec/suspend") == true;
            json!(if suspended { "True" } else { "False" })
        })
    },
    number("Active", |it, _| json!(size(it, "/status/active"))),
    text("Last Schedule", |it, now| {
        json!(since(&at(it, "/status/lastScheduleTime"), now, NONE))
    }),
    AGE,
    CONTAINERS,
    IMAGES,
    wide("Selector", |it, _| {
        json!(selector(&at(it, "/spec/jobTemplate/spec/selector")))
    }),
];
pub(crate) const NODES: &[Column] = &[
    NAME,
    text("Status", |node, _| json!(node_status(node))),
    text("Roles", |node, _| json!(node_roles(node))),
    AGE,
    text("Version", |node, _| {
        at(node, "/status/nodeInfo/kubeletVersion")
    }),
    wide("Internal-IP", |it, _| json!(node_address(it, "InternalIP"))),
    wide("External-IP", |it, _| json!(node_address(it, "ExternalIP"))),
    wide("OS-Image", |it, _| unknown(it, "osImage")),
    wide("Kernel-Version", |it, _| unknown(it, "kernelVersion")),
    wide("Container-Runtime", |it, _| {
        unknown(it, "containerRuntimeVersion")
    }),
];

fn containers(object: &Object) -> Vec<Value> {
    let template = list(object, "/spec/template/spec/containers");
    if template.is_empty() {
        return list(object, "/spec/jobTemplate/spec/template/spec/containers");
    }
    template
}

fn ready_of_desired(object: &Object) -> String {
    let ready = count(object, "/status/readyReplicas");
    format!("{ready}/{}", desired(object))
}

fn readiness_gates(pod: &Object) -> String {
    let gates = list(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let conditions = list(pod, "/status/conditions");
    let is_open = |gate: &&Value| {
        let of_gate = |it: &&Value| it["type"] == gate["conditionType"];
        let found = conditions.iter().find(of_gate);
        found.is_some_and(|condition| condition["status"] == "True")
    };
    format!("{}/{}", gates.iter().filter(is_open).count(), gates.len())
}

fn job_status(job: &Object) -> &'static str {
    let conditions = list(job, "/status/conditions");
    let is = |name: &str| {
        let is_true = |it: &Value| it["type"] == name && it["status"] == "True";
        conditions.iter().any(is_true)
    };
    if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if job.is_deleting() {
        "Terminating"
    } else if is("Suspended") {
        "Suspended"
    } else if is("FailureTarget") {
        "FailureTarget"
    } else if is("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn completions(job: &Object) -> String {
    let done = count(job, "/status/succeeded");
    let parallelism = count(job, "/spec/parallelism");
    match at(job, "/spec/completions").as_i64() {
        Some(wanted) => format!("{done}/{wanted}"),
        None if parallelism > 1 => format!("{done}/1 of {parallelism}"),
        None => format!("{done}/1"),
    }
}

fn job_duration(job: &Object, now: Timestamp) -> String {
    let time = |pointer| string(job, pointer).parse::<Timestamp>().ok();
    let Some(start) = time("/status/startTime") else {
        return String::new();
    };
    let end = time("/status/completionTime").unwrap_or(now);
    human_duration(end.as_second() - start.as_second())
}

fn node_address(node: &Object, address_type: &str) -> String {
    let addresses = list(node, "/status/addresses");
    let found = addresses.iter().find(|it| it["type"] == address_type);
    let address = found.and_then(|it| it["address"].as_str());
    none_if_empty(address.unwrap_or_default().to_owned())
}

fn unknown(node: &Object, member: &str) -> Value {
    match at(node, &format!("/status/nodeInfo/{member}")) {
        Value::String(text) if !text.is_empty() => json!(text),
        _ => json!("<unknown>"),
    }
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

/// Returns the number of container restarts, as in `3 (5m ago)`.
///
/// The text in parentheses is the time since a container last terminated. The text is omitted if this time is
/// unknown.
fn restarts(pod: &Object, now: Timestamp) -> String {
    let statuses = container_statuses(pod);
    let times: i64 = statuses
        .iter()
        .filter_map(|status| status["restartCount"].as_i64())
        .sum();
    let ends = statuses.iter().filter_map(|status| {
        let end = status["lastState"]["terminated"]["finishedAt"].as_str()?;
        end.parse::<Timestamp>().ok()
    });
    match ends.max().filter(|_| times > 0) {
        Some(end) => {
            let ago = human_duration(now.as_second() - end.as_second());
            format!("{times} ({ago} ago)")
        }
        None => times.to_string(),
    }
}

/// Returns the status of a pod as `kubectl get` shows it.
fn pod_status(pod: &Object) -> String {
    let phase = string(pod, "/status/phase");
    let has_ended = phase == "Succeeded" || phase == "Failed";
    if pod.is_deleting() && !has_ended {
        return "Terminating".to_owned();
    }
    let statuses = container_statuses(pod);
    let is_up = |it: &Value| it["ready"] == true && it["state"]["running"].is_object();
    let told = statuses.iter().find_map(container_reason);
    match told {
        // The phase is shown if one container has completed and another one is running.
        Some(reason) if reason == "Completed" && statuses.iter().any(is_up) => phase,
        Some(reason) => reason,
        None => [string(pod, "/status/reason"), phase]
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or_else(|| "Unknown".to_owned()),
    }
}

fn container_reason(status: &Value) -> Option<String> {
    let of = |state: &str| status["state"][state]["reason"].as_str();
    let told = of("waiting").or_else(|| of("terminated"));
    if let Some(reason) = told.filter(|reason| !reason.is_empty()) {
        return Some(reason.to_owned());
    }
    let ended = &status["state"]["terminated"];
    match (ended["signal"].as_i64(), ended["exitCode"].as_i64()) {
        (Some(signal), _) if signal != 0 => Some(format!("Signal:{signal}")),
        (_, Some(code)) => Some(format!("ExitCode:{code}")),
        _ => None,
    }
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
