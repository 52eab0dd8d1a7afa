//! Defines event handlers and the events that they receive.
//!
//! A program writes a handler as a type that implements [`EventHandler`], or as closures in [`Callbacks`].
//! [`Filtering`] passes selected events to another handler, and [`Enqueue`] adds object names to a work
//! queue. This module does not buffer or deliver events. The informer does.

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
/// For one object, a handler receives `Added`, then any number of `Updated`, then `Deleted`. The sequence may
/// then repeat. The field `old` of `Updated` is always the state that this handler received last. The cache
/// contains a change before its event is delivered, and may already contain later changes.
#[derive(Debug)]
#[derive_where(Clone)]
pub enum Event<K> {
    /// An object was added, or existed when the handler was registered.
    #[doc(alias = "OnAdd")]
    Added {
        /// The added object.
        object: Object<K>,
        /// Whether the object is part of the handler's initial state. The initial state is the informer's
        /// first list. If the handler was registered after this list, the initial state is the cache's
        /// content at the registration.
        #[doc(alias = "isInInitialList")]
        in_initial_list: bool,
    },
    /// An object was updated, or its current state is delivered again.
    ///
    /// With [`Cause::Resync`], and sometimes with [`Cause::Relist`], the new state equals the old state.
    #[doc(alias = "OnUpdate")]
    Updated {
        /// The object's state in the previous event that this handler received for the object.
        old: Object<K>,
        /// The current state of the object.
        new: Object<K>,
        /// Reason for the event: a watch event, a relist or a resync.
        cause: Cause,
    },
    /// An object was deleted. The value contains the object's name and its last known state.
    #[doc(alias = "OnDelete")]
    Deleted(Deleted<K>),
    /// All `Added` events whose `in_initial_list` is true have been delivered to this handler.
    #[doc(alias = "HasSynced")]
    #[doc(alias = "SingleFileTracker")]
    #[doc(alias = "AsyncTracker")]
    Synced,
}

impl<K> Event<K> {
    /// Returns the object of this event.
    ///
    /// For an update, the result is the new state. For a deletion, the result is the last known state, or
    /// `None` if no state is known. For [`Event::Synced`], the result is `None`.
    pub fn object(&self) -> Option<&Object<K>> {
        match self {
            Self::Added { object, .. } => Some(object),
            Self::Updated { new, .. } => Some(new),
            Self::Deleted(deleted) => deleted.object(),
            Self::Synced => None,
        }
    }

    /// Returns the field `old` of [`Event::Updated`]; `None` for other events.
    pub fn old(&self) -> Option<&Object<K>> {
        match self {
            Self::Updated { old, .. } => Some(old),
            _ => None,
        }
    }

    /// Returns whether the event is [`Event::Added`] with `in_initial_list` true.
    pub fn is_in_initial_list(&self) -> bool {
        matches!(
            self,
            Self::Added {
                in_initial_list: true,
                ..
            }
        )
    }

    /// Returns the cause of an update (watch event, relist or resync); `None` for other events.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Updated { cause, .. } => Some(*cause),
            _ => None,
        }
    }

    /// Returns the name of the event's object; `None` for [`Event::Synced`].
    pub fn object_name(&self) -> Option<&ObjectName> {
        match self {
            Self::Deleted(deleted) => Some(deleted.object_name()),
            _ => self.object().map(Object::object_name),
        }
    }
}

/// Receives the changes of an informer's cache as events.
///
/// The informer delivers one event at a time to a handler, and delivers the events of each object in order.
///
/// While a call of `handle` is pending, further events for this handler wait in the handler's own buffer.
/// Other handlers are not affected. Use a work queue for long work. A call that blocks its thread also blocks
/// the runtime. If a handler must block, call `dedicated_thread()` when you register it.
///
/// The informer catches and logs a panic of `handle`. The event counts as handled, and the next event is
/// delivered one second later. With `panic = "abort"`, a panic ends the process.
///
/// A handler can't modify the objects that it receives, because the cache shares them:
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
    /// If [`Controller::run`](crate::Controller::run) is cancelled, the future of `handle` is dropped at an
    /// await point. The event is then handled only in part.
    fn handle(&mut self, event: Event<K>) -> impl Future<Output = ()> + Send;
}

/// Implemented by the return types that a [`Callbacks`] closure can have: `()`, or a future that returns
/// `()`.
///
/// The marker type `M` distinguishes the two implementations: [`Done`] for `()`, and [`Waits`] for a future.
pub trait Outcome<M>: Sealed<M> {
    #[doc(hidden)]
    fn into_waiting(self) -> Option<BoxFuture<'static, ()>>;
}

/// Marker type for [`Outcome`]: the [`Callbacks`] closure is synchronous and returns `()`.
#[derive(Debug)]
pub struct Done;

/// Marker type for [`Outcome`]: the closure is asynchronous and returns a future.
#[derive(Debug)]
pub struct Waits;

/// Supertrait that prevents implementations of [`Outcome`] outside this module.
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

/// A handler that calls a closure for each added, updated or deleted object.
///
/// Each of the three closures is optional, and either synchronous or asynchronous. The handler ignores
/// [`Event::Synced`].
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

    /// Sets the closure for [`Event::Added`]. Its arguments are the object and `in_initial_list`.
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

    /// Sets the closure for [`Event::Updated`]. Its arguments are the old and the new state of the object.
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

    /// Sets the closure for [`Event::Deleted`]. Its argument is the [`Deleted`] value of the event.
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

/// A handler that delivers events to an inner handler, but only for objects that match a filter.
///
/// If an update makes an object pass the filter, the inner handler receives `Added` with `in_initial_list`
/// false. If an update makes an object fail the filter, the inner handler receives `Deleted` with the last
/// state that passed.
///
/// If an object that passed the filter is deleted, the inner handler receives `Deleted`, even if the final
/// state of the object does not pass. client-go drops the deletion in this case. This handler therefore
/// stores the names of all objects that pass the filter.
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
    /// Creates a handler that delivers events to `handler`, but only for objects that `filter` accepts.
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

/// A handler that adds the name of every added, updated or deleted object to a work queue. Created by
/// [`enqueue`].
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
