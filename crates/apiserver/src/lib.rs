//! Embedded Kubernetes API server for tests, with real list and watch semantics and fault injection.
//!
//! [`Server`] is a tower `Service` for HTTP requests with any body type, and can [listen](Server::listen) on
//! a port.
//! The server stores objects as JSON. Requests and responses are JSON, YAML or protobuf.
//! It behaves like Kubernetes 1.36 in revisions, list and watch options, paging, selectors, bookmarks,
//! streaming lists, finalizers, conflicts, and the wording of errors.
//! It does not depend on Rust types for the objects, or on the Kubernetes client that a test uses.
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
//! [`guide`] shows how to test a controller with the server.
//!
//! # What it guarantees
//!
//! - The server has one revision, which every write increments by one. Every write produces one event.
//! - No event is lost or delivered twice between a list and a watch that starts at the list's revision.
//! - The same [`Builder::rng_seed`] and the same calls produce the same bytes, except for tokens of service accounts.
//!   All waits use tokio's clock, so an in-process server works with paused time.
//! - An in-process server needs no background task and no socket, because the future of a request does the
//!   work when it is polled.
//! - With the feature `persistence`, a server opened on a data directory (`Builder::open`) keeps every
//!   acknowledged write across restarts.
//!
//! # Fields
//!
//! The server decodes an object of a built-in kind as kube-apiserver does, and writes it in the same form: a value of
//! a wrong type is rejected with Go's message, a null or empty field counts as absent, quantities and times are
//! canonical, and the fields that Go always writes are always there, such as `resources` of a container.
//! The defaults of Kubernetes are set, also by direct calls. A new object has the initial `status` of Kubernetes, and a
//! `status` in the request is dropped except for a node.
//! The query parameter `fieldValidation` selects how the server reports unknown fields and duplicate members:
//! `Strict` rejects the request, `Warn` (the default) returns warnings, and `Ignore` reports nothing.
//! Unknown fields of a request are never stored.
//! For a custom kind without a definition, only `metadata` is decoded, and all other fields are stored.
//! Direct calls such as [`Server::create`] are not requests, and store fields of any name and, outside `metadata`,
//! values of any type, so that a test can have an object that its client can't decode.
//! The next write of such an object by a client removes the unknown fields, and fails if a type is wrong.
//! `/openapi/v3` and `/openapi/v2` describe the fields as far as `kubectl` needs them, without descriptions.
//! `/metrics` has the number of stored objects per resource.
//!
//! # Custom resources
//!
//! A `CustomResourceDefinition` adds a kind to the running server, as in Kubernetes.
//! The request that creates the definition returns after the kind is served.
//! The definition is then `Established`, unless another definition of its group uses one of its names.
//! Each served version has its own path. An object is stored without conversion, and is available in each
//! version. A definition with a conversion webhook is accepted with a warning; a request or a watch that needs
//! the webhook fails, and the message names both versions.
//! The subresources `status` and `scale`, the printer columns and the selectable fields work.
//!
//! The server validates a definition as Kubernetes does, with the same messages, and rejects an invalid one. It
//! checks only the outer structure of certificates in a CA bundle.
//!
//! The schema of a version applies to its objects: unknown fields are removed with a warning, defaults are set,
//! and requests are validated, also formats, patterns, list types and embedded objects. An update does not
//! report an invalid value that it does not change.
//! A change of the schema applies to stored objects when they are read, and to their bytes with their next
//! write.
//! Rules in CEL (`x-kubernetes-validations`) are evaluated with the functions and the cost limits of Kubernetes.
//! A definition with a rule that could exceed them, as Kubernetes estimates, is rejected.
//! An update has a warning for a rule that a value violates without a change.
//!
//! The deletion of a definition deletes all objects of its kind. When no object is left, the definition is
//! removed and the watches end.
//! A change of its `spec` ends the watches too, and a later watch must start after the change.
//! [`Builder::crd`] adds a definition before the server starts. A definition among the
//! [seeds](Builder::seed) must precede its objects. Both are established from the start, with one revision.
//!
//! Direct calls such as [`Server::create`] remove unknown fields and set defaults, but do not validate. An
//! exception is a definition itself, which is always validated.
//!
//! A kind of [`Builder::kind`] is served without a definition. A definition of such a kind has no effect on it.
//!
//! # Deletion
//!
//! As in Kubernetes, deletion sets `deletionTimestamp` on an object with finalizers, and the removal of the
//! last finalizer removes the object.
//! A pod that runs on a node has a grace period of 30 seconds, unless the pod or the request sets another
//! one.
//! No kubelet stops the pod: the pod stays until a request deletes it with grace period 0, as
//! `kubectl delete --force` does.
//! A direct call of [`Server::delete`] uses no grace period.
//!
//! # Owners of fields
//!
//! As in Kubernetes, `metadata.managedFields` names the owner of each field: each create, update and patch of a client
//! gives the changed fields to the manager `fieldManager`, or the start of `User-Agent`. A server-side apply
//! (`application/apply-patch+yaml`) merges a configuration, removes the fields that the manager no longer applies, and
//! conflicts with other owners without `force`. This includes `status` and `scale`, custom kinds, and the owners of
//! objects that are converted between versions.
//!
//! - Direct calls such as [`Server::create`] record no owners, and keep those of the stored object. The first apply to
//!   an object without owners gives its fields to `before-first-apply`.
//! - An object that is too large or too deep with its owners is stored without them. An apply of such an object is an
//!   error.
//! - [`Builder::managed_fields`] turns the owners of other writes than applies off.
//!
//! # Garbage collection
//!
//! With [`Builder::garbage_collection`], the server deletes the dependents of deleted objects, as the garbage collector
//! of kube-controller-manager does. A dependent has an owner reference, which names its owner by `apiVersion`, `kind`,
//! name and uid; the owner has the same namespace, or none.
//!
//! | `propagationPolicy` | what happens |
//! | --- | --- |
//! | `Background` | the owner is removed, and then its dependents, at any depth |
//! | `Foreground` | the owner keeps the finalizer `foregroundDeletion` until no dependent with `blockOwnerDeletion` is left |
//! | `Orphan` | the owner keeps the finalizer `orphan` until it is removed from the owner references of all dependents |
//! | none | that of the object's finalizers, or else of its kind: `Orphan` for `Job` and `ReplicationController`, `Background` for all others |
//!
//! An object with several owners is deleted with the last one. An object that is created with owners that do not
//! exist is deleted too, and an owner in another namespace does not exist: the event `OwnerRefInvalidNamespace` reports
//! it. An object whose owner has a kind that is not served stays.
//!
//! The collection runs inside the call that leaves the garbage, as the deletion of a namespace does, and needs no
//! runtime. When the call returns, only the objects are left that wait for a finalizer or a grace period. The call that
//! ends the wait continues the collection, after a restart too. Each change has its revision and its event. A request
//! yields between the changes, and completes them even if its client disconnects. Pods on nodes get their grace period.
//! A change that fails, for example because the disk is full, is tried again by a later write.
//!
//! The server keeps a few hundred bytes for an object with an owner, and nothing for other objects.
//!
//! Without garbage collection, no kind orphans its dependents by default, since nothing removes the finalizer.
//!
//! # Namespaces
//!
//! A deleted namespace becomes Terminating, and nothing can be created in it.
//! The server itself deletes the contents of the namespace, because no namespace controller runs.
//! It deletes all pods first, and all other objects after the last pod is removed.
//! Then it removes the finalizer `kubernetes`, and removes the namespace unless another finalizer remains.
//! Each step runs inside the call that makes the step possible, such as the removal of the last pod.
//! If no object in the namespace has a finalizer or a grace period, the namespace is removed before the call
//! that deletes it returns.
//!
//! An object can be created only in an existing namespace. Otherwise the server responds 404.
//! [`Builder::enforce_namespaces`] can disable this rule.
//!
//! # System objects
//!
//! A new server has the namespaces `default`, `kube-node-lease`, `kube-public` and `kube-system`.
//! `default` has the Service `kubernetes` with its `EndpointSlice` and `Endpoints`, unless
//! [`Builder::kubernetes_service`] is off.
//! There are also the two priority classes of the system, and the priority levels and flow schemas `exempt` and
//! `catch-all`. With RBAC there are also the default roles and bindings, except for those of controllers.
//! Other flow schemas and the registrations of API groups are missing.
//! All of these are ordinary objects at revision 1: clients can list, watch, change and delete them, and the
//! server does not recreate them.
//! With [`Builder::default_service_accounts`], each namespace has the `ServiceAccount` `default` and the `ConfigMap`
//! `kube-root-ca.crt`, which are recreated.
//! The endpoint of the Service is a documentation address (192.0.2.1, port 6443), because an in-process
//! server has no address.
//!
//! # Identity
//!
//! By default, every client may send every request. Tokens ([`Builder::token`]), client certificates, access rules
//! ([`Builder::rules`]) and RBAC ([`Builder::authorization`]) restrict clients.
//!
//! With RBAC, the stored `Role`, `ClusterRole`, `RoleBinding` and `ClusterRoleBinding` objects decide, with the messages
//! of Kubernetes, and a change of them applies to the next request. A test can remove one verb from the role of an
//! operator, and send the operator's requests with [`Server::as_user`].
//! A `ClusterRole` with an `aggregationRule` has the rules of the roles that its selectors select. The server does not
//! write these rules to the object, as Kubernetes' controller does.
//! A write of a role or a binding is rejected if it gives rights that its writer does not have, unless the writer has
//! the verb `escalate` or `bind`.
//!
//! If there are tokens, rules, RBAC or client certificates, the headers `Impersonate-*` work as in Kubernetes 1.36, also
//! with the permissions of constrained impersonation.
//!
//! A POST to `token` of a `ServiceAccount` (`kubectl create token`) returns a JSON Web Token, signed with a key of this
//! server. A token is valid until it expires by [`Builder::clock`], or until its account, or the pod, secret or node to
//! which it is bound, is deleted. The key is random and in memory only, so neither [`Builder::rng_seed`] nor a data
//! directory keeps tokens the same. A client verifies a token with a `TokenReview`, or with the key at `/openid/v1/jwks`.
//!
//! # What it does not do
//!
//! - Requests are validated in `metadata`, in definitions and objects of defined kinds, and in these built-in kinds:
//!   `ConfigMap` and `Secret` (keys, size, immutable data), `Deployment`, `ReplicaSet`, `StatefulSet`, `DaemonSet`,
//!   `ReplicationController` and `PodTemplate` (selectors, labels, numbers, strategies, fixed fields, counts of `status`), `ControllerRevision`,
//!   `Job` and `CronJob` (numbers, modes, selectors, schedules, fixed fields; not policies of failures), `Service` (ports,
//!   type, name, affinity), `PodDisruptionBudget`, `HorizontalPodAutoscaler` (numbers, target), roles and their bindings, the classes of
//!   ingresses, priorities, runtimes and storage, `Event`, `Ingress`, `NetworkPolicy`, `Lease`, `EndpointSlice`,
//!   `CertificateSigningRequest` (conditions),
//!   `ResourceQuota`, `LimitRange`, `FlowSchema`, `PriorityLevelConfiguration`, `APIService`, `CSIDriver`, `Node` (taints, resources, fields that are
//!   set once), `PersistentVolumeClaim` and `PersistentVolume` (not the fields of its source).
//!   In pods and templates: the most used kinds of volumes, names, images, ports, environment variables, volume mounts,
//!   probes, lifecycle handlers, policies, security contexts and compute resources of containers, node selectors,
//!   affinity, tolerations, topology spread constraints, names of other objects, deadlines and host names. An update of
//!   a pod can change only what Kubernetes allows.
//!   Questionable values have the warnings of Kubernetes in pods, workloads, services and secrets, except for those about
//!   claims, IP addresses, and overlapping paths of volumes.
//!   An error that the stored object has too does not prevent an update, so an object of a direct call can be incomplete.
//!   Other values are not validated.
//! - There is no admission, except that requests for a new pod set its priority and its tolerations of failing nodes, and
//!   that a new node has the taint `not-ready`. Claims and volumes have no finalizers, because no controller would
//!   remove them.
//! - A `Service` gets a cluster IP of 10.96.0.0/16 and node ports, but no traffic is forwarded. Only IPv4 is available.
//!   A direct call gives a `Service` what it lacks, and checks nothing.
//! - Apart from the deletion of namespaces, the work for definitions, [`Builder::garbage_collection`] and
//!   [`Builder::default_service_accounts`], the server does no work of controllers: a `Deployment` creates no
//!   `ReplicaSet`.
//! - No container runs. The log of a pod is what [`Builder::pod_logs`] returns, and `exec`, `attach`, `portforward` and
//!   `proxy` receive 501.
//! - The parser of YAML follows YAML 1.2, with the scalars of YAML 1.1 that Kubernetes reads. Some rare texts that
//!   Kubernetes accepts are rejected, and most syntax errors have another message.
//! - Access is not restricted by default. There is no Node authorizer, no webhook for authentication or authorization,
//!   and no login with an identity provider.
//!
//! # Limits
//!
//! The memory that the server holds for its clients is bounded.
//! The server rejects or ends the request, watch or connection that exceeds a limit.
//! Most limits affect only the client that exceeds them.
//! Limits on shared memory can affect other clients too: the effects are aborted lists and responses, and
//! ended watches.
//! A number in the column "effect" is the HTTP status of the response.
//!
//! | resource | limit | effect |
//! | --- | --- | --- |
//! | request body | 3 MiB | 413 |
//! | nesting of a request body | 127 levels | 400 |
//! | request body in YAML | one million values, which aliases repeat at most once more; 3 MiB of repeated texts | 400 |
//! | one object in a response in YAML | 64 MiB | 500; a list ends |
//! | time for a request body | one minute | 504 |
//! | all request bodies together | 256 MiB | 429 |
//! | URL | 32 KiB | 414 |
//! | request head | 400 KiB on HTTP/1.1, 96 KiB on HTTP/2 | 431 |
//! | JSON patch | 10,000 operations; 3 MiB copied; 100 million values moved | 413; 422; 413 |
//! | one object after any write | 3 MiB; 127 levels | 413; 400 |
//! | `CustomResourceDefinition` | 1,000 served versions; 16 MiB of names, counted once per served version | its kind is not served |
//! | errors of one definition | 1,000; none after 2 MiB; 1 MiB for one value | further errors are not reported; the value is cut |
//! | printer columns of a version | 100 | further columns are left out |
//! | defaults in one custom object | 3 MiB | 413; in a stored object, further defaults are not set |
//! | checks of one custom object by its schema | 5 million | 422 |
//! | errors of one custom object | 1,000 of values, 1,000 of repeated list items, 100 unknown fields | further errors are left out |
//! | `pattern` of a schema | 64 KiB, 24 MiB as an automaton | the pattern matches nothing |
//! | a role that a user without all rights writes or binds | 20,000 combinations of verbs, groups, resources and names | 403 |
//! | missing roles in the reason of a 403 | 100 | further roles are left out |
//! | path in the `scale` of a definition | 32 names | the kind has no `scale` |
//! | all objects | [`Builder::storage_quota`], 8 GiB by default | 500, as from a full etcd |
//! | history | 5 minutes, 102,400 events per kind, 1 GiB | the oldest events are dropped; a watch or list that needs them receives 410 |
//! | request log | [`LOG_MAX`] requests, 128 MiB | the oldest entries are dropped |
//! | open watches | 100,000 | 429 |
//! | duration of a watch | one day | the watch ends without an error |
//! | events queued for one watcher | [`Builder::watcher_buffer`] | the watch ends |
//! | object states that the history has dropped, but that unfinished lists and watches still need | 1 GiB | lists that began before the newest dropped event are aborted; watches with a dropped event in their queue end |
//! | lists and initial events in transfer | 64 million objects | responses that began over a minute ago are aborted; if this frees too little, the new request receives 429 |
//! | other responses over 4 KiB in transfer | 512 MiB together with the previous row; each object of that row counts 8 bytes, or its full size in a protobuf list | as in the previous row, but a write never receives 429: its response is aborted instead |
//! | connections | 20,000, with 100 streams each, as in kube-apiserver | further connections wait |
//! | time for a request head or a handshake | 32 s | the connection ends |
//! | idle connection | 32 s on HTTP/1.1, 90 to 180 s on HTTP/2 | the connection ends |
//! | peer that does not read | 5 minutes | the connection ends |
//! | HTTP/2 peer that does not answer a ping | 45 s | the connection ends |
//! | HTTP/2 stream that the peer does not read | 5 minutes per chunk of 64 KiB or per longer object | the stream is reset |
//!
//! Request bodies are never decompressed.
//! The request rate is not limited.
//! A client that can send fault plans can disturb all other clients, so expose `/faults` only to trusted
//! clients.
//!
//! # Under load
//!
#![doc = include_str!("../LOAD.md")]

// Kinds and objects: the served kinds, and the rules that apply to all requests.
mod clock;
mod quote;
mod kinds;
mod status;
mod go_json;
mod go_base64;
mod go_time;
mod go_duration;
mod quantity;
mod decode_error;
mod name_syntax;
mod field_validation;
mod typed;
mod object;
mod selector;
mod columns;
mod metadata;
mod go_regex;
mod yaml;
mod schema;
mod apply;
mod strategy;
mod conversion;
mod resource;

// A request: its destination, options, body and user.
mod route;
mod protobuf;
mod negotiate;
mod request_body;
mod access;
mod request_log;

// Storage: objects, their history, and the watch caches.
mod storage;
mod services;
mod watch_cache;

// The memory of bodies, and the faults that change bodies.
mod response_budget;
mod body;
mod body_limit;
mod pod_log;
mod compress;
mod fault;

// The state shared by all requests, the durability of writes, and writes of many objects.
mod definition;
mod published;
mod garbage;
mod shared;
mod group_commit;
mod long_write;

// From a request to its response.
mod table;
mod reply;
mod verb;
mod fault_injection;
mod serve;

// The handle, startup and listening.
mod server;
mod snapshot;
mod replay;
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

pub use access::{Access, Authorization, Rule, User};
pub use body::{Body, BoxError};
pub use builder::Builder;
pub use fault::{Match, PlanError};
pub use fault_injection::{Answer, Faults};
pub use kinds::{Kind, Kinds, Scope, Subresource};
pub use listen::{Kubeconfig, Listening};
pub use pod_log::{LogLine, LogOf, PodLog, PodLogs};
pub use request_log::{LOG_MAX, LoggedRequest, RequestLog};
pub use route::{ListOptions, Verb};
pub use server::Server;
pub use snapshot::ServerSnapshot;
pub use status::{ApiError, Status, StatusCause, StatusDetails};
#[cfg(feature = "persistence")]
pub use storage::OpenError;
#[cfg(feature = "tls")]
pub use tls::{ClientCertificate, Tls, TlsError};
pub use watch_cache::WatchCache;
