//! [`Calls`] calls one handler with one event at a time, catches the handler's panics, and logs slow calls.
//!
//! The module does not decide which events a handler receives.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use tokio::time::Instant;

use super::Buffer;
use crate::{
    event_handler::{Event, EventHandler},
    logs::LogLimiter,
    panics::panic_message,
};

/// Delay between a panic of the handler and the next event, as in client-go.
const AFTER_PANIC: Duration = Duration::from_secs(1);

/// Duration above which a callback is logged as slow if other events wait, as in client-go.
const SLOW: Duration = Duration::from_millis(100);

pub(super) struct Calls<H> {
    handler: H,
    name: Arc<str>,
    slow: LogLimiter,
}

impl<H> Calls<H> {
    pub(super) fn new(handler: H, name: Arc<str>) -> Self {
        Self {
            handler,
            name,
            slow: LogLimiter::default(),
        }
    }

    /// Calls the handler with an event, and waits for [`AFTER_PANIC`] if the handler panics.
    pub(super) async fn call<K>(&mut self, event: Event<K>, buffer: &Buffer<K>)
    where
        K: Send + Sync + 'static,
        H: EventHandler<K>,
    {
        let object = event.object_name().cloned();
        let object = || object.as_ref().map_or("-", |name| name.as_str());
        let began = Instant::now();
        // The call may panic before it returns a future, so it is also inside the async block.
        let called = AssertUnwindSafe(async { self.handler.handle(event).await })
            .catch_unwind()
            .await;
        let took = began.elapsed();
        if took > SLOW && buffer.depth() > 1 {
            self.log_slow(object(), took, buffer.depth());
        }
        if let Err(panic) = called {
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
            tracing::warn!(%handler, times, "the handler was slow more often within a minute");
        }
        if self.slow.line(now) {
            tracing::warn!(%handler, object, ?took, depth, "slow handler");
        }
    }
}
