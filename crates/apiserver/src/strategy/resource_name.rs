//! Checks the names of resources such as `cpu` and `example.com/device`.
//!
//! Guarantees: the errors and their order are those of `validateResourceName` and `validateContainerResourceName` in Kubernetes.

use super::report::{Path, Report};
use crate::name_syntax::key_faults;
use crate::quote::Quoted;

/// Names of the resources that containers can have besides extended ones, without `hugepages-`.
const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Names of the other resources without a prefix that quotas can limit.
const OF_QUOTAS: [&str; 16] = [
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
    "requests.storage",
];

/// Checks that a name is that of a resource of Kubernetes, or has a domain.
pub(super) fn check_resource_name(name: &str, path: &Path<'_>, report: &mut Report) {
    let faults = key_faults(name);
    let is_known = name.contains('/') || name == "storage" || is_of_quotas(name);
    if faults.is_empty() && !is_known {
        let why = "must be a standard resource type or fully qualified";
        report.invalid(path, Quoted(name), why);
    }
    for fault in faults {
        report.invalid(path, Quoted(name), fault);
    }
}

/// Checks that a name is that of a resource that containers can have.
pub(super) fn check_container_resource(name: &str, path: &Path<'_>, report: &mut Report) {
    check_resource_name(name, path, report);
    if !name.contains('/') {
        if !OF_CONTAINERS.contains(&name) && !name.starts_with("hugepages-") {
            let why = "must be a standard resource for containers";
            report.invalid(path, Quoted(name), why);
        }
    } else if !is_native(name) && !is_extended(name) {
        let why = "doesn't follow extended resource name standard";
        report.invalid(path, Quoted(name), why);
    }
}

/// Returns whether a quota can limit the resource, which has no domain.
pub(super) fn is_of_quotas(name: &str) -> bool {
    let is_listed = OF_CONTAINERS.contains(&name) || OF_QUOTAS.contains(&name);
    let huge = name.strip_prefix("requests.").unwrap_or(name);
    is_listed || huge.starts_with("hugepages-")
}

/// Returns whether the name is that of an extended resource, such as a device (`IsExtendedResourceName`).
pub(super) fn is_extended(name: &str) -> bool {
    let is_prefixed = name.starts_with("requests.");
    !is_native(name) && !is_prefixed && key_faults(&format!("requests.{name}")).is_empty()
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Returns whether a request can be less than the limit (`IsOvercommitAllowed`).
pub(super) fn can_overcommit(name: &str) -> bool {
    is_native(name) && !name.starts_with("hugepages-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_errors_of_kubernetes_in_their_order() {
        let qualified = "name part must consist of alphanumeric";
        let standard = "must be a standard resource type or fully qualified";
        let of_containers = "must be a standard resource for containers";
        let extended = "doesn't follow extended resource name standard";
        let long = format!("{}.com/a", "a".repeat(246));
        for (name, expected) in [
            ("cpu", vec![]),
            ("hugepages-2Mi", vec![]),
            ("storage", vec![of_containers]),
            ("requests.cpu", vec![of_containers]),
            ("requests.hugepages-2Mi", vec![of_containers]),
            ("gpu", vec![standard, of_containers]),
            ("-", vec![qualified, of_containers]),
            ("example.com/a", vec![]),
            ("kubernetes.io/a", vec![]),
            ("requests.example.com/a", vec![extended]),
            (&long, vec![extended]),
        ] {
            let mut report = Report::default();
            check_container_resource(name, &Path::root("a"), &mut report);
            let errors = report.into_errors();
            assert_eq!(errors.len(), expected.len(), "{name}: {errors:?}");
            for (error, part) in errors.iter().zip(expected) {
                assert!(error.body.contains(part), "{name}: {errors:?}");
            }
        }
    }
}
