//! Tests the faults that end, freeze, split or delay the body of a response.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::time::Instant;

use super::{PODS, WATCH, chunks, created_trace, hits, open, planned};
use crate::ask::{Watch, get, pod, pods};

#[tokio::test(start_paused = true)]
async fn a_watch_is_cut_broken_or_frozen_after_the_given_number_of_events() {
    let server = planned(
        "watch pods: cut after 2 events x1; watch pods: break after 1 events skip=1 x1; watch pods: freeze after 1 events skip=2 x1",
    );
    assert_eq!(
        created_trace(&server, &["b", "c"]).await,
        "ADDED b 2\nADDED c 3\nend\n"
    );
    let mut broken = Watch::open(&server, WATCH).await;
    assert_eq!(
        broken.trace().await,
        "ADDED b 2\nbroken: the response was broken by a fault\nend\n"
    );
    let mut frozen = Watch::open(&server, WATCH).await;
    assert_eq!(frozen.trace().await, "ADDED b 2\n");
    server.faults().thaw_watches();
    assert_eq!(frozen.trace().await, "ADDED c 3\n");
    let mut healthy = Watch::open(&server, WATCH).await;
    assert_eq!(healthy.trace().await, "ADDED b 2\nADDED c 3\n");
    assert_eq!(
        hits(&server),
        [
            "cut after 2 events",
            "break after 1 events",
            "freeze after 1 events",
            ""
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_ends_after_the_given_number_of_bytes_inside_an_object() {
    let server = planned("list pods: cut after 30 bytes; watch *: cut after 90 bytes");
    let list = get(&server, PODS).await;
    assert_eq!(
        (list.code, list.text.as_str()),
        (200, r#"{"kind":"PodList","apiVersion""#)
    );
    server.create(pod("b")).unwrap();
    let (sent, ended) = chunks(&mut open(&server, WATCH).await).await;
    assert_eq!((sent.concat().len(), ended), (90, true));
    assert!(sent.concat().starts_with(b"{\"type\":\"ADDED\""));
}

#[tokio::test(start_paused = true)]
async fn a_frozen_list_continues_when_faults_are_cleared() {
    let server = planned("list pods: freeze after 10 bytes");
    let mut body = open(&server, PODS).await;
    let (start, ended) = chunks(&mut body).await;
    assert_eq!((start.concat().len(), ended), (10, false));
    server.faults().clear();
    let (rest, ended) = chunks(&mut body).await;
    assert!(ended);
    let list = [start.concat(), rest.concat()].concat();
    let list: Value = serde_json::from_slice(&list).expect("no byte is lost");
    assert_eq!(list["items"][0]["metadata"]["name"], "a");
}

#[tokio::test(start_paused = true)]
async fn a_body_is_split_as_the_plan_states_and_its_content_is_unchanged() {
    let whole = get(&pods(&["a"]), PODS).await.text;
    let sizes = |chunks: &[Bytes]| -> Vec<usize> { chunks.iter().map(Bytes::len).collect() };

    let (sent, _) = chunks(&mut open(&planned("* *: split every 7 bytes"), PODS).await).await;
    assert_eq!(sent.concat(), whole.as_bytes());
    let (last, others) = sizes(&sent)
        .split_last()
        .map(|(l, o)| (*l, o.to_vec()))
        .unwrap();
    assert!(
        last <= 7 && others.iter().all(|size| *size == 7),
        "{others:?}"
    );

    let (sent, _) = chunks(&mut open(&planned("* *: split at 1,20"), PODS).await).await;
    assert_eq!(sent.concat(), whole.as_bytes());
    assert_eq!(sizes(&sent), [1, 19, whole.len() - 20]);

    let server = planned("* *: split randomly");
    let (sent, _) = chunks(&mut open(&server, PODS).await).await;
    assert_eq!(sent.concat(), whole.as_bytes());
    assert!(sent.len() > whole.len() / 64, "{:?}", sizes(&sent));
    assert_eq!(hits(&server), ["split randomly"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_split_inside_its_events_delivers_all_of_them() {
    let server = planned("watch pods: split every 11 bytes");
    assert_eq!(
        created_trace(&server, &["b", "c"]).await,
        "ADDED b 2\nADDED c 3\n"
    );
    let (sent, ended) = chunks(&mut open(&server, WATCH).await).await;
    assert!(!ended && sent.iter().all(|chunk| chunk.len() <= 11));
}

#[tokio::test(start_paused = true)]
async fn responses_first_bytes_and_events_are_delayed() {
    let server =
        planned("list *: delay 5s; watch *: delay first byte 2s; watch *: delay each event 3s");
    let start = Instant::now();
    assert_eq!(get(&server, PODS).await.code, 200);
    assert_eq!(start.elapsed(), Duration::from_secs(5));

    server.create(pod("b")).unwrap();
    server.create(pod("c")).unwrap();
    let start = Instant::now();
    let mut body = open(&server, WATCH).await;
    assert_eq!(start.elapsed(), Duration::ZERO, "headers are not delayed");
    let mut at = Vec::new();
    for _ in 0..2 {
        body.frame().await.expect("an event").unwrap();
        at.push(start.elapsed().as_secs());
    }
    assert_eq!(at, [5, 8]);
    server.faults().cut_watches();
    assert!(body.frame().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_cut_does_not_wait_for_a_delay() {
    let server = planned("watch *: delay each event 1h");
    let mut watch = Watch::open(&server, WATCH).await;
    server.create(pod("b")).unwrap();
    assert_eq!(watch.trace().await, "");
    server.faults().cut_watches();
    assert_eq!(watch.trace().await, "end\n");
}
