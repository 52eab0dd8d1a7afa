//! Prevents that a client's write of a role or of a binding gives rights that the client does not have.
//!
//! Guarantees: the checks and their errors are those of `pkg/registry/rbac` in Kubernetes. A member of
//! `system:masters` is not checked.

use serde_json::Value;

use super::attributes::Attributes;
use super::rbac::{PolicyRule, RbacKind, RoleRef};
use super::user::MASTERS;
use super::{Gate, User};
use crate::kinds::Kind;
use crate::object::Object;
use crate::route::Target;
use crate::status::ApiError;

const GROUP: &str = "rbac.authorization.k8s.io";

/// A client's write of an RBAC object.
#[derive(Clone, Copy)]
pub(crate) struct RbacWrite<'a> {
    gate: &'a Gate,
    user: &'a User,
    kind: &'a Kind,
    rbac: RbacKind,
    /// The namespace in the path. `None` for an object of the cluster.
    namespace: Option<&'a str>,
    /// The name in the path. Empty for a create request.
    name: &'a str,
}

impl RbacKind {
    /// Returns the kind of RBAC objects that `kind` is.
    fn of(kind: &Kind) -> Option<RbacKind> {
        let mut all = RbacKind::ALL.into_iter();
        all.find(|rbac| kind.group == GROUP && !kind.custom && kind.plural == rbac.plural())
    }
}

impl std::fmt::Debug for RbacWrite<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RbacWrite").finish_non_exhaustive()
    }
}

impl<'a> RbacWrite<'a> {
    /// Returns the write of `user` at `target`, or `None` if no check is necessary.
    pub(crate) fn new(gate: &'a Gate, user: &'a User, target: &'a Target) -> Option<RbacWrite<'a>> {
        gate.rbac.as_ref()?;
        let kind = &target.resource.kind;
        let rbac = RbacKind::of(kind)?;
        (!user.is_in(MASTERS)).then(|| RbacWrite {
            gate,
            user,
            kind,
            rbac,
            namespace: target.namespace.as_deref(),
            name: target.name.as_deref().unwrap_or_default(),
        })
    }

    /// Checks a new object, or an update of the object `old`.
    ///
    /// # Errors
    ///
    /// Returns a 403 error if the object gives rights that the user does not have, and a 404 error if the user may not
    /// bind every role and the role does not exist.
    pub(crate) fn check(&self, new: &Object, old: Option<&Object>) -> Result<(), ApiError> {
        if old.is_some_and(|old| changes_only_collection(new, old)) {
            return Ok(());
        }
        match self.rbac {
            RbacKind::Role | RbacKind::ClusterRole => self.check_role(new, old),
            RbacKind::RoleBinding | RbacKind::ClusterRoleBinding => self.check_binding(new),
        }
    }

    fn check_role(&self, new: &Object, old: Option<&Object>) -> Result<(), ApiError> {
        let escalates = self.about("escalate", &self.kind.plural, self.name);
        if self.is_allowed(&escalates) {
            return Ok(());
        }
        self.check_holds(new, &PolicyRule::all_of(new.get("rules")))?;
        let aggregates = |role: &Object| {
            let rule = role.get("aggregationRule");
            let selectors = rule.and_then(|rule| rule["clusterRoleSelectors"].as_array());
            selectors.is_some_and(|selectors| !selectors.is_empty())
        };
        if (aggregates(new) || old.is_some_and(aggregates))
            && self.check_holds(new, &PolicyRule::everything()).is_err()
        {
            let why = "must have cluster-admin privileges to use the aggregationRule";
            return Err(ApiError::forbidden(self.kind, new.text("name"), why));
        }
        Ok(())
    }

    fn check_binding(&self, new: &Object) -> Result<(), ApiError> {
        let role = RoleRef::parse(new.get("roleRef").unwrap_or(&Value::Null));
        let plural = match role.kind.as_str() {
            "Role" => Some("roles"),
            "ClusterRole" => Some("clusterroles"),
            _ => None,
        };
        if let Some(plural) = plural {
            let mut binds = self.about("bind", plural, &role.name);
            binds.group.clone_from(&role.group);
            if self.is_allowed(&binds) {
                return Ok(());
            }
        }
        let Some(rbac) = &self.gate.rbac else {
            return Ok(());
        };
        let namespace = self.namespace.unwrap_or_default();
        let rules = rbac.read().rules_in(&role, namespace);
        let rules = rules.map_err(|why| match role.kind.as_str() {
            "Role" | "ClusterRole" => missing(&role, why),
            _ => ApiError::internal(&why),
        })?;
        self.check_holds(new, &rules)
    }

    fn check_holds(&self, new: &Object, rules: &[PolicyRule]) -> Result<(), ApiError> {
        let Some(rbac) = &self.gate.rbac else {
            return Ok(());
        };
        let namespace = self.namespace.unwrap_or_default();
        let held = rbac.read().check_holds(self.user, namespace, rules);
        held.map_err(|why| ApiError::forbidden(self.kind, new.text("name"), &why))
    }

    fn about(&self, verb: &str, plural: &str, name: &str) -> Attributes {
        Attributes {
            verb: verb.to_owned(),
            group: GROUP.to_owned(),
            resource: plural.to_owned(),
            namespace: self.namespace.unwrap_or_default().to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        }
    }

    fn is_allowed(&self, attributes: &Attributes) -> bool {
        let policy = self.gate.policy.lock();
        self.gate.decide(&policy, self.user, attributes).is_allowed
    }
}

/// Returns the 404 error about the role of a binding.
fn missing(role: &RoleRef, why: String) -> ApiError {
    let kind = role.kind.to_lowercase();
    ApiError::new(404, "NotFound", why).about_resource(GROUP, &kind, &role.name)
}

/// Returns whether an update changes only what a garbage collector changes (`IsOnlyMutatingGCFields`).
fn changes_only_collection(new: &Object, old: &Object) -> bool {
    let [new, old] = [new, old].map(|object| {
        let mut object = object.clone();
        for member in ["ownerReferences", "finalizers", "managedFields", "selfLink"] {
            object.set_meta(member, None);
        }
        object
    });
    new == old
}
