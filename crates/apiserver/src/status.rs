//! Builds the error responses of the API: [`ApiError`], and the `metav1.Status` that it contains.
//!
//! Guarantees:
//! - an error that Kubernetes also returns has the HTTP code, reason and message of a Kubernetes 1.36 API
//!   server;
//! - [`ApiError`] displays as the message of its [`Status`].

mod access_error;
mod field_error;
mod on_demand;
mod request_error;

use serde::Serialize;
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::quote::Quoted;

pub(crate) use field_error::FieldError;

/// Message of the 410 error for a list whose continue token expired.
const EXPIRED_CONTINUE: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// The error for a rejected request. The error displays as the message of its [`Status`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", .0.message)]
pub struct ApiError(Box<Status>);

/// The body of an error response: a `metav1.Status` that reports a failure.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason, such as `NotFound`. Empty if Kubernetes sends no reason.
    pub reason: String,
    /// The human-readable message.
    pub message: String,
    /// The object or resource that the failure concerns, and the causes of the failure.
    ///
    /// `None` if the response contains no details.
    pub details: Option<StatusDetails>,
    /// A new continue token for a list whose continue token expired. `None` for any other failure.
    ///
    /// The client can use this token to read the remaining objects in their current state.
    /// These objects may be inconsistent with the earlier pages.
    /// The JSON member is `metadata.continue`.
    pub continue_token: Option<String>,
}

/// The object or resource that a [`Status`] concerns, with the causes of the failure.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StatusDetails {
    /// Name of the object. Empty if the failure does not concern a single object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// API group of the resource. Empty for the core group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Plural name of the resource or name of the kind, whichever Kubernetes sends in this error.
    ///
    /// For example, most validation errors contain the kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The causes of the failure. A validation error contains one cause per invalid field.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// Number of seconds after which the client should retry. The value 0 means that no time is given.
    ///
    /// The server also sends a nonzero number in the `Retry-After` header.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

/// One cause of a failure, such as an invalid field.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StatusCause {
    /// The machine-readable reason, such as `FieldValueForbidden`.
    pub reason: String,
    /// The human-readable message.
    pub message: String,
    /// Path of the invalid field. Empty if the cause does not concern a field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

// === impl Status ===

impl Status {
    fn failure(code: u16, reason: &str, message: impl Into<String>) -> Status {
        Status {
            code,
            reason: reason.to_owned(),
            message: message.into(),
            details: None,
            continue_token: None,
        }
    }

    /// Returns the `Status` as JSON, as sent in the response body.
    pub fn to_json(&self) -> Value {
        let mut metadata = json!({});
        if let Some(token) = &self.continue_token {
            metadata["continue"] = json!(token);
        }
        let mut status = json!({
            "apiVersion": "v1",
            "kind": "Status",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = json!(details);
        }
        status
    }

    /// Returns the number of seconds after which the client should retry, or `None` if no time is given.
    pub fn retry_after(&self) -> Option<u32> {
        let details = self.details.as_ref()?;
        (details.retry_after_seconds > 0).then_some(details.retry_after_seconds)
    }
}

// === impl ApiError ===

impl ApiError {
    /// Returns the `Status` that the server sends for this error.
    pub fn status(&self) -> &Status {
        &self.0
    }

    /// Returns the HTTP status code of the error.
    pub fn code(&self) -> u16 {
        self.0.code
    }

    /// Returns the machine-readable reason of the error, or an empty string if Kubernetes sends none.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    pub(crate) fn new(code: u16, reason: &str, message: impl Into<String>) -> ApiError {
        ApiError(Box::new(Status::failure(code, reason, message)))
    }

    pub(crate) fn not_stored(cause: &str) -> ApiError {
        ApiError::internal(&format!("the write could not be stored: {cause}"))
    }

    /// Returns the 500 error of Kubernetes' `NewInternalError`.
    pub(crate) fn internal(cause: &str) -> ApiError {
        let message = format!("Internal error occurred: {cause}");
        ApiError::new(500, "InternalError", message).caused_by("", cause, "")
    }

    /// Sets the resource and the object's name in the error's details.
    pub(crate) fn about(mut self, kind: &Kind, name: &str) -> ApiError {
        let details = self.0.details.get_or_insert_default();
        name.clone_into(&mut details.name);
        details.group.clone_from(&kind.group);
        details.kind.clone_from(&kind.plural);
        self
    }

    /// Adds an empty `details` member to the error, as Kubernetes does for some errors.
    fn about_nothing(mut self) -> ApiError {
        self.0.details.get_or_insert_default();
        self
    }

    pub(crate) fn caused_by(mut self, reason: &str, message: &str, field: &str) -> ApiError {
        let details = self.0.details.get_or_insert_default();
        details.causes.push(StatusCause {
            reason: reason.to_owned(),
            message: message.to_owned(),
            field: field.to_owned(),
        });
        self
    }

    pub(crate) fn retry_in(mut self, seconds: u32) -> ApiError {
        self.0.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> ApiError {
        ApiError::new(400, "BadRequest", message)
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> ApiError {
        ApiError::not_found_as(kind, name, &Quoted(name).to_string())
    }

    /// Returns the 404 error for the object `name`. The message contains `quoted` instead of the name.
    pub(crate) fn not_found_as(kind: &Kind, name: &str, quoted: &str) -> ApiError {
        let message = format!("{} {quoted} not found", kind.group_resource());
        ApiError::new(404, "NotFound", message).about(kind, name)
    }

    pub(crate) fn already_exists(kind: &Kind, name: &str) -> ApiError {
        let message = format!("{} {} already exists", kind.group_resource(), Quoted(name));
        ApiError::new(409, "AlreadyExists", message).about(kind, name)
    }

    /// Adds the prefix `object is being deleted: ` to the message of a create request's 409 error.
    pub(crate) fn being_deleted(mut self) -> ApiError {
        self.0.message.insert_str(0, "object is being deleted: ");
        self
    }

    /// Returns the 409 error for a create request with `generateName` if every name tried is in use.
    ///
    /// `name` is the last name tried.
    pub(crate) fn no_free_name(kind: &Kind, name: &str) -> ApiError {
        let message = format!(
            "{} {} already exists, the server was not able to generate a unique name for the object",
            kind.group_resource(),
            Quoted(name)
        );
        ApiError::new(409, "AlreadyExists", message)
            .about(kind, name)
            .retry_in(1)
    }

    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> ApiError {
        let message = format!(
            "Operation cannot be fulfilled on {} {}: {why}",
            kind.group_resource(),
            Quoted(name)
        );
        ApiError::new(409, "Conflict", message).about(kind, name)
    }

    /// Returns the 409 error for a deletion whose preconditions fail.
    pub(crate) fn precondition(kind: &Kind, name: &str, why: &str) -> ApiError {
        let message = format!(
            "Operation cannot be fulfilled on {} {}: {why}",
            kind.group_kind(),
            Quoted(name)
        );
        let mut error = ApiError::new(409, "Conflict", message).about(kind, name);
        let details = error.0.details.get_or_insert_default();
        // As in Kubernetes, the kind instead of the resource.
        details.kind.clone_from(&kind.kind);
        if kind.group_kind() == kind.kind {
            details.group.clear();
        }
        error
    }

    /// Returns the 409 error for an apply that would take fields of other managers.
    pub(crate) fn apply_conflict(message: String, causes: Vec<StatusCause>) -> ApiError {
        let mut error = ApiError::new(409, "Conflict", message);
        error.0.details.get_or_insert_default().causes = causes;
        error
    }

    /// Replaces the resource in the error's message and details with a subresource, such as `pods/binding`.
    pub(crate) fn on_subresource(mut self, kind: &Kind, subresource: &str) -> ApiError {
        let resource = format!("{}/{subresource}", kind.plural);
        let status = &mut self.0;
        status.message = status.message.replacen(&kind.plural, &resource, 1);
        status.details.get_or_insert_default().kind = resource;
        self
    }

    /// Returns the 409 error for a write with an outdated `resourceVersion`.
    pub(crate) fn modified(kind: &Kind, name: &str) -> ApiError {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        ApiError::conflict(kind, name, why)
    }

    pub(crate) fn list_too_old() -> ApiError {
        let message = "The resourceVersion for the provided list is too old.";
        ApiError::new(410, "Expired", message)
    }

    /// Returns the 410 error for a watch from the revision `requested`.
    ///
    /// The server has dropped the events up to the revision `horizon`.
    pub(crate) fn watch_too_old(requested: u64, horizon: u64) -> ApiError {
        let message = format!("too old resource version: {requested} ({horizon})");
        ApiError::new(410, "Expired", message)
    }

    /// Returns the 410 error of a server without a watch cache, for a watch from a compacted revision.
    pub(crate) fn watch_compacted() -> ApiError {
        let message = "The resourceVersion for the provided watch is too old.";
        ApiError::new(410, "Expired", message)
    }

    pub(crate) fn continue_expired(inconsistent: String) -> ApiError {
        let mut status = Status::failure(410, "Expired", EXPIRED_CONTINUE);
        status.continue_token = Some(inconsistent);
        ApiError(Box::new(status))
    }

    pub(crate) fn body_too_large() -> ApiError {
        let message = "limit is 3145728"; // http.MaxBytesReader's words around the limit
        ApiError::new(
            413,
            "RequestEntityTooLarge",
            format!("Request entity too large: {message}"),
        )
    }

    pub(crate) fn object_too_large(limit: usize) -> ApiError {
        let message = format!("Request entity too large: an object's limit is {limit}");
        ApiError::new(413, "RequestEntityTooLarge", message)
    }

    pub(crate) fn too_deep() -> ApiError {
        ApiError::bad_request("the object is nested more than 127 levels deep")
    }

    /// Returns the 500 error of an etcd whose space quota is exceeded.
    pub(crate) fn no_space() -> ApiError {
        ApiError::unexplained("etcdserver: mvcc: database space exceeded")
    }

    /// Returns the 504 error for a request body that arrived too slowly.
    pub(crate) fn timed_out() -> ApiError {
        let message = "Timeout: request did not complete within the allotted timeout";
        ApiError::new(504, "Timeout", message).about_nothing()
    }

    pub(crate) fn unsupported_patch() -> ApiError {
        let message = "415: Unsupported Media Type";
        ApiError::new(415, "UnsupportedMediaType", message).about_nothing()
    }

    /// Returns the 422 error for a patch whose result `text` is not a valid object; `cause` is the reason.
    pub(crate) fn no_such_object(text: &str, cause: &str) -> ApiError {
        let error = FieldError::invalid("patch", format!("{text:?}"), cause);
        ApiError::validation("", "", &[error])
    }

    /// Returns the 422 error for a JSON patch that can't be applied to the stored object.
    pub(crate) fn inapplicable() -> ApiError {
        let message = "the server rejected our request due to an error in our request";
        ApiError::new(422, "Invalid", message).about_nothing()
    }

    pub(crate) fn unsupported_body(accepted: &str) -> ApiError {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        ApiError::new(415, "UnsupportedMediaType", message)
    }

    /// Returns the 422 error for an object with invalid fields.
    ///
    /// The error names the object's kind, as most validation errors of Kubernetes do.
    pub(crate) fn invalid(kind: &Kind, name: &str, errors: &[FieldError]) -> ApiError {
        // Kubernetes has one internal type for the events of both groups.
        let is_event = kind.is_builtin("events.events.k8s.io");
        let (subject, group) = if is_event {
            (kind.kind.clone(), "")
        } else {
            (kind.group_kind(), kind.group.as_str())
        };
        let mut error = ApiError::validation(&subject, name, errors);
        let details = error.0.details.get_or_insert_default();
        group.clone_into(&mut details.group);
        details.kind.clone_from(&kind.kind);
        error
    }

    /// Returns the 422 error for an object with invalid fields.
    ///
    /// The error names `group` and `kind`, which can differ from the group and the kind of the resource.
    pub(crate) fn invalid_kind(
        group: &str,
        kind: &str,
        name: &str,
        errors: &[FieldError],
    ) -> ApiError {
        let dot = if group.is_empty() { "" } else { "." };
        let mut error = ApiError::validation(&format!("{kind}{dot}{group}"), name, errors);
        let details = error.0.details.get_or_insert_default();
        group.clone_into(&mut details.group);
        kind.clone_into(&mut details.kind);
        error
    }

    pub(crate) fn invalid_scale(name: &str, errors: &[FieldError]) -> ApiError {
        ApiError::invalid_kind("autoscaling", "Scale", name, errors)
    }

    /// Returns the 422 error for an object with invalid fields.
    ///
    /// The error names the resource, such as `pods`, instead of the kind, as some validation errors of
    /// Kubernetes do.
    pub(crate) fn invalid_resource(kind: &Kind, name: &str, errors: &[FieldError]) -> ApiError {
        let mut error = ApiError::validation(&kind.group_resource(), name, errors);
        let details = error.0.details.get_or_insert_default();
        details.group.clone_from(&kind.group);
        details.kind.clone_from(&kind.plural);
        error
    }

    /// Returns the 422 error for invalid options of a request, from its query parameters or its body.
    ///
    /// `options` is the name of Kubernetes' type for these options, such as `ListOptions`.
    pub(crate) fn invalid_options(options: &str, errors: &[FieldError]) -> ApiError {
        let subject = format!("{options}.meta.k8s.io");
        let mut error = ApiError::validation(&subject, "", errors);
        let details = error.0.details.get_or_insert_default();
        "meta.k8s.io".clone_into(&mut details.group);
        options.clone_into(&mut details.kind);
        error
    }

    fn validation(subject: &str, name: &str, errors: &[FieldError]) -> ApiError {
        // The causes contain an error as often as it was found, but the message only once.
        let list = FieldError::list(errors);
        let message = format!("{subject} {} is invalid: {list}", Quoted(name));
        let mut error = ApiError::new(422, "Invalid", message);
        error.0.details = Some(StatusDetails {
            name: name.to_owned(),
            causes: errors
                .iter()
                .map(|error| StatusCause {
                    reason: error.reason.to_owned(),
                    message: error.body.clone(),
                    field: error.field.clone().into_owned(),
                })
                .collect(),
            ..StatusDetails::default()
        });
        error
    }

    pub(crate) fn too_many_requests() -> ApiError {
        let message = "Too many requests, please try again later.";
        ApiError::new(429, "TooManyRequests", message)
    }

    /// Returns a 500 error with a message and an empty reason.
    pub(crate) fn unexplained(message: &str) -> ApiError {
        ApiError::new(500, "", message)
    }

    /// Returns the 504 error for a requested revision above the server's current revision.
    pub(crate) fn revision_too_large(requested: u64, current: u64) -> ApiError {
        let message =
            format!("Timeout: Too large resource version: {requested}, current: {current}");
        let mut error = ApiError::new(504, "Timeout", message);
        let details = error.0.details.get_or_insert_default();
        details.causes = vec![StatusCause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        }];
        error
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde's skip_serializing_if calls"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
