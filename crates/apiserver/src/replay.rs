//! Repeats recorded watch events, with their revisions, uids and times.

use std::sync::Arc;

use serde_json::Value;

use crate::object::{DEPTH_MAX, Object, height};
use crate::resource::Resource;
use crate::server::Server;
use crate::status::ApiError;
use crate::storage::Entry;

/// What a recorded event does.
enum Change {
    Store,
    Remove,
}

impl Server {
    /// Repeats recorded watch events, and returns how many objects were stored or removed.
    ///
    /// An event is `{"type": "ADDED", "object": {…}}`, as a watch of a cluster returns it, and as `kubectl get --watch
    /// --output-watch-events --output json` prints it. `ADDED` and `MODIFIED` store the object exactly as it is, with
    /// its `resourceVersion`, uid and times: nothing is validated except the metadata, and no default is set. Only
    /// members that Kubernetes always writes, such as an empty `status`, are added. `DELETED` removes the object at the `resourceVersion` in the event. `BOOKMARK` has no effect.
    ///
    /// Later writes receive revisions above those of the events. Watchers see the events as they are. The server does
    /// not react to the events: a deleted namespace keeps its objects unless they are deleted too, and only a
    /// `CustomResourceDefinition` serves its kinds.
    ///
    /// # Errors
    ///
    /// Returns an error for the first event that can't be repeated: of an unknown type or kind, without a uid, name,
    /// namespace or `resourceVersion`, at a revision that the server has reached already, or `DELETED` for an object
    /// that is not stored. The events before it are repeated.
    pub fn replay(&self, events: impl IntoIterator<Item = Value>) -> Result<usize, ApiError> {
        let shared = self.shared();
        let before = shared.before_write();
        let mut changed = 0;
        let mut answer = Ok(());
        for event in events {
            match self.repeat(event) {
                Ok(has_changed) => changed += usize::from(has_changed),
                Err(error) => {
                    answer = Err(error);
                    break;
                }
            }
        }
        shared.settle(before)?;
        answer.map(|()| changed)
    }

    /// Repeats one event, and returns whether it has changed an object.
    fn repeat(&self, mut event: Value) -> Result<bool, ApiError> {
        let change = match event["type"].as_str() {
            Some("ADDED" | "MODIFIED") => Change::Store,
            Some("DELETED") => Change::Remove,
            Some("BOOKMARK") => return Ok(false),
            _ => return Err(refused(&format!("an event of the type {}", event["type"]))),
        };
        let object = event["object"].take();
        let resource = self.resource_of(&object)?;
        let mut object = recorded(&resource, object)?;
        resource.complete(&mut object);
        let name = object.text("name");
        let namespace = resource.is_namespaced().then(|| object.text("namespace"));
        let key: Arc<str> = resource.key(namespace, name).into();
        let is_in_path = |text: &str| !text.is_empty() && !text.contains('/');
        if !is_in_path(name) || !namespace.is_none_or(is_in_path) {
            return Err(refused(&format!("an object with the key {key:?}")));
        }
        if object.text("uid").is_empty() {
            return Err(refused(&format!("{key}, which has no uid")));
        }
        let revision = object.text("resourceVersion");
        let Ok(revision) = revision.parse::<u64>() else {
            return Err(refused(&format!("{key} at the revision {revision:?}")));
        };
        let shared = self.shared();
        let mut state = shared.lock();
        let next = state.next_revision();
        if revision < next {
            let reached = next - 1;
            let why = format!("{key} at the revision {revision}: the server is at {reached}");
            return Err(refused(&why));
        }
        let old = state.newest(resource.collection, &key).cloned();
        let new = match change {
            Change::Remove if old.is_none() => {
                return Err(refused(&format!(
                    "the deletion of {key}, which is not stored"
                )));
            }
            Change::Remove => None,
            Change::Store => {
                let entry = Entry::new(&resource, Arc::clone(&key), object.members(), revision);
                shared.check_room(&state, old.as_deref(), &entry)?;
                Some(Arc::new(entry))
            }
        };
        state.skip_to(revision);
        shared.commit(&mut state, &resource, &key, new);
        Ok(true)
    }
}

/// Converts a recorded object. Unknown fields and wrong types are kept, except in `metadata`.
fn recorded(resource: &Resource, object: Value) -> Result<Object, ApiError> {
    if height(&object) > DEPTH_MAX {
        return Err(ApiError::too_deep());
    }
    let decoded = resource.decode_direct(object);
    let fault = decoded.fault.map(|fault| fault.message);
    Object::of(&resource.kind, decoded.value, fault)
        .map_err(|error| refused(&format!("an object: {}", error.why())))
}

fn refused(what: &str) -> ApiError {
    ApiError::bad_request(format!("the server can't repeat {what}"))
}
