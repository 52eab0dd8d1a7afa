//! Serves one HTTP request: checks access, logs the request, applies limits and injected faults, and
//! returns a response.
//!
//! Guarantees:
//! - [`serve`] fails only if an injected fault refuses or resets the connection;
//! - a request that fails for any other reason receives an error response. The body of the error response is
//!   a `Status`, or plain text for a path outside the API;
//! - the size of a request is limited: the URL by [`URI_BYTES_MAX`], and the body by
//!   [`body_limit`](crate::body_limit).
//!
//! [`Call`] executes the verb of the request. This module does not execute verbs.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{future, stream};
use http::header::{self, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};

use crate::access::User;
use crate::body::{Body, BoxError};
use crate::body_limit::Received;
use crate::compress;
use crate::fault::{Framing, Verdict};
use crate::fault_injection::serve_plan;
use crate::field_validation::Warnings;
use crate::go_json::to_text;
use crate::negotiate::{Encoding, errors_in};
use crate::protobuf;
use crate::reply::Reply;
use crate::request_log::LoggedRequest;
use crate::route::{Destination, ListOptions, Query, Verb};
use crate::shared::Shared;
use crate::status::ApiError;
use crate::typed::Ordered;
use crate::verb::Call;
use crate::yaml;

/// Maximum length of a URL in bytes; longer URLs receive a 414 error.
const URI_BYTES_MAX: usize = 32 * 1024;

/// The header `Cache-Control` of a document whose URL contains its hash. Kubernetes permits a year too, in `Expires`.
const FINAL: &str = "public, immutable, max-age=31536000";

/// Extension of a response that is a watch which has begun.
#[derive(Clone, Copy)]
pub(crate) struct Watching;

/// A request whose access was checked, and whose body was not yet read.
struct Arrived {
    shared: Arc<Shared>,
    /// The authenticated or anonymous user of the request.
    user: Arc<User>,
    /// The error of a request that access control rejects.
    refusal: Option<ApiError>,
    /// The request's entry in the request log.
    request: Arc<LoggedRequest>,
    destination: Destination,
    query: Query,
    options: Result<ListOptions, ApiError>,
    /// The warnings that the response will contain in its `Warning` headers.
    warnings: Arc<Warnings>,
    parts: Parts,
}

/// Serves one request and returns its response.
///
/// # Errors
///
/// Returns an [`io::Error`] only if an injected fault refuses or resets the connection.
pub(crate) async fn serve<B>(
    shared: Arc<Shared>,
    request: Request<B>,
) -> Result<Response<Body>, BoxError>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    if shared.settings.fault_endpoint == Some(parts.uri.path()) {
        if let (_, Some(refusal)) = shared.admit(&parts, &Query::default()) {
            return Ok(respond(Err(refusal), Encoding::Json));
        }
        let read = shared.body_limit.receive(body).await;
        let answer = read.and_then(|body| serve_plan(&shared, &parts.method, &body));
        return Ok(respond(answer, Encoding::Json));
    }
    if shared.faults.refuses() {
        let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused");
        return Err(refused.into());
    }
    let arrived = Arrived::new(shared, parts);
    let (shared, request) = (Arc::clone(&arrived.shared), Arc::clone(&arrived.request));
    let compresses = arrived.compresses();
    let encoding = arrived.error_encoding();
    let warnings = Arc::clone(&arrived.warnings);
    let (mut verdict, mut real) = (Verdict::default(), false);
    let answer = if let Some(refusal) = &arrived.refusal {
        // A rejected request does not count for faults.
        Err(refusal.clone())
    } else {
        verdict = shared.faults.judge(&request);
        if let Some(planned) = verdict.answer(&shared, &request)? {
            planned
        } else {
            let answer = arrived.answer(body).await;
            real = answer.is_ok();
            answer
        }
    };
    let revision = answer.as_ref().ok().and_then(|reply| reply.revision);
    let mut response = within_bounds(&shared, request.verb, respond(answer, encoding), encoding);
    warnings.write(response.headers_mut());
    if compresses {
        response = compress::compress(response).await;
    }
    if real {
        // Applied to the compressed bytes, so that faults count the bytes on the wire.
        let framing = match response.headers().get(header::CONTENT_TYPE) {
            Some(content_type) if content_type == protobuf::CONTENT_TYPE => Framing::Whole,
            _ => Framing::Lines,
        };
        response = response.map(|body| shared.faults.disturb(&request, body, framing));
    }
    if real && request.verb == Verb::Watch {
        response.extensions_mut().insert(Watching);
    }
    verdict.mark(&mut response);
    if !verdict.delay.is_zero() {
        tokio::time::sleep(verdict.delay).await;
    }
    shared
        .requests
        .answered(request.sequence, response.status().as_u16(), revision);
    Ok(response)
}

impl Arrived {
    /// Parses the head of a request, checks access, and logs the request, even a rejected one.
    fn new(shared: Arc<Shared>, parts: Parts) -> Arrived {
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let options = ListOptions::parse(&query);
        let watch = options.as_ref().is_ok_and(|options| options.watch);
        let destination = Destination::find(&shared.registry(), parts.uri.path());
        let known = options.clone().unwrap_or_default();
        let (user, refusal) = shared.admit(&parts, &query);
        let logged = record(&destination, &parts, known, watch);
        // A watch ignores the parameter. As in Kubernetes, it is checked before the user.
        let refusal = match query.check_timeout() {
            Err(invalid) if logged.verb != Verb::Watch => Some(invalid),
            _ => refusal,
        };
        let warnings = Arc::<Warnings>::default();
        if let Some(warning) = shared.gate.warning(&parts) {
            warnings.add(warning.to_owned());
        }
        let request = shared.requests.arrived(logged);
        Arrived {
            shared,
            user,
            refusal,
            request,
            destination,
            query,
            options,
            warnings,
            parts,
        }
    }

    fn compresses(&self) -> bool {
        self.destination.target().is_some()
            && self.request.verb != Verb::Watch
            && compress::is_accepted(&self.parts.headers)
    }

    fn error_encoding(&self) -> Encoding {
        errors_in(&self.parts.headers)
    }

    async fn answer<B>(self, body: B) -> Result<Reply, ApiError>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        if self.parts.uri.to_string().len() > URI_BYTES_MAX {
            return Err(ApiError::new(414, "", "the request's URL is too long"));
        }
        let body = if self.request.verb.is_write() {
            self.shared.body_limit.receive(body).await?
        } else {
            Received::default()
        };
        let options = match self.request.verb {
            Verb::List | Verb::Watch | Verb::DeleteCollection => self.options?,
            // Other requests have no such options, so malformed ones are ignored.
            _ => self.options.unwrap_or_default(),
        };
        let call = Call {
            shared: self.shared,
            user: self.user,
            verb: self.request.verb,
            is_get: self.parts.method == Method::GET,
            request: self.request,
            destination: self.destination,
            query: self.query,
            options,
            warnings: self.warnings,
            headers: self.parts.headers,
            body,
        };
        call.answer().await
    }
}

fn record(
    destination: &Destination,
    parts: &Parts,
    options: ListOptions,
    watch: bool,
) -> LoggedRequest {
    let target = destination.target();
    LoggedRequest {
        sequence: 0,
        arrived: Duration::ZERO,
        user_agent: user_agent(&parts.headers),
        verb: destination.verb(&parts.method, watch),
        path: parts.uri.path().to_owned(),
        resource: target
            .map(|target| target.resource.kind.plural.clone())
            .unwrap_or_default(),
        namespace: target.and_then(|target| target.namespace.clone()),
        name: target.and_then(|target| target.name.clone()),
        subresource: target.and_then(|target| target.subresource.clone()),
        options,
        status: None,
        revision: None,
        faults: Vec::new(),
    }
}

fn user_agent(headers: &HeaderMap) -> String {
    let value = headers.get(header::USER_AGENT);
    value
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .unwrap_or_default()
}

/// Reserves memory for the response body, or returns a 429 response if too little is free.
///
/// The response to a successful write keeps its status, because the write is already stored. If too little
/// memory is free, this response has a body that fails when it is read.
fn within_bounds(
    shared: &Shared,
    verb: Verb,
    response: Response<Body>,
    encoding: Encoding,
) -> Response<Body> {
    let is_final = verb.is_write() && response.status().is_success();
    let (parts, body) = response.into_parts();
    match body.held(&shared.response_budget) {
        Ok(body) => Response::from_parts(parts, body),
        Err(refusal) if is_final => {
            let broken = stream::once(future::ready(Err(refusal.into())));
            Response::from_parts(parts, Body::stream(broken))
        }
        Err(refusal) => respond(Err(refusal), encoding),
    }
}

/// Converts the result of a request to an HTTP response.
///
/// The body of an error response is a `Status` object in the format `encoding`.
fn respond(answer: Result<Reply, ApiError>, encoding: Encoding) -> Response<Body> {
    let mut keep = None;
    let (code, content_type, body, retry_after) = match answer {
        Ok(reply) => {
            keep = reply.keep;
            (reply.code, reply.content_type, reply.body, None)
        }
        Err(error) => {
            let status = error.status();
            let code =
                StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let (content_type, body) = match encoding {
                Encoding::Json => {
                    let body = to_text(&Ordered::document(&status.to_json())) + "\n";
                    let body = Body::full(body);
                    ("application/json", body)
                }
                Encoding::Yaml => {
                    let text = yaml::to_text(&status.to_json());
                    (yaml::CONTENT_TYPE, Body::full(text.unwrap_or_default()))
                }
                Encoding::Protobuf => {
                    let body = Body::full(protobuf::status(status));
                    (protobuf::CONTENT_TYPE, body)
                }
            };
            (code, content_type, body, status.retry_after())
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    if !content_type.is_empty() {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    let is_final = keep.as_ref().is_some_and(|keep| keep.is_final);
    let caching = if is_final { FINAL } else { "no-cache, private" };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    let etag = keep.map(|keep| HeaderValue::try_from(format!("\"{}\"", keep.hash)));
    if let Some(Ok(etag)) = etag {
        headers.insert(header::ETAG, etag);
        headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    }
    if let Some(seconds) = retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
