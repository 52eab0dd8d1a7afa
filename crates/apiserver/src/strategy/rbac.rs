//! Validates roles and their bindings.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/rbac/validation` in Kubernetes.

use super::Hooks;
use super::field::Field;
use super::labels::{check_selector, selects};
use super::report::Report;
use crate::name_syntax::NameRule;
use crate::object::Object;
use crate::quote::Quoted;

pub(super) const ROLE: Hooks = Hooks::checked_by(|role, _, report| check_rules(role, true, report));
pub(super) const CLUSTER_ROLE: Hooks = Hooks::checked_by(check_cluster_role);
pub(super) const ROLE_BINDING: Hooks =
    Hooks::checked_by(|binding, old, report| check_binding(binding, old, true, report));
pub(super) const CLUSTER_ROLE_BINDING: Hooks =
    Hooks::checked_by(|binding, old, report| check_binding(binding, old, false, report));

/// API group of roles, users and groups.
const GROUP: &str = "rbac.authorization.k8s.io";

fn check_cluster_role(role: &Object, _old: Option<&Object>, report: &mut Report) {
    check_rules(role, false, report);
    let aggregation = Field::of(role, "aggregationRule");
    if !aggregation.exists() {
        return;
    }
    let selectors = aggregation.at("clusterRoleSelectors");
    if selectors.is_empty() {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        report.required(&selectors.path, why);
    }
    for selector in selectors.items() {
        check_selector(&selector, report);
        if selects(&selector, &serde_json::Value::Null).is_none() {
            report.invalid(&selector.path, "null", "invalid label selector.");
        }
    }
}

fn check_rules(role: &Object, is_namespaced: bool, report: &mut Report) {
    for rule in Field::of(role, "rules").items() {
        let [verbs, urls, groups, resources] =
            ["verbs", "nonResourceURLs", "apiGroups", "resources"];
        let (verbs, urls) = (rule.at(verbs), rule.at(urls));
        let (groups, resources) = (rule.at(groups), rule.at(resources));
        if verbs.is_empty() {
            report.required(&verbs.path, "verbs must contain at least one value");
        }
        if !urls.is_empty() {
            if is_namespaced {
                urls.invalid(report, "namespaced rules cannot apply to non-resource URLs");
            }
            let is_mixed =
                !groups.is_empty() || !resources.is_empty() || !rule.at("resourceNames").is_empty();
            if is_mixed {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                urls.invalid(report, why);
            }
            continue;
        }
        if groups.is_empty() {
            let why = "resource rules must supply at least one api group";
            report.required(&groups.path, why);
        }
        if resources.is_empty() {
            let why = "resource rules must supply at least one resource";
            report.required(&resources.path, why);
        }
    }
}

fn check_binding(binding: &Object, old: Option<&Object>, is_namespaced: bool, report: &mut Report) {
    let role = Field::of(binding, "roleRef");
    role.at("apiGroup").check_one_of(report, &[GROUP]);
    let kinds: &[&str] = if is_namespaced {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    role.at("kind").check_one_of(report, kinds);
    let name = role.at("name");
    if name.is_empty() {
        name.required(report);
    } else {
        name.check_text(report, |name| NameRule::PathSegment.faults(name));
    }
    for subject in Field::of(binding, "subjects").items() {
        check_subject(&subject, is_namespaced, report);
    }
    if old.is_some_and(|old| old.get("roleRef") != binding.get("roleRef")) {
        let [group, kind, name] =
            ["apiGroup", "kind", "name"].map(|member| Quoted(role.at(member).text()).to_string());
        let shown = format!("{{\"APIGroup\":{group},\"Kind\":{kind},\"Name\":{name}}}");
        report.invalid(&role.path, shown, "cannot change roleRef");
    }
}

fn check_subject(subject: &Field<'_, '_>, is_namespaced: bool, report: &mut Report) {
    let (kind, name) = (subject.at("kind"), subject.at("name"));
    if name.is_empty() {
        name.required(report);
    }
    let group = subject.at("apiGroup");
    match kind.text() {
        "ServiceAccount" => {
            if !name.is_empty() {
                name.check_text(report, |name| NameRule::Subdomain.faults(name));
            }
            if !group.is_empty() {
                group.unsupported(report, &[""]);
            }
            let namespace = subject.at("namespace");
            if !is_namespaced && namespace.is_empty() {
                namespace.required(report);
            }
        }
        "User" | "Group" => group.check_one_of(report, &[GROUP]),
        _ => kind.unsupported(report, &["ServiceAccount", "User", "Group"]),
    }
}
