//! [`Running`]: an informer as its life wants it, and who runs it.

use std::{collections::BTreeMap, time::Duration};

use kube_informer::{
    Controller, Indexers, MutationCache, SharedInformer,
    client::ListWatch,
    queue::{DeltaFifo, InOrder},
    status::{Activity, StatusReader},
};
use kube_informer_apiserver::Server;
use tokio::{sync::oneshot, task::JoinSet};

use crate::{
    coverage::{Seen, edge},
    life::{NAMESPACES, Queue, Scope, Setting},
    planted::{self, Bug, Spoilt},
    stored::Stored,
    wire::{Watched, Wire},
};

/// An informer, and who runs it.
pub(super) struct Running<K> {
    pub(super) informer: SharedInformer<K>,
    pub(super) overlay: MutationCache<K>,
    pub(super) stop: oneshot::Sender<()>,
    pub(super) tasks: JoinSet<()>,
    pub(super) edges: JoinSet<Seen>,
}

/// Makes an informer, and lets it run.
pub(super) fn start<K: Stored>(
    setting: &Setting,
    bug: Option<Bug>,
    server: &Server,
    wire: &Wire,
    seed: u64,
) -> Running<K> {
    let dyntype = K::dyntype();
    let all = ListWatch::<K>::with_type(server.client(), &dyntype);
    let source = |list_watch| Spoilt::new(Watched::new(list_watch, wire.clone()), bug);
    let builder = |first| SharedInformer::<K>::builder_with_type(source(first), dyntype.clone());
    let builder = match setting.scope {
        Scope::Everywhere => builder(all),
        Scope::Labelled => {
            let web = "app=web".parse().expect("a selector");
            builder(all.labels(&web))
        }
        Scope::TwoNamespaces => {
            let [first, second, ..] = NAMESPACES;
            builder(all.clone().namespace(first)).source(source(all.namespace(second)))
        }
    };
    let app = |object: &K| object.meta().labels.as_ref()?.get("app").cloned();
    let mut builder = builder
        .indexers(Indexers::new().with("app", app))
        .expect("one index")
        .rng_seed(seed)
        .resync(Duration::from_secs(setting.resync))
        .consistency_check(Duration::from_secs(setting.consistency))
        .initial_list(setting.initial_list)
        .queue_capacity(setting.capacity);
    if let Some(objects) = setting.page_size {
        builder = builder.page_size(objects);
    }
    if let Some(objects) = setting.packed {
        builder = builder.packed_from(objects);
    }
    let builder = match setting.queue {
        Queue::InOrder(batch) => planted::queue(builder, InOrder::new().batch_size(batch), bug),
        Queue::DeltaFifo => planted::queue(builder, DeltaFifo::new(), bug),
    };
    let (informer, controller) = builder.build();
    Running::new(informer, controller)
}

impl<K: Stored> Running<K> {
    fn new(informer: SharedInformer<K>, controller: Controller<K>) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let mut tasks = JoinSet::new();
        tasks.spawn(controller.run(async { drop(stopped.await) }));
        let mut edges = JoinSet::new();
        edges.spawn(note_edges(informer.status()));
        Self {
            overlay: informer.overlay(),
            informer,
            stop,
            tasks,
            edges,
        }
    }
}

/// Notes what the informer's sources do, one after the other, until it has ended.
async fn note_edges(mut status: StatusReader) -> Seen {
    let mut seen = Seen::default();
    let mut before: BTreeMap<usize, Activity> = BTreeMap::new();
    while let Some(status) = status.changed().await {
        for (number, source) in status.sources.iter().enumerate() {
            let was = before.insert(number, source.activity).unwrap_or_default();
            seen.edge(edge(was), edge(source.activity));
        }
        if status.is_stopped() {
            break;
        }
    }
    seen
}
