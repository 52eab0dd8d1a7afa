//! Tests a derived index that finds pods by the zones of their nodes.
//!
//! The index has two handlers: one for pod events and one for node events. A property test changes the pod
//! cache and the node cache between the polls of these handlers, and during calls of the index functions.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{
        Weak,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Waker},
};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube_core::{ObjectMeta, ResourceExt};
use parking_lot::Mutex;
use proptest::prelude::*;

use super::*;
use crate::indexer::{self, IndexerWriter, Indexers};

const NAMES: [&str; 3] = ["a", "b", "c"];
const ZONES: [&str; 4] = ["east", "west", "north", "nowhere"];

fn meta(name: &str, label: &str, text: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some([(label.to_owned(), text.to_owned())].into()),
        ..ObjectMeta::default()
    }
}

/// Returns a pod with the label `nodes`, for example `ab` for the nodes `a` and `b`.
fn pod(name: &str, nodes: &str) -> Pod {
    Pod {
        metadata: meta(name, "nodes", nodes),
        ..Pod::default()
    }
}

fn node(name: &str, zone: &str) -> Node {
    Node {
        metadata: meta(name, "zone", zone),
        ..Node::default()
    }
}

fn nodes_of(pod: &Pod) -> Result<Vec<ObjectName>, String> {
    match &*pod.labels()["nodes"] {
        "abc" => Err("too many".to_owned()),
        nodes => Ok(nodes
            .chars()
            .map(|node| ObjectName::cluster(&node.to_string()))
            .collect()),
    }
}

fn zones_of(_: &Pod, nodes: &[Arc<Node>]) -> Result<Vec<Arc<str>>, String> {
    let zones = nodes.iter().map(|node| &*node.labels()["zone"]);
    let zone = |zone| match zone {
        "nowhere" => Err("no such zone".to_owned()),
        zone => Ok(Arc::from(zone)),
    };
    zones.map(zone).collect()
}

#[derive(Clone, Debug)]
enum Operation {
    PutPod(usize, String),
    DeletePod(usize),
    PutNode(usize, usize),
    DeleteNode(usize),
    /// Polls the pod handler (0) or the node handler (1) once.
    Poll(usize),
    /// Ends the current call of an index function, if there is one.
    Answer,
}

fn operations() -> impl Strategy<Value = VecDeque<Operation>> {
    let name = || 0..NAMES.len();
    let nodes = prop::sample::select(vec!["", "a", "b", "c", "ab", "bc", "ca", "abc"]);
    let operation = prop_oneof![
        3 => (name(), nodes).prop_map(|(name, nodes)| Operation::PutPod(name, nodes.to_owned())),
        1 => name().prop_map(Operation::DeletePod),
        3 => (name(), 0..ZONES.len()).prop_map(|(name, zone)| Operation::PutNode(name, zone)),
        1 => name().prop_map(Operation::DeleteNode),
        6 => (0..2usize).prop_map(Operation::Poll),
        6 => Just(Operation::Answer),
    ];
    prop::collection::vec(operation, 0..60).prop_map(VecDeque::from)
}

/// The undelivered events and the pending future of one handler.
#[derive(Default)]
struct Handling {
    events: VecDeque<ObjectName>,
    /// Future that handles the current event. `None` without a current event, and during a poll.
    waiting: Option<BoxFuture<'static, ()>>,
    polled: bool,
}

impl Handling {
    fn is_idle(&self) -> bool {
        self.events.is_empty() && self.waiting.is_none() && !self.polled
    }
}

/// The state of one test run. `script` contains the operations that did not run yet.
struct World {
    script: VecDeque<Operation>,
    pods: IndexerWriter<Pod>,
    nodes: IndexerWriter<Node>,
    handlers: [Handling; 2],
}

type Shared = Arc<Mutex<World>>;
type Kept = Maintenance<Pod, Node>;

/// Changes the caches and polls the handlers during a call of an index function.
///
/// Both index functions call this helper before they compute their result. The helper runs the operations in
/// [`World::script`] up to the next [`Operation::Answer`], or to the end of the script.
fn meanwhile(world: &Shared, maintenance: &Weak<Kept>) {
    while go_on(world, maintenance) {}
}

/// Removes the next operation from the script and runs the operation.
///
/// Returns `false` for [`Operation::Answer`], and at the end of the script.
fn go_on(world: &Shared, maintenance: &Weak<Kept>) -> bool {
    let mut guard = world.lock();
    let World {
        script,
        pods,
        nodes,
        handlers: [of_pods, of_nodes],
    } = &mut *guard;
    let name = |number: usize| ObjectName::cluster(NAMES[number]);
    match script.pop_front() {
        None | Some(Operation::Answer) => return false,
        Some(Operation::PutPod(number, on)) => {
            pods.add(pod(NAMES[number], &on)).unwrap();
            of_pods.events.push_back(name(number));
        }
        Some(Operation::DeletePod(number)) => {
            let deleted = pods.delete(&name(number)).map(|_| name(number));
            of_pods.events.extend(deleted);
        }
        Some(Operation::PutNode(number, zone)) => {
            nodes.add(node(NAMES[number], ZONES[zone])).unwrap();
            of_nodes.events.push_back(name(number));
        }
        Some(Operation::DeleteNode(number)) => {
            let deleted = nodes.delete(&name(number)).map(|_| name(number));
            of_nodes.events.extend(deleted);
        }
        Some(Operation::Poll(handler)) => {
            drop(guard);
            poll(world, maintenance, handler);
        }
    }
    true
}

/// Polls the pod handler (0) or the node handler (1) once.
///
/// Polls the pending future of an earlier call, or a new future for the next event.
fn poll(world: &Shared, maintenance: &Weak<Kept>, handler: usize) {
    let mut waiting = {
        let mut world = world.lock();
        let handling = &mut world.handlers[handler];
        if handling.polled {
            return; // called from inside its own function
        }
        let maintenance = maintenance.upgrade().unwrap();
        let next = handling.waiting.take().or_else(|| {
            let name = handling.events.pop_front()?;
            Some(Box::pin(async move {
                match handler {
                    0 => maintenance.update(&name).await,
                    _ => maintenance.update_dependants(&name).await,
                }
            }))
        });
        let Some(next) = next else {
            return;
        };
        handling.polled = true;
        next
    };
    let ended = waiting
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
        .is_ready();
    let mut world = world.lock();
    let handling = &mut world.handlers[handler];
    handling.polled = false;
    handling.waiting = (!ended).then_some(waiting);
}

/// Creates a [`World`], and an index of the pods in this world.
fn begin(script: VecDeque<Operation>) -> (Shared, Arc<Kept>, Arc<Board>) {
    let (pods, pod_writer) = indexer::new(Indexers::new()).unwrap();
    let (nodes, node_writer) = indexer::new(Indexers::new()).unwrap();
    let world = Arc::new(Mutex::new(World {
        script,
        pods: pod_writer,
        nodes: node_writer,
        handlers: Default::default(),
    }));
    let board = Arc::default();
    let maintenance = Arc::new_cyclic(|maintenance: &Weak<Kept>| {
        let during = (Arc::clone(&world), maintenance.clone());
        let depends_on: DependsOn<Pod> = Box::new(move |pod| {
            meanwhile(&during.0, &during.1);
            nodes_of(pod)
        });
        let during = (Arc::clone(&world), maintenance.clone());
        let values: ValuesOf<Pod, Node> = Box::new(move |pod, nodes| {
            meanwhile(&during.0, &during.1);
            zones_of(pod, nodes)
        });
        Maintenance {
            name: Arc::from("zone"),
            objects: pods,
            others: nodes,
            depends_on,
            values,
            board: Arc::downgrade(&board),
        }
    });
    (world, maintenance, board)
}

/// Computes the expected index: the pods per zone, and the pods for which an index function fails.
fn recomputed(world: &Shared) -> (BTreeMap<Arc<str>, Vec<ObjectName>>, Vec<ObjectName>) {
    let world = world.lock();
    let (pods, nodes) = (world.pods.snapshot(), world.nodes.snapshot());
    let mut placed: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let mut left_out = Vec::new();
    for object in pods.iter() {
        let name = object.object_name().clone();
        let pod = object.get().unwrap();
        let zones = nodes_of(&pod).and_then(|names| {
            let found = names.iter().filter_map(|name| nodes.get(name));
            let found: Vec<_> = found.map(|node| node.get().unwrap()).collect();
            zones_of(&pod, &found)
        });
        match zones {
            Err(_) => left_out.push(name),
            Ok(zones) => {
                for zone in BTreeSet::from_iter(zones) {
                    placed.entry(zone).or_default().push(name.clone());
                }
            }
        }
    }
    (placed, left_out)
}

fn kept(board: &Board) -> (BTreeMap<Arc<str>, Vec<ObjectName>>, Vec<ObjectName>) {
    let values = board.values();
    let placed = values.all_values().into_iter().map(|value| {
        let names = values.names(&value).cloned().collect();
        (value, names)
    });
    let errors = board.errors().into_iter().map(|error| error.object);
    (placed.collect(), errors.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_index_converges_for_any_order_of_changes_and_events(
        script in operations(),
    ) {
        let (world, maintenance, board) = begin(script);
        let weak = Arc::downgrade(&maintenance);
        while !world.lock().script.is_empty() {
            go_on(&world, &weak);
        }
        let mut turns = 0;
        while !world.lock().handlers.iter().all(Handling::is_idle) {
            poll(&world, &weak, turns % 2);
            turns += 1;
            prop_assert!(turns < 1_000, "the two handlers are deadlocked");
        }
        prop_assert_eq!(kept(&board), recomputed(&world));
    }
}

/// A derived index of many pods on the nodes `a` and `b`, with call counters for its two functions.
struct Crowd {
    maintenance: Maintenance<Pod, Node>,
    board: Arc<Board>,
    nodes: IndexerWriter<Node>,
    calls: Arc<[AtomicUsize; 2]>,
}

impl Crowd {
    async fn new(all: usize, on_b: usize) -> Self {
        let (pods, mut pod_writer) = indexer::new(Indexers::new()).unwrap();
        let (nodes, mut node_writer) = indexer::new(Indexers::new()).unwrap();
        node_writer.add(node("a", "east")).unwrap();
        node_writer.add(node("b", "west")).unwrap();
        let names: Vec<_> = (0..all).map(|number| format!("p{number}")).collect();
        let crowd = names.iter().enumerate().map(|(number, name)| {
            let on = if number < on_b { "b" } else { "a" };
            pod(name, on)
        });
        pod_writer.replace(crowd, "1").unwrap();
        let calls = Arc::new([const { AtomicUsize::new(0) }; 2]);
        let (first, second) = (Arc::clone(&calls), Arc::clone(&calls));
        let depends_on: DependsOn<Pod> = Box::new(move |pod| {
            first[0].fetch_add(1, Ordering::Relaxed);
            nodes_of(pod)
        });
        let values: ValuesOf<Pod, Node> = Box::new(move |pod, nodes| {
            second[1].fetch_add(1, Ordering::Relaxed);
            zones_of(pod, nodes)
        });
        let board = Arc::default();
        let maintenance = Maintenance {
            name: Arc::from("zone"),
            objects: pods,
            others: nodes,
            depends_on,
            values,
            board: Arc::downgrade(&board),
        };
        for name in &names {
            maintenance.update(&ObjectName::cluster(name)).await;
        }
        let crowd = Self {
            maintenance,
            board,
            nodes: node_writer,
            calls,
        };
        assert_eq!(crowd.calls(), [all, all], "one call for each object");
        crowd
    }

    /// Returns and resets the numbers of calls of `depends_on` and `values`.
    fn calls(&self) -> [usize; 2] {
        [0, 1].map(|function| self.calls[function].swap(0, Ordering::Relaxed))
    }
}

#[tokio::test]
async fn a_change_recomputes_only_its_dependents_of_a_hundred_thousand_objects() {
    const ALL: usize = 100_000;
    const ON_B: usize = 30;
    let mut crowd = Crowd::new(ALL, ON_B).await;
    crowd.nodes.add(node("b", "north")).unwrap();
    crowd
        .maintenance
        .update_dependants(&ObjectName::cluster("b"))
        .await;
    assert_eq!(crowd.calls(), [ON_B, ON_B]);
    let values = crowd.board.values();
    assert_eq!(values.names("north").count(), ON_B);
    assert_eq!(values.names("east").count(), ALL - ON_B);
    assert_eq!(values.names("west").count(), 0);

    let unrelated = ObjectName::cluster("c");
    crowd.maintenance.update_dependants(&unrelated).await;
    assert_eq!(crowd.calls(), [0, 0]);
}

#[tokio::test]
async fn objects_share_the_text_of_their_value() {
    let crowd = Crowd::new(3, 0).await;
    let values = crowd.board.values();
    let [first, rest @ ..] = &[0, 1, 2].map(|number| {
        let name = ObjectName::cluster(&format!("p{number}"));
        Arc::clone(&values.values(&name)[0])
    });
    assert_eq!(&**first, "east");
    assert!(rest.iter().all(|value| Arc::ptr_eq(first, value)));
}

#[tokio::test]
async fn an_index_dropped_during_a_change_calls_no_more_functions() {
    const ALL: usize = 1_000;
    let crowd = Crowd::new(ALL, 0).await;
    let Crowd {
        maintenance,
        board,
        calls,
        ..
    } = crowd;
    calls[0].store(0, Ordering::Relaxed);
    let node = ObjectName::cluster("a");
    let mut updating = tokio_test::task::spawn(maintenance.update_dependants(&node));
    assert!(updating.poll().is_pending(), "it yields to other tasks");
    let so_far = calls[0].load(Ordering::Relaxed);
    assert!(0 < so_far && so_far < ALL, "{so_far} of {ALL}");

    let released = Arc::downgrade(&board);
    drop(board);
    assert_eq!(
        released.strong_count(),
        0,
        "no reference to the index remains"
    );
    while updating.poll().is_pending() {
        tokio::task::yield_now().await;
    }
    drop(updating);
    maintenance.update(&ObjectName::cluster("p0")).await;
    assert_eq!(calls[0].load(Ordering::Relaxed), so_far);
}
