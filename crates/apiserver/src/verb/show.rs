//! Negotiates the format of objects and lists in a response, and writes them in this format.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::Call;
use super::list::{self, Page};
use crate::body::Body;
use crate::negotiate::{Content, Format, Representation, Selected, negotiate};
use crate::reply::Reply;
use crate::route::{Target, Verb};
use crate::status::ApiError;
use crate::storage::Entry;

impl Call {
    /// Returns the alternative of the `Accept` header that the server selects for this request.
    ///
    /// # Errors
    ///
    /// Returns a 406 error if the client accepts no supported alternative.
    pub(super) fn selected(&self, target: &Target) -> Result<Selected, ApiError> {
        let streams = matches!(self.verb, Verb::List | Verb::Watch);
        negotiate(&self.headers, streams, &target.resource.kind)
    }

    /// Returns the format of a response with this content.
    ///
    /// As in Kubernetes, the format is checked after a write is stored, and after the objects of a list are
    /// read.
    ///
    /// # Errors
    ///
    /// Returns a 406 error if the selected alternative of the `Accept` header does not fit the content.
    /// Returns a 400 error if the options of a table are invalid.
    pub(super) fn format(&self, target: &Target, content: Content) -> Result<Format, ApiError> {
        let kind = &target.resource.kind;
        self.selected(target)?.format(&self.query, content, kind)
    }

    /// Returns a response with a document that is not an object of the target's kind, such as a `Status`.
    pub(super) fn show_document(
        &self,
        target: &Target,
        code: StatusCode,
        document: &Value,
    ) -> Result<Reply, ApiError> {
        Ok(Reply::document(
            code,
            document,
            self.selected(target)?.encoding,
        ))
    }

    /// Returns one object in the requested format, or as JSON if the object can't be encoded as protobuf.
    pub(super) fn show(
        &self,
        target: &Target,
        code: StatusCode,
        entry: &Arc<Entry>,
    ) -> Result<Reply, ApiError> {
        let format = self.format(target, Content::Object)?;
        let view = entry.viewed(&target.resource).map(Arc::new);
        let entry = view.as_ref().unwrap_or(entry);
        let mut bytes = Vec::new();
        if let Some(schema) = format.schema(&target.resource.kind) {
            match format.representation {
                Representation::Metadata => entry.write_metadata_item(&mut bytes),
                _ => entry.write_item(&mut bytes),
            }
            if let Some(object) = schema.object(&bytes) {
                let body = Body::full(object);
                return Ok(Reply::protobuf(code, body, Some(entry.revision)));
            }
            bytes.clear();
        }
        match format.representation {
            Representation::Object => entry.write_object(&target.resource, &mut bytes),
            Representation::Metadata => entry.write_metadata(&mut bytes),
            Representation::Table(_) => {
                let page = Page::of_one(entry);
                let mut reply = self.show_json_page(target, format.representation, page)?;
                reply.code = code;
                return Ok(reply);
            }
        }
        bytes.push(b'\n');
        Ok(Reply::new(code, Body::full(bytes), Some(entry.revision)))
    }

    /// Returns a page of a list in the format `format`, or in JSON if an object can't be encoded as protobuf.
    pub(super) async fn show_page(
        &self,
        target: &Target,
        format: Format,
        page: Page,
    ) -> Result<Reply, ApiError> {
        if let Some(schema) = format.schema(&target.resource.kind) {
            let budget = &self.shared.response_budget;
            let body = list::write_protobuf(budget, &schema, &page, format.representation).await?;
            if let Some(body) = body {
                return Ok(Reply::protobuf(StatusCode::OK, body, Some(page.revision)));
            }
        }
        self.show_json_page(target, format.representation, page)
    }

    fn show_json_page(
        &self,
        target: &Target,
        representation: Representation,
        page: Page,
    ) -> Result<Reply, ApiError> {
        let revision = page.revision;
        let clock = self.shared.settings.clock.clone();
        let budget = &self.shared.response_budget;
        let body = list::write(budget, &target.resource, page, representation, clock)?;
        Ok(Reply::new(StatusCode::OK, body, Some(revision)))
    }
}
