//! Tests of `wait_for_revision`, `wait_for_deleted` and `MutationCache`, an overlay of pending writes.

use std::{task::Poll, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kube_core::ResourceExt;
use kube_informer::{
    Indexers, MutationCache, ObjectName, Selector, SharedInformer,
    client::ListWatch,
    mutation_cache::PutError,
    object::ResourceVersion,
    queue::DeltaFifo,
    shared_informer::{Builder, DeletedError, RevisionError},
};
use kube_informer_apiserver::{Match, Server};
use serde_json::Value;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::setting::{LONG, Running, builder, labelled, pod, run};

const SECOND: Duration = Duration::from_secs(1);

fn typed(answer: Value) -> Pod {
    serde_json::from_value(answer).unwrap()
}

fn create(server: &Server, name: &str) -> Pod {
    typed(server.create(pod(name)).unwrap())
}

fn delete(server: &Server, name: &str) {
    server
        .delete("v1", "pods", &format!("default/{name}"))
        .unwrap();
}

fn name(name: &str) -> ObjectName {
    ObjectName::namespaced("default", name)
}

fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap()
}

/// Returns a synced informer whose watch has been open for two seconds.
async fn watching(builder: Builder<Pod>, server: &Server) -> Running {
    let informer = run(builder);
    informer.caught_up(server).await;
    sleep(2 * SECOND).await;
    informer
}

#[tokio::test(start_paused = true)]
async fn a_written_object_is_in_the_cache_when_the_wait_for_it_ends() {
    let server = Server::builder().build();
    for builder in [builder(&server), builder(&server).queue(DeltaFifo::new())] {
        let informer = watching(builder, &server).await;
        let (pods, cache) = (&informer.pods, informer.pods.indexer());
        for round in 0..50 {
            let made = create(&server, &format!("pod-{round}"));
            let update = server.update(labelled(&made.name_any(), "new")).unwrap();
            let written = typed(update);
            pods.wait_for_revision(&written, LONG).await.unwrap();
            let cached = cache.get(&name(&made.name_any())).unwrap();
            assert_eq!(cached.labels().get("app"), Some("new"));
            pods.wait_for_revision(&cached, Duration::ZERO)
                .await
                .unwrap();
            delete(&server, &made.name_any());
            let deleted = pods.wait_for_deleted(&name(&made.name_any()), uid(&made), LONG);
            deleted.await.unwrap();
            assert!(cache.is_empty());
        }
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_unordered_revision_is_rejected_at_once() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = watching(builder(&server), &server).await;
    let never_stored = typed(pod("b"));
    let began = Instant::now();
    for wait in [
        informer.pods.wait_for_revision("0", LONG),
        informer.pods.wait_for_revision("x-1", LONG),
        informer.pods.wait_for_revision("", LONG),
        informer.pods.wait_for_revision(&never_stored, LONG),
    ] {
        let error = wait.await.unwrap_err();
        assert!(
            matches!(error, RevisionError::NotComparable { .. }),
            "{error}"
        );
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_times_out_reports_the_revision_of_the_cache() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = watching(builder(&server), &server).await;
    server.faults().freeze_watches();
    let written = create(&server, "b");
    let began = Instant::now();
    let error = informer.pods.wait_for_revision(&written, 5 * SECOND).await;
    assert_eq!(
        error,
        Err(RevisionError::Deadline {
            wanted: ResourceVersion::from(server.revision()),
            reached: ResourceVersion::from(server.revision() - 1),
        })
    );
    assert_eq!(began.elapsed(), 5 * SECOND);

    server.faults().thaw_watches();
    let wait = informer.pods.wait_for_revision(&written, LONG);
    wait.await.unwrap();
    informer.stop().await;
}

/// In the first run, an old bookmark reveals the restore of the server. In the second run, the list after a
/// rejected watch reveals the restore.
#[tokio::test(start_paused = true)]
async fn a_restored_server_fails_the_wait_for_a_lost_revision() {
    for lists in [false, true] {
        let server = Server::builder().seed([pod("a"), pod("b")]).build();
        let old = server.revision();
        let informer = watching(builder(&server), &server).await;
        create(&server, "c");
        informer.caught_up(&server).await;

        server.faults().freeze_watches();
        let written = create(&server, "lost");
        let wait = informer.pods.wait_for_revision(&written, LONG);
        server.faults().restart_at(old).unwrap();
        if lists {
            server.faults().answer(Match::watch("pods"), 410);
        } else {
            let bookmark = format!(
                r#"watch pods: send "{{\"type\":\"BOOKMARK\",\"object\":{{\"metadata\":{{\"resourceVersion\":\"{old}\"}}}}}}\n" after 0 events x1"#
            );
            server.faults().inject(&bookmark).unwrap();
        }
        server.faults().thaw_watches();
        let went_back = RevisionError::WentBack {
            wanted: ResourceVersion::from(old + 2),
            reached: ResourceVersion::from(old),
        };
        assert_eq!(wait.await, Err(went_back), "by a list: {lists}");

        let anew = create(&server, "anew");
        let wait = informer.pods.wait_for_revision(&anew, LONG);
        wait.await.expect("later revisions are reached");
        assert!(informer.pods.indexer().get(&name("anew")).is_some());
        assert!(
            informer.pods.indexer().get(&name("c")).is_none(),
            "the restored server does not have c"
        );
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_an_object_waits_only_for_the_source_that_has_it() {
    let server = Server::builder().build();
    let of = |namespace: &str| ListWatch::<Pod>::new(server.client()).namespace(namespace);
    let (pods, controller) = kube_informer::SharedInformer::<Pod>::builder(of("kube-public"))
        .source(of("default"))
        .rng_seed(1)
        .build();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(controller.run(async {
        let _ = stopped.await;
    }));
    pods.wait_for_sync().deadline(LONG).await.unwrap();
    sleep(2 * SECOND).await;

    let made = create(&server, "a");
    pods.wait_for_revision(&made, LONG).await.unwrap();
    assert!(pods.indexer().get(&name("a")).is_some());

    let began = Instant::now();
    let written = typed(server.update(labelled("a", "new")).unwrap());
    // The cache has an older state of the object, so its source is known.
    pods.wait_for_revision(&written, LONG).await.unwrap();
    let cached = pods.indexer().get(&name("a")).unwrap();
    assert_eq!(cached.labels().get("app"), Some("new"));
    assert_eq!(began.elapsed(), Duration::ZERO);

    let wait = pods.wait_for_revision(server.revision(), SECOND);
    let error = wait.await.unwrap_err();
    assert!(
        matches!(error, RevisionError::Deadline { .. }),
        "the first source has received nothing since: {error}"
    );
    let wait = pods.wait_for_revision(server.revision(), LONG);
    wait.await.expect("a bookmark is received in time");
    drop(stop);
    tasks.join_next().await.unwrap().unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_deletion_ends_when_another_object_has_the_name() {
    let server = Server::builder().build();
    let first = create(&server, "a");
    let informer = watching(builder(&server), &server).await;
    let wait = |deadline| {
        let pods = &informer.pods;
        pods.wait_for_deleted(&name("a"), uid(&first), deadline)
    };
    let began = Instant::now();
    let failed_wait = wait(SECOND).await;
    assert_eq!(failed_wait, Err(DeletedError::Deadline { name: name("a") }));
    assert_eq!(began.elapsed(), SECOND);

    delete(&server, "a");
    let second = create(&server, "a");
    assert_ne!(uid(&first), uid(&second));
    wait(LONG).await.unwrap();
    assert_eq!(began.elapsed(), SECOND, "at once");
    let cached = informer.pods.indexer().get(&name("a"));
    assert!(cached.is_none_or(|cached| cached.uid() == uid(&second)));

    let waiting = informer
        .pods
        .wait_for_deleted(&name("a"), uid(&second), LONG);
    let waiting = async { (waiting.await, Instant::now()) };
    informer
        .pods
        .wait_for_revision(&second, LONG)
        .await
        .unwrap();
    let began = Instant::now();
    let ((ended, at), pods) = tokio::join!(waiting, informer.stop());
    assert_eq!(ended, Err(DeletedError::Stopped { name: name("a") }));
    assert_eq!(at, began, "the wait ends before its deadline");
    let after = pods.wait_for_deleted(&name("a"), uid(&first), LONG);
    after
        .await
        .expect("a wait after the stop has the same result");
}

#[tokio::test(start_paused = true)]
async fn before_the_first_list_no_object_is_reported_as_deleted() {
    let server = Server::builder().seed([pod("a")]).build();
    let (pods, controller) = builder(&server).build();
    let wait = |deadline| pods.wait_for_deleted(&name("b"), "u", deadline);
    let early = wait(SECOND).await;
    assert_eq!(early, Err(DeletedError::Deadline { name: name("b") }));
    let waiting = wait(LONG);
    drop(controller);
    let never = waiting.await;
    assert_eq!(never, Err(DeletedError::Stopped { name: name("b") }));
}

#[tokio::test(start_paused = true)]
async fn a_wait_can_be_dropped_after_any_poll_and_repeated() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = watching(builder(&server), &server).await;
    let written = create(&server, "b");
    for polls in 0.. {
        let mut wait = informer.pods.wait_for_revision(&written, LONG);
        let mut polled = 0;
        let dropped_or_done = std::future::poll_fn(|context| {
            if polled == polls {
                return std::task::Poll::Ready(None);
            }
            polled += 1;
            wait.as_mut().poll(context).map(Some)
        });
        if let Some(done) = dropped_or_done.await {
            done.unwrap();
            break;
        }
    }
    assert!(informer.pods.indexer().get(&name("b")).is_some());
    informer.stop().await;
}

/// Returns the objects that the overlay lists, in one line.
fn listed(overlay: &MutationCache<Pod>) -> String {
    format!("{:?}", overlay.list(&Selector::everything()))
}

#[tokio::test(start_paused = true)]
async fn own_writes_are_read_at_once_and_the_cached_state_after_the_cache_has_caught_up() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let by_app = Indexers::new().with("app", |pod: &Pod| pod.labels().get("app").cloned());
    let informer = watching(builder(&server).indexers(by_app).unwrap(), &server).await;
    let overlay = informer.pods.overlay();
    server.faults().freeze_watches();

    let doomed = overlay.get(&name("b")).unwrap();
    overlay
        .put(typed(server.update(labelled("a", "x")).unwrap()))
        .unwrap();
    overlay
        .put(typed(server.create(labelled("0", "x")).unwrap()))
        .unwrap();
    delete(&server, "b");
    overlay.delete(&name("b"), uid(&doomed));
    assert_eq!(listed(&overlay), "[default/0@4, default/a@3]");
    assert_eq!(overlay.clone().pending(), 2);
    let found = overlay.by_index("app", "x").unwrap();
    assert_eq!(format!("{found:?}"), "[default/0@4, default/a@3]");
    assert_eq!(overlay.by_index("namespace", "default").unwrap().len(), 2);
    assert!(overlay.by_index("none", "x").is_err());
    let gone = overlay.get(&name("b")).unwrap_err();
    assert_eq!(gone.to_string(), "Pod default/b not found");
    let cached = format!("{:?}", informer.pods.indexer().list());
    assert_eq!(
        cached, "[default/a@1, default/b@2]",
        "the cache is unchanged"
    );

    overlay
        .put(typed(server.update(labelled("a", "y")).unwrap()))
        .unwrap();
    let found = overlay.by_index("app", "x").unwrap();
    assert_eq!(format!("{found:?}"), "[default/0@4]");

    server.update(labelled("a", "z")).unwrap();
    server.faults().thaw_watches();
    informer.caught_up(&server).await;
    assert_eq!(overlay.pending(), 0);
    assert_eq!(listed(&overlay), "[default/0@4, default/a@7]");
    let cached = informer.pods.indexer().get(&name("0")).unwrap();
    let read = overlay.find(&name("0")).unwrap();
    assert!(read.is_same(&cached), "the cache's own object again");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_created_and_deleted_while_disconnected_is_not_read_after_the_relist() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = watching(builder(&server), &server).await;
    let overlay = informer.pods.overlay();
    server.faults().cut_watches();
    let made = create(&server, "b");
    overlay.put(made.clone()).unwrap();
    assert_eq!(listed(&overlay), "[default/a@1, default/b@2]");
    delete(&server, "b");
    server.faults().expire_history();
    informer.caught_up(&server).await;
    assert_eq!(listed(&overlay), "[default/a@1]");
    overlay.put(made).unwrap();
    assert_eq!(
        listed(&overlay),
        "[default/a@1]",
        "a second put has no effect"
    );
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_overlay_enforces_its_limits_and_accepts_only_named_objects_with_ordered_revisions() {
    let server = Server::builder().build();
    let informer = watching(builder(&server), &server).await;
    server.faults().freeze_watches();
    let overlay = MutationCache::builder(&informer.pods)
        .capacity(2)
        .ttl(SECOND)
        .build();
    let shy = MutationCache::builder(&informer.pods)
        .without_adds()
        .build();
    for name in ["a", "b", "c"] {
        let made = create(&server, name);
        shy.put(made.clone()).unwrap();
        overlay.put(made).unwrap();
    }
    assert_eq!(listed(&overlay), "[default/b@3, default/c@4]");
    assert_eq!((listed(&shy).as_str(), shy.pending()), ("[]", 3));
    sleep(SECOND).await;
    assert_eq!((listed(&overlay).as_str(), overlay.pending()), ("[]", 0));

    let unwritten = overlay.put(typed(pod("d"))).unwrap_err();
    assert!(matches!(unwritten, PutError::NotComparable { .. }));
    let nameless = overlay.put(Pod::default()).unwrap_err();
    assert!(matches!(nameless, PutError::Nameless(_)), "{nameless}");
    informer.stop().await;
}

/// Simulates a controller: creates pod `b` whenever the overlay lacks this pod, until the informer stops.
async fn keep_alive(server: Server, informer: SharedInformer<Pod>, overlay: MutationCache<Pod>) {
    let mut events = informer.subscribe().unwrap();
    let mut lapsed = overlay.lapsed();
    loop {
        if overlay.find(&name("b")).is_none() {
            overlay.put(create(&server, "b")).unwrap();
        }
        tokio::select! {
            biased;
            Some(_) = events.next() => {}
            Some(_) = lapsed.next() => {}
            else => return,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_reads_the_overlay_is_woken_when_its_write_lapses() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = watching(builder(&server), &server).await;
    let overlay = informer.pods.overlay();
    server.faults().freeze_watches();
    let mut tasks = JoinSet::new();
    tasks.spawn(keep_alive(server.clone(), informer.pods.clone(), overlay));
    sleep(SECOND).await;
    delete(&server, "b");
    server.faults().cut_watches();
    server.faults().expire_history();
    server.faults().thaw_watches();
    informer.caught_up(&server).await;
    sleep(LONG).await;
    assert!(informer.pods.indexer().get(&name("b")).is_some());
    informer.stop().await;
    tasks.join_next().await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_write_lapses_after_its_ttl_and_every_stream_reports_it_once() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = watching(builder(&server), &server).await;
    let overlay = MutationCache::builder(&informer.pods)
        .ttl(5 * SECOND)
        .build();
    server.faults().freeze_watches();
    let mut first = tokio_test::task::spawn(overlay.lapsed());
    let mut second = overlay.clone().lapsed();
    assert!(first.poll_next().is_pending());
    let update = server.update(labelled("a", "x")).unwrap();
    overlay.put(typed(update)).unwrap();
    assert!(first.is_woken(), "the stream has a timer now");
    assert!(first.poll_next().is_pending());
    let began = Instant::now();
    for wanted in [Some(name("a")), None] {
        // A dropped future consumes no lapse.
        let dropped = tokio_test::task::spawn(second.next()).poll().is_ready();
        assert!(!dropped || wanted.is_none());
        let next = tokio::time::timeout(LONG, second.next()).await;
        assert_eq!(next.ok().flatten(), wanted);
        if wanted.is_some() {
            assert_eq!(began.elapsed(), 5 * SECOND);
            assert!(
                overlay
                    .find(&name("a"))
                    .unwrap()
                    .labels()
                    .get("app")
                    .is_none()
            );
        }
    }
    assert_eq!(first.poll_next(), Poll::Ready(Some(name("a"))));
    assert!(first.poll_next().is_pending());

    let mut late = overlay.lapsed();
    overlay.put(create(&server, "b")).unwrap();
    drop(second);
    informer.stop().await;
    assert_eq!(late.next().await, None, "the informer has ended");
    assert_eq!(late.next().await, None);
    assert_eq!(first.poll_next(), Poll::Ready(None));
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_lapses_is_not_woken_while_the_overlay_is_empty() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = watching(builder(&server), &server).await;
    let overlay = informer.pods.overlay();
    let mut lapsed = tokio_test::task::spawn(overlay.lapsed());
    assert!(lapsed.poll_next().is_pending());
    for number in 0..10 {
        create(&server, &format!("pod-{number}"));
        informer.caught_up(&server).await;
        overlay.find(&name("a")).unwrap();
    }
    sleep(LONG).await;
    assert!(!lapsed.is_woken());

    // The write reaches the cache: the stream checks each batch until then, and is not woken afterwards.
    overlay.put(create(&server, "b")).unwrap();
    assert!(lapsed.poll_next().is_pending());
    informer.caught_up(&server).await;
    assert!(lapsed.is_woken());
    assert!(lapsed.poll_next().is_pending());
    create(&server, "c");
    informer.caught_up(&server).await;
    sleep(LONG).await;
    assert!(!lapsed.is_woken());
    informer.stop().await;
}
