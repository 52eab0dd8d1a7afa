//! What all writes share: the writer, the object, and the step that stores a change.
//!
//! Guarantees: an object is replaced only if it is still in the state that the change was computed from.

use std::ptr;
use std::sync::Arc;

use crate::object::Object;
use crate::resource::Resource;
use crate::shared::Shared;
use crate::status::ApiError;
use crate::storage::Entry;
use crate::strategy::Part;

/// The author of a write, which determines what the write may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A client, which may write what Kubernetes allows clients to write.
    Request,
    /// The owner of the server, who may also write `status` and metadata.
    Direct,
    /// The start of a server: as [`Origin::Direct`], and also into namespaces that do not exist.
    Seed,
}

/// The options of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct How {
    pub(crate) origin: Origin,
    /// The part that an update changes; creation and deletion ignore it.
    pub(crate) part: Part,
    /// Whether to do everything except storing the change.
    pub(crate) dry_run: bool,
}

/// The object that a request names.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
}

/// The effect of a write on the life of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Change,
    /// A step towards removal, which the storage quota does not reject.
    Mark,
    Remove,
}

// === impl How ===

impl How {
    pub(crate) const DIRECT: How = How {
        origin: Origin::Direct,
        part: Part::All,
        dry_run: false,
    };

    pub(crate) const SEED: How = How {
        origin: Origin::Seed,
        ..How::DIRECT
    };

    /// A client's write to one part of an object.
    pub(super) const fn request(part: Part, dry_run: bool) -> How {
        How {
            origin: Origin::Request,
            part,
            dry_run,
        }
    }
}

// === impl Subject ===

impl Subject<'_> {
    pub(crate) fn key(&self) -> String {
        self.resource.key(self.namespace, self.name)
    }

    pub(crate) fn not_found(&self) -> ApiError {
        ApiError::not_found(&self.resource.kind, self.name)
    }

    /// Returns the stored object and its entry, as readers see them.
    pub(crate) fn read(&self, shared: &Shared) -> Result<(Arc<Entry>, Object), ApiError> {
        let state = shared.lock();
        let entry = state
            .storage
            .get(self.resource.collection, &self.key())
            .cloned();
        drop(state);
        self.parsed(entry)
    }

    /// Returns the object and its entry on which the next write is based.
    pub(crate) fn newest(&self, shared: &Shared) -> Result<(Arc<Entry>, Object), ApiError> {
        let state = shared.lock();
        let entry = state.newest(self.resource.collection, &self.key()).cloned();
        drop(state);
        self.parsed(entry)
    }

    fn parsed(&self, entry: Option<Arc<Entry>>) -> Result<(Arc<Entry>, Object), ApiError> {
        let entry = entry.ok_or_else(|| self.not_found())?;
        let object = Object::stored(entry.object(self.resource));
        Ok((entry, object))
    }
}

/// Stores a new state of an object, or removes the object in that state.
///
/// Returns `None` if another write has changed the object since `entry`.
pub(super) fn replace(
    shared: &Shared,
    resource: &Resource,
    entry: &Entry,
    new: &Object,
    step: Step,
) -> Result<Option<Arc<Entry>>, ApiError> {
    let mut state = shared.lock();
    // Revisions do not identify a state: one that was rolled back is assigned again.
    let still = state.newest(resource.collection, &entry.key);
    if still.is_none_or(|current| !ptr::eq(Arc::as_ptr(current), entry)) {
        return Ok(None);
    }
    let stored = entry.changed(resource, new, state.next_revision());
    if step == Step::Change {
        shared.check_room(&state, Some(entry), &stored)?;
    }
    let kept = (step != Step::Remove).then(|| Arc::clone(&stored));
    shared.commit(&mut state, resource, &entry.key, kept);
    Ok(Some(stored))
}
