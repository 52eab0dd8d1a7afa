//! Tests of the server identity that a saved store contains.
//!
//! A warm start compares the saved identity with the identity that the server reports. If the program sets an
//! identity with `SavedStore::server`, the informer does not request the server's identity.

use std::future::{pending, ready};

use kube_informer::{status::Status, transport::Class};
use kube_informer_apiserver::Answer;
use tokio::time::Instant;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_named_server_receives_no_identity_request() {
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

fn reject_identity_requests(server: &Server, status: u16) -> Answer {
    let asked = Match::verb(Verb::Get, "namespaces").named("kube-system");
    let answer = server.faults().answer(asked, status);
    answer.times(u64::MAX);
    answer
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_identity_request_is_a_cold_start_that_saves_nothing_and_names_the_fix() {
    let server = server(1, &["a"]);
    let path = file("forbidden");
    reject_identity_requests(&server, 403);
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
    // With the fix that the error names.
    let named = || builder(&server).warm_start(saved(&path).server("one"));
    save(&server, named()).await;
    assert!(start(&server, named()).await.starts_with("warm: 1@1\n"));
}

#[tokio::test(start_paused = true)]
async fn a_failed_identity_request_is_retried_at_a_save() {
    let server = server(1, &["a"]);
    for saving in ["on demand", "every so often", "at the end"] {
        let path = file(&format!("later-{saving}"));
        reject_identity_requests(&server, 403);
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

/// A [`ListerWatcher`] whose method `server`, which requests the server's identity, fails for the first
/// `refusals` calls. Later calls never complete.
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
async fn an_identity_request_without_a_response_delays_the_stop_by_five_seconds() {
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
async fn an_identity_request_without_a_response_fails_after_a_minute_and_is_retried() {
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
async fn a_retry_after_on_the_identity_request_is_limited_to_a_minute() {
    let server = server(1, &["a"]);
    for (wanted, expected) in [(30, 30), (3600, 60)] {
        reject_identity_requests(&server, 429).retry_after(wanted);
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
async fn a_failed_identity_request_does_not_keep_an_informer_from_starting() {
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
async fn a_transport_without_an_identity_is_neither_saved_nor_loaded() {
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
