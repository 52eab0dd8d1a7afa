//! Registering a handler, and what one holds of it afterwards.

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
    processor::{
        Buffer, Closing, Delivery, HandlerStatus, Listener, ListenerId, Listening, SyncReport,
        listen,
    },
    status::WaitForSync,
};

/// A handler about to be registered.
#[doc(alias = "HandlerOptions")]
#[must_use = "a handler hears nothing until it is registered"]
#[derive_where(Debug)]
pub struct HandlerBuilder<K, H> {
    informer: SharedInformer<K>,
    #[derive_where(skip)]
    handler: H,
    name: String,
    resync: Option<Duration>,
    buffer: ListenerBuffer,
    thread: bool,
    /// What the handler hears of; all by the plain informer, whose one handler hears of everything.
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

    /// A name for logs; by default the handler's type, or where its closures stand.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Lets this handler hear of every object again, as an update with
    /// [`Cause::Resync`](crate::indexer::Cause::Resync), once per period. The objects come from the
    /// cache; no request is sent.
    ///
    /// Zero means never. Less than 1 s is raised to 1 s. The informer's own resync period must not be
    /// zero, or nobody gets a resync; once the informer has started, the period is raised to the
    /// informer's check period. Without this call the informer's default holds.
    #[doc(alias = "AddEventHandlerWithResyncPeriod")]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// What happens while this handler is slower than the changes.
    pub fn buffer(mut self, buffer: ListenerBuffer) -> Self {
        self.buffer = buffer;
        self
    }

    /// Runs this handler on a thread of its own, where it may block.
    pub fn dedicated_thread(mut self) -> Self {
        self.thread = true;
        self
    }

    /// Lets the handler hear only of objects that a filter lets through: one that begins to pass is
    /// told as added, one that ceases to pass as deleted.
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

    /// Registers the handler. It hears what is in the cache first, then everything after it.
    ///
    /// Must be called inside a Tokio runtime if the handler wants a thread. The same handler may be
    /// registered twice, which makes two registrations.
    ///
    /// # Errors
    /// The informer has stopped.
    #[doc(alias = "AddEventHandler")]
    pub fn register(self) -> Result<Registration<K>, Stopped> {
        let name: Arc<str> = Arc::from(self.name);
        let informer = self.informer;
        let (id, buffer) = informer.new_buffer(self.buffer, Arc::clone(&name));
        informer.shared.roster.enlist(&buffer, true);
        let (sync_report, handled, synced) = SyncReport::new();
        let listening = Listening::new(&buffer);
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
    /// Called with each new object, and whether it was there at the beginning.
    #[doc(alias = "AddFunc")]
    #[doc(alias = "OnAdd")]
    pub fn on_add<R: Outcome<M>, M>(
        mut self,
        callback: impl FnMut(Object<K>, bool) -> R + Send + 'static,
    ) -> Self {
        self.handler = self.handler.on_add(callback);
        self
    }

    /// Called with what was told last and what is now.
    #[doc(alias = "UpdateFunc")]
    #[doc(alias = "OnUpdate")]
    pub fn on_update<R: Outcome<M>, M>(
        mut self,
        callback: impl FnMut(Object<K>, Object<K>) -> R + Send + 'static,
    ) -> Self {
        self.handler = self.handler.on_update(callback);
        self
    }

    /// Called with what is gone.
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

/// Runs a listener. A panic in a callback is confined to that callback; any other ends this handler alone,
/// and its registration does not sync any more.
async fn reporting_panics(listening: impl Future<Output = ()>, name: Arc<str>) {
    if let Err(panic) = AssertUnwindSafe(listening).catch_unwind().await {
        let reason = panic_message(&*panic);
        tracing::error!(handler = %name, reason, "the handler ended: a panic outside of its callbacks");
    }
}

/// Runs a listener on a thread of its own, and ends when it does. Dropped before, it cuts the
/// listener off at its next await.
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
                // Nobody sends: the other end is dropped with the listener's task.
                _ = unwanted => {}
            }
        });
        drop(tell_end);
    });
    match spawned {
        Ok(thread) => {
            // Nobody sends: the other end is dropped when the listener has ended.
            let _ = end.await;
            // What is left of the thread now is its return.
            let _ = thread.join();
        }
        Err(error) => tracing::error!(handler = %name, %error, "no thread for the handler"),
    }
}

/// What one holds of a registered handler. Dropping it detaches: the handler goes on until the
/// informer ends.
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
    /// Whether this handler has handled everything that was in the cache when it was registered. Once
    /// true, it stays true, unless the informer [fails](crate::status::Status::failure). Takes no lock.
    #[doc(alias = "HasSynced")]
    #[doc(alias = "HasSyncedChecker")]
    pub fn has_synced(&self) -> bool {
        self.handled.load(Ordering::Acquire) && self.informer.has_synced()
    }

    /// Waits until [`Registration::has_synced`]; in vain, with a
    /// [`SyncError`](crate::status::SyncError), if the handler is removed or the informer stops before.
    pub fn wait_for_sync(&self) -> WaitForSync {
        WaitForSync::handler(
            Arc::clone(&self.name),
            Arc::clone(&self.informer.shared.expects),
            self.informer.status(),
            self.synced.clone(),
        )
    }

    /// How many notifications wait for this handler, with the one it is hearing; a list, a resync or
    /// a late join counts as one.
    pub fn depth(&self) -> usize {
        self.buffer.depth()
    }

    /// For how long the oldest of them has been waiting, since the cache changed, by tokio's clock;
    /// zero if there is none.
    pub fn lag(&self) -> Duration {
        self.status().lag
    }

    /// How many events came to nothing, or to one with another, while they waited; only
    /// [`ListenerBuffer::Coalesce`] does that.
    pub fn coalesced(&self) -> u64 {
        self.status().coalesced
    }

    /// How this handler is getting on, all of it at one moment; also after the informer has ended.
    pub fn status(&self) -> HandlerStatus {
        self.buffer.status()
    }

    /// Removes the handler and waits until it has ended: the callback in progress ends, the rest is
    /// discarded. Afterwards it hears nothing, and the handler has been dropped. An informer that has
    /// stopped has removed it already; one that is stopping lets it end in the same way. A handler can
    /// be removed once only, for this consumes the registration.
    ///
    /// A handler that removes itself, from inside its callback, is not waited for: it would be waiting
    /// for its own end. The callback ends as usual then, and no other follows. What can't be seen from
    /// here still waits for ever: a callback that waits for a task that waits for this, or two
    /// handlers that wait for each other's removal.
    ///
    /// # Cancel safety
    /// The removal is under way from the first poll on; dropping the future only stops waiting. Before,
    /// it detaches, as dropping the registration does.
    #[doc(alias = "RemoveEventHandler")]
    #[doc(alias = "ShutDownEventHandler")]
    pub async fn remove(self) {
        self.close();
        if !self.buffer.is_told_here() {
            self.buffer.until_ended().await;
        }
    }

    /// Begins to remove the handler, and waits for nothing: it hears of no event that it is not hearing
    /// already.
    pub(crate) fn close(&self) {
        // At once, for the informer obeys only when it comes to it.
        self.buffer.close(Closing::Discard);
        // A refusal means that the informer has stopped, and the handler with it.
        let _ = self.informer.command(Command::RemoveListener(self.id));
    }

    /// Waits until this handler has handled everything that is in the cache now, or has ended.
    pub(crate) async fn idle(&self) {
        self.informer.handed_on().await;
        self.buffer.until_idle().await;
    }
}
