//! Defines the strategies of jobs and cron jobs: validates them, and gives a new job a selector with its uid
//! (`generateSelector` in Kubernetes).
//!
//! Guarantees: the errors and their order are those of `pkg/apis/batch/validation` in Kubernetes. Not checked: policies of
//! failures and of success, schedules and time zones, limits of jobs with many completions, changes of the template of a
//! suspended job, and that a client sets no selector of its own.

use serde_json::{Map, Value, json};

use super::Hooks;
use super::field::{Field, IMMUTABLE};
use super::labels::{check_selector, selects, shown_selector};
use super::pod_spec::check_template;
use super::report::Report;
use crate::object::Object;

pub(super) const HOOKS: Hooks = Hooks {
    prepare_create: select_pods,
    check: check_job,
    ..Hooks::NONE
};

pub(super) const CRON_JOB: Hooks = Hooks::checked_by(check_cron_job);

/// Maximum length of the name of a cron job, to which a suffix of 11 characters is added.
const CRON_NAME_MAX: usize = 52;

/// Maximum parallelism of an indexed job.
const INDEXED_PARALLELISM_MAX: i64 = 100_000;

/// Label with the uid of the job that owns a pod. The selector of a job has it.
const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

fn check_job(job: &Object, old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(job, "spec");
    check_job_spec(&spec, report);
    let selector = spec.at("selector");
    // The server adds a selector to a new job after this check.
    let is_generated = old.is_none() && spec.value["manualSelector"] != true;
    if !is_generated {
        let (template, labels) = (spec.at("template"), &spec.value["template"]["metadata"]);
        if selector.exists() {
            check_selector(&selector, report);
        } else {
            selector.required(report);
        }
        if selects(&selector, &labels["labels"]) == Some(false) {
            let metadata = template.at("metadata");
            let labels = metadata.at("labels");
            labels.invalid(report, "`selector` does not match template `labels`");
        }
    }
    if let Some(old) = old {
        check_job_change(&spec, &Field::of(old, "spec"), report);
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

fn check_job_change(new: &Field<'_, '_>, old: &Field<'_, '_>, report: &mut Report) {
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
    check_template_change(new, old, report);
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

/// Checks that the template of a job that is not suspended does not change.
fn check_template_change(new: &Field<'_, '_>, old: &Field<'_, '_>, report: &mut Report) {
    let is_suspended = |spec: &Field<'_, '_>| *spec.at("suspend").value == true;
    if !is_suspended(old) {
        let (template, of_old) = (new.at("template"), old.at("template"));
        template.check_unchanged(report, &of_old);
    }
}

fn check_cron_job(job: &Object, old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(job, "spec");
    let schedule = spec.at("schedule");
    if schedule.is_empty() {
        schedule.required(report);
    }
    spec.at("startingDeadlineSeconds")
        .check_not_negative(report);
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
        ("batch.kubernetes.io/job-name", &name),
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
