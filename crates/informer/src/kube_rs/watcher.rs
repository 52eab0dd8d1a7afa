//! [`watcher`]: what an informer tells, in the words of kube's watcher.

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

/// The events of kube's `watcher`, from an informer that watches already.
///
/// What is in the cache comes as one `Init`, an `InitApply` each and `InitDone`; everything after it as
/// `Apply` and `Delete`. There is no second `Init`: what an informer finds out by a relist it tells as
/// changes, so deletions that were missed are told too, which kube's own watcher does not do.
///
/// It never fails, whatever its type says, and needs no `default_backoff`: the informer tries again by
/// itself, and its `status` and `on_error` tell of it. It ends with the informer.
///
/// What nobody polls for waits as the subscription's buffer says. One that merges
/// ([`Coalesce`](crate::shared_informer::ListenerBuffer::Coalesce), by
/// [`subscribe_with`](crate::SharedInformer::subscribe_with)) suits the kind that is reconciled, of which
/// kube keeps one request for each object anyway; an owned object that came and went in between is not
/// told then. Dropping the stream ends the subscription.
///
/// A state that can't be decoded is not applied, and kube keeps the one before; the object's deletion is
/// told, with its final state or, if that can't be decoded, with the last one that kube was given. An object
/// of which kube was given none is not deleted there either.
///
/// A transform of the informer must leave what kube looks at: name, namespace, and for `owns_stream` the
/// owner references.
pub fn watcher<K>(objects: Subscription<K>) -> Watcher<K> {
    Watcher {
        objects: Some(objects),
        begun: false,
        words: Words::default(),
    }
}

/// The stream that [`watcher()`] gives.
///
/// # Cancel safety
/// Dropping a future that waits for the next event takes no event.
#[must_use = "streams do nothing unless polled"]
#[derive_where(Debug)]
pub struct Watcher<K> {
    /// `None` once it has ended.
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

/// Finds kube's words for an informer's events.
///
/// The one difficulty is an informer over several sources: one of them may be watching, and tell of
/// changes and deletions, while another has not listed yet. kube's stores take what they hear before
/// `InitDone` for the beginning, and know no deletion in it.
#[derive_where(Default)]
struct Words<K> {
    synced: bool,
    /// Deleted before the beginning was complete; told once it is.
    gone: BTreeMap<ObjectName, Shared<K>>,
    /// The last state that kube was given of each object that is decoded on demand. The state in which it is
    /// deleted, or one before that, may turn out not to decode, and kube's event of a deletion has an object.
    given: BTreeMap<ObjectName, Object<K>>,
}

impl<K> Words<K> {
    fn translate(&mut self, event: Event<K>) -> Option<Told<Shared<K>>> {
        match event {
            Event::Added { object, .. } | Event::Updated { new: object, .. } => {
                // Kube keeps the state before until there is one that decodes, or the object is deleted.
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

    /// The next deletion from before the beginning was complete, now that it is.
    fn late(&mut self) -> Option<Told<Shared<K>>> {
        if !self.synced {
            return None;
        }
        let (_, gone) = self.gone.pop_first()?;
        Some(Told::Delete(gone))
    }
}

/// `None` for a state that does not decode, which a packed or lazy cache notices here.
fn shared<K>(object: &Object<K>) -> Option<Shared<K>> {
    object.get().ok().map(Shared::from)
}

#[cfg(test)]
mod tests;
