//! Authenticates and authorizes requests, by bearer tokens, client certificates and access rules.
//!
//! Guarantees:
//! - Before the first token is granted, a request without a client certificate has the user
//!   `system:anonymous`. After that, a request with neither a known token nor a client certificate receives
//!   401, even after all tokens are revoked.
//! - A server without access rules allows all users every request.
//! - Before the first token is granted, a loopback port without TLS rejects a request that a browser sends
//!   for a web page of another host, unless the builder allows remote clients (see [`browser`]).
//! - A change of tokens or rules applies to every request that arrives after the change. It does not close
//!   open watches, as in Kubernetes.
//! - Tokens are compared in constant time, and no `Debug` output, log or message contains them.
//!
//! The TLS connection verifies client certificates.

mod attributes;
mod browser;
pub(crate) mod review;
mod rule;

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;
use parking_lot::Mutex;
use subtle::{Choice, ConstantTimeEq};

use crate::route::{Query, Target};
use crate::status::ApiError;

use attributes::Attributes;
pub use rule::Rule;

/// Group of every authenticated user.
const AUTHENTICATED: &str = "system:authenticated";

/// Group whose members are allowed every request, as in Kubernetes.
const MASTERS: &str = "system:masters";

/// Name and groups of a user who sends requests. Access rules refer to the name and the groups.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct User {
    /// Name of the user, such as `jane` or `system:serviceaccount:default:controller`.
    pub name: String,
    /// Names of the groups that the user belongs to.
    ///
    /// Members of the group `system:masters` are allowed every request. The server adds every authenticated
    /// user to the group `system:authenticated`.
    pub groups: Vec<String>,
}

/// Handle that changes the tokens and access rules of a running server. The handle is cheap to clone.
///
/// ```
/// use kube_informer_apiserver::{Rule, Server, User};
///
/// let server = Server::builder()
///     .token("short-lived", User::new("jane"))
///     .rules([Rule::allow(["get", "list", "watch"], ["pods"]).for_user("jane")])
///     .build();
/// // Later requests with the token `short-lived` receive 401.
/// assert!(server.access().revoke_token("short-lived"));
/// ```
#[derive(Clone)]
pub struct Access {
    gate: Arc<Gate>,
}

/// Authenticates and authorizes all requests to one server.
pub(crate) struct Gate {
    policy: Mutex<Policy>,
    anonymous: Arc<User>,
}

/// Current tokens and access rules of a server.
#[derive(Clone, Default)]
pub(crate) struct Policy {
    /// Accepted tokens with their users. `None` if requests need no authentication.
    tokens: Option<Vec<(BearerToken, Arc<User>)>>,
    /// Access rules of the server. `None` if every user may send every request.
    rules: Option<Vec<Rule>>,
}

/// Bytes of a bearer token that the server accepts.
#[derive(Clone)]
struct BearerToken(Box<[u8]>);

/// Request extension with the user that the TLS client certificate of the connection names.
#[derive(Clone)]
pub(crate) struct Peer(pub(crate) Arc<User>);

/// Request extension that marks a request received without TLS on a loopback address.
///
/// If the server requires no token, [`browser`] rejects a marked request from a web page of another host. The
/// server marks no requests if [`Builder::allow_remote`](crate::builder::Builder::allow_remote) is true.
#[derive(Clone, Copy)]
pub(crate) struct OwnMachine;

// === impl User ===

impl User {
    /// Creates a user without groups.
    pub fn new(name: &str) -> User {
        User {
            name: name.to_owned(),
            groups: Vec::new(),
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
        if !self.is_in(AUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        Arc::new(self)
    }

    fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|known| known == group)
    }
}

// === impl Access ===

impl Access {
    pub(crate) fn new(gate: Arc<Gate>) -> Access {
        Access { gate }
    }

    /// Makes the server accept `token` as a token of `user`. If the token has another user, `user` replaces
    /// that user.
    ///
    /// After the first token is granted, a request with neither a known token nor a client certificate
    /// receives 401.
    ///
    /// # Panics
    ///
    /// Panics if the token is empty, because no request can contain an empty token.
    pub fn grant_token(&self, token: &str, user: User) {
        self.gate.policy.lock().grant(token, user);
    }

    /// Revokes a token. Later requests with the token and without a client certificate receive 401.
    ///
    /// Returns whether the server accepted the token before this call.
    pub fn revoke_token(&self, token: &str) -> bool {
        self.gate.policy.lock().revoke(token)
    }

    /// Replaces all access rules. Later requests for resources receive 403 if none of the new rules allows
    /// them.
    pub fn replace_rules(&self, rules: impl IntoIterator<Item = Rule>) {
        let rules = rules.into_iter().collect();
        self.gate.policy.lock().rules = Some(rules);
    }

    /// Removes all access rules. After this call, every user may send every request.
    pub fn drop_rules(&self) {
        self.gate.policy.lock().rules = None;
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

// === impl Gate ===

impl Gate {
    pub(crate) fn new() -> Gate {
        Gate {
            policy: Mutex::default(),
            anonymous: Arc::new(User::new("system:anonymous").in_group("system:unauthenticated")),
        }
    }

    /// Returns a gate with the same tokens and rules, which can change independently.
    pub(crate) fn copy(&self) -> Gate {
        Gate {
            policy: Mutex::new(self.policy.lock().clone()),
            anonymous: Arc::clone(&self.anonymous),
        }
    }

    pub(crate) fn install(&self, policy: Policy) {
        *self.policy.lock() = policy;
    }

    /// Returns whether the server neither requires authentication nor has access rules.
    pub(crate) fn is_open(&self) -> bool {
        let policy = self.policy.lock();
        policy.tokens.is_none() && policy.rules.is_none()
    }

    /// Authenticates and authorizes a request.
    ///
    /// Returns the request's user, and an error if the request is not allowed.
    pub(crate) fn admit(&self, parts: &Parts, query: &Query) -> (Arc<User>, Option<ApiError>) {
        let peer = parts.extensions.get::<Peer>();
        let policy = self.policy.lock();
        let user = match (&policy.tokens, peer) {
            (_, Some(Peer(user))) => Arc::clone(user),
            (None, None) => {
                let own_machine = parts.extensions.get::<OwnMachine>();
                let refusal = own_machine.and_then(|_| browser::refusal(parts));
                if refusal.is_some() {
                    return (Arc::clone(&self.anonymous), refusal);
                }
                Arc::clone(&self.anonymous)
            }
            (Some(_), None) => {
                let token = bearer(&parts.headers).unwrap_or_default();
                match policy.user_of(token) {
                    Some(user) => user,
                    None => return (Arc::clone(&self.anonymous), Some(ApiError::unauthorized())),
                }
            }
        };
        if policy.rules.is_none() {
            return (user, None);
        }
        let refusal = Attributes::of(&parts.method, parts.uri.path(), query)
            .filter(|attributes| !policy.allows(&user, attributes))
            .map(|attributes| attributes.forbidden(&user));
        (user, refusal)
    }

    /// Checks whether `user` may create the object at `target` with a PUT request.
    ///
    /// # Errors
    ///
    /// Returns a 403 error if no access rule allows the creation.
    pub(crate) fn admit_create(&self, user: &User, target: &Target) -> Result<(), ApiError> {
        let attributes = Attributes::of_creation(target);
        if self.policy.lock().allows(user, &attributes) {
            return Ok(());
        }
        Err(attributes.forbidden(user))
    }
}

// === impl Policy ===

impl Policy {
    pub(crate) fn grant(&mut self, token: &str, user: User) {
        assert!(!token.is_empty(), "a token must not be empty");
        self.revoke(token);
        let tokens = self.tokens.get_or_insert_default();
        tokens.push((BearerToken(token.as_bytes().into()), user.authenticated()));
    }

    pub(crate) fn add_rules(&mut self, rules: impl IntoIterator<Item = Rule>) {
        self.rules.get_or_insert_default().extend(rules);
    }

    fn revoke(&mut self, token: &str) -> bool {
        let Some(tokens) = &mut self.tokens else {
            return false;
        };
        let before = tokens.len();
        tokens.retain(|(known, _)| !bool::from(known.is(token.as_bytes())));
        tokens.len() < before
    }

    /// Returns the user of a token, in a time that does not depend on how many bytes are correct.
    fn user_of(&self, token: &[u8]) -> Option<Arc<User>> {
        let mut found = None;
        for (known, user) in self.tokens.iter().flatten() {
            if bool::from(known.is(token)) {
                found = Some(Arc::clone(user));
            }
        }
        found
    }

    fn allows(&self, user: &User, attributes: &Attributes) -> bool {
        let Some(rules) = &self.rules else {
            return true;
        };
        user.is_in(MASTERS)
            || attributes.is_about_oneself()
            || rules.iter().any(|rule| rule.allows(user, attributes))
    }
}

// === impl BearerToken ===

impl BearerToken {
    fn is(&self, presented: &[u8]) -> Choice {
        self.0.ct_eq(presented)
    }
}

/// Returns the bearer token in the `Authorization` header, parsed as in Kubernetes' `bearertoken.go`.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes().trim_ascii();
    let mut words = value.split(|byte| *byte == b' ');
    let scheme = words.next()?;
    let token = words.next()?;
    scheme.eq_ignore_ascii_case(b"bearer").then_some(token)
}

#[cfg(test)]
mod tests;
