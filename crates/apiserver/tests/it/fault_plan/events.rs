//! Tests the faults that drop, duplicate, reorder or corrupt the events of a watch.

use std::time::Duration;

use serde_json::Value;

use super::{STREAMED, WATCH, chunks, created_trace, hits, open, planned};
use crate::ask::{Watch, pod};

#[tokio::test(start_paused = true)]
async fn all_bookmarks_or_only_the_closing_one_are_dropped() {
    let server = planned("watch pods: drop end-bookmark x1; watch pods: drop bookmarks");
    let mut unended = Watch::open(&server, STREAMED).await;
    assert_eq!(unended.trace().await, "ADDED a 1\n");
    let server = planned("watch pods: drop end-bookmark");
    let mut unended = Watch::open(&server, STREAMED).await;
    server.faults().send_bookmarks();
    assert_eq!(unended.trace().await, "ADDED a 1\nBOOKMARK 1\n");
    let server = planned("watch pods: drop bookmarks");
    let mut without = Watch::open(&server, WATCH).await;
    server.faults().send_bookmarks();
    server.create(pod("b")).unwrap();
    assert_eq!(
        without.trace_for(Duration::from_secs(300)).await,
        "ADDED b 2\n"
    );
    assert_eq!(hits(&server), ["drop bookmarks"]);
}

#[tokio::test(start_paused = true)]
async fn events_are_dropped_duplicated_swapped_and_corrupted_as_the_plan_states() {
    let names = ["b", "c", "d", "e"];
    for (plan, expected) in [
        ("drop event 2", "ADDED b 2\nADDED d 4\nADDED e 5\n"),
        (
            "duplicate every 2 events",
            "ADDED b 2\nADDED c 3\nADDED c 3\nADDED d 4\nADDED e 5\nADDED e 5\n",
        ),
        (
            "swap event 2",
            "ADDED b 2\nADDED d 4\nADDED c 3\nADDED e 5\n",
        ),
        (
            "swap events",
            "ADDED c 3\nADDED b 2\nADDED e 5\nADDED d 4\n",
        ),
        (
            "retype event 1",
            "MOVED b 2\nADDED c 3\nADDED d 4\nADDED e 5\n",
        ),
        (
            "send \"garbage\\n\" after 1 event",
            "ADDED b 2\nundecodable garbage\nADDED c 3\nADDED d 4\nADDED e 5\n",
        ),
        ("drop 100% of events", ""),
    ] {
        let server = planned(&format!("watch pods: {plan}"));
        assert_eq!(created_trace(&server, &names).await, expected, "{plan}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_garbled_event_is_the_first_half_of_its_line() {
    let whole = planned("watch nodes: drop events");
    let garbled = planned("watch pods: garble event 1");
    for server in [&whole, &garbled] {
        server.create(pod("b")).unwrap();
    }
    let (whole, _) = chunks(&mut open(&whole, WATCH).await).await;
    let (garbled, _) = chunks(&mut open(&garbled, WATCH).await).await;
    let half = [&whole.concat()[..whole.concat().len() / 2], b"\n"].concat();
    assert_eq!(garbled.concat(), half);
}

#[tokio::test(start_paused = true)]
async fn a_spoiled_object_keeps_its_name_and_cannot_be_decoded() {
    let server = planned("watch pods: spoil event 1");
    server.create(pod("b")).unwrap();
    let (sent, _) = chunks(&mut open(&server, WATCH).await).await;
    assert!(
        sent.concat()
            .starts_with(b"{\"type\":\"ADDED\",\"object\":")
    );
    let event: Value = serde_json::from_slice(&sent.concat()).expect("it is JSON");
    let object = &event["object"];
    assert_eq!(object["metadata"]["name"], "b");
    assert_eq!(object["metadata"]["resourceVersion"], "2");
    let decoded = serde_json::from_value::<k8s_openapi::api::core::v1::Pod>(object.clone());
    assert!(decoded.is_err());
}
