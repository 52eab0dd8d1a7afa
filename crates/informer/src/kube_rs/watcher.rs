//! Converts the events of an informer to the events of kube's `watcher`.
//!
//! Guarantees: the converted stream, [`Watcher`], reports each deletion that the informer's watch missed, and
//! delivers exactly one `Init` sequence. It sends no requests.

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
/// The stream first delivers the current objects of the cache: one `Init`, one `InitApply` per object, and
/// one `InitDone`. It then delivers all later changes as `Apply` and `Delete`, and never a second `Init`.
/// After a relist, the stream delivers only the differences. It reports the deletions that the watch has
/// missed as `Delete`, which kube's own watcher does not do.
///
/// The stream never yields an error, although its item type is a `Result`. It needs no `default_backoff`,
/// because the informer retries by itself. The informer reports errors through its `status` and `on_error`.
/// The stream ends when the informer ends. Dropping the stream ends the subscription.
///
/// # Buffering
///
/// Events wait in the subscription's buffer until the stream is polled. For the kind that kube's `Controller`
/// reconciles, use a buffer that merges the events of an object
/// ([`Coalesce`](crate::shared_informer::ListenerBuffer::Coalesce), with
/// [`subscribe_with`](crate::SharedInformer::subscribe_with)). Merged events are sufficient, because kube
/// keeps only one reconciliation request per object. Do not use such a buffer for a stream that you pass to
/// `Controller::owns_stream`. The buffer drops the events of an object that is added and deleted before the
/// stream is polled. kube then does not reconcile the owner.
///
/// # Decode errors and transforms
///
/// If a new state of an object does not decode, the stream does not deliver this state, and kube keeps the
/// previous state. A deletion is delivered with the object's final state. If the final state does not decode,
/// the deletion contains the last state that kube received. If kube has received no state of the object, the
/// stream does not deliver the deletion.
///
/// A transform of the informer must keep the fields that kube reads: the name, the namespace and, for
/// `owns_stream`, the owner references.
pub fn watcher<K>(objects: Subscription<K>) -> Watcher<K> {
    Watcher {
        objects: Some(objects),
        begun: false,
        words: Words::default(),
    }
}

/// Stream of an informer's events as events of kube's `watcher`. [`watcher()`] creates it.
///
/// # Cancel safety
/// Dropping a future that waits for the next event loses no event.
#[must_use = "streams do nothing unless polled"]
#[derive_where(Debug)]
pub struct Watcher<K> {
    /// The events of the informer; `None` after the informer has ended.
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

/// Converts an informer's events to kube's events.
///
/// kube's stores accept no deletion before `InitDone`, so an earlier deletion is delivered after `InitDone`.
#[derive_where(Default)]
struct Words<K> {
    synced: bool,
    /// Last states of the objects that were deleted before `InitDone`.
    gone: BTreeMap<ObjectName, Shared<K>>,
    /// Last state that kube received of each object. A deletion contains this state if the final state does
    /// not decode.
    ///
    /// The map is empty if the cache decodes objects before it stores them.
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

    /// Removes and returns one of the deletions that were received before `InitDone`.
    ///
    /// Returns `None` before `InitDone`, or if no such deletion remains.
    fn late(&mut self) -> Option<Told<Shared<K>>> {
        if !self.synced {
            return None;
        }
        let (_, gone) = self.gone.pop_first()?;
        Some(Told::Delete(gone))
    }
}

/// Returns the object for kube, decoded if necessary, or `None` if it does not decode.
fn shared<K>(object: &Object<K>) -> Option<Shared<K>> {
    object.get().ok().map(Shared::from)
}

#[cfg(test)]
mod tests;
