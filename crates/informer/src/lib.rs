//! Informers for Kubernetes: a local cache of cluster objects, kept current by list and watch.
//!
//! A program reads the cache without a request to the API server, and its handlers receive each change.
//!
//! ```text
//!  API server
//!     │ LIST, WATCH                                          the wire, real HTTP
//!     ▼
//!  transport ─► codec ─Frame─► decode ─Object─► reflector ─Delta─► ║ bounded channel
//!                                                                  ║
//!   ┌── the controller's task owns these ──────────────────────────▼──────────┐
//!   │   queue ─Batch─► indexer ─Change─► processor ─Notification─►            │ listener ─Event─► your handler
//!   └─────────────────────────────────────────────────────────────────────────┘                      │
//!                         │ Snapshot                                                                 ▼
//!                         ▼                                                                      workqueue
//!                 lister, indices: your reads, no lock, no request
//! ```
//!
//! The library makes four promises. It is **reliable**: list and watch together lose no change. It is
//! **timely**: a watch delivers changes as they happen. It is **ordered**: handlers receive the changes of an
//! object in the order of their resource versions. It is **cheap**: the program reads from the cache instead
//! of the API server.
//!
//! The modules below are listed in the order of the data flow. Each module imports only modules that are
//! listed before it. Most programs need [`SharedInformerFactory`], [`SharedInformer`] and a [`workqueue`].
//! The public modules can also be used alone. The [`guide`] explains the concepts.

#![cfg_attr(
    not(feature = "client"),
    expect(dead_code, unused_imports, reason = "only the factory uses these")
)]

#[cfg(feature = "client")]
pub mod guide;

mod offload;
mod ordered_tasks;
mod clock;
mod json;
pub mod logs;
pub mod limits;
mod panics;
pub mod pruning;
mod codec;
pub mod object;
pub mod selector;
pub mod transport;
pub mod decode;
pub mod status;
pub mod metrics;
pub mod workqueue;
pub mod reflector;
pub mod queue;
pub mod indexer;
pub mod event_handler;
pub(crate) mod processor;
mod prefetch;
pub(crate) mod mutation_detector;
pub mod controller;
mod consistency;
pub mod warm_start;
pub mod shared_informer;
pub mod informer;
pub mod lister;
pub mod derived_index;
pub mod mutation_cache;
#[cfg(feature = "client")]
pub mod factory;
#[cfg(feature = "kube-runtime")]
pub mod kube_rs;
#[cfg(feature = "__fuzzing")]
#[doc(hidden)]
pub mod fuzzing;

#[cfg(feature = "client")]
pub use self::factory::{InformerOptions, SharedInformerFactory};
pub use self::{
    controller::Controller,
    derived_index::DerivedIndex,
    event_handler::{Event, EventHandler, enqueue},
    indexer::{Cause, Indexer, Indexers, Snapshot},
    lister::Lister,
    mutation_cache::MutationCache,
    object::{Deleted, Object, ObjectName},
    reflector::InitialList,
    selector::Selector,
    shared_informer::SharedInformer,
};
#[cfg(feature = "client")]
pub use transport::client;

#[cfg(test)]
mod tests;
