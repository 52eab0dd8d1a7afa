//! Tests the request log: the arrival time, the query options and the response of each logged request.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use serde_json::json;

use kube_informer_apiserver::Verb;

use crate::ask::{Watch, get, pod, pods, request, send, with};

#[tokio::test(start_paused = true)]
async fn the_time_of_a_request_counts_from_the_build_of_the_server() {
    tokio::time::advance(Duration::from_secs(5)).await;
    let server = pods(&["a"]);
    for pause in [0, 800, 1_600] {
        tokio::time::advance(Duration::from_millis(pause)).await;
        get(&server, "/api/v1/pods").await;
    }
    let arrived: Vec<Duration> = server.requests().iter().map(|it| it.arrived).collect();
    assert_eq!(arrived, [0, 800, 2_400].map(Duration::from_millis));
}

#[tokio::test(start_paused = true)]
async fn every_request_is_recorded_with_its_options_and_response() {
    let server = pods(&["a"]);
    let uri = "/api/v1/pods?limit=5&labelSelector=app%3Dweb&resourceVersion=0";
    let agent = request("GET", uri).header("user-agent", "scheduler");
    send(&server, agent.body(Full::<Bytes>::default()).unwrap()).await;
    let _watch = Watch::open(&server, "/api/v1/namespaces/default/pods?watch=1&resourceVersion=1&timeoutSeconds=9&allowWatchBookmarks=true").await;
    with(
        &server,
        "POST",
        "/api/v1/namespaces/default/pods",
        &pod("b"),
    )
    .await;
    with(
        &server,
        "PATCH",
        "/api/v1/namespaces/default/pods/b/status",
        &json!({"status": {"phase": "Running"}}),
    )
    .await;
    get(&server, "/api/v1/namespaces/default/pods/none").await;
    get(&server, "/nowhere").await;

    let log = server.requests();
    let lines: Vec<String> = log
        .iter()
        .map(|it| {
            let place = [
                it.namespace.as_deref(),
                it.name.as_deref(),
                it.subresource.as_deref(),
            ];
            let place: Vec<&str> = place.into_iter().flatten().collect();
            format!(
                "{} {} {} {} -> {:?} {:?}",
                it.sequence,
                it.verb,
                it.resource,
                place.join("/"),
                it.status.unwrap(),
                it.revision
            )
        })
        .collect();
    assert_eq!(
        lines,
        [
            "1 list pods  -> 200 Some(1)",
            "2 watch pods default -> 200 None",
            "3 create pods default -> 201 Some(2)",
            "4 patch pods default/b/status -> 200 Some(3)",
            "5 get pods default/none -> 404 None",
            "6 other   -> 404 None",
        ]
    );
    let list = log.lists("pods").into_iter().next().unwrap();
    assert_eq!(list.user_agent, "scheduler");
    assert_eq!(list.path, "/api/v1/pods");
    assert_eq!(
        (list.options.limit, list.options.resource_version.as_deref()),
        (Some(5), Some("0"))
    );
    assert_eq!(list.options.label_selector.as_deref(), Some("app=web"));
    let watch = log.watches("pods").into_iter().next().unwrap();
    assert!(watch.options.allow_watch_bookmarks);
    assert_eq!(watch.options.timeout_seconds, Some(9));
    assert_eq!(log.writes().len(), 2);
    assert_eq!(log.verb(Verb::Get).len(), 1);
    assert_eq!(log.by_user_agent("scheduler").len(), 1);
    assert!(log.lists("nodes").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cleared_log_is_empty_and_its_numbers_continue() {
    let server = pods(&["a"]);
    get(&server, "/api/v1/pods").await;
    let before = server.requests();
    before.clear();
    assert!(server.requests().is_empty());
    get(&server, "/api/v1/pods").await;
    assert_eq!(
        server
            .requests()
            .iter()
            .map(|it| it.sequence)
            .collect::<Vec<_>>(),
        [2]
    );
    assert_eq!(before.len(), 1, "a copy does not change");
}

#[tokio::test(start_paused = true)]
async fn a_pending_request_is_recorded_without_a_status() {
    let server = pods(&["a"]);
    let asking = get(&server, "/api/v1/pods?resourceVersion=2");
    let looking = async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let waiting = server.requests();
        server.create(pod("b")).unwrap();
        waiting
    };
    let (_, waiting) = tokio::join!(asking, looking);
    assert_eq!(
        waiting.iter().map(|it| it.status).collect::<Vec<_>>(),
        [None]
    );
    assert_eq!(
        server
            .requests()
            .iter()
            .map(|it| it.status)
            .collect::<Vec<_>>(),
        [Some(200)]
    );
}

#[tokio::test(start_paused = true)]
async fn direct_calls_are_not_recorded() {
    let server = pods(&["a"]);
    server.create(pod("b")).unwrap();
    server.list("v1", "pods");
    assert!(server.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_last_requests_are_printed_with_their_times() {
    let server = pods(&["a"]);
    get(&server, "/api/v1/nodes").await;
    tokio::time::advance(Duration::from_secs(60)).await;
    let uri = "/api/v1/pods?limit=5&labelSelector=app%3Dweb";
    let agent = request("GET", uri).header("user-agent", "scheduler");
    send(&server, agent.body(Full::<Bytes>::default()).unwrap()).await;
    tokio::time::advance(Duration::from_millis(1_250)).await;
    server.faults().inject("get pods: 503 x1").unwrap();
    get(&server, "/api/v1/namespaces/default/pods/a").await;
    let printed = server.requests().last(Duration::from_secs(10)).to_string();
    assert_eq!(
        printed,
        concat!(
            "   60.000 s  200  list    /api/v1/pods?limit=5&labelSelector=app=web  rv 1  scheduler\n",
            "   61.250 s  503  get     /api/v1/namespaces/default/pods/a  [503]\n",
        )
    );
    assert_eq!(server.requests().to_string().lines().count(), 3);
}
