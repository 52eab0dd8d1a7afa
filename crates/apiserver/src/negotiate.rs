//! Content negotiation: selects the representation of a response from the `Accept` header.
//!
//! The header is a comma-separated list of alternatives: media types with parameters.
//!
//! Guarantees:
//! - as in kube-apiserver, the alternative with the highest quality that the server supports is selected, and
//!   only the first `Accept` header counts;
//! - if the server supports no alternative, the response is a 406;
//! - if the selected alternative requests `PartialObjectMetadata` for a list, or `PartialObjectMetadataList`
//!   for one object, the response is a 406. A write is stored nevertheless.

mod accept;

use http::{HeaderMap, header};

use crate::kinds::Kind;
use crate::protobuf::Schema;
use crate::quote::Quoted;
use crate::route::Query;
use crate::status::ApiError;
use crate::yaml;

use accept::{Clause, accept, clauses, is_produced};

/// Media types in which the server sends objects.
const PRODUCED: [&str; 3] = [
    "application/json",
    yaml::CONTENT_TYPE,
    "application/vnd.kubernetes.protobuf",
];

/// Media types of watch responses. The 406 error of [`check_route`] lists them if the route also serves
/// watches. YAML has no form for a stream of events.
const STREAMED: [&str; 2] = [
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];

/// Start of the subtypes of OpenAPI documents in protobuf.
const OPENAPI_PROTOBUF: &str = "com.github.proto-openapi.spec.v";

/// Media type of the document at `/openapi/v2` in protobuf, without `application/`.
const OPENAPI_V2_PROTOBUF: &str = "com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The same in requests of older clients, and of client-go.
const OPENAPI_V2_OLD_PROTOBUF: &str = "com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// API group of metadata and tables.
const META: &str = "meta.k8s.io";

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
    Yaml,
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

/// Content of a response. The content determines which representations the client can request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Object,
    List,
    Watch,
}

/// What a route serves besides objects and lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forms {
    pub(crate) streams: bool,
    pub(crate) tables: bool,
}

/// The alternative of an `Accept` header that the server selected for objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Selected {
    pub(crate) encoding: Encoding,
    form: Option<Form>,
}

/// Form that a client requests instead of complete objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Table,
    Metadata,
    MetadataList,
}

/// A conversion of the objects in the response, requested by the parameters of a media type.
///
/// For example, `as=Table;g=meta.k8s.io;v=v1` requests a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Conversion<'a> {
    kind: &'a str,
    group: &'a str,
    version: &'a str,
}

impl Format {
    /// Returns the protobuf schema of the objects, or `None` for a JSON or YAML response.
    pub(crate) fn schema(self, kind: &Kind) -> Option<Schema> {
        match (self.encoding, self.representation) {
            (Encoding::Protobuf, Representation::Object) => Schema::of_objects(kind),
            (Encoding::Protobuf, Representation::Metadata) => Schema::of_metadata(),
            (Encoding::Protobuf, Representation::Table(_))
            | (Encoding::Json | Encoding::Yaml, _) => None,
        }
    }
}

impl Encoding {
    const ALL: [Encoding; 3] = [Encoding::Json, Encoding::Yaml, Encoding::Protobuf];

    fn sub_type(self) -> &'static str {
        match self {
            Encoding::Json => "json",
            Encoding::Yaml => "yaml",
            Encoding::Protobuf => "vnd.kubernetes.protobuf",
        }
    }

    /// Checks that the encoding has a form for the events of a watch.
    ///
    /// # Errors
    ///
    /// Returns a 406 error for YAML.
    pub(crate) fn check_stream(self) -> Result<(), ApiError> {
        match self {
            Encoding::Json | Encoding::Protobuf => Ok(()),
            Encoding::Yaml => Err(not_acceptable(&STREAMED)),
        }
    }
}

impl<'a> Conversion<'a> {
    /// Returns the conversion that a clause requests, or `None` if the clause has none of the parameters
    /// `as`, `g` and `v`.
    fn of(clause: &Clause<'a>) -> Option<Conversion<'a>> {
        let [kind, group, version] = ["as", "g", "v"].map(|name| clause.parameter(name));
        kind.or(group).or(version)?;
        Some(Conversion {
            kind: kind.unwrap_or_default(),
            group: group.unwrap_or_default(),
            version: version.unwrap_or_default(),
        })
    }

    fn form(self) -> Option<Form> {
        if (self.group, self.version) != (META, "v1") {
            return None;
        }
        match self.kind {
            "Table" => Some(Form::Table),
            "PartialObjectMetadata" => Some(Form::Metadata),
            "PartialObjectMetadataList" => Some(Form::MetadataList),
            _ => None,
        }
    }
}

/// Calls `allow` for the supported alternatives of the `Accept` header, and returns the first result that is
/// not `None`.
///
/// The order of the calls is the client's order of preference. If an alternative, such as `*/*`, permits all
/// encodings, `allow` is called for JSON first, and for protobuf last.
///
/// An alternative with the parameter `sv` is supported only if the value of `sv` is `server_version` or
/// empty.
fn select<T>(
    accept: &str,
    server_version: Option<&str>,
    allow: impl Fn(Encoding, Option<Conversion<'_>>) -> Option<T>,
) -> Option<T> {
    if accept.is_empty() {
        return allow(Encoding::Json, None);
    }
    let clauses = clauses(accept);
    let pairs = clauses.iter().flat_map(|clause| {
        let encodings = Encoding::ALL.into_iter();
        encodings.map(move |encoding| (clause, encoding))
    });
    let mut accepted = pairs.filter(|(clause, encoding)| {
        let parameter = |name| clause.parameter(name).filter(|value| !value.is_empty());
        clause.accepts("application", encoding.sub_type())
            && parameter("stream")
                .is_none_or(|stream| stream == "watch" && *encoding != Encoding::Yaml)
            && parameter("sv").is_none_or(|version| server_version == Some(version))
    });
    accepted.find_map(|(clause, encoding)| allow(encoding, Conversion::of(clause)))
}

/// Returns the alternative of the `Accept` header that the server selects for objects of `kind`.
///
/// # Errors
///
/// Returns a 406 error if the server supports no alternative.
pub(crate) fn negotiate(
    headers: &HeaderMap,
    forms: Forms,
    kind: &Kind,
) -> Result<Selected, ApiError> {
    let accept = accept(headers);
    if !kind.custom {
        let streamed: &[&str] = if forms.streams { &STREAMED } else { &[] };
        check_route(&accept, &[&PRODUCED, streamed].concat())?;
    }
    let selected = select(&accept, Some("v1"), |encoding, conversion| {
        let form = match conversion {
            None if encoding == Encoding::Protobuf && Schema::of_objects(kind).is_none() => {
                return None;
            }
            None => None,
            Some(conversion) => Some(conversion.form()?),
        };
        let has_table = forms.tables && encoding != Encoding::Protobuf;
        if form == Some(Form::Table) && !has_table {
            return None;
        }
        Some(Selected { encoding, form })
    });
    selected.ok_or_else(|| not_acceptable(&PRODUCED))
}

impl Selected {
    /// Returns the format of the response.
    ///
    /// # Errors
    ///
    /// Returns a 406 error if the client requests `PartialObjectMetadata` for a list, or
    /// `PartialObjectMetadataList` for one object. Returns a 400 error if the client requests a table with an
    /// invalid query parameter `includeObject`.
    pub(crate) fn format(
        self,
        query: &Query,
        content: Content,
        kind: &Kind,
    ) -> Result<Format, ApiError> {
        let (package, name) = (kind.internal_package(), &kind.kind);
        let representation = match (self.form, content) {
            (None, _) => Representation::Object,
            (Some(Form::Table), _) => Representation::Table(IncludeObject::of(query)?),
            (Some(Form::Metadata), Content::List) => {
                return Err(ApiError::new(
                    406,
                    "NotAcceptable",
                    format!(
                        "you requested PartialObjectMetadata, but the requested object is a list (*{package}.{name}List)"
                    ),
                ));
            }
            (Some(Form::MetadataList), Content::Object) => {
                return Err(ApiError::new(
                    406,
                    "NotAcceptable",
                    format!(
                        "you requested PartialObjectMetadataList, but the requested object is not a list (*{package}.{name})"
                    ),
                ));
            }
            (Some(Form::Metadata | Form::MetadataList), _) => Representation::Metadata,
        };
        Ok(Format {
            encoding: self.encoding,
            representation,
        })
    }
}

impl IncludeObject {
    fn of(query: &Query) -> Result<IncludeObject, ApiError> {
        match query.text("includeObject") {
            None | Some("Metadata") => Ok(IncludeObject::Metadata),
            Some("None") => Ok(IncludeObject::None),
            Some("Object") => Ok(IncludeObject::Object),
            Some(other) => Err(ApiError::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', 'Object', 'None', or empty",
                Quoted(other)
            ))),
        }
    }
}

/// Returns the encoding of an error response, or of a document such as the discovery document.
///
/// Returns `None` if the server supports no alternative of the `Accept` header.
fn plain(accept: &str) -> Option<Encoding> {
    select(accept, None, |encoding, conversion| {
        conversion.is_none().then_some(encoding)
    })
}

/// Returns the encoding of error responses, which is JSON if the client accepts no supported media type.
///
/// Requests for custom kinds can receive errors in protobuf, although complete custom objects are JSON.
pub(crate) fn errors_in(headers: &HeaderMap) -> Encoding {
    plain(&accept(headers)).unwrap_or(Encoding::Json)
}

/// Type of a route that serves a document, such as discovery. Determines which media types are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// A route that produces JSON, YAML and protobuf in kube-apiserver's router `go-restful`.
    Restful,
    /// A route that produces only JSON.
    OnlyJson,
    /// A handler outside `go-restful`, for example the handler of `/apis`.
    Handler,
}

/// Returns the encoding of a document, such as the discovery document.
///
/// # Errors
///
/// Returns a 406 error if the server supports no alternative of the `Accept` header.
pub(crate) fn document_in(headers: &HeaderMap, route: Route) -> Result<Encoding, ApiError> {
    let accept = accept(headers);
    match route {
        Route::Restful => check_route(&accept, &PRODUCED)?,
        Route::OnlyJson => {
            check_route(&accept, &PRODUCED[..1])?;
            return Ok(Encoding::Json);
        }
        Route::Handler => {}
    }
    plain(&accept).ok_or_else(|| not_acceptable(&PRODUCED))
}

/// Returns the encoding of the aggregated discovery document, or `None` if the client does not accept it.
///
/// As in kube-apiserver, the aggregated document is preferred even if other alternatives have a higher
/// quality.
pub(crate) fn aggregated_discovery_in(headers: &HeaderMap) -> Option<Encoding> {
    select(&accept(headers), None, |encoding, conversion| {
        let aggregated = Conversion {
            kind: "APIGroupDiscoveryList",
            group: "apidiscovery.k8s.io",
            version: "v2",
        };
        (conversion == Some(aggregated)).then_some(encoding)
    })
}

/// Returns whether the client accepts an OpenAPI document.
///
/// The document is JSON. A client that accepts the protobuf form of OpenAPI receives JSON too.
pub(crate) fn accepts_openapi(headers: &HeaderMap) -> bool {
    let accept = accept(headers);
    accept.is_empty()
        || clauses(&accept).iter().any(|clause| {
            clause.accepts("application", "json") || clause.sub_type.starts_with(OPENAPI_PROTOBUF)
        })
}

/// Returns the encoding of the document at `/openapi/v2`, or `None` if the client accepts neither.
pub(crate) fn openapi_v2_in(headers: &HeaderMap) -> Option<Encoding> {
    let accept = accept(headers);
    if accept.is_empty() {
        return Some(Encoding::Json);
    }
    let encodings = [
        ("json", Encoding::Json),
        (OPENAPI_V2_OLD_PROTOBUF, Encoding::Protobuf),
        (OPENAPI_V2_PROTOBUF, Encoding::Protobuf),
    ];
    clauses(&accept).iter().find_map(|clause| {
        let mut encodings = encodings.iter();
        let found = encodings.find(|(sub_type, _)| clause.accepts("application", sub_type));
        found.map(|(_, encoding)| *encoding)
    })
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

/// Checks that the `Accept` header allows one of the media types `produced`.
///
/// # Errors
///
/// Returns the 406 error of `go-restful`.
fn check_route(accept: &str, produced: &[&str]) -> Result<(), ApiError> {
    if is_produced(accept, produced) {
        return Ok(());
    }
    Err(ApiError::not_acceptable(&produced.join(", ")))
}

/// Returns kube-apiserver's 406 error for a request whose `Accept` header contains none of the media types
/// `produced`.
fn not_acceptable(produced: &[&str]) -> ApiError {
    let produced = produced.join(", ");
    let message = format!("only the following media types are accepted: {produced}");
    ApiError::new(406, "NotAcceptable", message)
}

#[cfg(test)]
mod tests;
