//! Negotiates the format of objects and lists in a response, and writes them in this format.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::Call;
use super::list::{self, Page};
use crate::body::Body;
use crate::negotiate::{Content, Encoding, Format, Forms, Representation, Selected, negotiate};
use crate::reply::{Reply, too_long};
use crate::route::{Target, Verb};
use crate::status::ApiError;
use crate::storage::Entry;
use crate::yaml::{self, TooLong};

impl Call {
    /// Returns the alternative of the `Accept` header that the server selects for this request.
    ///
    /// # Errors
    ///
    /// Returns a 406 error if the client accepts no supported alternative.
    pub(super) fn selected(&self, target: &Target) -> Result<Selected, ApiError> {
        let forms = Forms {
            streams: matches!(self.verb, Verb::List | Verb::Watch),
            tables: matches!(
                target.subresource.as_deref(),
                None | Some("status" | "scale")
            ),
        };
        negotiate(&self.headers, forms, &target.resource.kind)
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
        Reply::document(code, document, self.selected(target)?.encoding)
    }

    /// Returns one object in the requested format, or as JSON if the object can't be encoded as protobuf.
    ///
    /// # Errors
    ///
    /// Returns a 406 or 400 error as [`Call::format`] does, and a 500 error if the object is too long in YAML.
    pub(super) fn show(
        &self,
        target: &Target,
        code: StatusCode,
        entry: &Arc<Entry>,
    ) -> Result<Reply, ApiError> {
        let format = self.format(target, Content::Object)?;
        let stored = entry;
        let view = stored.viewed(&target.resource).map(Arc::new);
        let entry = view.as_ref().unwrap_or(stored);
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
            Representation::Metadata => entry.write_metadata(&target.resource, &mut bytes),
            Representation::Table(_) => {
                let page = Page::of_one(stored);
                let mut reply = self.show_text_page(target, format, page)?;
                reply.code = code;
                return Ok(reply);
            }
        }
        if format.encoding == Encoding::Yaml {
            let value = serde_json::from_slice(&bytes).expect("an object is JSON");
            let text = yaml::to_text(&value).map_err(|TooLong| too_long())?;
            return Ok(Reply::yaml(code, Body::full(text), Some(entry.revision)));
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
            let (resource, representation) = (&target.resource, format.representation);
            let body =
                list::write_protobuf(budget, &schema, resource, &page, representation).await?;
            if let Some(body) = body {
                return Ok(Reply::protobuf(StatusCode::OK, body, Some(page.revision)));
            }
        }
        self.show_text_page(target, format, page)
    }

    /// Returns a page of a list in YAML, or in JSON for any other encoding.
    fn show_text_page(
        &self,
        target: &Target,
        format: Format,
        page: Page,
    ) -> Result<Reply, ApiError> {
        let revision = page.revision;
        let clock = self.shared.settings.clock.clone();
        let budget = &self.shared.response_budget;
        let body = list::write(budget, &target.resource, page, format, clock)?;
        let reply = match format.encoding {
            Encoding::Yaml => Reply::yaml,
            Encoding::Json | Encoding::Protobuf => Reply::new,
        };
        Ok(reply(StatusCode::OK, body, Some(revision)))
    }
}
