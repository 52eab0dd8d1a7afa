//! An embedded Kubernetes API server: real list and watch semantics, faults on demand.
//!
//! [`Server`] is a tower `Service` for HTTP requests with any body, and can [listen](Server::listen) on a port.
//! It keeps objects as JSON, reads them from JSON and protobuf, and behaves as Kubernetes 1.36: revisions, list and watch options, paging, selectors, bookmarks, streaming lists, finalizers, conflicts, and the words of its refusals.
//! It knows nothing of Rust types, and nothing of the clients that talk to it.
//!
//! ```
//! use kube_informer_apiserver::Server;
//! use serde_json::json;
//!
//! let server = Server::builder()
//!     .seed([json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})])
//!     .build();
//! assert_eq!(server.revision(), 1);
//! server.delete("v1", "pods", "default/a")?;
//! assert_eq!(server.get("v1", "pods", "default/a"), None);
//! # Ok::<(), kube_informer_apiserver::ApiError>(())
//! ```
//!
//! [`guide`] shows how a controller is tested with it.
//!
//! # What it guarantees
//!
//! - One revision for the whole server; every write raises it by one and is one event.
//! - Between a list and a watch from its revision no event is lost or told twice.
//! - The same seed and the same calls give the same bytes; all waiting is done by tokio's clock, so paused time works in process.
//! - In process it needs no task and no socket: it runs when it is polled.
//! - With feature `persistence`, a server that was opened on a data directory (`Builder::open`) has everything it acknowledged after any restart.
//!
//! # Fields
//!
//! What a client sends is held against the fields of its kind: `fieldValidation` refuses those that the kind does not have and members that stand twice (`Strict`), warns of them (`Warn`, and if nothing is said) or does not (`Ignore`), and they are not stored.
//! Of a kind that was [added](Builder::kind) only `metadata` is known, and types are not looked at: a string may stand where Kubernetes wants a number.
//! Direct calls such as [`Server::create`] store fields of any name, which go when a client writes the object; `/openapi/v3` says of the fields what `kubectl` asks.
//!
//! # Deletion
//!
//! As in Kubernetes, an object with finalizers is marked and stays until they are gone, and a pod that runs on a node has a grace period: 30 seconds, unless the pod or the request says otherwise.
//! No kubelet ends it: the pod stays until it is deleted with grace period 0, which is what `kubectl delete --force` asks for.
//! A direct call of [`Server::delete`] knows no grace.
//!
//! # Namespaces
//!
//! A namespace that is deleted is Terminating, and nothing can be created in it any more.
//! Since no controller would empty it, the server does: first all pods, and when the last of them is gone everything else; then it takes away the finalizer `kubernetes`, and the namespace is gone unless another finalizer holds it.
//! Every step is taken within the call that makes it possible, so a namespace whose contents nothing holds is gone when its deletion is answered.
//!
//! An object can be created only in a namespace that exists; elsewhere it is rejected with a 404, unless [`Builder::enforce_namespaces`] is off.
//!
//! # System objects
//!
//! A new server has the namespaces `default`, `kube-node-lease`, `kube-public` and `kube-system`.
//! `default` has the Service `kubernetes` with its `EndpointSlice` and `Endpoints`, unless [`Builder::kubernetes_service`] is off.
//! They are ordinary objects at revision 1: clients list, watch, change and delete them, and the server does not recreate them.
//! Their endpoint is an address for documentation (192.0.2.1, port 6443), because a server in process has none.
//!
//! # What it leaves out
//!
//! No validation of values, no admission, no allocation (a `Service` gets no address), and no other controllers: nothing collects garbage, and a `Deployment` makes no `ReplicaSet`.
//! No defaulting either, with these exceptions: `status` starts as Kubernetes starts it (a client's is dropped, except a node's), a `Secret` gets its type and its `stringData` as `data`, a namespace its finalizer and label, and the field selectors know the defaults of what they select by.
//! No server-side apply.
//! Answers are JSON, whatever a request came in.
//! Everyone may do everything, until [`Builder::token`] or [`Builder::rules`] say otherwise.
//!
//! # Limits
//!
//! What clients can make the server hold is bounded; what goes over a bound is refused, and costs nobody else an answer.
//!
//! | what a client can send or hold | bound | what happens |
//! | --- | --- | --- |
//! | a body | 3 MiB, 127 levels, one minute | 413, 400, 504 |
//! | all bodies at a time | 256 MiB | 429 |
//! | a URL; a head | 32 KiB; 400 KiB on HTTP/1.1, 96 KiB on HTTP/2 | 414; 431 |
//! | a JSON patch | 10,000 operations, 3 MiB copied, 100 million values moved | 413 |
//! | an object, however it grows | 3 MiB, 127 levels | 413, 400 |
//! | all objects | [`Builder::storage_quota`], 8 GiB | 500, as of a full etcd |
//! | history | 5 minutes, 102,400 events per kind, 1 GiB | the oldest is forgotten: 410 |
//! | the request log | [`LOG_MAX`] requests, 128 MiB | the oldest are dropped |
//! | watches | 100,000, a day each | 429; a clean end |
//! | events that wait for a watcher | [`Builder::watcher_buffer`] | the watch ends |
//! | old states of objects that lists and watches hold when history has forgotten them | 1 GiB | those begun before what was forgotten last break off, watches that are behind it end |
//! | lists and first events being read | 64 million objects | those begun over a minute ago break off; 429 |
//! | other answers of more than 4 KiB being read | 512 MiB, with the above | as above; a write's answer breaks off |
//! | connections | 20,000, with 1,000 streams each | they wait |
//! | a head, a handshake | 32 s | the connection ends |
//! | an idle connection | 32 s on HTTP/1.1, 90 to 180 s on HTTP/2 | it ends |
//! | a peer that reads nothing, or answers no ping | 5 minutes; 45 s on HTTP/2 | the connection ends |
//! | a stream on HTTP/2 that is not read | 5 minutes for 64 KiB, or a longer object | it is reset |
//!
//! Nothing that is sent is decompressed.
//! There is no bound of the requests per second, and a fault plan may ask for anything: `/faults` is for friends.
//!
//! # Under load
//!
#![doc = include_str!("../LOAD.md")]

// Kinds and objects: what is served, and what holds for all requests.
mod clock;
mod kinds;
mod status;
mod name_syntax;
mod object;
mod selector;
mod columns;
mod field_validation;
mod metadata;
mod strategy;
mod resource;

// A request: its destination, its options, its body, its user.
mod route;
mod negotiate;
mod protobuf;
mod request_body;
mod access;
mod request_log;

// What a server stores: objects and their history, and the caches of watches.
mod storage;
mod watch_cache;

// The memory of bodies, and what faults do to them.
mod response_budget;
mod body;
mod body_limit;
mod compress;
mod fault;

// The state that all requests share, and how writes become durable.
mod shared;
mod group_commit;

// From a request to its response.
mod table;
mod reply;
mod verb;
mod fault_injection;
mod serve;

// The handle, and how a server starts and is reached.
mod server;
mod bootstrap;
#[cfg(feature = "persistence")]
mod restart;
mod builder;
#[cfg(feature = "client")]
mod client;
#[cfg(doc)]
pub mod guide;
#[cfg(feature = "tls")]
mod tls;
mod listen;

pub use access::{Access, Rule, User};
pub use body::{Body, BoxError};
pub use builder::Builder;
pub use fault::{Match, PlanError};
pub use fault_injection::{Answer, Faults};
pub use kinds::{Kind, Kinds, Scope, Subresource};
pub use listen::{Kubeconfig, Listening};
pub use request_log::{LOG_MAX, LoggedRequest, RequestLog};
pub use route::{ListOptions, Verb};
pub use server::Server;
pub use status::{ApiError, Status, StatusCause, StatusDetails};
#[cfg(feature = "persistence")]
pub use storage::OpenError;
#[cfg(feature = "tls")]
pub use tls::{ClientCertificate, Tls, TlsError};
pub use watch_cache::WatchCache;
