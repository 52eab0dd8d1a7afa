//! One listener: takes notifications from its buffer and tells them to its handler, one by one.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::{sync::watch, time::Instant};

use super::{Buffer, ahead::Ahead};
use crate::{
    event_handler::{Event, EventHandler},
    logs::Ration,
    panics::panic_message,
};

/// After a handler has panicked the next event comes so much later, as in client-go.
const AFTER_PANIC: Duration = Duration::from_secs(1);

/// A callback that takes longer is logged when others wait behind it, as client-go does; not more often
/// than the ration allows, for a handler that is slow at all is slow every time.
const SLOW: Duration = Duration::from_millis(100);

/// Tells a handler everything that comes into its buffer, until that is closed.
pub(crate) async fn listen<K, H>(
    handler: H,
    ended: EndGuard<K>,
    name: Arc<str>,
    synced: watch::Sender<bool>,
) where
    K: Send + Sync + 'static,
    H: EventHandler<K>,
{
    // In this order the handler is gone before it is said that it has ended, however it ends.
    let ended = ended;
    let mut handler = handler;
    let buffer = &*ended.0;
    let mut slow = Ration::default();
    let mut ahead = Ahead::here();
    buffer.listens_here();
    while let Some(mut expansion) = buffer.next().await {
        ahead.begin(&expansion);
        while let Some(event) = ahead.next(&mut expansion) {
            if !buffer.may_tell() {
                buffer.discard(1 + ahead.rest() + expansion.rest());
                break;
            }
            let is_synced = matches!(event, Event::Synced);
            let noted = ahead.noted(&event);
            tell(&mut handler, event, buffer, &name, &mut slow).await;
            if let Some(object) = &noted {
                ahead.told(object);
            }
            if is_synced {
                // First, so that whoever is woken by the other finds it in the status too.
                buffer.finish();
                synced.send_replace(true);
            }
            // A handler that never waits must not keep the thread from everybody else.
            tokio::task::coop::consume_budget().await;
        }
    }
}

async fn tell<K, H>(
    handler: &mut H,
    event: Event<K>,
    buffer: &Buffer<K>,
    name: &str,
    slow: &mut Ration,
) where
    K: Send + Sync + 'static,
    H: EventHandler<K>,
{
    let object = event.object_name().cloned();
    let object = || object.as_ref().map_or("-", |name| name.as_str());
    let began = Instant::now();
    // The call itself may panic too, before there is a future.
    let told = AssertUnwindSafe(async { handler.handle(event).await })
        .catch_unwind()
        .await;
    let took = began.elapsed();
    if took > SLOW && buffer.depth() > 1 {
        let now = Instant::now();
        let times = slow.left_out(now);
        if times > 0 {
            tracing::warn!(handler = %name, times, "it was slow more often within a minute");
        }
        if slow.line(now) {
            let object = object();
            tracing::warn!(handler = %name, object, ?took, depth = buffer.depth(), "slow handler");
        }
    }
    if let Err(panic) = told {
        let reason = panic_message(&*panic);
        buffer.panicked();
        tracing::error!(handler = %name, object = object(), reason, "a handler panicked");
        tokio::select! {
            biased;
            () = buffer.until_discarding() => {}
            () = tokio::time::sleep(AFTER_PANIC) => {}
        }
    }
}

/// Says that the listener has ended, however it ends: also when its task was never polled.
pub(crate) struct EndGuard<K>(Arc<Buffer<K>>);

impl<K> EndGuard<K> {
    pub(crate) fn new(buffer: &Arc<Buffer<K>>) -> Self {
        Self(Arc::clone(buffer))
    }

    pub(crate) fn buffer(&self) -> &Buffer<K> {
        &self.0
    }
}

impl<K> Drop for EndGuard<K> {
    fn drop(&mut self) {
        self.0.ended();
    }
}
