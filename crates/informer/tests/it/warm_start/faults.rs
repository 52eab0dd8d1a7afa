//! Tests of warm starts with an unusable or outdated saved store.
//!
//! An informer ignores and reports a saved store that is damaged. The same applies to the saved store of
//! another server, scope, kind or program version. If the saved revision has expired, the informer uses the
//! saved objects and then lists again.

mod identity;

use futures_util::future::BoxFuture;
use kube_informer::{
    object::ResourceVersion,
    transport::{Error, ListOptions, ListerWatcher, Response},
};

use super::*;

/// Returns a server with these pods. Servers with the same pods and the same `seed` assign the same uids.
fn server(seed: u64, pods: &[&str]) -> Server {
    let pods: Vec<_> = pods.iter().map(|name| pod(name)).collect();
    Server::builder().rng_seed(seed).seed(pods).build()
}

/// Runs an informer until its cache matches the server.
///
/// Returns the kind of the start (warm or cold), the requests, and the events of a handler as text.
async fn start(server: &Server, informer: Builder<Pod>) -> String {
    let mut before = requests(server).lines().count();
    let informer = run(informer);
    let trace = Trace::default();
    trace.listen(&informer.pods);
    informer.caught_up(server).await;
    let told = format!(
        "{}\n{}{}",
        started(&informer),
        asked(server, &mut before),
        trace.take()
    );
    informer.stop().await;
    told
}

#[tokio::test(start_paused = true)]
async fn an_expired_revision_leads_to_a_list_and_only_its_differences_are_delivered() {
    let server = server(1, &["a", "b", "c"]);
    let path = file("expired");
    save(&server, warm(&server, &path)).await;
    server.update(labelled("a", "new")).unwrap();
    server.delete("v1", "pods", "default/b").unwrap();
    server.faults().expire_history();
    expect![[r#"
        warm: 3@3
        list 3 limit=1: 200
        watch 3: 200
        list - limit=500: 200
        watch 5: 200
        add default/a@1 (initial)
        add default/b@2 (initial)
        add default/c@3 (initial)
        delete default/b@2 (final state unknown)
        update default/a@1 → 4 (relist)
        synced
    "#]]
    .assert_eq(&start(&server, warm(&server, &path)).await);
}

#[tokio::test(start_paused = true)]
async fn a_server_restored_behind_the_saved_revision_is_a_cold_start() {
    let server = server(1, &["a", "b", "c"]);
    let path = file("put-back");
    save(&server, warm(&server, &path)).await;
    server.faults().restart_at(1).unwrap();
    expect![[r#"
        cold: the server has not reached revision 3, up to which the store was saved
        list 3 limit=1: 504
        list - limit=500: 200
        watch 1: 200
        add default/a@1 (initial)
        synced
    "#]]
    .assert_eq(&start(&server, warm(&server, &path)).await);
}

#[tokio::test(start_paused = true)]
async fn another_cluster_is_a_cold_start() {
    let (one, other) = (server(1, &["a"]), server(2, &["x", "y"]));
    let path = file("other-cluster");
    save(&one, warm(&one, &path)).await;
    expect![[r#"
        cold: the store was saved from another server
        list - limit=500: 200
        watch 2: 200
        add default/x@1 (initial)
        add default/y@2 (initial)
        synced
    "#]]
    .assert_eq(&start(&other, warm(&other, &path)).await);
}

#[tokio::test(start_paused = true)]
async fn another_scope_kind_representation_or_version_is_a_cold_start_with_a_reason() {
    let server = server(1, &["a"]);
    let path = file("other");
    let pods = || ListWatch::<Pod>::new(server.client());
    let cold = async |informer: Builder<Pod>| {
        save(&server, warm(&server, &path)).await;
        let told = start(&server, informer).await;
        told.lines().next().unwrap().to_owned() + "\n"
    };
    let of = |source| SharedInformer::builder(source).warm_start(saved(&path));
    let app = "app=web".parse().unwrap();
    let mut told = String::new();
    for informer in [
        of(pods().namespace("default")),
        of(pods().labels(&app)),
        of(pods().fields("spec.nodeName=n1")),
        of(pods().tweak_list_options(|options| options.label_selector = Some("a=b".into()))),
        of(pods()).source(pods().namespace("other")),
        builder(&server).warm_start(SavedStore::in_file(&path, "2")),
    ] {
        told += &cold(informer).await;
    }
    expect![[r#"
        cold: the saved store has /api/v1/pods, and the informer requests /api/v1/namespaces/default/pods
        cold: the saved store has /api/v1/pods, and the informer requests /api/v1/pods?labelSelector=app%3Dweb
        cold: the saved store has /api/v1/pods, and the informer requests /api/v1/pods?fieldSelector=spec.nodeName%3Dn1
        cold: the saved store has /api/v1/pods, and the informer requests /api/v1/pods?labelSelector=a%3Db
        cold: the saved store has /api/v1/pods, and the informer requests /api/v1/pods, /api/v1/namespaces/other/pods
        cold: the store was saved as version "1", and the program uses another version
    "#]].assert_eq(&told);
    save(&server, warm(&server, &path)).await;
    let metadata = ListWatch::<PartialObjectMeta<Pod>>::new(server.client());
    let metadata = SharedInformer::<PartialObjectMeta<Pod>>::builder(metadata);
    let (metadata, controller) = metadata.warm_start(saved(&path)).build();
    controller
        .run(async { metadata.wait_for_sync().await.unwrap() })
        .await
        .unwrap();
    let reason = ColdReason::OtherKind {
        saved: "v1 Pod".to_owned(),
    };
    assert_eq!(
        metadata.status().get().warm_start,
        Some(WarmStart::Cold { reason })
    );
}

#[tokio::test(start_paused = true)]
async fn a_truncated_or_damaged_file_is_a_cold_start() {
    let server = server(1, &["a"]);
    let path = file("damaged");
    save(&server, warm(&server, &path)).await;
    let whole = fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    // Inside a name, so that the changed text is still JSON.
    let name = whole.windows(5).position(|text| text == b"\"name").unwrap();
    flipped[name + 1] ^= 1;
    let future = String::from_utf8(whole.clone())
        .unwrap()
        .replacen('1', "7", 1);
    let mut told = String::new();
    for bytes in [&whole[..whole.len() - 1], &flipped, b"", future.as_bytes()] {
        fs::write(&path, bytes).unwrap();
        let start = start(&server, warm(&server, &path)).await;
        assert!(start.contains("list - limit=500") && start.contains("add default/a@1 (initial)"));
        told = told + start.lines().next().unwrap() + "\n";
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let informer = run(warm(&server, &path));
    informer.caught_up(&server).await;
    told += &started(&informer);
    assert!(matches!(
        informer.pods.save().await,
        Err(SaveError::Io { .. })
    ));
    informer.stop().await;
    expect![[r#"
        cold: the saved store is damaged: line 3 is cut off
        cold: the saved store is damaged: its checksum is wrong
        cold: the saved store is damaged: line 1 is cut off
        cold: the saved store has format 7, which this version does not read
        cold: the saved store can't be read: it is not a file"#]]
    .assert_eq(&told);
}

#[tokio::test(start_paused = true)]
async fn a_warm_start_waits_for_an_unreachable_server() {
    let server = server(1, &["a"]);
    let path = file("not-there");
    save(&server, warm(&server, &path)).await;
    server.faults().refuse_connections(true);
    let informer = run(warm(&server, &path));
    sleep(Duration::from_secs(30)).await;
    let status = informer.pods.status().get();
    assert_eq!(status.warm_start, None);
    assert!(
        matches!(status.activity(), Activity::BackingOff { .. }),
        "{status}"
    );
    assert!(status.last_error().is_some());
    server.faults().refuse_connections(false);
    informer.caught_up(&server).await;
    assert_eq!(started(&informer), "warm: 1@1");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn attempts_during_an_outage_do_not_count_as_rejected_attempts_of_a_warm_start() {
    let server = server(1, &["a"]);
    let path = file("outage-then-errors");
    save(&server, warm(&server, &path)).await;
    for (errors, expected) in [(4, "warm: 1@1"), (5, "cold: ")] {
        server.faults().refuse_connections(true);
        let informer = run(warm(&server, &path));
        // More attempts fail here than the warm start makes after errors of the server.
        sleep(Duration::from_secs(300)).await;
        server.faults().answer(Match::any(), 500).times(errors);
        server.faults().refuse_connections(false);
        informer.caught_up(&server).await;
        let started = started(&informer);
        assert!(started.starts_with(expected), "{errors}: {started}");
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_the_server_is_unreachable_saves_nothing() {
    let server = server(1, &["a"]);
    let path = file("stopped-early");
    server.faults().refuse_connections(true);
    let informer = run(warm(&server, &path));
    sleep(Duration::from_secs(30)).await;
    let pods = informer.stop().await;
    assert!(pods.status().get().is_stopped());
    assert!(!path.exists());
    assert!(matches!(pods.save().await, Err(SaveError::Stopped)));
}

#[tokio::test(start_paused = true)]
async fn a_saved_revision_too_old_for_a_list_can_be_new_enough_for_a_watch() {
    let server = server(1, &["a"]);
    let path = file("old");
    save(&server, warm(&server, &path)).await;
    server.faults().answer(Match::list("pods"), 410).times(1);
    expect![[r#"
        warm: 1@1
        list 1 limit=1: 410
        watch 1: 200
        add default/a@1 (initial)
        synced
    "#]]
    .assert_eq(&start(&server, warm(&server, &path)).await);
}

/// A source that always lists the newest objects, whatever revision is requested.
struct Careless(ListWatch<Pod>);

impl ListerWatcher for Careless {
    fn list(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        let mut options = options.clone();
        options.resource_version = ResourceVersion::UNSET;
        options.resource_version_match = None;
        self.0.list(&options)
    }

    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.0.watch(options)
    }

    fn collection(&self) -> Option<String> {
        self.0.collection()
    }

    fn server(&self) -> BoxFuture<'_, Result<Option<String>, Error>> {
        self.0.server()
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_older_than_the_saved_revision_is_a_cold_start() {
    let server = server(1, &["a", "b", "c"]);
    let path = file("careless");
    save(&server, warm(&server, &path)).await;
    server.faults().restart_at(1).unwrap();
    let source = Careless(ListWatch::new(server.client()));
    let informer = SharedInformer::builder(source).warm_start(saved(&path));
    let told = start(&server, informer).await;
    let reason = "cold: the server has not reached revision 3, up to which the store was saved\n";
    assert!(told.starts_with(reason), "{told}");
}

#[tokio::test(start_paused = true)]
async fn either_all_sources_resume_or_none() {
    let server = Server::builder()
        .rng_seed(1)
        .enforce_namespaces(false)
        .build();
    let in_namespace = |name: &str, namespace: &str| {
        let mut pod = pod(name);
        pod["metadata"]["namespace"] = namespace.into();
        pod
    };
    server.create(in_namespace("a", "one")).unwrap();
    server.create(in_namespace("b", "two")).unwrap();
    let path = file("several");
    let source = |namespace: &str| ListWatch::<Pod>::new(server.client()).namespace(namespace);
    let informer = || {
        let both = SharedInformer::builder(source("one")).source(source("two"));
        both.name("pods").rng_seed(1).warm_start(saved(&path))
    };
    save(&server, informer()).await;
    server.create(in_namespace("c", "two")).unwrap();
    expect![[r#"
        warm: 2@3
        list 3 limit=1: 200
        list 3 limit=1: 200
        watch 3: 200
        watch 3: 200
        add one/a@2 (initial)
        add two/b@3 (initial)
        add two/c@4
        synced
    "#]]
    .assert_eq(&start(&server, informer()).await);
    let answer = server
        .faults()
        .answer(Match::list("pods").in_namespace("two"), 504);
    answer.too_large_revision().times(1);
    let told = start(&server, informer()).await;
    assert!(
        told.starts_with("cold: the server has not reached revision"),
        "{told}"
    );
    assert_eq!(told.matches("(initial)").count(), 3, "{told}");
}
