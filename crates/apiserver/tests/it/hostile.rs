//! Tests that malicious clients can't exhaust the server's resources, and that they do not affect other
//! clients.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use kube_informer_apiserver::{Kind, Scope, Server};
use serde_json::{Value, json};
use tower_service::Service;

use crate::ask::{Reply, Watch, builder, get, pod, pods, request, send, with};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, bytes: usize) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"x": "y".repeat(bytes)},
    })
}

// === What is stored ===

#[tokio::test(start_paused = true)]
async fn no_patch_makes_an_object_larger_than_a_request_may_be() {
    let server = builder().build();
    // A ConfigMap would be limited to 1 MiB.
    let scalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    let target = json!({"apiVersion": "apps/v1", "kind": "x", "name": "y".repeat(2_000_000)});
    let large =
        json!({"metadata": {"name": "m"}, "spec": {"maxReplicas": 1, "scaleTargetRef": target}});
    assert_eq!(with(&server, "POST", scalers, &large).await.code, 201);
    let uri = format!("{scalers}/m");
    let kind = |length: usize| json!({"spec": {"scaleTargetRef": {"kind": "z".repeat(length)}}});
    let merge = kind(1_500_000);
    let add =
        json!([{"op": "add", "path": "/spec/scaleTargetRef/kind", "value": "z".repeat(1_500_000)}]);
    for patch in [merge, add] {
        let refused = with(&server, "PATCH", &uri, &patch).await;
        assert_eq!(
            refused.refusal(),
            "413 RequestEntityTooLarge: Request entity too large: an object's limit is 3145728"
        );
    }
    assert_eq!(
        with(&server, "PATCH", &uri, &kind(1_000_000)).await.code,
        200
    );
    assert_eq!(server.revision(), 3, "a rejected request adds no revision");
}

#[tokio::test(start_paused = true)]
async fn a_full_store_rejects_growth_and_allows_deletions() {
    let builder = builder().storage_quota(104_000);
    let server = builder
        .kubernetes_service(false)
        .managed_fields(false)
        .build();
    let mut stored = 0;
    let full = loop {
        let reply = with(&server, "POST", MAPS, &map(&format!("m{stored}"), 9_000)).await;
        if reply.code != 201 {
            break reply;
        }
        stored += 1;
        assert!(stored < 100, "the limit is never reached");
    };
    assert_eq!(
        full.refusal(),
        "500 -: etcdserver: mvcc: database space exceeded"
    );
    assert_eq!(stored, 10, "the system objects count too");
    let revision = server.revision();
    let m0 = format!("{MAPS}/m0");
    let grows = with(&server, "PUT", &m0, &map("m0", 20_000)).await;
    assert_eq!(grows.code, 500);
    assert_eq!(server.revision(), revision);
    assert_eq!(get(&server, MAPS).await.names().len(), 10);
    let shrinks = with(&server, "PUT", &m0, &map("m0", 10)).await;
    assert_eq!(shrinks.code, 200);
    assert_eq!(
        with(&server, "POST", MAPS, &map("m10", 5_000)).await.code,
        201
    );
    assert_eq!(
        with(&server, "POST", MAPS, &map("m11", 9_000)).await.code,
        500
    );
    assert_eq!(crate::ask::delete(&server, MAPS).await.code, 200);
    assert_eq!(
        with(&server, "POST", MAPS, &map("m11", 9_000)).await.code,
        201
    );
}

// === Numbers ===

#[tokio::test(start_paused = true)]
async fn the_largest_numbers_are_accepted() {
    const MOST: &str = "9223372036854775807";
    let server = pods(&["a"]);
    let mut watch = Watch::open(
        &server,
        &format!(
            "/api/v1/pods?watch=1&resourceVersion=1&timeoutSeconds={MOST}&allowWatchBookmarks=1"
        ),
    )
    .await;
    server.create(pod("b")).unwrap();
    assert_eq!(watch.trace().await, "ADDED b 2\n");
    let begun = tokio::time::Instant::now();
    let day = std::time::Duration::from_secs(24 * 60 * 60);
    let rest = watch.trace_for(2 * day).await;
    assert!(rest.ends_with("end\n"), "{rest}");
    assert!(begun.elapsed().abs_diff(day) < std::time::Duration::from_secs(1));

    let list = get(&server, &format!("/api/v1/pods?limit={MOST}")).await;
    assert_eq!(list.names(), ["a", "b"]);
    let far = "/api/v1/pods?watch=1&resourceVersion=18446744073709551615";
    assert_eq!(Watch::open(&server, far).await.trace().await, "");
    let uri = "/api/v1/namespaces/default/pods/a";
    let node = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}});
    let bound = with(&server, "POST", &format!("{uri}/binding"), &node).await;
    assert_eq!(bound.code, 201);
    for seconds in [MOST, "-9223372036854775808", "1"] {
        let options = format!("{uri}?gracePeriodSeconds={seconds}");
        assert_eq!(crate::ask::delete(&server, &options).await.code, 200);
    }
}

// === Depth and length ===

async fn post(server: &Server, uri: &str, body: impl Into<Bytes>) -> Reply {
    let request = request("POST", uri).header("content-type", "application/json");
    send(server, request.body(Full::new(body.into())).unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn too_deep_nesting_is_rejected_in_every_kind_of_request() {
    let widgets = Kind::custom("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    let server = builder().kind(widgets).build();
    let uri = "/apis/example.com/v1/namespaces/default/widgets";
    let deep = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(
            r#"{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"w"}},"spec":{open}{close}}}"#
        )
    };
    for (levels, why) in [
        (1_000_000, "exceeded max depth"),
        (1_000, "recursion limit exceeded"),
    ] {
        let refused = post(&server, uri, deep(levels)).await;
        assert_eq!(refused.code, 400);
        assert!(refused.message().contains(why), "{}", refused.text);
    }
    assert_eq!(post(&server, uri, deep(100)).await.code, 201);
    // Each patch nests values a little deeper. The patches must not create an object that can't be read.
    let name = format!("{uri}/w");
    let mut path = "/spec".to_owned() + &"/0".repeat(99);
    for _ in 0..10 {
        path += "/-";
        let dig = json!([{"op": "add", "path": path, "value": [[[[[[[[[[[]]]]]]]]]]]}]);
        let dug = with(&server, "PATCH", &name, &dig).await;
        path.truncate(path.len() - 2);
        path += &"/0".repeat(11);
        assert!([200, 422, 400].contains(&dug.code), "{dug:?}");
        let read = get(&server, &name).await;
        assert_eq!((read.code, read.json.is_object()), (200, true));
    }
}

#[tokio::test(start_paused = true)]
async fn the_length_of_field_errors_is_limited() {
    let server = builder().seed([map("m", 1)]).build();
    let name = "n".repeat(500_000);
    let twice: Vec<String> = (0..100)
        .map(|nth| format!(r#","k{nth}":1,"k{nth}":1"#))
        .collect();
    let twice = twice.concat();
    let body = format!(r#"{{"metadata":{{"annotations":{{}}}},"{name}":{{"a":1{twice}}}}}"#);
    let patch = |validation: &str| {
        let uri = format!("{MAPS}/m?fieldValidation={validation}");
        request("PATCH", &uri)
            .header("content-type", "application/merge-patch+json")
            .body(Full::from(body.clone()))
            .unwrap()
    };
    for validation in ["Strict", "Warn"] {
        let reply = send(&server, patch(validation)).await;
        let headers: usize = reply.headers.values().map(http::HeaderValue::len).sum();
        // A rejection contains the resulting object once, and not with each error.
        assert!(reply.text.len() < 4 * body.len(), "{}", reply.text.len());
        assert!(headers < 20_000, "{headers}");
    }
}

#[tokio::test(start_paused = true)]
async fn long_and_many_query_options_are_handled() {
    let server = pods(&["a"]);
    let many = "&x=y".repeat(8_000);
    assert_eq!(
        get(&server, &format!("/api/v1/pods?limit=1{many}"))
            .await
            .code,
        200
    );
    let selector = "a%2C".repeat(7_000);
    assert_eq!(
        get(&server, &format!("/api/v1/pods?labelSelector={selector}a"))
            .await
            .code,
        200
    );
    let open = "(".repeat(20_000);
    let refused = get(&server, &format!("/api/v1/pods?labelSelector=a+in+{open}")).await;
    assert_eq!(refused.code, 400);
    let token = "A".repeat(30_000);
    assert_eq!(
        get(&server, &format!("/api/v1/pods?continue={token}"))
            .await
            .code,
        400
    );
    let long = get(&server, &format!("/api/v1/pods?pad={}", "x".repeat(33_000))).await;
    assert_eq!(long.code, 414);
}

// === Responses that are not read ===

#[tokio::test(start_paused = true)]
async fn a_long_object_is_sent_completely_in_short_chunks() {
    let server = builder()
        .seed([map("a", 10), map("m", 1_000_000), map("z", 10)])
        .build();
    let options = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1&timeoutSeconds=1";
    for uri in [
        MAPS.to_owned(),
        format!("{MAPS}{options}"),
        format!("{MAPS}/m"),
    ] {
        let list = request("GET", &uri).body(Full::<Bytes>::default());
        let mut body = server
            .clone()
            .call(list.unwrap())
            .await
            .unwrap()
            .into_body();
        let mut text = Vec::new();
        while let Some(frame) = body.frame().await {
            let piece = frame.unwrap().into_data().unwrap();
            assert!(piece.len() <= 128 * 1024, "{} bytes at once", piece.len());
            text.extend(piece);
        }
        let documents = serde_json::Deserializer::from_slice(&text).into_iter::<Value>();
        let longest: Option<usize> = documents.map(|document| longest(&document.unwrap())).max();
        assert_eq!(longest, Some(1_000_000), "{uri}");
    }
}

/// Returns the length in bytes of the longest string in a JSON value.
fn longest(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(longest).max().unwrap_or(0),
        Value::Object(members) => members.values().map(longest).max().unwrap_or(0),
        _ => 0,
    }
}

#[tokio::test(start_paused = true)]
async fn unread_lists_and_watches_are_evicted_for_others() {
    let server = builder().seed([pod("a"), map("m", 100_000)]).build();
    let list = || request("GET", "/api/v1/pods").body(Full::<Bytes>::default());
    let watch = || request("GET", "/api/v1/pods?watch=1").body(Full::<Bytes>::default());
    let mut stopped = Vec::new();
    let refused = loop {
        for request in [list(), watch()] {
            let response = server.clone().call(request.unwrap()).await.unwrap();
            stopped.push(response);
        }
        if stopped.last().unwrap().status() == 429 {
            break stopped.pop().unwrap();
        }
    };
    assert_eq!(refused.headers()["retry-after"], "1");
    assert!(stopped.len() > 5_000, "{}", stopped.len());
    let name = format!("{MAPS}/m");
    let long = get(&server, &name).await;
    assert!(
        long.refusal().starts_with("429 TooManyRequests"),
        "{long:?}"
    );
    let revision = server.revision();
    let patch = json!({"data": {"more": "z"}}).to_string();
    let write = request("PATCH", &name).header("content-type", "application/merge-patch+json");
    let write = write.body(Full::<Bytes>::from(patch)).unwrap();
    let written = server.clone().call(write);
    let written = written.await.unwrap();
    assert_eq!(
        (written.status().as_u16(), server.revision()),
        (200, revision + 1)
    );
    assert!(
        written.into_body().collect().await.is_err(),
        "the response is not a 429"
    );
    tokio::time::advance(std::time::Duration::from_secs(61)).await;
    assert_eq!(get(&server, "/api/v1/pods").await.names(), ["a"]);
    let first = stopped.remove(0).into_body().collect().await;
    assert_eq!(
        first.unwrap_err().to_string(),
        "the client did not read the response in time"
    );
}
