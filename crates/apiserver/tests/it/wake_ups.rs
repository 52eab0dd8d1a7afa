//! Tests that every operation that affects an open watch wakes the task that reads the watch.
//!
//! Such operations are writes, and faults such as the end of the watch.

use std::pin::Pin;

use bytes::Bytes;
use http_body::Body as _;
use http_body_util::Full;
use kube_informer_apiserver::{Body, Server};
use tokio_test::task::{self, Spawn};
use tower_service::Service;

use crate::ask::{pod, pods, request};

const WATCH: &str = "/api/v1/pods?watch=1&resourceVersion=1&allowWatchBookmarks=true";

/// An operation on the server that affects an open watch, for example a write.
type Order = fn(&Server);

/// Opens a watch, and asserts that no data is available yet.
async fn waiting(server: &Server) -> Spawn<Body> {
    let request = request("GET", WATCH)
        .body(Full::<Bytes>::default())
        .unwrap();
    let response = server.clone().call(request).await.unwrap();
    let mut body = task::spawn(response.into_body());
    assert!(body.enter(|cx, body| body.poll_frame(cx)).is_pending());
    assert!(!body.is_woken());
    body
}

/// Polls until no data is available, and returns whether a poll returned anything.
fn drain(body: &mut Spawn<Body>) -> bool {
    let mut came = false;
    loop {
        let polled = body.enter(|cx, body: Pin<&mut Body>| body.poll_frame(cx));
        match polled {
            std::task::Poll::Ready(Some(Ok(_))) => came = true,
            std::task::Poll::Ready(Some(Err(_)) | None) => return true,
            std::task::Poll::Pending if body.is_woken() => {}
            std::task::Poll::Pending => return came,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_is_woken_by_events_and_by_every_operation() {
    let orders: [(&str, Order); 7] = [
        ("an event", |server| drop(server.create(pod("b")).unwrap())),
        ("a cut", |server| server.faults().cut_watches()),
        ("a break", |server| server.faults().break_watches()),
        ("a bookmark", |server| server.faults().send_bookmarks()),
        ("raw bytes", |server| {
            server.faults().send_raw_to_watches("x");
        }),
        ("a slow watch", |server| {
            server.faults().close_slow_watches();
        }),
        ("a restart", |server| server.faults().restart()),
    ];
    for (name, order) in orders {
        let server = pods(&["a"]);
        let mut body = waiting(&server).await;
        order(&server);
        assert!(body.is_woken(), "{name}");
        assert!(drain(&mut body), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_frozen_reader_is_woken_by_the_thaw() {
    let thaws: [Order; 2] = [
        |server| server.faults().thaw_watches(),
        |server| server.faults().clear(),
    ];
    for thaw in thaws {
        let server = pods(&["a"]);
        let mut body = waiting(&server).await;
        server.faults().freeze_watches();
        server.create(pod("b")).unwrap();
        assert!(!drain(&mut body), "a frozen watch sends nothing");
        assert!(!body.is_woken());
        thaw(&server);
        assert!(body.is_woken());
        assert!(drain(&mut body));
    }
}
