//! [`watcher`]: what an informer tells, in the words of kube's watcher.

use std::{
    collections::BTreeMap,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use ::kube_runtime::watcher::{Error, Event as Told};
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
pub struct Watcher<K> {
    /// `None` once it has ended.
    objects: Option<Subscription<K>>,
    begun: bool,
    words: Words<K>,
}

impl<K> fmt::Debug for Watcher<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watcher").field(&self.objects).finish()
    }
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
struct Words<K> {
    synced: bool,
    /// Deleted before the beginning was complete; told once it is.
    gone: BTreeMap<ObjectName, Shared<K>>,
}

impl<K> Default for Words<K> {
    fn default() -> Self {
        Self {
            synced: false,
            gone: BTreeMap::new(),
        }
    }
}

impl<K> Words<K> {
    fn translate(&mut self, event: Event<K>) -> Option<Told<Shared<K>>> {
        match event {
            Event::Added { object, .. } | Event::Updated { new: object, .. } => {
                let shared = shared(&object)?;
                if self.synced {
                    return Some(Told::Apply(shared));
                }
                self.gone.remove(object.object_name());
                Some(Told::InitApply(shared))
            }
            Event::Deleted(deleted) => {
                let shared = deleted.object().and_then(shared)?;
                if self.synced {
                    return Some(Told::Delete(shared));
                }
                self.gone.insert(deleted.object_name().clone(), shared);
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

/// `None` for an object that is broken, which nobody who hears events ever meets.
fn shared<K>(object: &Object<K>) -> Option<Shared<K>> {
    object.get().ok().map(Shared::from)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;
    use crate::{indexer::Cause, object::Deleted};

    fn object(name: &str, revision: &str) -> Object<Pod> {
        let meta = json!({"name": name, "namespace": "default", "resourceVersion": revision});
        let pod = serde_json::from_value(json!({"metadata": meta})).unwrap();
        Object::new(pod).unwrap()
    }

    fn added(name: &str, revision: &str) -> Event<Pod> {
        Event::Added {
            object: object(name, revision),
            in_initial_list: true,
        }
    }

    fn updated(name: &str, revision: &str) -> Event<Pod> {
        Event::Updated {
            old: object(name, "1"),
            new: object(name, revision),
            cause: Cause::Watch,
        }
    }

    fn deleted(name: &str, revision: &str) -> Event<Pod> {
        Event::Deleted(Deleted::Known(object(name, revision)))
    }

    /// What kube is told, a word each.
    fn told(events: impl IntoIterator<Item = Event<Pod>>) -> String {
        let mut words = Words::default();
        let mut lines = Vec::new();
        for event in events {
            let first = words.translate(event);
            let late = std::iter::from_fn(|| words.late());
            for event in first.into_iter().chain(late) {
                lines.push(match event {
                    Told::Init => "init".to_owned(),
                    Told::InitApply(object) => format!("init-apply {object:?}"),
                    Told::InitDone => "init-done".to_owned(),
                    Told::Apply(object) => format!("apply {object:?}"),
                    Told::Delete(object) => format!("delete {object:?}"),
                });
            }
        }
        lines.join(", ")
    }

    #[test]
    fn what_comes_after_the_beginning_is_applied_and_deleted() {
        let events = [
            added("a", "1"),
            Event::Synced,
            updated("a", "2"),
            added("b", "3"),
            deleted("a", "4"),
        ];
        assert_eq!(
            told(events),
            "init-apply default/a@1, init-done, apply default/a@2, apply default/b@3, delete default/a@4"
        );
    }

    #[test]
    fn a_change_before_all_sources_are_listed_belongs_to_the_beginning() {
        let events = [added("a", "1"), updated("a", "2"), Event::Synced];
        assert_eq!(
            told(events),
            "init-apply default/a@1, init-apply default/a@2, init-done"
        );
    }

    #[test]
    fn a_deletion_before_all_sources_are_listed_is_told_after_the_beginning() {
        let events = [added("a", "1"), deleted("a", "2"), Event::Synced];
        assert_eq!(
            told(events),
            "init-apply default/a@1, init-done, delete default/a@2"
        );
    }

    #[test]
    fn what_is_there_again_before_all_sources_are_listed_was_never_gone() {
        let events = [
            added("a", "1"),
            deleted("a", "2"),
            added("a", "3"),
            Event::Synced,
        ];
        assert_eq!(
            told(events),
            "init-apply default/a@1, init-apply default/a@3, init-done"
        );
    }
}
