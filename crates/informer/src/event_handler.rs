//! The events that a handler receives, and the ways to write a handler: as a type, or as closures.

use std::{collections::BTreeSet, future::Future, marker::PhantomData, sync::Arc};

use derive_where::derive_where;
use futures_core::future::BoxFuture;

use crate::{
    indexer::Cause,
    object::{Deleted, Object, ObjectName},
    workqueue::RateLimitingQueue,
};

/// An event that an informer delivers to a handler.
///
/// The sequence for one object is `Added`, any number of `Updated`, then `Deleted`; it may then repeat.
/// `old` is always the state that was delivered last. The cache contains a change before its event is
/// delivered, and may already contain later changes.
#[derive(Debug)]
#[derive_where(Clone)]
pub enum Event<K> {
    /// An object is new to this handler.
    #[doc(alias = "OnAdd")]
    Added {
        /// The object.
        object: Object<K>,
        /// Whether the object is part of the initial state of this handler: the first list, or the
        /// cache at the time of a late registration.
        #[doc(alias = "isInInitialList")]
        in_initial_list: bool,
    },
    /// An object has a new state.
    ///
    /// With [`Cause::Resync`], and sometimes with [`Cause::Relist`], the state is unchanged.
    #[doc(alias = "OnUpdate")]
    Updated {
        /// The state that was delivered last.
        old: Object<K>,
        /// The new state.
        new: Object<K>,
        /// The reason for this event.
        cause: Cause,
    },
    /// An object was deleted.
    #[doc(alias = "OnDelete")]
    Deleted(Deleted<K>),
    /// All initial `Added` events have been delivered.
    #[doc(alias = "HasSynced")]
    #[doc(alias = "SingleFileTracker")]
    #[doc(alias = "AsyncTracker")]
    Synced,
}

impl<K> Event<K> {
    /// Returns the object of this event.
    ///
    /// For a deletion, this is the last known state, or `None` if no state is known. Returns `None` for
    /// [`Event::Synced`].
    pub fn object(&self) -> Option<&Object<K>> {
        match self {
            Self::Added { object, .. } => Some(object),
            Self::Updated { new, .. } => Some(new),
            Self::Deleted(deleted) => deleted.object(),
            Self::Synced => None,
        }
    }

    /// Returns the previously delivered state; `None` unless the event is an update.
    pub fn old(&self) -> Option<&Object<K>> {
        match self {
            Self::Updated { old, .. } => Some(old),
            _ => None,
        }
    }

    /// Returns whether the event adds an object of the initial state of this handler.
    ///
    /// The initial state is the first list, or the cache at the time of a late registration.
    pub fn is_in_initial_list(&self) -> bool {
        matches!(
            self,
            Self::Added {
                in_initial_list: true,
                ..
            }
        )
    }

    /// Returns the cause of an update; `None` for other events.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Updated { cause, .. } => Some(*cause),
            _ => None,
        }
    }

    /// Returns the name of the object; `None` for [`Event::Synced`].
    pub fn object_name(&self) -> Option<&ObjectName> {
        match self {
            Self::Deleted(deleted) => Some(deleted.object_name()),
            _ => self.object().map(Object::object_name),
        }
    }
}

/// Receives every change of an informer's cache, one event at a time and in order.
///
/// While a call is pending, further events for this handler wait in its own buffer; other handlers are
/// not affected. Use a work queue for long work. A call that blocks its thread also blocks the runtime;
/// register a handler that must block with `dedicated_thread()`.
///
/// A panic is caught and reported. The event counts as handled, and the next event is delivered one
/// second later. With `panic = "abort"`, a panic ends the process.
///
/// A handler can't modify the objects that it receives:
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
    /// Handles one event. The next event is delivered when the future completes.
    ///
    /// # Cancel safety
    /// If the informer is dropped instead of shut down, the future is dropped at an await point.
    fn handle(&mut self, event: Event<K>) -> impl Future<Output = ()> + Send;
}

/// The return type of a callback: `()`, or a future that returns `()`.
///
/// `M` is a marker that distinguishes the two implementations: [`Done`] or [`Waits`].
pub trait Outcome<M>: Sealed<M> {
    #[doc(hidden)]
    fn into_waiting(self) -> Option<BoxFuture<'static, ()>>;
}

/// Marker for [`Outcome`]: a synchronous closure, whose work is done when it returns.
#[derive(Debug)]
pub struct Done;

/// Marker for [`Outcome`]: a closure that returns a future.
#[derive(Debug)]
pub struct Waits;

/// Prevents other implementations of [`Outcome`], which could overlap with the two of this module.
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

/// A handler made of closures. Each closure is optional and either sync or async.
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
    /// Creates a handler without closures, which ignores all events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the closure for [`Event::Added`]; its arguments are the object and `in_initial_list`.
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

    /// Sets the closure for [`Event::Updated`]; its arguments are the old and the new state.
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

    /// Sets the closure for [`Event::Deleted`].
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

/// A handler that receives only the events of objects that pass a filter.
///
/// If an update makes an object pass the filter, the inner handler receives `Added`, with
/// `in_initial_list` false. If an update makes an object fail the filter, it receives `Deleted` with the
/// last state that passed.
///
/// Every object that was delivered as added is eventually delivered as deleted, even if its last state
/// does not pass the filter. This occurs when a
/// [`Coalesce`](crate::shared_informer::ListenerBuffer::Coalesce) buffer has merged an update and a
/// deletion; client-go drops such a deletion. The filter keeps the names of all objects that pass.
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
    /// Creates a handler that forwards the events of objects for which `filter` returns true.
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

    /// Returns whether a state passes the filter, and records the result for the object.
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

/// A handler that adds the name of every event's object to a work queue.
#[derive(Debug)]
pub struct Enqueue {
    queue: Arc<RateLimitingQueue<ObjectName>>,
}

/// Creates a handler that adds the name of every added, updated or deleted object to `queue`.
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
    fn every_kind_of_event_returns_its_object_name_and_cause() {
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
