//! One HTTP request: access, log, faults, limits, then the verb.
//!
//! Guarantees:
//! - every answer, also a refusal, is a well-formed response with a JSON body; only a refused connection is an error;
//! - what a peer sends is bounded: [`BODY_BYTES_MAX`] and [`URI_BYTES_MAX`].

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::body::{Body, BoxError};
use crate::compress;
use crate::request_log::LoggedRequest;
use crate::route::{Destination, ListOptions, Query, Verb};
use crate::shared::Shared;
use crate::status::ApiError;
use crate::verb::{Call, Reply};

/// The largest body of a request (`MaxRequestBodyBytes` in `server/config.go`).
const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// The longest URL: far above the longest continue token and selectors that clients send.
const URI_BYTES_MAX: usize = 32 * 1024;

/// Answers one request.
///
/// # Errors
///
/// Only while connections are refused, with an [`io::Error`] inside.
pub(crate) async fn serve<B>(
    shared: Arc<Shared>,
    request: Request<B>,
) -> Result<Response<Body>, BoxError>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    if shared.faults.refuses() {
        let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused");
        return Err(refused.into());
    }
    let (parts, body) = request.into_parts();
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let options = ListOptions::parse(&query);
    let watch = options.as_ref().is_ok_and(|options| options.watch);
    let destination = Destination::find(&shared.registry, parts.uri.path());
    let verb = destination.verb(&parts.method, watch);
    let record = record(
        &destination,
        &parts,
        options.clone().unwrap_or_default(),
        watch,
    );
    let compresses = destination.target().is_some()
        && verb != Verb::Watch
        && compress::is_accepted(&parts.headers);
    let (user, refusal) = shared.gate.admit(&parts, &query);
    let planned = refusal.or_else(|| shared.faults.take(&record));
    let sequence = shared.requests.arrived(record);
    let answer = match planned {
        Some(error) => Err(error),
        None if parts.uri.to_string().len() > URI_BYTES_MAX => {
            Err(ApiError::new(414, "", "the request's URL is too long"))
        }
        None => {
            let read = if verb.is_write() {
                read_body(body).await
            } else {
                Ok(Bytes::new())
            };
            match (read, options) {
                (Ok(body), Ok(options)) => {
                    let call = Call {
                        shared: Arc::clone(&shared),
                        user,
                        destination,
                        verb,
                        query,
                        options,
                        headers: parts.headers,
                        body,
                    };
                    call.answer().await
                }
                (Err(error), _) | (_, Err(error)) => Err(error),
            }
        }
    };
    let revision = answer.as_ref().ok().and_then(|reply| reply.revision);
    let mut response = respond(answer);
    if compresses {
        response = compress::compress(response).await;
    }
    shared
        .requests
        .answered(sequence, response.status().as_u16(), revision);
    Ok(response)
}

fn record(
    destination: &Destination,
    parts: &http::request::Parts,
    options: ListOptions,
    watch: bool,
) -> LoggedRequest {
    let target = destination.target();
    LoggedRequest {
        sequence: 0,
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
    }
}

fn user_agent(headers: &HeaderMap) -> String {
    let value = headers.get(header::USER_AGENT);
    value
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .unwrap_or_default()
}

async fn read_body<B>(body: B) -> Result<Bytes, ApiError>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::body_too_large()),
        Err(error) => Err(ApiError::bad_request(format!(
            "the body could not be read: {error}"
        ))),
    }
}

fn respond(answer: Result<Reply, ApiError>) -> Response<Body> {
    let (code, content_type, body, retry_after) = match answer {
        Ok(reply) => (reply.code, reply.content_type, reply.body, None),
        Err(error) => {
            let status = error.status();
            let code =
                StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let body = Body::full(format!("{}\n", status.to_json()));
            (code, "application/json", body, status.retry_after())
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, private"),
    );
    if let Some(seconds) = retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
