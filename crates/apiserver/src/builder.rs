//! Everything that is fixed before a server answers its first request.
//!
//! Guarantees: plain settings in any order, and one [`Builder::build`]; seeds get the revisions 1, 2, … in their order.

use std::mem;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;

use crate::access::{Policy, Rule, User};
use crate::bootstrap::Bootstrap;
use crate::clock::Clock;
use crate::fault::{Plan, PlanError};
use crate::fault_injection;
use crate::kinds::{Kind, Kinds};
use crate::resource::Registry;
#[cfg(feature = "persistence")]
use crate::restart::Kept;
use crate::server::Server;
use crate::shared::{Settings, Shared};
#[cfg(feature = "persistence")]
use crate::storage::{Disk, OpenDatabase, OpenError, open_file};
use crate::watch_cache::{Cache, WatchCache};

/// Events that may wait for one watcher: the most a Kubernetes API server lets wait (`watch_cache_history.go`).
const WATCHER_BUFFER: usize = 1_000;

/// What the objects may take unless a builder says otherwise: the most that etcd recommends for its `--quota-backend-bytes`.
const STORAGE_QUOTA: u64 = 8 * 1024 * 1024 * 1024;

/// Builds a [`Server`].
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    kinds: Kinds,
    bootstrap: Bootstrap,
    watch_cache: WatchCache,
    /// By group and resource, such as `deployments.apps`.
    watch_caches: Vec<(String, WatchCache)>,
    rng: Option<u64>,
    access: Policy,
    fault_plans: Vec<Plan>,
    settings: Settings,
}

impl Server {
    /// Returns a builder with the defaults.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl Builder {
    fn new() -> Builder {
        Builder {
            kinds: Kinds::builtin(),
            bootstrap: Bootstrap::default(),
            watch_cache: WatchCache::default(),
            watch_caches: Vec::new(),
            rng: None,
            access: Policy::default(),
            fault_plans: Vec::new(),
            settings: Settings {
                watch_list: true,
                enforce_namespaces: true,
                allow_remote: false,
                fault_endpoint: None,
                watcher_buffer: WATCHER_BUFFER,
                storage_quota: STORAGE_QUOTA,
                clock: Clock::system(),
            },
        }
    }

    /// Objects that exist from the start: they are stored as [`Server::create`] stores, at the revisions 1, 2, … in this order.
    ///
    /// A namespace that a seed names exists too, at revision 1, unless it is itself a seed or [`Builder::enforce_namespaces`] is off.
    /// A seed replaces the [system object](crate#system-objects) of the same name.
    pub fn seed(mut self, objects: impl IntoIterator<Item = Value>) -> Builder {
        self.bootstrap.seeds.extend(objects);
        self
    }

    /// Serves one more kind, as a custom resource definition would; a built-in one of that name is replaced.
    pub fn kind(mut self, kind: Kind) -> Builder {
        self.kinds.add(kind);
        self
    }

    /// How far back watches may start, for kinds without a setting of their own; [`WatchCache::Adaptive`] if never said.
    pub fn watch_cache(mut self, cache: WatchCache) -> Builder {
        self.watch_cache = cache;
        self
    }

    /// How far back watches of one resource may start: `pods`, `deployments.apps`.
    pub fn watch_cache_for(mut self, resource: &str, cache: WatchCache) -> Builder {
        self.watch_caches.push((resource.to_owned(), cache));
        self
    }

    /// Whether lists are streamed on watches (`sendInitialEvents`), as since Kubernetes 1.34; an older server refuses that with a 422.
    ///
    /// True if never said.
    pub fn watch_list(mut self, streams: bool) -> Builder {
        self.settings.watch_list = streams;
        self
    }

    /// Whether an object can be created only in a namespace that exists, and is rejected with a 404 elsewhere, as by Kubernetes.
    ///
    /// True by default; `default`, the `kube-` namespaces and those of the [seeds](Builder::seed) exist from the start.
    /// With false an object of any namespace can be created, and no namespace is created for it.
    pub fn enforce_namespaces(mut self, enforce: bool) -> Builder {
        self.settings.enforce_namespaces = enforce;
        self
    }

    /// Whether `default` has the Service, the `EndpointSlice` and the `Endpoints` `kubernetes` from the start, as in every cluster.
    ///
    /// True by default; false suits a test that counts the objects of these kinds.
    pub fn kubernetes_service(mut self, exists: bool) -> Builder {
        self.bootstrap.kubernetes_service = exists;
        self
    }

    /// How many events may wait for one watcher before it is closed as too slow; 1,000 if never said, and at least 1.
    pub fn watcher_buffer(mut self, events: usize) -> Builder {
        self.settings.watcher_buffer = events.max(1);
        self
    }

    /// How many bytes all objects together may take in memory, about; 8 GiB if never said.
    ///
    /// A write that would go over it is refused with the 500 of an etcd that is full, and nothing is stored; what makes an object no larger, and a deletion, always passes.
    /// An object counts with its JSON, its key and 400 bytes; history has a bound of its own, 1 GiB.
    pub fn storage_quota(mut self, bytes: u64) -> Builder {
        self.settings.storage_quota = bytes;
        self
    }

    /// Seeds what is random: uids, generated names, the default time-out of watches, and the chances of faults.
    ///
    /// The same seed and the same calls give the same bytes; without one every server is different.
    pub fn rng_seed(mut self, seed: u64) -> Builder {
        self.rng = Some(seed);
        self
    }

    /// The wall clock behind `creationTimestamp` and ages; the system's if never said.
    ///
    /// Waiting is done by tokio's clock, which tests can pause.
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Builder {
        self.settings.clock = Clock::new(now);
        self
    }

    /// Lets requests in that carry this bearer token, as this user, and from now on refuses with 401 those that carry none.
    ///
    /// Given again, the token is the later user's. [`Server::access`] grants and revokes while the server runs.
    ///
    /// # Panics
    ///
    /// If the token is empty, for no request can carry that.
    pub fn token(mut self, token: &str, user: User) -> Builder {
        self.access.grant(token, user);
        self
    }

    /// Allows what these rules allow, and from now on forbids with 403 what no rule does; given again, they are added.
    ///
    /// Rules are for resources: whoever is let in may read discovery, version and health, and ask what they may do.
    pub fn rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Builder {
        self.access.add_rules(rules);
        self
    }

    /// Whether [`Server::listen`] may bind to other addresses than loopback; false if never said, for without [`Builder::token`] and [`Builder::rules`] whoever reaches the port may do everything.
    pub fn allow_remote(mut self, allow: bool) -> Builder {
        self.settings.allow_remote = allow;
        self
    }

    /// Adds a fault plan, in force from the first request; its grammar is that of [`Faults`](crate::Faults#fault-plans).
    ///
    /// # Errors
    ///
    /// If it can't be read: the error says where, and what could stand there.
    pub fn faults(mut self, plan: &str) -> Result<Builder, PlanError> {
        self.fault_plans.push(Plan::parse(plan)?);
        Ok(self)
    }

    /// Whether the fault plan can be read and changed over HTTP, [at `/faults`](crate::Faults#over-http); false if never said, for whoever reaches the server may then break it.
    pub fn fault_endpoint(mut self, serve: bool) -> Builder {
        self.settings.fault_endpoint = serve.then_some(fault_injection::PATH);
        self
    }

    /// Makes the server; it needs no runtime, socket or task.
    ///
    /// # Panics
    ///
    /// If a seed can't be stored, a resource named in [`Builder::watch_cache_for`] is not served, or a fault plan restarts the server at a revision that it never had: all are mistakes of the program, and the message names them.
    pub fn build(mut self) -> Server {
        let bootstrap = mem::take(&mut self.bootstrap);
        let plans = mem::take(&mut self.fault_plans);
        let server = self.empty(0);
        bootstrap.fill(&server);
        carry_out(&server, &plans);
        server
    }

    /// Makes a server that keeps its objects in a directory: what it has answered is there after any end, also a kill.
    ///
    /// - A directory that is not there is made, on Unix with mode 0700, for secrets are stored as they are.
    /// - A new directory starts with the seeds; one that was used before starts with what it holds, and the seeds are left out.
    /// - Revisions go on and objects are as they were. History does not survive: a watch from an older revision, and a list at one, is too old (410).
    /// - A write is answered, and seen by anybody, when the disk has it; writes that arrive meanwhile go to the disk together. Direct calls such as [`Server::create`] block as long as that takes.
    /// - A write that the disk refuses is answered with a 500 and seen by nobody; reads go on, and so do writes when the disk takes them again.
    /// - Objects of custom kinds that this server is not told of stay in the directory, unseen.
    ///
    /// With [`Builder::rng_seed`], what is random follows from the seed and the revision at which the server starts.
    ///
    /// # Errors
    ///
    /// If the directory can't be written to, is in use, or holds something else than a sound store; nothing stored in it is lost then.
    ///
    /// # Panics
    ///
    /// As [`Builder::build`].
    #[cfg(feature = "persistence")]
    pub fn open(self, data_dir: impl AsRef<std::path::Path>) -> Result<Server, OpenError> {
        self.open_with(data_dir.as_ref(), Box::new(open_file))
    }

    #[cfg(feature = "persistence")]
    pub(crate) fn open_with(
        mut self,
        data_dir: &std::path::Path,
        open_database: OpenDatabase,
    ) -> Result<Server, OpenError> {
        let bootstrap = mem::take(&mut self.bootstrap);
        let plans = mem::take(&mut self.fault_plans);
        let registry = Registry::new(&self.kinds);
        let mut disk = Disk::open(data_dir, registry.collection_names(), open_database)?;
        let server = if disk.is_new() {
            let server = self.empty(0);
            bootstrap.fill(&server);
            let (writes, revision) = server.shared().everything();
            disk.found(&writes, revision)?;
            server
        } else {
            let mut kept = Kept::new(&registry);
            let revision = disk.load(|stored| kept.take(stored))?;
            let entries = kept.into_entries();
            let server = self.empty(revision);
            server.shared().recover(entries, revision);
            server
        };
        server.shared().keep_on(disk);
        server.shared().resume_deletions();
        carry_out(&server, &plans);
        Ok(server)
    }

    /// A server without objects, whose random numbers follow from the seed and this revision.
    fn empty(self, revision: u64) -> Server {
        let registry = Registry::new(&self.kinds);
        let mut policies = vec![self.watch_cache; registry.collections()];
        for (resource, policy) in self.watch_caches {
            let Some(collection) = registry.collection_named(&resource) else {
                panic!("no resource {resource:?} is served, so it can't have a watch cache");
            };
            policies[collection.0] = policy;
        }
        let caches = policies.into_iter().map(Cache::new).collect();
        // A restarted server must not hand out the uids of its first start again.
        let seed = self.rng.unwrap_or_else(|| fastrand::u64(..));
        let seed = seed.wrapping_add(revision);
        let server = Server::new(Arc::new(Shared::new(registry, self.settings, caches, seed)));
        server.shared().gate.install(self.access);
        server
    }
}

/// Puts fault plans into force.
fn carry_out(server: &Server, plans: &[Plan]) {
    for plan in plans {
        if let Err(error) = server.faults().carry_out(plan) {
            panic!("the server can't start with its faults: {error}");
        }
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("seeds", &self.bootstrap.seeds.len())
            .finish_non_exhaustive()
    }
}
