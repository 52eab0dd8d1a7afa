//! Registers handlers with an informer, and provides the handles to registered handlers.
//!
//! The module delivers no events: the informer's loop adds events to the buffer of each handler.

use std::{
    fmt,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use derive_where::derive_where;
use futures_core::future::BoxFuture;
use futures_util::FutureExt;
use kube_core::Resource;
use tokio::{
    runtime::Handle,
    sync::{oneshot, watch},
};
use tracing::Instrument;

use super::{ListenerBuffer, SharedInformer, Stopped};
use crate::{
    controller::Command,
    event_handler::{Callbacks, EventHandler, Filtering, Outcome},
    logs,
    object::{Deleted, Object},
    panics::panic_message,
    prefetch::Prefetch,
    processor::{
        Buffer, Closing, Delivery, HandlerStatus, Listener, ListenerId, Listening, SyncReport,
        listen,
    },
    status::WaitForSync,
};

/// Configures a handler: its name, resync period, buffer, filter and thread.
/// [`register`](HandlerBuilder::register) registers the handler with the informer.
#[doc(alias = "HandlerOptions")]
#[must_use = "a handler receives no events until it is registered"]
#[derive_where(Debug)]
pub struct HandlerBuilder<K, H> {
    informer: SharedInformer<K>,
    #[derive_where(skip)]
    handler: H,
    name: String,
    resync: Option<Duration>,
    buffer: ListenerBuffer,
    thread: bool,
    /// The changes that the handler receives. The default is [`Delivery::Changes`].
    pub(crate) delivery: Delivery,
}

impl<K, H> HandlerBuilder<K, H>
where
    K: Resource + Send + Sync + 'static,
    H: EventHandler<K>,
{
    pub(super) fn new(informer: SharedInformer<K>, handler: H, name: String) -> Self {
        Self {
            informer,
            handler,
            name,
            resync: None,
            buffer: ListenerBuffer::default(),
            thread: false,
            delivery: Delivery::Changes,
        }
    }

    /// Sets the handler's name in logs and in its status. The default is the name of the handler's type, or
    /// the source location of its closures.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the interval at which this handler receives every object again.
    ///
    /// The handler receives each object as an update with [`Cause::Resync`](crate::indexer::Cause::Resync).
    /// The informer reads the objects from the cache, and sends no request.
    ///
    /// Zero disables resyncs of this handler. A period below 1 s is raised to 1 s. If the informer's own
    /// resync period is zero, no handler is resynced. Without this call, the informer's resync period
    /// applies.
    ///
    /// All handlers share one timer. The timer's interval is the shortest period that was set before the
    /// informer started. If a handler is registered later with a shorter period, its period is raised to the
    /// timer's interval.
    #[doc(alias = "AddEventHandlerWithResyncPeriod")]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Sets the buffer for events that arrive faster than this handler processes them.
    pub fn buffer(mut self, buffer: ListenerBuffer) -> Self {
        self.buffer = buffer;
        self
    }

    /// Runs this handler on a dedicated thread, on which its callbacks may block.
    pub fn dedicated_thread(mut self) -> Self {
        self.thread = true;
        self
    }

    /// Delivers only the objects for which `filter` returns `true`.
    ///
    /// An update can change the result of `filter`. If the result changes to `true`, the handler receives the
    /// object as added. If the result changes to `false`, the handler receives the object as deleted.
    #[doc(alias = "FilteringResourceEventHandler")]
    pub fn filter<F>(self, filter: F) -> HandlerBuilder<K, Filtering<K, F, H>>
    where
        F: Fn(&Object<K>) -> bool + Send + 'static,
    {
        HandlerBuilder {
            informer: self.informer,
            handler: Filtering::new(filter, self.handler),
            name: self.name,
            resync: self.resync,
            buffer: self.buffer,
            thread: self.thread,
            delivery: self.delivery,
        }
    }

    /// Registers the handler, which receives the current objects first, then all later changes.
    ///
    /// The method must be called inside a Tokio runtime if the handler has a dedicated thread. Registrations
    /// are independent of each other, even if their handlers share state, for example in an `Arc`.
    ///
    /// # Errors
    /// Returns an error if the informer has stopped.
    #[doc(alias = "AddEventHandler")]
    pub fn register(self) -> Result<Registration<K>, Stopped> {
        let name: Arc<str> = Arc::from(self.name);
        let informer = self.informer;
        let (id, buffer) = informer.new_buffer(self.buffer, Arc::clone(&name));
        informer.shared.roster.enlist(&buffer, true);
        let (sync_report, handled, synced) = SyncReport::new();
        let listening = Listening::new(&buffer, Prefetch::default());
        let span = logs::handler_span(&informer.shared.span, &name);
        let listening = listen(self.handler, listening, Arc::clone(&name), sync_report);
        let listening = reporting_panics(listening, Arc::clone(&name)).instrument(span);
        let task: BoxFuture<'static, ()> = if self.thread {
            Box::pin(on_thread(listening, Arc::clone(&name), Handle::current()))
        } else {
            Box::pin(listening)
        };
        let listener = Listener {
            id,
            buffer: Arc::clone(&buffer),
            resync: self.resync,
            delivery: self.delivery,
            has_task: true,
        };
        informer.command(Command::AddListener(listener, Some(task)))?;
        Ok(Registration {
            informer,
            id,
            name,
            buffer,
            handled,
            synced,
        })
    }
}

impl<K> HandlerBuilder<K, Callbacks<K>>
where
    K: Resource + Send + Sync + 'static,
{
    /// Sets the callback for added objects. Its second argument is `true` for an object of the initial list.
    #[doc(alias = "AddFunc")]
    #[doc(alias = "OnAdd")]
    pub fn on_add<R: Outcome<M>, M>(
        mut self,
        callback: impl FnMut(Object<K>, bool) -> R + Send + 'static,
    ) -> Self {
        self.handler = self.handler.on_add(callback);
        self
    }

    /// Sets the callback for updates. Its arguments are the state that the handler received last, and the new
    /// state.
    #[doc(alias = "UpdateFunc")]
    #[doc(alias = "OnUpdate")]
    pub fn on_update<R: Outcome<M>, M>(
        mut self,
        callback: impl FnMut(Object<K>, Object<K>) -> R + Send + 'static,
    ) -> Self {
        self.handler = self.handler.on_update(callback);
        self
    }

    /// Sets the callback for deletions.
    #[doc(alias = "DeleteFunc")]
    #[doc(alias = "OnDelete")]
    pub fn on_delete<R: Outcome<M>, M>(
        mut self,
        callback: impl FnMut(Deleted<K>) -> R + Send + 'static,
    ) -> Self {
        self.handler = self.handler.on_delete(callback);
        self
    }
}

/// Runs a handler's event loop, and logs a panic that occurs outside of the handler's callbacks.
///
/// Such a panic ends only this handler.
async fn reporting_panics(listening: impl Future<Output = ()>, name: Arc<str>) {
    if let Err(panic) = AssertUnwindSafe(listening).catch_unwind().await {
        let reason = panic_message(&*panic);
        tracing::error!(handler = %name, reason, "the handler ended: a panic outside of its callbacks");
    }
}

/// Runs a handler's event loop on a dedicated thread, and waits until the loop ends.
///
/// # Cancel safety
/// Dropping the future cancels the loop at its next await point.
async fn on_thread(
    listening: impl Future<Output = ()> + Send + 'static,
    name: Arc<str>,
    runtime: Handle,
) {
    let (tell_end, end) = oneshot::channel::<()>();
    let (_wanted, unwanted) = oneshot::channel::<()>();
    let thread = std::thread::Builder::new().name(format!("handler {name}"));
    let spawned = thread.spawn(move || {
        runtime.block_on(async move {
            tokio::select! {
                biased;
                () = listening => {}
                // No value is sent: the sender is dropped with the listener's task.
                _ = unwanted => {}
            }
        });
        drop(tell_end);
    });
    match spawned {
        Ok(thread) => {
            // No value is sent: the sender is dropped when the listener has ended.
            let _ = end.await;
            // Does not block: the thread is about to return.
            let _ = thread.join();
        }
        Err(error) => {
            tracing::error!(handler = %name, %error, "can't start the thread of the handler");
        }
    }
}

/// Handle to a registered handler.
///
/// Dropping the handle detaches the handler, which then runs until the informer ends.
#[doc(alias = "ResourceEventHandlerRegistration")]
pub struct Registration<K> {
    informer: SharedInformer<K>,
    id: ListenerId,
    name: Arc<str>,
    buffer: Arc<Buffer<K>>,
    handled: Arc<AtomicBool>,
    synced: watch::Receiver<bool>,
}

impl<K> fmt::Debug for Registration<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("name", &self.name)
            .field("synced", &self.has_synced())
            .field("depth", &self.depth())
            .finish_non_exhaustive()
    }
}

impl<K> Registration<K> {
    /// Returns whether this handler has handled the objects that were in the cache at registration.
    ///
    /// After the first `true`, the result stays `true`, unless the informer
    /// [fails](crate::status::Status::failure). The method takes no lock.
    #[doc(alias = "HasSynced")]
    #[doc(alias = "HasSyncedChecker")]
    pub fn has_synced(&self) -> bool {
        self.handled.load(Ordering::Acquire) && self.informer.has_synced()
    }

    /// Waits until [`Registration::has_synced`] returns `true`.
    ///
    /// Resolves with a [`SyncError`](crate::status::SyncError) if the handler is removed or the informer
    /// stops first.
    pub fn wait_for_sync(&self) -> WaitForSync {
        WaitForSync::handler(
            Arc::clone(&self.name),
            Arc::clone(&self.informer.shared.expects),
            self.informer.status(),
            self.synced.clone(),
        )
    }

    /// Returns the number of notifications in this handler's buffer, including the one in progress.
    ///
    /// Each event is one notification. A list, a resync, and the objects that were in the cache at
    /// registration are also one notification each.
    pub fn depth(&self) -> usize {
        self.buffer.depth()
    }

    /// Returns the time since the oldest change in this handler's buffer was applied to the cache. Returns
    /// zero if the buffer is empty.
    pub fn lag(&self) -> Duration {
        self.status().lag
    }

    /// Returns the number of events that this handler did not receive, because a later event of the same
    /// object replaced or cancelled the event in the buffer.
    ///
    /// Only a buffer with [`ListenerBuffer::Coalesce`] merges events. For other buffers, the number is zero.
    pub fn coalesced(&self) -> u64 {
        self.status().coalesced
    }

    /// Returns the current status of this handler. The status stays available after the informer has ended.
    pub fn status(&self) -> HandlerStatus {
        self.buffer.status()
    }

    /// Removes the handler, and waits until the handler has ended.
    ///
    /// The callback in progress completes, and the remaining events are discarded. When the method returns,
    /// the handler has been dropped. The method can also be called while the informer stops or after it has
    /// stopped.
    ///
    /// If a handler's own callback removes the handler, the method does not wait, because the wait would
    /// deadlock. The callback completes, and no other callback follows. Indirect deadlocks are not detected.
    /// For example, a callback that waits for a task deadlocks if the task waits for this removal. Two
    /// handlers deadlock if each waits for the removal of the other.
    ///
    /// # Cancel safety
    /// The first poll starts the removal. Dropping the future after the first poll only stops the wait.
    /// Dropping the future before the first poll keeps the handler, which then runs until the informer ends.
    #[doc(alias = "RemoveEventHandler")]
    #[doc(alias = "ShutDownEventHandler")]
    pub async fn remove(self) {
        self.close();
        if !self.buffer.is_told_here() {
            self.buffer.until_ended().await;
        }
    }

    /// Starts the removal of the handler without waiting. No further event is delivered.
    pub(crate) fn close(&self) {
        // Closes the buffer directly, because the informer processes the command later.
        self.buffer.close(Closing::Discard);
        // An error means that the informer has stopped, and the handler with it.
        let _ = self.informer.command(Command::RemoveListener(self.id));
    }

    /// Waits until the handler has ended, or has handled all changes that the cache contained at the call.
    pub(crate) async fn idle(&self) {
        self.informer.handed_on().await;
        self.buffer.until_idle().await;
    }
}
