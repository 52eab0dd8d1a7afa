//! Tests consistency checks, in which an informer periodically compares its cache with a list from the
//! server.
//!
//! The tests check which differences an informer detects, and that a relist corrects the differences. The
//! requests of the checks are tested in the submodule `cost`.

mod cost;
mod rounds;

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    ObjectName, SharedInformer,
    client::ListWatch,
    queue::DeltaFifo,
    reflector::Error,
    shared_informer::Builder,
    status::{ConsistencyChecks, Difference},
    transport::Class,
};
use kube_informer_apiserver::{LoggedRequest, Match, RequestLog, Server};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::sleep;

use crate::setting::{LONG, Trace, builder, labelled, listing, pod, run, streaming};

/// Period of the consistency checks.
const PERIOD: Duration = Duration::from_secs(240);

/// Returns a builder of an informer with consistency checks.
///
/// Only the checks request pages or an exact revision, so [`is_check`] can identify their requests.
fn checked(server: &Server) -> Builder<Pod> {
    listing(server).consistency_check(PERIOD)
}

fn is_check(request: &LoggedRequest) -> bool {
    request.options.resource_version_match.as_deref() == Some("Exact")
        || request.options.continue_token.is_some()
}

fn checks(server: &Server) -> RequestLog {
    server.requests().filter(is_check)
}

/// Returns the number of list requests that do not belong to a consistency check.
fn lists(server: &Server) -> usize {
    server
        .requests()
        .lists("pods")
        .filter(|request| !is_check(request))
        .len()
}

fn outcome(pods: &SharedInformer<Pod>) -> ConsistencyChecks {
    pods.status().get().consistency
}

/// Returns three numbers: checks without a difference, checks with a difference, and failed checks.
fn counts(pods: &SharedInformer<Pod>) -> [u64; 3] {
    let outcome = outcome(pods);
    [outcome.same, outcome.different, outcome.failed]
}

/// Returns the name, uid and revision of every pod on the server.
fn on_server(server: &Server) -> Vec<[String; 3]> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let identity = |pod: &Value| {
        let metadata = &pod["metadata"];
        let fields = ["name", "uid", "resourceVersion"];
        fields.map(|field| text(&metadata[field]))
    };
    server.list("v1", "pods").iter().map(identity).collect()
}

fn in_cache(pods: &SharedInformer<Pod>) -> Vec<[String; 3]> {
    let snapshot = pods.indexer().list();
    let identity = |pod: &kube_informer::Object<Pod>| {
        [pod.name(), pod.uid(), &pod.revision().to_string()].map(str::to_owned)
    };
    snapshot.iter().map(identity).collect()
}

fn last_difference(pods: &SharedInformer<Pod>) -> Arc<Difference> {
    outcome(pods)
        .last_difference
        .expect("a difference was found")
}

#[tokio::test(start_paused = true)]
async fn lost_events_are_detected_within_a_period_and_delivered_to_handlers() {
    for by_key in [false, true] {
        let server = Server::builder()
            .seed(["a", "b", "c"].map(pod))
            .faults("watch pods: drop event 1 x1; watch pods: drop event 2 x1; watch pods: drop event 3 x1")
            .unwrap()
            .build();
        let mut building = checked(&server);
        if by_key {
            building = building.queue(DeltaFifo::new());
        }
        let heard = Trace::default();
        let errors = heard.clone();
        let building = building.on_error(move |error| {
            assert!(matches!(error, Error::Inconsistent(_)));
            errors.note(error.to_string());
        });
        let informer = run(building);
        heard.listen(&informer.pods);
        informer.caught_up(&server).await;
        heard.take();
        server.create(pod("d")).unwrap();
        server.update(labelled("a", "new")).unwrap();
        server.delete("v1", "pods", "default/b").unwrap();
        server.update(labelled("c", "told")).unwrap();
        informer.caught_up(&server).await;
        assert_eq!(heard.take(), "update default/c@3 → 7\n");
        assert_ne!(in_cache(&informer.pods), on_server(&server));

        sleep(PERIOD).await;
        assert_eq!(in_cache(&informer.pods), on_server(&server));
        let told = heard.take();
        let mut told: Vec<_> = told.lines().collect();
        assert_eq!(
            told.remove(0),
            "pods: the cache differs from the server at revision 7: 1 missing, 1 outdated, 0 replaced, 1 surplus (default/a, default/d, default/b)"
        );
        told.sort_unstable();
        assert_eq!(
            told,
            [
                "add default/d@4",
                "delete default/b@2 (final state unknown)",
                "update default/a@1 → 5 (relist)",
                // The object is unchanged; but the state of a revision need not be the one that was
                // delivered before.
                "update default/c@7 → 7 (relist)",
            ]
        );
        sleep(PERIOD).await;
        let [same, different, failed] = counts(&informer.pods);
        assert!(same >= 1 && (different, failed) == (1, 0));
        assert_eq!(heard.take(), "", "mended means mended");
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_restores_lost_events_too() {
    let server = Server::builder()
        .faults("watch pods: drop event 2 x1")
        .unwrap()
        .build();
    let informer = run(streaming(&server).consistency_check(PERIOD));
    informer.caught_up(&server).await;
    server.create(pod("a")).unwrap();
    sleep(PERIOD).await;
    assert_eq!(outcome(&informer.pods).different, 1);
    assert_eq!(in_cache(&informer.pods), on_server(&server));
    let streams = server.requests().watches("pods");
    let streams = streams.filter(|watch| watch.options.send_initial_events == Some(true));
    let revisions: Vec<_> = streams
        .iter()
        .map(|watch| watch.options.resource_version.as_deref())
        .collect();
    assert_eq!(
        revisions,
        [None, None],
        "the relist requests the newest state"
    );
    assert_eq!(lists(&server), 0);
    informer.stop().await;
}

/// Tests kubernetes#107457: a server that is restored from a backup reuses revisions for different states.
#[tokio::test(start_paused = true)]
async fn a_restored_server_with_the_same_revisions_is_detected_by_uids() {
    for by_key in [false, true] {
        let server = Server::builder().seed([pod("a")]).build();
        let mut building = checked(&server);
        if by_key {
            building = building.queue(DeltaFifo::new());
        }
        let informer = run(building);
        let heard = Trace::default();
        heard.listen(&informer.pods);
        server.create(pod("b")).unwrap();
        server.update(labelled("a", "lost")).unwrap();
        informer.caught_up(&server).await;
        heard.take();
        // A watch that ends within its first second is followed by a list.
        sleep(Duration::from_secs(2)).await;
        server.faults().restart_at(1).unwrap();
        server.create(pod("b")).unwrap();
        server.update(labelled("a", "new")).unwrap();
        assert_eq!(server.revision(), 3);
        sleep(Duration::from_secs(120)).await;
        assert_ne!(in_cache(&informer.pods), on_server(&server));
        assert_eq!((heard.take(), lists(&server)), (String::new(), 2));

        sleep(PERIOD).await;
        let difference = last_difference(&informer.pods);
        assert_eq!((difference.replaced, difference.objects()), (1, 1));
        assert_eq!(in_cache(&informer.pods), on_server(&server));
        let a = ObjectName::namespaced("default", "a");
        let cached = informer.pods.indexer().get(&a).unwrap();
        assert_eq!(cached.labels().get("app"), Some("new"));
        assert_eq!(
            heard.take(),
            "update default/a@3 → 3 (relist)\nupdate default/b@2 → 2 (relist)\n"
        );
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_restored_behind_the_cache_is_detected_and_relisted() {
    let server = Server::builder().seed([pod("a")]).build();
    // Earlier than the silence of the watch would reveal it.
    let informer = run(listing(&server).consistency_check(Duration::from_secs(60)));
    let heard = Trace::default();
    heard.listen(&informer.pods);
    server.create(pod("b")).unwrap();
    informer.caught_up(&server).await;
    heard.take();
    // A watch that ends within its first second is followed by a list.
    sleep(Duration::from_secs(2)).await;
    // The probe after a watch that ends early would reveal it at once if it were answered.
    server.faults().answer(Match::list("pods"), 503);
    server.faults().restart_at(1).unwrap();
    sleep(Duration::from_secs(70)).await;
    let difference = last_difference(&informer.pods);
    assert!(difference.went_back);
    assert_eq!(
        difference.to_string(),
        "pods: the server has not reached revision 2 of the cache: it was restored from a backup, or is another server"
    );
    // An object with its old revision may have another state now, so it is delivered too.
    assert_eq!(
        heard.take(),
        "delete default/b@2 (final state unknown)\nupdate default/a@1 → 1 (relist)\n"
    );
    assert_eq!(in_cache(&informer.pods), on_server(&server));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn only_the_namespace_that_differs_is_relisted() {
    let in_namespace = |name: &str, namespace: &str| {
        let mut pod = pod(name);
        pod["metadata"]["namespace"] = namespace.into();
        pod
    };
    let seed = ["one", "two"].map(|namespace| in_namespace("a", namespace));
    let server = Server::builder()
        .seed(seed)
        .faults("watch pods in two: drop event 1 x1")
        .unwrap()
        .build();
    let source = |namespace| ListWatch::<Pod>::new(server.client()).namespace(namespace);
    let informer = run(SharedInformer::builder(source("one"))
        .source(source("two"))
        .initial_list(kube_informer::InitialList::List)
        .rng_seed(3)
        .consistency_check(PERIOD));
    informer.pods.wait_for_sync().await.unwrap();
    for namespace in ["one", "two"] {
        server.create(in_namespace("b", namespace)).unwrap();
    }
    sleep(PERIOD).await;
    assert_eq!(in_cache(&informer.pods), on_server(&server));
    let difference = last_difference(&informer.pods);
    assert_eq!(&*difference.description, "pods in two");
    let listed = |namespace: &str| {
        let lists = server.requests().lists("pods");
        let of = |request: &LoggedRequest| {
            request.namespace.as_deref() == Some(namespace) && !is_check(request)
        };
        lists.filter(of).len()
    };
    assert_eq!((listed("one"), listed("two")), (1, 2));
    assert_eq!(counts(&informer.pods)[1], 1);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_check_uses_the_selectors_of_its_source() {
    let server = Server::builder()
        .seed([labelled("a", "web"), labelled("b", "db")])
        .build();
    let source = ListWatch::<Pod>::new(server.client())
        .labels(&"app=web".parse().unwrap())
        .fields("metadata.name!=c");
    let informer = run(SharedInformer::builder(source)
        .rng_seed(1)
        .consistency_check(PERIOD));
    informer.pods.wait_for_sync().await.unwrap();
    // Changes that move objects out of the selection, and into it.
    server.update(labelled("a", "db")).unwrap();
    server.update(labelled("b", "web")).unwrap();
    server.create(labelled("c", "web")).unwrap();
    sleep(3 * PERIOD).await;
    let [same, different, failed] = counts(&informer.pods);
    assert!(same >= 3 && (different, failed) == (0, 0));
    let options = &checks(&server).iter().next().unwrap().options.clone();
    assert_eq!(options.label_selector.as_deref(), Some("app=web"));
    assert_eq!(options.field_selector.as_deref(), Some("metadata.name!=c"));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn transformed_and_broken_objects_are_compared_as_the_server_sent_them() {
    let mut odd = pod("b");
    odd["metadata"]["labels"] = serde_json::json!({"app": "odd"});
    let server = Server::builder().seed([pod("a"), odd]).build();
    let informer = run(checked(&server).try_transform(|pod| {
        let is_odd = pod.metadata.labels.is_some();
        pod.metadata = kube_core::ObjectMeta::default();
        if is_odd {
            Err("odd".to_owned())
        } else {
            Ok(())
        }
    }));
    informer.caught_up(&server).await;
    assert_eq!(informer.pods.status().get().broken_count, 1);
    sleep(2 * PERIOD).await;
    let [same, different, failed] = counts(&informer.pods);
    assert!(same >= 2 && (different, failed) == (0, 0));
    informer.stop().await;
}
