//! Tests that confidential data in requests, such as tokens, cookies and the content of Secret objects, is
//! not disclosed.
//!
//! The data must be in no log, in no `Debug` output, and in no response to another client.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube_informer_apiserver::User;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tracing::level_filters::LevelFilter;

use crate::ask::{builder, get, request, with};
use crate::wire::loopback;
use crate::wire_log::Log;

const TOKEN: &str = "hunter2-token";
const SECRET: &str = "hunter2";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// Returns requests that contain confidential data, each with the expected status code.
fn requests() -> Vec<(Request<Full<Bytes>>, u16)> {
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "annotations": {"password": SECRET}},
        "stringData": {"password": SECRET},
    });
    let new = |name: &str| {
        let mut secret = secret.clone();
        secret["metadata"]["name"] = json!(name);
        secret.to_string()
    };
    let json = "application/json";
    let merge = "application/merge-patch+json";
    let one = format!("{SECRETS}/s");
    let cut = format!(r#"{{"apiVersion":"v1","data":{{"key":"-----BEGIN {SECRET}"#);
    let text = format!(r#"{{"stringData":{{"a":"{SECRET}"}}}}"#);
    let no_base64 = format!(r#"{{"data":{{"a":"{SECRET}"}}}}"#);
    let rows = [
        ("POST", SECRETS, json, new("s"), 201),
        ("POST", SECRETS, json, new("s"), 409),
        ("POST", SECRETS, json, new("NO"), 422),
        ("POST", SECRETS, json, cut.clone(), 400),
        ("POST", SECRETS, "text/plain", SECRET.to_owned(), 415),
        (
            "POST",
            SECRETS,
            "application/vnd.kubernetes.protobuf",
            format!("k8s\0{SECRET}"),
            400,
        ),
        ("PUT", &one, json, new("other"), 400),
        ("PATCH", &one, merge, text, 200),
        ("PATCH", &one, merge, no_base64, 422),
        ("PATCH", &one, merge, cut, 400),
        (
            "PATCH",
            &one,
            "application/json-patch+json",
            format!(r#"[{{"op":"test","path":"/data/a","value":"not {SECRET}"}}]"#),
            422,
        ),
        (
            "GET",
            &format!("{SECRETS}?password={SECRET}&token={SECRET}"),
            json,
            String::new(),
            200,
        ),
        (
            "GET",
            &format!("{SECRETS}?limit={SECRET}"),
            json,
            String::new(),
            400,
        ),
        ("POST", "/faults", json, format!("list *: {SECRET}"), 400),
        (
            "DELETE",
            &one,
            json,
            format!(r#"{{"preconditions":{{"uid":"{SECRET}"}}}}"#),
            409,
        ),
    ];
    rows.into_iter().map(carrying_secrets).collect()
}

/// Builds a request with confidential data in two headers.
fn carrying_secrets(
    (method, uri, content_type, body, code): (&str, &str, &str, String, u16),
) -> (Request<Full<Bytes>>, u16) {
    let request = request(method, uri)
        .header("host", "localhost")
        .header("content-type", content_type)
        .header("cookie", format!("session={SECRET}"))
        .header("authorization", format!("Bearer {TOKEN}"));
    (request.body(Full::from(body)).unwrap(), code)
}

#[tokio::test]
async fn no_secret_is_in_the_log_at_any_level_or_in_the_request_log() {
    let log = Log::capture(LevelFilter::TRACE);
    let jane = User::new("jane");
    let server = builder().token(TOKEN, jane).fault_endpoint(true).build();
    let listening = server.listen(loopback()).await.unwrap();
    let address = listening.local_addr();
    let mut tasks = JoinSet::new();

    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tasks.spawn(async move { drop(connection.await) });
    for (request, code) in requests() {
        let shown = format!("{} {}", request.method(), request.uri());
        let response = sender.send_request(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(status, code, "{shown}: {}", String::from_utf8_lossy(&body));
    }

    server.delete("v1", "secrets", "default/s").unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.unwrap();
    tasks.spawn(async move { drop(connection.await) });
    for (mut request, code) in requests() {
        request.headers_mut().remove("host");
        *request.uri_mut() = format!("http://{address}{}", request.uri())
            .parse()
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), code);
        response.into_body().collect().await.unwrap();
    }
    let kubeconfig = listening.kubeconfig().token(TOKEN);
    let debug = format!(
        "{server:?} {listening:?} {kubeconfig:?} {:?} {:?} {:?} {:?}",
        server.with_token(TOKEN),
        builder().token(TOKEN, User::new("u")),
        server.access(),
        server.requests(),
    );
    listening.shutdown().await;

    let text = log.text();
    assert!(text.contains("h2"), "the protocols write logs");
    for text in [&text, &debug] {
        let line = text.lines().find(|line| line.contains(SECRET));
        assert_eq!(line, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejection_contains_no_stored_content_and_no_token() {
    let server = builder()
        .token(TOKEN, User::new("jane"))
        .token("another", User::new("joe"))
        .rules([kube_informer_apiserver::Rule::allow(
            ["create", "update", "delete"],
            ["secrets"],
        )])
        .build();
    let jane = server.with_token(TOKEN);
    let secret = |name: &str, value: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "annotations": {"note": value}},
            "stringData": {"password": value},
        })
    };
    assert_eq!(
        with(&jane, "POST", SECRETS, &secret("s", SECRET))
            .await
            .code,
        201
    );
    let joe = server.with_token("another");
    let one = format!("{SECRETS}/s");
    let mut stale = secret("s", "mine");
    stale["metadata"]["resourceVersion"] = json!("1");
    let refused = [
        with(&joe, "POST", SECRETS, &secret("s", "mine")).await,
        with(&joe, "PUT", &one, &stale).await,
        with(
            &joe,
            "PATCH",
            &one,
            &json!([{"op": "test", "path": "/data/password", "value": "x"}]),
        )
        .await,
        get(&joe, &one).await,
        get(&server, &one).await,
        get(&server.with_token("hunter2-toke"), &one).await,
    ];
    for (reply, code) in refused.iter().zip([409, 409, 403, 403, 401, 401]) {
        assert_eq!(reply.code, code, "{}", reply.text);
        assert!(!reply.text.contains(SECRET), "{}", reply.text);
        assert!(
            !reply.text.contains("aHVudGVyM"),
            "nor in base64: {}",
            reply.text
        );
    }
}
