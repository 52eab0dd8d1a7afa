//! An index of objects by what only objects of another kind know: pods by the zone of their node.
//!
//! It stands beside the two stores, and two handlers keep it, one of each informer. Whoever reads it
//! waits for nobody. (What is asked seldom need not be kept: [`indexer`](crate::indexer) shows how to
//! ask two caches.)
//!
//! # What it promises
//!
//! - It comes to say what the two caches say. Each of them may be ahead of it, by what its handler has
//!   yet to hear; in whichever order the two change, the end is the same.
//! - When an object changes, it alone is asked again; when one of the others comes, changes or goes,
//!   those that named it are, and nobody else. They are asked about the caches of that moment.
//! - A function that fails or panics leaves that object out, until it or what it depends on changes;
//!   [`DerivedIndex::errors`] has the reason. Nothing else suffers.
//! - What can't be decoded counts with its last good state, which is what handlers were told; if there
//!   is none, it is not there.
//! - No function is called under a lock, and none for a reader.
//!
//! # What it costs
//!
//! Two handlers, and two entries per object and value or name: one in order of the values, one in order
//! of the objects. The objects' names are shared between them, a value is kept once for all objects that
//! have it, and so is the name of what they depend on; no object is copied or kept.
//!
//! An object is asked once when its handler hears of it and, at the beginning, again for each of those
//! it depends on that the other handler hears of later.
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

/// Objects by values that come from objects of another kind, kept up to date. Clones are the same
/// index.
///
/// Dropping the last of them removes both handlers; the one object that a handler may be placing at
/// that moment is the last that is asked for. When an informer stops, the index can be read still, and
/// hears no more of that informer's objects: what its handler had not heard by then is missing.
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
    /// Begins to index the objects of this informer by what those of another one know.
    ///
    /// `depends_on` says which of the others an object depends on: none, one or many, whether they are
    /// there or not. `values` says which values it has, and is given those of them that were found, in
    /// the same order. Both may be called at any time, by two tasks, and should depend on nothing but
    /// what they are given: nobody would ask them again.
    ///
    /// May be done at any time, and needs no [`Controller`](crate::Controller) that runs.
    /// [`DerivedIndex::wait_for_sync`] says when it covers what was there. The other informer may be
    /// this one.
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

    /// The same with functions that may fail: an object that they can't place is left out, with the
    /// reason in [`DerivedIndex::errors`].
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
        // Neither merges what waits for it: what came and went while it waited would not be told, and may
        // be in the index, for an object is placed as the caches have it and not as it was told.
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
    /// The index's name, as its handlers and errors have it.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The names of the objects under a value, in order.
    #[doc(alias = "IndexKeys")]
    pub fn names(&self, value: &str) -> Vec<ObjectName> {
        self.inner.board.values().names(value).cloned().collect()
    }

    /// The objects under a value, in order, as the cache has them now. One that has gone from there
    /// since, or can't be decoded any more, is left out; one that has changed since may belong
    /// elsewhere already.
    #[doc(alias = "ByIndex")]
    pub fn objects(&self, value: &str) -> Vec<Object<K>> {
        let placed = self.inner.board.values();
        let snapshot = self.inner.objects.snapshot();
        let found = placed.names(value).filter_map(|name| snapshot.get(name));
        let readable = found.filter(|object| object.broken().is_none());
        readable.cloned().collect()
    }

    /// The values under which an object stands, in order, each once.
    pub fn values_of(&self, object: &ObjectName) -> Vec<Arc<str>> {
        self.inner.board.values().values(object).to_vec()
    }

    /// The values that objects stand under, in order, each once.
    #[doc(alias = "ListIndexFuncValues")]
    pub fn values(&self) -> Vec<Arc<str>> {
        self.inner.board.values().all_values()
    }

    /// How many objects stand under a value, or several.
    pub fn len(&self) -> usize {
        self.inner.board.values().len()
    }

    /// Whether no object stands under any value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects that are left out because a function failed, in order, each with the reason.
    pub fn errors(&self) -> Vec<IndexError> {
        self.inner.board.errors()
    }

    /// Whether everything is in the index that both handlers heard of at the beginning. Once true, it
    /// stays true.
    #[doc(alias = "HasSynced")]
    pub fn has_synced(&self) -> bool {
        let Handlers(handlers) = &self.inner.handlers;
        handlers.iter().all(|handler| handler.has_synced())
    }

    /// Waits until [`DerivedIndex::has_synced`]. Owns what it needs.
    ///
    /// # Errors
    /// [`SyncError`]: an informer has stopped before, or the index was dropped.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
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

    /// Waits until the index says what both caches say now, or something newer. (After an informer has
    /// stopped, until its handler has ended.)
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

/// The two registrations, which end with the index.
struct Handlers(Vec<Box<dyn Handler>>);

impl Drop for Handlers {
    fn drop(&mut self) {
        for handler in &self.0 {
            handler.close();
        }
    }
}

/// A registration of whichever kind.
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
