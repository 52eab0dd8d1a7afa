//! Runs a small control plane: control loops that communicate only through objects on an API server.
//!
//! Guarantees:
//! - A loop reads objects from the caches of its informers, and changes objects with requests to the server.
//!   A loop sends no list requests, does not poll, and does not call another loop.
//! - The node agent is the only loop that also gets an object from the server. It gets a pod before it
//!   reports that the pod has ended.
//! - Event handlers send no requests. They report steps (what a loop observed or did) and add objects to a
//!   queue. The workers of the queue send the requests. If no workers are started, the loops only report the
//!   changes that another control plane makes.
//! - All loops run in this program. A [`Process`] groups the loops that a real control plane runs in one
//!   binary, such as the deployment controller and the replica set controller in kube-controller-manager.
//!   Each `Process` has one client and one informer factory.
//! - After [`ControlPlane::shutdown`] no task, watch or request of a loop remains.

use std::{
    collections::BTreeMap, fmt, future::Future, marker::PhantomData, pin::Pin, sync::Arc,
    time::Duration,
};

use k8s_openapi::NamespaceResourceScope;
use kube_client::{Api, Client};
use kube_core::Resource;
use kube_informer::{
    InformerOptions, ObjectName, Selector, SharedInformer, SharedInformerFactory,
    factory::CacheSyncError, status::StatusReader, workqueue::RateLimitingQueue,
};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::Instant,
};

use crate::{
    cache::{Cache, Reads},
    clock::Clock,
    events::{self, Events, Report},
    step::{Step, Teller},
};

/// Maximum time that a shutdown waits for the workers' pending requests.
const LAST_REQUESTS: Duration = Duration::from_secs(2);

/// The reconcile function of a control loop.
pub(crate) trait Reconciler: Send + Sync + 'static {
    /// Changes the cluster so that the object `name` comes closer to its desired state.
    ///
    /// # Errors
    /// Returns an error if a request or the decoding of an object fails; the worker then retries the object.
    fn reconcile(
        &self,
        name: &ObjectName,
    ) -> impl Future<Output = Result<(), anyhow::Error>> + Send;
}

/// The namespace and the label selector of the objects that the loops of a [`ControlPlane`] observe.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// Namespace of the observed objects, or `None` for all namespaces.
    pub(crate) namespace: Option<String>,
    pub(crate) selector: Selector,
}

/// The control loops of a cluster, with their informers, queues and workers.
///
/// [`ControlPlane::builder`] selects the loops. [`ControlPlane::shutdown`] lets them end their requests. If the control
/// plane is dropped, its loops are aborted and its informers end.
#[must_use = "dropping it ends the loops"]
pub struct ControlPlane {
    scope: Scope,
    steps: mpsc::Sender<Step>,
    processes: Vec<Process>,
    pub(crate) queues: Vec<RateLimitingQueue<ObjectName>>,
    /// Futures of the workers that [`ControlPlane::act`] has not started yet.
    waiting: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
    running: JoinSet<()>,
    /// True from the begin of the shutdown on.
    stopping: watch::Sender<bool>,
    only_observes: bool,
    troubles: Troubles,
    clock: Clock,
    writes_events: bool,
}

/// The control loops that a real control plane runs in one binary, such as kube-controller-manager.
///
/// These loops share informers and one client, which has its own `User-Agent`.
pub(crate) struct Process {
    user_agent: Arc<str>,
    client: Client,
    factory: SharedInformerFactory,
    scope: Scope,
    steps: mpsc::Sender<Step>,
    stopping: watch::Receiver<bool>,
    clock: Clock,
    /// Where the loops report events, if they write some.
    events: Option<mpsc::Sender<Report>>,
    reads: Reads,
    /// Status of each informer, by the plural name of its resource, such as `pods`.
    informers: BTreeMap<String, StatusReader>,
}

/// Creates the [`Api`] clients with which a loop changes objects of kind `K`.
pub(crate) struct Writes<K> {
    client: Client,
    kind: PhantomData<fn() -> K>,
}

/// The message of the last error of each loop, by the loop's name.
type Troubles = Arc<Mutex<BTreeMap<Arc<str>, String>>>;

// === impl ControlPlane ===

impl ControlPlane {
    pub(crate) fn new(scope: Scope, steps: mpsc::Sender<Step>) -> Self {
        Self {
            scope,
            steps,
            processes: Vec::new(),
            queues: Vec::new(),
            waiting: Vec::new(),
            running: JoinSet::new(),
            stopping: watch::Sender::new(false),
            only_observes: false,
            troubles: Troubles::default(),
            clock: Clock::system(),
            writes_events: false,
        }
    }

    /// Lets [`ControlPlane::act`] start no loop.
    pub(crate) fn only_observe(&mut self) {
        self.only_observes = true;
    }

    /// Lets the loops of the processes that are created from now on write events (`kubectl get events`).
    pub(crate) fn write_events(&mut self) {
        self.writes_events = true;
    }

    /// Creates a [`Process`], a group of control loops that share `client` and an informer factory.
    ///
    /// The group is empty. The caller adds the loops, and then passes the process to [`ControlPlane::host`].
    pub(crate) fn process(&mut self, user_agent: &str, client: Client) -> Process {
        let factory = SharedInformerFactory::builder(client.clone())
            .namespaces(self.scope.namespace.as_deref())
            .build();
        let events = self.writes_events.then(|| {
            let (sender, writer) = events::channel(client.clone(), self.clock);
            self.waiting.push(Box::pin(writer.run()));
            sender
        });
        Process {
            clock: self.clock,
            events,
            user_agent: Arc::from(user_agent),
            client,
            factory,
            scope: self.scope.clone(),
            steps: self.steps.clone(),
            stopping: self.stopping.subscribe(),
            reads: Reads::default(),
            informers: BTreeMap::new(),
        }
    }

    /// Adds `process` and its loops to the control plane. Starts nothing.
    pub(crate) fn host(&mut self, process: Process) {
        self.processes.push(process);
    }

    /// Adds workers, which reconcile the objects in `queue`, to the control loop `who`.
    ///
    /// [`ControlPlane::act`] starts the workers.
    pub(crate) fn staff<R: Reconciler>(
        &mut self,
        who: &str,
        queue: RateLimitingQueue<ObjectName>,
        reconciler: R,
        workers: usize,
    ) {
        let who: Arc<str> = Arc::from(who);
        let reconciler = Arc::new(reconciler);
        for _ in 0..workers {
            let shift = Shift {
                who: Arc::clone(&who),
                queue: queue.clone(),
                stopping: self.stopping.subscribe(),
                troubles: Arc::clone(&self.troubles),
            };
            self.waiting
                .push(Box::pin(shift.work(Arc::clone(&reconciler))));
        }
        self.queues.push(queue);
    }

    /// Starts all informers and waits until every cache is synced. A second call continues to wait.
    ///
    /// # Errors
    /// Returns an error if a cache is not synced within `deadline`, or if a list or watch fails permanently.
    ///
    /// # Cancel safety
    /// Dropping the future only ends the wait; the informers run on.
    pub async fn observe(&self, deadline: Duration) -> Result<(), CacheSyncError> {
        for process in &self.processes {
            process.factory.start();
        }
        let until = Instant::now() + deadline;
        for process in &self.processes {
            let left = until.saturating_duration_since(Instant::now());
            let filled = process.factory.wait_for_cache_sync();
            filled.deadline(left).fail_fast().await?;
        }
        Ok(())
    }

    /// Starts the loops, which until now only observe. Loops that [only observe](crate::Builder::only_observe) stay idle.
    ///
    /// Call it after [`ControlPlane::observe`]: a loop that does not see all objects creates too many.
    ///
    /// # Panics
    /// Panics outside a tokio runtime.
    pub fn act(&mut self) {
        for worker in self.waiting.drain(..).filter(|_| !self.only_observes) {
            self.running.spawn(worker);
        }
    }

    /// Returns the user agent of each process, and the number of reads from the caches of that process.
    pub fn reads(&self) -> Vec<(Arc<str>, u64)> {
        let reads = |process: &Process| (Arc::clone(&process.user_agent), process.reads.count());
        self.processes.iter().map(reads).collect()
    }

    /// Returns the state of each informer and the last error of each loop, one per line.
    pub fn report(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for process in &self.processes {
            for (kind, status) in &process.informers {
                lines.push(format!("{}, {kind}: {}", process.user_agent, status.get()));
            }
        }
        let troubles = self.troubles.lock();
        lines.extend(
            troubles
                .iter()
                .map(|(who, trouble)| format!("{who}: {trouble}")),
        );
        lines
    }

    /// Stops all loops after their current reconciliation, and then all informers.
    ///
    /// Loops that are still busy after two seconds are aborted. Steps that wait for room in their channel are lost.
    ///
    /// # Cancel safety
    /// If the future is dropped, the loops are aborted and the informers end.
    pub async fn shutdown(mut self) {
        self.stopping.send_replace(true);
        for process in &mut self.processes {
            // A writer of events ends with the last loop that can report one.
            process.events = None;
        }
        for queue in &self.queues {
            queue.shut_down();
        }
        let ended = async { while self.running.join_next().await.is_some() {} };
        if tokio::time::timeout(LAST_REQUESTS, ended).await.is_err() {
            self.running.shutdown().await;
        }
        for process in &self.processes {
            process.factory.shutdown().await;
        }
    }
}

#[cfg(test)]
impl ControlPlane {
    /// Returns a control plane for the objects in the namespace `default`, and the receiver of its steps.
    pub(crate) fn of_default() -> (Self, mpsc::Receiver<Step>) {
        let (tell, steps) = mpsc::channel(1_024);
        let scope = Scope {
            namespace: Some("default".to_owned()),
            selector: Selector::everything(),
        };
        (Self::new(scope, tell), steps)
    }
}

impl fmt::Debug for ControlPlane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processes = self.processes.iter().map(|process| &process.user_agent);
        f.debug_list().entries(processes).finish()
    }
}

// === impl Process ===

impl Process {
    /// Returns the [`Teller`] with which the loop `who` reports what it observes and does.
    pub(crate) fn teller(&self, who: &str) -> Teller {
        Teller::new(who, self.steps.clone(), self.stopping.clone())
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns the events of the component `component`, on the node `host` if it runs on one.
    pub(crate) fn events(&self, component: &str, host: Option<&str>) -> Events {
        Events::new(component, host, self.events.clone())
    }

    pub(crate) fn user_agent(&self) -> Arc<str> {
        Arc::clone(&self.user_agent)
    }

    /// Returns the informer of kind `K` that all loops of the process share.
    pub(crate) fn informer<K>(&mut self) -> SharedInformer<K>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        let options = InformerOptions::new().labels(self.scope.selector.clone());
        let informer = self
            .factory
            .informer_with::<K>(options)
            .expect("all loops of a process ask for the same options");
        let plural = K::plural(&()).into_owned();
        self.informers.insert(plural, informer.status());
        informer
    }

    pub(crate) fn cache<K>(&self, informer: &SharedInformer<K>) -> Cache<K>
    where
        K: Resource + Send + Sync + 'static,
    {
        Cache::new(informer, self.reads.clone())
    }

    pub(crate) fn writes<K>(&self) -> Writes<K> {
        Writes {
            client: self.client.clone(),
            kind: PhantomData,
        }
    }
}

// === impl Writes ===

impl<K> Writes<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    pub(crate) fn in_namespace_of(&self, object: &impl Resource) -> Api<K> {
        self.to(object.meta().namespace.as_deref())
    }

    pub(crate) fn to(&self, namespace: Option<&str>) -> Api<K> {
        Api::namespaced(self.client.clone(), namespace.unwrap_or_default())
    }
}

/// A worker of the control loop `who`. The worker reconciles the objects in `queue`.
struct Shift {
    who: Arc<str>,
    queue: RateLimitingQueue<ObjectName>,
    stopping: watch::Receiver<bool>,
    troubles: Troubles,
}

impl Shift {
    async fn work<R: Reconciler>(self, reconciler: Arc<R>) {
        while let Some(item) = self.queue.get().await {
            if *self.stopping.borrow() {
                item.done();
                continue;
            }
            match reconciler.reconcile(item.key()).await {
                Ok(()) => item.forget(),
                Err(error) => {
                    let who = &*self.who;
                    tracing::info!(who, name = %item.key(), "tries again: {error:#}");
                    let trouble = format!("{}: {error:#}", item.key());
                    self.troubles.lock().insert(Arc::clone(&self.who), trouble);
                    item.retry();
                }
            }
        }
    }
}
