//! Validates the `spec` of a pod, also in the template of another kind.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/core/validation` in Kubernetes. Checked are the names of
//! volumes, containers, policies, node selectors, names of other objects, deadlines and host names. Not checked: what is in
//! a volume, affinity, security contexts, tolerations, topology spread constraints, DNS settings, and features that are
//! off by default.

use std::collections::BTreeSet;

use super::container::{check_containers, check_init_containers};
use super::field::Field;
use super::labels::check_labels;
use super::report::Report;
use super::scheduling::{check_affinity, check_gates, check_spread, check_tolerations};
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
    check_pod_spec(&spec, report);
    let ephemeral = spec.at("ephemeralContainers");
    if !ephemeral.is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        ephemeral.forbidden(report, why);
    }
}

/// Checks the `spec` of a pod.
pub(super) fn check_pod_spec(spec: &Field<'_, '_>, report: &mut Report) {
    let volumes = check_volumes(&spec.at("volumes"), report);
    let (containers, init_containers) = (spec.at("containers"), spec.at("initContainers"));
    check_containers(&containers, &volumes, report);
    check_init_containers((&containers, &init_containers), &volumes, report);
    let policies = ["Always", "OnFailure", "Never"];
    spec.at("restartPolicy")
        .check_required_one_of(report, &policies);
    let policies = ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"];
    spec.at("dnsPolicy")
        .check_required_one_of(report, &policies);
    check_labels(&spec.at("nodeSelector"), report);
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

/// Checks a name that can be absent.
fn check_name(name: &Field<'_, '_>, faults: impl Fn(&str) -> Vec<String>, report: &mut Report) {
    if !name.is_empty() {
        name.check_text(report, faults);
    }
}

/// Checks the names of volumes, and returns those without an error.
fn check_volumes<'v>(volumes: &Field<'_, 'v>, report: &mut Report) -> BTreeSet<&'v str> {
    let mut names = BTreeSet::new();
    for volume in volumes.items() {
        let name = volume.at("name");
        let before = report.found();
        if name.is_empty() {
            name.required(report);
        } else {
            name.check_text(report, label_faults);
        }
        if names.contains(name.text()) {
            name.duplicate(report);
        }
        if report.found() == before {
            names.insert(name.text());
        }
    }
    names
}
