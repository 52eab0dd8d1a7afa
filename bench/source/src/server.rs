//! Serves lists and watches of the generated objects over HTTP/1.1 and HTTP/2, without TLS.
//!
//! Also serves the benchmark's control requests, such as `POST /emit`, which changes objects.
//!
//! Guarantees:
//! - at most [`CONNECTIONS_MAX`] connections are open;
//! - lists and watches are encoded while they are sent, so their memory does not depend on the number of
//!   objects;
//! - the tasks of all connections are aborted when [`serve`] returns.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::body::{self, Body, Initial};
use crate::chunks::{Buffer, Chunking};
use crate::document;
use crate::framing::Framing;
use crate::history::Moment;
use crate::refusal::Refusal;
use crate::request::{ListFrom, ListRequest, Request, WatchFrom, WatchRequest};
use crate::slot::Encoding;
use crate::source::Source;

/// Maximum number of open connections; at the limit, the server accepts no new ones.
const CONNECTIONS_MAX: usize = 256;

/// Pause before the next attempt after the listener has failed to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Serves the objects of `source` until `shutdown` completes, then closes all connections.
///
/// # Cancel safety
///
/// Dropping the future closes the listener and all connections.
pub async fn serve(
    listener: TcpListener,
    source: Arc<Source>,
    chunking: Chunking,
    shutdown: impl Future<Output = ()>,
) {
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => return,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, Arc::clone(&source), chunking));
                }
                // The most likely reason is the limit of open files, which other connections release.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
}

async fn connection(stream: TcpStream, source: Arc<Source>, chunking: Chunking) {
    // With Nagle's algorithm, a small event would wait until the previous one is acknowledged.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let service = service_fn(move |request: http::Request<Incoming>| {
        let buffer = chunking.buffer(request.version());
        answer(Arc::clone(&source), buffer, request)
    });
    let server = Builder::new(TokioExecutor::new());
    // An error means that the client has disconnected.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    source: Arc<Source>,
    buffer: Buffer,
    request: http::Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let kind = source.corpus().kind();
    let read = Request::read(kind, request.method(), request.uri(), request.headers());
    let answer = match read {
        Ok(Request::Document(path)) => match document::at(&path, kind) {
            Some(document) => Ok(json_answer(StatusCode::OK, &document)),
            None => Err(Refusal::new(
                StatusCode::NOT_FOUND,
                "NotFound",
                format!("{path} is not served"),
            )),
        },
        Ok(Request::List(list)) => answer_list(&source, buffer, list),
        Ok(Request::Watch(watch)) => Ok(answer_watch(&source, buffer, &watch)),
        Ok(Request::Emit { changes, rate }) => {
            let emitted = source.emit(changes, rate).await;
            Ok(json_answer(
                StatusCode::OK,
                &json!({"events": emitted.changes, "seconds": emitted.took.as_secs_f64(), "resourceVersion": emitted.revision.to_string()}),
            ))
        }
        Ok(Request::Cut) => {
            source.cut();
            Ok(json_answer(StatusCode::OK, &json!({})))
        }
        Ok(Request::Expire) => {
            let now = source.expire();
            Ok(json_answer(
                StatusCode::OK,
                &json!({"resourceVersion": now.revision.to_string()}),
            ))
        }
        Ok(Request::Stats) => Ok(json_answer(StatusCode::OK, &stats(&source))),
        Err(refusal) => Err(refusal),
    };
    Ok(answer.unwrap_or_else(|refusal| json_text(refusal.code, refusal.json())))
}

fn answer_list(
    source: &Arc<Source>,
    buffer: Buffer,
    request: ListRequest,
) -> Result<Response<Body>, Refusal> {
    let (start, moment) = match request.from {
        ListFrom::Newest => (0, source.now()),
        ListFrom::Exact(revision) => (0, source.moment(revision)?),
        ListFrom::Token(token) => {
            let (start, moment) = read_token(&token)
                .ok_or_else(|| Refusal::bad_request("continue key is not valid"))?;
            source.check(moment)?;
            (start, moment)
        }
    };
    let count = source.corpus().len();
    if start > count {
        return Err(Refusal::bad_request("continue key is not valid"));
    }
    let end = count.min(start.saturating_add(request.limit.unwrap_or(count)));
    let next = (end < count).then(|| (token(end, moment), (count - end) as u64));
    source.count(|stats| stats.lists += 1);
    let framing = Framing::new(source.corpus().kind(), request.encoding);
    let objects = Range { start, end };
    let body = body::list(source.read(moment), framing, buffer, objects, next);
    Ok(typed_answer(content_type(request.encoding, false), body))
}

/// Returns the `continue` token of a page that starts at the object with the index `next`.
///
/// All pages of the list show the objects in the state `moment`.
fn token(next: usize, moment: Moment) -> String {
    format!("{next}.{}.{}", moment.changes, moment.revision)
}

fn read_token(token: &str) -> Option<(usize, Moment)> {
    let mut parts = token.split('.');
    let start = parts.next()?.parse().ok()?;
    let changes = parts.next()?.parse().ok()?;
    let revision = parts.next()?.parse().ok()?;
    let moment = Moment { changes, revision };
    parts.next().is_none().then_some((start, moment))
}

/// Returns the response to a watch request. If the requested revision is not available, the response
/// contains only an `ERROR` event.
fn answer_watch(source: &Arc<Source>, buffer: Buffer, request: &WatchRequest) -> Response<Body> {
    let framing = Framing::new(source.corpus().kind(), request.encoding);
    let (moment, initial) = match request.from {
        WatchFrom::Objects { bookmark: false } => (Ok(source.now()), Initial::Objects),
        WatchFrom::Objects { bookmark: true } => (Ok(source.now()), Initial::ObjectsAndBookmark),
        WatchFrom::Revision(revision) => (source.moment(revision), Initial::None),
    };
    let body = match moment {
        Ok(moment) => body::watch(source.follow(moment), framing, buffer, initial),
        Err(why) => body::refused(&Refusal::from(why), &framing, buffer),
    };
    typed_answer(content_type(request.encoding, true), body)
}

fn content_type(encoding: Encoding, is_watch: bool) -> &'static str {
    match (encoding, is_watch) {
        (Encoding::Json, _) => "application/json",
        (Encoding::Protobuf, false) => "application/vnd.kubernetes.protobuf",
        (Encoding::Protobuf, true) => "application/vnd.kubernetes.protobuf;stream=watch",
    }
}

fn stats(source: &Source) -> Value {
    let stats = source.stats();
    json!({
        "lists": stats.lists,
        "watches": stats.watches,
        "watching": stats.watching,
        "changes": stats.changes,
        "events": stats.events,
        "bytes": stats.bytes,
    })
}

fn json_answer(code: StatusCode, value: &Value) -> Response<Body> {
    json_text(code, value.to_string())
}

fn json_text(code: StatusCode, text: String) -> Response<Body> {
    let mut answer = typed_answer("application/json", body::whole(text));
    *answer.status_mut() = code;
    answer
}

fn typed_answer(content_type: &'static str, body: Body) -> Response<Body> {
    let value = header::HeaderValue::from_static(content_type);
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    let uncached = header::HeaderValue::from_static("no-cache, private");
    headers.insert(header::CACHE_CONTROL, uncached);
    headers.insert(header::CONTENT_TYPE, value);
    answer
}
