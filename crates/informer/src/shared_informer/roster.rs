//! Keeps weak references to the buffers of an informer's handlers and subscriptions.
//!
//! The informer uses the references to report the status of the handlers, and to wait until the handlers are
//! idle.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::processor::{Buffer, HandlerStatus};

pub(super) struct Roster<K>(Mutex<Vec<Member<K>>>);

struct Member<K> {
    buffer: Weak<Buffer<K>>,
    /// `true` for a handler, `false` for a subscription.
    has_task: bool,
}

impl<K> Roster<K> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    pub(super) fn enlist(&self, buffer: &Arc<Buffer<K>>, has_task: bool) {
        let mut members = self.0.lock();
        members.retain(|member| member.buffer.strong_count() > 0);
        members.push(Member {
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
    /// If a handler calls this method, the wait does not include that handler.
    pub(super) async fn until_idle(&self) {
        // Subscriptions are excluded, because they may never be polled.
        for buffer in self.buffers(|member| member.has_task) {
            if !buffer.is_told_here() {
                buffer.until_idle().await;
            }
        }
    }

    fn buffers(&self, wanted: impl Fn(&Member<K>) -> bool) -> Vec<Arc<Buffer<K>>> {
        let members = self.0.lock();
        let wanted = members.iter().filter(|member| wanted(member));
        wanted
            .filter_map(|member| member.buffer.upgrade())
            .collect()
    }
}
