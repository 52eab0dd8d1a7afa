//! Which representation of a result a client accepts.
//!
//! Guarantees: the first alternative of `Accept` that can be had is taken; if there is none, or it does not fit what is asked for, the answer is 406 and says why.

use http::{HeaderMap, header};

use crate::kinds::Kind;
use crate::route::{Query, Verb};
use crate::status::ApiError;

/// What every answer can be.
const ACCEPTED: &str = "application/json, application/json;stream=watch";

/// The only media type of objects.
const JSON: &str = "application/json";

/// What `as` says for the metadata of one object, and of a list of them.
const METADATA: &str = "PartialObjectMetadata";
const METADATA_LIST: &str = "PartialObjectMetadataList";

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

    fn representation(&self, include: IncludeObject) -> Option<Representation> {
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
            METADATA | METADATA_LIST if of_meta => Some(Representation::Metadata),
            _ => None,
        }
    }

    /// Refuses the metadata of one object where a list is answered, and the other way round.
    fn check_form(&self, verb: Verb, kind: &Kind) -> Result<(), ApiError> {
        let (package, name) = (kind.internal_package(), &kind.kind);
        let why = match self.parameter("as") {
            Some(METADATA) if verb == Verb::List => format!(
                "you requested {METADATA}, but the requested object is a list (*{package}.{name}List)"
            ),
            Some(METADATA_LIST) if verb != Verb::List => format!(
                "you requested {METADATA_LIST}, but the requested object is not a list (*{package}.{name})"
            ),
            _ => return Ok(()),
        };
        Err(ApiError::new(406, "NotAcceptable", why))
    }
}

/// The representation for a verb's result on objects of a kind.
pub(crate) fn negotiate(
    headers: &HeaderMap,
    query: &Query,
    verb: Verb,
    kind: &Kind,
) -> Result<Representation, ApiError> {
    let include = match query.text("includeObject") {
        Some("None") => IncludeObject::None,
        Some("Object") => IncludeObject::Object,
        _ => IncludeObject::Metadata,
    };
    let accept = accept(headers);
    let mut alternatives = accept.split(',').map(Alternative::parse);
    let taken = alternatives.find_map(|alternative| {
        let representation = alternative.representation(include)?;
        Some((alternative, representation))
    });
    let Some((alternative, representation)) = taken else {
        let mut alternatives = accept.split(',').map(Alternative::parse);
        // JSON there is, but not in that form.
        if alternatives.any(|alternative| alternative.is_json()) {
            let message = format!("only the following media types are accepted: {JSON}");
            return Err(ApiError::new(406, "NotAcceptable", message));
        }
        return Err(ApiError::not_acceptable(ACCEPTED));
    };
    alternative.check_form(verb, kind)?;
    Ok(representation)
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
