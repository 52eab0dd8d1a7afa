//! Executes a simulated run: builds the server and the informer, runs the steps, and checks the results.

mod check;
mod old_object;
mod running;
mod users;
mod woken;

use std::{collections::BTreeSet, panic::AssertUnwindSafe, time::Duration};

use fastrand::Rng;
use futures_util::FutureExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube_core::{DynamicObject, PartialObjectMeta};
use kube_informer::Object;
use kube_informer_apiserver::{LoggedRequest, Server, WatchCache};
use serde_json::{Value, json};
use tokio::{
    runtime::{self, Handle},
    sync::oneshot,
    task::{JoinSet, yield_now},
    time::{Instant, sleep, timeout},
};

use self::{
    check::HELD_UP,
    running::{Running, start},
    users::User,
};
use crate::{
    coverage::Seen,
    fault::{Fault, Harm, OLD_OBJECT},
    life::{Change, End, Key, Life, NAMESPACES, Step, Store, Written},
    planted::Bug,
    stored::Stored,
    truth::{self, Truth},
    wire::Wire,
};

/// Maximum time from the stop of an informer to the end of its task.
///
/// The task may wait for a handler, whose slowest callback takes 200 ms.
const STOPS_WITHIN: Duration = Duration::from_secs(1);

/// Time within which the response to every request arrives. Faults delay a response by at most 20 s.
const ON_ITS_WAY: Duration = Duration::from_secs(30);

/// Maximum recovery time, after all faults have ended, of an informer that lists in pages.
///
/// The list's revision can expire before the watch opens. The recovery then includes two backoff pauses of up
/// to 60 s each.
const IN_PAGES: Duration = Duration::from_secs(121);

/// Description of a property that a simulated run has violated.
pub(crate) type Wrong = String;

/// Result of a simulated run.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Description of the first violated property; `None` if the run passed.
    pub(crate) wrong: Option<Wrong>,
    pub(crate) seen: Seen,
    /// One line per request, and per event that a handler received.
    pub(crate) trace: Vec<String>,
}

/// Executes a simulated run of an informer that contains the planted bug `bug`, if any.
pub(crate) fn live(life: &Life, bug: Option<Bug>) -> Outcome {
    let lived = std::panic::catch_unwind(|| {
        let runtime = runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without an I/O driver can be built");
        runtime.block_on(async {
            match life.setting.store {
                Store::Typed => World::<Pod>::new(life, bug).live().await,
                Store::Dynamic => World::<DynamicObject>::new(life, bug).live().await,
                Store::Metadata => World::<PartialObjectMeta<Pod>>::new(life, bug).live().await,
            }
        })
    });
    lived.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Outcome {
            wrong: Some(format!("a panic: {}", text.unwrap_or_default())),
            ..Outcome::default()
        }
    })
}

struct World<'a, K> {
    life: &'a Life,
    bug: Option<Bug>,
    server: Server,
    truth: Truth,
    wire: Wire,
    rng: Rng,
    informer: Running<K>,
    users: Vec<User<K>>,
    /// Tasks that wait until the cache contains the write of a simulated user, and then check the cache.
    reads: JoinSet<Result<(), Wrong>>,
    /// Whether the server has had a state that `truth` has not recorded.
    ///
    /// For example, the server deletes the objects of a namespace one by one, but `truth` records only the
    /// state after the last deletion.
    gaps: bool,
    /// Names of past faults that disable some checks, such as "event lost".
    harm: BTreeSet<&'static str>,
    /// Objects in the cache that failed to decode when they were read, each with the time of the read.
    unreadable: Vec<(Instant, Object<K>)>,
    outcome: Outcome,
}

impl<'a, K: Stored> World<'a, K> {
    fn new(life: &'a Life, bug: Option<Bug>) -> Self {
        let setting = &life.setting;
        let mut rng = Rng::with_seed(setting.rng);
        let cache = setting
            .watch_cache
            .map_or(WatchCache::Off, WatchCache::Size);
        let mut keys = setting.objects.clone();
        keys.sort_unstable();
        keys.dedup();
        let server = Server::builder()
            .seed(keys.into_iter().map(|key| {
                pod(Written {
                    key,
                    value: 0,
                    web: true,
                })
            }))
            .watch_cache(cache)
            // A simulated run may write to a namespace that it has deleted.
            .enforce_namespaces(false)
            .rng_seed(rng.u64(..))
            .build();
        let mut truth = Truth::new();
        truth.begin(&server, setting);
        let wire = Wire::default();
        let informer = start(setting, bug, &server, &wire, rng.u64(..));
        let mut outcome = Outcome::default();
        outcome.seen.setting(setting);
        Self {
            life,
            bug,
            server,
            truth,
            wire,
            rng,
            informer,
            users: Vec::new(),
            reads: JoinSet::new(),
            gaps: false,
            harm: BTreeSet::new(),
            unreadable: Vec::new(),
            outcome,
        }
    }

    async fn live(mut self) -> Outcome {
        let lived = self.go_through().await;
        self.note_trace();
        let mut outcome = std::mem::take(&mut self.outcome);
        outcome.wrong = match lived {
            Ok(()) => self.finish().await.err(),
            Err(wrong) => Some(wrong),
        };
        outcome
    }

    async fn go_through(&mut self) -> Result<(), Wrong> {
        let life = self.life;
        for (at, step) in &life.steps {
            let wrong = |wrong| format!("at step {at}: {wrong}");
            self.take(step).await.map_err(wrong)?;
            self.outcome.seen.step(step);
            self.check_now().map_err(wrong)?;
        }
        if life.setting.end == End::Heal {
            self.server.faults().clear();
            self.heal(self.heals_within(), true).await?;
            self.check_all().await?;
            self.check_resyncs().await?;
        }
        self.end(life.setting.end == End::Kill).await
    }

    fn note_trace(&mut self) {
        let Outcome { seen, trace, .. } = &mut self.outcome;
        for user in &self.users {
            trace.append(&mut user.history.take_lines());
        }
        for request in &self.server.requests() {
            seen.hits(&request.faults);
            trace.push(shown(request));
        }
    }

    async fn take(&mut self, step: &Step) -> Result<(), Wrong> {
        match step {
            Step::Pass(time) => self.pass(*time).await?,
            Step::Change(change) => self.change(change),
            Step::Fault(fault) => self.fault(fault).await?,
            Step::User(act) => self.act(act).await?,
        }
        Ok(())
    }

    async fn pass(&mut self, time: Duration) -> Result<(), Wrong> {
        let before = self.wire.requests();
        sleep(time).await;
        let asked = self.wire.requests() - before;
        self.check_rate(time, asked)
    }

    fn change(&mut self, change: &Change) {
        match change {
            Change::Write(written) => drop(self.write(*written)),
            Change::Delete(key) => drop(self.delete(*key)),
            Change::Recreate(written) => {
                self.delete(written.key);
                self.write(*written);
            }
            Change::Burst(all) => {
                for written in all {
                    self.write(*written);
                }
            }
            Change::DeleteNamespace(namespace) => {
                let name = NAMESPACES[*namespace];
                if self.server.get("v1", "namespaces", name).is_none() {
                    let namespace = json!({
                        "apiVersion": "v1",
                        "kind": "Namespace",
                        "metadata": {"name": name},
                    });
                    self.server
                        .create(namespace)
                        .expect("a namespace can be created");
                }
                let before = truth::on_server(&self.server, &self.life.setting).len();
                // A namespace that is already being deleted stays unchanged.
                drop(self.server.delete("v1", "namespaces", name));
                self.truth.note(&self.server, &self.life.setting);
                // The server deletes the objects of the namespace one by one.
                let after = truth::on_server(&self.server, &self.life.setting).len();
                self.gaps |= before > after + 1;
            }
        }
    }

    /// Creates or updates an object. Returns the server's response, or `None` if the response is an error.
    fn write(&mut self, written: Written) -> Option<Value> {
        let name = path(written.key);
        let answer = if self.server.get("v1", "pods", &name).is_some() {
            self.server.update(pod(written))
        } else {
            self.server.create(pod(written))
        };
        self.truth.note(&self.server, &self.life.setting);
        answer.ok()
    }

    fn delete(&mut self, key: Key) -> Option<Value> {
        let deleted = self.server.delete("v1", "pods", &path(key)).ok();
        self.truth.note(&self.server, &self.life.setting);
        deleted
    }

    async fn fault(&mut self, fault: &Fault) -> Result<(), Wrong> {
        match fault.harm() {
            Harm::None => {}
            Harm::Lies | Harm::Loses => self.harmed(fault),
            Harm::PutsBack => return self.put_back(fault).await,
        }
        let faults = self.server.faults();
        if fault.name() == OLD_OBJECT {
            if let Some(plan) = self.old_object() {
                self.outcome.seen.checked(OLD_OBJECT);
                faults.inject(&plan).map_err(|error| error.to_string())?;
            }
            return Ok(());
        }
        faults
            .inject(&fault.plan)
            .map_err(|error| error.to_string())
    }

    fn harmed(&mut self, fault: &Fault) {
        self.harm.insert(fault.name());
        for user in &self.users {
            user.history.lied();
        }
    }

    /// Restores the server to an older state, and waits until the informer has recovered.
    async fn put_back(&mut self, fault: &Fault) -> Result<(), Wrong> {
        let faults = self.server.faults();
        faults.clear();
        if self.server.revision() <= fault.figure() {
            return Ok(());
        }
        // Pending responses do not survive the restore.
        sleep(ON_ITS_WAY).await;
        let gone = faults.inject("refuse connections for 2s; break watch pods");
        gone.map_err(|error| error.to_string())?;
        sleep(Duration::from_secs(1)).await;
        if faults.inject(&fault.plan).is_err() {
            // The server no longer has that revision.
            return Ok(());
        }
        self.harmed(fault);
        self.truth.note(&self.server, &self.life.setting);
        let within = self.heals_within().max(fault.heals_within());
        // Nothing is written meanwhile, because only a revision below the cache's reveals the restore.
        self.heal(within, false).await
    }

    /// Returns the maximum recovery time after all faults have ended.
    fn heals_within(&self) -> Duration {
        let faults = self.life.steps.iter().filter_map(|(_, step)| match step {
            Step::Fault(fault) => Some(fault.heals_within()),
            _ => None,
        });
        let mut slowest = faults.max().unwrap_or_default() + Duration::from_secs(1);
        if self.life.setting.page_size.is_some() {
            slowest = slowest.max(IN_PAGES);
        }
        if self.users.iter().any(User::holds_up) {
            slowest + HELD_UP
        } else {
            slowest
        }
    }

    /// Ends the informer, and starts a new informer with the same handlers.
    ///
    /// `kill` selects how [`end`](Self::end) ends the informer.
    async fn restart(&mut self, kill: bool) -> Result<(), Wrong> {
        self.end(kill).await?;
        let setting = &self.life.setting;
        let seed = self.rng.u64(..);
        self.truth.begin(&self.server, setting);
        self.unreadable.clear();
        self.informer = start(setting, self.bug, &self.server, &self.wire, seed);
        let users = std::mem::take(&mut self.users);
        for user in users {
            self.outcome.trace.append(&mut user.history.take_lines());
            self.join(&user.handler).await?;
        }
        Ok(())
    }

    /// Stops the informer, or aborts its task if `kill` is true.
    ///
    /// Returns an error if the informer panics or does not end within [`STOPS_WITHIN`], if a callback still
    /// runs after a stop, or if a handler has received invalid events.
    async fn end(&mut self, kill: bool) -> Result<(), Wrong> {
        let informer = &mut self.informer;
        if kill {
            informer.tasks.abort_all();
        } else {
            let (stop, _) = oneshot::channel();
            drop(std::mem::replace(&mut informer.stop, stop));
        }
        let ended = timeout(STOPS_WITHIN, informer.tasks.join_next()).await;
        let Ok(ended) = ended else {
            return Err(format!(
                "the informer has not stopped within {STOPS_WITHIN:?}"
            ));
        };
        if let Some(Err(error)) = ended
            && error.is_panic()
        {
            return Err("the informer panicked".to_owned());
        }
        if !kill && self.users.iter().any(|user| user.history.is_being_told()) {
            return Err("a callback is running after the informer has stopped".to_owned());
        }
        while let Some(edges) = informer.edges.join_next().await {
            self.outcome
                .seen
                .add(edges.map_err(|error| error.to_string())?);
        }
        for user in &self.users {
            user.check_history()?;
        }
        Ok(())
    }

    /// Drops the server and the informer, and checks that no task or response body remains.
    async fn finish(mut self) -> Result<(), Wrong> {
        self.reads.shutdown().await;
        let wire = self.wire.clone();
        drop(self);
        // Tasks that are shutting down must be polled several times.
        for _ in 0..100 {
            yield_now().await;
        }
        let tasks = Handle::current().metrics().num_alive_tasks();
        match (tasks, wire.open()) {
            (0, 0) => Ok(()),
            (tasks, bodies) => Err(format!(
                "{tasks} tasks and {bodies} response bodies are left after the end"
            )),
        }
    }
}

/// Formats a logged request as one line of the trace.
fn shown(request: &LoggedRequest) -> String {
    let options = &request.options;
    let verb = format!("{:?}", request.verb).to_lowercase();
    let namespace = request.namespace.as_deref().unwrap_or("everywhere");
    let revision = options.resource_version.as_deref().unwrap_or("-");
    let mut line = format!("{verb} {namespace} {revision}");
    if options.send_initial_events.is_some() {
        line += " streaming";
    }
    if let Some(limit) = options.limit {
        line = format!("{line} limit={limit}");
    }
    if options.continue_token.is_some() {
        line += " continue";
    }
    let status = request
        .status
        .map_or("refused".to_owned(), |status| status.to_string());
    format!("{line}: {status} {:?}", request.faults)
}

fn path(key: Key) -> String {
    format!("{}/p{}", key.namespace(), key.name)
}

/// Returns a pod without `resourceVersion`, so that the server applies the update without a conflict check.
fn pod(written: Written) -> Value {
    let mut labels = json!({"v": written.value.to_string()});
    if written.web {
        labels["app"] = json!("web");
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("p{}", written.key.name),
            "namespace": written.key.namespace(),
            "labels": labels,
        },
        "spec": {"containers": [{"name": "main", "image": "pause"}]},
    })
}

/// Awaits a future, and returns an error if the future panics.
async fn sound<T>(waited: impl Future<Output = T>) -> Result<T, Wrong> {
    let waited = AssertUnwindSafe(waited).catch_unwind();
    waited.await.map_err(|_| "a panic".to_owned())
}
