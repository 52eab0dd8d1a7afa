//! Validates the `spec` of a pod, also in the template of another kind.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/core/validation` in Kubernetes. Not checked: resources of
//! the pod, resource claims, DNS settings, host aliases, readiness gates, operating systems, users of the host, annotations,
//! and features that are off by default.

use super::container::{PodContext, check_containers, check_init_containers};
use super::ephemeral_container::check_ephemeral_containers;
use super::field::Field;
use super::labels::check_labels;
use super::report::Report;
use super::scheduling::{check_affinity, check_gates, check_spread, check_tolerations};
use super::security::check_pod_security;
use super::volume::check_volumes;
use crate::name_syntax::{NameRule, label_faults};

/// Checks a template of pods.
pub(super) fn check_template(template: &Field<'_, '_>, report: &mut Report) {
    let labels = Field {
        // Kubernetes leaves out `metadata` here.
        path: template.path.child("labels"),
        value: &template.value["metadata"]["labels"],
    };
    check_labels(&labels, report);
    let spec = template.at("spec");
    check_pod_spec(&spec, Place::Template, report);
    let ephemeral = spec.at("ephemeralContainers");
    if !ephemeral.is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        ephemeral.forbidden(report, why);
    }
}

/// What has a `spec` of a pod.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Pod,
    Template,
}

/// Checks the `spec` of a pod.
pub(super) fn check_pod_spec(spec: &Field<'_, '_>, place: Place, report: &mut Report) {
    let volumes = check_volumes(&spec.at("volumes"), report);
    let (containers, init_containers) = (spec.at("containers"), spec.at("initContainers"));
    let pod = PodContext {
        volumes: &volumes,
        grace: spec.at("terminationGracePeriodSeconds").value.as_i64(),
        uses_host_users: *spec.at("hostUsers").value != false,
        restart_policy: spec.at("restartPolicy").text(),
    };
    check_containers(&containers, &pod, report);
    check_init_containers((&containers, &init_containers), &pod, report);
    check_ephemeral_containers(spec, &pod, report);
    check_host_network(spec, place, report);
    let policies = ["Always", "OnFailure", "Never"];
    spec.at("restartPolicy")
        .check_required_one_of(report, &policies);
    let policies = ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"];
    spec.at("dnsPolicy")
        .check_required_one_of(report, &policies);
    check_labels(&spec.at("nodeSelector"), report);
    check_pod_security(spec, report);
    check_affinity(&spec.at("affinity"), report);
    check_gates(&spec.at("schedulingGates"), report);
    check_spread(&spec.at("topologySpreadConstraints"), report);
    for name in ["serviceAccountName", "nodeName"] {
        check_name(
            &spec.at(name),
            |name| NameRule::Subdomain.faults(name),
            report,
        );
    }
    let deadline = spec.at("activeDeadlineSeconds");
    if deadline.exists() && !(1..=i64::from(i32::MAX)).contains(&deadline.number()) {
        deadline.invalid(report, "must be between 1 and 2147483647, inclusive");
    }
    for name in ["hostname", "subdomain"] {
        check_name(&spec.at(name), label_faults, report);
    }
    check_tolerations(&spec.at("tolerations"), report);
    for name in ["priorityClassName", "runtimeClassName"] {
        check_name(
            &spec.at(name),
            |name| NameRule::Subdomain.faults(name),
            report,
        );
    }
    let preemption = spec.at("preemptionPolicy");
    if preemption.exists() {
        preemption.check_required_one_of(report, &["PreemptLowerPriority", "Never"]);
    }
}

/// Checks that the ports of a pod in the network of its host are ports of the host.
fn check_host_network(spec: &Field<'_, '_>, place: Place, report: &mut Report) {
    if *spec.at("hostNetwork").value != true {
        return;
    }
    for container in spec.at("containers").items() {
        for port in container.at("ports").items() {
            let (of_host, own) = (port.at("hostPort"), port.at("containerPort"));
            // The ports of a template get their default in the pod.
            let is_set = place == Place::Pod || of_host.number() != 0;
            if is_set && of_host.number() != own.number() {
                let why = "must match `containerPort` when `hostNetwork` is true";
                report.invalid(&of_host.path, of_host.number(), why);
            }
        }
    }
}

/// Checks a name that can be absent.
fn check_name(name: &Field<'_, '_>, faults: impl Fn(&str) -> Vec<String>, report: &mut Report) {
    if !name.is_empty() {
        name.check_text(report, faults);
    }
}
