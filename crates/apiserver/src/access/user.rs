//! Defines the users of requests, and the names that Kubernetes gives to them.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Name of the user of a request without credentials.
pub(super) const ANONYMOUS: &str = "system:anonymous";

/// Group of every authenticated user.
pub(super) const AUTHENTICATED: &str = "system:authenticated";

/// Group of the anonymous user.
pub(super) const UNAUTHENTICATED: &str = "system:unauthenticated";

/// Group whose members are allowed every request, as in Kubernetes.
pub(super) const MASTERS: &str = "system:masters";

/// Group of every node.
pub(super) const NODES: &str = "system:nodes";

/// Prefix of the names of service accounts, before `namespace:name`.
pub(super) const ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// Name, groups and further attributes of a user who sends requests.
///
/// Access rules and RBAC objects refer to the name and the groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct User {
    /// Name of the user, such as `jane` or `system:serviceaccount:default:controller`.
    pub name: String,
    /// Unique id of the user. Empty if the user has none.
    pub uid: String,
    /// Names of the groups that the user belongs to.
    ///
    /// Members of the group `system:masters` are allowed every request. The server adds every authenticated
    /// user to the group `system:authenticated`.
    pub groups: Vec<String>,
    /// Further attributes by name, which reviews show. The server makes no decision by them.
    pub extra: BTreeMap<String, Vec<String>>,
}

// === impl User ===

impl User {
    /// Creates a user without groups.
    pub fn new(name: &str) -> User {
        User {
            name: name.to_owned(),
            ..User::default()
        }
    }

    /// Creates the user that the service account `name` in `namespace` is, with the groups of all accounts.
    pub fn service_account(namespace: &str, name: &str) -> User {
        User {
            name: account_name(namespace, name),
            groups: account_groups(namespace),
            ..User::default()
        }
    }

    /// Adds `group` to the groups of the user.
    #[must_use]
    pub fn in_group(mut self, group: &str) -> User {
        self.groups.push(group.to_owned());
        self
    }

    /// Adds the user to the group `system:authenticated`.
    pub(crate) fn authenticated(mut self) -> Arc<User> {
        self.join(AUTHENTICATED);
        Arc::new(self)
    }

    pub(super) fn anonymous() -> User {
        User::new(ANONYMOUS).in_group(UNAUTHENTICATED)
    }

    pub(crate) fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS
    }

    pub(super) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|known| known == group)
    }

    /// Adds the user to a group, unless the user is in it.
    pub(super) fn join(&mut self, group: &str) {
        if !self.is_in(group) {
            self.groups.push(group.to_owned());
        }
    }
}

/// Returns the user name of a service account.
pub(super) fn account_name(namespace: &str, name: &str) -> String {
    format!("{ACCOUNT_PREFIX}{namespace}:{name}")
}

/// Returns the groups of the service accounts in a namespace, without `system:authenticated`.
pub(super) fn account_groups(namespace: &str) -> Vec<String> {
    vec![
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
    ]
}
