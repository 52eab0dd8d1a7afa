//! Which representation of a result a client accepts.
//!
//! Guarantees: the first alternative of `Accept` that can be had is taken; if there is none, the answer is 406 and says what there is.

use http::{HeaderMap, header};

use crate::route::{Query, Verb};
use crate::status::ApiError;

/// What every answer can be.
const ACCEPTED: &str = "application/json, application/json;stream=watch";

/// How objects are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Representation {
    Object,
    /// `PartialObjectMetadata`, or a list of them.
    Metadata,
    Table(IncludeObject),
}

/// What a table's rows carry besides their cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    None,
    Metadata,
    Object,
}

/// One comma-separated part of an `Accept` header.
struct Alternative<'a> {
    media_type: &'a str,
    parameters: &'a str,
}

impl Alternative<'_> {
    fn parse(text: &str) -> Alternative<'_> {
        let (media_type, parameters) = text.split_once(';').unwrap_or((text, ""));
        Alternative {
            media_type: media_type.trim(),
            parameters,
        }
    }

    fn is_json(&self) -> bool {
        matches!(
            self.media_type,
            "application/json" | "application/*" | "*/*" | ""
        )
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters
            .split(';')
            .filter_map(|pair| pair.split_once('='))
            .find(|(known, _)| known.trim() == name)
            .map(|(_, value)| value.trim())
    }

    fn representation(&self, verb: Verb, include: IncludeObject) -> Option<Representation> {
        if !self.is_json() {
            return None;
        }
        let Some(transform) = self.parameter("as") else {
            return Some(Representation::Object);
        };
        let of_meta =
            self.parameter("g") == Some("meta.k8s.io") && self.parameter("v") == Some("v1");
        match transform {
            "Table" if of_meta => Some(Representation::Table(include)),
            "PartialObjectMetadata" if of_meta && verb != Verb::List => {
                Some(Representation::Metadata)
            }
            "PartialObjectMetadataList" if of_meta && verb == Verb::List => {
                Some(Representation::Metadata)
            }
            _ => None,
        }
    }
}

/// The representation for a verb's result.
pub(crate) fn negotiate(
    headers: &HeaderMap,
    query: &Query,
    verb: Verb,
) -> Result<Representation, ApiError> {
    let include = match query.text("includeObject") {
        Some("None") => IncludeObject::None,
        Some("Object") => IncludeObject::Object,
        _ => IncludeObject::Metadata,
    };
    let accept = accept(headers);
    accept
        .split(',')
        .find_map(|text| Alternative::parse(text).representation(verb, include))
        .ok_or_else(|| ApiError::not_acceptable(ACCEPTED))
}

/// Whether discovery may answer in its aggregated form before the plain one.
pub(crate) fn wants_aggregated_discovery(headers: &HeaderMap) -> Result<bool, ApiError> {
    accept(headers)
        .split(',')
        .map(Alternative::parse)
        .find_map(|alternative| match alternative.parameter("as") {
            _ if !alternative.is_json() => None,
            None => Some(false),
            Some("APIGroupDiscoveryList") => {
                let v2 = alternative.parameter("g") == Some("apidiscovery.k8s.io")
                    && alternative.parameter("v") == Some("v2");
                v2.then_some(true)
            }
            Some(_) => None,
        })
        .ok_or_else(|| ApiError::not_acceptable(ACCEPTED))
}

/// The media type of a request's body, in lower case and without parameters.
pub(crate) fn content_type(headers: &HeaderMap) -> String {
    let value = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let media_type = value
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    media_type.trim().to_ascii_lowercase()
}

/// All `Accept` headers as one; absent, anything is accepted.
fn accept(headers: &HeaderMap) -> String {
    let values: Vec<&str> = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    values.join(",")
}

#[cfg(test)]
mod tests;
