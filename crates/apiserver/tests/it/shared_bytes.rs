//! Tests that the server encodes each event only once per representation, such as `Table`.
//!
//! The number of watchers that receive the event does not matter.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use kube_informer_apiserver::{Body, Server};
use serde_json::{Value, json};
use tower_service::Service;

use crate::ask::{pod, pods, request};

async fn watch(server: &Server, accept: &str) -> Body {
    let request = request("GET", "/api/v1/pods?watch=1&resourceVersion=1")
        .header("accept", accept)
        .body(Full::<Bytes>::default())
        .unwrap();
    server.clone().call(request).await.unwrap().into_body()
}

async fn next(body: &mut Body) -> Bytes {
    let frame = body.frame().await.unwrap().unwrap();
    frame.into_data().unwrap()
}

/// Asserts that all three watchers receive the same buffer for an event, not copies.
#[tokio::test(start_paused = true)]
async fn an_event_is_encoded_once_for_all_watchers_of_a_representation() {
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let metadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    for (accept, kind) in [
        ("application/json", "Pod"),
        (metadata, "PartialObjectMetadata"),
        (table, "Table"),
    ] {
        let server = pods(&["a"]);
        let mut live = [watch(&server, accept).await, watch(&server, accept).await];
        server.create(pod("b")).unwrap();
        server
            .patch(
                "v1",
                "pods",
                "default/b",
                json!({"metadata": {"labels": {"x": "y"}}}),
            )
            .unwrap();
        server.delete("v1", "pods", "default/b").unwrap();
        let mut late = watch(&server, accept).await;
        for event_type in ["ADDED", "MODIFIED", "DELETED"] {
            let lines = [
                next(&mut live[0]).await,
                next(&mut live[1]).await,
                next(&mut late).await,
            ];
            let event: Value = serde_json::from_slice(&lines[0]).unwrap();
            assert_eq!(
                (&event["type"], &event["object"]["kind"]),
                (&json!(event_type), &json!(kind))
            );
            let places = lines.each_ref().map(|line| line.as_ptr());
            assert_eq!(places, [places[0]; 3], "{kind} {event_type}");
        }
    }
}
