//! Maintains derived indices, which find objects of one kind by values computed from objects of another kind.
//!
//! For example, a derived index finds pods by the zone of their node. The program defines the index with two
//! functions. One function returns the names of the objects on which an indexed object depends. The other
//! function computes the values of the indexed object from the object and its dependencies. To evaluate an
//! object means to call these functions for it.
//!
//! The index is separate from the stores of the two informers. Two handlers maintain the index, one
//! registered with each informer. Reads of the index do not wait for the handlers.
//!
//! # Guarantees
//!
//! - The index converges to the state of the two caches, in whatever order the two caches change. The index
//!   lacks only the changes whose events its two handlers have not handled yet.
//! - After an event of an indexed object, the index evaluates only that object. After an event of an object
//!   of the other kind, the index evaluates only the indexed objects that depend on that object. An
//!   evaluation reads the current state of both caches, not the state in the event.
//! - If a function of the index fails or panics for an object, the index omits the object, and
//!   [`DerivedIndex::errors`] returns the error. The next event of the object or of one of its dependencies
//!   starts a new attempt. Other objects are not affected.
//! - For an object that can't be decoded, the index uses the last state that was decoded and delivered to
//!   handlers. If there is no such state, the index treats the object as if the cache did not contain it.
//! - The functions of the index are called only by its two handlers, and never while the index holds a lock.
//!
//! # Cost
//!
//! The index stores each pair of an object and a value twice, and each pair of an object and a dependency
//! twice. The index neither copies nor retains objects.
//!
//! An object is evaluated once per event of the object itself, and once per event of each of its
//! dependencies. The initial `Added` events also cause evaluations.
//!
//! # Example
//!
//! ```
//! # use std::time::Duration;
//! use k8s_openapi::api::core::v1::{Node, Pod};
//! use kube_core::ResourceExt;
//! use kube_informer::{ObjectName, SharedInformer, client::ListWatch};
//! # use kube_informer_apiserver::Server;
//! # use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let node = |name: &str, zone: &str| json!({"apiVersion": "v1", "kind": "Node",
//! #     "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}}});
//! # let pod = |name: &str, node: &str| json!({"apiVersion": "v1", "kind": "Pod",
//! #     "metadata": {"name": name, "namespace": "default"},
//! #     "spec": {"nodeName": node, "containers": [{"name": "main", "image": "pause"}]}});
//! # let server = Server::builder()
//! #     .seed([node("n1", "east"), node("n2", "west"), pod("db", "n2"), pod("web", "n1")])
//! #     .build();
//! # let client = server.client();
//! let source = ListWatch::<Node>::new(client.clone());
//! let (nodes, node_controller) = SharedInformer::<Node>::builder(source).build();
//! let source = ListWatch::<Pod>::new(client);
//! let (pods, pod_controller) = SharedInformer::<Pod>::builder(source).build();
//!
//! let by_zone = pods.derived_index(
//!     "zone",
//!     &nodes,
//!     |pod: &Pod| pod.spec.as_ref()?.node_name.as_deref().map(ObjectName::cluster),
//!     |_, nodes| {
//!         let zones = nodes.iter().map(|node| node.labels().get("topology.kubernetes.io/zone").cloned());
//!         zones.flatten().collect::<Vec<_>>()
//!     },
//! )?;
//! # let running = tokio::spawn(node_controller.run(std::future::pending()));
//! # let running_too = tokio::spawn(pod_controller.run(std::future::pending()));
//! by_zone.wait_for_sync().await?;
//! assert_eq!(by_zone.names("east"), [ObjectName::namespaced("default", "web")]);
//! # server.update(node("n2", "east"))?;
//! # nodes.wait_for_revision(server.revision(), Duration::from_secs(3600)).await?;
//! # by_zone.settled().await;
//! // After an update moves the node `n2` to the zone `east`, both pods are in that zone:
//! assert_eq!(by_zone.objects("east").len(), 2);
//! # Ok(()) }
//! ```

mod maintenance;

use std::{fmt, sync::Arc};

use derive_where::derive_where;
use futures_core::future::BoxFuture;
use futures_util::future;
use kube_core::Resource;

use self::maintenance::{Board, DependsOn, Maintenance, Objects, Others, ValuesOf};
use crate::{
    indexer::{IndexError, Indexer},
    object::{Object, ObjectName},
    shared_informer::{Registration, SharedInformer, Stopped},
    status::{SyncError, WaitForSync},
};

/// An index of objects of one kind by values computed from objects of another kind; clones share the index.
///
/// Two handlers maintain the index, one registered with the informer of each kind. Dropping the last clone of
/// the index removes both handlers.
///
/// When one of the informers stops, the index stays readable but receives no more events of that informer.
/// Events that the informer had not delivered when it stopped are missing from the index.
#[derive_where(Clone)]
pub struct DerivedIndex<K> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    name: Arc<str>,
    objects: Indexer<K>,
    board: Arc<Board>,
    handlers: Handlers,
}

impl<K> fmt::Debug for DerivedIndex<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DerivedIndex")
            .field("name", &self.inner.name)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl<K> SharedInformer<K>
where
    K: Resource + Send + Sync + 'static,
{
    /// Adds an index of this informer's objects by values computed from objects of the informer `others`.
    ///
    /// `depends_on` returns the names of the objects of `others` on which an object of this informer depends.
    /// It can return any number of names, including names of objects that do not exist. `values` returns the
    /// values under which the object is indexed. The second argument of `values` contains the dependencies
    /// that exist, in the order of the names from `depends_on`.
    ///
    /// Both functions may be called at any time and by two tasks at once. Their results should depend only on
    /// their arguments, because the index calls them again only after an event of the object or of a
    /// dependency.
    ///
    /// An index can be added at any time, also before the [`Controller`](crate::Controller) runs.
    /// [`DerivedIndex::wait_for_sync`] waits until the index covers the initial objects of both informers.
    /// `others` may be this informer.
    ///
    /// # Errors
    /// Returns [`Stopped`] if one of the two informers has stopped.
    pub fn derived_index<O, D, V>(
        &self,
        name: &str,
        others: &SharedInformer<O>,
        depends_on: impl Fn(&K) -> D + Send + Sync + 'static,
        values: impl Fn(&K, &[Arc<O>]) -> V + Send + Sync + 'static,
    ) -> Result<DerivedIndex<K>, Stopped>
    where
        O: Resource + Send + Sync + 'static,
        D: IntoIterator<Item = ObjectName>,
        V: IntoIterator,
        V::Item: Into<Arc<str>>,
    {
        self.try_derived_index(
            name,
            others,
            move |object| Ok::<_, &str>(depends_on(object)),
            move |object, found| Ok(values(object, found)),
        )
    }

    /// Adds an index like [`derived_index`](SharedInformer::derived_index), with functions that can return an
    /// error.
    ///
    /// If `depends_on` or `values` fails for an object, the index omits the object, and
    /// [`DerivedIndex::errors`] returns the reason.
    ///
    /// # Errors
    /// Returns [`Stopped`] if one of the two informers has stopped.
    pub fn try_derived_index<O, D, V, E>(
        &self,
        name: &str,
        others: &SharedInformer<O>,
        depends_on: impl Fn(&K) -> Result<D, E> + Send + Sync + 'static,
        values: impl Fn(&K, &[Arc<O>]) -> Result<V, E> + Send + Sync + 'static,
    ) -> Result<DerivedIndex<K>, Stopped>
    where
        O: Resource + Send + Sync + 'static,
        D: IntoIterator<Item = ObjectName>,
        V: IntoIterator,
        V::Item: Into<Arc<str>>,
        E: ToString,
    {
        let depends_on: DependsOn<K> = Box::new(move |object| {
            let names = depends_on(object).map_err(|error| error.to_string())?;
            Ok(names.into_iter().collect())
        });
        let values: ValuesOf<K, O> = Box::new(move |object, found| {
            let values = values(object, found).map_err(|error| error.to_string())?;
            Ok(values.into_iter().map(Into::into).collect())
        });
        DerivedIndex::begin(Arc::from(name), self, others, (depends_on, values))
    }
}

impl<K> DerivedIndex<K>
where
    K: Resource + Send + Sync + 'static,
{
    fn begin<O>(
        name: Arc<str>,
        objects: &SharedInformer<K>,
        others: &SharedInformer<O>,
        (depends_on, values): (DependsOn<K>, ValuesOf<K, O>),
    ) -> Result<Self, Stopped>
    where
        O: Resource + Send + Sync + 'static,
    {
        let board = Arc::default();
        let maintenance = Arc::new(Maintenance {
            name: Arc::clone(&name),
            objects: objects.indexer(),
            others: others.indexer(),
            depends_on,
            values,
            board: Arc::downgrade(&board),
        });
        let called = format!("derived index {name}");
        let mut handlers = Handlers(Vec::with_capacity(2));
        // Neither handler merges waiting events. An object is evaluated from the caches, not from the event.
        // So the index may contain an object whose `Added` and `Deleted` events are both waiting. If these
        // events were merged, they would cancel out, and no event would remove the object.
        let by = others.handler(Others(Arc::clone(&maintenance)));
        let by = by.name(called.as_str()).resync(std::time::Duration::ZERO);
        handlers.0.push(Box::new(by.register()?));
        let of = objects.handler(Objects(maintenance));
        let of = of.name(called).resync(std::time::Duration::ZERO);
        handlers.0.push(Box::new(of.register()?));
        Ok(Self {
            inner: Arc::new(Inner {
                name,
                objects: objects.indexer(),
                board,
                handlers,
            }),
        })
    }
}

impl<K> DerivedIndex<K> {
    /// Returns the name that the index received when it was added to the informer.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the names of the objects that are indexed under `value`, sorted by name.
    #[doc(alias = "IndexKeys")]
    pub fn names(&self, value: &str) -> Vec<ObjectName> {
        self.inner.board.values().names(value).cloned().collect()
    }

    /// Returns the objects that are indexed under `value`, in their current state, sorted by name.
    ///
    /// The result omits objects that have been deleted from the cache and objects that can't be decoded. The
    /// cache may be newer than the index, so the current state of a returned object may no longer belong to
    /// `value`.
    #[doc(alias = "ByIndex")]
    pub fn objects(&self, value: &str) -> Vec<Object<K>> {
        let postings = self.inner.board.values();
        let snapshot = self.inner.objects.snapshot();
        let found = postings.names(value).filter_map(|name| snapshot.get(name));
        let readable = found.filter(|object| object.broken().is_none());
        readable.cloned().collect()
    }

    /// Returns the values under which one object is indexed, sorted and without duplicates.
    pub fn values_of(&self, object: &ObjectName) -> Vec<Arc<str>> {
        self.inner.board.values().values(object).to_vec()
    }

    /// Returns every value under which at least one object is indexed, sorted and without duplicates.
    #[doc(alias = "ListIndexFuncValues")]
    pub fn values(&self) -> Vec<Arc<str>> {
        self.inner.board.values().all_values()
    }

    /// Returns the number of indexed objects, which are the objects with at least one value.
    pub fn len(&self) -> usize {
        self.inner.board.values().len()
    }

    /// Returns whether no object is indexed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns one error for each object that the index omits because an index function failed.
    ///
    /// The errors are sorted by object name.
    pub fn errors(&self) -> Vec<IndexError> {
        self.inner.board.errors()
    }

    /// Returns whether both handlers of the index have handled the initial objects of their informers.
    ///
    /// After the first `true`, the result stays `true`.
    #[doc(alias = "HasSynced")]
    pub fn has_synced(&self) -> bool {
        let Handlers(handlers) = &self.inner.handlers;
        handlers.iter().all(|handler| handler.has_synced())
    }

    /// Waits until both handlers of the index have handled the initial objects of their informers.
    ///
    /// The future does not borrow the index.
    ///
    /// # Errors
    /// Returns [`SyncError`] if an informer stops before the sync, or if the last clone of the index is
    /// dropped.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect on the index.
    #[doc(alias = "WaitForCacheSync")]
    pub fn wait_for_sync(&self) -> impl Future<Output = Result<(), SyncError>> + Send + use<K> {
        let Handlers(handlers) = &self.inner.handlers;
        let waits = handlers.iter().map(|handler| handler.wait_for_sync());
        let synced = future::try_join_all(waits.map(WaitForSync::into_future));
        async move {
            synced.await?;
            Ok(())
        }
    }

    /// Waits until the index reflects all changes that the two caches contained at the time of the call.
    ///
    /// If an informer has stopped, its handler may end before it has handled all events. The call then
    /// returns when that handler has ended.
    ///
    /// # Cancel safety
    /// Dropping the future only ends the wait. The index is not affected.
    pub async fn settled(&self) {
        let Handlers(handlers) = &self.inner.handlers;
        for handler in handlers {
            handler.idle().await;
        }
    }
}

/// The handlers of a derived index, which are removed when this value is dropped.
struct Handlers(Vec<Box<dyn Handler>>);

impl Drop for Handlers {
    fn drop(&mut self) {
        for handler in &self.0 {
            handler.close();
        }
    }
}

/// A [`Registration`] without its type parameter, so that one `Vec` holds both registrations of an index.
trait Handler: Send + Sync {
    fn has_synced(&self) -> bool;
    fn wait_for_sync(&self) -> WaitForSync;
    fn idle(&self) -> BoxFuture<'_, ()>;
    fn close(&self);
}

impl<K: Send + Sync + 'static> Handler for Registration<K> {
    fn has_synced(&self) -> bool {
        self.has_synced()
    }

    fn wait_for_sync(&self) -> WaitForSync {
        self.wait_for_sync()
    }

    fn idle(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.idle())
    }

    fn close(&self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
