//! Sends requests of the fuzz targets to the embedded server, and checks the responses with [`check`].
//!
//! The server runs in virtual time. Reading from an open watch therefore takes no real time.

use std::{cell::RefCell, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header::CONTENT_TYPE};
use http_body_util::{BodyExt as _, Full};
use kube_informer_apiserver::Server;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tower_service::Service as _;

/// Maximum virtual time for reading a body, because a watch does not end on its own.
const READ: Duration = Duration::from_secs(1);

thread_local! {
    static RUNTIME: RefCell<Runtime> = RefCell::new(
        Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without an I/O driver can be built"),
    );
}

/// A response of the embedded server. The body of a watch is cut off after one virtual second.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Vec<u8>,
    /// The body as JSON; null if the body is not JSON or did not end in time.
    pub(crate) json: Value,
}

impl Answer {
    /// Returns the `reason` of an error response; empty if the response has none.
    pub(crate) fn reason(&self) -> &str {
        self.json["reason"].as_str().unwrap_or_default()
    }

    /// Returns the items of a list response; empty for any other response.
    pub(crate) fn items(&self) -> &[Value] {
        self.json["items"].as_array().map_or(&[], Vec::as_slice)
    }
}

/// Sends a request, and returns the response.
///
/// # Panics
/// Panics if the response is invalid: see [`check`].
pub(crate) fn ask(server: &Server, request: Request<Bytes>) -> Answer {
    RUNTIME.with_borrow_mut(|runtime| runtime.block_on(answer(server.clone(), request)))
}

/// Sends a GET request for the well-formed `uri`.
///
/// # Panics
/// Panics if the response is invalid: see [`check`].
pub(crate) fn get(server: &Server, uri: &str) -> Answer {
    let request = Request::get(uri).body(Bytes::new());
    ask(server, request.expect("the path is a valid URL"))
}

async fn answer(mut server: Server, request: Request<Bytes>) -> Answer {
    let is_strategic = is_strategic(&request);
    let is_openapi = is_openapi(request.uri().path());
    let response = server.call(request.map(Full::new)).await;
    let response = response.expect("only a fault breaks a connection, and there is none");
    let (parts, mut body) = response.into_parts();
    let mut bytes = Vec::new();
    let read = async {
        while let Some(frame) = body.frame().await {
            let frame = frame.expect("no body breaks without a fault");
            bytes.extend(frame.into_data().unwrap_or_default());
        }
    };
    let ended = tokio::time::timeout(READ, read).await.is_ok();
    let json = if ended {
        serde_json::from_slice(&bytes).unwrap_or_default()
    } else {
        Value::Null
    };
    let answer = Answer {
        code: parts.status.as_u16(),
        body: bytes,
        json,
    };
    if is_openapi && answer.body.is_empty() && matches!(answer.code, 404 | 406) {
        // Kubernetes responds so if it has no such document, or not in this format.
        return answer;
    }
    check(&answer, is_strategic);
    answer
}

/// Returns whether `path` starts with `/openapi`, also in percent-encoding.
fn is_openapi(path: &str) -> bool {
    let decoded = form_urlencoded::parse(path.as_bytes()).next();
    decoded.is_some_and(|(path, _)| path.starts_with("/openapi"))
}

fn is_strategic(request: &Request<Bytes>) -> bool {
    let kind = request
        .headers()
        .get(CONTENT_TYPE)
        .map(HeaderValue::as_bytes);
    request.method() == Method::PATCH
        && kind.is_some_and(|kind| kind.starts_with(b"application/strategic-merge-patch+json"))
}

/// Bodies that Go's HTTP server sends instead of a `Status`: for an unknown path, and for a path with an
/// invalid escape.
const PLAIN: [&str; 2] = ["404 page not found\n", "400 Bad Request"];

/// Returns whether Kubernetes also returns code 500 with this message for invalid input.
fn is_known_500(message: &str) -> bool {
    let is_revision = message.contains("strconv.ParseUint: parsing ");
    let causes = [": invalid syntax", ": value out of range"];
    // kube-apiserver returns the validation errors of a binding as they are.
    let is_of_binding = message.starts_with("target.") || message.starts_with("[target.");
    message == "resourceVersion should not be set on objects to be created"
        || is_of_binding
        || is_revision && causes.iter().any(|cause| message.ends_with(cause))
}

/// Panics if a response is invalid. `is_strategic` is whether the request is a strategic merge patch.
///
/// - A response with code 400 or higher must be a failure `Status` with the same code and a message, unless
///   its body is one of [`PLAIN`].
/// - Codes 500 and higher are invalid, with three exceptions: 501 with reason `NotImplemented`, 504 with
///   reason `Timeout`, and 500 without a reason. Code 500 requires a strategic merge patch, or a message that
///   [`is_known_500`] accepts.
fn check(answer: &Answer, is_strategic: bool) {
    let Answer { code, json, .. } = answer;
    let body = String::from_utf8_lossy(&answer.body);
    let message = json["message"].as_str().unwrap_or_default();
    let is_unclassified = json["reason"].is_null() && (is_strategic || is_known_500(message));
    // A request for a future revision waits and times out.
    let is_to_come = *code == 504 && json["reason"] == "Timeout";
    // Features of Kubernetes that this server does not have.
    let is_missing = *code == 501 && json["reason"] == "NotImplemented";
    let is_known = *code == 500 && is_unclassified || is_missing || is_to_come;
    assert!(*code < 500 || is_known, "{code}: {body}");
    if *code >= 400 && !PLAIN.contains(&&*body) {
        let is_status = json["kind"] == "Status" && json["status"] == "Failure";
        assert!(is_status && json["code"] == *code, "{code}, but: {body}");
        assert!(
            json["message"].is_string(),
            "{code} without a message: {body}"
        );
    }
}

/// Encodes `text` as the value of a query parameter: percent-encoding, with `+` instead of a space.
pub(crate) fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
