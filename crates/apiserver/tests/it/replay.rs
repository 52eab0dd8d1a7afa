//! Tests the repetition of recorded watch events.

use serde_json::{Value, json};

use crate::ask::{Watch, builder, pod};
#[cfg(feature = "persistence")]
use crate::persistence::scratch;

fn recorded(event_type: &str, name: &str, revision: u64) -> Value {
    let mut object = pod(name);
    let metadata = &mut object["metadata"];
    metadata["uid"] = json!(format!("uid-{name}"));
    metadata["resourceVersion"] = json!(revision.to_string());
    metadata["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
    json!({"type": event_type, "object": object})
}

#[tokio::test(start_paused = true)]
async fn recorded_events_keep_their_revisions_uids_and_times() {
    let server = builder().build();
    let mut watch = Watch::open(&server, "/api/v1/pods?watch=1&resourceVersion=1").await;
    let bookmark = json!({"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "250"}}});
    let events = [
        recorded("ADDED", "a", 100),
        recorded("ADDED", "b", 207),
        recorded("MODIFIED", "a", 208),
        bookmark,
        recorded("DELETED", "b", 300),
    ];
    assert_eq!(server.replay(events.clone()).unwrap(), 4);
    assert_eq!(server.revision(), 300);
    let expected = "ADDED a 100\nADDED b 207\nMODIFIED a 208\nDELETED b 300\n";
    assert_eq!(watch.trace().await, expected);
    let mut expected = events[2]["object"].clone();
    let stored = server.get("v1", "pods", "default/a").unwrap();
    for member in ["uid", "creationTimestamp", "resourceVersion"] {
        assert_eq!(
            stored["metadata"][member],
            expected["metadata"][member].take()
        );
    }
    let next = server.create(pod("c")).unwrap();
    assert_eq!(next["metadata"]["resourceVersion"], "301");
    let between = server.snapshot_at(207).unwrap();
    assert_eq!(between.list("v1", "pods").len(), 2);
}

#[test]
fn an_event_that_cannot_be_repeated_is_an_error_and_stores_nothing() {
    let server = builder().build();
    server.replay([recorded("ADDED", "a", 100)]).unwrap();
    let without = |member: &str| {
        let mut event = recorded("ADDED", "b", 200);
        event["object"]["metadata"]
            .as_object_mut()
            .unwrap()
            .remove(member);
        event
    };
    let mut nested = recorded("ADDED", "b", 200);
    nested["object"]["metadata"]["name"] = json!("x/y");
    for (event, expected) in [
        (
            recorded("ERROR", "a", 200),
            "an event of the type \"ERROR\"",
        ),
        (
            recorded("ADDED", "b", 100),
            "default/b at the revision 100: the server is at 100",
        ),
        (
            recorded("DELETED", "b", 200),
            "the deletion of default/b, which is not stored",
        ),
        (without("uid"), "default/b, which has no uid"),
        (without("resourceVersion"), "default/b at the revision \"\""),
        (without("name"), "an object with the key \"default/\""),
        (without("namespace"), "an object with the key \"/b\""),
        (nested, "an object with the key \"default/x/y\""),
    ] {
        let last = recorded("ADDED", "c", 900);
        let error = server.replay([event, last]).unwrap_err();
        assert_eq!(
            error.status().message,
            format!("the server can't repeat {expected}")
        );
        assert_eq!(error.code(), 400);
    }
    let unknown = json!({"type": "ADDED", "object": {"apiVersion": "v9", "kind": "None"}});
    assert_eq!(server.replay([unknown]).unwrap_err().code(), 404);
    assert_eq!(server.revision(), 100);
    assert_eq!(server.list("v1", "pods").len(), 1);
}

#[test]
fn revisions_go_back_with_a_restart_to_an_older_one() {
    let server = builder().build();
    let events = [recorded("ADDED", "a", 100), recorded("ADDED", "b", 200)];
    server.replay(events).unwrap();
    server.faults().restart_at(100).unwrap();
    let next = server.create(pod("c")).unwrap();
    assert_eq!(next["metadata"]["resourceVersion"], "101");
}

#[cfg(feature = "persistence")]
#[test]
fn repeated_events_survive_a_restart() {
    let directory = scratch("repeated_events");
    let server = builder().open(&directory).unwrap();
    let events = [recorded("ADDED", "a", 100), recorded("ADDED", "b", 200)];
    server.replay(events).unwrap();
    server.create(pod("c")).unwrap();
    let objects = server.list("v1", "pods");
    drop(server);
    let server = builder().open(&directory).unwrap();
    assert_eq!(server.list("v1", "pods"), objects);
    assert_eq!(server.revision(), 201);
}
