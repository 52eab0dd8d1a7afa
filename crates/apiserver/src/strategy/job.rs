//! Defines the strategy of jobs: a new job has a selector with its uid (`generateSelector` in Kubernetes).

use serde_json::{Map, Value, json};

use super::Hooks;
use crate::object::Object;

pub(super) const HOOKS: Hooks = Hooks {
    prepare_create: select_pods,
    ..Hooks::NONE
};

/// Label with the uid of the job that owns a pod. The selector of a job has it.
const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

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
