//! Parses the body of a request.
//!
//! Guarantees: unknown and duplicate fields of an object are rejected, reported as warnings or ignored,
//! depending on the query parameter `fieldValidation`.

use http::header::USER_AGENT;
use serde_json::Value;

use super::Call;
use super::apply::Apply;
use super::delete_object::DeleteOptions;
use super::patch::{ACCEPTED_CUSTOM, PatchBody};
use super::write::Subject;
use crate::apply::Force;
use crate::decode_error::DecodeError;
use crate::field_validation::{Complaints, Directive};
use crate::kinds::{Kind, Subresource};
use crate::metadata::merge_owners;
use crate::negotiate::content_type;
use crate::object::{Object, untyped};
use crate::protobuf::Expected;
use crate::quote::Quoted;
use crate::request_body::{self, Unreadable};
use crate::resource::Resource;
use crate::status::{ApiError, FieldError};
use crate::strategy::GarbageCollectionPolicy;
use crate::typed::{Decoded, ValueType};

/// The warning of Kubernetes about a deleted job whose dependents are orphaned by default.
const ORPHANED_PODS: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

impl Call {
    pub(super) fn directive(&self) -> Directive {
        Directive::of(self.query.text("fieldValidation"))
    }

    /// Parses the request's body as an object of `resource`, and removes duplicate owner references.
    pub(super) fn sent(&self, resource: &Resource) -> Result<Object, ApiError> {
        let kind = &resource.kind;
        let (value_type, protobuf) = (resource.value_type(), request_body::of_kind(kind));
        let Decoded {
            value,
            mut complaints,
            fault,
        } = self.read(value_type, protobuf, &kind.kind)?;
        if kind.custom && value.is_object() {
            self.check_type(kind, &value)?;
        }
        let object = Object::of(kind, value, fault.map(|fault| fault.message));
        let mut object = object.map_err(|error| error.of_body(&self.body))?;
        complaints.add_unknown(&resource.decode(&mut object)?);
        self.judge(&complaints, (&kind.version, &kind.kind))?;
        merge_owners(&mut object, "", &self.warnings);
        Ok(object)
    }

    /// Parses the request's body as the new state of an object.
    pub(super) fn sent_update(&self, subject: Subject<'_>) -> Result<Object, ApiError> {
        let sent = self.sent(subject.resource);
        if matches!(&sent, Err(error) if error.code() == 422) {
            // In Kubernetes, the kind of a custom object is validated like its values.
            subject.newest(&self.shared)?;
        }
        sent
    }

    /// Checks the `apiVersion` and `kind` in the body of a request for a custom kind.
    ///
    /// A custom kind requires both. A built-in kind requires neither.
    fn check_type(&self, kind: &Kind, value: &Value) -> Result<(), ApiError> {
        let text = |member: &str| value[member].as_str().unwrap_or_default();
        let (sent, api_version) = (text("kind"), text("apiVersion"));
        if sent.is_empty() {
            let body = String::from_utf8_lossy(&self.body);
            let expected = kind.kind.clone();
            let why = format!("Object 'Kind' is missing in '{body}'");
            return Err(DecodeError::Unrecognized { expected, why }.of_body(&self.body));
        }
        let expected = kind.api_version();
        if api_version != expected {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({expected})"
            )));
        }
        if sent != kind.kind {
            let why = format!("must be {}", kind.kind);
            let error = FieldError::invalid("kind", Quoted(sent).to_string(), &why);
            let name = value["metadata"]["name"].as_str().unwrap_or_default();
            return Err(ApiError::invalid_kind(&kind.group, sent, name, &[error]));
        }
        Ok(())
    }

    /// Parses the body as an object of the subresource's own kind, such as `Scale`.
    pub(super) fn sent_to(&self, subresource: &Subresource) -> Result<Value, ApiError> {
        let expected = request_body::of_subresource(subresource);
        let value_type = ValueType::named(&expected.api_version(), expected.kind);
        let decoded = self.read(value_type, Some(expected), expected.kind)?;
        let fault = decoded.fault.map(|fault| fault.message);
        let object = Object::of(&subresource.expected_kind(), decoded.value, fault);
        let object = object.map_err(|error| error.of_body(&self.body))?;
        self.judge(&decoded.complaints, (expected.version, expected.kind))?;
        Ok(object.into_value())
    }

    fn read(
        &self,
        value_type: ValueType,
        protobuf: Option<Expected<'_>>,
        kind: &str,
    ) -> Result<Decoded, ApiError> {
        let read = request_body::read(&self.headers, &self.body, value_type, protobuf);
        read.map_err(|error| match error {
            Unreadable::Syntax(why) => {
                let expected = kind.to_owned();
                DecodeError::Unrecognized { expected, why }.of_body(&self.body)
            }
            Unreadable::Other(error) => error,
        })
    }

    /// Ignores complaints, sends them as warnings, or returns them as an error, as `fieldValidation` selects.
    fn judge(
        &self,
        complaints: &Complaints,
        (version, kind): (&str, &str),
    ) -> Result<(), ApiError> {
        let judged = self.directive().judge(complaints, &self.warnings);
        judged.map_err(|error| unfit((version, kind), error.to_string()))
    }

    /// Returns whether the body is a configuration to apply.
    pub(super) fn is_apply(&self) -> bool {
        content_type(&self.headers) == "application/apply-patch+yaml"
    }

    pub(super) fn apply_options(&self) -> Apply<'_> {
        Apply {
            manager: self.manager(),
            force: if self.query.flag("force") == Some(true) {
                Force::Yes
            } else {
                Force::No
            },
            directive: self.directive(),
            warnings: &self.warnings,
        }
    }

    /// Returns the name under which the client owns fields: the query parameter `fieldManager`, or the start of its
    /// `User-Agent`.
    pub(super) fn manager(&self) -> &str {
        let agent = self.headers.get(USER_AGENT);
        let agent = agent.and_then(|agent| std::str::from_utf8(agent.as_bytes()).ok());
        self.query.manager(agent.unwrap_or_default())
    }

    /// Parses a patch of an object of a kind, which can be a custom kind.
    pub(super) fn patch_body(&self, kind: &Kind) -> Result<PatchBody, ApiError> {
        let media_type = content_type(&self.headers);
        if kind.custom && media_type == "application/strategic-merge-patch+json" {
            return Err(ApiError::unsupported_body(ACCEPTED_CUSTOM));
        }
        PatchBody::parse(&media_type, &self.body, self.directive())
    }

    pub(super) fn delete_options(&self) -> Result<DeleteOptions, ApiError> {
        if self.body.is_empty() {
            self.query.number("gracePeriodSeconds")?;
            return DeleteOptions::parse(&self.query.as_options());
        }
        let options = Some(Expected::DELETE_OPTIONS);
        let read = request_body::read(&self.headers, &self.body, ValueType::Anything, options);
        let Decoded { value, .. } = read.map_err(|error| match error {
            Unreadable::Syntax(why) => ApiError::bad_request(why),
            Unreadable::Other(error) => error,
        })?;
        if !value.is_object() && !value.is_null() {
            return Err(ApiError::bad_request(untyped(&value)));
        }
        DeleteOptions::parse(&value)
    }

    /// Warns that the pods of a deleted job are kept, unless the request selects a propagation policy.
    pub(super) fn warn_of_orphans(&self, resource: &Resource, options: &DeleteOptions) {
        let orphans = self.shared.garbage_policy(resource);
        if orphans == GarbageCollectionPolicy::OrphanDependents
            && resource.kind.kind == "Job"
            && !options.has_policy()
        {
            self.warnings.add(ORPHANED_PODS.to_owned());
        }
    }
}

/// Returns the error about a body whose kind and version are the expected ones.
fn unfit((version, kind): (&str, &str), why: String) -> ApiError {
    let error = DecodeError::Unfit {
        kind: kind.to_owned(),
        version: version.to_owned(),
        expected: kind.to_owned(),
        why,
    };
    error.into()
}
