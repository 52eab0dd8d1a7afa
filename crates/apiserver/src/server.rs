//! The handle of an embedded API server.
//!
//! The handle is a tower service for requests, and has methods that the embedding program calls directly.
//!
//! Guarantees:
//! - the handle is cheap to clone. All clones share one server, which lives until the last clone, listener
//!   and open watch are dropped;
//! - direct calls are synchronous, except [`Server::create_all`];
//! - direct calls assign revisions and produce events in the same way as requests;
//! - direct calls validate the metadata of new objects, and skip validation that only applies to one kind;
//! - injected faults do not affect direct calls, and the request log does not contain direct calls;
//! - with a data directory, direct calls return after their writes are on the disk. All direct calls except
//!   [`Server::create_all`] block the thread until then;
//! - direct calls may write `status`, and metadata that clients can't write, such as the uid.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{AUTHORIZATION, HeaderValue};
use http::{Request, Response};
use serde_json::Value;
use tower_service::Service;

use crate::access::{Access, Peer, User};
use crate::body::{Body, BoxError};
use crate::fault_injection::Faults;
use crate::long_write::LongWrite;
use crate::object::{DEPTH_MAX, Object, height};
use crate::request_log::{Recorder, RequestLog};
use crate::resource::Resource;
use crate::serve::serve;
use crate::shared::Shared;
use crate::status::ApiError;
use crate::storage::Entry;
use crate::verb::create::create;
use crate::verb::definition::{self, Definitions};
use crate::verb::delete::delete;
use crate::verb::delete_object::{DeleteOptions, Deleted};
use crate::verb::garbage_collection::Collecting;
use crate::verb::namespace::Emptying;
use crate::verb::patch::{PatchBody, patch};
use crate::verb::update::update;
use crate::verb::write::{How, Origin, Subject};

/// A handle to an embedded Kubernetes API server. All clones share one server.
#[doc(alias = "FakeControllerSource")]
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
    /// Value of the `Authorization` header that this handle adds to requests without this header.
    authorization: Option<HeaderValue>,
    /// User of the requests of this handle, instead of one that the requests identify.
    user: Option<Arc<User>>,
}

/// The future of the response to one request.
type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

impl Server {
    pub(crate) fn new(shared: Arc<Shared>) -> Server {
        Server {
            shared,
            authorization: None,
            user: None,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Sets the current revision of the server. Must be called before the first request.
    pub(crate) fn restart_counting(&self, revision: u64) {
        self.shared.lock().storage.start_at(revision);
    }

    /// Stores a new object and returns the stored object.
    ///
    /// A namespaced object without a namespace is created in `default`.
    /// A revision in `object` is ignored. A uid, creation time or `status` in `object` is kept.
    ///
    /// # Errors
    ///
    /// Returns the error that a client's POST would receive, such as 404 for an unknown kind.
    pub fn create(&self, object: Value) -> Result<Value, ApiError> {
        self.create_as(object, How::DIRECT)
    }

    /// Stores an object while the server is built. The object's namespace need not exist.
    pub(crate) fn seed(&self, object: Value) -> Result<Value, ApiError> {
        self.create_as(object, How::SEED)
    }

    /// Stores new objects like [`Server::create`], and returns the number of objects.
    ///
    /// The call yields after every 250 objects at the latest, so that other tasks run and watchers can read.
    /// With a data directory, the call waits for the disk before each yield and at the end.
    ///
    /// # Errors
    ///
    /// Returns the first error. The objects before the failing object are stored.
    /// The failing object and the later objects are not stored.
    /// If the disk fails, it is unknown which objects are stored.
    ///
    /// # Panics
    ///
    /// May panic outside a tokio runtime with time enabled: the call waits for watchers that are behind.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the objects that were already created remain on the server.
    pub async fn create_all(
        &self,
        objects: impl IntoIterator<Item = Value>,
    ) -> Result<usize, ApiError> {
        let before = self.shared.before_write();
        let answer = self.create_each(objects).await;
        self.shared.settled(before).await?;
        answer
    }

    async fn create_each(
        &self,
        objects: impl IntoIterator<Item = Value>,
    ) -> Result<usize, ApiError> {
        let mut long = LongWrite::new(&self.shared);
        let mut created = 0;
        for object in objects {
            let resource = self.resource_of(&object)?;
            let object = parsed(&resource, object)?;
            let entry = create(&self.shared, &resource, None, object, How::DIRECT)?;
            Definitions::after_write(&self.shared, &resource, Some(entry.name())).complete();
            Collecting::complete(&self.shared);
            created += 1;
            long.wrote(resource.collection).await?;
        }
        Ok(created)
    }

    /// Replaces an object, including its `status`, and returns the stored object.
    ///
    /// An update without a revision is unconditional.
    ///
    /// # Errors
    ///
    /// Returns the error that a client's PUT would receive, such as 404 if the object does not exist, or 409
    /// if the revision in `object` is not the stored revision.
    pub fn update(&self, object: Value) -> Result<Value, ApiError> {
        let resource = self.resource_of(&object)?;
        let object = parsed(&resource, object)?;
        let namespace = match object.text("namespace") {
            "" => "default",
            namespace => namespace,
        };
        let subject = Subject {
            resource: &resource,
            namespace: Some(namespace),
            name: object.text("name"),
        };
        let entry = self.write(|shared| {
            let entry = update(shared, subject, &object, How::DIRECT)?;
            follow_up(shared, subject);
            Ok(entry)
        })?;
        Ok(show(&resource, &entry))
    }

    /// Applies a JSON merge patch to an object, including its `status`, and returns the stored object.
    ///
    /// `name` is `namespace/name`, or `name` for a cluster-scoped object.
    ///
    /// # Errors
    ///
    /// Returns the error that a client's PATCH would receive.
    pub fn patch(
        &self,
        api_version: &str,
        plural: &str,
        name: &str,
        merge: Value,
    ) -> Result<Value, ApiError> {
        let resource = self.resource(api_version, plural)?;
        let subject = subject(&resource, name);
        let merge = PatchBody::Merge(merge);
        let entry = self.write(|shared| {
            let entry = patch(shared, subject, &merge, How::DIRECT, None)?;
            follow_up(shared, subject);
            Ok(entry)
        })?;
        Ok(show(&resource, &entry))
    }

    /// Deletes an object and returns its last state.
    ///
    /// If the object has finalizers, the call sets `deletionTimestamp` and returns the object. Otherwise the
    /// call removes the object and returns it with the revision of the deletion. A namespace is removed with
    /// its contents, as described in [Namespaces](crate#namespaces).
    ///
    /// The call does not yield, so watchers on the calling thread can't read events meanwhile. A watcher is
    /// closed if more than [`Builder::watcher_buffer`](crate::Builder::watcher_buffer) events are queued for
    /// it, for example when a large namespace is deleted. A client's DELETE request yields.
    ///
    /// The call uses no grace period: it also removes a pod that runs on a node, immediately and with one
    /// DELETED event. By default, a client's DELETE request only sets the `deletionTimestamp` of such a pod.
    ///
    /// `name` is `namespace/name`, or `name` for a cluster-scoped object.
    ///
    /// # Errors
    ///
    /// Returns the error that a client's DELETE would receive.
    pub fn delete(&self, api_version: &str, plural: &str, name: &str) -> Result<Value, ApiError> {
        let resource = self.resource(api_version, plural)?;
        let options = DeleteOptions::default();
        let subject = subject(&resource, name);
        let deleted = self.write(|shared| {
            let deleted = delete(shared, subject, &options, How::DIRECT)?;
            Emptying::after_delete(shared, subject, How::DIRECT).complete();
            Definitions::after_write(shared, &resource, Some(subject.name)).complete();
            Collecting::complete(shared);
            Ok(deleted)
        })?;
        let (Deleted::Removed(entry) | Deleted::Marked(entry)) = deleted;
        Ok(show(&resource, &entry))
    }

    /// Returns the stored object, or `None` if it does not exist.
    ///
    /// `name` is `namespace/name`, or `name` for a cluster-scoped object.
    ///
    /// # Panics
    ///
    /// Panics if the server does not serve the resource.
    pub fn get(&self, api_version: &str, plural: &str, name: &str) -> Option<Value> {
        let resource = self.expect_resource(api_version, plural);
        let state = self.shared.lock();
        let entry = state.storage.get(resource.collection, name).cloned()?;
        drop(state);
        Some(show(&resource, &entry))
    }

    /// Returns all stored objects of a resource, ordered by `namespace/name`.
    ///
    /// # Panics
    ///
    /// Panics if the server does not serve the resource.
    pub fn list(&self, api_version: &str, plural: &str) -> Vec<Value> {
        let resource = self.expect_resource(api_version, plural);
        let snapshot = self.shared.lock().storage.snapshot(resource.collection);
        snapshot
            .range("", "")
            .map(|entry| show(&resource, entry))
            .collect()
    }

    /// Returns the revision of the last write. All resources share one revision counter.
    pub fn revision(&self) -> u64 {
        self.shared.lock().storage.revision()
    }

    /// Returns a handle to the same server that adds a bearer token to requests without an `Authorization`
    /// header.
    ///
    /// The handle adds the token only to in-process requests, not to requests that arrive at a port of
    /// [`Server::listen`].
    ///
    /// # Panics
    ///
    /// Panics if the token contains a character that is invalid in a header, such as a line break.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Server {
        let value = HeaderValue::try_from(format!("Bearer {token}"));
        let Ok(mut authorization) = value else {
            panic!("the token has a character that no header can carry");
        };
        authorization.set_sensitive(true);
        Server {
            shared: Arc::clone(&self.shared),
            authorization: Some(authorization),
            user: None,
        }
    }

    /// Returns a handle to the same server whose requests are requests of `user`, without credentials.
    ///
    /// The user is authenticated, as by a client certificate, so access rules and RBAC apply. The handle affects only
    /// in-process requests, not requests that arrive at a port of [`Server::listen`].
    ///
    /// ```
    /// use kube_informer_apiserver::{Authorization, Server, User};
    ///
    /// let server = Server::builder().authorization(Authorization::Rbac).build();
    /// // The requests of this handle have the rights of the account's roles.
    /// let operator = server.as_user(User::service_account("default", "operator"));
    /// # let _ = operator;
    /// ```
    #[must_use]
    pub fn as_user(&self, user: User) -> Server {
        Server {
            shared: Arc::clone(&self.shared),
            authorization: None,
            user: Some(user.authenticated()),
        }
    }

    /// Returns a handle for changing the bearer tokens and access rules of the server.
    pub fn access(&self) -> Access {
        Access::new(Arc::clone(&self.shared.gate))
    }

    /// Returns a handle for injecting faults into the responses of the server.
    pub fn faults(&self) -> Faults {
        Faults::new(Arc::clone(&self.shared))
    }

    /// Returns a copy of the current request log.
    pub fn requests(&self) -> RequestLog {
        Recorder::copy(&self.shared.requests)
    }

    /// Creates an object, waits until the write is durable, and returns the stored object.
    fn create_as(&self, object: Value, how: How<'_>) -> Result<Value, ApiError> {
        let resource = self.resource_of(&object)?;
        let mut object = parsed(&resource, object)?;
        let definitions = self.shared.builtin.definitions.as_ref();
        let is_definition = definitions.is_some_and(|it| it.collection == resource.collection);
        if is_definition && how.origin == Origin::Seed {
            // A seed has one revision.
            definition::establish(&self.shared, &mut object);
        }
        let entry = self.write(|shared| {
            let entry = create(shared, &resource, None, object, how)?;
            Definitions::after_write(shared, &resource, Some(entry.name())).complete();
            if how.origin != Origin::Seed {
                Collecting::complete(shared);
            }
            Ok(entry)
        })?;
        Ok(show(&resource, &entry))
    }

    fn write<T>(
        &self,
        verb: impl FnOnce(&Arc<Shared>) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let before = self.shared.before_write();
        let answer = verb(&self.shared);
        self.shared.settle(before)?;
        answer
    }

    fn resource(&self, api_version: &str, plural: &str) -> Result<Arc<Resource>, ApiError> {
        let registry = self.shared.registry();
        let found = registry.by_plural(api_version, plural);
        found.cloned().ok_or_else(ApiError::no_such_path)
    }

    fn expect_resource(&self, api_version: &str, plural: &str) -> Arc<Resource> {
        let Ok(resource) = self.resource(api_version, plural) else {
            panic!("no resource {plural:?} of {api_version:?} is served");
        };
        resource
    }

    pub(crate) fn resource_of(&self, object: &Value) -> Result<Arc<Resource>, ApiError> {
        let text = |member: &str| object[member].as_str().unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let found = self.shared.registry().by_kind(api_version, kind).cloned();
        found.ok_or_else(|| {
            let message = format!("no kind {kind:?} of apiVersion {api_version:?} is served");
            ApiError::new(404, "NotFound", message)
        })
    }
}

/// Converts the argument of a direct call to an object.
///
/// Unknown fields and wrong types are kept, so that a test can have an object that a client can't decode.
fn parsed(resource: &Resource, object: Value) -> Result<Object, ApiError> {
    if height(&object) > DEPTH_MAX {
        return Err(ApiError::too_deep());
    }
    let decoded = resource.decode_direct(object);
    let fault = decoded.fault.map(|fault| fault.message);
    let mut object = Object::of(&resource.kind, decoded.value, fault)?;
    resource.decode(&mut object)?;
    Ok(object)
}

/// Parses `name`, which is `namespace/name` or the name of a cluster-scoped object.
fn subject<'a>(resource: &'a Resource, name: &'a str) -> Subject<'a> {
    let (namespace, name) = match name.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, name),
    };
    Subject {
        resource,
        namespace,
        name,
    }
}

/// Completes the work that follows a write to an object: of its namespace, and of `CustomResourceDefinition`s.
fn follow_up(shared: &Arc<Shared>, subject: Subject<'_>) {
    let Subject {
        resource,
        namespace,
        name,
    } = subject;
    Emptying::after_write(shared, resource, namespace, How::DIRECT).complete();
    Definitions::after_write(shared, resource, Some(name)).complete();
    Collecting::complete(shared);
}

fn show(resource: &Resource, entry: &Entry) -> Value {
    Value::Object(entry.object(resource))
}

impl<B> Service<Request<B>> for Server
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Answering;

    /// Always returns ready: an overloaded server responds with an error instead.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Answering {
        if let Some(authorization) = &self.authorization {
            let headers = request.headers_mut().entry(AUTHORIZATION);
            headers.or_insert_with(|| authorization.clone());
        }
        if let Some(user) = &self.user {
            request.extensions_mut().insert(Peer(Arc::clone(user)));
        }
        Box::pin(serve(Arc::clone(&self.shared), request))
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}
