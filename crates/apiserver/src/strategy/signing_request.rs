//! Defines the strategy of certificate requests.
//!
//! Guarantees: the changes, the errors and their order are those of `pkg/registry/certificates` and
//! `pkg/apis/certificates/validation` in Kubernetes. Not checked: the content of `spec` and of
//! `status.certificate`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::field::Field;
use super::report::Report;
use super::{Hooks, Part, value_errors};
use crate::kinds::Kind;
use crate::object::Object;
use crate::quote::Quoted;
use crate::status::FieldError;

pub(super) const HOOKS: Hooks = Hooks {
    prepare_update,
    set_times: Some(set_times),
    validate_update,
    ..Hooks::NONE
};

/// The conditions that only a write of `approval` changes.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];

/// The conditions whose status is always true, and which are never removed.
const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];

pub(crate) fn is_kind(kind: &Kind) -> bool {
    kind.is_builtin("certificatesigningrequests.certificates.k8s.io")
}

fn prepare_update(new: &mut Object, old: &Object, part: Part) {
    if part == Part::All {
        return;
    }
    new.set("spec", old.get("spec").cloned());
    match part {
        Part::Approval => {
            let conditions = new.part("status")["conditions"].take();
            let mut status = old.part("status");
            set_conditions(&mut status, conditions);
            new.set("status", Some(status));
        }
        Part::Status => {
            if let Some(mut status) = new.sound_part("status") {
                let old = &old.part("status")["conditions"];
                keep_decisions(&mut status["conditions"], old);
                let conditions = status["conditions"].take();
                set_conditions(&mut status, conditions);
                new.set("status", Some(status));
            }
        }
        _ => {}
    }
}

/// Sets the conditions of a `status`, or removes them if there are none.
fn set_conditions(status: &mut Value, conditions: Value) {
    let Some(members) = status.as_object_mut() else {
        return;
    };
    match conditions {
        Value::Null => members.remove("conditions"),
        conditions => members.insert("conditions".to_owned(), conditions),
    };
}

/// Replaces the decisions by the old ones, unless their number differs, which is an error.
fn keep_decisions(conditions: &mut Value, old: &Value) {
    for decision in DECISIONS {
        let old: Vec<&Value> = of_type(old, decision).collect();
        if old.len() != of_type(conditions, decision).count() {
            continue;
        }
        let conditions = conditions.as_array_mut().into_iter().flatten();
        let new = conditions.filter(|condition| condition["type"] == decision);
        for (new, old) in new.zip(old) {
            *new = old.clone();
        }
    }
}

fn of_type<'a>(conditions: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    let conditions = conditions.as_array().into_iter().flatten();
    conditions.filter(move |condition| condition["type"] == *name)
}

/// Sets the times that conditions lack. The time of a transition is kept as long as the status is the same.
fn set_times(new: &mut Object, old: &Object, part: Part, now: &str) {
    if !matches!(part, Part::Approval | Part::Status) {
        return;
    }
    let old = &old.part("status")["conditions"];
    let Some(mut status) = new.sound_part("status") else {
        return;
    };
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    let Some(conditions) = conditions else {
        return;
    };
    for condition in conditions
        .iter_mut()
        .filter(|condition| condition.is_object())
    {
        if condition["lastUpdateTime"].is_null() {
            condition["lastUpdateTime"] = json!(now);
        }
        if condition["lastTransitionTime"].is_null() {
            let kept = old.as_array().into_iter().flatten().find(|old| {
                let is_same = |name: &str| old[name] == condition[name];
                is_same("type") && is_same("status") && !old["lastTransitionTime"].is_null()
            });
            let kept = kept.map(|old| old["lastTransitionTime"].clone());
            condition["lastTransitionTime"] = kept.unwrap_or_else(|| json!(now));
        }
    }
    new.set("status", Some(status));
}

fn validate_update(old: &Object, new: &Object, part: Part) -> Vec<FieldError> {
    if !matches!(part, Part::Approval | Part::Status) {
        return Vec::new();
    }
    let check = |request: &Object, _: Option<&Object>, report: &mut Report| {
        check_conditions(&Field::of(request, "status").at("conditions"), report);
    };
    let mut errors = value_errors(check, Some(old), new);
    let mut report = Report::default();
    check_change(
        &Field::of(new, "status"),
        &old.part("status"),
        part,
        &mut report,
    );
    errors.extend(report.into_errors());
    errors
}

fn check_conditions(conditions: &Field<'_, '_>, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for condition in conditions.items() {
        let name = condition.at("type");
        if name.is_empty() {
            name.required(report);
        }
        let is_final = FINAL.contains(&name.text());
        let all = ["False", "True", "Unknown"];
        let supported = if is_final { &["True"][..] } else { &all[..] };
        condition
            .at("status")
            .check_required_one_of(report, supported);
        let opposite = match name.text() {
            "Approved" => Some("Denied"),
            "Denied" => Some("Approved"),
            _ => None,
        };
        if opposite.is_some_and(|opposite| seen.contains(opposite)) {
            let why = "Approved and Denied conditions are mutually exclusive";
            report.invalid(&conditions.path, name.shown(), why);
        }
        if !seen.insert(name.text()) {
            name.duplicate(report);
        }
    }
}

/// Checks what an update of a part changes in the `status`.
fn check_change(status: &Field<'_, '_>, old: &Value, part: Part, report: &mut Report) {
    let conditions = status.at("conditions");
    let counts = |name: &str| {
        let of_new = of_type(conditions.value, name).count();
        (of_new, of_type(&old["conditions"], name).count())
    };
    let change = |name: &str, verb: &str| {
        format!(
            "updates may not {verb} a condition of type {}",
            Quoted(name)
        )
    };
    for name in FINAL {
        let (new, old) = counts(name);
        if new < old {
            conditions.forbidden(report, change(name, "remove"));
        }
    }
    for name in DECISIONS {
        let (new, old) = counts(name);
        if new > old && part == Part::Status {
            conditions.forbidden(report, change(name, "add"));
        }
    }
    let certificate = status.at("certificate");
    let old = old["certificate"].as_str().unwrap_or_default();
    if !old.is_empty() && certificate.text() != old {
        certificate.forbidden(
            report,
            "updates may not modify existing certificate content",
        );
    }
}
