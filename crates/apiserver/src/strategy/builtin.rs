//! Defines how the built-in resources behave on writes and in responses.
//!
//! Each row of the table `ROWS` contains the name of a resource and its [`Strategy`].
//!
//! Guarantees: a resource without a row has the strategy [`Strategy::BUILTIN`].

use super::GarbageCollectionPolicy::{OrphanDependents, Unsupported};
use super::update_checks::with_updates;
use super::{
    StatusMetadata, Strategy, api_service, autoscaler, config_map, daemon_set, definition,
    endpoints, event, fixed, flow_control, ingress, job, lease, namespace, network_policy, node,
    persistent_volume, pod, quota, rbac, secret, service, signing_request, workload,
};
use crate::columns;
use crate::metadata::MetadataRules;
use crate::name_syntax::NameRule::{Label, PathSegment};
use crate::selector::field;

/// The built-in resources, such as `pods` or `deployments.apps`, with their strategies.
#[rustfmt::skip] // one row per resource
const ROWS: &[(&str, Strategy)] = &[
    ("componentstatuses", Strategy { columns: columns::cluster::COMPONENT_STATUSES, ..Strategy::BUILTIN }),
    ("configmaps", Strategy { columns: columns::CONFIG_MAPS, hooks: config_map::HOOKS, ..Strategy::BUILTIN }),
    ("endpoints", Strategy { creates_on_update: true, stored_at: Some("services/endpoints"), columns: columns::ENDPOINTS, ..Strategy::BUILTIN }),
    ("events", Strategy { dependents: Unsupported, creates_on_update: true, fields: field::CORE_EVENT, hooks: event::CORE, columns: columns::EVENTS, ..Strategy::BUILTIN }),
    ("limitranges", Strategy { creates_on_update: true, hooks: quota::LIMIT_RANGE, ..Strategy::BUILTIN }),
    ("namespaces", Strategy { returns_deleted: true, metadata: MetadataRules::of(Label), initial_status: Some(r#"{"phase":"Active"}"#), fields: field::NAMESPACE, columns: columns::NAMESPACES, hooks: namespace::HOOKS, ..Strategy::BUILTIN }),
    ("nodes", Strategy { keeps_client_status: true, stored_at: Some("minions"), fields: field::NODE, columns: columns::workload::NODES, hooks: node::HOOKS, ..Strategy::BUILTIN }),
    ("persistentvolumeclaims", Strategy { returns_deleted: true, initial_status: Some(r#"{"phase":"Pending"}"#), columns: columns::PERSISTENT_VOLUME_CLAIMS, hooks: persistent_volume::CLAIM, ..Strategy::BUILTIN }),
    ("persistentvolumes", Strategy { returns_deleted: true, initial_status: Some(r#"{"phase":"Pending"}"#), columns: columns::PERSISTENT_VOLUMES, hooks: persistent_volume::HOOKS, ..Strategy::BUILTIN }),
    ("pods", Strategy { status_metadata: StatusMetadata::Except(&["deletionTimestamp", "ownerReferences"]), counts_generations: true, returns_deleted: true, initial_status: Some(r#"{"phase":"Pending"}"#), fields: field::POD, columns: columns::workload::PODS, hooks: pod::HOOKS, ..Strategy::BUILTIN }),
    ("podtemplates", Strategy { counts_generations: true, returns_deleted: true, hooks: fixed::POD_TEMPLATE, columns: columns::workload::POD_TEMPLATES, ..Strategy::BUILTIN }),
    ("replicationcontrollers", Strategy { dependents: OrphanDependents, counts_generations: true, stored_at: Some("controllers"), fields: field::REPLICATION_CONTROLLER, columns: columns::workload::REPLICATION_CONTROLLERS, hooks: workload::REPLICATION_CONTROLLER, ..Strategy::BUILTIN }),
    ("resourcequotas", Strategy { returns_deleted: true, hooks: quota::QUOTA, columns: columns::cluster::RESOURCE_QUOTAS, ..Strategy::BUILTIN }),
    ("secrets", Strategy { fields: field::SECRET, columns: columns::SECRETS, hooks: secret::HOOKS, ..Strategy::BUILTIN }),
    ("serviceaccounts", Strategy { returns_deleted: true, columns: columns::ANY, ..Strategy::BUILTIN }),
    ("services", Strategy { creates_on_update: true, returns_deleted: true, metadata: MetadataRules::of(Label), stored_at: Some("services/specs"), fields: field::SERVICE, columns: columns::SERVICES, hooks: service::HOOKS, ..Strategy::BUILTIN }),
    ("mutatingadmissionpolicies.admissionregistration.k8s.io", Strategy { metadata: MetadataRules::GENERIC, counts_generations: true, requires_revision: true, columns: columns::cluster::MUTATING_POLICIES, ..Strategy::BUILTIN }),
    ("mutatingadmissionpolicybindings.admissionregistration.k8s.io", Strategy { metadata: MetadataRules::GENERIC, counts_generations: true, requires_revision: true, columns: columns::cluster::POLICY_BINDINGS, ..Strategy::BUILTIN }),
    ("mutatingwebhookconfigurations.admissionregistration.k8s.io", Strategy { metadata: MetadataRules::GENERIC, counts_generations: true, requires_revision: true, columns: columns::cluster::WEBHOOK_CONFIGURATIONS, ..Strategy::BUILTIN }),
    ("validatingadmissionpolicies.admissionregistration.k8s.io", Strategy { metadata: MetadataRules::GENERIC, status_metadata: StatusMetadata::RESET, counts_generations: true, requires_revision: true, columns: columns::cluster::VALIDATING_POLICIES, ..Strategy::BUILTIN }),
    ("validatingadmissionpolicybindings.admissionregistration.k8s.io", Strategy { metadata: MetadataRules::GENERIC, counts_generations: true, requires_revision: true, columns: columns::cluster::POLICY_BINDINGS, ..Strategy::BUILTIN }),
    ("validatingwebhookconfigurations.admissionregistration.k8s.io", Strategy { metadata: MetadataRules::GENERIC, counts_generations: true, requires_revision: true, columns: columns::cluster::WEBHOOK_CONFIGURATIONS, ..Strategy::BUILTIN }),
    ("customresourcedefinitions.apiextensions.k8s.io", Strategy { metadata: MetadataRules::GENERIC, checks_direct_writes: true, counts_generations: true, requires_revision: true, initial_status: Some(r#"{"acceptedNames":{"kind":"","plural":""},"conditions":null}"#), hooks: definition::HOOKS, ..Strategy::BUILTIN }),
    ("apiservices.apiregistration.k8s.io", Strategy { metadata: MetadataRules { names: PathSegment, ..MetadataRules::GENERIC }, status_metadata: StatusMetadata::Except(&["labels", "annotations", "finalizers", "ownerReferences"]), requires_revision: true, hooks: api_service::HOOKS, columns: columns::cluster::API_SERVICES, ..Strategy::BUILTIN }),
    ("daemonsets.apps", Strategy { counts_generations: true, hooks: daemon_set::HOOKS, columns: columns::workload::DAEMON_SETS, ..Strategy::BUILTIN }),
    ("deployments.apps", Strategy { status_metadata: StatusMetadata::Except(&["labels"]), counts_generations: true, counts_annotations: true, hooks: workload::DEPLOYMENT, columns: columns::workload::DEPLOYMENTS, ..Strategy::BUILTIN }),
    ("replicasets.apps", Strategy { counts_generations: true, hooks: workload::REPLICA_SET, columns: columns::workload::REPLICA_SETS, ..Strategy::BUILTIN }),
    ("statefulsets.apps", Strategy { metadata: MetadataRules::of(Label), counts_generations: true, hooks: workload::STATEFUL_SET, columns: columns::workload::STATEFUL_SETS, ..Strategy::BUILTIN }),
    ("controllerrevisions.apps", Strategy { hooks: workload::CONTROLLER_REVISION, columns: columns::workload::CONTROLLER_REVISIONS, ..Strategy::BUILTIN }),
    ("horizontalpodautoscalers.autoscaling", Strategy { columns: columns::AUTOSCALERS, hooks: autoscaler::HOOKS, ..Strategy::BUILTIN }),
    ("cronjobs.batch", Strategy { counts_generations: true, columns: columns::workload::CRON_JOBS, hooks: job::CRON_JOB, ..Strategy::BUILTIN }),
    ("jobs.batch", Strategy { dependents: OrphanDependents, counts_generations: true, fields: field::JOB, columns: columns::workload::JOBS, hooks: job::HOOKS, ..Strategy::BUILTIN }),
    ("certificatesigningrequests.certificates.k8s.io", Strategy { fields: field::SIGNING_REQUEST, hooks: signing_request::HOOKS, columns: columns::cluster::SIGNING_REQUESTS, ..Strategy::BUILTIN }),
    ("leasecandidates.coordination.k8s.io", Strategy { metadata: MetadataRules::GENERIC, requires_revision: true, creates_on_update: true, ..Strategy::BUILTIN }),
    ("leases.coordination.k8s.io", Strategy { metadata: MetadataRules::GENERIC, requires_revision: true, creates_on_update: true, hooks: lease::HOOKS, columns: columns::LEASES, ..Strategy::BUILTIN }),
    ("endpointslices.discovery.k8s.io", Strategy { counts_generations: true, hooks: endpoints::SLICE, columns: columns::cluster::ENDPOINT_SLICES, ..Strategy::BUILTIN }),
    ("events.events.k8s.io", Strategy { dependents: Unsupported, creates_on_update: true, fields: field::EVENT, hooks: event::HOOKS, columns: columns::EVENTS, ..Strategy::BUILTIN }),
    ("flowschemas.flowcontrol.apiserver.k8s.io", Strategy { status_metadata: StatusMetadata::Stored, counts_generations: true, hooks: flow_control::FLOW_SCHEMA, columns: columns::cluster::FLOW_SCHEMAS, ..Strategy::BUILTIN }),
    ("prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", Strategy { status_metadata: StatusMetadata::Stored, counts_generations: true, hooks: flow_control::PRIORITY_LEVEL, columns: columns::cluster::PRIORITY_LEVELS, ..Strategy::BUILTIN }),
    ("ingressclasses.networking.k8s.io", Strategy { counts_generations: true, hooks: fixed::INGRESS_CLASS, columns: columns::INGRESS_CLASSES, ..Strategy::BUILTIN }),
    ("ingresses.networking.k8s.io", Strategy { counts_generations: true, stored_at: Some("ingress"), hooks: ingress::HOOKS, columns: columns::INGRESSES, ..Strategy::BUILTIN }),
    ("ipaddresses.networking.k8s.io", Strategy { columns: columns::cluster::IP_ADDRESSES, ..Strategy::BUILTIN }),
    ("networkpolicies.networking.k8s.io", Strategy { counts_generations: true, hooks: network_policy::HOOKS, columns: columns::NETWORK_POLICIES, ..Strategy::BUILTIN }),
    ("servicecidrs.networking.k8s.io", Strategy { status_metadata: StatusMetadata::RESET, columns: columns::cluster::SERVICE_CIDRS, ..Strategy::BUILTIN }),
    ("runtimeclasses.node.k8s.io", Strategy { metadata: MetadataRules::GENERIC, requires_revision: true, creates_on_update: true, hooks: fixed::RUNTIME_CLASS, columns: columns::cluster::RUNTIME_CLASSES, ..Strategy::BUILTIN }),
    ("poddisruptionbudgets.policy", Strategy { counts_generations: true, requires_revision: true, columns: columns::DISRUPTION_BUDGETS, hooks: fixed::DISRUPTION_BUDGET, ..Strategy::BUILTIN }),
    ("clusterrolebindings.rbac.authorization.k8s.io", Strategy { creates_on_update: true, metadata: MetadataRules::of(PathSegment), columns: columns::BINDINGS, hooks: rbac::CLUSTER_ROLE_BINDING, ..Strategy::BUILTIN }),
    ("clusterroles.rbac.authorization.k8s.io", Strategy { creates_on_update: true, metadata: MetadataRules::of(PathSegment), hooks: rbac::CLUSTER_ROLE, ..Strategy::BUILTIN }),
    ("rolebindings.rbac.authorization.k8s.io", Strategy { creates_on_update: true, metadata: MetadataRules::of(PathSegment), columns: columns::BINDINGS, hooks: rbac::ROLE_BINDING, ..Strategy::BUILTIN }),
    ("roles.rbac.authorization.k8s.io", Strategy { creates_on_update: true, metadata: MetadataRules::of(PathSegment), hooks: rbac::ROLE, ..Strategy::BUILTIN }),
    ("deviceclasses.resource.k8s.io", Strategy { counts_generations: true, returns_deleted: true, columns: columns::ANY, ..Strategy::BUILTIN }),
    ("devicetaintrules.resource.k8s.io", Strategy { status_metadata: StatusMetadata::RESET, counts_generations: true, returns_deleted: true, ..Strategy::BUILTIN }),
    ("resourceclaims.resource.k8s.io", Strategy { status_metadata: StatusMetadata::RESET, returns_deleted: true, columns: columns::cluster::RESOURCE_CLAIMS, ..Strategy::BUILTIN }),
    ("resourceclaimtemplates.resource.k8s.io", Strategy { returns_deleted: true, columns: columns::ANY, ..Strategy::BUILTIN }),
    ("resourceslices.resource.k8s.io", Strategy { counts_generations: true, returns_deleted: true, fields: field::RESOURCE_SLICE, columns: columns::cluster::RESOURCE_SLICES, ..Strategy::BUILTIN }),
    ("priorityclasses.scheduling.k8s.io", Strategy { counts_generations: true, hooks: fixed::PRIORITY_CLASS, columns: columns::cluster::PRIORITY_CLASSES, ..Strategy::BUILTIN }),
    ("csidrivers.storage.k8s.io", Strategy { requires_revision: true, returns_deleted: true, hooks: fixed::CSI_DRIVER, columns: columns::cluster::CSI_DRIVERS, ..Strategy::BUILTIN }),
    ("csinodes.storage.k8s.io", Strategy { requires_revision: true, returns_deleted: true, columns: columns::cluster::CSI_NODES, ..Strategy::BUILTIN }),
    ("csistoragecapacities.storage.k8s.io", Strategy { requires_revision: true, ..Strategy::BUILTIN }),
    ("storageclasses.storage.k8s.io", Strategy { returns_deleted: true, columns: columns::STORAGE_CLASSES, hooks: fixed::STORAGE_CLASS, ..Strategy::BUILTIN }),
    ("volumeattachments.storage.k8s.io", Strategy { status_metadata: StatusMetadata::RESET, requires_revision: true, returns_deleted: true, columns: columns::cluster::VOLUME_ATTACHMENTS, ..Strategy::BUILTIN }),
    ("volumeattributesclasses.storage.k8s.io", Strategy { returns_deleted: true, columns: columns::cluster::VOLUME_ATTRIBUTES_CLASSES, ..Strategy::BUILTIN }),
];

/// Returns the strategy of the built-in resource `group_resource`, such as `deployments.apps`.
pub(super) fn strategy(group_resource: &str) -> Strategy {
    let found = ROWS.iter().find(|(name, _)| *name == group_resource);
    let strategy = found.map_or(Strategy::BUILTIN, |(_, strategy)| *strategy);
    Strategy {
        metadata: with_updates(strategy.metadata, group_resource),
        ..strategy
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::kinds::{Kind, Kinds};

    #[test]
    fn every_row_names_a_distinct_built_in_resource() {
        let kinds = Kinds::builtin();
        let served: BTreeSet<String> = kinds.iter().map(Kind::group_resource).collect();
        let rows: BTreeSet<&str> = ROWS.iter().map(|(name, _)| *name).collect();
        assert_eq!(rows.len(), ROWS.len());
        let unserved = rows.iter().filter(|name| !served.contains(**name));
        // Kubernetes has these resources only in beta versions, which it does not serve by default.
        let beta = [
            "devicetaintrules.resource.k8s.io",
            "leasecandidates.coordination.k8s.io",
        ];
        assert_eq!(unserved.copied().collect::<Vec<_>>(), beta);
    }

    #[test]
    fn every_cell_has_a_column_with_its_name() {
        for kind in Kinds::builtin().iter() {
            let columns = strategy(&kind.group_resource()).columns;
            let mut cells: Vec<&str> = columns.iter().map(|column| column.name).collect();
            if kind.kind == "IPAddress" {
                // As in Kubernetes, the last cell has no column.
                cells.pop();
            }
            let found = columns::described::definitions(&kind.kind);
            let found = found.as_array().into_iter().flatten();
            let names: Vec<&str> = found.filter_map(|it| it["name"].as_str()).collect();
            assert_eq!(names, cells, "{}", kind.kind);
        }
    }

    #[test]
    fn every_initial_status_is_json() {
        for (name, strategy) in ROWS {
            let status = strategy.initial_status.unwrap_or("{}");
            assert!(
                serde_json::from_str::<serde_json::Value>(status).is_ok(),
                "{name}"
            );
        }
    }
}
