//! Defines the strategies of jobs and cron jobs: validates them, and gives a new job a selector with its uid
//! (`generateSelector` in Kubernetes).
//!
//! Guarantees: the errors and their order are those of `pkg/apis/batch/validation` in Kubernetes. Not checked: policies of
//! failures and of success, and limits of jobs with many completions.

use serde_json::{Map, Value, json};

use super::field::{Field, IMMUTABLE};
use super::internal::{shown_spec, shown_template};
use super::labels::{check_selector, selects, shown_selector};
use super::pod_change::{restore, restore_node_affinity};
use super::pod_spec::check_template;
use super::report::Report;
use super::schedule::{check_schedule, check_time_zone};
use super::unchanged::is_unchanged;
use super::{Hooks, warnings};
use crate::name_syntax::label_faults;
use crate::object::Object;

pub(super) const HOOKS: Hooks = Hooks {
    prepare_create: Some(select_pods),
    check: check_job,
    warn: Some(warnings::of_job),
    ..Hooks::NONE
};

pub(super) const CRON_JOB: Hooks = Hooks {
    warn: Some(warnings::of_cron_job),
    ..Hooks::checked_by(check_cron_job)
};

/// Maximum length of the name of a cron job, to which a suffix of 11 characters is added.
const CRON_NAME_MAX: usize = 52;

/// Maximum parallelism of an indexed job.
const INDEXED_PARALLELISM_MAX: i64 = 100_000;

/// Label with the name of the job that owns a pod.
const JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// Label with the uid of the job that owns a pod. The selector of a job has it.
const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

fn check_job(job: &Object, old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(job, "spec");
    check_generated_selector(job, &spec, old, report);
    check_selected_spec(&spec, report);
    check_indexed_name(job, &spec, report);
    if let Some(old) = old {
        // Kubernetes checks the new values twice.
        check_selected_spec(&spec, report);
        check_job_change(&spec, old, report);
    }
}

/// Checks that the labels of the template and the selector are those that the server adds, unless the selector is manual
/// (`validateGeneratedSelector`).
fn check_generated_selector(
    job: &Object,
    spec: &Field<'_, '_>,
    old: Option<&Object>,
    report: &mut Report,
) {
    let selector = spec.at("selector");
    if spec.value["manualSelector"] == true || !selector.exists() {
        return;
    }
    let of_old = |old: &Object| old.part("spec")["template"]["metadata"]["labels"].clone();
    let old_labels = old.map(of_old);
    let has = |label| {
        old_labels
            .as_ref()
            .is_none_or(|labels| !labels[label].is_null())
    };
    let required = if has(CONTROLLER_UID) && has(JOB_NAME) {
        4
    } else {
        2
    };
    let expected = [
        ("controller-uid", job.text("uid")),
        ("job-name", job.text("name")),
        (CONTROLLER_UID, job.text("uid")),
        (JOB_NAME, job.text("name")),
    ];
    let expected = &expected[..required];
    let template = spec.at("template");
    let metadata = template.at("metadata");
    let labels = metadata.at("labels");
    for (label, value) in expected {
        match labels.value.get(label) {
            None => {
                let path = labels.path.key(label);
                report.required(&path, format_args!("must be '{value}'"));
            }
            Some(found) if found != value => {
                let why = format!("must be '{value}'");
                report.invalid(&labels.path.key(label), labels.shown(), why);
            }
            Some(_) => {}
        }
    }
    let expected: Map<String, Value> = expected
        .iter()
        .map(|(label, value)| ((*label).to_owned(), json!(value)))
        .collect();
    if selects(&selector, &Value::Object(expected)) == Some(false) {
        let shown = shown_selector(&selector);
        report.invalid(&selector.path, shown, "`selector` not auto-generated");
    }
}

/// Checks a `spec`, and that its selector selects its template (`ValidateJobSpec`).
fn check_selected_spec(spec: &Field<'_, '_>, report: &mut Report) {
    check_job_spec(spec, report);
    let (selector, template) = (spec.at("selector"), spec.at("template"));
    if selector.exists() {
        check_selector(&selector, report);
    } else {
        selector.required(report);
    }
    let metadata = template.at("metadata");
    let labels = metadata.at("labels");
    if selects(&selector, labels.value) == Some(false) {
        labels.invalid(report, "`selector` does not match template `labels`");
    }
}

/// Checks that the names of the pods of an indexed job are labels.
fn check_indexed_name(job: &Object, spec: &Field<'_, '_>, report: &mut Report) {
    let completions = spec.at("completions").number();
    if !spec.at("completionMode").is("Indexed") || completions <= 0 {
        return;
    }
    let last = format!("{}-{}", job.text("name"), completions - 1);
    if !label_faults(&last).is_empty() {
        let metadata = Field::of(job, "metadata");
        let name = metadata.at("name");
        let why = format!("will not able to create pod with invalid DNS label: {last}");
        name.invalid(report, why);
    }
}

fn check_job_spec(spec: &Field<'_, '_>, report: &mut Report) {
    for name in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        spec.at(name).check_not_negative(report);
    }
    let (per_index, failed) = (spec.at("backoffLimitPerIndex"), spec.at("maxFailedIndexes"));
    if failed.exists() && !per_index.exists() {
        report.required(&per_index.path, "when maxFailedIndexes is specified");
    }
    let mode = spec.at("completionMode");
    let is_indexed = mode.is("Indexed");
    if mode.exists() {
        mode.check_one_of(report, &["NonIndexed", "Indexed"]);
    }
    let (parallelism, completions) = (spec.at("parallelism"), spec.at("completions"));
    if is_indexed {
        if !completions.exists() {
            report.required(&completions.path, "when completion mode is Indexed");
        }
        if parallelism.number() > INDEXED_PARALLELISM_MAX {
            let why = "must be less than or equal to 100000 when completion mode is Indexed";
            parallelism.invalid(report, why);
        }
        if completions.exists() && failed.number() > completions.number() {
            failed.invalid(report, "must be less than or equal to completions");
        }
    } else if !mode.exists() || mode.is("NonIndexed") {
        for field in [per_index, failed] {
            if field.exists() {
                field.invalid(report, "requires indexed completion mode");
            }
        }
    }
    let template = spec.at("template");
    check_template(&template, report);
    let pod = template.at("spec");
    let policy = pod.at("restartPolicy");
    match policy.text() {
        "Always" | "" => {
            let why = "valid values: \"OnFailure\", \"Never\"";
            report.required(&policy.path, why);
        }
        "OnFailure" | "Never" => {}
        _ => policy.unsupported(report, &["OnFailure", "Never"]),
    }
}

fn check_job_change(new: &Field<'_, '_>, old_job: &Object, report: &mut Report) {
    let old = &Field::of(old_job, "spec");
    let completions = new.at("completions");
    if new.at("completionMode").is("Indexed") {
        let is_changed = completions.value != old.at("completions").value;
        let parallelism = new.at("parallelism");
        if is_changed && completions.exists() && completions.value != parallelism.value {
            let why = "can only be modified in tandem with spec.parallelism";
            completions.invalid(report, why);
        }
    } else {
        completions.check_unchanged(report, &old.at("completions"));
    }
    let selector = new.at("selector");
    if selector.value != old.at("selector").value {
        report.invalid(&selector.path, shown_selector(&selector), IMMUTABLE);
    }
    check_template_change(new, old_job, report);
    for name in [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        new.at(name).check_unchanged(report, &old.at(name));
    }
}

/// Checks that the template of a job does not change, except for what can change while the job is suspended.
fn check_template_change(new: &Field<'_, '_>, old_job: &Object, report: &mut Report) {
    let old = old_job.part("spec");
    let template = new.at("template");
    if !can_change_template(old_job) {
        if !is_unchanged(template.value, &old["template"]) {
            report.invalid(&template.path, shown_template(template.value), IMMUTABLE);
        }
        return;
    }
    let spec = template.at("spec");
    let mut expected = old["template"]["spec"].clone();
    for name in ["nodeSelector", "tolerations", "schedulingGates"] {
        restore(&mut expected, spec.value, name);
    }
    restore_node_affinity(&mut expected, spec.value);
    for list in ["containers", "initContainers"] {
        let new = spec.value[list].as_array().map_or(&[][..], Vec::as_slice);
        let Some(expected) = expected.get_mut(list).and_then(Value::as_array_mut) else {
            continue;
        };
        let same = expected.len() == new.len();
        for (expected, new) in expected.iter_mut().zip(new).filter(|_| same) {
            if expected["name"] == new["name"] {
                restore(expected, new, "resources");
            }
        }
    }
    if !is_unchanged(spec.value, &expected) {
        // Kubernetes writes the path as one name.
        report.invalid(&spec.path, shown_spec(spec.value), IMMUTABLE);
    }
}

/// Returns whether a job is suspended and has no pods (`shouldAllowMutablePodTemplate`).
fn can_change_template(job: &Object) -> bool {
    let (spec, status) = (job.part("spec"), job.part("status"));
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut conditions = conditions.filter(|condition| condition["status"] == "True");
    let mut was_suspended = || conditions.any(|condition| condition["type"] == "Suspended");
    spec["suspend"] == true
        && status["active"].as_i64().unwrap_or(0) == 0
        && (status["startTime"].is_null() || was_suspended())
}

fn check_cron_job(job: &Object, old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(job, "spec");
    let old_spec = old.map(|old| old.part("spec"));
    check_schedule(&spec, old_spec.as_ref(), report);
    spec.at("startingDeadlineSeconds")
        .check_not_negative(report);
    let zone = spec.at("timeZone");
    if old_spec.is_none_or(|old| old["timeZone"] != *zone.value) {
        check_time_zone(&zone, report);
    }
    let policies = ["Allow", "Forbid", "Replace"];
    spec.at("concurrencyPolicy").check_one_of(report, &policies);
    let template = spec.at("jobTemplate");
    let of_job = template.at("spec");
    check_job_spec(&of_job, report);
    let selector = of_job.at("selector");
    if selector.exists() {
        let why = "`selector` will be auto-generated";
        report.invalid(&selector.path, shown_selector(&selector), why);
    }
    let manual = of_job.at("manualSelector");
    if *manual.value == true {
        report.unsupported(&manual.path, "true", &["nil", "false"]);
    }
    for name in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        spec.at(name).check_not_negative(report);
    }
    if old.is_none() && job.text("name").len() > CRON_NAME_MAX {
        let metadata = Field::of(job, "metadata");
        let name = metadata.at("name");
        name.invalid(report, "must be no more than 52 characters");
    }
}

fn select_pods(job: &mut Object) {
    let Some(mut spec) = job
        .sound_part("spec")
        .filter(|spec| spec["manualSelector"] != true)
    else {
        return;
    };
    let (name, uid) = (job.text("name").to_owned(), job.text("uid").to_owned());
    let of_job = [
        (JOB_NAME, &name),
        ("job-name", &name),
        (CONTROLLER_UID, &uid),
        ("controller-uid", &uid),
    ];
    let Some(labels) = member(&mut spec, &["template", "metadata", "labels"]) else {
        return;
    };
    for (label, value) in of_job {
        labels.entry(label).or_insert_with(|| json!(value));
    }
    let labels = Value::Object(labels.clone());
    if let Some(selector) = member(&mut spec, &["selector", "matchLabels"]) {
        selector.entry(CONTROLLER_UID).or_insert_with(|| json!(uid));
    }
    job.set("spec", Some(spec));
    // Kubernetes sets this default when it reads the job.
    if job.meta("labels").is_none() {
        job.set_meta("labels", Some(labels));
    }
}

/// Returns an object in a value, after each part of the path that is absent is set to an empty one.
fn member<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    let mut value = value;
    for name in path {
        let member = value.as_object_mut()?.entry(*name).or_insert(Value::Null);
        if member.is_null() {
            *member = json!({});
        }
        value = member;
    }
    value.as_object_mut()
}
