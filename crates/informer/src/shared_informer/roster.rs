//! The handlers and subscriptions of an informer, until each is dropped.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::processor::{Buffer, HandlerStatus};

/// Weak references to the buffers of all handlers and subscriptions, in the order of registration.
pub(super) struct Roster<K>(Mutex<Vec<Listening<K>>>);

struct Listening<K> {
    buffer: Weak<Buffer<K>>,
    /// True for a handler, which the informer runs in a task. False for a subscription, which the user polls.
    has_task: bool,
}

impl<K> Roster<K> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    pub(super) fn enlist(&self, buffer: &Arc<Buffer<K>>, has_task: bool) {
        let mut listening = self.0.lock();
        listening.retain(|listening| listening.buffer.strong_count() > 0);
        listening.push(Listening {
            buffer: Arc::downgrade(buffer),
            has_task,
        });
    }

    /// Returns the status of each handler and subscription that has not ended.
    pub(super) fn status(&self) -> Vec<HandlerStatus> {
        let mut buffers = self.buffers(|_| true);
        buffers.retain(|buffer| !buffer.has_ended());
        buffers.iter().map(|buffer| buffer.status()).collect()
    }

    /// Waits until every handler has handled all events in its buffer.
    ///
    /// Does not wait for subscriptions, which may not be polled, or for the handler whose callback calls this.
    pub(super) async fn until_idle(&self) {
        for buffer in self.buffers(|listening| listening.has_task) {
            if !buffer.is_told_here() {
                buffer.until_idle().await;
            }
        }
    }

    fn buffers(&self, wanted: impl Fn(&Listening<K>) -> bool) -> Vec<Arc<Buffer<K>>> {
        let listening = self.0.lock();
        let wanted = listening.iter().filter(|listening| wanted(listening));
        wanted
            .filter_map(|listening| listening.buffer.upgrade())
            .collect()
    }
}
