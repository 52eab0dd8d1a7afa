//! What does not fit is a cold start with its reason; what has expired is listed.

use std::future::{pending, ready};

use futures_util::future::BoxFuture;
use kube_informer::{
    object::ResourceVersion,
    status::Status,
    transport::{Class, Error, ListOptions, ListerWatcher, Response},
};
use kube_informer_apiserver::Answer;
use tokio::time::Instant;

use super::*;

/// A server with the uids that any other with this seed has.
fn server(seed: u64, pods: &[&str]) -> Server {
    let pods: Vec<_> = pods.iter().map(|name| pod(name)).collect();
    Server::builder().rng_seed(seed).seed(pods).build()
}

/// Starts an informer, and says how it started, what it asked for and what a handler heard.
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
async fn an_expired_revision_leads_to_a_list_of_which_the_difference_is_told() {
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
async fn a_server_that_was_put_back_behind_the_saved_revision_is_listed_and_nothing_loaded() {
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
async fn a_server_that_is_named_is_not_asked_who_it_is() {
    let (one, other) = (server(1, &["a"]), server(2, &["x", "y"]));
    let path = file("named");
    let named = |server: &Server, name: &str| builder(server).warm_start(saved(&path).server(name));
    save(&one, named(&one, "one")).await;
    let gets = |server: &Server| {
        let log = server.requests();
        log.iter()
            .filter(|request| request.verb == Verb::Get)
            .count()
    };
    assert_eq!(gets(&one), 0);
    assert!(
        start(&one, named(&one, "one"))
            .await
            .starts_with("warm: 1@1\n")
    );
    let told = start(&other, named(&other, "other")).await;
    assert!(
        told.starts_with("cold: the store was saved from another server\n"),
        "{told}"
    );
    assert_eq!(gets(&other), 0);
}

#[tokio::test(start_paused = true)]
async fn another_scope_kind_representation_or_version_is_a_cold_start_with_the_reason() {
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
async fn a_file_that_is_cut_or_damaged_is_a_cold_start() {
    let server = server(1, &["a"]);
    let path = file("damaged");
    save(&server, warm(&server, &path)).await;
    let whole = fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
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
async fn a_server_that_is_not_there_yet_is_waited_for() {
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
async fn a_stop_while_the_server_is_waited_for_is_a_stop_and_saves_nothing() {
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

fn refuse_to_say_who(server: &Server, status: u16) -> Answer {
    let asked = Match::verb(Verb::Get, "namespaces").named("kube-system");
    let answer = server.faults().answer(asked, status);
    answer.times(u64::MAX);
    answer
}

#[tokio::test(start_paused = true)]
async fn who_may_not_see_the_namespace_starts_cold_saves_nothing_and_is_told_what_to_do() {
    let server = server(1, &["a"]);
    let path = file("forbidden");
    refuse_to_say_who(&server, 403);
    let informer = run(warm(&server, &path));
    informer.caught_up(&server).await;
    let refused = informer.pods.save().await.unwrap_err();
    assert!(matches!(refused, SaveError::ServerUnknown(_)), "{refused}");
    let told = started(&informer);
    let pods = informer.stop().await;
    assert!(!path.exists());
    let status = pods.status().get();
    for told in [
        told,
        refused.to_string(),
        status.last_save_error.clone().unwrap(),
    ] {
        assert!(told.contains("kube-system"), "{told}");
        assert!(told.contains("SavedStore::server"), "{told}");
    }
    let status = status.to_string();
    assert!(
        status.contains("; not saved: the identity of the server is unknown"),
        "{status}"
    );
    // As it is told.
    let named = || builder(&server).warm_start(saved(&path).server("one"));
    save(&server, named()).await;
    assert!(start(&server, named()).await.starts_with("warm: 1@1\n"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_who_it_is_only_later_is_asked_again_at_a_save() {
    let server = server(1, &["a"]);
    for saving in ["on demand", "every so often", "at the end"] {
        let path = file(&format!("later-{saving}"));
        refuse_to_say_who(&server, 403);
        let store = saved(&path).every(Duration::from_secs(600));
        let informer = run(builder(&server).warm_start(store));
        informer.caught_up(&server).await;
        sleep(Duration::from_secs(601)).await;
        assert!(!path.exists());
        let last_error = |pods: &SharedInformer<Pod>| pods.status().get().last_save_error;
        assert!(last_error(&informer.pods).is_some());
        server.faults().clear_answers();
        match saving {
            "on demand" => drop(informer.pods.save().await.unwrap()),
            "every so often" => sleep(Duration::from_secs(600)).await,
            _ => {}
        }
        assert_eq!(path.exists(), saving != "at the end");
        let pods = informer.stop().await;
        assert_eq!(last_error(&pods), None);
        let told = start(&server, warm(&server, &path)).await;
        assert!(told.starts_with("warm: 1@1\n"), "{saving}: {told}");
    }
}

/// A source whose server refuses so often to say who it is, and then does not answer.
struct Hesitant {
    pods: ListWatch<Pod>,
    refusals: usize,
    asked: AtomicUsize,
}

impl ListerWatcher for Hesitant {
    fn list(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.pods.list(options)
    }

    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.pods.watch(options)
    }

    fn collection(&self) -> Option<String> {
        self.pods.collection()
    }

    fn server(&self) -> BoxFuture<'_, Result<Option<String>, Error>> {
        if self.asked.fetch_add(1, Ordering::Relaxed) >= self.refusals {
            return pending().boxed();
        }
        ready(Err(Error::new(Class::Forbidden, "not you"))).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_holds_the_end_up_for_five_seconds() {
    let server = server(1, &["a"]);
    let source = Hesitant {
        pods: ListWatch::new(server.client()),
        refusals: 1,
        asked: AtomicUsize::new(0),
    };
    let path = file("hesitant");
    let informer = run(SharedInformer::builder(source).warm_start(saved(&path)));
    informer.caught_up(&server).await;
    let begun = Instant::now();
    let pods = informer.stop().await;
    assert_eq!(begun.elapsed().as_secs(), 5);
    let error = pods.status().get().last_save_error.unwrap();
    assert!(error.ends_with("the server does not respond"), "{error}");
    assert!(!path.exists());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_for_a_minute_has_failed_and_is_asked_again() {
    let server = server(1, &["a"]);
    let source = Hesitant {
        pods: ListWatch::new(server.client()),
        refusals: 0,
        asked: AtomicUsize::new(0),
    };
    let heard = Trace::default();
    let hearing = heard.clone();
    let informer = SharedInformer::builder(source)
        .warm_start(saved(&file("silent")))
        .on_error(move |error| hearing.note(error.to_string()));
    let informer = run(informer);
    sleep(Duration::from_secs(59)).await;
    assert!(informer.pods.status().get().last_error().is_none());
    sleep(Duration::from_secs(2)).await;
    let status = informer.pods.status().get();
    let error = status.last_error().unwrap();
    assert_eq!(error.class(), Class::Timeout, "{error}");
    assert_eq!(heard.len(), 1);
    assert!(
        matches!(status.activity(), Activity::BackingOff { attempt: 1, .. }),
        "{status}"
    );
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_wants_to_be_left_alone_is_for_a_minute_at_most() {
    let server = server(1, &["a"]);
    for (wanted, expected) in [(30, 30), (3600, 60)] {
        refuse_to_say_who(&server, 429).retry_after(wanted);
        let informer = run(warm(&server, &file("left-alone")));
        let is_waiting = |status: &Status| status.last_error().is_some();
        let mut status = informer.pods.status();
        status.wait_for(is_waiting).await.unwrap();
        sleep(Duration::from_millis(1)).await;
        let activity = status.get().activity();
        let Activity::BackingOff { pause, .. } = activity else {
            panic!("{activity:?}");
        };
        assert_eq!(pause, Duration::from_secs(expected));
        informer.stop().await;
        server.faults().clear_answers();
    }
}

#[tokio::test(start_paused = true)]
async fn a_saved_revision_that_is_too_old_for_a_list_may_be_new_enough_for_a_watch() {
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

/// A source that lists what there is, how new it ought to be or not.
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
async fn a_server_that_answers_from_before_the_saved_revision_was_put_back() {
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
async fn a_server_that_fails_to_say_who_it_is_does_not_keep_an_informer_from_starting() {
    let server = server(1, &["a"]);
    let path = file("failing");
    let answer = server
        .faults()
        .answer(Match::verb(Verb::Get, "namespaces"), 500);
    answer.times(u64::MAX);
    let told = start(&server, warm(&server, &path)).await;
    assert!(
        told.starts_with("cold: the identity of the server is unknown")
            && told.ends_with("synced\n"),
        "{told}"
    );
    answer.times(3);
    let told = start(&server, warm(&server, &path)).await;
    assert!(told.starts_with("cold: no store is saved there"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_transport_that_says_nothing_of_itself_is_neither_saved_nor_loaded() {
    let script = Script::new([body(list(5, "", &[]))]);
    let path = file("unidentified");
    let informer = SharedInformer::<Pod>::builder(script).warm_start(saved(&path).server("one"));
    let informer = run(informer);
    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
    let reason = ColdReason::Unidentified;
    assert_eq!(
        informer.pods.status().get().warm_start,
        Some(WarmStart::Cold { reason })
    );
    assert!(matches!(
        informer.pods.save().await,
        Err(SaveError::Unidentified)
    ));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn of_several_sources_all_go_on_or_none() {
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
