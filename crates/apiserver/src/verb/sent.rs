//! The body of a request, as what the request needs.
//!
//! Guarantees: what is wrong with the fields of an object is refused, warned of or passed over, as `fieldValidation` says.

use serde_json::Value;

use super::Call;
use super::delete::DeleteOptions;
use crate::field_validation::{Directive, Known};
use crate::kinds::Kind;
use crate::protobuf::Expected;
use crate::request_body;
use crate::status::ApiError;

impl Call {
    /// What becomes of fields that a kind does not have.
    pub(super) fn directive(&self) -> Directive {
        Directive::of(self.query.text("fieldValidation"))
    }

    /// The body as an object of a kind.
    pub(super) fn sent(&self, kind: &Kind) -> Result<Value, ApiError> {
        let (known, protobuf) = (Known::of(kind), request_body::of_kind(kind));
        self.read(known, protobuf, (&kind.api_version(), &kind.kind))
    }

    /// The body as what a subresource takes.
    pub(super) fn sent_to(&self, kind: &Kind, subresource: &str) -> Result<Value, ApiError> {
        let Some(expected) = request_body::of_subresource(kind, subresource) else {
            return self.sent(kind);
        };
        let api_version = expected.api_version();
        let known = Known::named(&api_version, expected.kind);
        self.read(known, Some(expected), (&api_version, expected.kind))
    }

    fn read(
        &self,
        known: Known,
        protobuf: Option<Expected<'_>>,
        (api_version, kind): (&str, &str),
    ) -> Result<Value, ApiError> {
        let (value, complaints) = request_body::read(&self.headers, &self.body, known, protobuf)?;
        let judged = self.directive().judge(complaints, &self.warnings);
        judged.map_err(|error| {
            ApiError::bad_request(format!(
                "{kind} in version {api_version:?} cannot be handled as a {kind}: {error}"
            ))
        })?;
        Ok(value)
    }

    pub(super) fn delete_options(&self) -> Result<DeleteOptions, ApiError> {
        if self.body.is_empty() {
            self.query.number("gracePeriodSeconds")?;
            return DeleteOptions::parse(&self.query.as_options());
        }
        let options = Some(Expected::DELETE_OPTIONS);
        let (value, _) = request_body::read(&self.headers, &self.body, Known::Anything, options)?;
        DeleteOptions::parse(&value)
    }
}
