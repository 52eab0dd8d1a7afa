//! Content negotiation: selects the representation of a response from the `Accept` header.
//!
//! The `Accept` header is a comma-separated list of alternatives: media types with parameters.
//!
//! Guarantees:
//! - the first alternative that the server supports is selected;
//! - if the server supports no alternative, the response is a 406;
//! - if the selected alternative requests `PartialObjectMetadata` for a list, or `PartialObjectMetadataList`
//!   for any other request, the response is a 406.

use http::{HeaderMap, header};

use crate::kinds::Kind;
use crate::protobuf::{CONTENT_TYPE, Schema};
use crate::quote::Quoted;
use crate::route::{Query, Verb};
use crate::status::ApiError;

/// Media types that a 406 error lists for built-in kinds.
const ACCEPTED: &str = "application/json, application/json;stream=watch, application/vnd.kubernetes.protobuf, application/vnd.kubernetes.protobuf;stream=watch";

/// Media types that a 406 error lists for custom kinds and discovery documents.
const ACCEPTED_JSON: &str = "application/json, application/json;stream=watch";

/// Media type that a 406 error lists if the client accepts JSON, but only in an unsupported representation.
const JSON: &str = "application/json";

/// Value of the media type parameter `as` for the metadata of one object.
const METADATA: &str = "PartialObjectMetadata";
const METADATA_LIST: &str = "PartialObjectMetadataList";

/// The encoding and the representation of the objects in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub(crate) encoding: Encoding,
    pub(crate) representation: Representation,
}

/// Encoding of the objects in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Protobuf,
}

/// Form of the objects in a response: complete, only metadata, or a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Representation {
    Object,
    /// `PartialObjectMetadata` for one object, or `PartialObjectMetadataList` for a list.
    Metadata,
    Table(IncludeObject),
}

/// Query parameter `includeObject`: which part of the object each table row contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    None,
    Metadata,
    Object,
}

impl Format {
    /// Returns the protobuf schema of the objects, or `None` for a JSON response.
    pub(crate) fn schema(self, kind: &Kind) -> Option<Schema> {
        match (self.encoding, self.representation) {
            (Encoding::Protobuf, Representation::Object) => Schema::of_objects(kind),
            (Encoding::Protobuf, Representation::Metadata) => Schema::of_metadata(),
            (Encoding::Protobuf, Representation::Table(_)) | (Encoding::Json, _) => None,
        }
    }
}

/// An alternative of an `Accept` header: a media type and its parameters.
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

    /// Returns the format that the alternative requests, or `None` if it is not supported for `kind`.
    fn format(&self, include: IncludeObject, kind: &Kind) -> Option<Format> {
        let encoding = match self.media_type {
            CONTENT_TYPE => Encoding::Protobuf,
            _ if self.is_json() => Encoding::Json,
            _ => return None,
        };
        let representation = self.representation(include)?;
        let is_supported = match (encoding, representation) {
            // The metadata of every kind have the same message.
            (Encoding::Json, _) | (Encoding::Protobuf, Representation::Metadata) => true,
            (Encoding::Protobuf, Representation::Object) => Schema::of_objects(kind).is_some(),
            (Encoding::Protobuf, Representation::Table(_)) => false,
        };
        is_supported.then_some(Format {
            encoding,
            representation,
        })
    }

    fn representation(&self, include: IncludeObject) -> Option<Representation> {
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

    /// Checks that the parameter `as` does not contradict the verb.
    ///
    /// # Errors
    ///
    /// Returns a 406 error for `PartialObjectMetadata` if the verb is `List`, and for
    /// `PartialObjectMetadataList` if the verb is not `List`.
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

/// Returns the response format that the `Accept` header selects for this verb and kind.
///
/// # Errors
///
/// Returns a 406 error if the server supports no media type in the header, or if the parameter `as` of the
/// selected media type contradicts the verb (for example, `PartialObjectMetadata` for a list). Returns a 400
/// error if a table is selected and the parameter `includeObject` is invalid.
pub(crate) fn negotiate(
    headers: &HeaderMap,
    query: &Query,
    verb: Verb,
    kind: &Kind,
) -> Result<Format, ApiError> {
    let requested = query.text("includeObject");
    let include = match requested {
        Some("None") => IncludeObject::None,
        Some("Object") => IncludeObject::Object,
        _ => IncludeObject::Metadata,
    };
    let accept = accept(headers);
    let mut alternatives = accept.split(',').map(Alternative::parse);
    let taken = alternatives.find_map(|alternative| {
        let format = alternative.format(include, kind)?;
        Some((alternative, format))
    });
    let Some((alternative, format)) = taken else {
        let mut alternatives = accept.split(',').map(Alternative::parse);
        // JSON is available, but not in the requested form.
        if alternatives.any(|alternative| alternative.is_json()) {
            let message = format!("only the following media types are accepted: {JSON}");
            return Err(ApiError::new(406, "NotAcceptable", message));
        }
        return Err(ApiError::not_acceptable(match Schema::of_objects(kind) {
            Some(_) => ACCEPTED,
            None => ACCEPTED_JSON,
        }));
    };
    if let (Representation::Table(IncludeObject::Metadata), Some(other)) =
        (format.representation, requested)
        && other != "Metadata"
    {
        let message = format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', 'Object', 'None', or empty",
            Quoted(other)
        );
        return Err(ApiError::bad_request(message));
    }
    alternative.check_form(verb, kind)?;
    Ok(format)
}

/// Returns the encoding of error responses: that of the first supported media type in the `Accept` header.
///
/// Returns JSON if the header contains no supported media type. Protobuf is not supported for a custom kind.
pub(crate) fn errors_in(headers: &HeaderMap, kind: &Kind) -> Encoding {
    let accept = accept(headers);
    let mut alternatives = accept.split(',').map(Alternative::parse);
    alternatives
        .find_map(|alternative| match alternative.media_type {
            CONTENT_TYPE if !kind.custom => Some(Encoding::Protobuf),
            _ if alternative.is_json() => Some(Encoding::Json),
            _ => None,
        })
        .unwrap_or(Encoding::Json)
}

/// Returns whether the client prefers aggregated discovery documents to plain ones.
///
/// # Errors
///
/// Returns a 406 error if the client accepts neither.
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
        .ok_or_else(|| ApiError::not_acceptable(ACCEPTED_JSON))
}

/// Returns the media type of a request body, in lower case and without parameters.
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

/// Returns the values of all `Accept` headers, joined by commas.
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
