//! Informers for Kubernetes: a program knows, at every moment and without asking, what is in the
//! cluster.
//!
//! ```text
//!  API server
//!     │ LIST, WATCH                                          the wire, real HTTP
//!     ▼
//!  transport ─Frame─► decode ─Object─► reflector ─Delta─► ║ bounded channel
//!                                                         ║
//!   ┌── the controller's task owns these ─────────────────▼───────────────────┐
//!   │   queue ─Batch─► indexer ─Change─► processor ─Notification─►            │ listener ─Event─► your handler
//!   └─────────────────────────────────────────────────────────────────────────┘                      │
//!                         │ Snapshot                                                                 ▼
//!                         ▼                                                                      workqueue
//!                 lister, indices: your reads, no lock, no request
//! ```
//!
//! Four promises hold it together: **reliable** (list and watch: nothing is lost), **timely**
//! (watch), **ordered** (resource versions) and **cheap** (the cache answers, the server is spared).
//!
//! The modules below stand in the order in which data flows, and a module imports only what stands
//! before it. Most programs need [`SharedInformerFactory`], [`SharedInformer`] and a
//! [`workqueue`]; every part is public and useful alone. The mental model is in the [`guide`].

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
mod consistency;
pub mod warm_start;
pub mod event_handler;
pub(crate) mod processor;
pub(crate) mod mutation_detector;
pub mod controller;
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
