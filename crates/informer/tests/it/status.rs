//! Tests of the status that an informer reports while it lists, watches and retries.
//!
//! Also tests that a failed wait for sync returns the cause of the failure.

use std::{num::NonZeroUsize, time::Duration};

use expect_test::expect;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    SharedInformer,
    queue::{BATCH, DeltaFifo},
    shared_informer::{Builder, ListenerBuffer},
    status::{Activity, SourceStatus, StatusReader},
    transport::Class,
};
use kube_informer_apiserver::{Match, Server};
use tokio::{task::yield_now, time::sleep};

use crate::{
    script::{Answer, Script, Then, body, event, hangs, list, pod},
    setting::{self, LONG, Trace, run},
};

const MINUTE: Duration = Duration::from_secs(60);

/// Returns the builder of an informer that sends its requests to `script`.
fn builder(script: &Script) -> Builder<Pod> {
    SharedInformer::builder(script.clone())
        .name("pods")
        .rng_seed(1)
}

/// Returns the current and all later statuses until the informer stops, one per line.
async fn lines(mut status: StatusReader) -> String {
    let trace = Trace::default();
    trace.note(status.get().to_string());
    while let Some(now) = status.changed().await {
        trace.note(now.to_string());
        if now.is_stopped() {
            break;
        }
    }
    trace.take()
}

#[tokio::test(start_paused = true)]
async fn the_status_reports_each_activity_and_the_last_error_with_its_age() {
    let ends = |text, seconds| Answer::Body(text, Then::EndsAfter(Duration::from_secs(seconds)));
    let script = Script::new([
        Answer::Refuse(Class::Forbidden),
        Answer::Refuse(Class::Forbidden),
        ends(list(5, "", &[pod("a", 1)]), 3),
        ends(event("ADDED", &pod("b", 6)), 60),
        Answer::Never,
    ]);
    let (pods, controller) = builder(&script).build();
    let told = lines(pods.status());
    let (told, ended) = tokio::join!(told, controller.run(sleep(2 * MINUTE)));
    ended.unwrap();
    expect![[r#"
        not synced, not started
        not synced, waiting after failure 1; last error: planted (0ns ago, failing for 0ns)
        not synced, waiting after failure 2; last error: planted (0ns ago, failing for 1s)
        not synced, listing (page 1, 1 objects so far); last error: planted (3s ago, failing for 4s)
        synced, watching; last error: planted (6s ago)
        synced, opening a watch; last error: planted (66s ago)
        synced, stopped; last error: planted (119s ago)
    "#]]
    .assert_eq(&told);
}

#[tokio::test(start_paused = true)]
async fn a_failed_wait_reports_the_cause_and_its_age() {
    let server = Server::builder().build();
    server.faults().answer(Match::list("pods"), 403).times(1000);
    let informer = run(setting::listing(&server));
    let said = |text: String, beginning: &str| {
        assert!(text.starts_with(beginning), "{text}");
        assert!(text.contains("; last error: forbidden ("), "{text}");
        assert!(
            text.ends_with(" ago, failing for 60s); grant \"list\" and \"watch\" on the resource"),
            "{text}"
        );
    };
    let error = informer.pods.wait_for_sync().deadline(MINUTE).await;
    said(
        error.unwrap_err().to_string(),
        "pods (v1 Pod) did not sync within 60s: not synced, waiting after failure ",
    );
    let error = informer.pods.wait_for_sync().fail_fast().await;
    said(
        error.unwrap_err().to_string(),
        "pods (v1 Pod) can't sync, as the server rejects the requests: not synced, waiting after failure ",
    );
    let source = &informer.pods.status().get().sources[0];
    assert_eq!(source.failing_for(), Some(MINUTE));
    assert!(source.since_last_error().unwrap() < MINUTE);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_wait_for_a_handler_names_the_handler_as_the_cause() {
    let server = Server::builder().seed([setting::pod("a")]).build();
    let informer = run(setting::builder(&server));
    let stuck = informer.pods.on_add(|_, _| std::future::pending::<()>());
    let stuck = stuck.name("stuck").register().unwrap();
    let error = stuck.wait_for_sync().deadline(MINUTE).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "stuck (v1 Pod) did not sync within 60s: the handler has not processed all initial events; informer: synced, watching"
    );
}

#[tokio::test(start_paused = true)]
async fn a_resolved_error_is_shown_with_its_age() {
    let script = Script::new([
        Answer::Refuse(Class::Server),
        body(list(5, "", &[])),
        Answer::Never,
    ]);
    let informer = run(builder(&script));
    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
    let status = informer.pods.status().get();
    assert_eq!(status.failing_for(), None, "a list is complete");
    assert!(status.since_last_error().is_some());
    let before = status.since_last_error().unwrap();
    sleep(MINUTE).await;
    assert_eq!(status.since_last_error(), Some(before + MINUTE));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_opened_watch_ends_a_series_of_failures() {
    let script = Script::new([
        body(list(5, "", &[])),
        Answer::Refuse(Class::TooManyRequests),
        hangs(String::new()),
    ]);
    let informer = run(builder(&script));
    let mut status = informer.pods.status();
    let failing = status.wait_for(|status| status.failing_for().is_some());
    failing.await.unwrap();
    let watching = status.wait_for(|status| status.activity() == Activity::Watching);
    assert_eq!(watching.await.unwrap().failing_for(), None);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_status_of_several_sources_reports_how_many_are_listed() {
    let good = || Script::new([body(list(5, "", &[])), Answer::Never]);
    let bad = Script::new([Answer::Refuse(Class::Forbidden), Answer::Never]);
    let informer = run(builder(&good()).source(bad).source(good()));
    sleep(Duration::from_millis(1)).await;
    let text = informer.pods.status().get().to_string();
    assert!(
        text.starts_with("not synced (2 of 3 sources), waiting after failure 1; "),
        "{text}"
    );
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_status_reports_listing_until_the_list_is_in_the_cache() {
    let pods: Vec<_> = (0..3 * BATCH).map(|n| pod(&format!("p{n}"), 1)).collect();
    let script = Script::new([body(list(5, "", &pods)), Answer::Never]);
    let informer = run(builder(&script).queue(DeltaFifo::new()));
    let mut status = informer.pods.status().get();
    while !status.sources.iter().all(SourceStatus::is_listed) {
        yield_now().await;
        status = informer.pods.status().get();
    }
    assert!(
        status
            .to_string()
            .starts_with("not synced (listed, but not yet completely in the cache), "),
        "{status}"
    );
    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_full_handler_does_not_keep_the_first_list_out_of_the_cache() {
    let good = |name| Script::new([body(list(5, "", &[pod(name, 1)])), Answer::Never]);
    let informer = run(builder(&good("a")).source(good("b")).source(good("c")));
    informer
        .pods
        .on_add(|_, _| std::future::pending::<()>())
        .buffer(ListenerBuffer::Block(NonZeroUsize::MIN))
        .register()
        .unwrap();
    sleep(MINUTE).await;
    assert_eq!(
        informer.pods.status().get().to_string(),
        "synced, opening a watch"
    );
}

#[tokio::test(start_paused = true)]
async fn broken_objects_and_index_errors_are_in_the_displayed_status() {
    let broken = r#"{"metadata":{"name":"b","namespace":"default","labels":7}}"#.to_owned();
    let script = Script::new([
        body(list(5, "", &[pod("a", 1), broken])),
        hangs(String::new()),
    ]);
    let informer = run(builder(&script));
    Trace::default().listen(&informer.pods);
    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
    let failing = |_: &Pod| Err::<Vec<String>, _>("no such thing");
    informer.pods.try_add_index("thing", failing).await.unwrap();
    expect!["synced, watching; 1 broken objects; 1 index errors, the last: default/a is not in index thing: no such thing"].assert_eq(&informer.pods.status().get().to_string());
    informer.stop().await;
}
