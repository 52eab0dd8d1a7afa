//! Defines the printer columns of pods, of the workloads that create pods, and of nodes.
//!
//! Guarantees: order and cells match Kubernetes' printers.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cell::{
    AGE, Column, NAME, NONE, at, column, count, desired, human_duration, joined, labels, list,
    none_if_empty, or_none, selector, since, size, string,
};
use super::pod::PodState;
use crate::object::Object;

const CONTAINERS: Column = column("Containers", |it, _| {
    json!(joined(&containers(it), "/name"))
});
const IMAGES: Column = column("Images", |it, _| json!(joined(&containers(it), "/image")));
const SELECTOR: Column = column("Selector", |it, _| {
    json!(selector(&at(it, "/spec/selector")))
});

pub(crate) const PODS: &[Column] = &[
    NAME,
    column("Ready", |pod, _| json!(PodState::of(pod).ready())),
    column("Status", |pod, _| json!(PodState::of(pod).reason)),
    column("Restarts", |pod, now| {
        json!(PodState::of(pod).restarts(now))
    }),
    AGE,
    column("IP", |pod, _| or_none(at(pod, "/status/podIPs/0/ip"))),
    column("Node", |pod, _| or_none(at(pod, "/spec/nodeName"))),
    column("Nominated Node", |pod, _| {
        or_none(at(pod, "/status/nominatedNodeName"))
    }),
    column("Readiness Gates", |pod, _| json!(readiness_gates(pod))),
];
pub(crate) const POD_TEMPLATES: &[Column] = &[
    NAME,
    column("Containers", |it, _| {
        json!(joined(&list(it, "/template/spec/containers"), "/name"))
    }),
    column("Images", |it, _| {
        json!(joined(&list(it, "/template/spec/containers"), "/image"))
    }),
    column("Pod Labels", |it, _| {
        json!(labels(&at(it, "/template/metadata/labels")))
    }),
];
pub(crate) const CONTROLLER_REVISIONS: &[Column] = &[
    NAME,
    column("Controller", |it, _| json!(controller(it))),
    column("Revision", |it, _| json!(count(it, "/revision"))),
    AGE,
];
pub(crate) const DEPLOYMENTS: &[Column] = &[
    NAME,
    column("Ready", |it, _| json!(ready_of_desired(it))),
    column("Up-to-date", |it, _| {
        json!(count(it, "/status/updatedReplicas"))
    }),
    column("Available", |it, _| {
        json!(count(it, "/status/availableReplicas"))
    }),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
pub(crate) const REPLICA_SETS: &[Column] = &[
    NAME,
    column("Desired", |it, _| json!(desired(it))),
    column("Current", |it, _| json!(count(it, "/status/replicas"))),
    column("Ready", |it, _| json!(count(it, "/status/readyReplicas"))),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
pub(crate) const REPLICATION_CONTROLLERS: &[Column] = &[
    NAME,
    column("Desired", |it, _| json!(desired(it))),
    column("Current", |it, _| json!(count(it, "/status/replicas"))),
    column("Ready", |it, _| json!(count(it, "/status/readyReplicas"))),
    AGE,
    CONTAINERS,
    IMAGES,
    column("Selector", |it, _| json!(labels(&at(it, "/spec/selector")))),
];
pub(crate) const STATEFUL_SETS: &[Column] = &[
    NAME,
    column("Ready", |it, _| json!(ready_of_desired(it))),
    AGE,
    CONTAINERS,
    IMAGES,
];
pub(crate) const DAEMON_SETS: &[Column] = &[
    NAME,
    column("Desired", |it, _| {
        json!(count(it, "/status/desiredNumberScheduled"))
    }),
    column("Current", |it, _| {
        json!(count(it, "/status/currentNumberScheduled"))
    }),
    column("Ready", |it, _| json!(count(it, "/status/numberReady"))),
    column("Up-to-date", |it, _| {
        json!(count(it, "/status/updatedNumberScheduled"))
    }),
    column("Available", |it, _| {
        json!(count(it, "/status/numberAvailable"))
    }),
    column("Node Selector", |it, _| {
        json!(labels(&at(it, "/spec/template/spec/nodeSelector")))
    }),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
pub(crate) const JOBS: &[Column] = &[
    NAME,
    column("Status", |job, _| json!(job_status(job))),
    column("Completions", |job, _| json!(completions(job))),
    column("Duration", |job, now| json!(job_duration(job, now))),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
pub(crate) const CRON_JOBS: &[Column] = &[
    NAME,
    column("Schedule", |it, _| at(it, "/spec/schedule")),
    column("Timezone", |it, _| or_none(at(it, "/spec/timeZone"))),
    column("Suspend", |it, _| {
        let suspended = at(it, "/spec/suspend") == true;
        json!(if suspended { "True" } else { "False" })
    }),
    column("Active", |it, _| json!(size(it, "/status/active"))),
    column("Last Schedule", |it, now| {
        json!(since(&at(it, "/status/lastScheduleTime"), now, NONE))
    }),
    AGE,
    CONTAINERS,
    IMAGES,
    column("Selector", |it, _| {
        json!(selector(&at(it, "/spec/jobTemplate/spec/selector")))
    }),
];
pub(crate) const NODES: &[Column] = &[
    NAME,
    column("Status", |node, _| json!(node_status(node))),
    column("Roles", |node, _| json!(node_roles(node))),
    AGE,
    column("Version", |node, _| {
        at(node, "/status/nodeInfo/kubeletVersion")
    }),
    column("Internal-IP", |it, _| json!(node_address(it, "InternalIP"))),
    column("External-IP", |it, _| json!(node_address(it, "ExternalIP"))),
    column("OS-Image", |it, _| unknown(it, "osImage")),
    column("Kernel-Version", |it, _| json!(kernel(it))),
    column("Container-Runtime", |it, _| {
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

/// Returns the version of a node's kernel with the architecture, such as `6.1.0 (amd64)`.
fn kernel(node: &Object) -> String {
    let version = unknown(node, "kernelVersion");
    let version = version.as_str().unwrap_or_default();
    match string(node, "/status/nodeInfo/architecture").as_str() {
        "" => version.to_owned(),
        architecture => format!("{version} ({architecture})"),
    }
}

fn node_roles(node: &Object) -> String {
    let labels = node.meta("labels").and_then(Value::as_object);
    let role = |(label, value): (&String, &Value)| match label.as_str() {
        "kubernetes.io/role" => value.as_str().map(str::to_owned),
        label => label
            .strip_prefix("node-role.kubernetes.io/")
            .map(str::to_owned),
    };
    let roles = labels.into_iter().flatten().filter_map(role);
    let roles: BTreeSet<String> = roles.filter(|role| !role.is_empty()).collect();
    none_if_empty(roles.into_iter().collect::<Vec<_>>().join(","))
}

fn controller(revision: &Object) -> String {
    let owners = revision.meta("ownerReferences").and_then(Value::as_array);
    let mut owners = owners.into_iter().flatten();
    let Some(owner) = owners.find(|owner| owner["controller"] == true) else {
        return NONE.to_owned();
    };
    let part = |member: &str| owner[member].as_str().unwrap_or_default();
    let kind = match part("apiVersion").split_once('/') {
        Some((group, _)) => format!("{}.{group}", part("kind")),
        None => part("kind").to_owned(),
    };
    format!("{}/{}", kind.to_lowercase(), part("name"))
}
