//! Tests of streaming lists against the embedded server.
//!
//! The tests cover streaming lists that complete, are rejected, break, or lack the bookmark at their end.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use kube_informer::queue::{DeltaFifo, InOrder};

use super::*;
use crate::setting::factory_builder;

/// Returns the lines of [`requests`]. The line of a streaming list also contains the word `streaming`.
fn asked(server: &Server) -> String {
    let show = |options: &kube_informer_apiserver::ListOptions| match options.send_initial_events {
        Some(true) => " streaming",
        _ => "",
    };
    let log = server.requests();
    let lines = requests(server);
    let wanted = log.iter().filter(|request| request.resource == "pods");
    lines
        .lines()
        .zip(wanted)
        .flat_map(|(line, request)| [line, show(&request.options), "\n"])
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_sends_one_request_and_the_cache_matches_the_server() {
    for cache in [WatchCache::default(), WatchCache::Off] {
        let server = Server::builder()
            .seed([setting::pod("a"), setting::pod("b")])
            .watch_cache(cache)
            .build();
        let informer = run(streaming(&server));
        let trace = Trace::default();
        trace.listen(&informer.pods);
        informer.caught_up(&server).await;
        server.update(labelled("a", "x")).unwrap();
        informer.caught_up(&server).await;
        assert_eq!(asked(&server), "watch -: 200 streaming\n");
        expect![[r#"
            add default/a@1 (initial)
            add default/b@2 (initial)
            synced
            update default/a@1 → 3
        "#]]
        .assert_eq(&trace.take());
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_relist_is_streamed_at_the_last_revision_and_its_deletions_are_delivered() {
    let server = Server::builder()
        .seed([setting::pod("a"), setting::pod("b")])
        .build();
    let informer = run(streaming(&server));
    let trace = Trace::default();
    trace.listen(&informer.pods);
    informer.caught_up(&server).await;
    sleep(2 * SECOND).await;
    server.faults().cut_watches();
    server.delete("v1", "pods", "default/a").unwrap();
    server.faults().expire_history();
    informer.caught_up(&server).await;
    expect![[r#"
        watch -: 200 streaming
        list 2 limit=1: 200
        watch 2: 200
        watch 2: 200 streaming
    "#]]
    .assert_eq(&asked(&server));
    expect![[r#"
        add default/a@1 (initial)
        add default/b@2 (initial)
        synced
        delete default/a@1 (final state unknown)
    "#]]
    .assert_eq(&trace.take());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_transform_runs_once_for_each_streamed_object() {
    for in_order in [true, false] {
        let server = Server::builder()
            .seed(["a", "b", "c"].map(setting::pod))
            .build();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let informer = streaming(&server).transform(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let informer = run(if in_order {
            informer.queue(InOrder::new())
        } else {
            informer.queue(DeltaFifo::new())
        });
        informer.caught_up(&server).await;
        assert_eq!(asked(&server), "watch -: 200 streaming\n");
        assert_eq!(calls.load(Ordering::Relaxed), 3);
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streaming_lists_is_retried_once_an_hour_and_the_status_reports_the_reason()
 {
    let switched_off = Server::builder().watch_list(false);
    let refusing = Server::builder()
        .faults("watch pods: refuse streaming")
        .unwrap();
    for server in [switched_off, refusing] {
        let server = server.seed([setting::pod("a")]).build();
        let logs = Logs::capture();
        let informer = run(streaming(&server));
        informer.pods.wait_for_sync().fail_fast().await.unwrap();
        let status = informer.pods.status().get();
        let error = status.last_error().unwrap();
        assert_eq!(error.class(), Class::Invalid);
        let what = "sendInitialEvents is forbidden for watch unless the WatchList feature gate";
        assert!(error.to_string().contains(what), "{error}");
        let logged = logs.take();
        assert!(
            logged.contains("the streaming list failed; listing instead"),
            "{logged}"
        );
        for relist_after in [600 * SECOND, LONG] {
            sleep(relist_after).await;
            server.requests().clear();
            server.faults().cut_watches();
            let changed = labelled("a", &format!("after-{}", relist_after.as_secs()));
            server.update(changed).unwrap();
            server.faults().expire_history();
            informer.caught_up(&server).await;
            let streaming = asked(&server).contains("streaming");
            assert_eq!(streaming, relist_after == LONG, "{}", asked(&server));
        }
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejected_streaming_list_and_its_fallback_list_are_one_attempt() {
    let server = Server::builder().faults("* pods: 404").unwrap().build();
    let informer = run(streaming(&server));
    let waited = informer.pods.wait_for_sync().deadline(LONG).fail_fast();
    let error = waited.await.unwrap_err();
    let activity = error.status.activity();
    assert!(
        matches!(activity, Activity::BackingOff { attempt: 1, .. }),
        "{activity:?}"
    );
    assert_eq!(asked(&server).lines().count(), 2);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_end_bookmark_leads_to_a_list_in_bounded_time() {
    let server = Server::builder()
        .seed([setting::pod("a")])
        .faults("watch pods: drop end-bookmark")
        .unwrap()
        .build();
    let informer = run(streaming(&server));
    let synced = informer.pods.wait_for_sync();
    synced.deadline(11 * SECOND).await.unwrap();
    let status = informer.pods.status().get();
    assert_eq!(status.last_error().unwrap().class(), Class::Timeout);
    informer.caught_up(&server).await;
    expect![[r#"
        watch -: 200 streaming
        list 0 limit=500: 200
        watch 1: 200
    "#]]
    .assert_eq(&asked(&server));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn endless_bookmarks_and_changes_do_not_end_a_streaming_list() {
    let server = Server::builder()
        .seed([setting::pod("a")])
        .faults("watch pods: drop end-bookmark x1")
        .unwrap()
        .build();
    let informer = run(streaming(&server));
    let churn = async {
        for n in 0.. {
            sleep(SECOND).await;
            server.update(labelled("a", &n.to_string())).unwrap();
            server.create(setting::pod(&format!("new-{n}"))).unwrap();
            server.faults().send_bookmarks();
        }
    };
    tokio::select! {
        biased;
        synced = informer.pods.wait_for_sync().deadline(15 * SECOND) => synced.unwrap(),
        () = churn => {}
    }
    assert_eq!(server.requests().lists("pods").len(), 1);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_repeatedly_falls_back_to_a_list_and_its_objects_are_discarded() {
    let server = Server::builder()
        .seed([setting::pod("a"), setting::pod("b")])
        .faults("watch pods: cut after 1 events x3")
        .unwrap()
        .build();
    let informer = run(streaming(&server));
    let trace = Trace::default();
    trace.listen(&informer.pods);
    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
    informer.caught_up(&server).await;
    expect![[r#"
        watch -: 200 streaming
        watch -: 200 streaming
        watch -: 200 streaming
        list 0 limit=500: 200
        watch 2: 200
    "#]]
    .assert_eq(&asked(&server));
    expect![[r#"
        add default/a@1 (initial)
        add default/b@2 (initial)
        synced
    "#]]
    .assert_eq(&trace.take());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn every_builder_can_disable_streaming_lists() {
    let server = Server::builder().seed([setting::pod("a")]).build();
    let source = || ListWatch::<Pod>::new(server.client());
    let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(source())
        .initial_list(InitialList::List)
        .into_indexer(writer);
    reflector.run(sleep(SECOND)).await;
    let (_, plain) = Informer::builder::<Pod>(source())
        .initial_list(InitialList::List)
        .build();
    plain.run(sleep(SECOND)).await.unwrap();
    let (_pods, shared) = SharedInformer::<Pod>::builder(source())
        .initial_list(InitialList::List)
        .build();
    shared.run(sleep(SECOND)).await.unwrap();
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        .build();
    let _pods = factory.informer::<Pod>();
    factory.start();
    sleep(SECOND).await;
    factory.shutdown().await;
    assert_eq!(
        asked(&server),
        "list 0 limit=500: 200\nwatch 1: 200\n".repeat(4)
    );
}

#[tokio::test(start_paused = true)]
async fn every_builder_can_set_the_time_limit_of_the_end_bookmark() {
    let server = Server::builder()
        .faults("watch pods: drop end-bookmark")
        .unwrap()
        .build();
    let source = || ListWatch::<Pod>::new(server.client());
    let timeouts = TimeoutConfig {
        initial_events: 2 * SECOND,
        ..TimeoutConfig::default()
    };
    let lists = || server.requests().lists("pods").len();
    let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(source())
        .timeouts(timeouts)
        .into_indexer(writer);
    reflector.run(sleep(3 * SECOND)).await;
    assert_eq!(lists(), 1);
    let (_, plain) = Informer::builder::<Pod>(source())
        .timeouts(timeouts)
        .build();
    plain.run(sleep(3 * SECOND)).await.unwrap();
    assert_eq!(lists(), 2);
    let (_pods, shared) = SharedInformer::<Pod>::builder(source())
        .timeouts(timeouts)
        .build();
    shared.run(sleep(3 * SECOND)).await.unwrap();
    assert_eq!(lists(), 3);
    let factory = factory_builder(server.client()).timeouts(timeouts).build();
    let _pods = factory.informer::<Pod>();
    factory.start();
    sleep(3 * SECOND).await;
    factory.shutdown().await;
    assert_eq!(lists(), 4);
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_request_respects_retry_after() {
    /// Returns the seconds from the start of an informer until it has synced and its watch is open.
    ///
    /// `faults` is the fault plan of the server, such as `watch pods: 429 x1`.
    async fn synced_after(faults: &str, initial_list: InitialList) -> u64 {
        let server = Server::builder()
            .seed((0..4).map(|n| setting::pod(&format!("p{n}"))))
            .watch_cache(WatchCache::Off)
            .faults(faults)
            .unwrap()
            .build();
        let informer = builder(&server).initial_list(initial_list).page_size(2);
        let informer = run(informer);
        let began = tokio::time::Instant::now();
        let watching = |status: &kube_informer::status::Status| {
            status.synced && status.activity() == Activity::Watching
        };
        informer.pods.status().wait_for(watching).await.unwrap();
        informer.stop().await;
        began.elapsed().as_secs()
    }
    let cases = [
        (
            "watch pods: 429 retry-after=40 x1",
            InitialList::Streaming,
            40,
        ),
        ("list pods: 429 retry-after=40 x1", InitialList::List, 40),
        (
            "list pods: 429 retry-after=40 skip=1 x1",
            InitialList::List,
            40,
        ),
        ("watch pods: 429 retry-after=40 x1", InitialList::List, 40),
        (
            "watch pods: 429 retry-after=900 x1",
            InitialList::Streaming,
            120,
        ),
        ("list pods: 503 retry-after=900 x1", InitialList::List, 120),
    ];
    for (faults, initial_list, expected) in cases {
        let waited = synced_after(faults, initial_list).await;
        assert_eq!(waited, expected, "{faults} {initial_list:?}");
    }
}
