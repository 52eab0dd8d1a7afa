//! Parses the HTTP requests that the source, a server of generated objects, supports.
//!
//! Guarantees: a request with a selector, or with an unsupported encoding, method or parameter value, is
//! rejected. Query parameters that the source does not know, such as `timeoutSeconds`, are ignored.

use http::{HeaderMap, Method, StatusCode, Uri, header};

use crate::kind::Kind;
use crate::refusal::Refusal;
use crate::slot::Encoding;

/// A parsed request to the server of generated objects.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// A `GET` request for a document such as `/version`. The value is the URL path.
    Document(String),
    List(ListRequest),
    Watch(WatchRequest),
    Emit {
        changes: u64,
        rate: u32,
    },
    Cut,
    Expire,
    Stats,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListRequest {
    pub(crate) encoding: Encoding,
    pub(crate) limit: Option<usize>,
    pub(crate) from: ListFrom,
}

/// The state of the objects to list: the newest state, or the state at a given revision.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ListFrom {
    Newest,
    /// The state at this revision.
    Exact(u64),
    /// The state at the revision of the earlier page that contained this `continue` token.
    Token(String),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WatchRequest {
    pub(crate) encoding: Encoding,
    pub(crate) from: WatchFrom,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WatchFrom {
    /// The watch starts with an `ADDED` event for each object. A bookmark follows if `bookmark` is true.
    Objects { bookmark: bool },
    /// The watch starts with the first change after this revision, without initial events.
    Revision(u64),
}

// === impl Request ===

impl Request {
    /// Parses a request to a source that serves objects of the kind `kind`.
    ///
    /// # Errors
    /// Returns the error response for a request that the source does not support.
    pub(crate) fn read(
        kind: &Kind,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Request, Refusal> {
        let query = Query::of(uri);
        match (method.as_str(), uri.path()) {
            ("POST", "/emit") => Ok(Request::Emit {
                changes: query.number("n")?.unwrap_or(1),
                rate: query.number("rate")?.unwrap_or(0),
            }),
            ("POST", "/cut") => Ok(Request::Cut),
            ("POST", "/expire") => Ok(Request::Expire),
            ("GET", "/stats") => Ok(Request::Stats),
            ("GET", path) if path == kind.path() => {
                let encoding = negotiate(kind, headers)?;
                for name in ["labelSelector", "fieldSelector"] {
                    if query.text(name).is_some() {
                        return Err(Refusal::bad_request(format!("{name} is not served")));
                    }
                }
                if query.flag("watch")? {
                    let from = WatchFrom::read(&query)?;
                    return Ok(Request::Watch(WatchRequest { encoding, from }));
                }
                ListRequest::read(encoding, &query).map(Request::List)
            }
            ("GET", path) => Ok(Request::Document(path.to_owned())),
            (method, path) => Err(Refusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "MethodNotAllowed",
                format!("{method} {path} is not served"),
            )),
        }
    }
}

impl ListRequest {
    fn read(encoding: Encoding, query: &Query) -> Result<ListRequest, Refusal> {
        let revision: Option<u64> = query.number("resourceVersion")?;
        let matching = query.text("resourceVersionMatch");
        let from = match (query.text("continue"), revision, matching) {
            (Some(token), ..) => ListFrom::Token(token.to_owned()),
            (None, Some(revision), Some("Exact")) if revision > 0 => ListFrom::Exact(revision),
            (None, _, None | Some("NotOlderThan")) => ListFrom::Newest,
            (None, ..) => {
                return Err(Refusal::bad_request(
                    "resourceVersionMatch: not for this revision",
                ));
            }
        };
        let limit = query.number("limit")?.filter(|limit| *limit > 0);
        // An API server returns these lists from its cache, without pages.
        let from_cache = from == ListFrom::Newest && revision == Some(0);
        Ok(ListRequest {
            encoding,
            limit: limit.filter(|_| !from_cache),
            from,
        })
    }
}

impl WatchFrom {
    fn read(query: &Query) -> Result<WatchFrom, Refusal> {
        let revision: Option<u64> = query.number("resourceVersion")?;
        if !query.flag("sendInitialEvents")? {
            return Ok(match revision {
                None | Some(0) => WatchFrom::Objects { bookmark: false },
                Some(revision) => WatchFrom::Revision(revision),
            });
        }
        if query.text("resourceVersionMatch") != Some("NotOlderThan") {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            return Err(Refusal::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "Invalid",
                why,
            ));
        }
        Ok(WatchFrom::Objects {
            bookmark: query.flag("allowWatchBookmarks")?,
        })
    }
}

/// Returns the first encoding in the `Accept` header that the source supports for `kind`.
///
/// # Errors
/// Returns an error response with status 406 if the header has no supported encoding.
fn negotiate(kind: &Kind, headers: &HeaderMap) -> Result<Encoding, Refusal> {
    let accepted = headers
        .get(header::ACCEPT)
        .map_or(Ok("*/*"), |value| value.to_str());
    let accepted = accepted.map_err(|_| Refusal::bad_request("Accept is not text"))?;
    let found = accepted.split(',').find_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let encoding = match parts.next()? {
            "application/json" | "application/*" | "*/*" => Encoding::Json,
            "application/vnd.kubernetes.protobuf" if kind.has_protobuf => Encoding::Protobuf,
            _ => return None,
        };
        parts
            .all(|parameter| parameter == "stream=watch" || parameter.starts_with("q="))
            .then_some(encoding)
    });
    found.ok_or_else(|| {
        let why =
            format!("only JSON, and protobuf of built-in kinds, can be served, not {accepted}");
        Refusal::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", why)
    })
}

/// The names and values of the query parameters.
struct Query(Vec<(String, String)>);

impl Query {
    fn of(uri: &Uri) -> Query {
        let query = uri.query().unwrap_or_default().as_bytes();
        Query(form_urlencoded::parse(query).into_owned().collect())
    }

    /// Returns the value of the query parameter `name`, unless it is absent or empty.
    fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Refusal> {
        let parse = |text: &str| {
            text.parse()
                .map_err(|_| Refusal::bad_request(format!("{name}: not a number: {text}")))
        };
        self.text(name).map(parse).transpose()
    }

    fn flag(&self, name: &str) -> Result<bool, Refusal> {
        match self.text(name) {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(text) => Err(Refusal::bad_request(format!(
                "{name}: neither true nor false: {text}"
            ))),
        }
    }
}

#[cfg(test)]
mod tests;
