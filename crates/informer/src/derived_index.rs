//! An index of objects by values from objects of another kind, such as pods by the zone of their node.
//!
//! The index is separate from the two stores. It is maintained by two handlers, one at each informer. Reads
//! do not wait for the handlers. Infrequent queries need no index: [`indexer`](crate::indexer) shows how to
//! query two caches.
//!
//! # Guarantees
//!
//! - The index converges to the state of the two caches. Each cache may be ahead of the index by the events
//!   that the cache's handler has not received yet. The result does not depend on the order of changes in the
//!   two caches.
//! - A change of an object re-evaluates that object only. An addition, change or deletion of another object
//!   re-evaluates the objects that depend on it, and no others. An evaluation reads the caches of that time.
//! - If a function fails or panics for an object, the index omits that object until it or a dependency
//!   changes; [`DerivedIndex::errors`] returns the reason. Other objects are not affected.
//! - For an object that can't be decoded, the index uses its last good state, which is the state that
//!   handlers received. Without a good state, the object counts as absent.
//! - Functions are called neither under a lock nor by readers.
//!
//! # Cost
//!
//! The index needs two handlers, and two entries per object and value or dependency: one ordered by value, one
//! ordered by object. The entries share the names of objects. Each value and each name of a dependency is stored
//! once for all objects. Objects are neither copied nor retained.
//!
//! An object is evaluated once per event of its handler. At the start it is evaluated again for each dependency
//! that the other handler receives later.
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
//! // The node of the other pod is given another label:
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

/// An index of objects by values from objects of another kind; clones share the same index.
///
/// Dropping the last clone removes both handlers. An evaluation in progress completes, and no other
/// evaluation starts. When an informer stops, the index stays readable but receives no more events of that
/// informer. Events that its handler had not received are missing.
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
    /// Adds an index of this informer's objects by values from objects of another informer.
    ///
    /// `depends_on` returns the names of the other objects that an object depends on: none, one or many, whether
    /// or not they exist. `values` returns the object's values. It receives the dependencies that were found, in
    /// the same order. Both functions may be called at any time and by two tasks. They should depend on their
    /// arguments only, because nothing else triggers a new call.
    ///
    /// An index can be added at any time, also before the [`Controller`](crate::Controller) runs.
    /// [`DerivedIndex::wait_for_sync`] waits until it covers the initial objects. The other informer may be this
    /// one.
    ///
    /// # Errors
    /// One of the two informers has stopped.
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

    /// Adds an index like [`derived_index`](SharedInformer::derived_index), with functions that may fail.
    ///
    /// The index omits an object for which a function fails, and [`DerivedIndex::errors`] returns the reason.
    ///
    /// # Errors
    /// As for [`SharedInformer::derived_index`].
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
        // Neither handler merges waiting events. An object is evaluated from the caches, not from the event,
        // so the index may contain an object whose addition and deletion are both waiting. Merged, the two would
        // cancel out, and no event would remove the object.
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
    /// Returns the index's name, which the names of its handlers and its errors contain.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the names of the objects that have a value, in order.
    #[doc(alias = "IndexKeys")]
    pub fn names(&self, value: &str) -> Vec<ObjectName> {
        self.inner.board.values().names(value).cloned().collect()
    }

    /// Returns the objects that have a value, in order, in their current state in the cache.
    ///
    /// Objects that have been deleted from the cache or can't be decoded are left out. An object that has changed
    /// since its evaluation may no longer have the value.
    #[doc(alias = "ByIndex")]
    pub fn objects(&self, value: &str) -> Vec<Object<K>> {
        let postings = self.inner.board.values();
        let snapshot = self.inner.objects.snapshot();
        let found = postings.names(value).filter_map(|name| snapshot.get(name));
        let readable = found.filter(|object| object.broken().is_none());
        readable.cloned().collect()
    }

    /// Returns the values of an object, sorted and without duplicates.
    pub fn values_of(&self, object: &ObjectName) -> Vec<Arc<str>> {
        self.inner.board.values().values(object).to_vec()
    }

    /// Returns the values of all objects, sorted and without duplicates.
    #[doc(alias = "ListIndexFuncValues")]
    pub fn values(&self) -> Vec<Arc<str>> {
        self.inner.board.values().all_values()
    }

    /// Returns the number of objects with at least one value.
    pub fn len(&self) -> usize {
        self.inner.board.values().len()
    }

    /// Returns whether no object has a value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the errors of the objects that the index omits because a function failed, in order of the
    /// objects.
    pub fn errors(&self) -> Vec<IndexError> {
        self.inner.board.errors()
    }

    /// Returns whether both handlers have handled their initial objects. Once true, the result stays true.
    #[doc(alias = "HasSynced")]
    pub fn has_synced(&self) -> bool {
        let Handlers(handlers) = &self.inner.handlers;
        handlers.iter().all(|handler| handler.has_synced())
    }

    /// Waits until [`DerivedIndex::has_synced`] is true. The future does not borrow the index.
    ///
    /// # Errors
    /// [`SyncError`]: an informer stopped first, or the index was dropped.
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

    /// Waits until the index reflects the state of both caches at the time of the call, or a newer one.
    ///
    /// If an informer has stopped, waits until its handler has ended.
    ///
    /// # Cancel safety
    /// Dropping the future only stops waiting.
    pub async fn settled(&self) {
        let Handlers(handlers) = &self.inner.handlers;
        for handler in handlers {
            handler.idle().await;
        }
    }
}

/// The registrations of both handlers of a derived index; the handlers are removed on drop.
struct Handlers(Vec<Box<dyn Handler>>);

impl Drop for Handlers {
    fn drop(&mut self) {
        for handler in &self.0 {
            handler.close();
        }
    }
}

/// A handler's registration, independent of the type of the handler's objects.
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
