//! Tests of `DerivedIndex`: an index of pods by the zone of their node, computed from the informers of pods
//! and nodes. Both informers run against the embedded API server.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use expect_test::expect;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube_core::ResourceExt;
use kube_informer::{
    DerivedIndex, InitialList, Object, ObjectName, SharedInformer,
    client::ListWatch,
    indexer::IndexError,
    shared_informer::{Builder, Stopped},
};
use kube_informer_apiserver::Server;
use serde_json::{Value, json};
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{
    setting::{LONG, Running, Trace, builder, pod, run},
    stops::{alive, until_gone},
};

const ZONE: &str = "topology.kubernetes.io/zone";

fn on(name: &str, node: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["nodeName"] = node.into();
    pod
}

fn node(name: &str, zone: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {(ZONE): zone}},
    })
}

fn node_of(pod: &Pod) -> Option<ObjectName> {
    let node = pod.spec.as_ref()?.node_name.as_deref()?;
    Some(ObjectName::cluster(node))
}

fn zones_of(_: &Pod, nodes: &[Arc<Node>]) -> Vec<String> {
    let zones = nodes.iter().map(|node| node.labels().get(ZONE).cloned());
    zones.flatten().collect()
}

fn by_zone(
    pods: &SharedInformer<Pod>,
    nodes: &SharedInformer<Node>,
) -> Result<DerivedIndex<Pod>, Stopped> {
    pods.derived_index("zone", nodes, node_of, zones_of)
}

/// Returns the index as text: each index value, followed by the names of its pods.
fn show(index: &DerivedIndex<Pod>) -> String {
    let values = index.values();
    let lines = values.iter().map(|value| {
        let names = index.names(value);
        let names: Vec<_> = names.iter().map(ObjectName::name).collect();
        format!("{value}: {}", names.join(" "))
    });
    lines.collect::<Vec<_>>().join(", ")
}

fn node_builder(server: &Server) -> Builder<Node> {
    SharedInformer::builder(ListWatch::<Node>::new(server.client()))
        .name("nodes")
        .rng_seed(2)
}

/// Running informers of pods and nodes, and their server.
struct Both {
    server: Server,
    of_pods: Running,
    nodes: SharedInformer<Node>,
    stop_nodes: oneshot::Sender<()>,
    node_task: JoinHandle<()>,
}

impl Both {
    fn new(seed: impl IntoIterator<Item = Value>) -> Self {
        let server = Server::builder().seed(seed).build();
        Self::over(server)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the test owns the task and waits for it"
    )]
    fn over(server: Server) -> Self {
        let of_pods = run(builder(&server).initial_list(InitialList::List));
        let (nodes, controller) = node_builder(&server)
            .initial_list(InitialList::List)
            .build();
        let (stop_nodes, stopped) = oneshot::channel();
        // Dropping the sender also stops the informer of nodes.
        let running = controller.run(async { drop(stopped.await) });
        let node_task = tokio::spawn(async {
            running.await.unwrap();
        });
        Self {
            server,
            of_pods,
            nodes,
            stop_nodes,
            node_task,
        }
    }

    fn by_zone(&self) -> DerivedIndex<Pod> {
        by_zone(&self.of_pods.pods, &self.nodes).unwrap()
    }

    /// Waits until both caches match the server, and the index reflects both caches.
    async fn settled(&self, index: &DerivedIndex<Pod>) {
        self.in_the_caches().await;
        index.settled().await;
    }

    async fn in_the_caches(&self) {
        self.of_pods.caught_up(&self.server).await;
        self.nodes.wait_for_sync().deadline(LONG).await.unwrap();
        let reached = self.nodes.wait_for_revision(self.server.revision(), LONG);
        reached.await.unwrap();
    }

    async fn stop(self) {
        self.of_pods.stop().await;
        let _ = self.stop_nodes.send(());
        self.node_task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_index_follows_its_objects_and_their_dependencies_in_any_order() {
    let both = Both::new([node("n1", "east"), on("web", "n1"), on("early", "n2")]);
    let index = both.by_zone();
    assert!(!index.has_synced());
    let synced = index.wait_for_sync();
    synced.await.unwrap();
    assert!(index.has_synced());
    assert_eq!(
        show(&index),
        "east: web",
        "the initial objects are indexed at once"
    );

    let server = &both.server;
    let steps = Trace::default();
    let step = async |what: &str| {
        both.settled(&index).await;
        steps.note(format!("{what} → {}", show(&index)));
    };
    server.create(node("n2", "west")).unwrap();
    step("a node comes after its pod").await;
    server.update(node("n2", "north")).unwrap();
    step("a node is relabelled").await;
    server.delete("v1", "nodes", "n2").unwrap();
    step("a node goes").await;
    server.create(node("n2", "south")).unwrap();
    step("it is made again elsewhere").await;
    server.delete("v1", "pods", "default/web").unwrap();
    server.create(on("web", "n2")).unwrap();
    step("a pod is moved").await;
    server.create(pod("lost")).unwrap();
    step("a pod has no node").await;
    server.delete("v1", "pods", "default/early").unwrap();
    step("a pod goes").await;
    expect![[r"
        a node comes after its pod → east: web, west: early
        a node is relabelled → east: web, north: early
        a node goes → east: web
        it is made again elsewhere → east: web, south: early
        a pod is moved → south: early web
        a pod has no node → south: early web
        a pod goes → south: web
    "]]
    .assert_eq(&steps.take());

    assert_eq!((index.len(), index.is_empty()), (1, false));
    let web = ObjectName::namespaced("default", "web");
    assert_eq!(index.values_of(&web), [Arc::from("south")]);
    let objects = index.objects("south");
    assert_eq!(objects[0].object_name(), &web);
    assert_eq!(index.name(), "zone");
    both.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_index_added_late_covers_the_cached_objects() {
    let seed = (0..200).map(|n| on(&format!("p{n}"), ["n1", "n2"][n % 2]));
    let seed = seed.chain([node("n1", "east"), node("n2", "west")]);
    let both = Both::new(seed);
    both.in_the_caches().await;
    let index = both.by_zone();
    assert!(index.is_empty() && !index.has_synced());
    index.wait_for_sync().await.unwrap();
    assert_eq!(index.names("east").len(), 100);
    assert_eq!(index.names("west").len(), 100);
    assert_eq!(index.objects("west").len(), 100);
    assert_eq!(index.len(), 200);
    both.stop().await;
}

#[tokio::test(start_paused = true)]
async fn changes_missed_while_disconnected_are_in_the_index_after_the_relists() {
    let both = Both::new([
        node("n1", "east"),
        node("n2", "west"),
        on("db", "n2"),
        on("job", "n1"),
        on("web", "n1"),
    ]);
    let index = both.by_zone();
    index.wait_for_sync().await.unwrap();
    assert_eq!(show(&index), "east: job web, west: db");
    // Long enough for the watches to open.
    sleep(Duration::from_secs(2)).await;

    let server = &both.server;
    server.faults().cut_watches();
    server.delete("v1", "nodes", "n2").unwrap();
    server.delete("v1", "pods", "default/job").unwrap();
    server.update(node("n1", "north")).unwrap();
    server.faults().expire_history();
    both.settled(&index).await;
    assert_eq!(show(&index), "north: web");
    both.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_index_function_fails_or_panics_is_omitted_until_the_next_change() {
    let both = Both::new([
        node("n1", "east"),
        node("n2", "nowhere"),
        node("n3", "panic"),
        on("db", "n2"),
        on("job", "n3"),
        on("web", "n1"),
    ]);
    let pods = &both.of_pods.pods;
    let zones = |pod: &Pod, nodes: &[Arc<Node>]| match zones_of(pod, nodes) {
        zones if zones == ["nowhere"] => Err("no such zone"),
        zones if zones == ["panic"] => panic!("planted"),
        zones => Ok(zones),
    };
    let index = pods
        .try_derived_index("zone", &both.nodes, |pod| Ok(node_of(pod)), zones)
        .unwrap();
    index.wait_for_sync().await.unwrap();
    assert_eq!(show(&index), "east: web");
    let errors = index.errors();
    let errors: Vec<_> = errors.iter().map(IndexError::to_string).collect();
    let expected = [
        "default/db is not in index zone: no such zone",
        "default/job is not in index zone: the index function panicked",
    ];
    assert_eq!(errors, expected);
    let panics: u64 = pods.handlers().iter().map(|handler| handler.panics).sum();
    assert_eq!(panics, 0, "the panic does not pause the handlers");

    both.server.update(node("n2", "east")).unwrap();
    both.server.delete("v1", "pods", "default/job").unwrap();
    both.settled(&index).await;
    assert_eq!(show(&index), "east: db web");
    assert_eq!(index.errors(), []);

    both.server.update(node("n1", "nowhere")).unwrap();
    both.settled(&index).await;
    assert_eq!(show(&index), "east: db");
    assert_eq!(index.errors().len(), 1);
    both.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_object_is_indexed_by_its_last_good_state() {
    let both = Both::new([node("n1", "east"), on("db", "n1"), on("web", "n1")]);
    let index = both.by_zone();
    both.settled(&index).await;
    let mut broken_node = node("n1", "west");
    broken_node["spec"] = json!("no object");
    both.server.update(broken_node).unwrap();
    let mut broken_pod = pod("db");
    broken_pod["spec"]["containers"] = json!("no list");
    both.server.update(broken_pod).unwrap();
    both.server.create(on("new", "n1")).unwrap();
    both.settled(&index).await;
    assert_eq!(both.nodes.indexer().snapshot().broken_count(), 1);
    assert_eq!(show(&index), "east: db new web");
    let readable = index.objects("east");
    let readable: Vec<_> = readable.iter().map(Object::name).collect();
    assert_eq!(readable, ["new", "web"]);

    both.server.update(node("n1", "north")).unwrap();
    both.settled(&index).await;
    assert_eq!(show(&index), "north: db new web");
    both.stop().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_removes_both_handlers_and_their_functions() {
    let both = Both::new([node("n1", "east"), on("web", "n1")]);
    let held = Arc::new(());
    let with_functions = Arc::clone(&held);
    let pods = &both.of_pods.pods;
    both.in_the_caches().await;
    let before = alive();
    let index = pods
        .derived_index("zone", &both.nodes, node_of, move |pod, nodes| {
            let _ = &with_functions;
            zones_of(pod, nodes)
        })
        .unwrap();
    index.wait_for_sync().await.unwrap();
    let names = |handlers: Vec<kube_informer::shared_informer::HandlerStatus>| {
        let names = handlers.iter().map(|handler| handler.name.to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(pods.handlers()), ["derived index zone"]);
    assert_eq!(names(both.nodes.handlers()), ["derived index zone"]);
    assert_eq!(alive(), before + 2);

    let clone = index.clone();
    drop(index);
    both.settled(&clone).await;
    assert_eq!(show(&clone), "east: web", "a clone is the same index");
    drop(clone);
    assert!(until_gone(before).await);
    assert_eq!(names(pods.handlers()), [""; 0]);
    assert_eq!(names(both.nodes.handlers()), [""; 0]);
    assert_eq!(Arc::strong_count(&held), 1);
    both.stop().await;
    assert_eq!(alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_index_stays_readable_after_one_informer_stops_and_follows_the_other() {
    let both = Both::new([node("n1", "east"), node("n2", "west"), on("web", "n1")]);
    let index = both.by_zone();
    both.settled(&index).await;
    let Both {
        server,
        of_pods,
        nodes,
        stop_nodes,
        node_task,
    } = both;
    drop(stop_nodes);
    node_task.await.unwrap();
    server.update(node("n1", "north")).unwrap();
    server.create(on("db", "n2")).unwrap();
    of_pods.caught_up(&server).await;
    index.settled().await;
    assert_eq!(show(&index), "east: web, west: db");

    let refused = by_zone(&of_pods.pods, &nodes).unwrap_err();
    assert_eq!(refused, Stopped);
    assert_eq!(of_pods.pods.handlers().len(), 1, "no handler is left");
    let pods = of_pods.stop().await;
    index.settled().await;
    assert_eq!(show(&index), "east: web, west: db");
    assert_eq!(index.objects("west")[0].name(), "db");
    assert!(index.has_synced());
    assert_eq!(alive(), 0, "no task is left");
    drop(index);
    drop(pods);
}

#[tokio::test(start_paused = true)]
async fn an_index_rejected_by_the_second_informer_leaves_no_handler_on_the_first() {
    let both = Both::new([]);
    let Both {
        of_pods,
        nodes,
        stop_nodes,
        node_task,
        ..
    } = both;
    let pods = of_pods.stop().await;
    assert_eq!(by_zone(&pods, &nodes).unwrap_err(), Stopped);
    tokio::task::yield_now().await;
    assert_eq!(nodes.handlers().len(), 0);
    drop(stop_nodes);
    node_task.await.unwrap();
    assert_eq!(alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_the_index_fails_when_the_index_is_dropped_or_an_informer_stops() {
    let server = Server::builder().seed([on("web", "n1")]).build();
    let of_pods = run(builder(&server));
    let (nodes, node_controller) = node_builder(&server).build();
    let index = by_zone(&of_pods.pods, &nodes).unwrap();
    of_pods.caught_up(&server).await;
    index.settled().await;
    assert!(!index.has_synced(), "the nodes are not listed");
    let failed_wait = by_zone(&of_pods.pods, &nodes).unwrap().wait_for_sync();
    let failed_wait = timeout(LONG, failed_wait).await.unwrap();
    assert!(failed_wait.is_err(), "that index was dropped at once");
    let waiting = index.wait_for_sync();
    node_controller.run(async {}).await.unwrap();
    let error = timeout(LONG, waiting).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("derived index zone"), "{error}");
    of_pods.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_resync_does_not_recompute_the_index() {
    let server = Server::builder()
        .seed([node("n1", "east"), on("web", "n1")])
        .build();
    let of_pods = run(builder(&server).resync(Duration::from_secs(30)));
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let index = of_pods
        .pods
        .derived_index(
            "zone",
            &of_pods.pods,
            move |pod| {
                count.fetch_add(1, Ordering::Relaxed);
                node_of(pod)
            },
            |_, _| [""; 0],
        )
        .unwrap();
    let trace = Trace::default();
    trace.listen(&of_pods.pods);
    index.wait_for_sync().await.unwrap();
    sleep(Duration::from_secs(100)).await;
    index.settled().await;
    assert!(
        trace.take().contains("(resync)"),
        "other handlers receive the resync"
    );
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    of_pods.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_index_may_derive_from_its_own_informer() {
    let server = Server::builder().build();
    let of_pods = run(builder(&server));
    let pods = &of_pods.pods;
    let app = |pod: &Pod| pod.labels().get("app").cloned();
    // A pod named "x-of-y" is found by the label of pod "y".
    let index = pods
        .derived_index(
            "app of the other",
            pods,
            |pod| {
                let name = pod.name_any();
                let (_, other) = name.split_once("-of-")?;
                Some(ObjectName::namespaced("default", other))
            },
            move |_, others| others.iter().filter_map(|pod| app(pod)).collect::<Vec<_>>(),
        )
        .unwrap();
    server.create(pod("a-of-y")).unwrap();
    server
        .create(crate::setting::labelled("y", "shop"))
        .unwrap();
    server.create(pod("b-of-y")).unwrap();
    of_pods.caught_up(&server).await;
    assert_eq!(
        show(&index),
        "shop: a-of-y b-of-y",
        "the index has handlers of its own"
    );
    of_pods.stop().await;
}
