//! Parses the body of a request.
//!
//! Guarantees: unknown and duplicate fields of an object are rejected, reported as warnings or ignored,
//! depending on the query parameter `fieldValidation`.

use serde_json::Value;

use super::Call;
use super::delete_object::DeleteOptions;
use super::patch::PatchBody;
use crate::field_validation::{Directive, Known};
use crate::kinds::Subresource;
use crate::negotiate::content_type;
use crate::protobuf::Expected;
use crate::request_body;
use crate::resource::Resource;
use crate::status::ApiError;

impl Call {
    /// Returns the value of the query parameter `fieldValidation`.
    pub(super) fn directive(&self) -> Directive {
        Directive::of(self.query.text("fieldValidation"))
    }

    /// Parses the request's body as an object of `resource`.
    pub(super) fn sent(&self, resource: &Resource) -> Result<Value, ApiError> {
        let kind = &resource.kind;
        let (known, protobuf) = (resource.known(), request_body::of_kind(kind));
        self.read(known, protobuf, (&kind.api_version(), &kind.kind))
    }

    /// Parses the body as an object of the subresource's own kind, such as `Scale`.
    pub(super) fn sent_to(&self, subresource: &Subresource) -> Result<Value, ApiError> {
        let expected = request_body::of_subresource(subresource);
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

    /// Parses the body of a PATCH request.
    pub(super) fn patch_body(&self) -> Result<PatchBody, ApiError> {
        let media_type = content_type(&self.headers);
        PatchBody::parse(&media_type, &self.body, self.directive())
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
