//! Tests that the server ends slow lists and watches that keep too many old objects in memory.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower_service::Service as _;

use crate::body::Body;
use crate::server::Server;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, value: usize) -> Value {
    let metadata = json!({"name": name, "namespace": "default"});
    let data = json!({"value": value.to_string(), "x": "y".repeat(10_000)});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
}

async fn ask(server: &Server, uri: &str) -> Body {
    let request = Request::get(uri).body(Full::<Bytes>::default());
    let response = server.clone().call(request.unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body()
}

#[tokio::test(start_paused = true)]
async fn slow_readers_of_old_states_are_ended_and_others_are_not() {
    let watch = format!("{MAPS}?watch=1&resourceVersion=11");
    let nodes = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
    let server = Server::builder()
        .seed((0..10).map(|nth| map(&format!("m{nth}"), 0)).chain([nodes]))
        .build();
    server
        .shared()
        .lock()
        .storage
        .bound_history(250_000, 50_000);
    let mut read = ask(&server, &watch).await;
    let mut round = async |value: usize| {
        for nth in 0..10 {
            server.update(map(&format!("m{nth}"), value)).unwrap();
            let event = read.frame().await.unwrap().unwrap();
            drop(event);
        }
    };
    let quiet = ask(
        &server,
        "/api/v1/nodes?watch=1&resourceVersion=11&timeoutSeconds=9",
    )
    .await;
    let list = ask(&server, MAPS).await;
    let backlog = ask(&server, &format!("{MAPS}?watch=1&resourceVersion=5")).await;
    let live = ask(&server, &watch).await;
    // Each list holds the ten objects in their current state.
    let mut lists = vec![list];
    for value in 1..10 {
        tokio::time::advance(std::time::Duration::from_millis(1)).await;
        lists.push(ask(&server, MAPS).await);
        let slow = ask(&server, MAPS).await;
        round(value).await;
        let list = slow.collect().await.expect("the list is complete");
        let list: Value = serde_json::from_slice(&list.to_bytes()).unwrap();
        assert_eq!(list["items"][0]["data"]["value"], (value - 1).to_string());
    }
    for stopped in [lists.remove(0), backlog] {
        let error = stopped.collect().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the client did not read the response in time"
        );
    }
    let rest = live
        .collect()
        .await
        .expect("a slow watch ends without an error");
    assert_eq!(rest.to_bytes(), "", "unread events are dropped");
    quiet.collect().await.expect("it holds no old state");
    round(10).await;
}
