//! Runs a `kube_runtime::Controller` on the events and caches of shared informers.
//!
//! One informer serves any number of controllers, handlers and listers. It sends one list and one watch, and
//! decodes each object once. kube's controller implements scheduling, requeues, error policy, concurrency,
//! graceful shutdown and finalizers. This module does not change them.
//!
//! - [`watcher`] returns the events of an informer as events of kube's `watcher`. It replaces
//!   `watcher(api, config)`, and works with kube's own `reflect`, `applied_objects`, `touched_objects` and
//!   predicates.
//! - [`controller`] replaces kube's `Controller::new`. The resulting controller reconciles an object when the
//!   informer delivers an event of the object.
//! - [`Shared`] is a handle to a cached object. kube's store contains such handles, and `reconcile` receives
//!   them.
//! - `From` converts between [`ObjectName`] and kube's `ObjectRef`.
//!
//! ```no_run
//! # use std::{sync::Arc, convert::Infallible};
//! # use futures_util::StreamExt as _;
//! # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
//! use kube_informer::{Lister, SharedInformerFactory, kube_rs::{self, Shared}};
//! use kube_runtime::{WatchStreamExt as _, controller::Action};
//!
//! # type Error = Infallible;
//! struct Context {
//!     config_maps: Lister<ConfigMap>, // reads without a request, and without another copy
//! }
//!
//! async fn reconcile(deployment: Arc<Shared<Deployment>>, context: Arc<Context>) -> Result<Action, Error> {
//!     # let _ = &context.config_maps;
//!     println!("{:?}", deployment.spec); // the deployment that the cache has
//!     Ok(Action::await_change())
//! }
//!
//! # fn error_policy(_: Arc<Shared<Deployment>>, _: &Error, _: Arc<Context>) -> Action { Action::await_change() }
//! # async fn example(client: kube_client::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let factory = SharedInformerFactory::builder(client).build();
//! let deployments = factory.informer::<Deployment>();
//! let config_maps = factory.informer::<ConfigMap>();
//! let context = Context { config_maps: config_maps.lister() };
//! factory.start();
//! kube_rs::controller(deployments.subscribe()?)
//!     .owns_stream(kube_rs::watcher(config_maps.subscribe()?).touched_objects())
//!     .run(reconcile, error_policy, Arc::new(context))
//!     .for_each(|_| std::future::ready(()))
//!     .await; // ends with the informers
//! # Ok(()) }
//! ```
//!
//! # Memory per object
//!
//! kube's `Controller` reads the objects that it reconciles from a `reflector::Store`, and accepts no other
//! type. A store of `K` contains a second copy of every object, because kube's writer clones each object that
//! it stores. A store of [`Shared`] contains only handles to the objects of the cache. On a 64-bit machine,
//! the store of [`Shared`] uses for each object:
//!
//! - about 120 to 240 bytes in a hash table. A slot of the table has 104 bytes for the key and a pointer, and
//!   between 7/16 and 7/8 of the slots are used;
//! - 32 bytes for the handle;
//! - the text of four strings: name, namespace, uid and revision.
//!
//! With the overhead of the allocations, the sum is about 300 to 400 bytes per object, independent of the
//! object's size. A store of `K` uses the same amount in addition to its copy of the object.
//!
//! A kind that is used only as a trigger (`owns_stream`, `watches_stream`) has no store. With
//! `owns_stream`, each event costs one copy of the object's metadata.
//!
//! An informer that was built with `packed()` or `lazy()` decodes an object when the object is read. For such
//! an informer, the stream of [`watcher`] also stores the name and a handle of each object.
//!
//! # State that a reconciler reads
//!
//! kube's store changes only when the controller is polled, so its objects can be older than those of the
//! informer's cache. To read the newest cached state of the reconciled object, `reconcile` calls
//! `lister.get(&deployment.object_name())` of a [`Lister`](crate::lister::Lister). A reconciler should also
//! read other kinds through listers. Wait until the informers of these kinds have synced before you run the
//! controller (`factory.wait_for_cache_sync()`), because kube waits only for the reconciled kind.

mod shared;
mod watcher;

pub use self::{
    shared::Shared,
    watcher::{Watcher, watcher},
};

use std::hash::Hash;

use ::kube_runtime::{
    Controller, WatchStreamExt,
    reflector::{self, Lookup, ObjectRef},
};
use kube_core::Resource;
use serde::de::DeserializeOwned;

use crate::{object::ObjectName, shared_informer::Subscription};

/// Returns a kube `Controller` that reconciles the objects of an informer.
///
/// The controller starts when the informer has synced, and first reconciles all objects in the cache. Use
/// kube's own methods to add other triggers, such as owned kinds.
///
/// When the informer ends, the controller receives no more events from it. When all triggers have ended, the
/// controller's stream ends as after a graceful shutdown. When the controller ends, the informer continues.
///
/// If the kind is known only at run time, pass the stream of [`watcher`] to kube's `for_stream_with` instead.
pub fn controller<K>(objects: Subscription<K>) -> Controller<Shared<K>>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Clone + Default + Eq + Hash,
{
    let (reader, writer) = reflector::store();
    let triggers = watcher(objects).reflect(writer).applied_objects();
    Controller::for_stream(triggers, reader)
}

/// Converts kube's [`ObjectRef`] to the name of the object.
impl<K: Lookup> From<&ObjectRef<K>> for ObjectName {
    fn from(reference: &ObjectRef<K>) -> Self {
        Self::new(reference.namespace.as_deref(), &reference.name)
    }
}

/// Converts the name of an object to kube's [`ObjectRef`], without uid and revision.
impl<K: Lookup> From<&ObjectName> for ObjectRef<K>
where
    K::DynamicType: Default,
{
    fn from(name: &ObjectName) -> Self {
        let reference = Self::new(name.name());
        match name.namespace() {
            Some(namespace) => reference.within(namespace),
            None => reference,
        }
    }
}
