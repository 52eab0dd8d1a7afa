//! Checks the names, the group and the scope of a definition.
//!
//! Guarantees: the errors and their order are those of Kubernetes.

use serde_json::Value;

use super::form::Spec;
use super::shown::JsonText;
use crate::name_syntax::{NameRule, dns_1035_faults};
use crate::quote::Quoted;
use crate::strategy::report::{Path, Report};

const SCOPES: [&str; 2] = ["Cluster", "Namespaced"];

/// Adds the errors of `spec.group` and `spec.scope`.
pub(super) fn check_group_and_scope(spec: &Spec<'_>, path: &Path<'_>, report: &mut Report) {
    let group = spec.text("group");
    let group_path = path.child("group");
    if group.is_empty() {
        report.required(&group_path, "");
    } else {
        let mut faults = NameRule::Subdomain.faults(group);
        if faults.is_empty() && !group.contains('.') {
            faults.push("should be a domain with at least one dot".to_owned());
        }
        if !faults.is_empty() {
            report.invalid(&group_path, Quoted(group), faults.join(","));
        }
    }
    match spec.text("scope") {
        "" => report.required(&path.child("scope"), ""),
        scope if SCOPES.contains(&scope) => {}
        other => report.unsupported(&path.child("scope"), Quoted(other), &SCOPES),
    }
}

/// Adds an error for each missing name in `spec.names`. Names in the status can be missing.
pub(super) fn check_required(names: &Value, path: &Path<'_>, report: &mut Report) {
    for member in ["plural", "singular", "kind", "listKind"] {
        if text(names, member).is_empty() {
            report.required(&path.child(member), "");
        }
    }
}

/// Follows `ValidateCustomResourceDefinitionNames` in Kubernetes.
pub(super) fn check(names: &Value, path: &Path<'_>, report: &mut Report) {
    for member in ["plural", "singular"] {
        let name = text(names, member);
        if !name.is_empty() {
            check_name(name, &path.child(member), report);
        }
    }
    for member in ["kind", "listKind"] {
        let name = text(names, member);
        let faults = dns_1035_faults(&lower(name));
        if !name.is_empty() && !faults.is_empty() {
            let why = format!(
                "may have mixed case, but should otherwise match: {}",
                faults.join(",")
            );
            report.invalid(&path.child(member), Quoted(name), why);
        }
    }
    check_list(names, "shortNames", path, report);
    let kind = text(names, "kind");
    if !kind.is_empty() && kind == text(names, "listKind") {
        let why = "kind and listKind may not be the same";
        report.invalid(&path.child("listKind"), Quoted(kind), why);
    }
    check_list(names, "categories", path, report);
}

/// Adds an error if a name is not a DNS label that starts with a letter.
pub(super) fn check_name(name: &str, path: &Path<'_>, report: &mut Report) {
    let faults = dns_1035_faults(name);
    if !faults.is_empty() {
        report.invalid(path, Quoted(name), faults.join(","));
    }
}

fn check_list(names: &Value, member: &str, path: &Path<'_>, report: &mut Report) {
    let path = path.child(member);
    let list = names[member].as_array().into_iter().flatten();
    for (at, name) in list.enumerate() {
        check_name(name.as_str().unwrap_or_default(), &path.index(at), report);
    }
}

/// Adds an error for each name that an update must not change, but changes.
///
/// `of_kind` is whether this includes the scope and the kind.
pub(super) fn check_immutable(
    old: &Spec<'_>,
    new: &Spec<'_>,
    of_kind: bool,
    path: &Path<'_>,
    report: &mut Report,
) {
    let why = "field is immutable";
    let scope = new.text("scope");
    if of_kind && scope != old.text("scope") {
        report.invalid(&path.child("scope"), JsonText(scope), why);
    }
    let names = path.child("names");
    let name_of = |spec: &Spec<'_>, member| text(&spec.value["names"], member).to_owned();
    let kind = name_of(new, "kind");
    if of_kind && kind != name_of(old, "kind") {
        report.invalid(&names.child("kind"), Quoted(&kind), why);
    }
    let group = new.text("group");
    if group != old.text("group") {
        report.invalid(&path.child("group"), Quoted(group), why);
    }
    let plural = name_of(new, "plural");
    if plural != name_of(old, "plural") {
        report.invalid(&names.child("plural"), Quoted(&plural), why);
    }
}

fn text<'a>(names: &'a Value, member: &str) -> &'a str {
    names[member].as_str().unwrap_or_default()
}

/// Converts a name to lower case as Go's `strings.ToLower` does, one letter for each letter.
pub(super) fn lower(name: &str) -> String {
    name.chars()
        .filter_map(|letter| letter.to_lowercase().next())
        .collect()
}
