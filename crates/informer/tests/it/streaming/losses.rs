//! Tests of streaming lists and watches with a broken or silent connection, or with a full store.
//!
//! A store is full while it accepts no further changes from the reflector.
//!
//! Also tests that an informer detects a server that was restored to an earlier revision.

use kube_informer::{ObjectName, reflector::Reflector, shared_informer::ListenerBuffer};
use kube_informer_apiserver::Verb;
use tokio::sync::Semaphore;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

/// Returns the names and revisions of all objects, on the server and in the cache.
fn states(server: &Server, indexer: &Indexer<Pod>) -> (String, String) {
    let text = |object: &serde_json::Value, field: &str| {
        object["metadata"][field].as_str().unwrap().to_owned()
    };
    let on_server: Vec<_> = server
        .list("v1", "pods")
        .iter()
        .map(|pod| {
            format!(
                "default/{}@{}",
                text(pod, "name"),
                text(pod, "resourceVersion")
            )
        })
        .collect();
    (
        format!("[{}]", on_server.join(", ")),
        format!("{:?}", indexer.list()),
    )
}

/// Resets the server to its state of three revisions ago. Then creates two pods, whose revisions the server
/// has used before.
fn put_back(server: &Server) {
    let revision = server.revision();
    server.faults().restart_at(revision - 3).unwrap();
    for name in ["x", "y"] {
        server.create(setting::pod(name)).unwrap();
    }
}

fn server_with_history() -> Server {
    let server = Server::builder().seed([setting::pod("a")]).build();
    for name in ["b", "c", "d"] {
        server.create(setting::pod(name)).unwrap();
    }
    server
}

#[tokio::test(start_paused = true)]
async fn a_server_restored_during_a_broken_connection_is_detected_by_a_probe() {
    for initial_list in [InitialList::Streaming, InitialList::List] {
        let server = server_with_history();
        let informer = run(builder(&server).initial_list(initial_list));
        informer.caught_up(&server).await;
        sleep(MINUTE / 2).await;
        server.requests().clear();
        server.faults().break_watches();
        sleep(SECOND / 10).await;
        put_back(&server);
        sleep(MINUTE / 4).await;
        let (on_server, cached) = states(&server, &informer.pods.indexer());
        assert_eq!(cached, on_server);
        let probe = &server
            .requests()
            .lists("pods")
            .iter()
            .next()
            .cloned()
            .unwrap();
        let options = &probe.options;
        assert_eq!(options.limit, Some(1));
        assert_eq!(options.resource_version.as_deref(), Some("4"));
        let matching = options.resource_version_match.as_deref();
        assert_eq!((matching, probe.status), (Some("NotOlderThan"), Some(504)));
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_restored_after_a_clean_end_is_detected_by_the_silence_of_its_watch() {
    let server = server_with_history();
    let informer = run(streaming(&server));
    informer.caught_up(&server).await;
    // The watch has received a bookmark by then.
    sleep(2 * MINUTE).await;
    put_back(&server);
    sleep(4 * MINUTE).await;
    let (on_server, cached) = states(&server, &informer.pods.indexer());
    assert_eq!(cached, on_server);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_server_is_probed_once_and_the_watch_resumes() {
    let server = server_with_history();
    let informer = run(streaming(&server));
    informer.caught_up(&server).await;
    server.requests().clear();
    for _ in 0..3 {
        sleep(5 * SECOND).await;
        server.faults().break_watches();
    }
    sleep(MINUTE / 4).await;
    let log = server.requests();
    assert_eq!(log.lists("pods").len(), 1, "{}", requests(&server));
    let is_whole = |request: &&kube_informer_apiserver::LoggedRequest| {
        request.verb == Verb::Watch && request.options.send_initial_events.is_some()
    };
    assert_eq!(log.iter().filter(is_whole).count(), 0);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_silent_for_three_minutes_is_reopened_from_the_last_revision() {
    let server = Server::builder().seed([setting::pod("a")]).build();
    let informer = run(streaming(&server));
    informer.caught_up(&server).await;
    sleep(2 * MINUTE).await;
    server.faults().freeze_watches();
    server.create(setting::pod("b")).unwrap();
    sleep(2 * MINUTE).await;
    assert_eq!(
        informer.pods.indexer().len(),
        1,
        "the watch does not count as dead yet"
    );
    assert_eq!(server.requests().watches("pods").len(), 1);
    server.faults().inject("thaw watch pods").unwrap();
    informer.caught_up(&server).await;

    server.faults().inject("freeze watch pods").unwrap();
    sleep(MINUTE * 3 + 5 * SECOND).await;
    let status = informer.pods.status().get();
    let error = status.last_error().unwrap().to_string();
    assert!(
        error.contains("the watch received no event and no bookmark"),
        "{error}"
    );
    assert!(server.requests().watches("pods").len() > 1);
    informer.stop().await;
}

/// A `ListerWatcher` whose watches send one bookmark, and then an empty line every 30 seconds.
struct Blank {
    lists: Script,
    watches: Trace,
}

impl ListerWatcher for Blank {
    fn list(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.lists.list(options)
    }

    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.watches.note(options.resource_version.to_string());
        let lines = stream::repeat("\n").then(async |line| {
            sleep(MINUTE / 2).await;
            Ok(line.into())
        });
        let body = stream::iter([Ok(bookmark(6).into())]).chain(lines);
        async { Ok(body.boxed().into()) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn white_space_between_events_does_not_reset_the_silence_limit() {
    let source = Blank {
        lists: Script::new([body(list(5, "", &[]))]),
        watches: Trace::default(),
    };
    let watches = source.watches.clone();
    let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(source)
        .initial_list(InitialList::Streaming)
        .into_indexer(writer);
    reflector.run(sleep(4 * MINUTE)).await;
    assert_eq!(watches.take(), "5\n6\n");
}

#[tokio::test(start_paused = true)]
async fn silence_is_ignored_without_bookmarks_and_its_limit_is_configurable() {
    /// Returns the number of watch requests of an informer whose server stops sending data for 15 minutes.
    ///
    /// `silence` is the maximum time between two events or bookmarks of a watch. If `bookmarks` is false,
    /// the server never sends a bookmark.
    async fn watches(silence: Duration, bookmarks: bool) -> usize {
        let faults = if bookmarks {
            ""
        } else {
            "watch pods: drop bookmarks"
        };
        let server = Server::builder().faults(faults).unwrap().build();
        let informer = run(builder(&server)
            .initial_list(InitialList::List)
            .watch_timeout_min(60 * MINUTE)
            .timeouts(TimeoutConfig {
                silence,
                ..TimeoutConfig::default()
            }));
        sleep(2 * MINUTE).await;
        server.faults().freeze_watches();
        sleep(15 * MINUTE).await;
        informer.stop().await;
        server.requests().watches("pods").len()
    }
    assert_eq!(watches(3 * MINUTE, false).await, 1);
    assert_eq!(watches(Duration::MAX, true).await, 1);
    assert!(watches(3 * MINUTE, true).await >= 4);
    assert!(watches(MINUTE, true).await >= 8);
}

#[tokio::test(start_paused = true)]
async fn a_watch_with_a_full_store_is_closed_and_resumes_when_there_is_room() {
    let server = Server::builder().seed([setting::pod("p")]).build();
    let informer = run(streaming(&server));
    let open = std::sync::Arc::new(Semaphore::new(0));
    let (gate, heard) = (std::sync::Arc::clone(&open), Trace::default());
    let noted = heard.clone();
    informer
        .pods
        .on_update(move |_, new| {
            let (gate, noted) = (std::sync::Arc::clone(&gate), noted.clone());
            async move {
                gate.acquire().await.unwrap().forget();
                noted.note(new.revision().to_string());
            }
        })
        .buffer(ListenerBuffer::Block(1.try_into().unwrap()))
        .register()
        .unwrap();
    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
    // More than fit in the handler, its buffer, the queue and the channel.
    for n in 0..6000 {
        server.update(labelled("p", &n.to_string())).unwrap();
        tokio::task::yield_now().await;
    }
    sleep(29 * SECOND).await;
    assert_eq!(informer.pods.status().get().activity(), Activity::StoreFull);
    let opened = server.requests().watches("pods").len();
    sleep(5 * MINUTE).await;
    assert_eq!(
        server.requests().watches("pods").len(),
        opened,
        "the store has no room"
    );
    open.add_permits(10_000);
    informer.caught_up(&server).await;
    assert!(server.requests().watches("pods").len() > opened);
    let heard = heard.take();
    let revisions: Vec<u64> = heard.lines().map(|line| line.parse().unwrap()).collect();
    assert!(revisions.is_sorted(), "in order");
    assert_eq!(revisions.last(), Some(&server.revision()));
    informer.stop().await;
}

/// A store that waits for one semaphore permit before it records each change.
struct Gated(std::sync::Arc<Semaphore>, Trace);

impl kube_informer::reflector::ReflectorStore<Pod> for Gated {
    async fn accept(
        &mut self,
        delta: Delta<Pod>,
    ) -> Result<(), kube_informer::reflector::StoreError> {
        self.0.acquire().await.unwrap().forget();
        self.1.note(show(&delta));
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_lost_while_the_store_is_full_loses_and_duplicates_no_event() {
    let script = Script::streaming([
        hangs(added("a", 2) + &end(3) + &added("b", 4) + &added("c", 5) + &added("d", 6)),
        hangs(added("c", 5) + &added("d", 6)),
    ]);
    let (gate, heard) = (std::sync::Arc::new(Semaphore::new(1)), Trace::default());
    let store = Gated(std::sync::Arc::clone(&gate), heard.clone());
    let reflector = Reflector::builder(script.clone())
        .initial_list(InitialList::Streaming)
        .into_store(store);
    let drive = async {
        let before = script.under_way();
        sleep(29 * SECOND).await;
        assert_eq!(script.under_way(), before + 1);
        sleep(2 * SECOND).await;
        assert_eq!(script.under_way(), before, "the watch is closed");
        sleep(5 * MINUTE).await;
        assert_eq!(
            script.requests.len(),
            1,
            "no watch is opened while the store has no room"
        );
        gate.add_permits(10);
        sleep(SECOND).await;
    };
    reflector.run(drive).await;
    expect![[r#"
        0.0 s: stream
        331.0 s: watch resourceVersion=4
    "#]]
    .assert_eq(&script.log.take());
    expect![[r#"
        all at 3: [default/a@2]
        Added default/b@4
        Added default/c@5
        Added default/d@6
    "#]]
    .assert_eq(&heard.take());
}

#[tokio::test(start_paused = true)]
async fn a_restored_server_that_reuses_a_revision_for_the_same_name_is_detected() {
    for initial_list in [InitialList::Streaming, InitialList::List] {
        let server = server_with_history();
        let informer = run(builder(&server).initial_list(initial_list));
        informer.caught_up(&server).await;
        let trace = Trace::default();
        trace.listen(&informer.pods);
        sleep(SECOND).await;
        trace.take();
        server.faults().break_watches();
        sleep(SECOND / 10).await;
        server.faults().restart_at(server.revision() - 2).unwrap();
        server.create(labelled("c", "new")).unwrap();
        sleep(MINUTE / 4).await;
        let cached = informer
            .pods
            .indexer()
            .get(&ObjectName::namespaced("default", "c"));
        assert_eq!(
            cached.unwrap().labels().get("app"),
            Some("new"),
            "{initial_list:?}"
        );
        let told = trace.take();
        assert!(told.contains("update default/c@3 → 3 (relist)"), "{told}");
        informer.stop().await;
    }
}
