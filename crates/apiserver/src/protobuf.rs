//! Converts protobuf bodies of requests to JSON, and encodes responses as protobuf.
//!
//! Go clients and `kubectl` send built-in kinds as protobuf by default.
//! This module converts the bytes to the JSON that Go would write for the same object, so the store and the
//! verbs handle only JSON.
//!
//! Guarantees:
//! - any input results in an object or in an error with Kubernetes' wording;
//! - the memory and the nesting depth are limited.

mod encode;

pub(crate) use encode::{
    CONTENT_TYPE, ListMeta, Schema, WATCH_CONTENT_TYPE, document, event, item_head, status,
};

use std::borrow::Cow;
use std::fmt;

use kube_informer_protobuf::{Envelope, MessageId, Messages, Missing, Options, decode_with};
use serde::Deserialize as _;
use serde_json::Value;

use crate::decode_error::summary;
use crate::object::DEPTH_MAX;
use crate::status::ApiError;

/// Limits for decoding one request body.
///
/// With these limits, every object decoded from protobuf needs less memory than the largest object that can
/// be decoded from JSON.
const OPTIONS: Options = Options {
    depth: DEPTH_MAX,
    containers: 500_000,
    values: 500_000,
    missing: Missing::Zero,
};

/// The group, version and kind of the object that an endpoint accepts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
}

/// Decodes the object in a protobuf body to JSON with `apiVersion` and `kind`.
///
/// If `apiVersion` or `kind` is empty in the body, the JSON contains the value from `expected` instead.
pub(crate) fn decode(body: &[u8], expected: Expected<'_>) -> Result<Value, ApiError> {
    let mut envelope = open(body).map_err(|why| expected.unrecognized(&why, body))?;
    if envelope.kind.is_empty() {
        envelope.kind = expected.kind.into();
    }
    if envelope.api_version.is_empty() {
        envelope.api_version = expected.api_version().into();
    }
    let message = expected.message(&envelope)?;
    let type_meta = (&*envelope.api_version, &*envelope.kind);
    let decoded = decode_with(message, Some(type_meta), envelope.raw, OPTIONS, |message| {
        Value::deserialize(message)
    });
    decoded.map_err(|why| expected.unfit(&envelope, why))
}

/// Checks the magic number of a protobuf body, and returns the envelope.
fn open(body: &[u8]) -> Result<Envelope<'_>, Cow<'static, str>> {
    if body.is_empty() {
        return Err("empty data".into());
    }
    let bytes = body.strip_prefix(&Envelope::MAGIC).ok_or_else(|| {
        format!(
            "provided data does not appear to be a protobuf message, expected prefix [{}]",
            Envelope::MAGIC.map(|byte| byte.to_string()).join(" ")
        )
    })?;
    if bytes.is_empty() {
        return Err("empty body".into());
    }
    Envelope::read(bytes).map_err(|error| error.to_string().into())
}

fn group_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

// === impl Expected ===

impl Expected<'_> {
    /// `DeleteOptions`, the body of a delete request, with any `apiVersion`.
    pub(crate) const DELETE_OPTIONS: Expected<'static> = Expected {
        group: "meta.k8s.io",
        version: "v1",
        kind: "DeleteOptions",
    };

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    fn is_delete_options(&self) -> bool {
        self.kind == Expected::DELETE_OPTIONS.kind
    }

    /// Returns the message type of the object in the envelope.
    ///
    /// # Errors
    ///
    /// Returns an error if the object is not of the expected kind and version.
    fn message(&self, sent: &Envelope<'_>) -> Result<MessageId, ApiError> {
        let messages = Messages::v1_36();
        if self.is_delete_options() && sent.kind == self.kind {
            return Ok(messages.delete_options());
        }
        let found = messages
            .of_kind(&sent.api_version, &sent.kind)
            .filter(|_| !self.is_delete_options());
        let message = found.ok_or_else(|| {
            let Envelope { api_version, kind, .. } = sent;
            let why = format!("no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\"");
            self.unfit(sent, why)
        })?;
        let (group, version) = group_version(&sent.api_version);
        if sent.kind != self.kind {
            let target = self
                .group
                .split('.')
                .next()
                .filter(|first| !first.is_empty());
            let why = format!(
                "converting ({version}.{}) to ({}.{}): unknown conversion",
                sent.kind,
                target.unwrap_or("core"),
                self.kind
            );
            return Err(self.unfit(sent, why));
        }
        if (group, version) != (self.group, self.version) {
            return Err(ApiError::bad_request(format!(
                "the API version in the data ({}) does not match the expected API version ({})",
                sent.api_version,
                self.api_version()
            )));
        }
        Ok(message)
    }

    /// Returns the error for a body that is not protobuf.
    fn unrecognized(&self, why: &str, body: &[u8]) -> ApiError {
        if self.is_delete_options() {
            return ApiError::bad_request(why.to_string());
        }
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {why} ({})",
            self.kind,
            summary(body)
        ))
    }

    /// Returns the error for a request body whose object is malformed or has an unexpected kind.
    fn unfit(&self, sent: &Envelope<'_>, why: impl fmt::Display) -> ApiError {
        if self.is_delete_options() {
            return ApiError::bad_request(why.to_string());
        }
        let (_, version) = group_version(&sent.api_version);
        ApiError::bad_request(format!(
            "{} in version {version:?} cannot be handled as a {}: {why}",
            sent.kind, self.kind
        ))
    }
}

#[cfg(test)]
mod tests;
