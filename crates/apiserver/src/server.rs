//! The handle: a tower service for requests, and direct calls for the owner of the server.
//!
//! Guarantees:
//! - cheap to clone; all clones are one server, which lives as long as one of them, a listener or an open watch;
//! - direct calls are synchronous and go through the same logic as requests: validation, revision, events. They are not requests: no fault hits them, and the request log does not show them. With a data directory they block until the disk has what they wrote. Their author may also write `status` and the metadata that Kubernetes keeps from clients.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{AUTHORIZATION, HeaderValue};
use http::{Request, Response};
use serde_json::Value;
use tower_service::Service;

use crate::access::Access;
use crate::body::{Body, BoxError};
use crate::fault_injection::Faults;
use crate::object::Object;
use crate::request_log::{Recorder, RequestLog};
use crate::resource::Resource;
use crate::serve::serve;
use crate::shared::Shared;
use crate::status::ApiError;
use crate::storage::Entry;
use crate::verb::create::create;
use crate::verb::delete::delete;
use crate::verb::delete_object::{DeleteOptions, Deleted};
use crate::verb::patch::{PatchBody, patch};
use crate::verb::update::update;
use crate::verb::write::{How, Subject};

/// An embedded Kubernetes API server.
#[doc(alias = "FakeControllerSource")]
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
    /// The `Authorization` of requests through this handle that bring none.
    authorization: Option<HeaderValue>,
}

/// What a call of the service is until it is answered.
type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

impl Server {
    pub(crate) fn new(shared: Arc<Shared>) -> Server {
        Server {
            shared,
            authorization: None,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Sets the revision that was stored last; before the first request only.
    pub(crate) fn restart_counting(&self, revision: u64) {
        self.shared.lock().storage.start_at(revision);
    }

    /// Stores a new object and returns it as stored.
    ///
    /// A namespaced object without a namespace gets `default`; a revision in it is ignored, a uid, creation time or status is kept.
    ///
    /// # Errors
    ///
    /// What a client's POST would be refused for; an unknown kind is a 404.
    pub fn create(&self, object: Value) -> Result<Value, ApiError> {
        self.create_as(object, How::DIRECT)
    }

    /// Stores an object that a new server starts with, also into a namespace that is seeded after it.
    pub(crate) fn seed(&self, object: Value) -> Result<Value, ApiError> {
        self.create_as(object, How::SEED)
    }

    /// Stores new objects as [`Server::create`] does, but waits for the disk, if there is one, once for all of them; returns how many there were.
    ///
    /// # Errors
    ///
    /// The first refusal: what stands before that object is stored, it and what follows is not.
    /// If the disk refuses, any part of them may be stored.
    pub fn create_all(&self, objects: impl IntoIterator<Item = Value>) -> Result<usize, ApiError> {
        self.write(|shared| {
            let mut created = 0;
            for object in objects {
                let resource = self.resource_of(&object)?;
                let object = Object::of(&resource.kind, object)?;
                create(shared, &resource, None, object, How::DIRECT)?;
                created += 1;
            }
            Ok(created)
        })
    }

    /// Replaces an object, status included, and returns it as stored.
    ///
    /// # Errors
    ///
    /// What a client's PUT would be refused for: 404, or 409 if it carries a revision that is not the stored one; without one it is unconditional.
    pub fn update(&self, object: Value) -> Result<Value, ApiError> {
        let resource = self.resource_of(&object)?;
        let object = Object::of(&resource.kind, object)?;
        let namespace = match object.text("namespace") {
            "" => "default",
            namespace => namespace,
        };
        let subject = Subject {
            resource: &resource,
            namespace: Some(namespace),
            name: object.text("name"),
        };
        let entry = self.write(|shared| update(shared, subject, &object, How::DIRECT))?;
        Ok(show(&resource, &entry))
    }

    /// Applies a JSON merge patch to an object, status included, and returns it as stored.
    ///
    /// `name` is `namespace/name`, or `name` in cluster scope.
    ///
    /// # Errors
    ///
    /// What a client's PATCH would be refused for.
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
        let entry = self.write(|shared| patch(shared, subject, &merge, How::DIRECT, None))?;
        Ok(show(&resource, &entry))
    }

    /// Deletes an object and returns its last state: at the deletion's revision, or marked if finalizers hold it.
    ///
    /// It has no grace period: a pod is gone in one revision, as one DELETED event, where a client's DELETE marks it first and leaves one that runs on a node to its kubelet.
    /// Send that DELETE to see what a controller would see.
    /// A namespace goes with what is in it, as in [the life of a namespace](crate#namespaces).
    ///
    /// `name` is `namespace/name`, or `name` in cluster scope.
    ///
    /// # Errors
    ///
    /// What a client's DELETE would be refused for.
    pub fn delete(&self, api_version: &str, plural: &str, name: &str) -> Result<Value, ApiError> {
        let resource = self.resource(api_version, plural)?;
        let options = DeleteOptions::default();
        let subject = subject(&resource, name);
        let deleted = self.write(|shared| delete(shared, subject, &options, How::DIRECT))?;
        let (Deleted::Removed(entry) | Deleted::Marked(entry)) = deleted;
        Ok(show(&resource, &entry))
    }

    /// The stored object.
    ///
    /// `name` is `namespace/name`, or `name` in cluster scope.
    ///
    /// # Panics
    ///
    /// If no such resource is served.
    pub fn get(&self, api_version: &str, plural: &str, name: &str) -> Option<Value> {
        let resource = self.expect_resource(api_version, plural);
        let state = self.shared.lock();
        let entry = state.storage.get(resource.collection, name).cloned()?;
        drop(state);
        Some(show(&resource, &entry))
    }

    /// All stored objects of a resource, ordered by `namespace/name`.
    ///
    /// # Panics
    ///
    /// If no such resource is served.
    pub fn list(&self, api_version: &str, plural: &str) -> Vec<Value> {
        let resource = self.expect_resource(api_version, plural);
        let snapshot = self.shared.lock().storage.snapshot(resource.collection);
        snapshot
            .range("", "")
            .map(|entry| show(&resource, entry))
            .collect()
    }

    /// The revision of the last write; one counter for the whole server.
    pub fn revision(&self) -> u64 {
        self.shared.lock().storage.revision()
    }

    /// The same server, reached with a bearer token: requests through this handle carry it, unless they bring another.
    ///
    /// What [listens](Server::listen) carries none for its peers.
    ///
    /// # Panics
    ///
    /// If the token has a character that no header can carry, such as a line break.
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
        }
    }

    /// Tokens and rules, to change while the server runs.
    pub fn access(&self) -> Access {
        Access::new(Arc::clone(&self.shared.gate))
    }

    /// The switchboard of faults.
    pub fn faults(&self) -> Faults {
        Faults::new(Arc::clone(&self.shared))
    }

    /// A copy of the request log as it is now.
    pub fn requests(&self) -> RequestLog {
        Recorder::copy(&self.shared.requests)
    }

    /// Makes a write and waits for the disk, if there is one.
    fn create_as(&self, object: Value, how: How) -> Result<Value, ApiError> {
        let resource = self.resource_of(&object)?;
        let object = Object::of(&resource.kind, object)?;
        let entry = self.write(|shared| create(shared, &resource, None, object, how))?;
        Ok(show(&resource, &entry))
    }

    fn write<T>(&self, verb: impl FnOnce(&Shared) -> Result<T, ApiError>) -> Result<T, ApiError> {
        let before = self.shared.before_write();
        let answer = verb(&self.shared);
        self.shared.settle(before)?;
        answer
    }

    fn resource(&self, api_version: &str, plural: &str) -> Result<Arc<Resource>, ApiError> {
        let found = self.shared.registry.by_plural(api_version, plural);
        found.cloned().ok_or_else(ApiError::no_such_path)
    }

    fn expect_resource(&self, api_version: &str, plural: &str) -> Arc<Resource> {
        let Ok(resource) = self.resource(api_version, plural) else {
            panic!("no resource {plural:?} of {api_version:?} is served");
        };
        resource
    }

    fn resource_of(&self, object: &Value) -> Result<Arc<Resource>, ApiError> {
        let text = |member: &str| object[member].as_str().unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let found = self.shared.registry.by_kind(api_version, kind).cloned();
        found.ok_or_else(|| {
            let message = format!("no kind {kind:?} of apiVersion {api_version:?} is served");
            ApiError::new(404, "NotFound", message)
        })
    }
}

/// The object of a `namespace/name`.
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

    /// Always ready: what limits requests is answered to them.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Answering {
        if let Some(authorization) = &self.authorization {
            let headers = request.headers_mut().entry(AUTHORIZATION);
            headers.or_insert_with(|| authorization.clone());
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
