//! Warnings about valid objects whose values have no effect or a surprising one.
//!
//! Guarantees: the texts and their order are those of `pkg/api` and `pkg/registry` in Kubernetes. There are none about
//! overlapping paths of volumes, about unusual texts of IP addresses, about the claims of volumes and about `AppArmor`.

mod pod;

use serde_json::Value;

use super::field::Field;
use crate::name_syntax::label_faults;
use crate::object::Object;
use pod::add_spec;

/// Completions and parallelism of an indexed job above which Kubernetes might lose count of failed indexes.
const INDEXED_MAX: (i64, i64) = (100_000, 10_000);

/// The start of the message about a name that is no DNS label.
const IN_POD_NAMES: &str = "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended";

pub(super) fn of_pod(pod: &Object, old: Option<&Object>, texts: &mut Vec<String>) {
    // As in Kubernetes: updates of pods are frequent, and programs make them.
    if old.is_some() {
        return;
    }
    let why = "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended";
    add_name(pod, why, texts);
    let (spec, metadata) = (Field::of(pod, "spec"), Field::of(pod, "metadata"));
    add_spec(&spec, &metadata, texts);
}

/// Adds the warnings about a deployment, a replica set or a replication controller.
pub(super) fn of_workload(object: &Object, old: Option<&Object>, texts: &mut Vec<String>) {
    if old.is_none() {
        add_name(object, IN_POD_NAMES, texts);
    }
    if is_changed(object, old) {
        add_template(&Field::of(object, "spec").at("template"), texts);
    }
}

pub(super) fn of_stateful_set(set: &Object, old: Option<&Object>, texts: &mut Vec<String>) {
    let spec = Field::of(set, "spec");
    if is_changed(set, old) {
        add_template(&spec.at("template"), texts);
    }
    if spec.at("revisionHistoryLimit").number() < 0 {
        texts.push("spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended".to_owned());
    }
}

pub(super) fn of_pod_template(object: &Object, old: Option<&Object>, texts: &mut Vec<String>) {
    if is_changed(object, old) {
        add_template(&Field::of(object, "template"), texts);
    }
}

pub(super) fn of_job(job: &Object, old: Option<&Object>, texts: &mut Vec<String>) {
    if old.is_none() {
        add_name(job, IN_POD_NAMES, texts);
    }
    if is_changed(job, old) {
        add_job_spec(&Field::of(job, "spec"), texts);
    }
}

pub(super) fn of_cron_job(job: &Object, old: Option<&Object>, texts: &mut Vec<String>) {
    let spec = Field::of(job, "spec");
    if old.is_none() {
        add_name(job, IN_POD_NAMES, texts);
    }
    if is_changed(job, old) {
        add_job_spec(&spec.at("jobTemplate").at("spec"), texts);
    }
    if old.is_some() && spec.at("schedule").text().contains("TZ") {
        // Kubernetes writes this path.
        texts.push("cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details".to_owned());
    }
}

fn add_job_spec(spec: &Field<'_, '_>, texts: &mut Vec<String>) {
    let (completions, parallelism) = (spec.at("completions"), spec.at("parallelism"));
    let is_large = completions.number() > INDEXED_MAX.0 && parallelism.number() > INDEXED_MAX.1;
    if spec.at("completionMode").is("Indexed") && is_large {
        texts.push(format!(
            "{}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail",
            spec.path
        ));
    }
    add_template(&spec.at("template"), texts);
}

pub(super) fn of_service(service: &Object, _old: Option<&Object>, texts: &mut Vec<String>) {
    let spec = Field::of(service, "spec");
    let annotations = Field::of(service, "metadata");
    if annotations
        .at("annotations")
        .at("service.kubernetes.io/topology-aware-hints")
        .exists()
    {
        texts.push("annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead".to_owned());
    }
    let (kind, external_ips) = (spec.at("type"), spec.at("externalIPs"));
    let is_headless = kind.is("ClusterIP") && spec.at("clusterIP").is("None");
    let is_external = kind.is("ExternalName");
    let ignored = [
        ("spec.loadBalancerIP", !spec.at("loadBalancerIP").is_empty()),
        ("spec.externalIPs", !external_ips.is_empty()),
        (
            "spec.SessionAffinity",
            !spec.at("sessionAffinity").is("None"),
        ),
    ];
    for (field, _) in ignored.iter().filter(|(_, is_set)| is_headless && *is_set) {
        texts.push(format!("{field} is ignored for headless services"));
    }
    if !external_ips.is_empty() && is_external {
        texts.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    } else if !external_ips.is_empty() && !is_headless {
        texts.push(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
                .to_owned(),
        );
    }
    if !is_external && !spec.at("externalName").is_empty() {
        texts
            .push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if spec.at("trafficDistribution").is("PreferClose") {
        texts.push(
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\""
                .to_owned(),
        );
    }
}

/// Returns whether an object is new, or its generation has changed.
fn is_changed(object: &Object, old: Option<&Object>) -> bool {
    old.is_none_or(|old| old.number("generation") != object.number("generation"))
}

fn add_name(object: &Object, why: &str, texts: &mut Vec<String>) {
    let faults = label_faults(object.text("name"));
    if !faults.is_empty() {
        texts.push(format!("{why}: [{}]", faults.join(" ")));
    }
}

/// Adds the warnings about a template of pods.
pub(super) fn add_template(template: &Field<'_, '_>, texts: &mut Vec<String>) {
    if template.value == &Value::Null {
        return;
    }
    add_spec(&template.at("spec"), &template.at("metadata"), texts);
}
