//! Informers under a `kube_runtime::Controller`: its triggers and its reads come from caches that are
//! there anyway.
//!
//! One informer serves any number of controllers, handlers and listers with one list, one watch and
//! one decode per object. kube's part stays kube's: scheduling, requeues, error policy, concurrency,
//! graceful shutdown, finalizers.
//!
//! - [`watcher`] is kube's `watcher`, fed by an informer: put it where a `watcher(api, config)` stands,
//!   with kube's own `reflect`, `applied_objects`, `touched_objects` and predicates behind it.
//! - [`controller`] is kube's `Controller::new`, fed by an informer.
//! - [`Shared`] is the cache's own object, as kube's store and `reconcile` hold it.
//! - [`ObjectName`] and kube's `ObjectRef` become one another by `From`.
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
//! kube's `Controller` finds what it reconciles in a `reflector::Store`, and only that type will do. A
//! store of `K` is a second copy of every object, for kube's writer clones what it stores. A store of
//! [`Shared`] clones a reference count, and keeps for each object, on a 64-bit machine: 104 bytes for
//! key and pointer in a hash table that is between 7/16 and 7/8 full, 32 for the handle, and four
//! strings for name, namespace, uid and revision. That is about 300 to 400 bytes with their
//! allocations, however large the object is; kube pays the same on top of its copy. Kinds that only
//! trigger (`owns_stream`, `watches_stream`) have no store, and cost nothing beyond the informer but
//! one copy of the metadata per event of an owned object; of a packed or lazy informer, also a name and a
//! pointer for each object, so that a deletion can be told whose final state does not decode.
//!
//! # What is read when
//!
//! kube's store changes as the controller is polled, so it has what the triggers have told, and may be
//! behind the informer's cache, which `reconcile` reads through a [`Lister`](crate::lister::Lister):
//! `lister.get(&deployment.object_name())` is the newest state of what is being reconciled. What a
//! reconciler reads of other kinds it should read through listers, too; wait for their informers first
//! (`factory.wait_for_cache_sync()`), since kube waits for the reconciled kind only.

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

/// A controller that reconciles the objects of an informer; what else triggers it is added by kube's own
/// methods.
///
/// It reconciles what is in the cache first, and begins when the informer has synced. When the informer
/// ends, this trigger does; when all triggers have ended, the controller's stream ends as by a graceful
/// shutdown. The informer does not end with the controller.
///
/// For a kind that is known at run time only, kube's `for_stream_with` takes what [`watcher`] gives.
pub fn controller<K>(objects: Subscription<K>) -> Controller<Shared<K>>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Clone + Default + Eq + Hash,
{
    let (reader, writer) = reflector::store();
    let triggers = watcher(objects).reflect(writer).applied_objects();
    Controller::for_stream(triggers, reader)
}

/// What an informer calls the object that kube refers to; its kind, uid and revision are left out.
impl<K: Lookup> From<&ObjectRef<K>> for ObjectName {
    fn from(reference: &ObjectRef<K>) -> Self {
        Self::new(reference.namespace.as_deref(), &reference.name)
    }
}

/// What kube calls the object that an informer knows by this name.
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
