//! Validates the containers of a pod.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/core/validation` in Kubernetes. Checked are names, images,
//! ports, environment variables, volume mounts, policies, and compute resources. Not checked: conflicts of ports of
//! the host, the rules of extended resources and huge pages, restart policies of containers, ephemeral containers, probes,
//! lifecycle handlers, security contexts, sources of environment variables, volume devices, resource claims and resize
//! policies.

use std::collections::BTreeSet;

use super::field::Field;
use super::report::Report;
use crate::name_syntax::{key_faults, label_faults};
use crate::quantity::Quantity;
use crate::quote::Quoted;

/// The protocols of ports.
pub(super) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Kubernetes' message about the name of an environment variable.
const VARIABLE: &str = "a valid environment variable name must consist only of printable ASCII characters other than '='";

/// Names of the resources that containers can have besides extended ones, without `hugepages-`.
const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Names of the other resources without a prefix, as those of quotas.
const OF_QUOTAS: [&str; 17] = [
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
    "storage",
    "requests.storage",
];

/// Checks the `containers` of a pod with these volumes.
pub(super) fn check_containers(
    containers: &Field<'_, '_>,
    volumes: &BTreeSet<&str>,
    report: &mut Report,
) {
    if containers.is_empty() {
        return containers.required(report);
    }
    let mut names = BTreeSet::new();
    for container in containers.items() {
        check_container(&container, volumes, report);
        let name = container.at("name");
        if !names.insert(name.text()) {
            name.duplicate(report);
        }
    }
}

/// Checks the `initContainers` of a pod with these containers and volumes.
pub(super) fn check_init_containers(
    all: (&Field<'_, '_>, &Field<'_, '_>),
    volumes: &BTreeSet<&str>,
    report: &mut Report,
) {
    let (containers, init_containers) = all;
    let names = containers.value.as_array().into_iter().flatten();
    let names = names.filter_map(|container| container["name"].as_str());
    let mut names: BTreeSet<&str> = names.collect();
    for container in init_containers.items() {
        check_container(&container, volumes, report);
        let name = container.at("name");
        if !names.insert(name.text()) && !name.is_empty() {
            name.duplicate(report);
        }
        if container.at("restartPolicy").is("Always") {
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
    }
}

fn check_container(container: &Field<'_, '_>, volumes: &BTreeSet<&str>, report: &mut Report) {
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
    for variable in container.at("env").items() {
        let name = variable.at("name");
        if name.is_empty() {
            name.required(report);
        } else {
            name.check_text(report, variable_faults);
        }
    }
    check_mounts(&container.at("volumeMounts"), volumes, report);
    let policy = container.at("imagePullPolicy");
    policy.check_required_one_of(report, &["Always", "IfNotPresent", "Never"]);
    check_resources(&container.at("resources"), report);
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

pub(super) fn check_port_number(port: &Field<'_, '_>, report: &mut Report) {
    if !(1..=65_535).contains(&port.number()) {
        port.invalid(report, "must be between 1 and 65535, inclusive");
    }
}

/// Returns Kubernetes' messages about the name of a port (`IsValidPortName`).
pub(super) fn port_name_faults(name: &str) -> Vec<String> {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let checks = [
        (name.len() <= 15, "must be no more than 15 characters"),
        (
            !name.is_empty() && name.bytes().all(is_allowed),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (
            name.bytes().any(|byte| byte.is_ascii_lowercase()),
            "must contain at least one letter (a-z)",
        ),
        (!name.contains("--"), "must not contain consecutive hyphens"),
        (
            !name.starts_with('-') && !name.ends_with('-'),
            "must not begin or end with a hyphen",
        ),
    ];
    let faults = checks.into_iter().filter(|(is_met, _)| !is_met);
    faults.map(|(_, fault)| fault.to_owned()).collect()
}

fn variable_faults(name: &str) -> Vec<String> {
    let is_allowed = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'=';
    if name.bytes().all(is_allowed) {
        Vec::new()
    } else {
        vec![VARIABLE.to_owned()]
    }
}

fn check_mounts(mounts: &Field<'_, '_>, volumes: &BTreeSet<&str>, report: &mut Report) {
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
    let faults = key_faults(name);
    let is_qualified = faults.is_empty();
    for fault in faults {
        report.invalid(&quantity.path, Quoted(name), fault);
    }
    let is_of_container = OF_CONTAINERS.contains(&name) || name.starts_with("hugepages-");
    if !name.contains('/') && !is_of_container {
        if is_qualified && !OF_QUOTAS.contains(&name) {
            let why = "must be a standard resource type or fully qualified";
            report.invalid(&quantity.path, Quoted(name), why);
        }
        let why = "must be a standard resource for containers";
        report.invalid(&quantity.path, Quoted(name), why);
    }
    check_quantity(quantity, report);
}

/// Checks that a quantity is not negative.
pub(super) fn check_quantity(quantity: &Field<'_, '_>, report: &mut Report) {
    if parsed(quantity).is_some_and(|quantity| quantity.sign() < 0) {
        quantity.invalid(report, "must be greater than or equal to 0");
    }
}

fn parsed(quantity: &Field<'_, '_>) -> Option<Quantity> {
    let text = quantity.value.as_str()?;
    Quantity::parse(text).ok()
}

/// Returns whether a request can be less than the limit (`IsOvercommitAllowed`).
fn can_overcommit(name: &str) -> bool {
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    is_native && !name.starts_with("hugepages-")
}
