//! Warnings about the `spec` and the annotations of a pod or a template (`warningsForPodSpecAndMeta` in Kubernetes).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use crate::name_syntax::value_faults;
use crate::quantity::rounded_up;
use crate::quote::Quoted;
use crate::strategy::field::Field;

/// Deprecated labels of nodes, with what Kubernetes recommends.
const LABELS: [(&str, &str); 8] = [
    (
        "beta.kubernetes.io/arch",
        "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
    ),
    (
        "beta.kubernetes.io/os",
        "deprecated since v1.14; use \"kubernetes.io/os\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    (
        "node-role.kubernetes.io/master",
        "use \"node-role.kubernetes.io/control-plane\" instead",
    ),
];

/// Annotations without an effect, with the replacement.
const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// Volumes that Kubernetes has removed, with the versions.
const VOLUMES: [(&str, &str); 9] = [
    (
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    (
        "gitRepo",
        "deprecated in v1.11, and disabled by default in v1.33+",
    ),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Message about a seccomp annotation.
const SECCOMP: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";

/// Maximum number of ports with one number and protocol with which a further one is compared. Kubernetes has no limit.
const COMPARED_PORTS: usize = 100;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn add_spec(spec: &Field<'_, '_>, metadata: &Field<'_, '_>, texts: &mut Vec<String>) {
    let annotations = metadata.at("annotations");
    add_node_labels(spec, texts);
    for (key, why) in ANNOTATIONS {
        if annotations.at(key).exists() {
            add(&annotations.path.key(key), why, texts);
        }
    }
    for volume in spec.at("volumes").items() {
        for (name, why) in VOLUMES {
            if volume.at(name).exists() {
                // Kubernetes writes one name as in Go.
                let shown = if name == "storageos" {
                    "storageOS"
                } else {
                    name
                };
                add(&volume.path.child(shown), why, texts);
            }
        }
    }
    add_repeated(&spec.at("hostAliases"), "ip", texts);
    let secrets = spec.at("imagePullSecrets");
    add_repeated(&secrets, "name", texts);
    for secret in secrets
        .items()
        .filter(|secret| secret.at("name").is_empty())
    {
        add(&secret.path.child("name"), "invalid empty name \"\"", texts);
    }
    add_fractions(
        &spec.at("overhead"),
        &["memory", "ephemeral-storage"],
        texts,
    );
    let pod_key = "seccomp.security.alpha.kubernetes.io/pod";
    let has_profile = |of: &Field<'_, '_>| of.at("securityContext").at("seccompProfile").exists();
    if !has_profile(spec) && annotations.at(pod_key).exists() {
        add(&annotations.path.key(pod_key), SECCOMP, texts);
    }
    for_containers(spec, |container| {
        let name = container.at("name");
        let key = format!(
            "container.seccomp.security.alpha.kubernetes.io/{}",
            name.text()
        );
        if !has_profile(container) && annotations.at(&key).exists() {
            add(&annotations.path.key(&key), SECCOMP, texts);
        }
        let resources = container.at("resources");
        let (limits, requests) = (resources.at("limits"), resources.at("requests"));
        for resource in ["memory", "ephemeral-storage"] {
            add_fractions(&limits, &[resource], texts);
            add_fractions(&requests, &[resource], texts);
        }
        add_hidden_variables(&container.at("env"), texts);
    });
    add_ports(spec, texts);
    let grace = spec.at("terminationGracePeriodSeconds");
    if grace.number() < 0 {
        let why = "must be >= 0; negative values are invalid and will be treated as 1";
        add(&grace.path, why, texts);
    }
    add_null_selectors(&spec.at("affinity"), texts);
}

fn add(path: &dyn Display, why: impl Display, texts: &mut Vec<String>) {
    texts.push(format!("{path}: {why}"));
}

/// Calls a function for each container, in the order of Kubernetes' `VisitContainersWithPath`.
fn for_containers(spec: &Field<'_, '_>, mut visit: impl FnMut(&Field<'_, '_>)) {
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.at(list).items() {
            visit(&container);
        }
    }
}

fn deprecation(label: &str) -> Option<&'static str> {
    let found = LABELS.iter().find(|(known, _)| *known == label);
    found.map(|(_, why)| *why)
}

fn add_node_labels(spec: &Field<'_, '_>, texts: &mut Vec<String>) {
    for (key, label) in spec.at("nodeSelector").entries() {
        if let Some(why) = deprecation(key) {
            add(&label.path, why, texts);
        }
    }
    let affinity = spec.at("affinity");
    let nodes = affinity.at("nodeAffinity");
    for term in nodes.at(REQUIRED).at("nodeSelectorTerms").items() {
        add_node_term(&term, false, texts);
    }
    for term in nodes.at(PREFERRED).items() {
        add_node_term(&term.at("preference"), true, texts);
    }
    for constraint in spec.at("topologySpreadConstraints").items() {
        let key = constraint.at("topologyKey");
        if let Some(why) = deprecation(key.text()) {
            add(&key.path, format_args!("{} is {why}", key.text()), texts);
        }
        add_null_selector(&constraint, texts);
    }
}

fn add_node_term(term: &Field<'_, '_>, checks_values: bool, texts: &mut Vec<String>) {
    for expression in term.at("matchExpressions").items() {
        let key = expression.at("key");
        if let Some(why) = deprecation(key.text()) {
            add(&key.path, format_args!("{} is {why}", key.text()), texts);
        }
        for value in expression.at("values").items().filter(|_| checks_values) {
            for fault in value_faults(value.text()) {
                add(
                    &value.path,
                    format_args!("{} is invalid, {fault}", value.text()),
                    texts,
                );
            }
        }
    }
}

fn add_null_selectors(affinity: &Field<'_, '_>, texts: &mut Vec<String>) {
    for name in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.at(name);
        for term in pods.at(REQUIRED).items() {
            add_null_selector(&term, texts);
        }
        for term in pods.at(PREFERRED).items() {
            add_null_selector(&term.at("podAffinityTerm"), texts);
        }
    }
}

fn add_null_selector(of: &Field<'_, '_>, texts: &mut Vec<String>) {
    let selector = of.at("labelSelector");
    if !selector.exists() {
        let why = "a null labelSelector results in matching no pod";
        add(&selector.path, why, texts);
    }
}

/// Adds a warning about each item of a list whose member has the text of an earlier item.
fn add_repeated(list: &Field<'_, '_>, member: &str, texts: &mut Vec<String>) {
    let mut known = BTreeSet::new();
    for item in list.items() {
        let text = item.at(member);
        if !known.insert(text.text()) {
            add(
                &text.path,
                format_args!("duplicate {member} {}", Quoted(text.text())),
                texts,
            );
        }
    }
}

/// Adds a warning about each of these quantities that is no integer.
fn add_fractions(quantities: &Field<'_, '_>, names: &[&str], texts: &mut Vec<String>) {
    for name in names {
        let quantity = quantities.value[*name].as_str().unwrap_or_default();
        if is_fraction(quantity) {
            let why = format!(
                "fractional byte value {} is invalid, must be an integer",
                Quoted(quantity)
            );
            add(&quantities.path.key(name), why, texts);
        }
    }
}

/// Returns whether a canonical quantity, rounded up to thousandths, is no integer.
fn is_fraction(quantity: &str) -> bool {
    let rounded = rounded_up(quantity);
    rounded.as_deref().unwrap_or(quantity).ends_with('m')
}

fn add_hidden_variables(variables: &Field<'_, '_>, texts: &mut Vec<String>) {
    let mut known = BTreeSet::new();
    for variable in variables.items() {
        let (name, value) = (variable.at("name"), variable.at("value"));
        if known.insert(name.text()) {
            continue;
        }
        let reference = format!("$({})", name.text());
        let has_source = variable.at("valueFrom").exists();
        if has_source || value.is(&reference) || !value.text().contains(&reference) {
            let hidden = Quoted(name.text());
            let why = format!(
                "hides previous definition of {hidden}, which may be dropped when using apply"
            );
            add(&variable.path, why, texts);
        }
    }
}

/// A port of a container, with its path.
struct Port {
    path: String,
    /// The port of the host, or 0.
    on_host: i64,
    /// The address of the host, or an empty text.
    address: String,
}

fn add_ports(spec: &Field<'_, '_>, texts: &mut Vec<String>) {
    let mut by_number: BTreeMap<(i64, String), Vec<Port>> = BTreeMap::new();
    let mut by_name: BTreeMap<String, String> = BTreeMap::new();
    let mut names = Vec::new();
    for_containers(spec, |container| {
        for port in container.at("ports").items() {
            let (number, protocol) = (port.at("containerPort"), port.at("protocol"));
            let new = Port {
                path: port.path.to_string(),
                on_host: port.at("hostPort").number(),
                address: port.at("hostIP").text().to_owned(),
            };
            if !new.address.is_empty() && new.on_host == 0 {
                add(
                    &new.path,
                    format_args!("hostIP set without hostPort: {}", go_struct(&port)),
                    texts,
                );
            }
            let key = (number.number(), protocol.text().to_owned());
            let others = by_number.entry(key).or_default();
            let compared = others.iter().take(COMPARED_PORTS);
            texts.extend(compared.filter_map(|other| overlap(&new, other)));
            others.push(new);
            let (name, path) = (port.at("name"), port.path.to_string());
            if let Some(other) = by_name.get(name.text()) {
                let name = Quoted(name.text());
                names.push(format!(
                    "{path}: duplicate port name {name} with {other}, services and probes that select ports by name will use {other}"
                ));
            } else if !name.is_empty() {
                by_name.insert(name.text().to_owned(), path);
            }
        }
    });
    texts.extend(names);
}

/// Returns a port as Go's `%+v` shows its struct.
fn go_struct(port: &Field<'_, '_>) -> String {
    format!(
        "{{Name:{} HostPort:{} ContainerPort:{} Protocol:{} HostIP:{}}}",
        port.at("name").text(),
        port.at("hostPort").number(),
        port.at("containerPort").number(),
        port.at("protocol").text(),
        port.at("hostIP").text()
    )
}

/// Returns the warning about two ports with one number and one protocol.
fn overlap(new: &Port, other: &Port) -> Option<String> {
    let is_same_port = new.on_host == other.on_host;
    let kind = if is_same_port && new.address == other.address {
        "duplicate"
    } else if new.on_host == 0 || other.on_host == 0 {
        "overlapping"
    } else if is_same_port && (new.address.is_empty() != other.address.is_empty()) {
        "dangerously ambiguous"
    } else {
        return None;
    };
    Some(format!(
        "{}: {kind} port definition with {}",
        new.path, other.path
    ))
}
