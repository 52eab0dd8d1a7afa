//! Validates the environment variables of a container.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/core/validation` in Kubernetes. Not checked: the divisors of
//! resource fields, and the path of a field in another form than those that Kubernetes lists.

use super::config_data::key_faults as data_key_faults;
use super::field::Field;
use super::report::Report;
use crate::name_syntax::{NameRule, label_faults};

/// Kubernetes' message about the name of an environment variable.
const VARIABLE: &str = "a valid environment variable name must consist only of printable ASCII characters other than '='";

/// The resources of a container that a variable can have as its value.
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// The sources of the value of a variable, in the order in which Kubernetes checks them.
const SOURCES: [&str; 5] = [
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
];

pub(super) fn check_variables(variables: &Field<'_, '_>, report: &mut Report) {
    for variable in variables.items() {
        let name = variable.at("name");
        if name.is_empty() {
            name.required(report);
        } else {
            name.check_text(report, variable_faults);
        }
        let source = variable.at("valueFrom");
        if source.exists() {
            check_source(&source, variable.at("value").is_empty(), report);
        }
    }
}

/// Checks the sources of many variables, such as a config map.
pub(super) fn check_sources(sources: &Field<'_, '_>, report: &mut Report) {
    for source in sources.items() {
        let prefix = source.at("prefix");
        if !prefix.is_empty() {
            prefix.check_text(report, variable_faults);
        }
        let mut count = 0;
        for kind in ["configMapRef", "secretRef"] {
            let reference = source.at(kind);
            if !reference.exists() {
                continue;
            }
            count += 1;
            let name = reference.at("name");
            if name.is_empty() {
                name.required(report);
            } else {
                // Kubernetes checks it like a prefix of names.
                name.check_text(report, |name| NameRule::Subdomain.prefix_faults(name));
            }
        }
        // The path is that of the list, as in Kubernetes.
        match count {
            0 => {
                let why = "must specify one of: `configMapRef` or `secretRef`";
                report.invalid(&sources.path, "\"\"", why);
            }
            1 => {}
            _ => {
                let why = "may not have more than one field specified at a time";
                report.invalid(&sources.path, "\"\"", why);
            }
        }
    }
}

fn variable_faults(name: &str) -> Vec<String> {
    let is_allowed = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'=';
    if name.bytes().all(is_allowed) {
        Vec::new()
    } else {
        vec![VARIABLE.to_owned()]
    }
}

fn check_source(source: &Field<'_, '_>, has_no_value: bool, report: &mut Report) {
    let mut count = 0;
    for kind in SOURCES {
        let reference = source.at(kind);
        if !reference.exists() {
            continue;
        }
        count += 1;
        match kind {
            "fieldRef" => check_field(&reference, report),
            "resourceFieldRef" => check_resource(&reference, report),
            "fileKeyRef" => check_file(&reference, report),
            _ => check_key(&reference, report),
        }
    }
    let why = match count {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if !has_no_value => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    report.invalid(&source.path, "\"\"", why);
}

fn check_key(reference: &Field<'_, '_>, report: &mut Report) {
    let (name, key) = (reference.at("name"), reference.at("key"));
    for fault in NameRule::Subdomain.faults(name.text()) {
        report.invalid(&name.path, crate::quote::Quoted(name.text()), fault);
    }
    if key.is_empty() {
        key.required(report);
    } else {
        key.check_text(report, data_key_faults);
    }
}

fn check_file(reference: &Field<'_, '_>, report: &mut Report) {
    let (key, volume, path) = (
        reference.at("key"),
        reference.at("volumeName"),
        reference.at("path"),
    );
    if key.is_empty() {
        key.required(report);
    } else {
        key.check_text(report, variable_faults);
    }
    if volume.is_empty() {
        volume.required(report);
    } else {
        volume.check_text(report, label_faults);
    }
    if path.is_empty() {
        path.required(report);
    } else {
        super::volume_path::check_no_backsteps(&path, &path.path, report);
    }
}

/// Checks the reference to a field of the pod, such as `metadata.name`.
fn check_field(reference: &Field<'_, '_>, report: &mut Report) {
    let path = reference.at("fieldPath");
    if path.is_empty() {
        return path.required(report);
    }
    let is_subscripted = path.text().starts_with("metadata.") && path.text().ends_with("']");
    let known = [
        "metadata.annotations",
        "metadata.labels",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.serviceAccountName",
        "spec.schedulerName",
        "status.phase",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
        "spec.host",
    ];
    if is_subscripted {
        return;
    }
    if !known.contains(&path.text()) {
        let why = format!(
            "error converting fieldPath: field label not supported: {}",
            path.text()
        );
        return path.invalid(report, why);
    }
    let supported = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    if !path.is("spec.host") {
        path.check_one_of(report, &supported);
    }
}

fn check_resource(reference: &Field<'_, '_>, report: &mut Report) {
    let resource = reference.at("resource");
    let is_huge_pages = ["limits.hugepages-", "requests.hugepages-"]
        .iter()
        .any(|prefix| resource.text().starts_with(prefix));
    if resource.is_empty() {
        resource.required(report);
    } else if !is_huge_pages {
        resource.check_one_of(report, &RESOURCES);
    }
}
