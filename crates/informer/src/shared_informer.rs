//! Lists and watches objects once, and shares one cache between any number of handlers and readers.
//!
//! # Guarantees
//!
//! - The cache converges to the server's collection. The cache receives the states of an object in the order
//!   in which the server stored them, and may skip states.
//! - The cache applies a change before any handler receives the event of the change. A handler receives one
//!   event at a time. When an object stops changing, every handler eventually receives the final state.
//! - Kind, namespace and name identify an object. A handler may receive a deletion and a recreation of an
//!   object as one update with another uid.
//! - A deletion event contains the last state of the object. If the watch missed the deletion, the event
//!   contains the last state that the cache received.
//! - A handler can be registered at any time. It receives the current objects first, then all later changes,
//!   each event once. By default ([`ListenerBuffer::Grow`]), a slow handler does not delay other handlers.
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

/// Error of a method that was called while the informer was stopping, or after the informer had stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the informer has stopped")]
pub struct Stopped;

/// The reason why an informer did not add an index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddIndexError {
    /// The informer already has an index with this name.
    #[error(transparent)]
    Duplicate(#[from] DuplicateIndex),
    /// The informer has stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// The reason why an informer did not remove an index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveIndexError {
    /// The index does not exist, or is the namespace index, which can't be removed.
    #[error(transparent)]
    NotRemovable(#[from] NotRemovable),
    /// The informer has stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Handle to an informer. Clones are handles to the same informer.
///
/// Handlers and indices can be added until the [`Controller`](crate::controller::Controller) begins to stop
/// or is dropped. Later additions fail with [`Stopped`], but the cache and the status stay readable.
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
    /// Tracing span of the informer. The spans of the handlers are its children.
    span: tracing::Span,
    snapshotter: Option<Arc<Snapshotter<K>>>,
    /// Used only to count the changes in the channel from the reflectors to the queue.
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
    /// Returns a builder of an informer that lists and watches the objects of `source`. By default, the
    /// informer's name consists of the kind and the scope of these objects, such as `pods in shop`.
    #[doc(alias = "NewSharedInformer")]
    #[doc(alias = "NewSharedIndexInformer")]
    #[doc(alias = "NewSharedIndexInformerWithOptions")]
    pub fn builder(source: impl ListerWatcher) -> Builder<K>
    where
        K::DynamicType: Default,
    {
        Builder::new(Arc::new(source), K::DynamicType::default())
    }

    /// Returns a builder of an informer that lists and watches the objects of `source`. `dyntype` contains
    /// the API group, version and kind of the objects, for a type `K` that defines them only at run time.
    pub fn builder_with_type(source: impl ListerWatcher, dyntype: K::DynamicType) -> Builder<K> {
        Builder::new(Arc::new(source), dyntype)
    }

    /// Returns a builder that configures `handler`. [`HandlerBuilder::register`] then registers the handler.
    #[doc(alias = "AddEventHandler")]
    #[doc(alias = "AddEventHandlerWithOptions")]
    pub fn handler<H: EventHandler<K>>(&self, handler: H) -> HandlerBuilder<K, H> {
        HandlerBuilder::new(self.clone(), handler, std::any::type_name::<H>().to_owned())
    }

    /// Returns a builder of a handler that calls `callback` for each added object. The second argument of the
    /// callback is the field `in_initial_list` of [`Event::Added`](crate::event_handler::Event::Added).
    #[doc(alias = "AddFunc")]
    #[doc(alias = "OnAdd")]
    #[track_caller]
    pub fn on_add<R: Outcome<M>, M>(
        &self,
        callback: impl FnMut(Object<K>, bool) -> R + Send + 'static,
    ) -> HandlerBuilder<K, Callbacks<K>> {
        self.callbacks(Callbacks::new().on_add(callback), Location::caller())
    }

    /// Returns a builder of a handler that calls `callback` for each update, with the old and the new state.
    /// The old state is the state in the handler's previous event for the same object.
    #[doc(alias = "UpdateFunc")]
    #[doc(alias = "OnUpdate")]
    #[track_caller]
    pub fn on_update<R: Outcome<M>, M>(
        &self,
        callback: impl FnMut(Object<K>, Object<K>) -> R + Send + 'static,
    ) -> HandlerBuilder<K, Callbacks<K>> {
        self.callbacks(Callbacks::new().on_update(callback), Location::caller())
    }

    /// Returns a builder of a handler that calls `callback` for each deletion.
    #[doc(alias = "DeleteFunc")]
    #[doc(alias = "OnDelete")]
    #[track_caller]
    pub fn on_delete<R: Outcome<M>, M>(
        &self,
        callback: impl FnMut(Deleted<K>) -> R + Send + 'static,
    ) -> HandlerBuilder<K, Callbacks<K>> {
        self.callbacks(Callbacks::new().on_delete(callback), Location::caller())
    }

    /// Returns a stream of events: first the current objects, then all later changes, each event once.
    ///
    /// # Errors
    /// Returns an error if the informer has stopped.
    #[doc(alias = "NewIndexerInformerWatcher")]
    pub fn subscribe(&self) -> Result<Subscription<K>, Stopped> {
        self.subscribe_with(ListenerBuffer::default())
    }

    /// Returns a stream like [`subscribe`](Self::subscribe). Events that are not polled yet wait in `buffer`.
    /// With [`ListenerBuffer::Block`], a subscription that is not polled blocks the informer.
    ///
    /// # Errors
    /// Returns an error if the informer has stopped.
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

    /// Adds the index `name`. The function `values` returns the index values of an object: none, one or many.
    ///
    /// An index can be added at any time. The future resolves when the index covers all objects in the cache.
    ///
    /// # Errors
    /// Returns an error if an index of this name exists, or if the informer has stopped.
    ///
    /// # Cancel safety
    /// If the future is dropped, the index is either added completely or not at all.
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

    /// Adds an index whose function may return an error. The index omits an object for which the function
    /// fails, and [`Status::index_errors`](crate::status::Status::index_errors) counts the failures.
    ///
    /// # Errors
    /// Returns an error if an index of this name exists, or if the informer has stopped.
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

    /// Adds all indices of `indexers`, or none of them if an error occurs. Returns the tokens with which the
    /// indices are read, in the order of `indexers`.
    ///
    /// The index functions run in the calling task, which yields after every 100 objects. For objects that
    /// have just changed, the functions run in the informer's task. The informer delivers events during the
    /// call.
    ///
    /// # Errors
    /// Returns an error if an index with one of the names exists, or if the informer has stopped.
    ///
    /// # Cancel safety
    /// If the future is dropped while the calling task runs the index functions, no index is added. If the
    /// future is dropped later, either all indices are added or none.
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

    /// Removes an index. Any caller may remove an index that another caller added.
    ///
    /// The [`IndexToken`] of the index becomes invalid, and stays invalid if a later index has the same name.
    /// Snapshots that were taken before the removal keep the index.
    ///
    /// # Errors
    /// Returns an error if the index does not exist, if the index is
    /// [`NAMESPACE`](crate::indexer::NAMESPACE), or if the informer has stopped.
    ///
    /// # Cancel safety
    /// Dropping the future after its first poll does not cancel the removal.
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
    /// Returns the informer's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Returns whether `self` and `other` are handles to the same informer.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns the kind of the informer's objects, such as `Pod`.
    pub fn kind(&self) -> &str {
        &self.shared.kind
    }

    /// Returns the cache, which stays readable after the informer has ended.
    #[doc(alias = "GetStore")]
    #[doc(alias = "GetIndexer")]
    pub fn indexer(&self) -> Indexer<K> {
        self.shared.indexer.clone()
    }

    /// Returns a reader of the informer's status.
    #[doc(alias = "GetController")]
    pub fn status(&self) -> StatusReader {
        self.shared.status.afresh()
    }

    /// Returns whether the cache contains the first list of every source, for example of every namespace.
    ///
    /// The result stays `true` after a stop, and is `false` after a
    /// [failure](crate::status::Status::failure). Handlers may not have received all listed objects yet; see
    /// [`Registration::has_synced`].
    #[doc(alias = "HasSynced")]
    #[doc(alias = "HasSyncedChecker")]
    #[doc(alias = "InformerSynced")]
    pub fn has_synced(&self) -> bool {
        self.shared.status.has_synced()
    }

    /// Returns whether the informer has ended.
    #[doc(alias = "IsStopped")]
    pub fn is_stopped(&self) -> bool {
        self.shared.commands.is_closed()
    }

    /// Returns the revision up to which the cache contains all changes. If the informer has several sources,
    /// such as namespaces, the result is the revision of the first source.
    #[doc(alias = "LastSyncResourceVersion")]
    pub fn last_sync_resource_version(&self) -> ResourceVersion {
        self.shared.indexer.snapshot().revision()
    }

    /// Waits until the first list of every source is in the cache.
    ///
    /// Resolves with a [`SyncError`](crate::status::SyncError) if the informer ends or fails first. If the
    /// informer is not started, the future waits without limit, unless a
    /// [`deadline`](WaitForSync::deadline) is set.
    #[doc(alias = "WaitForCacheSync")]
    #[doc(alias = "WaitForNamedCacheSync")]
    pub fn wait_for_sync(&self) -> WaitForSync {
        let Shared { name, expects, .. } = &*self.shared;
        WaitForSync::informer(Arc::clone(name), Arc::clone(expects), self.status())
    }

    /// Waits until the cache contains a write. `written` is the revision of the write, or the object that the
    /// write request returned. `deadline` is the maximum time from the first poll of the future.
    ///
    /// An informer of several namespaces has one revision per namespace. If `written` is an object and the
    /// cache contains it in any version, the method waits only for the object's namespace. Otherwise, the
    /// method waits for all namespaces. A namespace without changes advances only with bookmarks, about once
    /// a minute.
    ///
    /// # Errors
    /// Returns a [`RevisionError`], whose variants are the causes of a failed wait.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect on the informer.
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

    /// Waits until the cache does not contain the object with this name and uid. `deadline` is the maximum
    /// time from the first poll of the future.
    ///
    /// Use the method after a delete request, whose response does not contain the revision of the deletion.
    /// If finalizers or a grace period delay the deletion, the wait ends when the object is finally deleted.
    ///
    /// After the first list, an object that is not in the cache counts as deleted. If the object is new,
    /// first wait for its revision. A transform must preserve the uid.
    ///
    /// # Errors
    /// Returns an error if the deadline has passed, or if the informer has stopped.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect on the informer.
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

    /// Waits until every handler has handled the changes that are in the cache at the time of the call.
    ///
    /// The method does not wait for subscriptions, because they may never be polled. If a handler calls the
    /// method in its callback, the method waits for all other handlers. Two handlers that wait for each other
    /// in this way deadlock.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect on the informer or its handlers.
    pub async fn handlers_idle(&self) {
        self.handed_on().await;
        self.shared.roster.until_idle().await;
    }

    /// Waits until the handlers' buffers contain every change that is in the cache at the time of the call.
    async fn handed_on(&self) {
        let (reply, settled) = oneshot::channel();
        if self.command(Command::Settle(reply)).is_ok() {
            // An error means that the informer is ending and delivers no more events.
            let _ = settled.await;
        }
    }

    /// Returns the status of every handler and subscription, in the order of registration.
    ///
    /// Removed handlers are not included. After the informer has ended, the result contains only the
    /// subscriptions that still have unread events.
    pub fn handlers(&self) -> Vec<HandlerStatus> {
        self.shared.roster.status()
    }

    pub(crate) fn sources(&self) -> u32 {
        u32::try_from(self.shared.status.get().sources.len()).unwrap_or(u32::MAX)
    }

    /// Waits until the next batch of changes is in the cache, or the informer ends.
    pub(crate) fn applied(&self) -> Notified<'_> {
        self.shared.applied.notified()
    }

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
