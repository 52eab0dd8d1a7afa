//! Asks the embedded server, in virtual time, and holds every answer to what all answers must be.

use std::{cell::RefCell, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header::CONTENT_TYPE};
use http_body_util::{BodyExt as _, Full};
use kube_informer_apiserver::Server;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tower_service::Service as _;

/// So long, in virtual time, the body of an answer is read; a watch goes on.
const READ: Duration = Duration::from_secs(1);

thread_local! {
    static RUNTIME: RefCell<Runtime> = RefCell::new(
        Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without threads and sockets needs nothing"),
    );
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Vec<u8>,
    /// Null if the body is no JSON.
    pub(crate) json: Value,
}

impl Answer {
    /// The reason of a refusal.
    pub(crate) fn reason(&self) -> &str {
        self.json["reason"].as_str().unwrap_or_default()
    }

    /// The items of a list.
    pub(crate) fn items(&self) -> &[Value] {
        self.json["items"].as_array().map_or(&[], Vec::as_slice)
    }
}

/// Sends a request, and reads its answer to the end, or for a second.
pub(crate) fn ask(server: &Server, request: Request<Bytes>) -> Answer {
    RUNTIME.with_borrow_mut(|runtime| runtime.block_on(answer(server.clone(), request)))
}

/// Asks for a path that is known to be well-formed.
pub(crate) fn get(server: &Server, uri: &str) -> Answer {
    let request = Request::get(uri).body(Bytes::new());
    ask(server, request.expect("what is asked for is a URL"))
}

async fn answer(mut server: Server, request: Request<Bytes>) -> Answer {
    let is_strategic = is_strategic(&request);
    let response = server.call(request.map(Full::new)).await;
    let response = response.expect("only a fault breaks a connection, and none is planned");
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
    check(&answer, is_strategic);
    answer
}

fn is_strategic(request: &Request<Bytes>) -> bool {
    let kind = request
        .headers()
        .get(CONTENT_TYPE)
        .map(HeaderValue::as_bytes);
    request.method() == Method::PATCH
        && kind.is_some_and(|kind| kind.starts_with(b"application/strategic-merge-patch+json"))
}

/// What is answered where there is nothing, as Go's server writes it.
const NOWHERE: &str = "404 page not found\n";

/// What Kubernetes says of a client's mistakes with a 500 that has no reason, beside what it does not
/// classify of strategic merge patches.
fn is_known_500(message: &str) -> bool {
    let is_revision = message.contains("strconv.ParseUint: parsing ");
    let causes = [": invalid syntax", ": value out of range"];
    message == "resourceVersion should not be set on objects to be created"
        || is_revision && causes.iter().any(|cause| message.ends_with(cause))
}

/// Every refusal is a `Status` of its code, and what a client sends is never the server's failure.
fn check(answer: &Answer, is_strategic: bool) {
    let Answer { code, json, .. } = answer;
    let body = String::from_utf8_lossy(&answer.body);
    let message = json["message"].as_str().unwrap_or_default();
    let is_unclassified = json["reason"].is_null() && (is_strategic || is_known_500(message));
    // A revision that is still to come is waited for, in vain.
    let is_to_come = *code == 504 && json["reason"] == "Timeout";
    // Of what Kubernetes has and this server has not.
    let is_missing = *code == 501 && json["reason"] == "NotImplemented";
    let is_known = *code == 500 && is_unclassified || is_missing || is_to_come;
    assert!(*code < 500 || is_known, "{code}: {body}");
    if *code >= 400 && body != NOWHERE {
        let is_status = json["kind"] == "Status" && json["status"] == "Failure";
        assert!(is_status && json["code"] == *code, "{code}, but: {body}");
        assert!(
            json["message"].is_string(),
            "{code} without a message: {body}"
        );
    }
}

/// A text as a query's value.
pub(crate) fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
