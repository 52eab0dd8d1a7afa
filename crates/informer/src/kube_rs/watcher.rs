//! [`watcher`]: converts the events of an informer into those of kube's watcher.
//!
//! The stream reports each missed deletion, and delivers exactly one `Init` sequence. It sends no request of
//! its own.

use std::{
    collections::BTreeMap,
    pin::Pin,
    task::{Context, Poll, ready},
};

use ::kube_runtime::watcher::{Error, Event as Told};
use derive_where::derive_where;
use futures_core::Stream;

use super::Shared;
use crate::{
    event_handler::Event,
    object::{Object, ObjectName},
    shared_informer::Subscription,
};

/// Returns the events of an informer as the events of kube's `watcher`, without a second watch.
///
/// The current objects in the cache are delivered as one `Init`, one `InitApply` per object, and `InitDone`;
/// all later changes as `Apply` and `Delete`. There is no second `Init`. After a relist the informer delivers
/// the differences as changes, so missed deletions are delivered too. kube's own watcher does not deliver them.
///
/// The stream never yields an error, although its item type is a `Result`, and it needs no `default_backoff`:
/// the informer retries by itself, and reports errors through its `status` and `on_error`. The stream ends with
/// the informer.
///
/// Events wait in the subscription's buffer until the stream is polled. A buffer that merges events
/// ([`Coalesce`](crate::shared_informer::ListenerBuffer::Coalesce), with
/// [`subscribe_with`](crate::SharedInformer::subscribe_with)) suits the reconciled kind, because kube keeps
/// only one request per object anyway. For an owned kind, a merged buffer does not deliver an object that was
/// added and deleted in between. Dropping the stream ends the subscription.
///
/// A state that does not decode is not applied, and kube keeps the previous one. The deletion of the object is
/// delivered with its final state. If the final state does not decode, it is delivered with the last state that
/// kube received. If kube received no state of the object, its deletion is not delivered.
///
/// A transform of the informer must keep the fields that kube reads: name, namespace and, for `owns_stream`,
/// the owner references.
pub fn watcher<K>(objects: Subscription<K>) -> Watcher<K> {
    Watcher {
        objects: Some(objects),
        begun: false,
        words: Words::default(),
    }
}

/// The stream that [`watcher()`] returns.
///
/// # Cancel safety
/// Dropping a future that waits for the next event loses no event.
#[must_use = "streams do nothing unless polled"]
#[derive_where(Debug)]
pub struct Watcher<K> {
    /// The informer's events; `None` after the informer has ended.
    objects: Option<Subscription<K>>,
    begun: bool,
    #[derive_where(skip)]
    words: Words<K>,
}

impl<K> Stream for Watcher<K> {
    type Item = Result<Told<Shared<K>>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if !std::mem::replace(&mut this.begun, true) {
            return Poll::Ready(Some(Ok(Told::Init)));
        }
        loop {
            if let Some(late) = this.words.late() {
                return Poll::Ready(Some(Ok(late)));
            }
            let Some(objects) = &mut this.objects else {
                return Poll::Ready(None);
            };
            match ready!(Pin::new(objects).poll_next(cx)) {
                Some(event) => {
                    if let Some(event) = this.words.translate(event) {
                        return Poll::Ready(Some(Ok(event)));
                    }
                }
                None => this.objects = None,
            }
        }
    }
}

/// Translates the events of an informer into kube's events.
///
/// With several sources, one source can already deliver changes and deletions from its watch while another one
/// has not listed yet. kube's stores treat all events before `InitDone` as the initial list, and cannot apply a
/// deletion in it. Such deletions are therefore delivered after `InitDone`.
#[derive_where(Default)]
struct Words<K> {
    synced: bool,
    /// Objects deleted before `InitDone`; their deletions are delivered after it.
    gone: BTreeMap<ObjectName, Shared<K>>,
    /// The last state delivered to kube of each object that is decoded on demand. A later state may not decode,
    /// and kube's deletion event needs an object.
    given: BTreeMap<ObjectName, Object<K>>,
}

impl<K> Words<K> {
    fn translate(&mut self, event: Event<K>) -> Option<Told<Shared<K>>> {
        match event {
            Event::Added { object, .. } | Event::Updated { new: object, .. } => {
                // A state that does not decode is skipped: kube keeps the previous one.
                let shared = shared(&object)?;
                let name = object.object_name();
                if object.live().is_none() {
                    self.given.insert(name.clone(), object.clone());
                }
                if self.synced {
                    return Some(Told::Apply(shared));
                }
                self.gone.remove(name);
                Some(Told::InitApply(shared))
            }
            Event::Deleted(deleted) => {
                let name = deleted.object_name();
                let given = self.given.remove(name);
                let last = deleted.object().and_then(shared);
                let last = last.or_else(|| given.as_ref().and_then(shared))?;
                if self.synced {
                    return Some(Told::Delete(last));
                }
                self.gone.insert(name.clone(), last);
                None
            }
            Event::Synced => {
                self.synced = true;
                Some(Told::InitDone)
            }
        }
    }

    /// Returns the next deletion that was deferred until after `InitDone`.
    fn late(&mut self) -> Option<Told<Shared<K>>> {
        if !self.synced {
            return None;
        }
        let (_, gone) = self.gone.pop_first()?;
        Some(Told::Delete(gone))
    }
}

/// Returns the object for kube, or `None` if its state does not decode; a packed or lazy cache decodes it
/// here.
fn shared<K>(object: &Object<K>) -> Option<Shared<K>> {
    object.get().ok().map(Shared::from)
}

#[cfg(test)]
mod tests;
