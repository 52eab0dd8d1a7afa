//! Decides requests by the stored roles and their bindings, as Kubernetes' RBAC authorizer does.
//!
//! Guarantees:
//! - The objects are kept in a compiled form, which follows each write. A decision reads only the bindings of the
//!   user and of the user's groups.
//! - A `ClusterRole` with an `aggregationRule` has the rules of the roles that its selectors select, directly or
//!   through another such role. Its own `rules` have no effect, because Kubernetes' controller replaces them.
//! - Bindings are read in the order of their names, first those of the cluster. Kubernetes has no fixed order.
//!
//! This module does not read the store: the caller passes each changed object.

mod bindings;
mod policy;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};

use super::Decision;
use super::attributes::Attributes;
use super::user::User;
use crate::quote::Quoted;
use crate::strategy::selector_selects;
use bindings::{Binding, Bindings};
use policy::Parts;
pub(super) use policy::{PolicyRule, quoted_list};

/// Maximum number of verbs on one resource into which the rules of a written role are divided, to find those that the
/// writer lacks.
pub(super) const PARTS_MAX: usize = 20_000;

/// Maximum number of missing roles that the reason of a decision names.
const ERRORS_MAX: usize = 100;

/// The kinds of RBAC objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RbacKind {
    Role,
    ClusterRole,
    RoleBinding,
    ClusterRoleBinding,
}

/// The roles and bindings of a server.
#[derive(Default)]
pub(crate) struct Rbac {
    /// The rules of each `Role`, by `namespace/name`.
    roles: BTreeMap<String, Rules>,
    cluster_roles: BTreeMap<String, ClusterRole>,
    /// The names of the cluster roles with selectors.
    aggregating: BTreeSet<String>,
    cluster_bindings: Bindings,
    /// The `RoleBinding`s of each namespace.
    bindings: BTreeMap<String, Bindings>,
}

type Rules = Arc<[PolicyRule]>;

struct ClusterRole {
    labels: Value,
    rules: Rules,
    /// The selectors of the `aggregationRule`, if there are any.
    selectors: Vec<Value>,
    /// The rules of the selected roles. Emptied when any `ClusterRole` changes.
    aggregated: OnceLock<Rules>,
}

/// The name of a role in a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RoleRef {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) name: String,
}

// === impl RbacKind ===

impl RbacKind {
    pub(crate) const ALL: [RbacKind; 4] = [
        RbacKind::Role,
        RbacKind::ClusterRole,
        RbacKind::RoleBinding,
        RbacKind::ClusterRoleBinding,
    ];

    /// Returns the plural name of the kind's resource.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            RbacKind::Role => "roles",
            RbacKind::ClusterRole => "clusterroles",
            RbacKind::RoleBinding => "rolebindings",
            RbacKind::ClusterRoleBinding => "clusterrolebindings",
        }
    }
}

// === impl Rbac ===

impl Rbac {
    /// Follows a write: `object` is the new state, or `None` if the object was removed. `key` is `namespace/name`, or
    /// `name` of an object of the cluster.
    pub(crate) fn follow(
        &mut self,
        kind: RbacKind,
        key: &str,
        object: Option<&Map<String, Value>>,
    ) {
        match kind {
            RbacKind::Role => match object {
                Some(role) => {
                    let rules = PolicyRule::all_of(role.get("rules"));
                    self.roles.insert(key.to_owned(), rules.into());
                }
                None => drop(self.roles.remove(key)),
            },
            RbacKind::ClusterRole => self.follow_cluster_role(key, object),
            RbacKind::ClusterRoleBinding => {
                let binding = object.map(|binding| Binding::parse(binding, ""));
                self.cluster_bindings.set(key, binding);
            }
            RbacKind::RoleBinding => {
                let (namespace, name) = key.split_once('/').unwrap_or(("", key));
                let binding = object.map(|binding| Binding::parse(binding, namespace));
                let bindings = self.bindings.entry(namespace.to_owned()).or_default();
                bindings.set(name, binding);
                if bindings.is_empty() {
                    self.bindings.remove(namespace);
                }
            }
        }
    }

    fn follow_cluster_role(&mut self, name: &str, role: Option<&Map<String, Value>>) {
        self.aggregating.remove(name);
        if let Some(role) = role.map(ClusterRole::parse) {
            if !role.selectors.is_empty() {
                self.aggregating.insert(name.to_owned());
            }
            self.cluster_roles.insert(name.to_owned(), role);
        } else {
            self.cluster_roles.remove(name);
        }
        for name in &self.aggregating {
            if let Some(role) = self.cluster_roles.get_mut(name) {
                role.aggregated = OnceLock::new();
            }
        }
    }

    /// Decides whether `user` may send a request. The reason names the binding that allows the request, or the missing
    /// roles of the user's bindings.
    pub(super) fn decide(&self, user: &User, attributes: &Attributes) -> Decision {
        let mut errors = Vec::new();
        let found = self.visit(user, &attributes.namespace, |binding, rules| {
            match rules {
                Ok(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                    return ControlFlow::Break(binding.described(user));
                }
                Ok(_) => {}
                Err(error) => errors.push(error),
            }
            ControlFlow::Continue(())
        });
        if let ControlFlow::Break(source) = found {
            return Decision {
                is_allowed: true,
                reason: format!("RBAC: allowed by {source}"),
            };
        }
        let reason = match errors.as_slice() {
            [] => String::new(),
            _ => format!("RBAC: {}", aggregate(errors)),
        };
        Decision {
            is_allowed: false,
            reason,
        }
    }

    /// Returns the rules of a user in a namespace as the `status` of a `SelfSubjectRulesReview`.
    pub(super) fn rules_of(&self, user: &User, namespace: &str) -> Value {
        let (rules, errors) = self.all_rules(user, namespace);
        let resources: Vec<Value> = rules.iter().filter_map(PolicyRule::resource_rule).collect();
        let paths: Vec<Value> = rules.iter().filter_map(PolicyRule::path_rule).collect();
        let mut status = json!({
            "resourceRules": resources,
            "nonResourceRules": paths,
            "incomplete": false,
        });
        if !errors.is_empty() {
            status["evaluationError"] = json!(aggregate(errors));
        }
        status
    }

    /// Checks that `user` has all rights of `rules` in a namespace (`ConfirmNoEscalation`).
    ///
    /// # Errors
    ///
    /// Returns the text of the error, which lists the missing rights.
    pub(super) fn check_holds(
        &self,
        user: &User,
        namespace: &str,
        rules: &[PolicyRule],
    ) -> Result<(), String> {
        let Some(parts) = Parts::of(rules, PARTS_MAX) else {
            return Err(format!(
                "the rules have more than {PARTS_MAX} combinations of verbs, resources and names"
            ));
        };
        let (owned, errors) = self.all_rules(user, namespace);
        let missing = parts.missing_from(&owned);
        if missing.is_empty() {
            return Ok(());
        }
        let missing: Vec<String> = missing.into_iter().collect();
        let errors = match errors.as_slice() {
            [] => String::new(),
            _ => format!("; resolution errors: [{}]", aggregate(errors)),
        };
        Err(format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}{errors}",
            Quoted(&user.name),
            quoted_list(&user.groups),
            missing.join("\n")
        ))
    }

    /// Returns the rules of the role that a binding in `namespace` names.
    ///
    /// # Errors
    ///
    /// Returns the text of Kubernetes' error if there is no such role.
    pub(super) fn rules_in(&self, role: &RoleRef, namespace: &str) -> Result<Rules, String> {
        let name = &role.name;
        let (found, kind) = match role.kind.as_str() {
            "Role" => {
                let role = self.roles.get(&format!("{namespace}/{name}"));
                (role.map(Arc::clone), "role")
            }
            "ClusterRole" => {
                let role = self.cluster_roles.get(name);
                (role.map(|role| self.effective(role)), "clusterrole")
            }
            kind => return Err(format!("unsupported role reference kind: {}", Quoted(kind))),
        };
        found.ok_or_else(|| {
            format!(
                "{kind}.rbac.authorization.k8s.io {} not found",
                Quoted(name)
            )
        })
    }

    fn effective(&self, role: &ClusterRole) -> Rules {
        if role.selectors.is_empty() {
            return Arc::clone(&role.rules);
        }
        let aggregated = role.aggregated.get_or_init(|| self.aggregate(role));
        Arc::clone(aggregated)
    }

    /// Returns the rules of all roles that `role` aggregates. Roles that aggregate each other are read once.
    fn aggregate(&self, role: &ClusterRole) -> Rules {
        let mut selected: BTreeMap<&str, bool> = BTreeMap::new();
        let mut open = vec![role];
        while let Some(role) = open.pop() {
            for (name, other) in &self.cluster_roles {
                let is_new = !selected.contains_key(name.as_str());
                if is_new && role.selects(other) {
                    let is_plain = other.selectors.is_empty();
                    selected.insert(name, is_plain);
                    if !is_plain {
                        open.push(other);
                    }
                }
            }
        }
        let plain = selected.into_iter().filter(|(_, is_plain)| *is_plain);
        let rules = plain.flat_map(|(name, _)| self.cluster_roles[name].rules.iter());
        let mut seen = BTreeSet::new();
        rules.filter(|rule| seen.insert(*rule)).cloned().collect()
    }

    /// Returns all rules of a user in a namespace, and the errors of bindings to missing roles.
    fn all_rules(&self, user: &User, namespace: &str) -> (Vec<PolicyRule>, Vec<String>) {
        let (mut all, mut errors) = (Vec::new(), Vec::new());
        let visited: ControlFlow<()> = self.visit(user, namespace, |_, rules| {
            match rules {
                Ok(rules) => all.extend(rules.iter().cloned()),
                Err(error) => errors.push(error),
            }
            ControlFlow::Continue(())
        });
        debug_assert!(visited.is_continue());
        (all, errors)
    }

    /// Calls `visitor` with each binding of a user and its rules, until it breaks.
    fn visit<T>(
        &self,
        user: &User,
        namespace: &str,
        mut visitor: impl FnMut(&Binding, Result<Rules, String>) -> ControlFlow<T>,
    ) -> ControlFlow<T> {
        for binding in self.cluster_bindings.of(user) {
            visitor(binding, self.rules_in(&binding.role, ""))?;
        }
        let bindings = self.bindings.get(namespace);
        for binding in bindings.into_iter().flat_map(|bindings| bindings.of(user)) {
            visitor(binding, self.rules_in(&binding.role, namespace))?;
        }
        ControlFlow::Continue(())
    }
}

// === impl ClusterRole ===

impl ClusterRole {
    fn parse(role: &Map<String, Value>) -> ClusterRole {
        let selectors = role
            .get("aggregationRule")
            .and_then(|rule| rule["clusterRoleSelectors"].as_array());
        let metadata = role.get("metadata");
        ClusterRole {
            labels: metadata.map_or(Value::Null, |metadata| metadata["labels"].clone()),
            rules: PolicyRule::all_of(role.get("rules")).into(),
            selectors: selectors.cloned().unwrap_or_default(),
            aggregated: OnceLock::new(),
        }
    }

    fn selects(&self, other: &ClusterRole) -> bool {
        let mut selectors = self.selectors.iter();
        selectors.any(|selector| selector_selects(selector, &other.labels))
    }
}

// === impl RoleRef ===

impl RoleRef {
    pub(super) fn parse(role: &Value) -> RoleRef {
        let text = |member: &str| role[member].as_str().unwrap_or_default().to_owned();
        RoleRef {
            group: text("apiGroup"),
            kind: text("kind"),
            name: text("name"),
        }
    }
}

/// Returns errors as one text, each once, as Go's `NewAggregate` does.
fn aggregate(errors: Vec<String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for error in errors {
        if distinct.len() < ERRORS_MAX && !distinct.contains(&error) {
            distinct.push(error);
        }
    }
    match distinct.as_slice() {
        [error] => error.clone(),
        _ => format!("[{}]", distinct.join(", ")),
    }
}

#[cfg(test)]
mod tests;
