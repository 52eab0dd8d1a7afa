//! [`Lapsed`] is a stream of the names of objects whose local write or deletion lapsed.
//!
//! A [`MutationCache`] is an overlay of local writes and deletions over an informer's cache. A write or
//! deletion lapses when the overlay drops it although the cache has not applied this change.
//!
//! Guarantees:
//!
//! - Each stream delivers the name of each object whose write or deletion lapses after the stream was
//!   created.
//! - The stream delivers a name after the overlay has dropped the write or deletion. Later reads of that
//!   object therefore ignore the dropped write or deletion.
//! - While a task waits for the stream, lapses are detected after each applied batch, at each expiry, and at
//!   each use of the overlay.

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

/// Stream of the names of objects whose write or deletion lapsed. Created by [`MutationCache::lapsed`].
///
/// A [`MutationCache`] is an overlay of local writes and deletions over an informer's cache. A write or
/// deletion lapses when the overlay drops it although the cache has not applied this change. The stream ends
/// when the informer ends.
///
/// While the stream is not polled, it holds each name at most once. After the stream is dropped, the overlay
/// no longer records names for it.
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

    /// Returns the name of the next object whose write or deletion the overlay dropped although the cache has
    /// not applied this change.
    ///
    /// Waits if there is no such name yet. Returns `None` after the informer has ended.
    ///
    /// This method does the same as `StreamExt::next`, but the caller does not have to import that trait.
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

/// For each [`Lapsed`] stream, the names of objects that the stream must still deliver.
///
/// The overlay has dropped a write or deletion of each object although the cache had not applied this change.
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

/// Registration of one [`Lapsed`] stream. Dropping this value removes the registration.
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
