//! Validates an update of a pod, most of whose `spec` is immutable.
//!
//! Guarantees: the errors and their order are those of `ValidatePodUpdate` in Kubernetes, with the difference of the specs.

use std::collections::BTreeSet;

use serde_json::Value;

use super::field::Field;
use super::internal::{shown, shown_list, spec_difference};
use super::report::Report;
use super::scheduling::check_tolerations;
use super::unchanged::is_unchanged;

/// Kubernetes' message about a changed field, before the difference.
const MUTABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

const GRACE: &str = "terminationGracePeriodSeconds";

/// Checks the change of the `spec` of a pod. Adds no errors if it does not change.
pub(super) fn check_pod_change(new: &Field<'_, '_>, old: &Field<'_, '_>, report: &mut Report) {
    for name in ["containers", "initContainers"] {
        let (containers, of_old) = (new.at(name), old.at(name));
        if containers.items().count() != of_old.items().count() {
            let why = "pod updates may not add or remove containers";
            return containers.forbidden(report, why);
        }
        check_images(&containers, report);
    }
    let (deadline, of_old) = (
        new.at("activeDeadlineSeconds"),
        old.at("activeDeadlineSeconds"),
    );
    if deadline.exists() {
        if !(0..=i64::from(i32::MAX)).contains(&deadline.number()) {
            return deadline.invalid(report, "must be between 0 and 2147483647, inclusive");
        }
        if of_old.exists() && of_old.number() < deadline.number() {
            let why = "must be less than or equal to previous value";
            return deadline.invalid(report, why);
        }
    } else if of_old.exists() {
        let why = "must not update from a positive integer to nil value";
        deadline.invalid(report, why);
    }
    check_added_tolerations(&new.at("tolerations"), &old.at("tolerations"), report);
    check_gates(
        &new.at("schedulingGates"),
        &old.at("schedulingGates"),
        report,
    );
    if is_unchanged(new.value, old.value) {
        return;
    }
    let mut compared = new.value.clone();
    restore_mutable(&mut compared, old.value);
    if !old.at("schedulingGates").is_empty() {
        check_gated(new, old, report);
        restore_node_rules(&mut compared, old.value);
    }
    if !is_unchanged(&compared, old.value) {
        let difference = spec_difference(old.value, &compared);
        new.forbidden(report, format_args!("{MUTABLE}\n{difference}"));
    }
}

fn check_images(containers: &Field<'_, '_>, report: &mut Report) {
    for container in containers.items() {
        let image = container.at("image");
        if image.is_empty() {
            image.required(report);
        }
        if image.text().trim() != image.text() {
            image.invalid(report, "must not have leading or trailing whitespace");
        }
    }
}

/// Checks that no toleration is removed or changed, except for its seconds.
fn check_added_tolerations(new: &Field<'_, '_>, old: &Field<'_, '_>, report: &mut Report) {
    let fixed = |toleration: &Value| {
        ["key", "operator", "value", "effect"]
            .map(|name| toleration[name].as_str().map(str::to_owned))
    };
    let kept: BTreeSet<_> = new.items().map(|new| fixed(new.value)).collect();
    if old.items().all(|old| kept.contains(&fixed(old.value))) {
        return check_tolerations(new, report);
    }
    let why = "existing toleration can not be modified except its tolerationSeconds";
    new.forbidden(report, why);
}

fn check_gates(new: &Field<'_, '_>, old: &Field<'_, '_>, report: &mut Report) {
    let known: BTreeSet<_> = old
        .items()
        .map(|gate| gate.value["name"].as_str())
        .collect();
    for gate in new.items() {
        let name = gate.at("name");
        if !known.contains(&name.value.as_str()) {
            let why = format!(
                "only deletion is allowed, but found new scheduling gate '{}'",
                name.text()
            );
            name.forbidden(report, why);
        }
    }
}

/// Replaces the fields that can change, or that other checks cover, by the old ones.
fn restore_mutable(new: &mut Value, old: &Value) {
    for list in ["containers", "initContainers"] {
        let containers = new.get_mut(list).and_then(Value::as_array_mut);
        let containers = containers.into_iter().flatten();
        for (container, old) in containers.zip(old[list].as_array().into_iter().flatten()) {
            restore(container, old, "image");
        }
    }
    for name in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        restore(new, old, name);
    }
    if old[GRACE].as_i64() < Some(0) && old[GRACE].is_number() && new[GRACE] == 1 {
        restore(new, old, GRACE);
    }
}

/// Replaces the node selector and the node affinity, which can grow as long as a pod has scheduling gates.
fn restore_node_rules(new: &mut Value, old: &Value) {
    restore(new, old, "nodeSelector");
    restore_node_affinity(new, old);
}

/// Replaces the node affinity by the old one.
pub(super) fn restore_node_affinity(new: &mut Value, old: &Value) {
    let (affinity, of_old) = (&new["affinity"], &old["affinity"]);
    // Only a direct call can have stored a `spec` that is no object.
    if !new.is_object() || affinity["nodeAffinity"] == of_old["nodeAffinity"] {
        return;
    }
    let has_others = |affinity: &Value| {
        let others = ["podAffinity", "podAntiAffinity"];
        others.iter().any(|name| !affinity[name].is_null())
    };
    if of_old.is_null() && !has_others(affinity) {
        restore(new, old, "affinity");
    } else if affinity.is_object() {
        restore(&mut new["affinity"], of_old, "nodeAffinity");
    } else {
        new["affinity"] = serde_json::json!({"nodeAffinity": of_old["nodeAffinity"]});
    }
}

/// Replaces a member by the old one.
pub(super) fn restore(new: &mut Value, old: &Value, name: &str) {
    let Some(members) = new.as_object_mut() else {
        return;
    };
    match old.get(name) {
        Some(value) => members.insert(name.to_owned(), value.clone()),
        None => members.remove(name),
    };
}

/// Checks that the node selector and the required node affinity of a pod with scheduling gates only become stricter.
fn check_gated(new: &Field<'_, '_>, old: &Field<'_, '_>, report: &mut Report) {
    let (selector, of_old) = (new.at("nodeSelector"), old.at("nodeSelector"));
    let is_kept =
        |(key, value): (&str, Field<'_, '_>)| selector.value.get(key) == Some(value.value);
    if !of_old.entries().all(is_kept) {
        let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        selector.invalid(report, why);
    }
    let required = |spec: &Value| {
        let affinity = &spec["affinity"]["nodeAffinity"];
        affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"].clone()
    };
    let (terms, of_old) = (required(new.value), required(old.value));
    let path = (
        new.path.child("affinity"),
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
    );
    let affinity = path.0.child(path.1);
    let selector = affinity.child(path.2);
    let terms = Field {
        path: selector.child(path.3),
        value: &terms,
    };
    let of_old = of_old.as_array().map_or(&[][..], Vec::as_slice);
    if of_old.is_empty() {
        return;
    }
    if terms.items().count() != of_old.len() {
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        let shown = shown_list("NodeSelectorTerm", terms.value);
        return report.invalid(&terms.path, shown, why);
    }
    for (term, old) in terms.items().zip(of_old) {
        if !has_only_additions(term.value, old) {
            let why = "only additions are allowed (no mutations or deletions)";
            report.invalid(&term.path, shown("NodeSelectorTerm", term.value), why);
        }
    }
}

fn has_only_additions(new: &Value, old: &Value) -> bool {
    let lists = ["matchExpressions", "matchFields"].map(|name| {
        let list = |term: &Value| term[name].as_array().cloned().unwrap_or_default();
        (list(new), list(old))
    });
    let was_empty = lists.iter().all(|(_, old)| old.is_empty());
    if was_empty && lists.iter().any(|(new, _)| !new.is_empty()) {
        return false;
    }
    lists.iter().all(|(new, old)| new.starts_with(old))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::strategy::report::Path;

    fn texts(old: &Value, new: &Value) -> Vec<String> {
        let of = |value| Field {
            path: Path::root("spec"),
            value,
        };
        let mut report = Report::default();
        check_pod_change(&of(new), &of(old), &mut report);
        let errors = report.into_errors().into_iter();
        errors
            .map(|error| format!("{}: {}", error.field, error.body))
            .collect()
    }

    fn pod(members: &Value) -> Value {
        let mut pod = json!({"containers": [{"name": "a", "image": "a"}]});
        let members = members.as_object().cloned().unwrap();
        pod.as_object_mut().unwrap().extend(members);
        pod
    }

    #[test]
    fn few_fields_can_change() {
        let toleration = |seconds| json!({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds});
        for (old, new) in [
            (
                json!({}),
                json!({"containers": [{"name": "a", "image": "b"}]}),
            ),
            (json!({}), json!({"activeDeadlineSeconds": 5})),
            (
                json!({"tolerations": [toleration(1)]}),
                json!({"tolerations": [{"key": "b", "operator": "Exists"}, toleration(2)]}),
            ),
            (
                json!({"terminationGracePeriodSeconds": -1}),
                json!({"terminationGracePeriodSeconds": 1}),
            ),
            (
                json!({"schedulingGates": [{"name": "a"}]}),
                json!({"nodeSelector": {"a": "b"}}),
            ),
            (
                json!({"schedulingGates": [{"name": "a"}]}),
                json!({"affinity": {"nodeAffinity": {}}}),
            ),
        ] {
            assert_eq!(texts(&pod(&old), &pod(&new)), Vec::<String>::new(), "{new}");
        }
    }

    #[test]
    fn other_changes_are_rejected_with_the_difference() {
        for (old, new, error) in [
            (
                json!({}),
                json!({"containers": []}),
                "spec.containers: Forbidden: pod updates may not add or remove containers",
            ),
            (
                json!({}),
                json!({"hostNetwork": true}),
                "-  \"HostNetwork\": false,\n+  \"HostNetwork\": true,\n",
            ),
            (
                json!({"terminationGracePeriodSeconds": 5}),
                json!({"terminationGracePeriodSeconds": 1}),
                "\"TerminationGracePeriodSeconds\": 1,",
            ),
            (
                json!({"tolerations": [{"key": "a", "operator": "Exists"}]}),
                json!({}),
                "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
            ),
            (
                json!({"schedulingGates": [{"name": "a"}]}),
                json!({"schedulingGates": [{"name": "a"}, {"name": "b"}]}),
                "spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'b'",
            ),
            (
                json!({"schedulingGates": [{"name": "a"}], "nodeSelector": {"a": "b"}}),
                json!({}),
                "spec.nodeSelector: Invalid value: null: only additions to spec.nodeSelector are allowed (no mutations or deletions)",
            ),
        ] {
            let texts = texts(&pod(&old), &pod(&new));
            assert_eq!(texts.len(), 1, "{texts:?}");
            assert!(texts[0].contains(error), "{texts:?}");
        }
    }
}
