//! Runs a `kube_runtime::Controller` on shared informers, whose caches provide its triggers and its reads.
//!
//! One informer serves any number of controllers, handlers and listers with one list, one watch and one decode
//! per object. The controller itself stays kube's: scheduling, requeues, error policy, concurrency, graceful
//! shutdown and finalizers. This module does not implement any of them.
//!
//! - [`watcher`] returns the events of an informer as those of kube's `watcher`. It replaces
//!   `watcher(api, config)`, and works with kube's own `reflect`, `applied_objects`, `touched_objects` and
//!   predicates.
//! - [`controller`] replaces kube's `Controller::new`, with the events of an informer as the trigger.
//! - [`Shared`] is an object of the cache, in the form that kube's store and `reconcile` receive.
//! - [`ObjectName`] and kube's `ObjectRef` convert into each other with `From`.
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
//! # What it costs
//!
//! kube's `Controller` reads the objects that it reconciles from a `reflector::Store`, and accepts no other
//! type. A store of `K` holds a second copy of every object, because kube's writer clones each object that it
//! stores. A store of [`Shared`] clones only a reference count. On a 64-bit machine it keeps for each object:
//!
//! - 104 bytes for key and pointer, in a hash table that is between 7/16 and 7/8 full;
//! - 32 bytes for the handle;
//! - four strings: name, namespace, uid and revision.
//!
//! This is about 300 to 400 bytes per object with the allocations, independent of the object's size. kube's own
//! store needs the same in addition to its copy.
//!
//! Kinds that only trigger (`owns_stream`, `watches_stream`) have no store. Their only cost beyond the informer
//! is one copy of the metadata per event of an owned object. A packed or lazy informer also keeps a name and a
//! pointer for each object. They let the stream report the deletion of an object whose final state does not
//! decode.
//!
//! # What is read when
//!
//! kube's store changes only when the controller is polled, so it can be behind the informer's cache.
//! `reconcile` reads that cache through a [`Lister`](crate::lister::Lister):
//! `lister.get(&deployment.object_name())` returns the newest cached state of the reconciled object. A
//! reconciler should also read other kinds through listers. Wait for their informers first
//! (`factory.wait_for_cache_sync()`), because kube waits only for the reconciled kind.

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
/// Add further triggers with kube's own methods.
///
/// The controller starts when the informer has synced, and first reconciles the objects in the cache. When the
/// informer ends, this trigger ends. When all triggers have ended, the controller's stream ends as after a
/// graceful shutdown. The informer does not end with the controller.
///
/// For a kind that is known only at run time, pass the stream of [`watcher`] to kube's `for_stream_with`.
pub fn controller<K>(objects: Subscription<K>) -> Controller<Shared<K>>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Clone + Default + Eq + Hash,
{
    let (reader, writer) = reflector::store();
    let triggers = watcher(objects).reflect(writer).applied_objects();
    Controller::for_stream(triggers, reader)
}

/// Converts kube's reference to an object into the informer's name of it; drops its kind, uid and revision.
impl<K: Lookup> From<&ObjectRef<K>> for ObjectName {
    fn from(reference: &ObjectRef<K>) -> Self {
        Self::new(reference.namespace.as_deref(), &reference.name)
    }
}

/// Converts an informer's name of an object into kube's reference to the object.
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
