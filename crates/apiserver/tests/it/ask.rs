//! Helpers for tests: they send requests to a server in process, and format watch events as text.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use kube_informer_apiserver::{Body, Builder, Server};
use serde_json::{Value, json};
use tower_service::Service;

/// The clock of test servers: always returns 2027-01-15T08:00:00Z.
pub(crate) fn fixed_time() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

/// Returns a server builder with a fixed random seed and the clock [`fixed_time`].
pub(crate) fn builder() -> Builder {
    Server::builder().rng_seed(1).clock(fixed_time)
}

/// Returns a server with the pods `names`: `namespace/name`, or `name` for a pod in `default`.
pub(crate) fn pods(names: &[&str]) -> Server {
    builder().seed(names.iter().map(|name| pod(name))).build()
}

pub(crate) fn pod(name: &str) -> Value {
    let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })
}

pub(crate) fn labelled(name: &str, label: &str, value: &str) -> Value {
    let mut pod = pod(name);
    pod["metadata"]["labels"] = json!({ label: value });
    pod
}

/// A complete response of the server; `json` is null if the body is not JSON.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) text: String,
    pub(crate) json: Value,
}

impl Reply {
    pub(crate) fn message(&self) -> &str {
        self.json["message"].as_str().unwrap_or_default()
    }

    /// Returns the `Status` of an error response as text: `code reason: message`.
    pub(crate) fn refusal(&self) -> String {
        let reason = self.json["reason"].as_str().unwrap_or("-");
        format!("{} {reason}: {}", self.code, self.message())
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        let items = self.json["items"].as_array().expect("a list has items");
        items
            .iter()
            .map(|item| item["metadata"]["name"].as_str().unwrap())
            .collect()
    }

    pub(crate) fn revision(&self) -> &str {
        self.json["metadata"]["resourceVersion"]
            .as_str()
            .unwrap_or_default()
    }

    pub(crate) fn continue_token(&self) -> Option<&str> {
        self.json["metadata"]["continue"].as_str()
    }
}

pub(crate) fn request(method: &str, uri: &str) -> http::request::Builder {
    Request::builder().method(method).uri(uri)
}

pub(crate) async fn send(server: &Server, request: Request<Full<Bytes>>) -> Reply {
    let response = server
        .clone()
        .call(request)
        .await
        .expect("the server answers");
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.expect("a complete body").to_bytes();
    Reply {
        code: parts.status.as_u16(),
        headers: parts.headers,
        text: String::from_utf8_lossy(&bytes).into_owned(),
        json: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
    }
}

pub(crate) async fn get(server: &Server, uri: &str) -> Reply {
    send(server, request("GET", uri).body(Full::default()).unwrap()).await
}

pub(crate) async fn get_as(server: &Server, uri: &str, accept: &str) -> Reply {
    let request = request("GET", uri).header("accept", accept);
    send(server, request.body(Full::default()).unwrap()).await
}

/// Sends a request with a JSON body. A `PATCH` with an array is a JSON patch, otherwise a merge patch.
pub(crate) async fn with(server: &Server, method: &str, uri: &str, body: &Value) -> Reply {
    let content_type = match method {
        "PATCH" if body.is_array() => "application/json-patch+json",
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = request(method, uri).header("content-type", content_type);
    send(server, request.body(Full::from(body.to_string())).unwrap()).await
}

pub(crate) async fn delete(server: &Server, uri: &str) -> Reply {
    send(
        server,
        request("DELETE", uri).body(Full::default()).unwrap(),
    )
    .await
}

/// An open watch, with the received bytes of an incomplete event.
pub(crate) struct Watch {
    body: Body,
    buffer: Vec<u8>,
}

/// Duration without data, in virtual time, after which [`Watch::trace`] returns.
const SILENCE: Duration = Duration::from_millis(10);

impl Watch {
    pub(crate) async fn open(server: &Server, uri: &str) -> Watch {
        let request = request("GET", uri).body(Full::<Bytes>::default()).unwrap();
        let response = server
            .clone()
            .call(request)
            .await
            .expect("the server answers");
        assert_eq!(response.status(), 200, "{uri}");
        Watch {
            body: response.into_body(),
            buffer: Vec::new(),
        }
    }

    /// Returns the events received until the watch ends or sends nothing for [`SILENCE`].
    ///
    /// Each event is one line, formatted by [`event_line`]. The line `end` follows the end of the watch.
    pub(crate) async fn trace(&mut self) -> String {
        self.trace_for(SILENCE).await
    }

    pub(crate) async fn trace_for(&mut self, silence: Duration) -> String {
        let mut trace = String::new();
        loop {
            match tokio::time::timeout(silence, self.body.frame()).await {
                Err(_) => return trace,
                Ok(None) => {
                    trace.push_str("end\n");
                    return trace;
                }
                Ok(Some(Err(error))) => writeln!(trace, "broken: {error}").unwrap(),
                Ok(Some(Ok(frame))) => self.buffer.extend(frame.into_data().unwrap()),
            }
            while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                trace.push_str(&event_line(&line));
            }
        }
    }
}

/// Formats a watch event as a line: its type, and the object's name and `resourceVersion`.
///
/// The line of an `ERROR` event has the status instead of the object.
fn event_line(line: &[u8]) -> String {
    let Ok(event) = serde_json::from_slice::<Value>(line) else {
        return format!("undecodable {}", String::from_utf8_lossy(line));
    };
    let (event_type, object) = (event["type"].as_str().unwrap_or("?"), &event["object"]);
    let metadata = &object["metadata"];
    let text = |member: &str| metadata[member].as_str().unwrap_or_default();
    match event_type {
        "ERROR" => {
            let reason = object["reason"].as_str().unwrap_or_default();
            format!(
                "ERROR {} {reason}: {}\n",
                object["code"],
                object["message"].as_str().unwrap_or_default()
            )
        }
        "BOOKMARK" => {
            let end = metadata["annotations"]["k8s.io/initial-events-end"] == "true";
            format!(
                "BOOKMARK {}{}\n",
                text("resourceVersion"),
                if end { " end" } else { "" }
            )
        }
        _ => format!(
            "{event_type} {} {}\n",
            text("name"),
            text("resourceVersion")
        ),
    }
}
