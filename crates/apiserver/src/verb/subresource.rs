//! Finds the handler of a request to a subresource, such as `status`.
//!
//! Guarantees: a subresource that is one part of an object, such as `status`, is read, replaced, patched and
//! applied like the object itself, and never creates one.

use http::StatusCode;

use super::apply::Applied;
use super::{Call, scale};
use crate::kinds::Subresource;
use crate::reply::Reply;
use crate::route::{Target, Verb};
use crate::status::ApiError;
use crate::strategy::Part;

impl Call {
    pub(super) fn answer_subresource(
        &self,
        target: &Target,
        name: &str,
    ) -> Result<Reply, ApiError> {
        let kind = &target.resource.kind;
        let served = kind.subresources.iter().find(|sub| sub.name == name);
        let served = served.ok_or_else(|| match &target.name {
            Some(object) if kind.custom => ApiError::not_found(kind, object),
            _ => ApiError::no_such_path(),
        })?;
        let verb = self.verb.as_str();
        if !served.verbs.iter().any(|known| known == verb) {
            return Err(ApiError::method_not_allowed());
        }
        self.selected(target)?;
        target.check_name(self.verb)?;
        if let Some(part) = Part::of_subresource(kind, name) {
            return self.answer_part(target, part);
        }
        match (name, self.verb) {
            ("binding", Verb::Create) => {
                let sent = self.sent_to(served)?;
                self.bind(target, Self::subject(target)?, &sent)
            }
            ("log", Verb::Get) => self.read_log(target),
            ("eviction", Verb::Create) => self.evict(target, served),
            ("token", Verb::Create) if kind.is_builtin("serviceaccounts") => {
                self.request_token(target, served)
            }
            ("scale", Verb::Get | Verb::Update | Verb::Patch) => self.scale(target, served),
            _ => {
                Self::subject(target)?.read(&self.shared)?;
                let message = format!(
                    "the subresource {name} of {} is not served by this server",
                    kind.group_resource()
                );
                Err(ApiError::new(501, "NotImplemented", message))
            }
        }
    }

    /// Reads or writes one part of an object, such as its `status`.
    fn answer_part(&self, target: &Target, part: Part) -> Result<Reply, ApiError> {
        let entry = match self.verb {
            Verb::Update => self.update(target, part)?,
            Verb::Patch => self.patch(target, part)?.0,
            _ => Self::subject(target)?.read(&self.shared)?.0,
        };
        self.show(target, StatusCode::OK, &entry)
    }

    fn scale(&self, target: &Target, served: &Subresource) -> Result<Reply, ApiError> {
        let subject = Self::subject(target)?;
        let scale = match self.verb {
            Verb::Get => scale::read(&self.shared, subject)?,
            Verb::Patch if self.is_apply() => {
                let how = self.how(Part::Main)?;
                let applied = Applied::parse(&self.body)?;
                let apply = (&applied, self.apply_options());
                scale::apply(&self.shared, subject, apply, how)?
            }
            Verb::Patch => {
                let body = self.patch_body(&target.resource.kind)?;
                scale::patch(&self.shared, subject, &body, self.how(Part::Main)?)?
            }
            _ => {
                let how = self.how(Part::Main)?;
                scale::update(&self.shared, subject, &self.sent_to(served)?, how)?
            }
        };
        let mut reply = self.show_document(target, StatusCode::OK, &scale)?;
        let revision = scale["metadata"]["resourceVersion"].as_str();
        reply.revision = revision.and_then(|revision| revision.parse().ok());
        Ok(reply)
    }
}
