//! Copies of a server's state, to look at and to start other servers from.
//!
//! Guarantees:
//! - a copy contains exactly the objects of one revision;
//! - a copy of the current state, and a server that starts from it, take the same time and memory for any number of
//!   objects: they share the objects until one of the servers changes them;
//! - a change of one server never affects a copy or another server.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::access::Gate;
use crate::definition::Definition;
use crate::resource::{Registry, Resource};
use crate::server::Server;
use crate::shared::{Settings, Shared};
use crate::status::ApiError;
use crate::storage::{Compacted, Whole};
use crate::verb::definition::Definitions;
use crate::verb::garbage_collection::Collecting;
use crate::verb::namespace;
use crate::yaml::{self, TooLong};

/// The objects of a server at one revision, and the settings of the server. Never changes.
///
/// [`ServerSnapshot::fork`] starts a server from it. A test can prepare a state once, and run each of its cases on a
/// server of its own:
///
/// ```
/// use kube_informer_apiserver::Server;
/// use serde_json::json;
///
/// let prepared = Server::builder().build();
/// let config = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
/// prepared.create(config("a"))?;
/// let snapshot = prepared.snapshot();
/// for case in ["b", "c"] {
///     let server = snapshot.fork();
///     server.create(config(case))?;
///     assert_eq!(server.list("v1", "configmaps").len(), 2);
/// }
/// assert_eq!(prepared.list("v1", "configmaps").len(), 1);
/// # Ok::<(), kube_informer_apiserver::ApiError>(())
/// ```
#[derive(Clone)]
pub struct ServerSnapshot {
    registry: Arc<Registry>,
    whole: Whole,
    settings: Arc<Settings>,
    gate: Arc<Gate>,
    seed: u64,
}

impl Server {
    /// Returns a copy of the current state.
    ///
    /// The time and memory do not depend on the number of objects. With a data directory, the copy contains the writes
    /// that are durable.
    pub fn snapshot(&self) -> ServerSnapshot {
        let shared = self.shared();
        let state = shared.lock();
        ServerSnapshot {
            registry: shared.registry(),
            whole: state.storage.whole(),
            settings: Arc::clone(&shared.settings),
            gate: Arc::new(shared.gate.copy()),
            seed: state.rng.get_seed(),
        }
    }

    /// Returns the state at an older revision. The tokens, the access rules and the random values are the current ones.
    ///
    /// The time is proportional to the number of objects, and to the number of events after `revision`.
    ///
    /// # Errors
    ///
    /// Returns a 504 error if the server has not reached the revision, and a 410 error if the event history does not
    /// go back to it. The history has at most the events of the last five minutes, 102,400 events per resource, and
    /// 1 GiB.
    pub fn snapshot_at(&self, revision: u64) -> Result<ServerSnapshot, ApiError> {
        let mut snapshot = self.snapshot();
        let current = snapshot.revision();
        if revision > current {
            return Err(ApiError::revision_too_large(revision, current));
        }
        let rewinds = self.shared().lock().storage.rewind_all(revision);
        let rewinds = rewinds.map_err(|Compacted| ApiError::list_too_old())?;
        snapshot.whole = Whole::reconstruct(rewinds, revision);
        snapshot.follow_definitions();
        Ok(snapshot)
    }

    /// Starts another server from the current state, as [`ServerSnapshot::fork`] does.
    #[must_use]
    pub fn fork(&self) -> Server {
        self.snapshot().fork()
    }
}

impl ServerSnapshot {
    /// Returns the revision of the last write before the copy.
    pub fn revision(&self) -> u64 {
        self.whole.revision()
    }

    /// Returns an object, or `None` if it did not exist.
    ///
    /// `name` is `namespace/name`, or `name` for a cluster-scoped object.
    ///
    /// # Panics
    ///
    /// Panics if the server did not serve the resource.
    pub fn get(&self, api_version: &str, plural: &str, name: &str) -> Option<Value> {
        let resource = self.expect_resource(api_version, plural);
        let objects = self.whole.collection(resource.collection);
        let mut found = objects.range(name, "");
        let entry = found.next().filter(|entry| *entry.key == *name)?;
        Some(Value::Object(entry.object(resource)))
    }

    /// Returns all objects of a resource, ordered by `namespace/name`.
    ///
    /// # Panics
    ///
    /// Panics if the server did not serve the resource.
    pub fn list(&self, api_version: &str, plural: &str) -> Vec<Value> {
        let resource = self.expect_resource(api_version, plural);
        let objects = self.whole.collection(resource.collection);
        let objects = objects.range("", "");
        objects
            .map(|entry| Value::Object(entry.object(resource)))
            .collect()
    }

    /// Returns all objects as YAML documents, each in the version in which it is stored.
    ///
    /// The text is for people. An object whose text would be longer than the server writes is a comment.
    pub fn yaml(&self) -> String {
        let mut text = String::new();
        for name in self.registry.collection_names() {
            let Some(resource) = self.registry.last_resource(name) else {
                continue;
            };
            for entry in self.whole.collection(resource.collection).range("", "") {
                let object = Value::Object(entry.object(resource));
                text.push_str("---\n");
                let document = yaml::to_text(&object).unwrap_or_else(|TooLong| {
                    let key = &entry.key;
                    format!("# {name} {key}: too long for YAML\n")
                });
                text.push_str(&document);
            }
        }
        text
    }

    /// Starts a server from this state.
    ///
    /// The server has the objects, the custom kinds, the settings, the tokens and the access rules of the first one.
    /// It has no event history, so a watch can start at [`ServerSnapshot::revision`] and later. It has no faults, an
    /// empty request log, and no port. It keeps its objects in memory, also if the first server has a data directory.
    /// Its random values, such as uids, continue those of the first server, and are the same in each fork.
    ///
    /// The call takes the same time for any number of objects. With [garbage
    /// collection](crate::Builder::garbage_collection), it reads the owners of all objects.
    #[must_use]
    pub fn fork(&self) -> Server {
        let (registry, settings) = (Arc::clone(&self.registry), Arc::clone(&self.settings));
        let shared = Shared::new(registry, settings, self.seed);
        let shared = Arc::new(shared.with_gate(self.gate.copy()));
        shared.start_from(&self.whole);
        // The deletions that were under way continue.
        namespace::resume(&shared);
        Definitions::resume(&shared).complete();
        Collecting::complete(&shared);
        Server::new(shared)
    }

    /// Changes the custom kinds to those of the definitions in this state.
    fn follow_definitions(&mut self) {
        let Some(definitions) = self.registry.builtin().definitions else {
            return;
        };
        let gone = self
            .registry
            .defined()
            .map(|name| (name.clone(), Vec::new()));
        let stored = self.whole.collection(definitions.collection);
        let stored = stored.range("", "");
        let stored = stored.map(|entry| (entry.name().to_owned(), Definition::kinds_of(entry)));
        let changes: Vec<_> = gone.chain(stored).collect();
        if let Some(registry) = self.registry.redefined(changes) {
            self.registry = Arc::new(registry);
        }
    }

    fn expect_resource(&self, api_version: &str, plural: &str) -> &Arc<Resource> {
        let Some(resource) = self.registry.by_plural(api_version, plural) else {
            panic!("no resource {plural:?} of {api_version:?} was served");
        };
        resource
    }
}

impl fmt::Debug for ServerSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSnapshot")
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}
