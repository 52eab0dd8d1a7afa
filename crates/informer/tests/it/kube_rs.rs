//! Tests of a `kube_runtime::Controller` that receives its events from informers. The controller reconciles
//! cached objects, opens no watch of its own, and leaves no task running after its end.

use std::{collections::BTreeSet, convert::Infallible, pin::Pin, sync::Arc, time::Duration};

use futures_util::{FutureExt, Stream, StreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_client::{Api, ResourceExt};
use kube_informer::{
    InformerOptions, Lister, ObjectName, SharedInformer, SharedInformerFactory,
    kube_rs::{self, Shared},
    shared_informer::ListenerBuffer,
};
use kube_informer_apiserver::{Match, Server};
use kube_runtime::{
    Controller, WatchStreamExt,
    controller::{Action, Error},
    reflector::{self, ObjectRef},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::setting::{LONG, factory_builder, labelled, pod, requests};

/// Maximum wait for a reconciliation or stream item, longer than any backoff in these tests.
const SILENCE: Duration = Duration::from_secs(10);

/// Item of the stream of `Controller::run`: a reconciled object with its action, or an error.
type Reconciled =
    Result<(ObjectRef<Shared<ConfigMap>>, Action), Error<Infallible, kube_runtime::watcher::Error>>;

/// The objects passed to the reconciler, in the order of its calls.
type Seen = Arc<Mutex<Vec<Arc<Shared<ConfigMap>>>>>;

/// A running controller whose reconciler only records the objects passed to it.
struct Noting {
    reconciled: Pin<Box<dyn Stream<Item = Reconciled> + Send>>,
    seen: Seen,
}

impl Noting {
    fn run(controller: Controller<Shared<ConfigMap>>) -> Self {
        let seen = Seen::default();
        let reconcile = |map: Arc<Shared<ConfigMap>>, seen: Arc<Seen>| async move {
            seen.lock().push(map);
            Ok::<_, Infallible>(Action::await_change())
        };
        let context = Arc::new(Arc::clone(&seen));
        let stream = controller.run(reconcile, |_, _, _| Action::await_change(), context);
        Self {
            reconciled: Box::pin(stream),
            seen,
        }
    }

    /// Collects the names of reconciled objects until no reconciliation occurs for [`SILENCE`].
    async fn names(&mut self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        while let Ok(done) = timeout(SILENCE, self.reconciled.next()).await {
            let (map, _) = done.expect("the controller has not ended").unwrap();
            names.insert(map.name);
        }
        names
    }

    /// Returns whether the controller's stream ends within [`LONG`] without another reconciliation.
    async fn ends(mut self) -> bool {
        let next = timeout(LONG, self.reconciled.next()).await;
        matches!(next, Ok(None))
    }
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})
}

fn owned_pod(name: &str, owner: &Value) -> Value {
    let mut pod = pod(name);
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "controller": true,
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
    }]);
    pod
}

/// Makes the server reject the next `times` lists and the next `times` watches of `resource` with 503.
///
/// An empty `namespace` means all namespaces.
fn refuse(server: &Server, resource: &str, namespace: &str, times: u64) {
    for matches in [Match::list(resource), Match::watch(resource)] {
        let matches = match namespace {
            "" => matches,
            namespace => matches.in_namespace(namespace),
        };
        server.faults().answer(matches, 503).times(times);
    }
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

/// A started factory with an informer of config maps and an informer of pods.
struct Running {
    factory: SharedInformerFactory,
    maps: SharedInformer<ConfigMap>,
    pods: SharedInformer<Pod>,
}

impl Running {
    fn on(server: &Server) -> Self {
        let factory = factory_builder(server.client()).rng_seed(1).build();
        let (maps, pods) = (factory.informer(), factory.informer());
        factory.start();
        Self {
            factory,
            maps,
            pods,
        }
    }

    /// Returns a running controller that reconciles config maps. A change of a pod triggers a reconciliation
    /// of the config map that owns the pod.
    fn controller(&self) -> Noting {
        let owned = kube_rs::watcher(self.pods.subscribe().unwrap()).touched_objects();
        let controller = kube_rs::controller(self.maps.subscribe().unwrap());
        Noting::run(controller.owns_stream(owned))
    }
}

#[tokio::test(start_paused = true)]
async fn existing_and_changed_objects_are_reconciled_without_copies() {
    let server = Server::builder().seed([map("a"), map("b")]).build();
    let running = Running::on(&server);
    let mut controller = running.controller();
    assert_eq!(controller.names().await, set(["a", "b"]));
    let mut changed = map("a");
    changed["data"] = json!({"key": "new"});
    server.update(changed).unwrap();
    server.create(map("c")).unwrap();
    server.delete("v1", "configmaps", "default/b").unwrap();
    assert_eq!(controller.names().await, set(["a", "c"]));

    let seen = controller.seen.lock();
    let last = seen.iter().rfind(|map| map.name_any() == "a").unwrap();
    assert_eq!(last.data.as_ref().unwrap()["key"], "new");
    let cached = running.maps.lister().get(&last.object_name()).unwrap();
    assert!(Arc::ptr_eq(&cached, &last.get()), "a copy was made");
}

#[tokio::test(start_paused = true)]
async fn a_change_or_deletion_of_an_owned_object_reconciles_the_owner() {
    let server = Server::builder().seed([map("a"), map("b")]).build();
    let owner = server.get("v1", "configmaps", "default/a").unwrap();
    let running = Running::on(&server);
    let mut controller = running.controller();
    assert_eq!(controller.names().await, set(["a", "b"]));
    server.create(owned_pod("child", &owner)).unwrap();
    assert_eq!(controller.names().await, set(["a"]));
    server.delete("v1", "pods", "default/child").unwrap();
    assert_eq!(controller.names().await, set(["a"]));
}

#[tokio::test(start_paused = true)]
async fn a_missed_deletion_of_an_owned_object_reconciles_the_owner() {
    let server = Server::builder().seed([map("a"), map("b")]).build();
    let owner = server.get("v1", "configmaps", "default/a").unwrap();
    server.create(owned_pod("child", &owner)).unwrap();
    let running = Running::on(&server);
    let mut controller = running.controller();
    assert_eq!(controller.names().await, set(["a", "b"]));
    server.faults().freeze_watches();
    server.delete("v1", "pods", "default/child").unwrap();
    server.faults().expire_history();
    server.faults().cut_watches();
    server.faults().thaw_watches();
    assert_eq!(controller.names().await, set(["a"]));
}

/// Collects pod names until the stream ends or yields no item for [`SILENCE`]; ignores errors.
async fn touched<K: ResourceExt>(
    pods: &mut (impl Stream<Item = Result<K, kube_runtime::watcher::Error>> + Unpin),
) -> Vec<String> {
    let mut names = Vec::new();
    while let Ok(Some(told)) = timeout(SILENCE, pods.next()).await {
        // An expired watch is an error; the next item is from the relist.
        names.extend(told.ok().map(|pod| pod.name_any()));
    }
    names
}

#[tokio::test(start_paused = true)]
async fn a_missed_deletion_is_delivered_where_the_watcher_of_kube_delivers_only_the_list() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let running = Running::on(&server);
    let mut ours = kube_rs::watcher(running.pods.subscribe().unwrap()).touched_objects();
    let api = Api::<Pod>::all(server.client());
    let config = kube_runtime::watcher::Config::default();
    let kubes = kube_runtime::watcher(api, config).default_backoff();
    let mut kubes = Box::pin(kubes.touched_objects());
    assert_eq!(touched(&mut ours).await, ["a", "b"]);
    assert_eq!(touched(&mut kubes).await, ["a", "b"]);
    server.faults().freeze_watches();
    server.delete("v1", "pods", "default/b").unwrap();
    server.faults().expire_history();
    server.faults().cut_watches();
    server.faults().thaw_watches();
    assert_eq!(touched(&mut ours).await, ["b"]);
    assert_eq!(touched(&mut kubes).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_a_related_object_reconciles_the_objects_that_the_mapper_returns() {
    let server = Server::builder().seed([map("a"), map("b")]).build();
    let running = Running::on(&server);
    let related = kube_rs::watcher(running.pods.subscribe().unwrap()).touched_objects();
    let named_alike = |pod: Shared<Pod>| Some(ObjectRef::from(&pod.object_name()));
    let controller = kube_rs::controller(running.maps.subscribe().unwrap());
    let mut controller = Noting::run(controller.watches_stream(related, named_alike));
    assert_eq!(controller.names().await, set(["a", "b"]));
    server.create(pod("b")).unwrap();
    assert_eq!(controller.names().await, set(["b"]));
}

#[tokio::test(start_paused = true)]
async fn reconcile_all_on_reconciles_every_object() {
    let server = Server::builder().seed([map("a"), map("b")]).build();
    let running = Running::on(&server);
    let all = Arc::new(tokio::sync::Notify::new());
    let told = Arc::clone(&all);
    let told = futures_util::stream::unfold(told, async |told| {
        told.notified().await;
        Some(((), told))
    });
    let controller = kube_rs::controller(running.maps.subscribe().unwrap());
    let mut controller = Noting::run(controller.reconcile_all_on(told));
    assert_eq!(controller.names().await, set(["a", "b"]));
    all.notify_one();
    assert_eq!(controller.names().await, set(["a", "b"]));
}

#[tokio::test(start_paused = true)]
async fn two_controllers_and_a_late_third_share_one_list_and_one_watch() {
    let server = Server::builder().seed([map("a")]).build();
    let factory = factory_builder(server.client()).build();
    let maps = factory.informer::<ConfigMap>();
    factory.start();
    let controller = || Noting::run(kube_rs::controller(maps.subscribe().unwrap()));
    let (mut first, mut second) = (controller(), controller());
    assert_eq!(first.names().await, set(["a"]));
    assert_eq!(second.names().await, set(["a"]));
    let mut late = controller();
    assert_eq!(late.names().await, set(["a"]));
    server.create(map("b")).unwrap();
    for controller in [&mut first, &mut second, &mut late] {
        assert_eq!(controller.names().await, set(["b"]));
    }
    let asked = requests(&server);
    let count = |verb| asked.lines().filter(|line| line.starts_with(verb)).count();
    assert_eq!((count("list"), count("watch")), (1, 1), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_informers_ends_the_controller_and_leaves_no_task() {
    let alive = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let server = Server::builder().seed([map("a")]).build();
    let before = alive();
    let running = Running::on(&server);
    let mut controller = running.controller();
    assert_eq!(controller.names().await, set(["a"]));
    running.factory.shutdown().await;
    assert!(controller.ends().await);
    drop(running);
    // The client's worker ends when its last handle is dropped.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(alive() <= before, "{} tasks are left", alive() - before);
}

#[tokio::test(start_paused = true)]
async fn a_stop_before_the_first_list_ends_the_controller_with_nothing_reconciled() {
    let server = Server::builder().seed([map("a")]).build();
    refuse(&server, "configmaps", "", u64::MAX);
    let running = Running::on(&server);
    let mut controller = running.controller();
    assert_eq!(controller.names().await, set([]));
    running.factory.shutdown().await;
    while let Some(done) = timeout(LONG, controller.reconciled.next()).await.unwrap() {
        assert!(matches!(done, Err(Error::RunnerError(_))), "{done:?}");
    }
    assert!(controller.seen.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_controller_leaves_its_informer_running_for_the_others() {
    let server = Server::builder().seed([map("a")]).build();
    let running = Running::on(&server);
    let (dropped, mut kept) = (running.controller(), running.controller());
    assert_eq!(kept.names().await, set(["a"]));
    drop(dropped);
    server.create(map("b")).unwrap();
    assert_eq!(kept.names().await, set(["b"]));
}

#[tokio::test(start_paused = true)]
async fn failed_requests_are_retried_by_the_informer_and_are_not_errors_of_the_controller() {
    let server = Server::builder().seed([map("a")]).build();
    refuse(&server, "pods", "", 3);
    let running = Running::on(&server);
    let mut controller = running.controller();
    // `names` fails on any error; a failure of one kind does not keep the other from being reconciled.
    assert_eq!(controller.names().await, set(["a"]));
    running.pods.wait_for_sync().deadline(LONG).await.unwrap();
    let failed = running.pods.status().get().last_error().cloned();
    assert!(failed.is_some(), "the status reports the failure");
}

#[tokio::test(start_paused = true)]
async fn a_store_over_several_namespaces_is_ready_when_all_of_them_are_listed() {
    let server = Server::builder().seed([map("a")]).build();
    let factory = factory_builder(server.client()).build();
    let options = InformerOptions::new().namespaces(["default", "other"]);
    let maps = factory.informer_with::<ConfigMap>(options).unwrap();
    refuse(&server, "configmaps", "other", 2);
    factory.start();
    let (reader, writer) = reflector::store();
    let mut touched = kube_rs::watcher(maps.subscribe().unwrap())
        .reflect(writer)
        .touched_objects();
    let first = touched.next().await.unwrap().unwrap();
    assert_eq!(first.name_any(), "a");
    assert!(
        reader.wait_until_ready().now_or_never().is_none(),
        "not all are listed"
    );
    server.delete("v1", "configmaps", "default/a").unwrap();
    let gone = timeout(LONG, touched.next())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(gone.name_any(), "a");
    reader.wait_until_ready().now_or_never().unwrap().unwrap();
    assert!(reader.is_empty());
}

#[tokio::test(start_paused = true)]
async fn owned_objects_stay_whole_for_readers_while_kube_receives_only_their_metadata() {
    let server = Server::builder().seed([map("a")]).build();
    let owner = server.get("v1", "configmaps", "default/a").unwrap();
    server.create(owned_pod("child", &owner)).unwrap();
    let running = Running::on(&server);
    let mut controller = running.controller();
    assert_eq!(controller.names().await, set(["a"]));
    let pods: Lister<Pod> = running.pods.lister();
    let child = pods
        .get(&ObjectName::namespaced("default", "child"))
        .unwrap();
    assert_eq!(child.owner_references().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_not_polled_fills_the_buffer_of_its_subscription() {
    let server = Server::builder().seed([pod("a")]).build();
    let running = Running::on(&server);
    let pods = &running.pods;
    pods.wait_for_sync().deadline(LONG).await.unwrap();
    let every = pods.subscribe().unwrap();
    let merged = pods.subscribe_with(ListenerBuffer::Coalesce).unwrap();
    let mut streams = [every, merged].map(|pods| kube_rs::watcher(pods).touched_objects());
    for stream in &mut streams {
        assert_eq!(touched(stream).await, ["a"]);
    }
    for value in ["x", "y", "z"] {
        server.update(labelled("a", value)).unwrap();
    }
    pods.wait_for_revision(server.revision(), LONG)
        .await
        .unwrap();
    let [every, merged] = &mut streams;
    assert_eq!(touched(every).await, ["a", "a", "a"]);
    assert_eq!(touched(merged).await, ["a"]);
}

#[test]
fn references_and_names_become_one_another() {
    for name in ["default/a", "node"] {
        let name: ObjectName = name.parse().unwrap();
        let reference = ObjectRef::<Pod>::from(&name);
        assert_eq!(reference.name, name.name());
        assert_eq!(reference.namespace.as_deref(), name.namespace());
        assert_eq!(ObjectName::from(&reference), name);
    }
}

#[tokio::test(start_paused = true)]
async fn the_deletion_of_an_undecodable_object_reaches_kube_in_every_form() {
    type Form = fn(InformerOptions<Pod>) -> InformerOptions<Pod>;
    let forms: [(&str, Form); 3] = [
        ("typed", |typed| typed),
        ("packed", InformerOptions::packed),
        ("lazy", InformerOptions::lazy),
    ];
    let broken = |name| {
        let mut pod = labelled(name, "broken");
        pod["spec"]["containers"] = json!("no list");
        pod
    };
    for (form, keep) in forms {
        let server = Server::builder()
            .seed([pod("good"), pod("kept"), broken("never")])
            .build();
        let factory = factory_builder(server.client()).build();
        let pods = factory.informer_with(keep(InformerOptions::new())).unwrap();
        factory.start();
        let (reader, writer) = reflector::store();
        let watcher = kube_rs::watcher(pods.subscribe().unwrap());
        let mut touched = watcher.reflect(writer).touched_objects();
        assert_eq!(
            self::touched(&mut touched).await,
            ["good", "kept"],
            "{form}"
        );

        // An update and the final state of a deletion that cannot be decoded.
        server.update(broken("good")).unwrap();
        assert!(self::touched(&mut touched).await.is_empty(), "{form}");
        for name in ["good", "never"] {
            let name = format!("default/{name}");
            server.delete("v1", "pods", &name).unwrap();
        }
        assert_eq!(self::touched(&mut touched).await, ["good"], "{form}");
        let stored: Vec<_> = reader.state().iter().map(|pod| pod.name_any()).collect();
        assert_eq!(
            stored,
            ["kept"],
            "{form}: the store of kube keeps the deleted object"
        );
        factory.shutdown().await;
    }
}
