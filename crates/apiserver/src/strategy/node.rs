//! Validates nodes.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/core/validation` in Kubernetes. Checked are taints, the
//! resources of a new node, and the fields that are set once. Not checked: the ranges of addresses of pods.

use std::collections::BTreeSet;

use super::Hooks;
use super::container::check_quantity;
use super::field::Field;
use super::report::{Path, Report};
use crate::name_syntax::{key_faults, value_faults};
use crate::object::Object;
use crate::quote::Quoted;

pub(super) const HOOKS: Hooks = Hooks::checked_by(check);

fn check(node: &Object, old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(node, "spec");
    let taints = spec.at("taints");
    if old.is_none() {
        check_taints(&taints, report);
    }
    check_resources(node, report);
    let Some(old) = old else { return };
    check_set_once(&spec, &Field::of(old, "spec"), report);
    check_taints(&taints, report);
}

fn check_resources(node: &Object, report: &mut Report) {
    let status = Field::of(node, "status");
    for member in ["capacity", "allocatable"] {
        let quantities = status.at(member);
        for (name, quantity) in quantities.entries() {
            let path = quantities.path.child(name);
            let value = quantity.value;
            check_quantity(&Field { path, value }, report);
        }
    }
}

fn check_set_once(spec: &Field<'_, '_>, old: &Field<'_, '_>, report: &mut Report) {
    let (new_ranges, old_ranges) = (spec.at("podCIDRs"), old.at("podCIDRs"));
    let [new_count, old_count] = [&new_ranges, &old_ranges].map(|ranges| ranges.items().count());
    let pairs = new_ranges.items().zip(old_ranges.items());
    let changed = match old_count {
        0 => 0,
        _ if new_count != old_count => 1,
        _ => pairs.filter(|(new, old)| new.value != old.value).count(),
    };
    for _ in 0..changed {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        new_ranges.forbidden(report, why);
    }
    let (new_id, old_id) = (spec.at("providerID"), old.at("providerID"));
    if !old_id.is_empty() && new_id.text() != old_id.text() {
        let why = "node updates may not change providerID except from \"\" to valid";
        new_id.forbidden(report, why);
    }
    let (new_id, old_id) = (spec.at("externalID"), old.at("externalID"));
    if new_id.text() != old_id.text() {
        new_id.forbidden(report, "may not be updated");
    }
}

/// Checks taints. Their path is wrong, as in Kubernetes.
fn check_taints(taints: &Field<'_, '_>, report: &mut Report) {
    let root = Path::root("metadata");
    let taints = Field {
        path: root.child("taints"),
        value: taints.value,
    };
    let mut known = BTreeSet::new();
    for taint in taints.items() {
        let (key, value, effect) = (taint.at("key"), taint.at("value"), taint.at("effect"));
        key.check_text(report, key_faults);
        let faults = value_faults(value.text());
        if !faults.is_empty() {
            report.invalid(&value.path, Quoted(value.text()), faults.join(";"));
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        effect.check_required_one_of(report, &effects);
        if !known.insert((effect.text(), key.text())) {
            let [key, value, effect] =
                [&key, &value, &effect].map(|field| Quoted(field.text()).to_string());
            let time = crate::go_json::to_text(&taint.value["timeAdded"]);
            let shown = format!(
                "{{\"Key\":{key},\"Value\":{value},\"Effect\":{effect},\"TimeAdded\":{time}}}: taints must be unique by key and effect pair"
            );
            report.duplicate(&taint.path, shown);
        }
    }
}
