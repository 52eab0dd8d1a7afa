//! Runs the embedded server for one reflector, and records the reflector's requests.
//!
//! client-go's reflector and the library's reflector use separate hosts. Both hosts execute the same
//! operations, so the revisions on both are equal. The clock of a host is paused, so the length of the
//! reflector's pauses does not affect the host.
//!
//! Watch events are sent only during calls of [`Host::operate`] and [`Host::request`], whose results contain
//! the events.

use std::{
    collections::BTreeMap,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http_body::Body as _;
use http_body_util::Empty;
use kube_informer_apiserver::{Body, Server};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::runtime::{self, Runtime};
use tower_service::Service as _;

use super::{
    STREAMING,
    line::{Line, Outcome},
    trigger::{RECOVERY, Trigger, Twist},
};
use crate::sequence::{Operation, Sequence, Thing};

/// The embedded server for one reflector, with a record of the requests.
pub(super) struct Host {
    server: Server,
    operations: Vec<Operation>,
    streams: BTreeMap<u64, Stream>,
    /// Number of responses so far, which is also the number of the newest response body.
    opened: u64,
    streams_lists: bool,
    /// Number of upcoming requests for which the host still refuses the connection.
    refusals: u64,
    /// Change to apply to the watch events of the current operation.
    twist: Option<Twist>,
    /// Time on the reflector's clock at the last request or test operation, whichever is later.
    last: Duration,
    /// Continue token of the last list response; empty if the response had none.
    token: String,
    lines: Vec<Line>,
    /// Runtime of the server, with a paused clock.
    ///
    /// Must be the last field, so that it is dropped after the server and the open watches.
    runtime: Runtime,
}

/// The open response body of a watch.
struct Stream {
    body: Body,
    /// Whether the watch is a streaming list whose final bookmark has not been sent.
    unfinished: bool,
}

/// The result of [`Host::operate`], which executes one step (turn) of an operation.
#[derive(Debug, Default, Serialize)]
pub(super) struct Happened {
    pub(super) delivers: Vec<Delivery>,
    /// Virtual time, in milliseconds, by which the reflector's clock must advance after this step.
    pub(super) pass: u64,
    /// Whether the operation has another step.
    pub(super) more: bool,
}

/// The response to a request, or the failure of its connection.
#[derive(Debug, Default, Serialize)]
pub(super) struct Answered {
    /// `refused` or `reset` if the connection failed; empty if there is a response.
    pub(super) failure: &'static str,
    pub(super) status: u16,
    pub(super) headers: BTreeMap<String, String>,
    #[serde(flatten)]
    pub(super) delivery: Delivery,
}

/// The pending bytes of one response body, and the end of the body, if reached.
#[derive(Debug, Default, Serialize)]
pub(super) struct Delivery {
    pub(super) stream: u64,
    pub(super) bytes: String,
    /// `closed` after the end of the body, `broken` after a connection failure, otherwise empty.
    pub(super) end: &'static str,
}

impl Host {
    pub(super) fn new(sequence: &Sequence) -> Self {
        let runtime = runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without an I/O driver can be built");
        Self {
            // Sequences write to any namespace and create none.
            server: Server::builder()
                .enforce_namespaces(false)
                .rng_seed(1)
                .build(),
            operations: sequence.operations.clone(),
            streams: BTreeMap::new(),
            opened: 0,
            streams_lists: sequence.has(STREAMING),
            refusals: 0,
            twist: None,
            last: Duration::ZERO,
            token: String::new(),
            lines: Vec::new(),
            runtime,
        }
    }

    /// Returns and removes the recorded requests.
    pub(super) fn take(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.lines)
    }

    /// Executes one turn, which is a step of an operation.
    ///
    /// `at` is the index of the operation in the test sequence. `turn` is the index of the turn in the
    /// operation: 0 or 1. `now` is the time on the reflector's clock. After the call, the caller must advance
    /// this clock by [`Happened::pass`].
    pub(super) fn operate(&mut self, at: usize, turn: usize, now: Duration) -> Happened {
        let operation = self.operations[at].clone();
        let trigger = Trigger::of(operation.verb);
        self.last = now;
        let mut delivers = Vec::new();
        if turn == 0 {
            // Faults of the last operation that have had no effect yet are removed.
            self.server.faults().clear();
            self.refusals = operation.number;
            for plan in [trigger.rules, operation.text.as_str()] {
                self.inject(plan);
            }
        }
        if turn == 0 {
            self.change(&operation);
            for change in &operation.batch {
                self.change(change);
            }
        }
        self.twist = trigger.twist;
        for plan in trigger.turns[turn] {
            self.inject(plan);
            delivers.extend(self.drain());
        }
        delivers.extend(self.drain());
        self.twist = None;
        if trigger.ends_unfinished && turn > 0 {
            delivers.extend(self.end_unfinished());
        }
        Happened {
            delivers,
            pass: if self.streams_lists {
                trigger.pass[turn]
            } else {
                trigger.pass[turn].min(RECOVERY)
            },
            more: turn + 1 < trigger.turns.len(),
        }
    }

    fn inject(&self, plan: &str) {
        let injected = self.server.faults().inject(plan);
        injected.expect("a drawn plan is valid");
    }

    fn change(&self, operation: &Operation) {
        let Some(thing) = &operation.thing else {
            return;
        };
        let (namespace, name) = thing.key.split_once('/').unwrap_or(("default", &thing.key));
        let key = format!("{namespace}/{name}");
        let is_there = self.server.get("v1", "configmaps", &key).is_some();
        let made = match operation.verb {
            "remove" if is_there => self.server.delete("v1", "configmaps", &key),
            "remove" => return,
            "elsewhere" => self
                .server
                .create(object("Secret", namespace, &thing.revision, thing)),
            _ if is_there => {
                let change = json!({"data": {"at": thing.revision}});
                self.server.patch("v1", "configmaps", &key, change)
            }
            _ => self
                .server
                .create(object("ConfigMap", namespace, name, thing)),
        };
        made.expect("no drawn change is rejected");
    }

    /// Responds to a request and records it. `now` is the time on the reflector's clock.
    pub(super) fn request(&mut self, path: &str, query: &str, now: Duration) -> Answered {
        let pause = now.saturating_sub(self.last);
        self.last = now;
        let mut line = Line::new(path, query, pause, &self.token);
        let answered = self.answer(&format!("{path}?{query}"), &mut line);
        self.lines.push(line);
        answered
    }

    fn answer(&mut self, uri: &str, line: &mut Line) -> Answered {
        if self.refusals > 0 {
            self.refusals -= 1;
            line.outcome = Outcome::Refused;
            return Answered {
                failure: "refused",
                ..Answered::default()
            };
        }
        let request = http::Request::get(uri)
            .header(http::header::ACCEPT, "application/json")
            .body(Empty::<Bytes>::new())
            .expect("a client's URL is valid");
        let response = {
            let _entered = self.runtime.enter();
            let mut answering = self.server.call(request);
            let answer = at_once(|context| answering.as_mut().poll(context));
            answer.expect("no drawn fault delays a response")
        };
        let Ok(response) = response else {
            line.outcome = Outcome::Reset;
            return Answered {
                failure: "reset",
                ..Answered::default()
            };
        };
        let (head, body) = response.into_parts();
        let again = head.headers.get(http::header::RETRY_AFTER);
        let again = again.and_then(|seconds| seconds.to_str().ok()?.parse().ok());
        line.outcome = Outcome::Status(head.status.as_u16(), again);
        let headers = head.headers.iter().filter_map(|(name, value)| {
            let value = value.to_str().ok()?.to_owned();
            Some((name.to_string(), value))
        });
        let mut stream = Stream {
            body,
            unfinished: line.is_streaming_list(),
        };
        self.opened += 1;
        let delivery = self.next(self.opened, &mut stream);
        if line.is_list() {
            self.token = token(&delivery.bytes);
        } else if delivery.end.is_empty() {
            self.streams.insert(self.opened, stream);
        } else if head.status.is_success() {
            line.outcome = match line.is_streaming_list() {
                true if !stream.unfinished => Outcome::CompleteAndClosed,
                _ if delivery.bytes.contains("\"code\":410") => Outcome::Expired,
                _ => Outcome::Closed,
            };
        }
        Answered {
            failure: "",
            status: head.status.as_u16(),
            headers: headers.collect(),
            delivery,
        }
    }

    /// Drops the response body `stream`, which the reflector has closed.
    pub(super) fn leave(&mut self, stream: u64) {
        self.streams.remove(&stream);
    }

    /// Returns the pending data of all open watches.
    fn drain(&mut self) -> Vec<Delivery> {
        let mut all = Vec::new();
        for (id, mut stream) in std::mem::take(&mut self.streams) {
            let delivery = self.next(id, &mut stream);
            if delivery.end.is_empty() {
                self.streams.insert(id, stream);
            }
            if !delivery.end.is_empty() || !delivery.bytes.is_empty() {
                all.push(delivery);
            }
        }
        all
    }

    /// Closes all streaming lists that have not sent their final bookmark.
    fn end_unfinished(&mut self) -> Vec<Delivery> {
        let mut ended = Vec::new();
        self.streams.retain(|id, stream| {
            if stream.unfinished {
                ended.push(Delivery {
                    stream: *id,
                    end: "closed",
                    ..Delivery::default()
                });
            }
            !stream.unfinished
        });
        ended
    }

    /// Returns the pending data of the response body `stream`, whose number is `id`.
    fn next(&self, id: u64, stream: &mut Stream) -> Delivery {
        let _entered = self.runtime.enter();
        let mut delivery = Delivery {
            stream: id,
            ..Delivery::default()
        };
        loop {
            let frame = at_once(|context| Pin::new(&mut stream.body).poll_frame(context));
            match frame {
                None => break,
                Some(None) => {
                    delivery.end = "closed";
                    break;
                }
                Some(Some(Err(_))) => {
                    delivery.end = "broken";
                    break;
                }
                Some(Some(Ok(frame))) => {
                    let data = frame.into_data().unwrap_or_default();
                    delivery.bytes += &String::from_utf8_lossy(&data);
                }
            }
        }
        if let Some(twist) = self.twist {
            delivery.bytes = twist.apply(&delivery.bytes);
        }
        stream.unfinished &= !delivery.bytes.contains("k8s.io/initial-events-end");
        delivery
    }
}

/// Polls once, without a waker and without tokio's cooperative budget.
fn at_once<T>(poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
    let mut polled = std::pin::pin!(tokio::task::unconstrained(std::future::poll_fn(poll)));
    let mut context = Context::from_waker(Waker::noop());
    match polled.as_mut().poll(&mut context) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

fn object(kind: &str, namespace: &str, name: &str, thing: &Thing) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"namespace": namespace, "name": name},
        "data": {"at": if kind == "Secret" { "" } else { thing.revision.as_str() }},
    })
}

/// Returns the continue token of a JSON list, or an empty text.
fn token(list: &str) -> String {
    let list: Value = serde_json::from_str(list).unwrap_or_default();
    let token = &list["metadata"]["continue"];
    token.as_str().unwrap_or_default().to_owned()
}
