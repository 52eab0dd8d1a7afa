//! Evaluates access reviews, such as `SelfSubjectAccessReview`, with the access rules of the server.
//!
//! Guarantees:
//! - A review returns the decision that the server would make for the reviewed request at the same time.
//! - A review of an unsupported kind is returned without a status.

use serde_json::{Value, json};

use super::attributes::Attributes;
use super::{Gate, Policy, User};
use crate::kinds::Kind;
use crate::status::{ApiError, FieldError};

/// Reason in the status of a review by a server without access rules.
const NO_RULES: &str = "this server has no access rules";

/// Evaluates the review that `asker` sent, and returns it with a `status`.
///
/// # Errors
///
/// Returns 400 or 422 if the spec of the review is incomplete.
pub(crate) fn review(
    gate: &Gate,
    asker: &User,
    kind: &Kind,
    mut review: Value,
) -> Result<Value, ApiError> {
    if !review.is_object() {
        return Ok(review);
    }
    let policy = gate.policy.lock();
    let spec = &review["spec"];
    let status = match (kind.group.as_str(), kind.plural.as_str()) {
        ("authorization.k8s.io", "selfsubjectaccessreviews") => policy.access(asker, spec, kind)?,
        ("authorization.k8s.io", "subjectaccessreviews" | "localsubjectaccessreviews") => {
            policy.access(&subject(spec), spec, kind)?
        }
        ("authorization.k8s.io", "selfsubjectrulesreviews") => policy.rules_for(asker, spec)?,
        ("authentication.k8s.io", "tokenreviews") => policy.token(spec)?,
        ("authentication.k8s.io", "selfsubjectreviews") => json!({"userInfo": info(asker)}),
        _ => return Ok(review),
    };
    drop(policy);
    review["status"] = status;
    Ok(review)
}

impl Policy {
    fn access(&self, user: &User, spec: &Value, kind: &Kind) -> Result<Value, ApiError> {
        let resource = &spec["resourceAttributes"];
        let allowed = match (
            resource.is_object(),
            spec["nonResourceAttributes"].is_object(),
        ) {
            (true, false) => self.allows(user, &attributes(resource)),
            (false, true) => true,
            _ => {
                let error = FieldError::invalid(
                    "spec.resourceAttributes",
                    "null",
                    "exactly one of nonResourceAttributes or resourceAttributes must be specified",
                );
                return Err(ApiError::invalid(kind, "", &[error]));
            }
        };
        let mut status = json!({"allowed": allowed});
        if self.rules.is_none() {
            status["reason"] = json!(NO_RULES);
        }
        Ok(status)
    }

    fn rules_for(&self, user: &User, spec: &Value) -> Result<Value, ApiError> {
        let namespace = text(spec, "namespace");
        if namespace.is_empty() {
            return Err(ApiError::bad_request("no namespace on request"));
        }
        let everything = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
        let resources = match &self.rules {
            Some(rules) if !user.is_in(super::MASTERS) => {
                let applying = rules.iter().filter(|rule| rule.applies(user, &namespace));
                let oneself = [
                    json!({"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]}),
                    json!({"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]}),
                ];
                let mut resources = oneself.to_vec();
                resources.extend(applying.flat_map(super::Rule::to_resource_rules));
                resources
            }
            _ => vec![everything],
        };
        let paths = json!([{"verbs": ["*"], "nonResourceURLs": ["*"]}]);
        Ok(json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false}))
    }

    fn token(&self, spec: &Value) -> Result<Value, ApiError> {
        let token = text(spec, "token");
        if token.is_empty() {
            let message = "token is required for TokenReview in authentication";
            return Err(ApiError::bad_request(message));
        }
        Ok(match self.user_of(token.as_bytes()) {
            Some(user) => json!({"authenticated": true, "user": info(&user)}),
            None => json!({"user": {}, "error": "invalid bearer token"}),
        })
    }
}

/// Returns the user that a `SubjectAccessReview` names, with the groups that the review lists.
fn subject(spec: &Value) -> User {
    let groups = spec["groups"].as_array().into_iter().flatten();
    let mut user = User::new(&text(spec, "user"));
    user.groups
        .extend(groups.filter_map(Value::as_str).map(str::to_owned));
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
    }
}

fn info(user: &User) -> Value {
    json!({"username": user.name, "groups": user.groups})
}

fn text(object: &Value, member: &str) -> String {
    object[member].as_str().unwrap_or_default().to_owned()
}
