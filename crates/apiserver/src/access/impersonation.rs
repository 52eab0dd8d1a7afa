//! Makes a request a request of another user, as its headers `Impersonate-*` ask.
//!
//! Guarantees:
//! - The requester needs the permissions of Kubernetes 1.36: those of constrained impersonation, or else the verb
//!   `impersonate` on each user, group, uid and extra value.
//! - Kubernetes tries the kind of permission first that last allowed an impersonation of the requester. This server
//!   always tries constrained impersonation first.

use std::collections::BTreeMap;

use http::HeaderMap;

use super::Decision;
use super::attributes::Attributes;
use super::user::{
    ACCOUNT_PREFIX, ANONYMOUS, AUTHENTICATED, MASTERS, NODES, UNAUTHENTICATED, User, account_groups,
};
use crate::name_syntax::NameRule;
use crate::quote::Quoted;
use crate::status::ApiError;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";

/// API group of users, groups, uids and extra values in checks of constrained impersonation.
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Name of the extra value that contains the node of a service account's token.
pub(super) const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// Number of groups or extra values from which constrained impersonation tries a permission for all first.
const MANY: usize = 4;

/// The user who sends a request, with the decisions about what this user may do.
pub(super) struct Requester<'a> {
    pub(super) user: &'a User,
    pub(super) decide: &'a dyn Fn(&Attributes) -> Decision,
}

/// A kind of permission for impersonation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    Legacy,
}

/// Returns the user that the headers ask for, or `None` if they ask for none.
///
/// # Errors
///
/// Returns a 400 error if the headers ask for a group, a uid or an extra value without a user.
pub(super) fn wanted(headers: &HeaderMap) -> Result<Option<User>, ApiError> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let first = |name| headers.get(name).map(text).unwrap_or_default();
    let mut user = User {
        name: first(USER),
        uid: first(UID),
        groups: headers.get_all(GROUP).iter().map(text).collect(),
        extra: BTreeMap::new(),
    };
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            let key = unescaped(key);
            user.extra.entry(key).or_default().push(text(value));
        }
    }
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    if is_plain(&user) {
        return Ok(None);
    }
    Err(ApiError::bad_request(format!(
        "requested {} without impersonating a user name",
        go_syntax(&user)
    )))
}

/// Returns the impersonated user, as whom the request continues.
///
/// # Errors
///
/// Returns the error of the first missing permission if no kind of permission suffices.
pub(super) fn impersonate(
    requester: &Requester<'_>,
    wanted: &User,
    request: &Attributes,
) -> Result<User, ApiError> {
    let mut first = None;
    for mode in Mode::ALL {
        if !mode.fits(requester.user, wanted) {
            continue;
        }
        match mode.allows(requester, wanted, request) {
            Ok(user) => return Ok(user),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| ApiError::internal("all impersonation modes failed")))
}

// === impl Requester ===

impl Requester<'_> {
    /// # Errors
    ///
    /// Returns the 403 error of Kubernetes if the user may not do this.
    fn check(&self, attributes: &Attributes) -> Result<(), ApiError> {
        let decision = (self.decide)(attributes);
        if decision.is_allowed {
            return Ok(());
        }
        Err(attributes.forbidden(self.user, &decision.reason))
    }
}

// === impl Mode ===

impl Mode {
    const ALL: [Mode; 5] = [
        Mode::AssociatedNode,
        Mode::ArbitraryNode,
        Mode::ServiceAccount,
        Mode::UserInfo,
        Mode::Legacy,
    ];

    fn name(self) -> &'static str {
        match self {
            Mode::AssociatedNode => "associated-node",
            Mode::ArbitraryNode => "arbitrary-node",
            Mode::ServiceAccount => "serviceaccount",
            Mode::UserInfo => "user-info",
            Mode::Legacy => "",
        }
    }

    /// Returns the verb on the impersonated user.
    fn verb(self) -> String {
        match self {
            Mode::Legacy => "impersonate".to_owned(),
            _ => format!("impersonate:{}", self.name()),
        }
    }

    fn fits(self, requester: &User, wanted: &User) -> bool {
        let (node, is_account) = (node_name(&wanted.name), account(&wanted.name).is_some());
        match self {
            Mode::AssociatedNode => {
                let own = requester.extra.get(NODE_NAME).map(Vec::as_slice);
                let own = own.and_then(|names| match names {
                    [name] => Some(name.as_str()),
                    _ => None,
                });
                is_plain(wanted)
                    && node.is_some()
                    && account(&requester.name).is_some()
                    && own == node
            }
            Mode::ArbitraryNode => is_plain(wanted) && node.is_some(),
            Mode::ServiceAccount => is_plain(wanted) && is_account,
            Mode::UserInfo => node.is_none() && !is_account,
            Mode::Legacy => true,
        }
    }

    /// Checks all permissions that this mode needs, and returns the impersonated user.
    fn allows(
        self,
        requester: &Requester<'_>,
        wanted: &User,
        request: &Attributes,
    ) -> Result<User, ApiError> {
        if self != Mode::Legacy {
            let mut on = request.clone();
            on.verb = format!("impersonate-on:{}:{}", self.name(), request.verb);
            requester.check(&on)?;
        }
        let mut user = wanted.clone();
        self.check_name(requester, wanted, &mut user)?;
        if !wanted.uid.is_empty() {
            requester.check(&self.on(AUTHENTICATION, "uids", &wanted.uid))?;
        }
        self.check_groups(requester, &wanted.groups)?;
        self.check_extra(requester, &wanted.extra)?;
        if user.name == ANONYMOUS {
            user.join(UNAUTHENTICATED);
        } else if !user.is_in(UNAUTHENTICATED) {
            user.join(AUTHENTICATED);
        }
        Ok(user)
    }

    /// Checks the permission for the name, and adds the groups of a node or a service account to `user`.
    fn check_name(
        self,
        requester: &Requester<'_>,
        wanted: &User,
        user: &mut User,
    ) -> Result<(), ApiError> {
        let mut named = self.on(self.group(), "users", &wanted.name);
        if let Some(node) = node_name(&wanted.name).filter(|_| self != Mode::Legacy) {
            // The permission is for every node, because the requester's node is checked already.
            let name = if self == Mode::AssociatedNode {
                "*"
            } else {
                node
            };
            named = self.on(AUTHENTICATION, "nodes", name);
            user.groups = vec![NODES.to_owned()];
        }
        if let Some((namespace, name)) = account(&wanted.name) {
            named = self.on(self.group(), "serviceaccounts", name);
            namespace.clone_into(&mut named.namespace);
            if wanted.groups.is_empty() {
                user.groups = account_groups(namespace);
            }
        }
        requester.check(&named)
    }

    fn check_groups(self, requester: &Requester<'_>, groups: &[String]) -> Result<(), ApiError> {
        let on = |name: &str| self.on(self.group(), "groups", name);
        if self != Mode::Legacy {
            if groups.iter().any(String::is_empty) {
                let why = "impersonating the empty string group is not allowed";
                return Err(on("").forbidden(requester.user, why));
            }
            if groups.iter().any(|group| group == MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return Err(on(MASTERS).forbidden(requester.user, why));
            }
            if groups.len() >= MANY && requester.check(&on("*")).is_ok() {
                return Ok(());
            }
        }
        groups
            .iter()
            .try_for_each(|group| requester.check(&on(group)))
    }

    fn check_extra(
        self,
        requester: &Requester<'_>,
        extra: &BTreeMap<String, Vec<String>>,
    ) -> Result<(), ApiError> {
        let on = |key: &str, value: &str| {
            let mut on = self.on(AUTHENTICATION, "userextras", value);
            key.clone_into(&mut on.subresource);
            on
        };
        if self != Mode::Legacy {
            let invalid = extra.iter().find_map(|(key, values)| fault(key, values));
            if let Some(why) = invalid {
                return Err(on("", "").forbidden(requester.user, &why));
            }
            let values: usize = extra.values().map(Vec::len).sum();
            if values >= MANY && requester.check(&on("*", "*")).is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            let mut values = values.iter();
            values.try_for_each(|value| requester.check(&on(key, value)))?;
        }
        Ok(())
    }

    /// Returns the API group of users, groups and service accounts in the checks of this mode.
    fn group(self) -> &'static str {
        match self {
            Mode::Legacy => "",
            _ => AUTHENTICATION,
        }
    }

    fn on(self, group: &str, resource: &str, name: &str) -> Attributes {
        Attributes {
            verb: self.verb(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        }
    }
}

/// Returns what is wrong with an extra value in constrained impersonation, if anything.
fn fault(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    let invalid = |value: &str, why: &str| {
        Some(format!(
            "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: {}: {why}",
            Quoted(value)
        ))
    };
    match key.split_once('/') {
        Some((host, path)) if !host.is_empty() && !path.is_empty() => {
            if let Some(why) = NameRule::Subdomain.faults(host).first() {
                return invalid(host, why);
            }
        }
        _ => {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            return invalid(key, why);
        }
    }
    let is_empty = values.iter().any(String::is_empty);
    is_empty.then(|| "impersonating the empty string value in extra is not allowed".to_owned())
}

/// Returns whether a user has only a name, or not even that.
fn is_plain(user: &User) -> bool {
    user.uid.is_empty() && user.groups.is_empty() && user.extra.is_empty()
}

/// Returns the node that is the user of this name.
fn node_name(user: &str) -> Option<&str> {
    let name = user.strip_prefix("system:node:")?;
    NameRule::Subdomain.faults(name).is_empty().then_some(name)
}

/// Returns the namespace and the name of the service account that is the user of this name.
fn account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(ACCOUNT_PREFIX)?.split_once(':')?;
    let is_valid =
        NameRule::Label.faults(namespace).is_empty() && NameRule::Subdomain.faults(name).is_empty();
    is_valid.then_some((namespace, name))
}

/// Decodes the `%XX` escapes of a key. A malformed one is returned as it is.
fn unescaped(key: &str) -> String {
    crate::route::decoded(key).unwrap_or_else(|| key.to_owned())
}

/// Returns a user as Go's `%#v` shows it.
fn go_syntax(user: &User) -> String {
    let list = |texts: &[String]| {
        let texts: Vec<String> = texts.iter().map(|text| Quoted(text).to_string()).collect();
        format!("[]string{{{}}}", texts.join(", "))
    };
    let groups = match user.groups.as_slice() {
        [] => "[]string(nil)".to_owned(),
        groups => list(groups),
    };
    let extra = user.extra.iter();
    let extra: Vec<String> = extra
        .map(|(key, values)| format!("{}:{}", Quoted(key), list(values)))
        .collect();
    let extra = match extra.as_slice() {
        [] => "(nil)".to_owned(),
        extra => format!("{{{}}}", extra.join(", ")),
    };
    format!(
        "&user.DefaultInfo{{Name:{}, UID:{}, Groups:{groups}, Extra:map[string][]string{extra}}}",
        Quoted(&user.name),
        Quoted(&user.uid)
    )
}
