//! One informer, shared: one list, one watch and one cache for any number of handlers and readers.
//!
//! # What it promises
//!
//! - The cache is eventually the server's collection. Per object it goes through a subsequence of the
//!   states the server had, in order.
//! - A handler hears of changes one at a time, after the cache has changed, which may be further
//!   ahead. What it hears of one object leads to what is in the cache.
//! - An object is its kind, namespace and name. Its uid is not part of that: delete and recreate may
//!   come as one update.
//! - A deletion shows the last state; if the deletion itself was missed, the last one known.
//! - Handlers can join at any time, and hear first what is there, then everything after it, nothing
//!   twice. A slow one holds back nobody.
//!
//! # Example
//!
//! ```no_run
//! # use k8s_openapi::api::core::v1::Pod;
//! # use kube_informer::{client::ListWatch, shared_informer::SharedInformer};
//! # async fn example(client: kube_client::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let (pods, controller) = SharedInformer::<Pod>::builder(ListWatch::<Pod>::new(client)).build();
//! pods.on_add(|pod, _| println!("{}", pod.object_name())).register()?;
//! let running = tokio::spawn(controller.run(async { tokio::signal::ctrl_c().await.unwrap() }));
//! pods.wait_for_sync().await?;
//! println!("{} pods", pods.indexer().len());
//! # Ok(()) }
//! ```

mod builder;
mod options;
mod registration;
mod roster;
mod sampled;
mod save;
mod subscription;
mod wait;

pub use self::{
    builder::Builder,
    registration::{HandlerBuilder, Registration},
    subscription::Subscription,
    wait::{DeletedError, RevisionError, WaitForDeleted, WaitForRevision, Written},
};
pub(crate) use self::{
    options::{Keeping, LoopOptions, keep_method, keeping_methods, loop_methods},
    wait::reached,
};
pub use crate::processor::{HandlerStatus, ListenerBuffer};

use std::{
    fmt,
    panic::Location,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use derive_where::derive_where;
use kube_core::Resource;
use tokio::sync::{Notify, futures::Notified, mpsc, oneshot};

use self::roster::Roster;
use crate::{
    controller::Command,
    event_handler::{Callbacks, EventHandler, Outcome},
    indexer::{DuplicateIndex, IndexBuild, IndexRef, IndexToken, Indexer, Indexers, NotRemovable},
    object::{Deleted, Object, ObjectName, ResourceVersion},
    processor::{Buffer, ListenerId},
    reflector::Delta,
    status::{StatusReader, WaitForSync},
    transport::ListerWatcher,
    warm_start::Snapshotter,
};

/// The informer has ended, or is ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the informer has stopped")]
pub struct Stopped;

/// Why an index could not be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddIndexError {
    /// There is one of this name.
    #[error(transparent)]
    Duplicate(#[from] DuplicateIndex),
    /// The informer has ended.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Why an index could not be removed from an informer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveIndexError {
    /// There is none, or it can't be removed.
    #[error(transparent)]
    NotRemovable(#[from] NotRemovable),
    /// The informer has ended.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// The handle of one informer; clones are the same informer.
///
/// Everything works from the moment it is built until its [`Controller`](crate::controller::Controller)
/// has ended; what is asked for afterwards is refused with [`Stopped`], while the cache can still be
/// read.
#[doc(alias = "SharedIndexInformer")]
#[doc(alias = "TypedSharedIndexInformer")]
#[derive_where(Clone)]
pub struct SharedInformer<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    name: Arc<str>,
    expects: Arc<str>,
    kind: String,
    commands: mpsc::UnboundedSender<Command<K>>,
    indexer: Indexer<K>,
    status: StatusReader,
    applied: Arc<Notify>,
    room: Arc<Notify>,
    listeners: AtomicU64,
    roster: Arc<Roster<K>>,
    /// In which handlers are called.
    span: tracing::Span,
    snapshotter: Option<Arc<Snapshotter<K>>>,
    /// The channel to the queue, which is not kept open by being looked at.
    channel: mpsc::WeakSender<Delta<K>>,
}

impl<K> fmt::Debug for SharedInformer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedInformer")
            .field("name", &self.shared.name)
            .field("status", &self.shared.status)
            .finish_non_exhaustive()
    }
}

impl<K> SharedInformer<K>
where
    K: Resource + Send + Sync + 'static,
{
    /// Begins an informer over a source. Its default name is kind and scope, such as
    /// `pods in shop`.
    #[doc(alias = "NewSharedInformer")]
    #[doc(alias = "NewSharedIndexInformer")]
    #[doc(alias = "NewSharedIndexInformerWithOptions")]
    pub fn builder(source: impl ListerWatcher) -> Builder<K>
    where
        K::DynamicType: Default,
    {
        Builder::new(Arc::new(source), K::DynamicType::default())
    }

    /// The same for a type known at run time only.
    pub fn builder_with_type(source: impl ListerWatcher, dyntype: K::DynamicType) -> Builder<K> {
        Builder::new(Arc::new(source), dyntype)
    }

    /// Registers a handler; [`HandlerBuilder::register`] makes it so.
    #[doc(alias = "AddEventHandler")]
    #[doc(alias = "AddEventHandlerWithOptions")]
    pub fn handler<H: EventHandler<K>>(&self, handler: H) -> HandlerBuilder<K, H> {
        HandlerBuilder::new(self.clone(), handler, std::any::type_name::<H>().to_owned())
    }

    /// Registers closures, beginning with one for new objects, which also hears whether the object
    /// was there at the beginning.
    #[doc(alias = "AddFunc")]
    #[doc(alias = "OnAdd")]
    #[track_caller]
    pub fn on_add<R: Outcome<M>, M>(
        &self,
        callback: impl FnMut(Object<K>, bool) -> R + Send + 'static,
    ) -> HandlerBuilder<K, Callbacks<K>> {
        self.callbacks(Callbacks::new().on_add(callback), Location::caller())
    }

    /// Registers closures, beginning with one that hears what was told last and what is now.
    #[doc(alias = "UpdateFunc")]
    #[doc(alias = "OnUpdate")]
    #[track_caller]
    pub fn on_update<R: Outcome<M>, M>(
        &self,
        callback: impl FnMut(Object<K>, Object<K>) -> R + Send + 'static,
    ) -> HandlerBuilder<K, Callbacks<K>> {
        self.callbacks(Callbacks::new().on_update(callback), Location::caller())
    }

    /// Registers closures, beginning with one that hears what is gone.
    #[doc(alias = "DeleteFunc")]
    #[doc(alias = "OnDelete")]
    #[track_caller]
    pub fn on_delete<R: Outcome<M>, M>(
        &self,
        callback: impl FnMut(Deleted<K>) -> R + Send + 'static,
    ) -> HandlerBuilder<K, Callbacks<K>> {
        self.callbacks(Callbacks::new().on_delete(callback), Location::caller())
    }

    /// The same events as a stream: what is there first, then everything after it, nothing twice.
    ///
    /// # Errors
    /// The informer has stopped.
    #[doc(alias = "NewIndexerInformerWatcher")]
    pub fn subscribe(&self) -> Result<Subscription<K>, Stopped> {
        self.subscribe_with(ListenerBuffer::default())
    }

    /// The same, and what happens while nobody polls for the events. With [`ListenerBuffer::Block`] a
    /// subscription that nobody polls holds up the informer.
    ///
    /// # Errors
    /// The informer has stopped.
    pub fn subscribe_with(&self, buffer: ListenerBuffer) -> Result<Subscription<K>, Stopped> {
        Subscription::new(self, buffer)
    }

    fn callbacks(
        &self,
        callbacks: Callbacks<K>,
        place: &Location<'_>,
    ) -> HandlerBuilder<K, Callbacks<K>> {
        HandlerBuilder::new(self.clone(), callbacks, place.to_string())
    }

    /// Adds an index over the values that a function says an object has: none, one or many. May be
    /// done at any time; when it returns, the index covers everything in the cache.
    ///
    /// # Errors
    /// There is an index of that name, or the informer has stopped.
    ///
    /// # Cancel safety
    /// Dropping the future may take the request back: the index is there then, whole, or is not.
    #[doc(alias = "AddIndexers")]
    pub async fn add_index<V>(
        &self,
        name: &str,
        values: impl Fn(&K) -> V + Send + Sync + 'static,
    ) -> Result<IndexToken, AddIndexError>
    where
        V: IntoIterator,
        V::Item: Into<Arc<str>>,
    {
        self.add_one(Indexers::new().with(name, values)).await
    }

    /// Adds an index whose function may fail: an object that it can't place is left out of this index
    /// and counted in the status.
    ///
    /// # Errors
    /// As for [`SharedInformer::add_index`].
    pub async fn try_add_index<V, E>(
        &self,
        name: &str,
        values: impl Fn(&K) -> Result<V, E> + Send + Sync + 'static,
    ) -> Result<IndexToken, AddIndexError>
    where
        V: IntoIterator,
        V::Item: Into<Arc<str>>,
        E: ToString,
    {
        self.add_one(Indexers::new().try_with(name, values)).await
    }

    async fn add_one(&self, indexers: Indexers<K>) -> Result<IndexToken, AddIndexError> {
        let mut tokens = self.add_indexers(indexers).await?;
        Ok(tokens.pop().expect("each index that is added has a token"))
    }

    /// Adds several indices at one go, all or none; their tokens, in the same order.
    ///
    /// Functions are called by the task that asks for the index, with yields between some hundred
    /// objects: the informer goes on delivering meanwhile, and only what has changed since is left for
    /// it to place.
    ///
    /// # Errors
    /// As for [`SharedInformer::add_index`].
    ///
    /// # Cancel safety
    /// Dropping the future before the indices are filled adds none; later they may be there all the
    /// same.
    #[doc(alias = "AddIndexers")]
    pub async fn add_indexers(
        &self,
        indexers: Indexers<K>,
    ) -> Result<Vec<IndexToken>, AddIndexError> {
        if self.is_stopped() {
            return Err(Stopped.into());
        }
        let indexer = &self.shared.indexer;
        let mut build = IndexBuild::new(indexers, &indexer.snapshot())?;
        build.approach(|| indexer.snapshot()).await;
        let (reply, answer) = oneshot::channel();
        self.command(Command::AddIndices(Box::new(build), reply))?;
        Ok(answer.await.map_err(|_| Stopped)??)
    }

    /// Removes an index, whoever added it. Its token finds nothing any more, not even an index that is
    /// given its name later; snapshots that were taken before have the index still.
    ///
    /// # Errors
    /// There is no such index, it is [`NAMESPACE`](crate::indexer::NAMESPACE), or the informer has
    /// stopped.
    ///
    /// # Cancel safety
    /// Dropping the future does not take the request back.
    pub async fn remove_index<I>(&self, index: &I) -> Result<(), RemoveIndexError>
    where
        I: IndexRef + ToOwned + ?Sized,
        I::Owned: IndexRef + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.command(Command::RemoveIndex(Box::new(index.to_owned()), reply))?;
        drop(answer.await.map_err(|_| Stopped)??);
        Ok(())
    }
}

impl<K> SharedInformer<K> {
    /// The informer's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Whether two handles are of the very same informer.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// The kind of the objects.
    pub fn kind(&self) -> &str {
        &self.shared.kind
    }

    /// The cache, to be read at any time, also after the informer has ended.
    #[doc(alias = "GetStore")]
    #[doc(alias = "GetIndexer")]
    pub fn indexer(&self) -> Indexer<K> {
        self.shared.indexer.clone()
    }

    /// What the informer is doing.
    #[doc(alias = "GetController")]
    pub fn status(&self) -> StatusReader {
        self.shared.status.afresh()
    }

    /// Whether the first list is in the cache. It stays true after an orderly end, and is false once the
    /// informer has [failed](crate::status::Status::failure). Handlers may not have received all of the
    /// list yet: they have a `has_synced` of their own.
    #[doc(alias = "HasSynced")]
    #[doc(alias = "HasSyncedChecker")]
    #[doc(alias = "InformerSynced")]
    pub fn has_synced(&self) -> bool {
        self.shared.status.has_synced()
    }

    /// Whether the informer has ended.
    #[doc(alias = "IsStopped")]
    pub fn is_stopped(&self) -> bool {
        self.shared.commands.is_closed()
    }

    /// Up to which revision everything is in the cache.
    #[doc(alias = "LastSyncResourceVersion")]
    pub fn last_sync_resource_version(&self) -> ResourceVersion {
        self.shared.indexer.snapshot().revision()
    }

    /// Waits until the first list is in the cache; returns a [`SyncError`](crate::status::SyncError) if the
    /// informer ends or fails before, or has ended already. Owns what it needs, and polls nothing.
    ///
    /// An informer that has not been started yet may be started by another task at any time, so it is waited
    /// for; without a [`deadline`](WaitForSync::deadline), for ever if it never is.
    /// [`SharedInformerFactory::wait_for_cache_sync`](crate::SharedInformerFactory::wait_for_cache_sync) reports
    /// a factory that was not started.
    #[doc(alias = "WaitForCacheSync")]
    #[doc(alias = "WaitForNamedCacheSync")]
    pub fn wait_for_sync(&self) -> WaitForSync {
        let Shared { name, expects, .. } = &*self.shared;
        WaitForSync::informer(Arc::clone(name), Arc::clone(expects), self.status())
    }

    /// Waits until the cache has what was written, for at most so long: all changes up to a revision,
    /// which is given as it is, or by the object that the write was answered with.
    ///
    /// An informer over several sources (namespaces) has an object when the source that holds it has
    /// come so far; while none holds it, and for a revision alone, when all of them have. A quiet
    /// source comes on with the server's bookmarks only, about once a minute. What the informer's
    /// selector leaves out is waited for in the same way, and not in the cache afterwards.
    ///
    /// # Errors
    /// [`RevisionError`]: the deadline has passed (counted from the first poll), the informer has
    /// stopped, the revisions have no order, or the server went back behind what it had told. A server
    /// that went back and has not told the informer yet can't be told from one that did not; if it has
    /// come past the revision again by then, the wait ends as if nothing had been.
    ///
    /// An aggregated API server may send an object late, at a revision that the cache has passed. A wait
    /// for that revision then ends before the object arrives.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub fn wait_for_revision(
        &self,
        written: impl Into<Written>,
        deadline: Duration,
    ) -> WaitForRevision
    where
        K: Send + Sync + 'static,
    {
        wait::for_written(self.clone(), written.into(), deadline)
    }

    /// Waits until the cache does not have an object any more, for at most so long, also if there is
    /// another of its name by then. This is for deletions, whose revision nobody is told; a deletion
    /// that finalizers or a grace period hold up is waited for until it has happened.
    ///
    /// What the cache has not heard of yet it does not have either: who has just made the object waits
    /// for its revision first. Before the first list is in the cache, nothing counts as deleted. The uid
    /// is compared with the cache's, which a transform must leave there.
    ///
    /// # Errors
    /// [`DeletedError`]: the deadline has passed (counted from the first poll), or the informer has
    /// stopped.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub fn wait_for_deleted(
        &self,
        name: &ObjectName,
        uid: impl Into<String>,
        deadline: Duration,
    ) -> WaitForDeleted
    where
        K: Resource + Send + Sync + 'static,
    {
        wait::for_deleted(self.clone(), name.clone(), uid.into(), deadline)
    }

    /// Waits until every handler has handled everything that is in the cache now; subscriptions, which
    /// nobody may be polling, are not waited for. A handler that waits for it inside its own callback
    /// waits for the others only; two that do so at once wait for each other.
    ///
    /// # Cancel safety
    /// Dropping the future only stops waiting.
    pub async fn handlers_idle(&self) {
        self.handed_on().await;
        self.shared.roster.until_idle().await;
    }

    /// Waits until everything that is in the cache now has been handed to the handlers' buffers.
    async fn handed_on(&self) {
        // A cache that has changed is ahead of its handlers until the batch has been handed to them.
        let (reply, settled) = oneshot::channel();
        if self.command(Command::Settle(reply)).is_ok() {
            // An error says that the informer is ending, so nothing more will be handed to anyone.
            let _ = settled.await;
        }
    }

    /// How every handler and subscription is getting on, in the order in which they came. Those that
    /// have been removed are not there any more. After the informer has ended only subscriptions are
    /// that have not said so yet.
    pub fn handlers(&self) -> Vec<HandlerStatus> {
        self.shared.roster.status()
    }

    /// How many sources the informer is over.
    pub(crate) fn sources(&self) -> u32 {
        u32::try_from(self.shared.status.get().sources.len()).unwrap_or(u32::MAX)
    }

    /// Resolves after the next batch that readers can see from this call on, or at the informer's end.
    pub(crate) fn applied(&self) -> Notified<'_> {
        self.shared.applied.notified()
    }

    /// Resolves when the informer has ended.
    pub(crate) async fn stopped(&self) {
        self.shared.commands.closed().await;
    }

    fn command(&self, command: Command<K>) -> Result<(), Stopped> {
        self.shared.commands.send(command).map_err(|_| Stopped)
    }

    fn new_buffer(&self, policy: ListenerBuffer, name: Arc<str>) -> (ListenerId, Arc<Buffer<K>>) {
        let id = ListenerId(self.shared.listeners.fetch_add(1, Ordering::Relaxed));
        let buffer = Arc::new(Buffer::new(policy, name, Arc::clone(&self.shared.room)));
        (id, buffer)
    }
}
