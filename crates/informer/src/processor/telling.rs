//! [`Telling`]: calls a handler, event by event; a panic and slowness are confined to it.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::time::Instant;

use super::Buffer;
use crate::{
    event_handler::{Event, EventHandler},
    logs::LogLimiter,
    panics::panic_message,
};

/// After a handler has panicked the next event comes so much later, as in client-go.
const AFTER_PANIC: Duration = Duration::from_secs(1);

/// A callback that takes longer is logged when others wait behind it, as client-go does; not more often
/// than the limiter allows, because a slow handler is slow every time.
const SLOW: Duration = Duration::from_millis(100);

pub(super) struct Telling<H> {
    handler: H,
    name: Arc<str>,
    slow: LogLimiter,
}

impl<H> Telling<H> {
    pub(super) fn new(handler: H, name: Arc<str>) -> Self {
        Self {
            handler,
            name,
            slow: LogLimiter::default(),
        }
    }

    /// Calls the handler and waits for its end; after a panic also for the pause behind it, unless the buffer
    /// is discarded.
    pub(super) async fn tell<K>(&mut self, event: Event<K>, buffer: &Buffer<K>)
    where
        K: Send + Sync + 'static,
        H: EventHandler<K>,
    {
        let object = event.object_name().cloned();
        let object = || object.as_ref().map_or("-", |name| name.as_str());
        let began = Instant::now();
        // The call itself may panic too, before there is a future.
        let told = AssertUnwindSafe(async { self.handler.handle(event).await })
            .catch_unwind()
            .await;
        let took = began.elapsed();
        if took > SLOW && buffer.depth() > 1 {
            self.log_slow(object(), took, buffer.depth());
        }
        if let Err(panic) = told {
            let reason = panic_message(&*panic);
            buffer.panicked();
            tracing::error!(handler = %self.name, object = object(), reason, "a handler panicked");
            tokio::select! {
                biased;
                () = buffer.until_discarding() => {}
                () = tokio::time::sleep(AFTER_PANIC) => {}
            }
        }
    }

    fn log_slow(&mut self, object: &str, took: Duration, depth: usize) {
        let (now, handler) = (Instant::now(), &self.name);
        let times = self.slow.left_out(now);
        if times > 0 {
            tracing::warn!(%handler, times, "it was slow more often within a minute");
        }
        if self.slow.line(now) {
            tracing::warn!(%handler, object, ?took, depth, "slow handler");
        }
    }
}
