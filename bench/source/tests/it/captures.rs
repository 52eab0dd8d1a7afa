//! Compares responses of the benchmark's object server with recorded responses of kube-apiserver.
//!
//! `captures/capture.py` recorded the responses in `captures/`. The tests assert that the responses of both
//! servers have the same headers, and the same JSON before, between and after the objects. They also assert
//! that the chunks of each body end where Go's HTTP server would end them.

mod wire;
mod writes;

use std::collections::BTreeSet;

use http_body_util::BodyExt as _;
use source::CorpusKind;

use self::wire::{Protocol, Wire};
use self::writes::{Body, Write};
use crate::served::Served;

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const PROTOBUF_EVENTS: &str = "application/vnd.kubernetes.protobuf;stream=watch";
const STREAMING: &str =
    "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

/// A recorded response of kube-apiserver, and its request.
#[derive(Clone, Copy)]
struct Case {
    capture: &'static str,
    kind: CorpusKind,
    query: &'static str,
    accept: &'static str,
    protocol: Protocol,
}

const fn case(
    capture: &'static str,
    kind: CorpusKind,
    query: &'static str,
    accept: &'static str,
) -> Case {
    Case {
        capture,
        kind,
        query,
        accept,
        protocol: Protocol::Http1,
    }
}

const fn over_http2(case: Case) -> Case {
    Case {
        protocol: Protocol::Http2,
        ..case
    }
}

const CASES: [Case; 11] = {
    use CorpusKind::{Configmaps, Custom, Pods};
    [
        case("pods-list-json", Pods, "", JSON),
        case("pods-page-json", Pods, "?limit=10", JSON),
        case("pods-list-protobuf", Pods, "", PROTOBUF),
        case("pods-watch-json", Pods, STREAMING, JSON),
        case("pods-watch-protobuf", Pods, STREAMING, PROTOBUF_EVENTS),
        over_http2(case("pods-list-json-http2", Pods, "", JSON)),
        over_http2(case("pods-watch-json-http2", Pods, STREAMING, JSON)),
        case("configmaps-list-json", Configmaps, "", JSON),
        case("configmaps-watch-json", Configmaps, STREAMING, JSON),
        case("applications-list-json", Custom, "", JSON),
        case("applications-watch-json", Custom, STREAMING, JSON),
    ]
};

impl Case {
    fn body(&self) -> Body {
        match (self.query.contains("watch"), self.accept == JSON) {
            (false, true) => Body::JsonList,
            (false, false) => Body::ProtobufList,
            (true, true) => Body::JsonEvents,
            (true, false) => Body::ProtobufEvents,
        }
    }

    /// Starts an object server, sends the request of this case, and returns the server's response.
    ///
    /// If the request is a watch, the method changes three objects while the watch is open, and then ends the
    /// watch.
    async fn served(&self) -> Wire {
        let served = Served::new(self.kind, 60).await;
        let path = format!("{}{}", self.kind.kind().path(), self.query);
        let changes = async {
            if self.query.contains("watch") {
                for changes in 0..3 {
                    // Each is sent before the next is made, as in the capture.
                    let sent = 61 + changes;
                    while served.get("/stats").await.1["events"] != sent {
                        tokio::task::yield_now().await;
                    }
                    served.post("/emit?n=1").await;
                }
                while served.get("/stats").await.1["events"] != 64 {
                    tokio::task::yield_now().await;
                }
                served.post("/cut").await;
            }
        };
        let wire = async {
            match self.protocol {
                Protocol::Http1 => Wire::ask(&served.uri, &path, self.accept).await,
                Protocol::Http2 => over_http2_from(&served, &path, self.accept).await,
            }
        };
        tokio::join!(wire, changes).0
    }
}

/// Requests `path` over HTTP/2, and returns the received DATA frames.
async fn over_http2_from(served: &Served, path: &str, accept: &str) -> Wire {
    let answer = served.ask_http2(path, accept).await;
    let mut body = answer.into_body();
    let mut chunks = Vec::new();
    while let Some(frame) = body.frame().await {
        let data = frame.unwrap().into_data().unwrap();
        chunks.extend((!data.is_empty()).then(|| data.to_vec()));
    }
    Wire {
        protocol: Protocol::Http2,
        headers: BTreeSet::new(),
        chunks,
    }
}

/// Returns the lengths of the chunks in which Go's HTTP server sends `writes`, if its buffer has `buffer`
/// bytes.
///
/// After a write with `may_flush`, timing decides whether Go sends its buffer. The function therefore uses
/// `chunks`, the chunks of the response under test. If one of them ends with the write, the function assumes
/// that Go sends the buffer.
fn chunks_of(writes: &[Write], buffer: usize, chunks: &[Vec<u8>]) -> Vec<usize> {
    let ends: BTreeSet<usize> = chunks
        .iter()
        .scan(0, |end, chunk| {
            *end += chunk.len();
            Some(*end)
        })
        .collect();
    let (mut lengths, mut buffered, mut at) = (Vec::new(), 0, 0);
    for write in writes {
        let mut left = write.bytes;
        while left > buffer - buffered {
            if buffered == 0 {
                lengths.push(left);
                left = 0;
            } else {
                lengths.push(buffer);
                left -= buffer - buffered;
                buffered = 0;
            }
        }
        buffered += left;
        at += write.bytes;
        if write.may_flush && buffered > 0 && ends.contains(&at) {
            lengths.push(buffered);
            buffered = 0;
        }
    }
    lengths.extend((buffered > 0).then_some(buffered));
    lengths
}

fn check_chunks(wire: &Wire, body: Body, what: &str) {
    let bytes = wire.chunks.concat();
    let writes = body.writes(&bytes);
    let total: usize = writes.iter().map(|write| write.bytes).sum();
    assert_eq!(total, bytes.len(), "{what}");
    let buffer = match wire.protocol {
        Protocol::Http1 => 2_048,
        Protocol::Http2 => 4_096,
    };
    let lengths: Vec<_> = wire.chunks.iter().map(Vec::len).collect();
    assert_eq!(
        lengths,
        chunks_of(&writes, buffer, &wire.chunks),
        "{what}: chunks on the left, those of Go's server on the right"
    );
}

#[test]
fn captured_chunks_follow_from_the_writes_of_go() {
    for case in CASES {
        let wire = Wire::captured(case.capture);
        assert_eq!(wire.protocol, case.protocol, "{}", case.capture);
        check_chunks(&wire, case.body(), case.capture);
    }
}

#[tokio::test]
async fn served_chunks_end_where_those_of_kube_apiserver_do() {
    for case in CASES {
        let wire = case.served().await;
        assert!(wire.chunks.len() > 10, "{}", case.capture);
        check_chunks(&wire, case.body(), case.capture);
    }
}

#[tokio::test]
async fn served_bodies_have_the_shape_of_captured_ones() {
    for case in CASES {
        let (captured, served) = (Wire::captured(case.capture), case.served().await);
        assert_eq!(served.headers, captured.headers, "{}", case.capture);
        let shape = |wire: &Wire| case.body().shape(&wire.chunks.concat());
        assert_eq!(shape(&served), shape(&captured), "{}", case.capture);
    }
}

#[tokio::test]
async fn a_lone_event_is_sent_at_once_and_as_one_chunk() {
    let case = case("", CorpusKind::Pods, STREAMING, JSON);
    let wire = case.served().await;
    let last = &wire.chunks[wire.chunks.len() - 4..];
    let types: Vec<_> = last.iter().map(|chunk| writes::event_type(chunk)).collect();
    assert_eq!(types, ["BOOKMARK", "MODIFIED", "MODIFIED", "MODIFIED"]);
    assert!(last.iter().all(|chunk| chunk.ends_with(b"}\n")));
}
