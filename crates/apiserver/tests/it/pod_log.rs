//! Tests logs of pods: which lines a request selects, and what a server without logs responds.

use std::time::Duration;

use futures_util::stream;
use kube_informer_apiserver::{LogLine, LogOf, PodLog, PodLogs, Server};

use crate::ask::{Reply, builder, fixed_time, get, pod};

/// A log with a line each 10 s until now, to which two lines are added.
struct Ticks;

/// Returns the line `number`, which was written `seconds` ago.
fn line(number: u32, seconds: u64) -> LogLine {
    LogLine {
        time: fixed_time() - Duration::from_secs(seconds),
        text: format!("line {number}"),
    }
}

impl PodLogs for Ticks {
    fn open(&self, of: &LogOf) -> Result<PodLog, String> {
        if of.previous {
            return Err(format!(
                "no previous {} in {}/{}",
                of.container, of.namespace, of.pod
            ));
        }
        let more = [line(4, 0), line(5, 0)];
        Ok(PodLog {
            lines: vec![line(1, 30), line(2, 20), line(3, 10)],
            more: Some(Box::pin(stream::iter(more))),
        })
    }
}

/// A server with the pod `a` on a node, and the pod `b` without one.
fn server(has_logs: bool) -> Server {
    let mut on_node = pod("a");
    on_node["spec"]["nodeName"] = "n".into();
    let builder = builder().seed([on_node, pod("b")]);
    if has_logs {
        builder.pod_logs(Ticks).build()
    } else {
        builder.build()
    }
}

async fn log(server: &Server, pod: &str, query: &str) -> Reply {
    let path = format!("/api/v1/namespaces/default/pods/{pod}/log?{query}");
    get(server, &path).await
}

#[tokio::test]
async fn options_select_lines() {
    let server = server(true);
    for (query, expected) in [
        ("", "line 1|line 2|line 3|"),
        ("container=c", "line 1|line 2|line 3|"),
        ("tailLines=2", "line 2|line 3|"),
        ("tailLines=0", ""),
        ("tailLines=9", "line 1|line 2|line 3|"),
        ("sinceSeconds=20", "line 2|line 3|"),
        ("sinceTime=2027-01-15T07:59:45Z", "line 3|"),
        ("limitBytes=10", "line 1|lin"),
        ("follow=true", "line 1|line 2|line 3|line 4|line 5|"),
        ("follow=true&tailLines=0", "line 4|line 5|"),
        ("follow=true&limitBytes=24", "line 1|line 2|line 3|lin"),
        (
            "timestamps=true&tailLines=1",
            "2027-01-15T07:59:50.000000000Z line 3|",
        ),
    ] {
        let reply = log(&server, "a", query).await;
        assert_eq!(reply.code, 200, "{query}");
        assert_eq!(reply.headers["content-type"], "text/plain");
        assert_eq!(reply.text.replace('\n', "|"), expected, "{query}");
    }
}

#[tokio::test]
async fn a_log_that_does_not_exist_is_an_error() {
    let server = server(true);
    for (query, code, message) in [
        ("previous=true", 400, "no previous c in default/a"),
        ("container=x", 400, "container x is not valid for pod a"),
        (
            "limitBytes=0",
            422,
            "PodLogOptions \"a\" is invalid: limitBytes: Invalid value: 0: must be greater than 0",
        ),
        (
            "sinceSeconds=0",
            422,
            "PodLogOptions \"a\" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0",
        ),
    ] {
        let reply = log(&server, "a", query).await;
        assert_eq!((reply.code, reply.message()), (code, message), "{query}");
    }
    let both = log(
        &server,
        "a",
        "sinceSeconds=1&sinceTime=2027-01-15T07:59:45Z",
    )
    .await;
    assert_eq!(both.code, 422);
    assert_eq!(log(&server, "a", "sinceTime=today").await.code, 400);
}

#[tokio::test]
async fn a_pod_without_a_node_has_no_log_and_a_server_without_logs_says_so() {
    assert_eq!(log(&server(true), "b", "").await.code, 204);
    let reply = log(&server(false), "a", "").await;
    assert_eq!(reply.code, 501);
    assert!(
        reply.message().contains("Builder::pod_logs"),
        "{}",
        reply.message()
    );
}
