//! Authenticates and authorizes requests, by bearer tokens, client certificates, access rules and RBAC objects.
//!
//! Guarantees:
//! - Without RBAC, and before the first token is granted, a request without a client certificate has the user
//!   `system:anonymous`. After that, a request with neither a known token nor a client certificate receives
//!   401, even after all tokens are revoked.
//! - With RBAC, a request without credentials has the user `system:anonymous`, and one with an unknown token receives
//!   401, as in Kubernetes.
//! - A server without access rules and RBAC allows all users every request. With both, a request needs one of them.
//! - A server without tokens, rules, RBAC and client certificates ignores all credentials and headers of users.
//! - Before the first token is granted, a loopback port without TLS rejects a request that a browser sends
//!   for a web page of another host, unless the builder allows remote clients (see [`browser`]).
//! - A change of tokens, rules or RBAC objects applies to every request that arrives after the change. It does not
//!   close open watches, as in Kubernetes.
//! - Tokens are compared in constant time or verified by their signature, and no `Debug` output, log or message
//!   contains them.
//!
//! The TLS connection verifies client certificates.

pub(crate) mod account_token;
pub(crate) mod approval;
mod attributes;
mod browser;
pub(crate) mod escalation;
mod impersonation;
pub(crate) mod rbac;
pub(crate) mod review;
mod rule;
mod user;

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use parking_lot::{Mutex, RwLock};
use subtle::{Choice, ConstantTimeEq};

use crate::route::{Query, Target};
use crate::status::ApiError;

use account_token::{ISSUER, Issuer, Referents, Verified};
use attributes::Attributes;
use impersonation::Requester;
use rbac::Rbac;
pub use rule::Rule;
use user::MASTERS;
pub use user::User;

/// How the server decides whether a user may send a request, in addition to [access rules](Rule).
///
/// The names are those of the flag `--authorization-mode` of kube-apiserver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Authorization {
    /// Every user may send every request, unless there are access rules.
    #[default]
    AlwaysAllow,
    /// The stored `Role`, `ClusterRole`, `RoleBinding` and `ClusterRoleBinding` objects decide.
    Rbac,
}

/// Warning about a token that is ignored (`invalidTokenWithSpaceWarning`).
const EXTRA_SPACE: &str = "the provided Authorization header contains extra space before the bearer token, and is ignored";

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
    /// The RBAC objects, if they decide. Lock order: the state of the server, `policy`, `rbac`.
    rbac: Option<RwLock<Rbac>>,
    pub(crate) issuer: Issuer,
    anonymous: Arc<User>,
}

/// Current tokens and access rules of a server.
#[derive(Clone, Default)]
pub(crate) struct Policy {
    /// Accepted tokens with their users. `None` if requests need no authentication.
    tokens: Option<Vec<(BearerToken, Arc<User>)>>,
    /// Access rules of the server. `None` if there are none, so that every user may send every request.
    rules: Option<Vec<Rule>>,
}

/// Whether a user may send a request.
struct Decision {
    is_allowed: bool,
    /// The reason of an authorizer, as Kubernetes words it. Can be empty.
    reason: String,
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
    pub(crate) fn new(authorization: Authorization) -> Gate {
        Gate {
            policy: Mutex::default(),
            rbac: match authorization {
                Authorization::AlwaysAllow => None,
                Authorization::Rbac => Some(RwLock::default()),
            },
            issuer: Issuer::default(),
            anonymous: Arc::new(User::anonymous()),
        }
    }

    /// Returns a gate with the same tokens, rules and key, which can change independently. It has no RBAC objects.
    pub(crate) fn copy(&self) -> Gate {
        Gate {
            policy: Mutex::new(self.policy.lock().clone()),
            rbac: self.rbac.as_ref().map(|_| RwLock::default()),
            issuer: self.issuer.clone(),
            anonymous: Arc::clone(&self.anonymous),
        }
    }

    pub(crate) fn install(&self, policy: Policy) {
        *self.policy.lock() = policy;
    }

    /// Returns the RBAC objects, which the caller keeps up to date. `None` if they decide nothing.
    pub(crate) fn rbac(&self) -> Option<&RwLock<Rbac>> {
        self.rbac.as_ref()
    }

    /// Returns whether the server neither requires authentication nor restricts users.
    pub(crate) fn is_open(&self) -> bool {
        self.rbac.is_none() && self.policy.lock().is_open()
    }

    /// Returns the warning of Kubernetes about the credentials of a request that is treated as anonymous, if there is one.
    pub(crate) fn warning(&self, parts: &Parts) -> Option<&'static str> {
        let warns = self.rbac.is_some() && has_extra_space(&parts.headers);
        warns.then_some(EXTRA_SPACE)
    }

    /// Authenticates and authorizes a request.
    ///
    /// Returns the request's user, and an error if the request is not allowed.
    pub(crate) fn admit(
        &self,
        parts: &Parts,
        query: &Query,
        referents: &Referents<'_>,
    ) -> (Arc<User>, Option<ApiError>) {
        let user = match self.authenticate(parts, referents) {
            Ok(Some(user)) => user,
            Ok(None) => return (Arc::clone(&self.anonymous), None),
            Err(error) => return (Arc::clone(&self.anonymous), Some(error)),
        };
        let wanted = match impersonation::wanted(&parts.headers) {
            Ok(wanted) => wanted,
            Err(error) => return (user, Some(error)),
        };
        let Some(attributes) = Attributes::of(&parts.method, parts.uri.path(), query) else {
            // The request can't do anything.
            return (user, None);
        };
        let policy = self.policy.lock();
        let user = match wanted {
            None => user,
            Some(wanted) => {
                let requester = Requester {
                    user: &user,
                    decide: &|attributes| self.decide(&policy, &user, attributes),
                };
                match impersonation::impersonate(&requester, &wanted, &attributes) {
                    Ok(user) => Arc::new(user),
                    Err(error) => return (user, Some(error)),
                }
            }
        };
        let decision = self.decide(&policy, &user, &attributes);
        let refusal = (!decision.is_allowed).then(|| attributes.forbidden(&user, &decision.reason));
        (user, refusal)
    }

    /// Checks whether `user` may create the object at `target` with a PUT request.
    ///
    /// # Errors
    ///
    /// Returns a 403 error if the user may not.
    pub(crate) fn admit_create(&self, user: &User, target: &Target) -> Result<(), ApiError> {
        let attributes = Attributes::of_creation(target);
        let decision = self.decide(&self.policy.lock(), user, &attributes);
        if decision.is_allowed {
            return Ok(());
        }
        Err(attributes.forbidden(user, &decision.reason))
    }

    /// Returns the user of a request, or `None` if the server is open and the request has no client certificate.
    ///
    /// # Errors
    ///
    /// Returns a 401 error if the credentials are unknown or missing, and a 403 error for a web page of another host.
    fn authenticate(
        &self,
        parts: &Parts,
        referents: &Referents<'_>,
    ) -> Result<Option<Arc<User>>, ApiError> {
        if let Some(Peer(user)) = parts.extensions.get::<Peer>() {
            return Ok(Some(Arc::clone(user)));
        }
        let token = bearer(&parts.headers).unwrap_or_default();
        let requires_tokens = {
            let policy = self.policy.lock();
            let own_machine = parts.extensions.get::<OwnMachine>();
            if policy.tokens.is_none()
                && let Some(refusal) = own_machine.and_then(|_| browser::refusal(parts))
            {
                return Err(refusal);
            }
            if self.rbac.is_none() && policy.is_open() {
                return Ok(None);
            }
            if let Some(user) = policy.user_of(token) {
                return Ok(Some(user));
            }
            policy.tokens.is_some()
        };
        let verified = self.issuer.verify(token, &[ISSUER.to_owned()], referents);
        if let Some(Ok(Verified { user, .. })) = verified {
            return Ok(Some(user.authenticated()));
        }
        let is_rejected = match &self.rbac {
            Some(_) => !token.is_empty(),
            None => requires_tokens,
        };
        if is_rejected {
            return Err(ApiError::unauthorized());
        }
        Ok(Some(Arc::clone(&self.anonymous)))
    }

    /// Decides whether `user` may send a request: by the group `system:masters`, access rules, and RBAC.
    fn decide(&self, policy: &Policy, user: &User, attributes: &Attributes) -> Decision {
        let by_rules = match &policy.rules {
            _ if user.is_in(MASTERS) => true,
            None => self.rbac.is_none(),
            Some(rules) => {
                let is_for_all = attributes.path.is_some() || attributes.is_about_oneself();
                (self.rbac.is_none() && is_for_all)
                    || rules.iter().any(|rule| rule.allows(user, attributes))
            }
        };
        match &self.rbac {
            Some(rbac) if !by_rules => rbac.read().decide(user, attributes),
            _ => Decision {
                is_allowed: by_rules,
                reason: String::new(),
            },
        }
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

    fn is_open(&self) -> bool {
        self.tokens.is_none() && self.rules.is_none()
    }
}

// === impl BearerToken ===

impl BearerToken {
    fn is(&self, presented: &[u8]) -> Choice {
        self.0.ct_eq(presented)
    }
}

/// Returns whether a request has a space before its bearer token, which is then ignored.
fn has_extra_space(headers: &HeaderMap) -> bool {
    let value = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
    let mut words = value
        .unwrap_or_default()
        .trim_ascii()
        .split(|byte| *byte == b' ');
    let is_bearer = words
        .next()
        .is_some_and(|word| word.eq_ignore_ascii_case(b"bearer"));
    is_bearer && words.next() == Some(b"") && words.next().is_some()
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
