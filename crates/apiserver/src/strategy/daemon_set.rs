//! Defines the strategy of daemon sets, which count the changes of their template in an annotation.

use serde_json::{Value, json};

use super::field::Field;
use super::warnings::add_template;
use super::workload::check_daemon_set;
use super::{Hooks, Part, workload_status};
use crate::object::Object;

pub(super) const HOOKS: Hooks = Hooks {
    prepare_create: Some(begin),
    check: check_daemon_set,
    check_status: workload_status::of_daemon_set,
    warn: Some(warn),
    prepare_update: count,
    ..Hooks::NONE
};

/// Annotation with the number of templates that a daemon set has had.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn begin(set: &mut Object) {
    let generation = generation(set).max(1);
    set_generation(set, generation);
}

/// Keeps the number of templates, which clients can't change, or increments it.
fn count(new: &mut Object, old: &Object, _part: Part) {
    let template = |set: &Object| set.get("spec").map(|spec| spec["template"].clone());
    let is_changed = template(new) != template(old);
    set_generation(new, generation(old).wrapping_add(i64::from(is_changed)));
}

fn warn(set: &Object, old: Option<&Object>, texts: &mut Vec<String>) {
    if old.is_none_or(|old| generation(old) != generation(set)) {
        add_template(&Field::of(set, "spec").at("template"), texts);
    }
}

fn generation(set: &Object) -> i64 {
    let annotations = set.meta("annotations");
    let text = annotations.and_then(|annotations| annotations[TEMPLATE_GENERATION].as_str());
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn set_generation(set: &mut Object, generation: i64) {
    let mut annotations = set
        .meta("annotations")
        .cloned()
        .unwrap_or_else(|| json!({}));
    annotations[TEMPLATE_GENERATION] = Value::String(generation.to_string());
    set.set_meta("annotations", Some(annotations));
}
