//! Validates the kinds that run pods from a template: deployments, replica sets, stateful sets, daemon sets and
//! replication controllers.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/apps/validation` in Kubernetes. What is checked in a
//! template is listed in `pod_spec`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::field::{Field, IMMUTABLE};
use super::int_or_percent;
use super::labels::{check_selector, is_empty_selector, selects, shown_selector};
use super::pod_spec::check_template;
use super::report::Report;
use super::{Hooks, warnings, workload_status};
use crate::name_syntax::label_faults;
use crate::object::Object;

pub(super) const DEPLOYMENT: Hooks = Hooks {
    check_status: workload_status::of_deployment,
    warn: Some(warnings::of_workload),
    ..Hooks::checked_by(check_deployment)
};
pub(super) const REPLICA_SET: Hooks = Hooks {
    check_status: workload_status::of_replica_set,
    warn: Some(warnings::of_workload),
    ..Hooks::checked_by(check_replica_set)
};
pub(super) const REPLICATION_CONTROLLER: Hooks = Hooks {
    check_status: workload_status::of_replica_set,
    warn: Some(warnings::of_workload),
    ..Hooks::checked_by(check_controller)
};
pub(super) const STATEFUL_SET: Hooks = Hooks {
    prepare: drop_disabled,
    check_status: workload_status::of_stateful_set,
    warn: Some(warnings::of_stateful_set),
    ..Hooks::checked_by(check_stateful_set)
};
pub(super) const CONTROLLER_REVISION: Hooks = Hooks::checked_by(check_revision);

/// The fields of a stateful set that can change.
const STATEFUL_SET_CHANGES: [&str; 7] = [
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
];

fn check_deployment(deployment: &Object, old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(deployment, "spec");
    spec.at("replicas").check_not_negative(report);
    check_selected_template(&spec, &spec.at("template"), "deployment", report);
    check_strategy(&spec.at("strategy"), report);
    let ready = spec.at("minReadySeconds");
    ready.check_not_negative(report);
    spec.at("revisionHistoryLimit").check_not_negative(report);
    let deadline = spec.at("progressDeadlineSeconds");
    if deadline.exists() {
        deadline.check_not_negative(report);
        if deadline.number() <= ready.number() {
            deadline.invalid(report, "must be greater than minReadySeconds");
        }
    }
    check_selector_unchanged(&spec, old, report);
}

fn check_replica_set(set: &Object, old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(set, "spec");
    spec.at("replicas").check_not_negative(report);
    spec.at("minReadySeconds").check_not_negative(report);
    // The message names the other kind, as in Kubernetes.
    check_selected_template(&spec, &spec.at("template"), "deployment", report);
    check_selector_unchanged(&spec, old, report);
}

fn check_controller(controller: &Object, _old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(controller, "spec");
    spec.at("minReadySeconds").check_not_negative(report);
    let (selector, template) = (spec.at("selector"), spec.at("template"));
    if selector.is_empty() {
        selector.required(report);
    }
    spec.at("replicas").check_not_negative(report);
    if !template.exists() {
        return template.required(report);
    }
    let labels = &template.value["metadata"]["labels"];
    if selector
        .entries()
        .any(|(key, value)| labels.get(key) != Some(value.value))
    {
        mismatch(&template, report);
    }
    check_template(&template, report);
    check_restarts(&template, "ReplicationController", report);
}

/// Removes what Kubernetes removes as long as the feature `MaxUnavailableStatefulSet` is off, as it is by default.
fn drop_disabled(set: &mut Object) {
    let Some(mut spec) = set.sound_part("spec") else {
        return;
    };
    let rolling = spec.pointer_mut("/updateStrategy/rollingUpdate");
    if let Some(Value::Object(rolling)) = rolling
        && rolling.remove("maxUnavailable").is_some()
    {
        set.set("spec", Some(spec));
    }
}

fn check_stateful_set(set: &Object, old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(set, "spec");
    let policy = spec.at("podManagementPolicy");
    match policy.text() {
        "" => policy.required(report),
        "OrderedReady" | "Parallel" => {}
        _ => policy.invalid(report, "must be 'OrderedReady' or 'Parallel'"),
    }
    check_stateful_set_strategy(&spec.at("updateStrategy"), report);
    let retention = spec.at("persistentVolumeClaimRetentionPolicy");
    if retention.exists() {
        for name in ["whenDeleted", "whenScaled"] {
            let policy = retention.at(name);
            policy.check_one_of(report, &["Retain", "Delete"]);
        }
    }
    spec.at("replicas").check_not_negative(report);
    spec.at("minReadySeconds").check_not_negative(report);
    let ordinals = spec.at("ordinals");
    ordinals.at("start").check_not_negative(report);
    let service = spec.at("serviceName");
    if old.is_none() && !service.is_empty() {
        service.check_text(report, label_faults);
    }
    let template = template_with_claims(&spec);
    let template = Field {
        path: spec.path.child("template"),
        value: &template,
    };
    check_selected_template(&spec, &template, "statefulset", report);
    let fixed = |set: &Object| {
        let mut spec = set.part("spec");
        if let Some(members) = spec.as_object_mut() {
            members.retain(|name, _| !STATEFUL_SET_CHANGES.contains(&name.as_str()));
        }
        spec
    };
    if old.is_some_and(|old| fixed(set) != fixed(old)) {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        spec.forbidden(report, why);
    }
}

pub(super) fn check_daemon_set(set: &Object, old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(set, "spec");
    check_selector_unchanged(&spec, old, report);
    let (selector, template) = (spec.at("selector"), spec.at("template"));
    check_selector(&selector, report);
    let labels = &template.value["metadata"]["labels"];
    if selects(&selector, labels) == Some(false) {
        mismatch(&template, report);
    }
    if selector.exists() && is_empty_selector(&selector) {
        let why = "empty selector is invalid for daemonset";
        report.invalid(&selector.path, shown_selector(&selector), why);
    }
    check_template(&template, report);
    check_restarts(&template, "DaemonSet", report);
    spec.at("minReadySeconds").check_not_negative(report);
    check_daemon_set_strategy(&spec.at("updateStrategy"), report);
    spec.at("revisionHistoryLimit").check_not_negative(report);
}

fn check_revision(revision: &Object, old: Option<&Object>, report: &mut Report) {
    Field::of(revision, "revision").check_not_negative(report);
    let data = Field::of(revision, "data");
    match old {
        Some(old) => data.check_unchanged(report, &Field::of(old, "data")),
        None if !data.exists() => report.required(&data.path, "data is mandatory"),
        None if !data.value.is_object() => {
            report.required(&data.path, "data must be a valid JSON object");
        }
        None => {}
    }
}

/// Returns the template of a stateful set with the volumes of its claims, and without what its controller replaces.
fn template_with_claims(spec: &Field<'_, '_>) -> Value {
    let mut template = spec.value["template"].clone();
    let Some(pod) = template.get_mut("spec").and_then(Value::as_object_mut) else {
        return template;
    };
    for replaced in ["hostname", "subdomain"] {
        pod.remove(replaced);
    }
    let claims = spec.value["volumeClaimTemplates"].as_array();
    let names = claims.into_iter().flatten();
    let names = names.filter_map(|claim| claim["metadata"]["name"].as_str());
    let names: BTreeSet<String> = names.map(str::to_owned).collect();
    let mut volumes: Vec<Value> = names
        .iter()
        .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}))
        .collect();
    let own = pod.get("volumes").and_then(Value::as_array);
    let own = own.into_iter().flatten();
    let is_claim = |volume: &Value| {
        let name = volume["name"].as_str();
        name.is_some_and(|name| names.contains(name))
    };
    volumes.extend(own.filter(|volume| !is_claim(volume)).cloned());
    pod.insert("volumes".to_owned(), Value::Array(volumes));
    template
}

/// Checks a selector, and a template that it must select.
fn check_selected_template(
    spec: &Field<'_, '_>,
    template: &Field<'_, '_>,
    kind: &str,
    report: &mut Report,
) {
    let selector = spec.at("selector");
    if selector.exists() {
        check_selector(&selector, report);
        if is_empty_selector(&selector) {
            let why = format!("empty selector is invalid for {kind}");
            report.invalid(&selector.path, shown_selector(&selector), why);
        }
    } else {
        selector.required(report);
    }
    let labels = &template.value["metadata"]["labels"];
    match selects(&selector, labels) {
        None => {
            let shown = shown_selector(&selector);
            if kind != "statefulset" {
                return report.invalid(&selector.path, shown, "invalid label selector");
            }
            report.invalid(&selector.path, shown, "");
            return check_restarts(template, "StatefulSet", report);
        }
        Some(false) => mismatch(template, report),
        Some(true) => {}
    }
    check_template(template, report);
    let kind = match kind {
        "statefulset" => "StatefulSet",
        // The message names the other kind, as in Kubernetes.
        _ => "ReplicaSet",
    };
    check_restarts(template, kind, report);
}

fn mismatch(template: &Field<'_, '_>, report: &mut Report) {
    let metadata = template.at("metadata");
    let labels = metadata.at("labels");
    labels.invalid(report, "`selector` does not match template `labels`");
}

/// Checks that the pods of a template run until they are deleted.
fn check_restarts(template: &Field<'_, '_>, kind: &str, report: &mut Report) {
    let spec = template.at("spec");
    spec.at("restartPolicy").check_one_of(report, &["Always"]);
    let deadline = spec.at("activeDeadlineSeconds");
    if deadline.exists() {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        deadline.forbidden(report, why);
    }
}

fn check_strategy(strategy: &Field<'_, '_>, report: &mut Report) {
    let rolling = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "Recreate" if rolling.exists() => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            rolling.forbidden(report, why);
        }
        "Recreate" => {}
        "RollingUpdate" if !rolling.exists() => {
            let why = "this should be defaulted and never be nil";
            report.required(&rolling.path, why);
        }
        "RollingUpdate" => {
            let (most, surge) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
            int_or_percent::check(&most, report);
            int_or_percent::check(&surge, report);
            if int_or_percent::is_zero(&most) && int_or_percent::is_zero(&surge) {
                most.invalid(report, "may not be 0 when `maxSurge` is 0");
            }
            int_or_percent::check_at_most_all(&most, report);
        }
        _ => unsupported_strategy(strategy, &["Recreate", "RollingUpdate"], report),
    }
}

fn check_daemon_set_strategy(strategy: &Field<'_, '_>, report: &mut Report) {
    let rolling = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "OnDelete" => {}
        "RollingUpdate" if !rolling.exists() => rolling.required(report),
        "RollingUpdate" => {
            let (most, surge) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
            for field in [&most, &surge] {
                int_or_percent::check(field, report);
            }
            for field in [&most, &surge] {
                int_or_percent::check_at_most_all(field, report);
            }
            match (
                int_or_percent::is_zero(&most),
                int_or_percent::is_zero(&surge),
            ) {
                (false, false) => {
                    surge.invalid(report, "may not be set when maxUnavailable is non-zero");
                }
                (true, true) => report.required(&most.path, "cannot be 0 when maxSurge is 0"),
                _ => {}
            }
        }
        _ => unsupported_strategy(strategy, &["RollingUpdate", "OnDelete"], report),
    }
}

fn check_stateful_set_strategy(strategy: &Field<'_, '_>, report: &mut Report) {
    let rolling = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "" => strategy.required(report),
        "OnDelete" if rolling.exists() => {
            // Kubernetes shows its internal type.
            let partition = rolling.at("partition").number();
            let shown = format!("{{\"Partition\":{partition},\"MaxUnavailable\":null}}");
            let why = "only allowed for updateStrategy 'RollingUpdate'";
            report.invalid(&rolling.path, shown, why);
        }
        "RollingUpdate" if rolling.exists() => {
            rolling.at("partition").check_not_negative(report);
        }
        "OnDelete" | "RollingUpdate" => {}
        _ => {
            let why = "must be 'RollingUpdate' or 'OnDelete'";
            report.invalid(&strategy.path, shown_strategy(strategy), why);
        }
    }
}

fn unsupported_strategy(strategy: &Field<'_, '_>, supported: &[&str], report: &mut Report) {
    report.unsupported(&strategy.path, shown_strategy(strategy), supported);
}

/// Returns a strategy of an unknown type as error messages show it: as Kubernetes' internal type.
fn shown_strategy(strategy: &Field<'_, '_>) -> String {
    let kind = strategy.at("type");
    format!("{{\"Type\":{},\"RollingUpdate\":null}}", kind.shown())
}

/// Checks that the selector of a stored object does not change.
fn check_selector_unchanged(spec: &Field<'_, '_>, old: Option<&Object>, report: &mut Report) {
    let selector = spec.at("selector");
    let of_old = |old: &Object| old.get("spec").map(|spec| spec["selector"].clone());
    if let Some(old) = old
        && of_old(old).unwrap_or(Value::Null) != *selector.value
    {
        report.invalid(&selector.path, shown_selector(&selector), IMMUTABLE);
    }
}
