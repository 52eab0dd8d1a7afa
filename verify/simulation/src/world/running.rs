//! Starts the informer of a simulated run, in two tasks: one runs the informer, and one observes its status.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kube_informer::{
    Indexers, MutationCache, SharedInformer,
    client::ListWatch,
    metrics::{InformerIdentity, InformerMetrics, InformerSampler, Metrics, Observed},
    queue::{DeltaFifo, InOrder},
    shared_informer::Builder,
    status::{Activity, StatusReader},
    transport::Encoding,
};
use kube_informer_apiserver::Server;
use parking_lot::Mutex;
use tokio::{sync::oneshot, task::JoinSet};

use super::woken::Woken;
use crate::{
    coverage::{Seen, edge},
    life::{NAMESPACES, Queue, Scope, Setting},
    planted::{self, Bug, Spoilt},
    stored::Stored,
    wire::{Watched, Wire},
};

/// A started informer, its overlay of local writes ([`MutationCache`]), and its tasks.
pub(super) struct Running<K> {
    sampler: Sampler,
    pub(super) informer: SharedInformer<K>,
    pub(super) overlay: MutationCache<K>,
    pub(super) woken: Woken<K>,
    pub(super) stop: oneshot::Sender<()>,
    pub(super) tasks: JoinSet<()>,
    pub(super) edges: JoinSet<Seen>,
}

/// Metrics provider that stores the informer's [`InformerSampler`], which counts queued changes.
#[derive(Clone, Default)]
struct Sampler(Arc<Mutex<Option<InformerSampler>>>);

impl Metrics for Sampler {
    fn informer(
        &self,
        _: &InformerIdentity,
        sampler: InformerSampler,
    ) -> Option<Box<dyn InformerMetrics>> {
        *self.0.lock() = Some(sampler);
        Some(Box::new(Unheard))
    }
}

/// Metrics receiver that ignores all observations of an informer.
struct Unheard;

impl InformerMetrics for Unheard {
    fn observe(&self, _: Observed) {}
}

/// Creates and starts an informer, with the deliberate defect `bug`, if any.
///
/// `seed` is the seed of the informer's random generator.
pub(super) fn start<K: Stored>(
    setting: &Setting,
    bug: Option<Bug>,
    server: &Server,
    wire: &Wire,
    seed: u64,
) -> Running<K> {
    let dyntype = K::dyntype();
    // The planted bugs change lines of JSON.
    let encoding = if setting.protobuf && bug.is_none() {
        Encoding::Protobuf
    } else {
        Encoding::Json
    };
    let all = ListWatch::<K>::with_type(server.client(), &dyntype).encoding(encoding);
    let compared = setting.consistency > 0;
    let source = |list_watch| Spoilt::new(Watched::new(list_watch, wire.clone(), compared), bug);
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
    let sampler = Sampler::default();
    let app = |object: &K| object.meta().labels.as_ref()?.get("app").cloned();
    let indexers = if setting.reads_each_state() {
        Indexers::new().with("app", app)
    } else {
        Indexers::new().with_label("app", "app")
    };
    let mut builder = builder
        .indexers(indexers)
        .expect("one index")
        .rng_seed(seed)
        .resync(Duration::from_secs(setting.resync))
        .consistency_check(Duration::from_secs(setting.consistency))
        .initial_list(setting.initial_list)
        .queue_capacity(match bug {
            Some(Bug::CapacityIgnored) => usize::MAX / 4,
            _ => setting.capacity,
        })
        .metrics(Arc::new(sampler.clone()));
    if let Some(objects) = setting.page_size {
        builder = builder.page_size(objects);
    }
    if let Some(objects) = setting.packed {
        builder = builder.packed_from(objects);
    }
    if setting.lazy {
        builder = builder.lazy();
    }
    let builder = match setting.queue {
        Queue::InOrder(batch) => planted::queue(builder, InOrder::new().batch_size(batch), bug),
        Queue::DeltaFifo => planted::queue(builder, DeltaFifo::new(), bug),
    };
    Running::new(builder, sampler, bug)
}

impl<K: Stored> Running<K> {
    fn new(builder: Builder<K>, sampler: Sampler, bug: Option<Bug>) -> Self {
        let (informer, controller) = builder.build();
        let (stop, stopped) = oneshot::channel::<()>();
        let mut tasks = JoinSet::new();
        let running = controller.run(async { drop(stopped.await) });
        tasks.spawn(async {
            running.await.expect("the informer does not fail");
        });
        let mut edges = JoinSet::new();
        edges.spawn(note_edges(informer.status()));
        let overlay = informer.overlay();
        Self {
            sampler,
            woken: Woken::new(&informer, overlay.clone(), bug),
            overlay,
            informer,
            stop,
            tasks,
            edges,
        }
    }

    /// Returns the number of changes that are queued but not yet applied to the cache.
    pub(super) fn queued(&self) -> usize {
        let sampler = self.sampler.0.lock();
        let sample = sampler.as_ref().and_then(InformerSampler::sample);
        sample.map_or(0, |sample| sample.queued)
    }
}

/// Counts the [`Activity`] changes of each reflector until the informer stops.
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
