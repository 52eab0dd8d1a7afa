//! What a handler hears, and how a handler is written: as a type, or as closures.

use std::{collections::BTreeSet, future::Future, marker::PhantomData, sync::Arc};

use derive_where::derive_where;
use futures_core::future::BoxFuture;

use crate::{
    indexer::Cause,
    object::{Deleted, Object, ObjectName},
    workqueue::RateLimitingQueue,
};

/// What a handler is told.
///
/// Per object the sequence is: `Added`, any number of `Updated`, `Deleted`, and so on; `old` is always
/// what was told last. Each event comes after the cache has changed, which may be further ahead.
#[derive(Debug)]
#[derive_where(Clone)]
pub enum Event<K> {
    /// An object is new to this handler.
    #[doc(alias = "OnAdd")]
    Added {
        /// The object.
        object: Object<K>,
        /// Whether it was there when this handler began: part of the first list, or of the cache
        /// that a late handler is told first.
        #[doc(alias = "isInInitialList")]
        in_initial_list: bool,
    },
    /// An object has another state than this handler was told last; or, with [`Cause::Resync`] and
    /// sometimes [`Cause::Relist`], the same.
    #[doc(alias = "OnUpdate")]
    Updated {
        /// What was told last.
        old: Object<K>,
        /// What is now.
        new: Object<K>,
        /// Why it is told.
        cause: Cause,
    },
    /// An object is gone.
    #[doc(alias = "OnDelete")]
    Deleted(Deleted<K>),
    /// All `Added` of the beginning have been told.
    #[doc(alias = "HasSynced")]
    #[doc(alias = "SingleFileTracker")]
    #[doc(alias = "AsyncTracker")]
    Synced,
}

impl<K> Event<K> {
    /// The object: of a deletion its last known state, if one is known; `None` for [`Event::Synced`].
    pub fn object(&self) -> Option<&Object<K>> {
        match self {
            Self::Added { object, .. } => Some(object),
            Self::Updated { new, .. } => Some(new),
            Self::Deleted(deleted) => deleted.object(),
            Self::Synced => None,
        }
    }

    /// The state that this handler was told before; of an update only.
    pub fn old(&self) -> Option<&Object<K>> {
        match self {
            Self::Updated { old, .. } => Some(old),
            _ => None,
        }
    }

    /// Whether it is about an object that was there when this handler began: part of the first list, or of the
    /// cache that a late handler is told first.
    pub fn is_in_initial_list(&self) -> bool {
        matches!(
            self,
            Self::Added {
                in_initial_list: true,
                ..
            }
        )
    }

    /// What led to it; of an update only.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Updated { cause, .. } => Some(*cause),
            _ => None,
        }
    }

    /// Which object it is about; `None` for [`Event::Synced`].
    pub fn object_name(&self) -> Option<&ObjectName> {
        match self {
            Self::Deleted(deleted) => Some(deleted.object_name()),
            _ => self.object().map(Object::object_name),
        }
    }
}

/// Hears every change of an informer's cache, one at a time and in order.
///
/// While a call is waiting, this handler's events gather in its own buffer; nobody else notices. Long
/// work belongs into a work queue. A call that blocks its thread instead of waiting holds up the
/// runtime; a handler that must block is registered with `dedicated_thread()`.
///
/// A panic is caught and reported, the event counts as handled, and the next one follows after one
/// second. (With `panic = "abort"` nothing can be caught.)
///
/// What is handed over can't be changed:
///
/// ```compile_fail,E0594
/// # use kube_informer::event_handler::{Event, EventHandler};
/// # use k8s_openapi::api::core::v1::Pod;
/// struct Careless;
/// impl EventHandler<Pod> for Careless {
///     async fn handle(&mut self, event: Event<Pod>) {
///         if let Event::Added { object, .. } = event {
///             object.get().unwrap().metadata.labels = None; // the cache's own object
///         }
///     }
/// }
/// ```
#[doc(alias = "ResourceEventHandler")]
#[doc(alias = "TypedResourceEventHandler")]
pub trait EventHandler<K>: Send + 'static {
    /// Handles one event. The next one comes when the future is ready.
    ///
    /// # Cancel safety
    /// When the informer is dropped instead of shut down, the future is dropped at an await.
    fn handle(&mut self, event: Event<K>) -> impl Future<Output = ()> + Send;
}

/// What a closure may return: nothing, or a future that returns nothing.
///
/// `M` only keeps the two apart for the compiler.
pub trait Outcome<M>: Sealed<M> {
    #[doc(hidden)]
    fn into_waiting(self) -> Option<BoxFuture<'static, ()>>;
}

/// Marks a closure that is done when it returns.
#[derive(Debug)]
pub struct Done;

/// Marks a closure that returns a future.
#[derive(Debug)]
pub struct Waits;

/// Nothing else can be an outcome, so that the two kinds stay apart.
#[doc(hidden)]
pub trait Sealed<M> {}

impl Sealed<Done> for () {}

impl<F: Future<Output = ()> + Send + 'static> Sealed<Waits> for F {}

impl Outcome<Done> for () {
    fn into_waiting(self) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

impl<F: Future<Output = ()> + Send + 'static> Outcome<Waits> for F {
    fn into_waiting(self) -> Option<BoxFuture<'static, ()>> {
        Some(Box::pin(self))
    }
}

type Callback<A> = Box<dyn FnMut(A) -> Option<BoxFuture<'static, ()>> + Send>;

/// A handler made of closures, each optional, sync or async.
#[doc(alias = "ResourceEventHandlerFuncs")]
#[doc(alias = "ResourceEventHandlerDetailedFuncs")]
#[doc(alias = "TypedResourceEventHandlerFuncs")]
#[derive_where(Default)]
pub struct Callbacks<K> {
    add: Option<Callback<(Object<K>, bool)>>,
    update: Option<Callback<(Object<K>, Object<K>)>>,
    delete: Option<Callback<Deleted<K>>>,
}

impl<K> std::fmt::Debug for Callbacks<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Callbacks")
            .field("add", &self.add.is_some())
            .field("update", &self.update.is_some())
            .field("delete", &self.delete.is_some())
            .finish()
    }
}

impl<K> Callbacks<K> {
    /// No closures: hears nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Called with each new object, and whether it was there at the beginning.
    #[doc(alias = "AddFunc")]
    #[doc(alias = "OnAdd")]
    #[must_use]
    pub fn on_add<R: Outcome<M>, M>(
        mut self,
        mut callback: impl FnMut(Object<K>, bool) -> R + Send + 'static,
    ) -> Self {
        self.add = Some(Box::new(move |(object, initial)| {
            callback(object, initial).into_waiting()
        }));
        self
    }

    /// Called with what was told last and what is now.
    #[doc(alias = "UpdateFunc")]
    #[doc(alias = "OnUpdate")]
    #[must_use]
    pub fn on_update<R: Outcome<M>, M>(
        mut self,
        mut callback: impl FnMut(Object<K>, Object<K>) -> R + Send + 'static,
    ) -> Self {
        self.update = Some(Box::new(move |(old, new)| {
            callback(old, new).into_waiting()
        }));
        self
    }

    /// Called with what is gone.
    #[doc(alias = "DeleteFunc")]
    #[doc(alias = "OnDelete")]
    #[must_use]
    pub fn on_delete<R: Outcome<M>, M>(
        mut self,
        mut callback: impl FnMut(Deleted<K>) -> R + Send + 'static,
    ) -> Self {
        self.delete = Some(Box::new(move |deleted| callback(deleted).into_waiting()));
        self
    }
}

impl<K: Send + Sync + 'static> EventHandler<K> for Callbacks<K> {
    async fn handle(&mut self, event: Event<K>) {
        let waiting = match event {
            Event::Added {
                object,
                in_initial_list,
            } => self
                .add
                .as_mut()
                .and_then(|add| add((object, in_initial_list))),
            Event::Updated { old, new, .. } => {
                self.update.as_mut().and_then(|update| update((old, new)))
            }
            Event::Deleted(deleted) => self.delete.as_mut().and_then(|delete| delete(deleted)),
            Event::Synced => None,
        };
        if let Some(waiting) = waiting {
            waiting.await;
        }
    }
}

/// A handler that hears only of the objects a filter lets through.
///
/// An object that begins to pass is told as added (not as initial), one that ceases to pass as
/// deleted with its last passing state. What was told as added is told as deleted in the end, also if
/// its last state does not pass, as when a [`Coalesce`](crate::shared_informer::ListenerBuffer::Coalesce)
/// buffer has merged the two; client-go drops that deletion. For this the names of all objects are
/// remembered that it has let through.
#[doc(alias = "FilteringResourceEventHandler")]
#[doc(alias = "TypedFilteringResourceEventHandler")]
#[derive_where(Debug)]
#[derive_where(skip_inner)]
pub struct Filtering<K, F, H> {
    filter: F,
    handler: H,
    told: BTreeSet<ObjectName>,
    kind: PhantomData<fn(K)>,
}

impl<K, F, H> Filtering<K, F, H>
where
    F: Fn(&Object<K>) -> bool,
{
    /// Lets through to `handler` what `filter` says yes to.
    pub fn new(filter: F, handler: H) -> Self {
        Self {
            filter,
            handler,
            told: BTreeSet::new(),
            kind: PhantomData,
        }
    }

    fn pass(&mut self, event: Event<K>) -> Option<Event<K>> {
        match event {
            Event::Added { ref object, .. } => self.admits(object).then_some(event),
            Event::Updated { old, new, cause } => {
                let told = self.told.contains(new.object_name());
                match (told, self.admits(&new)) {
                    (true, true) => Some(Event::Updated { old, new, cause }),
                    (false, true) => Some(Event::Added {
                        object: new,
                        in_initial_list: false,
                    }),
                    (true, false) => Some(Event::Deleted(Deleted::Known(old))),
                    (false, false) => None,
                }
            }
            Event::Deleted(ref deleted) => self.told.remove(deleted.object_name()).then_some(event),
            Event::Synced => Some(Event::Synced),
        }
    }

    /// Whether a state passes, which is remembered of its object.
    fn admits(&mut self, object: &Object<K>) -> bool {
        let passes = (self.filter)(object);
        if passes {
            self.told.insert(object.object_name().clone());
        } else {
            self.told.remove(object.object_name());
        }
        passes
    }
}

impl<K, F, H> EventHandler<K> for Filtering<K, F, H>
where
    K: Send + Sync + 'static,
    F: Fn(&Object<K>) -> bool + Send + 'static,
    H: EventHandler<K>,
{
    async fn handle(&mut self, event: Event<K>) {
        if let Some(event) = self.pass(event) {
            self.handler.handle(event).await;
        }
    }
}

/// A handler that puts the name of every object it hears of into a work queue.
#[derive(Debug)]
pub struct Enqueue {
    queue: Arc<RateLimitingQueue<ObjectName>>,
}

/// A handler that puts the name of every object that was added, updated or deleted into `queue`.
pub fn enqueue(queue: &RateLimitingQueue<ObjectName>) -> Enqueue {
    Enqueue {
        queue: Arc::new(queue.clone()),
    }
}

impl<K: Send + Sync + 'static> EventHandler<K> for Enqueue {
    async fn handle(&mut self, event: Event<K>) {
        if let Some(name) = event.object_name() {
            self.queue.add(name.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    fn map(revision: &str) -> Object<ConfigMap> {
        let metadata = json!({"name": "a", "namespace": "shop", "resourceVersion": revision});
        let map = serde_json::from_value(json!({ "metadata": metadata }));
        Object::new(map.unwrap()).unwrap()
    }

    #[test]
    fn an_event_says_what_it_is_about_whatever_it_is() {
        let events = [
            Event::Added {
                object: map("1"),
                in_initial_list: true,
            },
            Event::Updated {
                old: map("1"),
                new: map("2"),
                cause: Cause::Watch,
            },
            Event::Deleted(Deleted::Known(map("3"))),
            Event::Synced,
        ];
        let show = |event: &Event<ConfigMap>| {
            let revision = |object: &Object<ConfigMap>| object.revision().to_string();
            let (object, old) = (event.object().map(revision), event.old().map(revision));
            (object, old, event.is_in_initial_list(), event.cause())
        };
        let text = |revision: &str| Some(revision.to_owned());
        let expected = [
            (text("1"), None, true, None),
            (text("2"), text("1"), false, Some(Cause::Watch)),
            (text("3"), None, false, None),
            (None, None, false, None),
        ];
        assert_eq!(events.each_ref().map(show), expected);
    }
}
