//! [`Lapsed`]: a stream of the names of lapsed writes, for which handlers may receive no event.
//!
//! Guarantees:
//!
//! - Each stream receives every lapse after its creation.
//! - The overlay drops the write before its name is delivered, so a later read sees the state after the lapse.
//! - Lapses are detected by a read or write of any clone of the overlay, after a batch of the informer, and by a
//!   timer at the expiry of the oldest write.
//!
//! Without a stream there is no timer, and no lapse is recorded. While the overlay is empty, a stream waits
//! for the next write.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::Pin,
    task::{Context, Poll},
};

use derive_where::derive_where;
use futures_core::Stream;
use futures_util::{StreamExt, stream};
use kube_core::Resource;

use super::MutationCache;
use crate::{clock, object::ObjectName};

/// Stream of the names that lapsed, as defined by [`MutationCache::lapsed`]; ends with the informer.
///
/// Dropping the stream ends it. A stream that is not polled keeps each name once.
///
/// # Cancel safety
/// Dropping a future that waits for the next name loses no name.
#[derive_where(Debug)]
#[derive_where(skip_inner)]
pub struct Lapsed {
    names: Pin<Box<dyn Stream<Item = ObjectName> + Send>>,
}

impl Lapsed {
    pub(super) fn new<K>(overlay: MutationCache<K>) -> Self
    where
        K: Resource + Send + Sync + 'static,
    {
        let listener = Listener::new(overlay);
        let names = stream::unfold(listener, async move |listener| {
            let name = listener.next().await?;
            Some((name, listener))
        });
        Self {
            names: Box::pin(names.fuse()),
        }
    }

    /// Returns the next name, or `None` when the informer has ended.
    ///
    /// The method does the same as `StreamExt::next`, without an import of that trait.
    ///
    /// # Cancel safety
    /// Dropping the future loses no name.
    pub async fn next(&mut self) -> Option<ObjectName> {
        std::future::poll_fn(|context| self.names.as_mut().poll_next(context)).await
    }
}

impl Stream for Lapsed {
    type Item = ObjectName;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ObjectName>> {
        self.names.as_mut().poll_next(cx)
    }
}

/// Names that lapsed and that a stream has not delivered yet, for each stream.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    next: u64,
    waiting: BTreeMap<u64, BTreeSet<ObjectName>>,
}

impl Listeners {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn record(&mut self, names: &[ObjectName]) {
        for waiting in self.waiting.values_mut() {
            waiting.extend(names.iter().cloned());
        }
    }

    fn add(&mut self) -> u64 {
        self.next += 1;
        self.waiting.insert(self.next, BTreeSet::new());
        self.next
    }

    fn take(&mut self, listener: u64) -> Option<ObjectName> {
        self.waiting.get_mut(&listener)?.pop_first()
    }
}

/// Registration of one stream as a listener; removed on drop.
struct Listener<K> {
    overlay: MutationCache<K>,
    id: u64,
}

impl<K> Listener<K> {
    fn new(overlay: MutationCache<K>) -> Self {
        let id = overlay.shared.laid.lock().listeners.add();
        Self { overlay, id }
    }
}

impl<K> Drop for Listener<K> {
    fn drop(&mut self) {
        let mut laid = self.overlay.shared.laid.lock();
        laid.listeners.waiting.remove(&self.id);
    }
}

impl<K> Listener<K>
where
    K: Resource + Send + Sync + 'static,
{
    async fn next(&self) -> Option<ObjectName> {
        let MutationCache {
            informer, shared, ..
        } = &self.overlay;
        loop {
            // Created before the check, so that a later change wakes this task.
            let changed = shared.changed.notified();
            let applied = informer.applied();
            let stopped = informer.is_stopped();
            let expiry = self.overlay.settle();
            if let Some(name) = shared.laid.lock().listeners.take(self.id) {
                return Some(name);
            }
            if stopped {
                return None;
            }
            tokio::select! {
                biased;
                () = informer.stopped() => {}
                () = changed => {}
                () = applied, if expiry.is_some() => {}
                () = clock::until(expiry) => {}
            }
        }
    }
}
