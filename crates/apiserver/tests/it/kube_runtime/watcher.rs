//! Tests the events that `kube_runtime::watcher` returns and the requests that it sends.
//!
//! Most tests run twice: with a list for the initial objects, and with a streaming list.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_client::Api;
use kube_client::core::PartialObjectMeta;
use kube_informer_apiserver::{Match, Server};
use kube_runtime::watcher::Config;
use serde_json::json;

use super::{WatcherTrace, all_pods, both_strategies, client, logged};
use crate::ask::{builder, labelled, pod, pods};

/// Returns a server with pod `a`, and a watcher that has returned this pod.
async fn watched(config: Config) -> (Server, WatcherTrace<Pod>) {
    let server = pods(&["a"]);
    let mut watcher = WatcherTrace::by(all_pods(&server), config);
    assert_eq!(watcher.trace().await, "init\ninitial a 1\ndone\n");
    server.requests().clear();
    (server, watcher)
}

#[tokio::test(start_paused = true)]
async fn each_object_is_delivered_once_and_then_every_change() {
    for config in both_strategies() {
        let server = pods(&["b", "a"]);
        let mut watcher = WatcherTrace::by(all_pods(&server), config);
        assert_eq!(
            watcher.trace().await,
            "init\ninitial a 2\ninitial b 1\ndone\n"
        );
        server.create(pod("c")).unwrap();
        let labels = json!({"metadata": {"labels": {"x": "y"}}});
        server.patch("v1", "pods", "default/a", labels).unwrap();
        server.delete("v1", "pods", "default/b").unwrap();
        assert_eq!(watcher.trace().await, "apply c 3\napply a 4\ndelete b 5\n");
    }
}

#[tokio::test(start_paused = true)]
async fn the_only_requests_are_a_list_and_a_watch_or_one_streaming_watch() {
    let [list, streaming] = both_strategies();
    let server = pods(&["a"]);
    WatcherTrace::by(all_pods(&server), list).trace().await;
    assert_eq!(logged(&server), "list limit 500\nwatch from 1\n");
    WatcherTrace::by(all_pods(&server), streaming).trace().await;
    assert_eq!(logged(&server), "watch from 0 with initial events\n");
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_revision_and_the_watch_delivers_later_changes() {
    let server = pods(&["a", "b", "c", "d", "e"]);
    let mut watcher = WatcherTrace::by(all_pods(&server), Config::default().page_size(2));
    let first = [watcher.next().await, watcher.next().await];
    assert_eq!(first, ["init", "initial a 1"]);
    server.create(pod("aa")).unwrap();
    server.delete("v1", "pods", "default/d").unwrap();
    assert_eq!(
        watcher.trace().await,
        "initial b 2\ninitial c 3\ninitial d 4\ninitial e 5\ndone\napply aa 6\ndelete d 7\n"
    );
    assert_eq!(
        logged(&server),
        "list limit 2\nlist limit 2 continued\nlist limit 2 continued\nwatch from 5\n"
    );
}

#[tokio::test(start_paused = true)]
async fn expired_pages_are_listed_again() {
    let server = pods(&["a", "b", "c"]);
    let mut watcher = WatcherTrace::by(all_pods(&server), Config::default().page_size(2));
    let first = [watcher.next().await, watcher.next().await];
    assert_eq!(first, ["init", "initial a 1"]);
    server.create(pod("d")).unwrap();
    server.faults().expire_history();
    let trace = watcher.trace().await;
    let lines: Vec<&str> = trace.lines().collect();
    assert_eq!(lines[0], "initial b 2");
    assert!(
        lines[1].starts_with("list failed: 410 Expired: The provided continue parameter"),
        "{trace}"
    );
    assert_eq!(
        lines[2..],
        [
            "init",
            "initial a 1",
            "initial b 2",
            "initial c 3",
            "initial d 4",
            "done"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_resumes_after_a_cut() {
    for config in both_strategies() {
        let (server, mut watcher) = watched(config).await;
        server.create(pod("b")).unwrap();
        assert_eq!(watcher.trace().await, "apply b 2\n");
        server.create(pod("c")).unwrap();
        server.faults().cut_watches();
        server.create(pod("d")).unwrap();
        assert_eq!(watcher.trace().await, "apply c 3\napply d 4\n");
        assert_eq!(logged(&server), "watch from 2\n", "there is no list");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_resumes_after_a_broken_connection() {
    for config in both_strategies() {
        let (server, mut watcher) = watched(config).await;
        server.create(pod("b")).unwrap();
        server.faults().break_watches();
        assert_eq!(watcher.trace().await, "watch broken\napply b 2\n");
        assert_eq!(logged(&server), "watch from 1\n");
    }
}

#[tokio::test(start_paused = true)]
async fn an_expired_revision_is_reported_in_the_watch_and_causes_a_relist() {
    for (config, again) in both_strategies().into_iter().zip([
        "list limit 500\nwatch from 3\n",
        "watch from 0 with initial events\n",
    ]) {
        let (server, mut watcher) = watched(config).await;
        server.delete("v1", "pods", "default/a").unwrap();
        server.create(pod("b")).unwrap();
        server.faults().expire_history();
        server.faults().cut_watches();
        assert_eq!(
            watcher.trace().await,
            "watch error: 410 Expired: too old resource version: 1 (3)\ninit\ninitial b 3\ndone\n"
        );
        assert_eq!(logged(&server), format!("watch from 1\n{again}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_lets_a_quiet_watch_resume_after_history_expires() {
    for config in both_strategies() {
        let (server, mut watcher) = watched(config).await;
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
        server.create(node).unwrap();
        server.faults().send_bookmarks();
        assert_eq!(watcher.trace().await, "", "a bookmark is not delivered");
        server.faults().expire_history();
        server.faults().cut_watches();
        server.create(pod("b")).unwrap();
        assert_eq!(watcher.trace().await, "apply b 3\n");
        assert_eq!(logged(&server), "watch from 2\n");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_of_an_unchanged_kind_has_the_revision_of_the_server() {
    for (config, start) in both_strategies().into_iter().zip([
        "list limit 500\nwatch from 2\n",
        "watch from 0 with initial events\n",
    ]) {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
        let server = builder().seed([pod("a"), node]).build();
        let mut watcher = WatcherTrace::by(all_pods(&server), config);
        assert_eq!(watcher.trace().await, "init\ninitial a 1\ndone\n");
        server.faults().expire_history();
        server.faults().cut_watches();
        assert_eq!(watcher.trace().await, "", "no revision is too old");
        assert_eq!(logged(&server), format!("{start}watch from 2\n"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_throttled_request_is_reported_and_retried() {
    let refusal = "429 TooManyRequests: Too many requests, please try again later.";
    let server = pods(&["a"]);
    let lists = Match::list("pods");
    server.faults().answer(lists, 429).times(2).retry_after(1);
    server.faults().answer(Match::watch("pods"), 429);
    let mut watcher = WatcherTrace::by(all_pods(&server), Config::default());
    assert_eq!(
        watcher.trace().await,
        format!(
            "init\nlist failed: {refusal}\ninit\nlist failed: {refusal}\n\
             init\ninitial a 1\ndone\nwatch refused: {refusal}\n"
        )
    );
    server.create(pod("b")).unwrap();
    assert_eq!(watcher.trace().await, "apply b 2\n", "the watch is open");
    assert_eq!(server.requests().lists("pods").len(), 3);
    assert_eq!(server.requests().watches("pods").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streaming_lists_rejects_them_with_kubernetes_message() {
    let server = builder().seed([pod("a")]).watch_list(false).build();
    let mut watcher = WatcherTrace::by(all_pods(&server), Config::default().streaming_lists());
    assert_eq!(
        watcher.next().await,
        "watch refused: 422 Invalid: ListOptions.meta.k8s.io \"\" is invalid: \
         sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch \
         unless the WatchList feature gate is enabled"
    );
    let mut watcher = WatcherTrace::by(all_pods(&server), Config::default());
    assert_eq!(watcher.trace().await, "init\ninitial a 1\ndone\n");
}

#[tokio::test(start_paused = true)]
async fn no_event_is_lost_when_the_deadline_ends_a_watch() {
    for config in both_strategies() {
        let (server, mut watcher) = watched(config.timeout(60)).await;
        for name in ["b", "c", "d"] {
            tokio::time::sleep(Duration::from_secs(100)).await;
            server.create(pod(name)).unwrap();
            let created = format!("apply {name} {}\n", server.revision());
            assert_eq!(watcher.trace().await, created);
        }
        assert_eq!(server.requests().watches("pods").len(), 3);
        assert_eq!(server.requests().lists("pods").len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_frozen_watch_is_abandoned_after_its_deadline_and_no_event_is_lost() {
    for config in both_strategies() {
        let (server, mut watcher) = watched(config.timeout(1)).await;
        server.faults().freeze_watches();
        server.create(pod("b")).unwrap();
        watcher.expect_silence(Duration::from_secs(20)).await;
        // kube-rs abandons a watch 5 s after its deadline.
        assert!(server.requests().watches("pods").len() >= 3);
        server.faults().thaw_watches();
        assert_eq!(watcher.trace().await, "apply b 2\n");
        assert_eq!(server.requests().lists("pods").len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_stops_matching_is_deleted_at_the_revision_of_its_change() {
    for config in both_strategies() {
        let server = builder()
            .seed([labelled("a", "app", "web"), labelled("b", "app", "db")])
            .build();
        let mut watcher = WatcherTrace::by(all_pods(&server), config.labels("app=web"));
        assert_eq!(watcher.trace().await, "init\ninitial a 1\ndone\n");
        for (name, app) in [("a", "db"), ("b", "web"), ("a", "none")] {
            let labels = json!({"metadata": {"labels": {"app": app}}});
            let name = format!("default/{name}");
            server.patch("v1", "pods", &name, labels).unwrap();
        }
        assert_eq!(watcher.trace().await, "delete a 3\napply b 4\n");
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_is_watched_like_whole_objects() {
    for config in both_strategies() {
        let server = pods(&["a"]);
        let api: Api<PartialObjectMeta<Pod>> = Api::all(client(&server));
        let mut watcher = WatcherTrace::by(api, config);
        assert_eq!(watcher.trace().await, "init\ninitial a 1\ndone\n");
        server.create(pod("b")).unwrap();
        server.delete("v1", "pods", "default/a").unwrap();
        assert_eq!(watcher.trace().await, "apply b 2\ndelete a 3\n");
    }
}

#[tokio::test(start_paused = true)]
async fn garbage_in_a_watch_is_an_error_and_the_next_event_is_delivered() {
    for config in both_strategies() {
        let (server, mut watcher) = watched(config).await;
        let unknown = "{\"type\":\"MOVED\",\"object\":{}}\n";
        for garbage in ["garbage\n", unknown, "{\"type\":\"ADDED\",\"object\":7}\n"] {
            server.faults().send_raw_to_watches(garbage);
        }
        server.create(pod("b")).unwrap();
        assert_eq!(
            watcher.trace().await,
            "watch broken\nwatch broken\nwatch broken\napply b 2\n"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn refused_connections_are_errors_until_they_are_accepted_again() {
    for config in both_strategies() {
        let (server, mut watcher) = watched(config).await;
        let faults = server.faults();
        faults.refuse_connections(true);
        faults.cut_watches();
        let refused = watcher.next().await;
        assert!(refused.starts_with("watch refused: "), "{refused}");
        faults.refuse_connections(false);
        server.create(pod("b")).unwrap();
        assert_eq!(watcher.trace().await, "apply b 2\n");
    }
}
