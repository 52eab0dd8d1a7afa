//! Evaluates access reviews, such as `SelfSubjectAccessReview`, and token reviews.
//!
//! Guarantees:
//! - A review returns the decision that the server would make for the reviewed request at the same time.
//! - A review of an unsupported kind is returned without a status.

use serde_json::{Value, json};

use super::account_token::{ISSUER, Referents, Verified};
use super::attributes::Attributes;
use super::user::MASTERS;
use super::{Gate, User};
use crate::go_json::to_text;
use crate::kinds::Kind;
use crate::status::{ApiError, FieldError};

/// Reason in the status of a review by a server without access rules and RBAC.
const NO_RULES: &str = "this server has no access rules";

/// The sender and the place of a review.
pub(crate) struct Reviewing<'a> {
    pub(crate) asker: &'a User,
    pub(crate) kind: &'a Kind,
    /// The namespace in the path.
    pub(crate) namespace: Option<&'a str>,
    pub(crate) referents: &'a Referents<'a>,
}

/// Evaluates a review, and returns it with a `status`.
///
/// # Errors
///
/// Returns 400 or 422 if the review is incomplete or contradictory.
pub(crate) fn review(
    gate: &Gate,
    reviewing: &Reviewing<'_>,
    mut review: Value,
) -> Result<Value, ApiError> {
    if !review.is_object() {
        return Ok(review);
    }
    let Reviewing { asker, kind, .. } = reviewing;
    if kind.plural == "localsubjectaccessreviews" {
        review["metadata"]["namespace"] = json!(reviewing.namespace.unwrap_or_default());
    }
    let spec = &review["spec"];
    let status = match (kind.group.as_str(), kind.plural.as_str()) {
        ("authorization.k8s.io", "selfsubjectaccessreviews") => {
            check(kind, &review)?;
            gate.access(asker, spec)
        }
        ("authorization.k8s.io", "subjectaccessreviews" | "localsubjectaccessreviews") => {
            check(kind, &review)?;
            gate.access(&subject(spec), spec)
        }
        ("authorization.k8s.io", "selfsubjectrulesreviews") => {
            let status = gate.rules_for(asker, spec)?;
            // As in Kubernetes, the response does not repeat the request.
            review["metadata"] = json!({});
            review["spec"] = json!({});
            status
        }
        ("authentication.k8s.io", "tokenreviews") => gate.token(spec, reviewing.referents)?,
        ("authentication.k8s.io", "selfsubjectreviews") => {
            let now = reviewing.referents.clock.now().to_string();
            review["metadata"] = json!({"creationTimestamp": now});
            json!({"userInfo": info(asker)})
        }
        _ => return Ok(review),
    };
    review["status"] = status;
    Ok(review)
}

impl Gate {
    fn access(&self, user: &User, spec: &Value) -> Value {
        let resource = &spec["resourceAttributes"];
        let attributes = if resource.is_object() {
            attributes(resource)
        } else {
            let path = &spec["nonResourceAttributes"];
            Attributes {
                verb: text(path, "verb"),
                path: Some(text(path, "path")),
                ..Attributes::default()
            }
        };
        let policy = self.policy.lock();
        let decision = self.decide(&policy, user, &attributes);
        let mut status = json!({"allowed": decision.is_allowed});
        let has_no_rules = self.rbac.is_none() && policy.rules.is_none();
        if has_no_rules {
            status["reason"] = json!(NO_RULES);
        } else if !decision.reason.is_empty() {
            status["reason"] = json!(decision.reason);
        }
        status
    }

    fn rules_for(&self, user: &User, spec: &Value) -> Result<Value, ApiError> {
        let namespace = text(spec, "namespace");
        if namespace.is_empty() {
            return Err(ApiError::bad_request("no namespace on request"));
        }
        let policy = self.policy.lock();
        let rules = policy.rules.iter().flatten();
        let applying = rules.filter(|rule| rule.applies(user, &namespace));
        let applying: Vec<Value> = applying.flat_map(super::Rule::to_resource_rules).collect();
        if let Some(rbac) = &self.rbac {
            let mut status = rbac.read().rules_of(user, &namespace);
            if let Some(resources) = status["resourceRules"].as_array_mut() {
                resources.extend(applying);
            }
            return Ok(status);
        }
        let everything = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
        let resources = if policy.rules.is_some() && !user.is_in(MASTERS) {
            let mut resources = vec![
                json!({"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]}),
                json!({"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]}),
            ];
            resources.extend(applying);
            resources
        } else {
            vec![everything]
        };
        let paths = json!([{"verbs": ["*"], "nonResourceURLs": ["*"]}]);
        Ok(json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false}))
    }

    /// Authenticates the token of a `TokenReview` for one of its audiences.
    fn token(&self, spec: &Value, referents: &Referents<'_>) -> Result<Value, ApiError> {
        let token = text(spec, "token");
        if token.is_empty() {
            let message = "token is required for TokenReview in authentication";
            return Err(ApiError::bad_request(message));
        }
        let mut wanted = texts(&spec["audiences"]);
        if wanted.is_empty() {
            wanted.push(ISSUER.to_owned());
        }
        let known = self.policy.lock().user_of(token.as_bytes());
        // A token of the program is for the server itself.
        if let Some(user) = known.filter(|_| wanted.iter().any(|audience| audience == ISSUER)) {
            return Ok(authenticated(&user, &[ISSUER.to_owned()]));
        }
        let verified = self.issuer.verify(token.as_bytes(), &wanted, referents);
        Ok(match verified {
            Some(Ok(Verified { user, audiences })) => {
                authenticated(&user.authenticated(), &audiences)
            }
            Some(Err(why)) => json!({"user": {}, "error": why}),
            None => json!({"user": {}, "error": "invalid bearer token"}),
        })
    }
}

fn authenticated(user: &User, audiences: &[String]) -> Value {
    json!({"authenticated": true, "user": info(user), "audiences": audiences})
}

/// Checks the members of an access review, as `pkg/apis/authorization/validation` does.
fn check(kind: &Kind, review: &Value) -> Result<(), ApiError> {
    let spec = &review["spec"];
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let mut errors = Vec::new();
    let mut invalid = |field: &'static str, value: String, why: &str| {
        errors.push(FieldError::invalid(field, value, why));
    };
    let shown_path = || {
        let shown = json!({"Path": text(path, "path"), "Verb": text(path, "verb")});
        to_text(&shown)
    };
    match (resource.is_object(), path.is_object()) {
        (true, true) => {
            let why = "cannot be specified in combination with resourceAttributes";
            invalid("spec.nonResourceAttributes", shown_path(), why);
        }
        (false, false) => {
            let why =
                "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            invalid("spec.resourceAttributes", "null".to_owned(), why);
        }
        _ => {}
    }
    let is_about_others = kind.plural != "selfsubjectaccessreviews";
    if is_about_others && text(spec, "user").is_empty() && texts(&spec["groups"]).is_empty() {
        let why = "at least one of user or group must be specified";
        invalid("spec.user", "\"\"".to_owned(), why);
    }
    if kind.plural == "localsubjectaccessreviews" {
        let namespace = text(resource, "namespace");
        if resource.is_object() && namespace != text(&review["metadata"], "namespace") {
            let shown = crate::quote::Quoted(&namespace).to_string();
            let why = "must match metadata.namespace";
            invalid("spec.resourceAttributes.namespace", shown, why);
        }
        if path.is_object() {
            let why = "disallowed on this kind of request";
            invalid("spec.nonResourceAttributes", shown_path(), why);
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    // As in Kubernetes, the error has no kind.
    Err(ApiError::invalid_kind(&kind.group, "", "", &errors))
}

/// Returns the user that a `SubjectAccessReview` names, with the groups that the review lists.
fn subject(spec: &Value) -> User {
    let mut user = User::new(&text(spec, "user"));
    user.groups = texts(&spec["groups"]);
    user
}

fn attributes(spec: &Value) -> Attributes {
    Attributes {
        verb: text(spec, "verb"),
        group: text(spec, "group"),
        resource: text(spec, "resource"),
        subresource: text(spec, "subresource"),
        namespace: text(spec, "namespace"),
        name: text(spec, "name"),
        path: None,
    }
}

/// Returns a user as a review shows it (`UserInfo`).
pub(crate) fn info(user: &User) -> Value {
    let mut info = json!({"username": user.name});
    if !user.uid.is_empty() {
        info["uid"] = json!(user.uid);
    }
    if !user.groups.is_empty() {
        info["groups"] = json!(user.groups);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

fn text(object: &Value, member: &str) -> String {
    object[member].as_str().unwrap_or_default().to_owned()
}

fn texts(list: &Value) -> Vec<String> {
    let texts = list.as_array().into_iter().flatten();
    texts.filter_map(Value::as_str).map(str::to_owned).collect()
}
