//! Validates the containers of a pod.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/core/validation` in Kubernetes. Not checked:
//! the rules of huge pages, restart policies of containers, volume devices, recursive read-only mounts and
//! resource claims.

use std::collections::BTreeSet;

use super::environment::{check_sources, check_variables};
use super::field::Field;
use super::port::{check_port_number, port_name_faults};
use super::probe::check_probes;
use super::report::Report;
use super::resource_name::{can_overcommit, check_container_resource};
use super::security::check_container_security;
use super::volume_path::check_relative;
use crate::name_syntax::label_faults;
use crate::quantity::Quantity;
use crate::quote::Quoted;

/// The protocols of ports.
pub(super) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// What the checks of a container need to know about its pod.
pub(super) struct PodContext<'a> {
    pub(super) volumes: &'a BTreeSet<&'a str>,
    /// The grace period in seconds.
    pub(super) grace: Option<i64>,
    /// Whether the users in the pod are those of the host.
    pub(super) uses_host_users: bool,
    pub(super) restart_policy: &'a str,
}

/// Checks the `containers` of a pod.
pub(super) fn check_containers(
    containers: &Field<'_, '_>,
    pod: &PodContext<'_>,
    report: &mut Report,
) {
    if containers.is_empty() {
        return containers.required(report);
    }
    let mut names = BTreeSet::new();
    for container in containers.items() {
        check_container(&container, pod, report);
        let name = container.at("name");
        if !names.insert(name.text()) {
            name.duplicate(report);
        }
        check_probes(&container, pod.grace, report);
    }
    let mut ports = BTreeSet::new();
    for container in containers.items() {
        check_host_ports(&container.at("ports"), &mut ports, report);
    }
}

/// Checks the `initContainers` of a pod with these containers.
pub(super) fn check_init_containers(
    all: (&Field<'_, '_>, &Field<'_, '_>),
    pod: &PodContext<'_>,
    report: &mut Report,
) {
    let (containers, init_containers) = all;
    let names = containers.value.as_array().into_iter().flatten();
    let names = names.filter_map(|container| container["name"].as_str());
    let mut names: BTreeSet<&str> = names.collect();
    for container in init_containers.items() {
        check_container(&container, pod, report);
        let name = container.at("name");
        if !names.insert(name.text()) && !name.is_empty() {
            name.duplicate(report);
        }
        // Init containers run one after the other. Kubernetes writes the path as if there were only one.
        let only = Field {
            path: init_containers.path.index(0),
            value: container.value,
        };
        check_host_ports(&only.at("ports"), &mut BTreeSet::new(), report);
        if container.at("restartPolicy").is("Always") {
            check_probes(&container, pod.grace, report);
            continue;
        }
        for handler in [
            "lifecycle",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
        ] {
            let handler = container.at(handler);
            if handler.exists() {
                let why = "may not be set for init containers without restartPolicy=Always";
                handler.forbidden(report, why);
            }
        }
        for policy in container.at("resizePolicy").items() {
            let restart = policy.at("restartPolicy");
            if restart.is("RestartContainer") {
                let why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                restart.invalid(report, why);
            }
        }
    }
}

/// Checks that no two ports have the same port of the host, the same address and the same protocol.
fn check_host_ports(ports: &Field<'_, '_>, known: &mut BTreeSet<String>, report: &mut Report) {
    for port in ports.items() {
        let host_port = port.at("hostPort");
        if host_port.number() == 0 {
            continue;
        }
        let (protocol, address) = (port.at("protocol"), port.at("hostIP"));
        let used = format!(
            "{}/{}/{}",
            protocol.text(),
            address.text(),
            host_port.number()
        );
        if known.contains(&used) {
            report.duplicate(&host_port.path, Quoted(&used));
        } else {
            known.insert(used);
        }
    }
}

/// Checks what all types of containers have in common.
pub(super) fn check_container(
    container: &Field<'_, '_>,
    pod: &PodContext<'_>,
    report: &mut Report,
) {
    let (name, image) = (container.at("name"), container.at("image"));
    if name.is_empty() {
        name.required(report);
    } else {
        name.check_text(report, label_faults);
    }
    if image.is_empty() {
        image.required(report);
    }
    let policy = container.at("terminationMessagePolicy");
    policy.check_required_one_of(report, &["File", "FallbackToLogsOnError"]);
    check_ports(&container.at("ports"), report);
    check_variables(&container.at("env"), report);
    check_sources(&container.at("envFrom"), report);
    check_mounts(container, pod.volumes, report);
    let policy = container.at("imagePullPolicy");
    policy.check_required_one_of(report, &["Always", "IfNotPresent", "Never"]);
    check_resources(&container.at("resources"), report);
    check_resize_policy(&container.at("resizePolicy"), pod.restart_policy, report);
    check_container_security(container, pod.uses_host_users, report);
}

fn check_ports(ports: &Field<'_, '_>, report: &mut Report) {
    let mut names = BTreeSet::new();
    for port in ports.items() {
        let name = port.at("name");
        if !name.is_empty() {
            let faults = port_name_faults(name.text());
            let is_sound = faults.is_empty();
            for fault in faults {
                name.invalid(report, fault);
            }
            if is_sound && !names.insert(name.text()) {
                name.duplicate(report);
            }
        }
        let number = port.at("containerPort");
        if number.number() == 0 {
            number.required(report);
        } else {
            check_port_number(&number, report);
        }
        let number = port.at("hostPort");
        if number.number() != 0 {
            check_port_number(&number, report);
        }
        let protocol = port.at("protocol");
        protocol.check_required_one_of(report, &PROTOCOLS);
    }
}

fn check_mounts(container: &Field<'_, '_>, volumes: &BTreeSet<&str>, report: &mut Report) {
    let mounts = container.at("volumeMounts");
    let mut paths = BTreeSet::new();
    for mount in mounts.items() {
        let (name, path) = (mount.at("name"), mount.at("mountPath"));
        if name.is_empty() {
            name.required(report);
        }
        if !volumes.contains(name.text()) {
            report.not_found(&name.path, name.shown());
        }
        if path.is_empty() {
            path.required(report);
        }
        if !paths.insert(path.text()) {
            path.invalid(report, "must be unique");
        }
        // The paths of these errors are those of the list, as in Kubernetes.
        let (sub_path, expression) = (mount.at("subPath"), mount.at("subPathExpr"));
        check_relative(&sub_path, &mounts.path.child("subPath"), report);
        if !expression.is_empty() {
            if !sub_path.is_empty() {
                let why = "subPathExpr and subPath are mutually exclusive";
                expression.invalid(report, why);
            }
            check_relative(&expression, &mounts.path.child("subPathExpr"), report);
        }
        let propagation = mount.at("mountPropagation");
        if propagation.exists() {
            let at = mounts.path.child("mountPropagation");
            let supported = ["Bidirectional", "HostToContainer", "None"];
            if !supported.contains(&propagation.text()) {
                report.unsupported(&at, propagation.shown(), &supported);
            }
            let is_privileged = container.value["securityContext"]["privileged"] == true;
            if propagation.is("Bidirectional") && !is_privileged {
                let why =
                    "Bidirectional mount propagation is available only to privileged containers";
                report.forbidden(&at, why);
            }
        }
    }
}

/// Checks what a container does when its resources change. The paths are those of the list, as in Kubernetes.
fn check_resize_policy(policies: &Field<'_, '_>, restart_policy: &str, report: &mut Report) {
    let mut names = BTreeSet::new();
    let check = |field: Field<'_, '_>, supported: &[&str], report: &mut Report| {
        let path = policies.path;
        Field { path, ..field }.check_required_one_of(report, supported);
    };
    for policy in policies.items() {
        let (name, restart) = (policy.at("resourceName"), policy.at("restartPolicy"));
        if !names.insert(name.text()) {
            report.duplicate(&policy.path, Quoted(name.text()));
        }
        check(name, &["cpu", "memory"], report);
        check(restart, &["NotRequired", "RestartContainer"], report);
        if restart_policy == "Never" && !restart.is("NotRequired") {
            let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            report.invalid(&policies.path, Quoted(restart.text()), why);
        }
    }
}

/// Checks the names and quantities of compute resources, and that requests do not exceed limits.
fn check_resources(resources: &Field<'_, '_>, report: &mut Report) {
    let (limits, requests) = (resources.at("limits"), resources.at("requests"));
    for (name, limit) in limits.entries() {
        check_resource(name, &limit, report);
    }
    for (name, request) in requests.entries() {
        check_resource(name, &request, report);
        let limit = limits.at(name);
        let (Some(wanted), Some(most)) = (parsed(&request), parsed(&limit)) else {
            if !limit.exists() && !can_overcommit(name) {
                let why = "Limit must be set for non overcommitable resources";
                report.required(&limits.path, why);
            }
            continue;
        };
        let order = wanted.compare(most);
        let limit = limit.text();
        if order.is_ne() && !can_overcommit(name) {
            let why = format!("must be equal to {name} limit of {limit}");
            report.invalid(&requests.path, request.shown(), why);
        } else if order.is_gt() {
            let why = format!("must be less than or equal to {name} limit of {limit}");
            report.invalid(&requests.path, request.shown(), why);
        }
    }
}

fn check_resource(name: &str, quantity: &Field<'_, '_>, report: &mut Report) {
    check_container_resource(name, &quantity.path, report);
    check_quantity(quantity, report);
}

/// Checks that a quantity is not negative.
pub(super) fn check_quantity(quantity: &Field<'_, '_>, report: &mut Report) {
    if is_negative(quantity) {
        quantity.invalid(report, "must be greater than or equal to 0");
    }
}

/// Returns whether a quantity, which can be absent, is negative.
pub(super) fn is_negative(quantity: &Field<'_, '_>) -> bool {
    parsed(quantity).is_some_and(|quantity| quantity.sign() < 0)
}

pub(super) fn parsed(quantity: &Field<'_, '_>) -> Option<Quantity> {
    let text = quantity.value.as_str()?;
    Quantity::parse(text).ok()
}
