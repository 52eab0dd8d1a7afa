//! Tests of informers whose `CustomResourceDefinition` is created or deleted while the factory runs.

use k8s_openapi::{
    api::apps::v1::Deployment,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube_core::{ApiResource, DynamicObject, GroupVersionKind, PartialObjectMeta};
use kube_informer::{
    Event, EventHandler,
    factory::{Hold, InformerOptions},
    selector::Selector,
    shared_informer::Registration,
    status::{Activity, Status},
};
use kube_informer_apiserver::{Kind, Match, Scope};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::metrics::Recorder;
use crate::setting::factory_builder;

const CRDS: &str = "customresourcedefinitions";

fn server() -> Server {
    let widget = Kind::custom("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    let server = Server::builder().kind(widget).build();
    server.create(definition()).unwrap();
    server
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    })
}

fn widget(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, "namespace": "default"}})
}

fn kind() -> ApiResource {
    let gvk = GroupVersionKind::gvk("example.com", "v1", "Widget");
    ApiResource::from_gvk_with_plural(&gvk, "widgets")
}

fn following(server: &Server) -> SharedInformerFactory {
    factory_builder(server.client())
        .initial_list(InitialList::List)
        .follow_definitions()
        .build()
}

/// Responds to lists and watches of `widgets` with 404, and closes all open watches.
fn stop_serving(server: &Server) {
    server
        .faults()
        .answer(Match::list("widgets"), 404)
        .times(u64::MAX);
    server
        .faults()
        .answer(Match::watch("widgets"), 404)
        .times(u64::MAX);
    server.faults().cut_watches();
}

fn delete_definition(server: &Server) {
    let api_version = "apiextensions.k8s.io/v1";
    server
        .delete(api_version, CRDS, "widgets.example.com")
        .unwrap();
}

/// Ends the 404 responses of [`stop_serving`]. Then deletes the object `a`, recreates the deleted
/// `CustomResourceDefinition` of `widgets`, and creates the object `b`.
fn serve_again(server: &Server) {
    server.faults().clear_answers();
    server
        .delete("example.com/v1", "widgets", "default/a")
        .unwrap();
    server.create(definition()).unwrap();
    server.create(widget("b")).unwrap();
}

/// A handler that records each event's type and object name as a line.
struct Heard(Trace);

impl EventHandler<DynamicObject> for Heard {
    async fn handle(&mut self, event: Event<DynamicObject>) {
        self.0.note(match event {
            Event::Added { object, .. } => format!("add {}", object.object_name()),
            Event::Updated { new, .. } => format!("update {}", new.object_name()),
            Event::Deleted(gone) => format!("delete {}", gone.object_name()),
            Event::Synced => "synced".to_owned(),
        });
    }
}

fn listen(widgets: &SharedInformer<DynamicObject>) -> (Trace, Registration<DynamicObject>) {
    let trace = Trace::default();
    let registration = widgets.handler(Heard(trace.clone())).register().unwrap();
    (trace, registration)
}

async fn until(
    informer: &SharedInformer<DynamicObject>,
    activity: impl Fn(Activity) -> bool,
) -> Status {
    let mut status = informer.status();
    let reached = status.wait_for(|status| activity(status.activity()));
    let reached = tokio::time::timeout(LONG, reached).await;
    reached
        .expect("the informer reaches the state in time")
        .unwrap()
}

async fn rests(informer: &SharedInformer<DynamicObject>) -> Status {
    until(informer, |activity| activity == Activity::NotServed).await
}

async fn watches(informer: &SharedInformer<DynamicObject>) -> Status {
    until(informer, |activity| activity == Activity::Watching).await
}

/// Returns the number of list and watch requests for `widgets`.
fn asked(server: &Server) -> usize {
    let log = server.requests();
    log.lists("widgets").len() + log.watches("widgets").len()
}

#[tokio::test(start_paused = true)]
async fn a_deleted_definition_deletes_its_objects_and_a_new_one_resumes_the_informer() {
    let server = server();
    server.create(widget("a")).unwrap();
    let factory = following(&server);
    let widgets = factory.for_resource(&kind()).unwrap();
    let (trace, _registration) = listen(&widgets);
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    watches(&widgets).await;
    sleep(10 * MINUTE).await;
    assert_eq!(trace.take(), "add default/a\nsynced\n");

    stop_serving(&server);
    delete_definition(&server);
    let status = rests(&widgets).await;
    assert!(status.synced);
    assert!(
        status
            .to_string()
            .starts_with("synced, the kind is not served; last error: ")
    );
    widgets.handlers_idle().await;
    assert_eq!(trace.take(), "delete default/a\n");
    assert!(widgets.indexer().is_empty());
    let before = asked(&server);
    sleep(24 * LONG).await;
    assert_eq!(asked(&server), before, "a deleted kind is not requested");

    serve_again(&server);
    let began = Instant::now();
    watches(&widgets).await;
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "the kind is listed at once"
    );
    sleep(Duration::from_secs(1)).await;
    widgets.handlers_idle().await;
    assert_eq!(trace.take(), "add default/b\n");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn only_a_started_informer_follows_its_definition() {
    let server = server();
    let factory = following(&server);
    let widgets = factory.for_resource(&kind()).unwrap();
    sleep(MINUTE).await;
    let log = server.requests();
    assert!(log.lists(CRDS).is_empty() && log.watches(CRDS).is_empty());
    let informers = |count| format!("SharedInformerFactory {{ informers: {count}, .. }}");
    assert_eq!(format!("{factory:?}"), informers(1));

    factory.start();
    assert_eq!(format!("{factory:?}"), informers(2));
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    assert_eq!(server.requests().lists(CRDS).len(), 1);
    watches(&widgets).await;
    sleep(10 * MINUTE).await;
    stop_serving(&server);
    delete_definition(&server);
    rests(&widgets).await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_of_a_kind_that_is_served_again_is_a_relist_with_its_own_reason() {
    let server = server();
    let recorder = Recorder::default();
    let factory = factory_builder(server.client())
        .metrics(recorder.metrics())
        .follow_definitions()
        .build();
    let widgets = factory.for_resource(&kind()).unwrap();
    factory.start();
    watches(&widgets).await;
    sleep(10 * MINUTE).await;
    stop_serving(&server);
    delete_definition(&server);
    rests(&widgets).await;
    server.faults().clear_answers();
    let relists = || recorder.only(|line| line.starts_with("Relist"));
    server.create(definition()).unwrap();
    watches(&widgets).await;
    assert_eq!(relists(), "Relist(ServedAgain)\n");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_404_alone_deletes_no_object_and_is_retried_once_a_minute() {
    let server = server();
    server.create(widget("a")).unwrap();
    for follows in [false, true] {
        let factory = if follows {
            following(&server)
        } else {
            factory(&server)
        };
        let widgets = factory.for_resource(&kind()).unwrap();
        let (trace, _registration) = listen(&widgets);
        factory.start();
        factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
        sleep(10 * MINUTE).await;
        stop_serving(&server);
        sleep(10 * MINUTE).await;
        let before = asked(&server);
        sleep(LONG).await;
        let asked = asked(&server) - before;
        assert!((60..=120).contains(&asked), "{asked} requests in an hour");
        assert_eq!(widgets.indexer().len(), 1);
        assert_eq!(trace.take(), "add default/a\nsynced\n");

        server.faults().clear_answers();
        let began = Instant::now();
        watches(&widgets).await;
        assert!(began.elapsed() <= MINUTE);
        sleep(MINUTE).await;
        assert_eq!(trace.take(), "", "no event is delivered");
        factory.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_definition_deletes_no_object_while_the_kind_is_served() {
    let server = server();
    server.create(widget("a")).unwrap();
    let factory = following(&server);
    let widgets = factory.for_resource(&kind()).unwrap();
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    sleep(MINUTE).await;
    delete_definition(&server);
    server.create(widget("b")).unwrap();
    sleep(MINUTE).await;
    assert_eq!(widgets.status().get().activity(), Activity::Watching);
    assert_eq!(widgets.indexer().len(), 2, "the watch continues");
    stop_serving(&server);
    rests(&widgets).await;
    sleep(Duration::from_secs(1)).await;
    assert!(widgets.indexer().is_empty());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_listed_at_once_when_it_is_defined_or_served_again() {
    let server = server();
    delete_definition(&server);
    stop_serving(&server);
    let factory = following(&server);
    let widgets = factory.for_resource(&kind()).unwrap();
    factory.start();
    let error = widgets.wait_for_sync().fail_fast().await.unwrap_err();
    assert!(error.to_string().contains("can't sync"), "{error}");
    sleep(10 * MINUTE).await;
    assert!(
        !widgets.has_synced(),
        "an unlisted kind does not count as empty"
    );
    // The definition is created first, and established a little later.
    server.create(definition()).unwrap();
    sleep(10 * MINUTE).await;
    assert!(!widgets.has_synced());
    server.faults().clear_answers();
    let mut established = definition();
    established["metadata"]["labels"] = json!({"x": "y"});
    server.update(established).unwrap();
    let began = Instant::now();
    widgets.wait_for_sync().deadline(LONG).await.unwrap();
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_served_again_is_listed_at_the_known_revision() {
    let server = server();
    server.create(widget("a")).unwrap();
    let known = server.revision();
    let factory = following(&server);
    let widgets = factory.for_resource(&kind()).unwrap();
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    stop_serving(&server);
    sleep(10 * MINUTE).await;
    server.faults().clear_answers();
    server.requests().clear();
    let mut established = definition();
    established["metadata"]["labels"] = json!({"x": "y"});
    server.update(established).unwrap();
    watches(&widgets).await;
    let log = server.requests();
    let lists = log.lists("widgets");
    let first = &lists.iter().next().unwrap().options;
    assert_eq!(first.resource_version, Some(known.to_string()));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn informers_over_namespaces_typed_and_held_ones_pause_and_resume_with_the_definition() {
    let server = server();
    server.create(widget("a")).unwrap();
    let factory = factory_builder(server.client())
        .namespaces(["default", "other"])
        .follow_definitions()
        .build();
    let widgets: Hold<DynamicObject> = factory.hold_resource(&kind()).unwrap();
    let metadata: SharedInformer<PartialObjectMeta<DynamicObject>> =
        factory.for_metadata(&kind()).unwrap();
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    sleep(10 * MINUTE).await;
    stop_serving(&server);
    delete_definition(&server);
    let status = rests(&widgets).await;
    let activities = status.sources.iter().map(|source| source.activity);
    assert!(activities.eq([Activity::NotServed; 2]), "{status:?}");
    sleep(MINUTE).await;
    assert!(widgets.indexer().is_empty() && metadata.indexer().is_empty());
    serve_again(&server);
    watches(&widgets).await;
    sleep(MINUTE).await;
    assert_eq!((widgets.indexer().len(), metadata.indexer().len()), (1, 1));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn one_informer_of_definitions_is_shared_and_ends_with_its_last_user() {
    let server = server();
    let factory = following(&server);
    sleep(MINUTE).await;
    let baseline = alive();
    let pods = factory.hold::<Pod>();
    sleep(MINUTE).await;
    let definitions = || server.requests().lists(CRDS).len();
    assert_eq!(definitions(), 0, "pods have no definition");
    drop(factory.hold::<Deployment>());
    assert_eq!(
        format!("{factory:?}"),
        "SharedInformerFactory { informers: 2, .. }"
    );
    let first = factory.hold_resource(&kind()).unwrap();
    let labels = kube_informer::InformerOptions::new().labels("a=b".parse().unwrap());
    factory.for_resource_with(&kind(), labels).unwrap();
    sleep(MINUTE).await;
    assert_eq!(definitions(), 1);
    let selected = factory.for_resource_with(
        &kind(),
        kube_informer::InformerOptions::new().labels("a=b".parse().unwrap()),
    );
    factory.stop_informer(&selected.unwrap()).await;
    drop((first, pods));
    sleep(LONG).await;
    assert!(until_gone(baseline).await, "{} tasks", alive() - baseline);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn each_informer_of_definitions_has_one_handler() {
    let server = server();
    let factory = following(&server);
    let labelled = |labels: &str| InformerOptions::new().labels(labels.parse().unwrap());
    let definitions = || {
        let options = InformerOptions::new().labels(Selector::everything());
        let kind = ApiResource::erase::<CustomResourceDefinition>(&());
        factory
            .for_metadata_with(&kind, options.fields(""))
            .unwrap()
    };
    factory.for_resource(&kind()).unwrap();
    factory.for_resource_with(&kind(), labelled("a=b")).unwrap();
    factory.start();
    let first = definitions();
    assert_eq!(first.handlers().len(), 1);
    factory.stop_informer(&first).await;
    factory.for_resource_with(&kind(), labelled("c=d")).unwrap();
    factory.start();
    let second = definitions();
    assert!(!second.is_same(&first));
    assert_eq!(second.handlers().len(), 1);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_definitions_are_created_and_deleted_leaves_no_task() {
    let server = server();
    server.create(widget("a")).unwrap();
    let client = server.client();
    sleep(MINUTE).await;
    let baseline = alive();
    for at in 0..60 {
        let factory = factory_builder(client.clone()).follow_definitions().build();
        let widgets = factory.for_resource(&kind()).unwrap();
        let (_trace, _registration) = listen(&widgets);
        factory.start();
        factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
        sleep(MINUTE).await;
        stop_serving(&server);
        delete_definition(&server);
        for _ in 0..at {
            yield_now().await;
        }
        server.faults().clear_answers();
        server.create(definition()).unwrap();
        for _ in 0..at {
            yield_now().await;
        }
        if at % 2 == 0 {
            factory.shutdown().await;
        }
        drop(factory);
        assert!(
            until_gone(baseline).await,
            "{} tasks, at {at}",
            alive() - baseline
        );
        assert!(widgets.is_stopped());
    }
}

#[tokio::test(start_paused = true)]
async fn the_default_selectors_of_a_factory_do_not_apply_to_definitions() {
    let server = server();
    let mut ours = widget("a");
    ours["metadata"]["labels"] = json!({"app": "web"});
    server.create(ours).unwrap();
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        .default_labels("app=web".parse().unwrap())
        .default_fields("metadata.name=a")
        .follow_definitions()
        .build();
    let widgets = factory.for_resource(&kind()).unwrap();
    factory.start();
    watches(&widgets).await;
    sleep(MINUTE).await;
    assert_eq!(widgets.indexer().len(), 1);
    stop_serving(&server);
    delete_definition(&server);
    rests(&widgets).await;
    assert!(widgets.indexer().is_empty());
    factory.shutdown().await;
}
