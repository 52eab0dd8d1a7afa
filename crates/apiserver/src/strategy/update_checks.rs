//! Defines which functions validate the metadata in an update of an object of a built-in kind.
//!
//! For every kind, Kubernetes first calls two common functions that validate the metadata. The validation of
//! most kinds then calls one or both of these functions again. Each call adds its findings to the causes of
//! the error, so the number of causes differs between kinds.
//!
//! The lists of kinds in this module follow the methods `ValidateUpdate` in `pkg/registry` of Kubernetes
//! 1.36.

use crate::metadata::Function::{self, Object, Update};
use crate::metadata::MetadataRules;

/// Kinds whose own validation first calls only `ValidateObjectMetaUpdate`.
///
/// For `ConfigMap` and `Secret`, Kubernetes also calls `ValidateObjectMeta`, but only after other checks. The
/// strategy modules of these two kinds therefore make this call.
const UPDATE: [&str; 22] = [
    "configmaps",
    "podtemplates",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "customresourcedefinitions.apiextensions.k8s.io",
    "daemonsets.apps",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "horizontalpodautoscalers.autoscaling",
    "cronjobs.batch",
    "leasecandidates.coordination.k8s.io",
    "leases.coordination.k8s.io",
    "events.events.k8s.io",
    "networkpolicies.networking.k8s.io",
    "servicecidrs.networking.k8s.io",
    "devicetaintrules.resource.k8s.io",
    "resourceslices.resource.k8s.io",
    "priorityclasses.scheduling.k8s.io",
    "csidrivers.storage.k8s.io",
];

/// Kinds whose own validation calls only `ValidateObjectMeta`.
const OBJECT: [&str; 6] = [
    "limitranges",
    "endpointslices.discovery.k8s.io",
    "flowschemas.flowcontrol.apiserver.k8s.io",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    "csinodes.storage.k8s.io",
    "volumeattachments.storage.k8s.io",
];

/// Kinds whose own validation first calls `ValidateObjectMeta`, and then `ValidateObjectMetaUpdate`.
const OBJECT_FIRST: [&str; 15] = [
    "namespaces",
    "nodes",
    "jobs.batch",
    "certificatesigningrequests.certificates.k8s.io",
    "ipaddresses.networking.k8s.io",
    "runtimeclasses.node.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "clusterroles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "roles.rbac.authorization.k8s.io",
    "deviceclasses.resource.k8s.io",
    "resourceclaims.resource.k8s.io",
    "resourceclaimtemplates.resource.k8s.io",
    "csistoragecapacities.storage.k8s.io",
    "storageclasses.storage.k8s.io",
];

/// Groups whose kinds do not require domains in finalizers.
const UNQUALIFIED_FINALIZERS: [&str; 5] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
];

/// Replaces the rules for finalizers and updates in `rules` with those of a built-in kind, `group_resource`.
pub(super) fn with_updates(rules: MetadataRules, group_resource: &str) -> MetadataRules {
    let group = group_resource
        .split_once('.')
        .map_or("", |(_, group)| group);
    MetadataRules {
        qualified_finalizers: !UNQUALIFIED_FINALIZERS.contains(&group),
        on_update: on_update(group_resource, group),
        ..rules
    }
}

fn on_update(group_resource: &str, group: &str) -> &'static [Function] {
    match group_resource {
        "events" | "poddisruptionbudgets.policy" => &[],
        "persistentvolumes" => &[Object, Object],
        _ if group == "admissionregistration.k8s.io" || OBJECT.contains(&group_resource) => {
            &[Object]
        }
        _ if UPDATE.contains(&group_resource) => &[Update],
        _ if OBJECT_FIRST.contains(&group_resource) => &[Object, Update],
        _ => &[Update, Object],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::kinds::{Kind, Kinds};

    #[test]
    fn every_list_names_built_in_kinds() {
        let kinds = Kinds::builtin();
        let served: BTreeSet<String> = kinds.iter().map(Kind::group_resource).collect();
        let listed = UPDATE.iter().chain(&OBJECT).chain(&OBJECT_FIRST);
        let unserved: Vec<&&str> = listed.filter(|name| !served.contains(**name)).collect();
        // Kubernetes does not serve these beta versions by default.
        let beta = [
            "leasecandidates.coordination.k8s.io",
            "devicetaintrules.resource.k8s.io",
        ];
        assert_eq!(unserved, beta.iter().collect::<Vec<_>>());
    }
}
