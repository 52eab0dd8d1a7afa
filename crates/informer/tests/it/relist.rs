//! Tests of an informer after an interrupted watch or a rejected request.
//!
//! The tests check the informer's next requests, and the events that its handlers receive.

use std::time::Duration;

use expect_test::expect;
use kube_informer::{InitialList, object::ResourceVersion, status::Status, transport::Class};
use kube_informer_apiserver::{LoggedRequest, Match, Server, Verb, WatchCache};
use tokio::time::{Instant, sleep};

use crate::setting::{LONG, Trace, in_json, labelled, listing, pod, requests, run};

/// Sleeps for two seconds, because a watch that closes in its first second counts as failed.
async fn settle() {
    sleep(Duration::from_secs(2)).await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_missed_while_disconnected_is_delivered_with_the_last_known_state() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let informer = run(listing(&server));
    let trace = Trace::default();
    trace.listen(&informer.pods);
    informer.caught_up(&server).await;
    settle().await;

    server.faults().cut_watches();
    server.delete("v1", "pods", "default/a").unwrap();
    server.create(pod("c")).unwrap();
    server.faults().expire_history();
    informer.caught_up(&server).await;

    expect![[r#"
        add default/a@1 (initial)
        add default/b@2 (initial)
        synced
        delete default/a@1 (final state unknown)
        add default/c@4
    "#]]
    .assert_eq(&trace.take());
    expect![[r#"
        list 0 limit=500: 200
        watch 2: 200
        list 2 limit=1: 200
        watch 2: 200
        list 2: 200
        watch 4: 200
    "#]]
    .assert_eq(&requests(&server));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_resumes_from_the_last_event_without_a_list() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(listing(&server));
    let trace = Trace::default();
    trace.listen(&informer.pods);
    informer.caught_up(&server).await;
    settle().await;
    server.create(pod("b")).unwrap();
    informer.caught_up(&server).await;

    server.faults().cut_watches();
    server.delete("v1", "pods", "default/a").unwrap();
    server.faults().break_watches();
    informer.caught_up(&server).await;

    expect![[r#"
        add default/a@1 (initial)
        synced
        add default/b@2
        delete default/a@3
    "#]]
    .assert_eq(&trace.take());
    expect![[r#"
        list 0 limit=500: 200
        watch 1: 200
        list 2 limit=1: 200
        watch 2: 200
    "#]]
    .assert_eq(&requests(&server));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_delivers_changed_and_recreated_objects_as_updates() {
    let server = Server::builder()
        .seed([pod("a"), pod("b"), pod("c")])
        .build();
    let informer = run(listing(&server));
    let trace = Trace::default();
    trace.listen(&informer.pods);
    informer.caught_up(&server).await;
    settle().await;
    trace.take();

    server.faults().cut_watches();
    server.update(labelled("a", "new")).unwrap();
    server.delete("v1", "pods", "default/b").unwrap();
    server.create(pod("b")).unwrap();
    server.faults().expire_history();
    informer.caught_up(&server).await;

    expect![[r#"
        update default/a@1 → 4 (relist)
        update default/b@2 → 6 (relist)
    "#]]
    .assert_eq(&trace.take());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_list_is_repeated_at_once_at_the_newest_state() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(listing(&server));
    informer.caught_up(&server).await;
    settle().await;

    let before = Instant::now();
    server.faults().answer(Match::list("pods"), 410).times(2);
    server.faults().cut_watches();
    server.create(pod("b")).unwrap();
    server.faults().expire_history();
    informer.caught_up(&server).await;

    assert_eq!(
        before.elapsed(),
        Duration::ZERO,
        "the first relist after a success is immediate"
    );
    expect![[r#"
        list 0 limit=500: 200
        watch 1: 200
        list 1 limit=1: 410
        watch 1: 200
        list 1: 410
        list - limit=500: 200
        watch 2: 200
    "#]]
    .assert_eq(&requests(&server));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn lists_are_paged_if_the_server_has_no_watch_cache() {
    let pods = (0..1201).map(|n| pod(&format!("p{n:04}")));
    let server = Server::builder()
        .watch_cache(WatchCache::Off)
        .seed(pods)
        .build();
    let informer = run(listing(&server));
    informer.caught_up(&server).await;
    assert_eq!(informer.pods.indexer().len(), 1201);
    settle().await;

    server.faults().answer(Match::watch("pods"), 500).times(1);
    server.faults().cut_watches();
    server.create(pod("z")).unwrap();
    informer.caught_up(&server).await;

    expect![[r#"
        list 0 limit=500: 200
        list - limit=500 continue: 200
        list - limit=500 continue: 200
        watch 1201: 200
        list 1201 limit=1: 200
        watch 1201: 500
        list 1201 limit=500: 200
        list - limit=500 continue: 200
        list - limit=500 continue: 200
        watch 1201: 200
    "#]]
    .assert_eq(&requests(&server));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_throttled_watch_is_retried_after_a_pause_without_a_list() {
    let server = Server::builder().seed([pod("a")]).build();
    server.faults().answer(Match::watch("pods"), 429).times(2);
    let before = Instant::now();
    let informer = run(listing(&server));
    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
    server.create(pod("b")).unwrap();
    informer.caught_up(&server).await;

    let waited = before.elapsed().as_secs_f64();
    assert!(
        (2.4..4.8).contains(&waited),
        "two pauses, from 0.8 s and from 1.6 s: {waited}"
    );
    expect![[r#"
        list 0 limit=500: 200
        watch 1: 429
        watch 1: 429
        watch 1: 200
    "#]]
    .assert_eq(&requests(&server));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_server_is_retried_with_back_off() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(listing(&server));
    informer.caught_up(&server).await;
    settle().await;

    server.faults().refuse_connections(true);
    server.faults().cut_watches();
    let asked_before = server.requests().len();
    sleep(LONG).await;
    let status = informer.pods.status().get();
    assert_eq!(
        status.last_error().unwrap().class(),
        Class::ConnectionRefused
    );
    let asked = server.requests().len() - asked_before;
    assert!(asked <= 125, "{asked} requests in an hour");

    server.faults().refuse_connections(false);
    server.create(pod("b")).unwrap();
    informer.caught_up(&server).await;
    let whole = |request: &LoggedRequest| request.options.limit != Some(1);
    assert_eq!(
        server.requests().lists("pods").filter(whole).len(),
        1,
        "without an expiry there is no list"
    );
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_frozen_watch_fails_after_its_timeout() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(listing(&server));
    informer.caught_up(&server).await;
    settle().await;

    server.faults().freeze_watches();
    server.create(pod("b")).unwrap();
    let before = Instant::now();
    sleep(Duration::from_secs(700)).await;
    server.faults().thaw_watches();
    informer.caught_up(&server).await;
    assert!(before.elapsed() <= Duration::from_secs(700));
    let status = informer.pods.status().get();
    assert_eq!(status.last_error().unwrap().class(), Class::Timeout);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn bookmarks_advance_the_revision_without_an_event_for_handlers() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(listing(&server));
    let trace = Trace::default();
    trace.listen(&informer.pods);
    informer.caught_up(&server).await;
    trace.take();
    let map = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "default"}});
    server.create(map).unwrap();

    settle().await;
    server.faults().send_bookmarks();
    informer.caught_up(&server).await;
    assert_eq!(
        informer.pods.last_sync_resource_version(),
        ResourceVersion::from(2)
    );
    assert_eq!(trace.take(), "");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn unknown_event_types_and_garbage_lose_no_change() {
    let server = Server::builder().seed([pod("a")]).build();
    let errors = Trace::default();
    let heard = errors.clone();
    let informer = in_json(&server).initial_list(InitialList::List);
    let informer = run(informer.on_error(move |error| heard.note(error.to_string())));
    let trace = Trace::default();
    trace.listen(&informer.pods);
    informer.caught_up(&server).await;
    settle().await;

    let surprise = r#"{"type":"SURPRISE","object":{"metadata":{"resourceVersion":"1"}}}"#;
    server
        .faults()
        .send_raw_to_watches(surprise.as_bytes().to_vec());
    server.create(pod("b")).unwrap();
    informer.caught_up(&server).await;
    server
        .faults()
        .send_raw_to_watches(&b"<html>oops</html>"[..]);
    server.create(pod("c")).unwrap();
    informer.caught_up(&server).await;

    expect![[r#"
        add default/a@1 (initial)
        synced
        add default/b@2
        add default/c@3
    "#]]
    .assert_eq(&trace.take());
    expect![[r#"
        unknown type of watch event: "SURPRISE"
        the watch sent an event of unknown type "SURPRISE"
        the watch sent data that is not a watch event
    "#]]
    .assert_eq(&errors.take());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn every_rejection_reaches_the_error_handler_and_the_failed_wait() {
    let server = Server::builder().build();
    server
        .faults()
        .answer(Match::verb(Verb::List, "pods"), 403)
        .times(3);
    let classes = Trace::default();
    let heard = classes.clone();
    let informer = run(listing(&server).on_error(move |error| match error {
        kube_informer::reflector::Error::Transport(error) => {
            heard.note(format!("{:?}", error.class()));
        }
        other => heard.note(other.to_string()),
    }));
    let failed = informer.pods.wait_for_sync().fail_fast().await.unwrap_err();
    assert!(
        failed.to_string().starts_with(
            "pods (v1 Pod) can't sync, as the server rejects the requests: not synced, "
        ),
        "{failed}"
    );

    let late = informer
        .pods
        .wait_for_sync()
        .deadline(Duration::from_secs(1))
        .await
        .unwrap_err();
    assert!(
        late.to_string()
            .starts_with("pods (v1 Pod) did not sync within 1s: not synced, waiting"),
        "{late}"
    );

    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
    expect![[r#"
        Forbidden
        Forbidden
        Forbidden
    "#]]
    .assert_eq(&classes.take());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_status_can_be_read_inside_a_wait_for_it() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(listing(&server));
    let (mut waits, mut looks) = (informer.pods.status(), informer.pods.status());
    let synced = waits.wait_for(|status| status.synced && looks.get().synced);
    let status = tokio::time::timeout(LONG, synced).await.unwrap().unwrap();
    assert_eq!(status.sources.len(), 1);
    // After the stop it never changes again.
    informer.stop().await;
    assert!(looks.wait_for(Status::is_stopped).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_the_next_status_returns_only_later_changes() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(listing(&server));
    informer.pods.wait_for_sync().await.unwrap();
    sleep(Duration::from_secs(10)).await;
    let mut status = informer.pods.status();
    let next = tokio::time::timeout(Duration::from_secs(10), status.changed());
    assert!(
        next.await.is_err(),
        "an earlier status was returned as a change"
    );
    informer.stop().await;
    assert!(status.changed().await.is_some());
}
