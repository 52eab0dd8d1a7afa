//! Authentication and authorization: bearer tokens, client certificates, and rules.
//!
//! Guarantees:
//! - a server without tokens accepts every request as `system:anonymous`; a server without rules allows every request;
//! - once a token has been granted, a request without a known token or client certificate receives 401, even after the
//!   last token is revoked;
//! - web pages in a browser can't use a port that is open to all local users: [`browser`];
//! - a change applies to every request that arrives after it; open watches continue, as in Kubernetes;
//! - tokens are compared in constant time, and no `Debug` output, log or message contains them.

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

/// The group of every authenticated user.
const AUTHENTICATED: &str = "system:authenticated";

/// Group whose members are allowed every request.
///
/// `NewPrivilegedGroups` in the API server's configuration.
const MASTERS: &str = "system:masters";

/// A user with its name and groups.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct User {
    /// Name of the user, such as `jane` or `system:serviceaccount:default:controller`.
    pub name: String,
    /// Groups of the user.
    ///
    /// Members of `system:masters` are allowed everything.
    /// The server adds `system:authenticated` to every authenticated user.
    pub groups: Vec<String>,
}

/// Handle that changes the tokens and rules of a running server; cheap to clone.
///
/// ```
/// use kube_informer_apiserver::{Rule, Server, User};
///
/// let server = Server::builder()
///     .token("short-lived", User::new("jane"))
///     .rules([Rule::allow(["get", "list", "watch"], ["pods"]).for_user("jane")])
///     .build();
/// // A request with this token now receives 401.
/// assert!(server.access().revoke_token("short-lived"));
/// ```
#[derive(Clone)]
pub struct Access {
    gate: Arc<Gate>,
}

/// Authenticates and authorizes every request to the server, by its tokens and rules.
pub(crate) struct Gate {
    policy: Mutex<Policy>,
    anonymous: Arc<User>,
}

/// Tokens and rules of a server: those of the builder, with later changes by [`Access`].
#[derive(Default)]
pub(crate) struct Policy {
    /// Accepted tokens with their users; `None` if requests need no authentication.
    tokens: Option<Vec<(BearerToken, Arc<User>)>>,
    /// Rules of the server; `None` if every request is allowed.
    rules: Option<Vec<Rule>>,
}

/// Bytes of a bearer token that the server accepts.
struct BearerToken(Box<[u8]>);

/// User in a peer's client certificate; the connection adds it to the extensions of each of its requests.
#[derive(Clone)]
pub(crate) struct Peer(pub(crate) Arc<User>);

/// Marks a request that arrived on a local port without TLS; the connection adds it to the request's
/// extensions.
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

    /// Adds the user to a group.
    #[must_use]
    pub fn in_group(mut self, group: &str) -> User {
        self.groups.push(group.to_owned());
        self
    }

    /// Adds the group `system:authenticated` to the user.
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

    /// Adds a token, or assigns a known one to another user.
    ///
    /// From the first token on, requests without a token receive 401.
    ///
    /// # Panics
    ///
    /// Panics if the token is empty, because no request can carry it.
    pub fn grant_token(&self, token: &str, user: User) {
        self.gate.policy.lock().grant(token, user);
    }

    /// Revokes a token: requests with it receive 401 from now on.
    ///
    /// Returns whether the token was known.
    pub fn revoke_token(&self, token: &str) -> bool {
        self.gate.policy.lock().revoke(token)
    }

    /// Replaces all rules: requests that no new rule allows receive 403 from now on.
    pub fn replace_rules(&self, rules: impl IntoIterator<Item = Rule>) {
        let rules = rules.into_iter().collect();
        self.gate.policy.lock().rules = Some(rules);
    }

    /// Removes all rules: every request is allowed from now on.
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

    pub(crate) fn install(&self, policy: Policy) {
        *self.policy.lock() = policy;
    }

    /// Whether neither tokens nor rules are configured.
    pub(crate) fn is_open(&self) -> bool {
        let policy = self.policy.lock();
        policy.tokens.is_none() && policy.rules.is_none()
    }

    /// Authenticates and authorizes a request: returns its user, and an error if the request is not allowed.
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

    /// Checks whether a user who may update an object may also create it.
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

    /// Returns the user of a token; the time of the call reveals only the number and lengths of the tokens.
    fn user_of(&self, token: &[u8]) -> Option<Arc<User>> {
        let mut found = None;
        for (known, user) in self.tokens.iter().flatten() {
            if bool::from(known.is(token)) {
                found = Some(Arc::clone(user));
            }
        }
        found
    }

    /// Whether a rule allows this user a request with these attributes.
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

/// Returns the bearer token of an `Authorization` header, parsed as in Kubernetes' `bearertoken.go`.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes().trim_ascii();
    let mut words = value.split(|byte| *byte == b' ');
    let scheme = words.next()?;
    let token = words.next()?;
    scheme.eq_ignore_ascii_case(b"bearer").then_some(token)
}

#[cfg(test)]
mod tests;
