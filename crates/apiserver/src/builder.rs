//! Configures and builds a server.
//!
//! Guarantees:
//! - Settings can be made in any order before [`Builder::build`].
//! - Seeds, the initial objects of the server, get the revisions 1, 2, … in the order in which they are
//!   added.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::time::SystemTime;

use serde::Serialize;
use serde_json::Value;

use crate::access::{Authorization, Policy, Rule, User};
use crate::bootstrap::Bootstrap;
#[cfg(feature = "persistence")]
use crate::bootstrap::add_missing_roles;
use crate::clock::Clock;
use crate::fault::{Plan, PlanError};
use crate::fault_injection;
use crate::kinds::{Kind, Kinds};
use crate::pod_log::{LogSource, PodLogs};
use crate::resource::Registry;
#[cfg(feature = "persistence")]
use crate::restart::{Kept, Restored, with_definitions};
use crate::server::Server;
use crate::shared::{GarbageCollection, ManagedFields, Settings, Shared};
#[cfg(feature = "persistence")]
use crate::storage::{Disk, OpenDatabase, OpenError, open_file};
use crate::verb::garbage_collection::Collecting;
use crate::verb::namespace_content;
use crate::watch_cache::WatchCache;
use crate::yaml;

/// Default maximum number of events queued for one watch, as in Kubernetes.
const WATCHER_BUFFER: usize = 1_000;

/// Default maximum size of all objects in bytes: the largest `--quota-backend-bytes` that etcd recommends.
const STORAGE_QUOTA: u64 = 8 * 1024 * 1024 * 1024;

/// Builder of a [`Server`], with the settings and the initial objects of the server.
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    kinds: Kinds,
    bootstrap: Bootstrap,
    rng: Option<u64>,
    access: Policy,
    fault_plans: Vec<Plan>,
    settings: Settings,
}

impl Server {
    /// Returns a builder with the default settings.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl Builder {
    fn new() -> Builder {
        Builder {
            kinds: Kinds::builtin(),
            bootstrap: Bootstrap::default(),
            rng: None,
            access: Policy::default(),
            fault_plans: Vec::new(),
            settings: Settings {
                watch_list: true,
                enforce_namespaces: true,
                allow_remote: false,
                authorization: Authorization::default(),
                fault_endpoint: None,
                root_ca: None,
                watcher_buffer: WATCHER_BUFFER,
                storage_quota: STORAGE_QUOTA,
                clock: Clock::system(),
                garbage_collection: GarbageCollection::Off,
                managed_fields: ManagedFields::OfAllWrites,
                pod_logs: LogSource::default(),
                watch_cache: WatchCache::default(),
                watch_caches: BTreeMap::new(),
            },
        }
    }

    /// Adds initial objects, called seeds.
    ///
    /// The first seed has revision 1, the second has revision 2, and so on. The server stores a seed in the
    /// same way as an object that is passed to [`Server::create`]. A seed replaces the [system
    /// object](crate#system-objects) of the same kind, namespace and name.
    ///
    /// Unless [`Builder::enforce_namespaces`] is false, the server also creates the namespaces of the seeds.
    /// These namespaces have revision 1 and do not change the revisions of the seeds. A namespace that is
    /// itself a seed is not created twice.
    pub fn seed(mut self, objects: impl IntoIterator<Item = Value>) -> Builder {
        self.bootstrap.seeds.extend(objects);
        self
    }

    /// Adds `CustomResourceDefinition`s, whose kinds the server serves from the start.
    ///
    /// `definition` is one of these values:
    ///
    /// - a definition that can be serialized, such as the result of `CustomResourceExt::crd` of kube, or a JSON
    ///   object;
    /// - a text with one or more definitions in YAML or JSON.
    ///
    /// The definitions have revision 1 and do not change the revisions of the [seeds](Builder::seed), which
    /// can be objects of the new kinds. A server that [opens](Builder::open) a directory with objects ignores
    /// them, like seeds.
    ///
    /// # Panics
    ///
    /// Panics if the text can't be parsed, or if a value is no `CustomResourceDefinition` of
    /// `apiextensions.k8s.io/v1`.
    pub fn crd(mut self, definition: impl Serialize) -> Builder {
        match definitions(definition) {
            Ok(definitions) => self.bootstrap.definitions.extend(definitions),
            Err(why) => panic!("a CustomResourceDefinition can't be read: {why}"),
        }
        self
    }

    /// Makes the server serve another kind, without a `CustomResourceDefinition`.
    ///
    /// This method is for tests that have no definition. The server accepts any fields in the objects of the
    /// kind. [`Builder::crd`] adds a kind with its schema.
    /// `kind` replaces a built-in kind with the same group, version and plural name.
    pub fn kind(mut self, kind: Kind) -> Builder {
        self.kinds.add(kind);
        self
    }

    /// Sets the watch cache of every resource for which [`Builder::watch_cache_for`] is not called.
    ///
    /// The watch cache determines the oldest revision at which a watch can start. The default is
    /// [`WatchCache::Adaptive`].
    pub fn watch_cache(mut self, cache: WatchCache) -> Builder {
        self.settings.watch_cache = cache;
        self
    }

    /// Sets the watch cache of one resource, such as `pods` or `deployments.apps`.
    ///
    /// The watch cache determines the oldest revision at which a watch can start.
    pub fn watch_cache_for(mut self, resource: &str, cache: WatchCache) -> Builder {
        let caches = &mut self.settings.watch_caches;
        caches.insert(resource.to_owned(), cache);
        self
    }

    /// Sets whether the server supports streaming lists (`sendInitialEvents`), as Kubernetes does since 1.34.
    ///
    /// With false, the server responds 422 to a watch with `sendInitialEvents`. The default is true.
    pub fn watch_list(mut self, streams: bool) -> Builder {
        self.settings.watch_list = streams;
        self
    }

    /// Sets whether the namespace of an object must exist before the object is created, as in Kubernetes.
    ///
    /// With true, the server responds 404 if the namespace does not exist. The namespace `default`, the
    /// `kube-` namespaces and the namespaces of [seeds](Builder::seed) exist from the start. With false,
    /// objects can be created in any namespace. The default is true.
    pub fn enforce_namespaces(mut self, enforce: bool) -> Builder {
        self.settings.enforce_namespaces = enforce;
        self
    }

    /// Sets whether each namespace has the `ServiceAccount` `default` and the `ConfigMap` `kube-root-ca.crt`.
    ///
    /// With true, the server creates both objects in each new namespace, and again if they are deleted, as the
    /// controllers of kube-controller-manager do. Each creation has a revision and an event. In the namespaces that
    /// exist from the start, both objects have revision 1. The certificate in the `ConfigMap` is that of an authority
    /// that has issued no certificate. The default is false, as without these controllers.
    pub fn default_service_accounts(mut self, exist: bool) -> Builder {
        self.settings.root_ca = exist.then_some(namespace_content::CERTIFICATE);
        self
    }

    /// Sets whether the server deletes the dependents of deleted objects, as the garbage collector of Kubernetes does.
    ///
    /// With true, deletions end as on a cluster, for each propagation policy and at any depth: see [Garbage
    /// collection](crate#garbage-collection). Objects whose owners do not exist are deleted, [seeds](Builder::seed)
    /// too. The default is false, as without kube-controller-manager.
    pub fn garbage_collection(mut self, collects: bool) -> Builder {
        self.settings.garbage_collection = if collects {
            GarbageCollection::On
        } else {
            GarbageCollection::Off
        };
        self
    }

    /// Sets whether objects that clients create, update or patch have `metadata.managedFields`.
    ///
    /// The field names the owner of each field, by which a server-side apply finds conflicts. False is for tests that
    /// count bytes, or compare whole objects: only applies record owners then. The default is true.
    ///
    /// Methods of [`Server`](crate::Server) never record owners. They store those of the object they are called with, or
    /// else keep the stored ones; an empty list removes them.
    pub fn managed_fields(mut self, exist: bool) -> Builder {
        self.settings.managed_fields = if exist {
            ManagedFields::OfAllWrites
        } else {
            ManagedFields::OfApplies
        };
        self
    }

    /// Sets the source of the logs that `kubectl logs` shows.
    ///
    /// Without a source, a request for the log of a pod with a node receives a 501 error.
    pub fn pod_logs(mut self, logs: impl PodLogs) -> Builder {
        self.settings.pod_logs = LogSource(Some(Arc::new(logs)));
        self
    }

    /// Sets whether the Service `kubernetes` exists in `default`, with its `EndpointSlice` and `Endpoints`.
    ///
    /// The default is true.
    pub fn kubernetes_service(mut self, exists: bool) -> Builder {
        self.bootstrap.kubernetes_service = exists;
        self
    }

    /// Sets the maximum number of events queued for one watch. The default is 1,000, and the minimum is 1.
    ///
    /// If the client of a watch reads too slowly and the queue exceeds the maximum, the server closes the
    /// watch.
    pub fn watcher_buffer(mut self, events: usize) -> Builder {
        self.settings.watcher_buffer = events.max(1);
        self
    }

    /// Sets the approximate maximum memory of all objects in bytes. The default is 8 GiB.
    ///
    /// A write that would exceed the maximum receives the 500 error of a full etcd, and nothing is stored.
    /// The maximum does not apply to deletions, or to writes that do not enlarge an object.
    ///
    /// An object counts with the size of its JSON and its key, plus 400 bytes. The event history does not
    /// count. It has a separate limit of 1 GiB.
    pub fn storage_quota(mut self, bytes: u64) -> Builder {
        self.settings.storage_quota = bytes;
        self
    }

    /// Sets the seed of uids, generated names, default watch timeouts and other random values.
    ///
    /// The random decisions of fault plans also use this seed. By default, the seed is random.
    ///
    /// Servers with the same seed and settings respond to the same calls with the same bytes, if their
    /// [clocks](Builder::clock) return the same times.
    pub fn rng_seed(mut self, seed: u64) -> Builder {
        self.rng = Some(seed);
        self
    }

    /// Sets the wall clock for `creationTimestamp` and the ages of objects. The default is the system clock.
    ///
    /// The server's timers use the clock of tokio instead, which tests can pause.
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Builder {
        self.settings.clock = Clock::new(now);
        self
    }

    /// Makes the server accept requests with the bearer token `token` as requests of `user`.
    ///
    /// A server with tokens responds 401 to a request with neither a known token nor a client certificate. If
    /// the token was added before, `user` replaces the earlier user. [`Server::access`] grants and revokes
    /// tokens while the server runs.
    ///
    /// # Panics
    ///
    /// Panics if the token is empty, because no request can contain an empty token.
    pub fn token(mut self, token: &str, user: User) -> Builder {
        self.access.grant(token, user);
        self
    }

    /// Adds access rules. If this method is not called, every user may send every request.
    ///
    /// If it is called, a request for a resource receives 403 unless a rule allows the request. No rule is
    /// needed to read discovery, version and health, or to create a review of the user's own access or
    /// identity, such as a `SelfSubjectAccessReview`, except with RBAC. Members of the group `system:masters` need no rules.
    pub fn rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Builder {
        self.access.add_rules(rules);
        self
    }

    /// Sets how the server decides whether a user may send a request. The default is
    /// [`Authorization::AlwaysAllow`].
    ///
    /// With [`Authorization::Rbac`], the server has the default roles and bindings of Kubernetes, and a request is
    /// allowed if a binding of its user, or an [access rule](Builder::rules), allows it. A request without credentials
    /// is one of the user `system:anonymous`, who can read health and version. A write of a role or a binding can't
    /// give rights that the writer does not have. See [Identity](crate#identity).
    ///
    /// Direct calls, such as [`Server::create`], are always allowed.
    pub fn authorization(mut self, authorization: Authorization) -> Builder {
        self.settings.authorization = authorization;
        self
    }

    /// Sets whether [`Server::listen`] may bind to addresses other than loopback. The default is false.
    ///
    /// With true, every client that reaches the port may send every request, unless [`Builder::token`] or
    /// [`Builder::rules`] is called, or [`Builder::authorization`] with RBAC.
    pub fn allow_remote(mut self, allow: bool) -> Builder {
        self.settings.allow_remote = allow;
        self
    }

    /// Adds a fault plan that is active from the first request.
    ///
    /// [`Faults`](crate::Faults#fault-plans) describes the grammar.
    ///
    /// # Errors
    ///
    /// Returns an error with the position of the mistake in `plan` and the expected input.
    pub fn faults(mut self, plan: &str) -> Result<Builder, PlanError> {
        self.fault_plans.push(Plan::parse(plan)?);
        Ok(self)
    }

    /// Sets whether clients can read and change the fault plan over HTTP [at
    /// `/faults`](crate::Faults#over-http).
    ///
    /// The default is false. With true, every client that the server authenticates can add faults, because
    /// access rules do not apply to this path. If the server has no tokens, every client can add faults.
    pub fn fault_endpoint(mut self, serve: bool) -> Builder {
        self.settings.fault_endpoint = serve.then_some(fault_injection::PATH);
        self
    }

    /// Builds the server. The call needs no Tokio runtime, opens no socket and spawns no task.
    ///
    /// # Panics
    ///
    /// Panics in each of these cases, with a message that describes the mistake:
    ///
    /// - The server rejects a definition of [`Builder::crd`], or a seed.
    /// - A resource in [`Builder::watch_cache_for`] is not served.
    /// - The server can't restore the revision in a `restart at` or `restart back` statement of a fault plan.
    pub fn build(mut self) -> Server {
        let bootstrap = mem::take(&mut self.bootstrap);
        let plans = mem::take(&mut self.fault_plans);
        let registry = Registry::new(&self.kinds);
        let server = self.empty(registry, 0);
        bootstrap.fill(&server);
        Collecting::complete(server.shared());
        carry_out(&server, &plans);
        server
    }

    /// Builds a server that stores its objects in the directory `data_dir`.
    ///
    /// Acknowledged writes survive any exit of the process, including a kill.
    ///
    /// - A missing directory is created. On Unix, its mode is 0700, because secrets are stored unencrypted.
    /// - If no server has stored objects in the directory before, the server starts with the [system
    ///   objects](crate#system-objects) and the objects of [`Builder::seed`]. Otherwise it starts with the
    ///   stored objects only.
    /// - After a restart, objects are unchanged and revisions continue. The event history is lost, so a watch
    ///   or list at a revision older than that of the restart receives 410.
    /// - A write is acknowledged and visible only after it is on the disk. Direct calls such as
    ///   [`Server::create`] block until then.
    /// - A write that the disk rejects receives a 500 error and is not visible. Reads continue, and writes
    ///   succeed again when the disk recovers.
    /// - Stored objects of custom kinds that this server does not serve stay in the directory. They are loaded
    ///   too, and count towards [`Builder::storage_quota`].
    ///
    /// Random values depend on [`Builder::rng_seed`] and on the revision at which the server starts.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory is not writable or is in use, or if its database file is damaged or
    /// has an unsupported format. No stored data is deleted.
    ///
    /// # Panics
    ///
    /// Panics in the cases that [`Builder::build`] lists.
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
        let mut disk = Disk::open(data_dir, open_database)?;
        let server = if disk.is_new() {
            let server = self.empty(registry, 0);
            bootstrap.fill(&server);
            let (writes, revision) = server.shared().everything();
            disk.found(&writes, revision, &server.shared().registry())?;
            server
        } else {
            let registry = with_definitions(&mut disk, registry)?;
            let mut kept = Kept::new(&registry);
            let revision = disk.load(|stored| kept.take(stored))?;
            let Restored { entries, moved } = kept.finish();
            let server = self.empty(registry, revision);
            server.shared().recover(entries, revision);
            if !moved.is_empty() {
                disk.write_opened(&moved, revision, &server.shared().registry())?;
            }
            server
        };
        server.shared().keep_on(disk);
        server.shared().resume_work();
        add_missing_roles(&server);
        carry_out(&server, &plans);
        Ok(server)
    }

    /// Creates a server without objects.
    ///
    /// `revision` is part of the random seed, so that a restarted server does not assign the same uids again.
    fn empty(self, registry: Registry, revision: u64) -> Server {
        // A restarted server must not assign the uids of its first start again.
        let seed = self.rng.unwrap_or_else(|| fastrand::u64(..));
        let seed = seed.wrapping_add(revision);
        let (registry, settings) = (Arc::new(registry), Arc::new(self.settings));
        let server = Server::new(Arc::new(Shared::new(registry, settings, seed)));
        server.shared().gate.install(self.access);
        server
    }
}

/// Returns the definitions that [`Builder::crd`] accepts.
fn definitions(definition: impl Serialize) -> Result<Vec<Value>, String> {
    let value = serde_json::to_value(definition).map_err(|error| error.to_string())?;
    let definitions = match value {
        Value::String(text) => yaml::documents(&text)?,
        value => vec![value],
    };
    for definition in &definitions {
        let (version, kind) = (&definition["apiVersion"], &definition["kind"]);
        if *version != "apiextensions.k8s.io/v1" || *kind != "CustomResourceDefinition" {
            return Err(format!(
                "its apiVersion is {version}, and its kind is {kind}"
            ));
        }
    }
    Ok(definitions)
}

/// Checks the settings that name resources, and activates the fault plans on `server`.
///
/// # Panics
///
/// Panics if a named resource is not served, or if an action of a plan fails.
fn carry_out(server: &Server, plans: &[Plan]) {
    let shared = server.shared();
    for resource in shared.settings.watch_caches.keys() {
        let registry = shared.registry();
        assert!(
            registry.collection_named(resource).is_some(),
            "no resource {resource:?} is served, so it can't have a watch cache"
        );
    }
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
