//! [`Host`]: the embedded server that a client of this sequence talks to, and the list of what it asked.
//!
//! Each side has one of its own, and both are given the same operations, so revisions are the same. No
//! time passes in it: what it does follows from operations and requests alone, however long a client
//! pauses. What its watches have to say is handed out with the operation or the answer that caused it.

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

/// The server, with its open watches.
pub(super) struct Host {
    server: Server,
    operations: Vec<Operation>,
    streams: BTreeMap<u64, Stream>,
    /// How many there have been.
    opened: u64,
    /// Whether clients want lists to be streamed.
    streams_lists: bool,
    /// So many connections are refused.
    refusals: u64,
    /// What happens to the events that are handed out now.
    twist: Option<Twist>,
    /// When the last thing happened that a client may pause after.
    last: Duration,
    /// The continue token of the page that was sent last.
    token: String,
    lines: Vec<Line>,
    /// Its clock stands still. Last, for what waits in it goes first.
    runtime: Runtime,
}

/// A watch whose answer goes on.
struct Stream {
    body: Body,
    /// It was asked for a list, and has not told its end.
    unfinished: bool,
}

/// What a turn of an operation did.
#[derive(Debug, Default, Serialize)]
pub(super) struct Happened {
    pub(super) delivers: Vec<Delivery>,
    /// Milliseconds, in which everyone goes on.
    pub(super) pass: u64,
    /// Whether there is another turn.
    pub(super) more: bool,
}

/// An answer, or what became of the connection.
#[derive(Debug, Default, Serialize)]
pub(super) struct Answered {
    /// `refused`, `reset` or nothing.
    pub(super) failure: &'static str,
    pub(super) status: u16,
    pub(super) headers: BTreeMap<String, String>,
    #[serde(flatten)]
    pub(super) delivery: Delivery,
}

/// What comes of a body.
#[derive(Debug, Default, Serialize)]
pub(super) struct Delivery {
    pub(super) stream: u64,
    pub(super) bytes: String,
    /// `closed`, `broken` or nothing.
    pub(super) end: &'static str,
}

impl Host {
    pub(super) fn new(sequence: &Sequence) -> Self {
        let runtime = runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without a driver for I/O asks nothing of the system");
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

    /// The requests since the last call.
    pub(super) fn take(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.lines)
    }

    /// Carries a turn of an operation out, at a time of the client's.
    pub(super) fn operate(&mut self, at: usize, turn: usize, now: Duration) -> Happened {
        let operation = self.operations[at].clone();
        let trigger = Trigger::of(operation.verb);
        self.last = now;
        let mut delivers = Vec::new();
        if turn == 0 {
            // What of the last operation has not hit anything is void.
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
        injected.expect("what is drawn is a plan");
    }

    /// What happens to objects.
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
        made.expect("nothing that is drawn is refused");
    }

    /// Answers a request, made at a time of the client's.
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
            .expect("a client asks for what it has built");
        let response = {
            let _entered = self.runtime.enter();
            let mut answering = self.server.call(request);
            let answer = at_once(|context| answering.as_mut().poll(context));
            answer.expect("nothing that is drawn delays an answer")
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

    /// Nobody reads this stream any more.
    pub(super) fn leave(&mut self, stream: u64) {
        self.streams.remove(&stream);
    }

    /// What all streams have to say.
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

    /// Ends the streams that have not told the end of their list.
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

    /// What a body has to say now.
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

/// Polls once, outside of any task's budget.
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

/// Where a list goes on, if it does.
fn token(list: &str) -> String {
    let list: Value = serde_json::from_str(list).unwrap_or_default();
    let token = &list["metadata"]["continue"];
    token.as_str().unwrap_or_default().to_owned()
}
