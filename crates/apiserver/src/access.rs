//! Who may do what: users by bearer token or client certificate, and rules for them.
//!
//! Guarantees:
//! - a server without tokens lets everyone in, as `system:anonymous`; one without rules forbids nothing;
//! - once a token was known, a request without a known token or client certificate is a 401, also after the last token was revoked;
//! - of a port that everybody on the machine may use, no page in a browser makes use: [`browser`];
//! - a change holds for every request that arrives after it; watches that are open go on, as in Kubernetes;
//! - tokens are compared in constant time, and shown by no `Debug`, log or message.

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

/// The group of everyone whom a token or certificate has named.
const AUTHENTICATED: &str = "system:authenticated";

/// The group that no rule can hold back (`NewPrivilegedGroups` in the API server's configuration).
const MASTERS: &str = "system:masters";

/// Somebody, by name and groups.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct User {
    /// The name, such as `jane` or `system:serviceaccount:default:controller`.
    pub name: String,
    /// The groups; members of `system:masters` may do everything, and whoever was authenticated is in `system:authenticated` without it being said.
    pub groups: Vec<String>,
}

/// Tokens and rules while the server runs; cheap to clone.
///
/// ```
/// use kube_informer_apiserver::{Rule, Server, User};
///
/// let server = Server::builder()
///     .token("short-lived", User::new("jane"))
///     .rules([Rule::allow(["get", "list", "watch"], ["pods"]).for_user("jane")])
///     .build();
/// // To a request that carries it, the token is now as unknown as any other: 401.
/// assert!(server.access().revoke_token("short-lived"));
/// ```
#[derive(Clone)]
pub struct Access {
    gate: Arc<Gate>,
}

/// What decides on every request.
pub(crate) struct Gate {
    policy: Mutex<Policy>,
    anonymous: Arc<User>,
}

/// Tokens and rules, as the builder collects them.
#[derive(Default)]
pub(crate) struct Policy {
    /// `None`: nobody has to say who they are.
    tokens: Option<Vec<(Token, Arc<User>)>>,
    /// `None`: nothing is forbidden.
    rules: Option<Vec<Rule>>,
}

/// A bearer token.
struct Token(Box<[u8]>);

/// Whom the peer's certificate names; put into a request's extensions by the connection it came on.
#[derive(Clone)]
pub(crate) struct Peer(pub(crate) Arc<User>);

/// That a request came over a port of the machine's own, without TLS; put into its extensions by the connection.
#[derive(Clone, Copy)]
pub(crate) struct OwnMachine;

// === impl User ===

impl User {
    /// A user without groups.
    pub fn new(name: &str) -> User {
        User {
            name: name.to_owned(),
            groups: Vec::new(),
        }
    }

    /// The same user in one group more.
    #[must_use]
    pub fn in_group(mut self, group: &str) -> User {
        self.groups.push(group.to_owned());
        self
    }

    /// The user once it is known that it is they.
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

    /// Makes a token known, or gives a known one to another user.
    ///
    /// From the first token on, requests without one are refused with 401.
    ///
    /// # Panics
    ///
    /// If the token is empty, for no request can carry that.
    pub fn grant_token(&self, token: &str, user: User) {
        self.gate.policy.lock().grant(token, user);
    }

    /// Forgets a token: requests that carry it are refused with 401 from now on.
    ///
    /// Returns whether it was known.
    pub fn revoke_token(&self, token: &str) -> bool {
        self.gate.policy.lock().revoke(token)
    }

    /// Replaces all rules: what none of these allows is refused with 403 from now on.
    pub fn replace_rules(&self, rules: impl IntoIterator<Item = Rule>) {
        let rules = rules.into_iter().collect();
        self.gate.policy.lock().rules = Some(rules);
    }

    /// Forgets all rules: nothing is forbidden from now on.
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

    /// Whether anybody may do anything.
    pub(crate) fn is_open(&self) -> bool {
        let policy = self.policy.lock();
        policy.tokens.is_none() && policy.rules.is_none()
    }

    /// Who asks, and the refusal if they may not.
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

    /// Whether a user who may update an object may also create it.
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
        tokens.push((Token(token.as_bytes().into()), user.authenticated()));
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

    /// The user of a token, in a time that tells nothing of the tokens but their number and lengths.
    fn user_of(&self, token: &[u8]) -> Option<Arc<User>> {
        let mut found = None;
        for (known, user) in self.tokens.iter().flatten() {
            if bool::from(known.is(token)) {
                found = Some(Arc::clone(user));
            }
        }
        found
    }

    /// Whether a user may do something to a resource.
    fn allows(&self, user: &User, attributes: &Attributes) -> bool {
        let Some(rules) = &self.rules else {
            return true;
        };
        user.is_in(MASTERS)
            || attributes.is_about_oneself()
            || rules.iter().any(|rule| rule.allows(user, attributes))
    }
}

// === impl Token ===

impl Token {
    fn is(&self, presented: &[u8]) -> Choice {
        self.0.ct_eq(presented)
    }
}

/// The token in an `Authorization` header, read as `bearertoken.go` does.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes().trim_ascii();
    let mut words = value.split(|byte| *byte == b' ');
    let scheme = words.next()?;
    let token = words.next()?;
    scheme.eq_ignore_ascii_case(b"bearer").then_some(token)
}

#[cfg(test)]
mod tests;
