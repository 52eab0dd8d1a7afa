//! Validates where a pod can run: affinity, tolerations, topology spread constraints and scheduling gates.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/core/validation` in Kubernetes.

use std::collections::{BTreeMap, BTreeSet};

use super::field::Field;
use super::labels::check_selector;
use super::report::Report;
use crate::name_syntax::{NameRule, key_faults, label_faults, value_faults};
use crate::quote::Quoted;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Checks the affinity of a pod to nodes and to other pods.
pub(super) fn check_affinity(affinity: &Field<'_, '_>, report: &mut Report) {
    let nodes = affinity.at("nodeAffinity");
    let required = nodes.at(REQUIRED);
    if required.exists() {
        check_node_selector(&required, report);
    }
    for term in nodes.at(PREFERRED).items() {
        check_weight(&term, report);
        // Invalid values are valid here, as in Kubernetes.
        check_node_term(&term.at("preference"), false, report);
    }
    for name in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.at(name);
        for term in pods.at(REQUIRED).items() {
            check_pod_term(&term, report);
        }
        for term in pods.at(PREFERRED).items() {
            check_weight(&term, report);
            check_pod_term(&term.at("podAffinityTerm"), report);
        }
    }
}

fn check_weight(term: &Field<'_, '_>, report: &mut Report) {
    let weight = term.at("weight");
    if !(1..=100).contains(&weight.number()) {
        let shown = weight.number();
        report.invalid(&weight.path, shown, "must be in the range 1-100");
    }
}

/// Checks a selector of nodes (`ValidateNodeSelector`).
pub(super) fn check_node_selector(selector: &Field<'_, '_>, report: &mut Report) {
    let terms = selector.at("nodeSelectorTerms");
    if terms.is_empty() {
        report.required(&terms.path, "must have at least one node selector term");
    }
    for term in terms.items() {
        check_node_term(&term, true, report);
    }
}

fn check_node_term(term: &Field<'_, '_>, checks_values: bool, report: &mut Report) {
    for requirement in term.at("matchExpressions").items() {
        check_node_requirement(&requirement, checks_values, report);
    }
    for requirement in term.at("matchFields").items() {
        check_node_field(&requirement, report);
    }
}

fn check_node_requirement(requirement: &Field<'_, '_>, checks_values: bool, report: &mut Report) {
    let (operator, values) = (requirement.at("operator"), requirement.at("values"));
    match operator.text() {
        "In" | "NotIn" if values.is_empty() => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            report.required(&values.path, why);
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            values.forbidden(report, why);
        }
        "Gt" | "Lt" if values.items().count() != 1 => {
            let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            report.required(&values.path, why);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        _ => invalid_text(&operator, "not a valid selector operator", report),
    }
    requirement.at("key").check_text(report, key_faults);
    for value in values.items().filter(|_| checks_values) {
        value.check_text(report, value_faults);
    }
}

fn check_node_field(requirement: &Field<'_, '_>, report: &mut Report) {
    let (operator, values) = (requirement.at("operator"), requirement.at("values"));
    match operator.text() {
        "In" | "NotIn" if values.items().count() != 1 => {
            let why =
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            report.required(&values.path, why);
        }
        "In" | "NotIn" => {}
        _ => invalid_text(&operator, "not a valid selector operator", report),
    }
    let key = requirement.at("key");
    if !key.is("metadata.name") {
        return invalid_text(&key, "not a valid field selector key", report);
    }
    for value in values.items() {
        value.check_text(report, |name| NameRule::Subdomain.faults(name));
    }
}

fn check_pod_term(term: &Field<'_, '_>, report: &mut Report) {
    let selector = term.at("labelSelector");
    check_selector(&selector, report);
    check_selector(&term.at("namespaceSelector"), report);
    for name in term.at("namespaces").items() {
        // The path names another field, as in Kubernetes.
        for fault in label_faults(name.text()) {
            report.invalid(&term.path.child("namespace"), name.shown(), fault);
        }
    }
    check_label_keys(term, &selector, report);
    let key = term.at("topologyKey");
    if key.is_empty() {
        report.required(&key.path, "can not be empty");
    }
    for fault in key_faults(key.text()) {
        invalid_text(&key, fault, report);
    }
}

/// Checks the keys of labels that a pod shares, or does not share, with the pods that a selector selects
/// (`ValidateMatchLabelKeysAndMismatchLabelKeys`).
fn check_label_keys(of: &Field<'_, '_>, selector: &Field<'_, '_>, report: &mut Report) {
    let (matched, mismatched) = (of.at("matchLabelKeys"), of.at("mismatchLabelKeys"));
    for keys in [&matched, &mismatched] {
        if !keys.is_empty() && !selector.exists() {
            keys.forbidden(
                report,
                "must not be specified when labelSelector is not set",
            );
        }
        for key in keys.items().filter(|_| selector.exists()) {
            key.check_text(report, key_faults);
        }
    }
    let places = matched.items().enumerate();
    let places: BTreeMap<&str, usize> = places.map(|(at, key)| (key.text(), at)).collect();
    let expressions = selector.at("matchExpressions");
    let labels = selector.at("matchLabels");
    let mut known: BTreeSet<&str> = labels.entries().map(|(key, _)| key).collect();
    for expression in expressions.items() {
        let key = expression.at("key");
        if let Some(at) = places.get(key.text())
            && known.contains(key.text())
        {
            let why = "exists in both matchLabelKeys and labelSelector";
            report.invalid(&of.path.index(*at), key.shown(), why);
        }
        known.insert(key.text());
    }
    let others: BTreeSet<&str> = mismatched.items().map(|key| key.text()).collect();
    for key in matched.items() {
        if others.contains(key.text()) {
            key.invalid(
                report,
                "exists in both matchLabelKeys and mismatchLabelKeys",
            );
        }
    }
}

pub(super) fn check_tolerations(tolerations: &Field<'_, '_>, report: &mut Report) {
    for toleration in tolerations.items() {
        check_toleration(&toleration, report);
    }
}

fn check_toleration(toleration: &Field<'_, '_>, report: &mut Report) {
    let [key, operator, value, effect] =
        ["key", "operator", "value", "effect"].map(|name| toleration.value[name].as_str());
    let [key, operator, value, effect] =
        [key, operator, value, effect].map(Option::unwrap_or_default);
    let path = |name| toleration.path.child(name);
    if !key.is_empty() {
        for fault in key_faults(key) {
            report.invalid(&path("key"), Quoted(key), fault);
        }
    } else if operator != "Exists" {
        let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        report.invalid(&path("operator"), Quoted(operator), why);
    }
    if toleration.at("tolerationSeconds").exists() && effect != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        report.invalid(&path("effect"), Quoted(effect), why);
    }
    match operator {
        "" | "Equal" => {
            let faults = value_faults(value);
            if !faults.is_empty() {
                report.invalid(&path("operator"), Quoted(value), faults.join(";"));
            }
        }
        "Exists" if !value.is_empty() => {
            let why = "value must be empty when `operator` is 'Exists'";
            report.invalid(&path("operator"), Quoted(value), why);
        }
        "Exists" => {}
        // Kubernetes lists operators that are off by default.
        "Lt" | "Gt" => {
            let supported = ["Equal", "Exists", "Lt", "Gt"];
            report.unsupported(&path("operator"), Quoted(operator), &supported);
        }
        _ => report.unsupported(&path("operator"), Quoted(operator), &["Equal", "Exists"]),
    }
    let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    if !effect.is_empty() {
        toleration.at("effect").check_one_of(report, &effects);
    }
}

/// Checks topology spread constraints (`validateTopologySpreadConstraints`).
pub(super) fn check_spread(constraints: &Field<'_, '_>, report: &mut Report) {
    let pair = |constraint: &Field<'_, '_>| {
        let (key, action) = (
            constraint.at("topologyKey"),
            constraint.at("whenUnsatisfiable"),
        );
        (key.text().to_owned(), action.text().to_owned())
    };
    let places = constraints.items().enumerate();
    let last: BTreeMap<_, usize> = places.map(|(at, one)| (pair(&one), at)).collect();
    for (at, constraint) in constraints.items().enumerate() {
        let skew = constraint.at("maxSkew");
        if skew.number() <= 0 {
            report.invalid(&skew.path, skew.number(), "must be greater than zero");
        }
        let (key, action) = (
            constraint.at("topologyKey"),
            constraint.at("whenUnsatisfiable"),
        );
        if key.is_empty() {
            report.required(&key.path, "can not be empty");
        }
        action.check_one_of(report, &["DoNotSchedule", "ScheduleAnyway"]);
        if last.get(&pair(&constraint)) > Some(&at) {
            let path = constraint.path.child("{topologyKey, whenUnsatisfiable}");
            let shown = format!("{{{}, {}}}", key.text(), action.text());
            report.duplicate(&path, Quoted(&shown));
        }
        check_domains(&constraint.at("minDomains"), action.text(), report);
        for name in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            let policy = constraint.at(name);
            if policy.exists() {
                policy.check_one_of(report, &["Honor", "Ignore"]);
            }
        }
        let selector = constraint.at("labelSelector");
        check_label_keys(&constraint, &selector, report);
        check_selector(&selector, report);
    }
}

fn check_domains(least: &Field<'_, '_>, action: &str, report: &mut Report) {
    if !least.exists() {
        return;
    }
    if least.number() <= 0 {
        least.invalid(report, "must be greater than zero");
    }
    if action != "DoNotSchedule" {
        let why =
            format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        least.invalid(report, why);
    }
}

/// Checks the names of scheduling gates (`validateSchedulingGates`).
pub(super) fn check_gates(gates: &Field<'_, '_>, report: &mut Report) {
    let mut known = BTreeSet::new();
    for gate in gates.items() {
        // The path is that of the gate, as in Kubernetes.
        for fault in key_faults(gate.at("name").text()) {
            report.invalid(&gate.path, gate.at("name").shown(), fault);
        }
        if !known.insert(gate.at("name").text()) {
            report.duplicate(&gate.path, gate.at("name").shown());
        }
    }
}

/// Adds an error about a text, which is empty if it is absent.
fn invalid_text(field: &Field<'_, '_>, why: impl std::fmt::Display, report: &mut Report) {
    report.invalid(&field.path, Quoted(field.text()), why);
}
