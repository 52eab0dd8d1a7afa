//! [`Object`]: a handle to one state of one object of the cluster.
//!
//! Guarantees: a handle is cheap to clone, and its object never changes. Name, namespace, uid, revision and labels
//! are available without decoding. [`Object::get`] returns the whole object as an `Arc`, or the error with which it
//! failed to decode.
//!
//! ```compile_fail,E0594
//! use k8s_openapi::api::core::v1::Pod;
//! use kube_informer::object::Object;
//! fn change(cached: &Object<Pod>) {
//!     let pod = cached.get().unwrap();
//!     pod.spec = None; // a cached object is shared and can't be changed
//! }
//! ```

mod body;
mod decode_error;
mod deleted;
mod known;
mod labels;
mod name;
mod revision;
mod epoch;
mod uid;

pub(crate) use self::{
    body::{Form, FormOptions, Housekeeping, UnreadCount, UnreadMoment},
    epoch::Epoch,
    uid::UidHash,
};
pub use self::{
    decode_error::DecodeError,
    deleted::Deleted,
    known::Known,
    labels::Labels,
    name::{NameError, ObjectName},
    revision::ResourceVersion,
};

use std::{fmt, sync::Arc};

use derive_where::derive_where;
use kube_core::Resource;

use self::body::{Body, Broken, COUNTS_BYTES, Live};
use crate::codec::{Encoded, Identity};

/// Identifies a source of an informer: one per reflector.
///
/// An informer of several namespaces has one source per namespace. A relist of one source deletes only objects
/// of that source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(u32);

impl SourceId {
    /// Returns the source with this number, counted from 0 in the order in which they were added to an informer.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number that was passed to [`SourceId::new`].
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// A handle to one state of one object of the cluster.
///
/// A clone increments one reference count. The content never changes: a newer state of the same object is
/// another `Object` with the same [`ObjectName`].
#[derive_where(Clone)]
pub struct Object<K> {
    inner: Arc<Inner<K>>,
}

#[derive_where(Clone)]
struct Inner<K> {
    name: ObjectName,
    revision: ResourceVersion,
    /// Bytes that the server sent for the object; 0 if it did not come from a server.
    wire_bytes: u32,
    uid: UidHash,
    body: Body<K>,
}

impl<K> Object<K> {
    /// Returns name and namespace, which identify the object in caches and queues.
    ///
    /// The uid is not part of the identity, so a deletion and a recreation may be delivered as one update.
    #[doc(alias = "MetaNamespaceKeyFunc")]
    #[doc(alias = "MetaObjectToName")]
    #[doc(alias = "ObjectToName")]
    pub fn object_name(&self) -> &ObjectName {
        &self.inner.name
    }

    /// Returns `metadata.name`.
    pub fn name(&self) -> &str {
        self.inner.name.name()
    }

    /// Returns `metadata.namespace`; `None` for cluster-scoped objects.
    pub fn namespace(&self) -> Option<&str> {
        self.inner.name.namespace()
    }

    /// Returns `metadata.resourceVersion`.
    ///
    /// For a deletion that the watch delivered, the last state has the revision of the deletion.
    pub fn revision(&self) -> &ResourceVersion {
        &self.inner.revision
    }

    /// Returns the object, shared with the cache.
    ///
    /// A packed cache decodes it on each call, unless it was decoded recently or another reader still holds it. A lazy
    /// cache decodes it on the first call.
    ///
    /// # Errors
    /// The object's bytes do not decode into `K`. A reader of a snapshot can see this error. A handler sees it only
    /// with a packed or lazy cache, because other caches decode objects before they deliver events.
    pub fn get(&self) -> Result<Arc<K>, DecodeError> {
        self.inner.body.open(&self.inner.name, true)
    }

    /// Like [`Object::get`], for a scan of all objects: a lazy cache does not keep the result decoded.
    pub(crate) fn peek(&self) -> Result<Arc<K>, DecodeError> {
        self.inner.body.open(&self.inner.name, false)
    }

    /// Returns a reference to the object, if it is stored decoded and is not broken.
    ///
    /// Always `None` in a packed or lazy cache, even after a read.
    pub fn live(&self) -> Option<&K> {
        self.inner.body.live()
    }

    /// Returns why the object does not decode, if that was known when this handle was created.
    ///
    /// A packed or lazy cache knows it after the first read: handles created afterwards return the error here, earlier
    /// ones do not. [`Object::get`] returns it in both cases.
    pub fn broken(&self) -> Option<&DecodeError> {
        self.inner.body.broken()
    }

    /// Whether each read decodes the object, unless it was decoded recently.
    pub(crate) fn is_decoded_each_time(&self) -> bool {
        self.inner.body.is_decoded_each_time()
    }

    /// Whether such an object was decoded recently.
    pub(crate) fn was_just_decoded(&self) -> bool {
        self.inner.body.was_just_decoded()
    }

    /// Decodes such an object for a read that follows, and holds the result until then. A decode error is reported
    /// at that read.
    pub(crate) fn prefetched(&self) -> Option<Arc<K>> {
        self.inner.body.prefetched(&self.inner.name)
    }

    /// Whether `other` is the same state: same revision, same uid, same epoch. A restored server reuses revisions,
    /// in another epoch. An object without a revision is never unchanged.
    pub(crate) fn is_unchanged(&self, other: &Self) -> bool {
        let (revision, others) = (self.revision(), other.revision());
        let has_same_revision = !revision.is_unset() && revision == others;
        has_same_revision
            && revision.epoch() == others.epoch()
            && self.uid_hash().may_be(other.uid_hash())
    }

    /// Returns the same state in another epoch.
    pub(crate) fn in_epoch(mut self, epoch: Epoch) -> Self {
        if self.revision().epoch() != epoch {
            let Inner { revision, .. } = Arc::make_mut(&mut self.inner);
            *revision = std::mem::take(revision).in_epoch(epoch);
        }
        self
    }

    /// Returns the hash of the uid that the server sent.
    pub(crate) fn uid_hash(&self) -> UidHash {
        self.inner.uid
    }

    /// Whether two handles share one state in memory; compares addresses, not content.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns the bytes of JSON that the server sent for the object.
    ///
    /// After a warm start it is the size in the saved file. It is 0 if the object is broken, or does not come from
    /// a server.
    pub fn wire_bytes(&self) -> u64 {
        self.inner.wire_bytes.into()
    }

    /// Creates a handle with the identity that the server sent, before any transform.
    pub(crate) fn identified(
        name: ObjectName,
        revision: ResourceVersion,
        uid: UidHash,
        object: K,
        wire_bytes: usize,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                name,
                revision,
                wire_bytes: u32::try_from(wire_bytes).unwrap_or(u32::MAX),
                uid,
                body: Body::Live(Live {
                    object: Arc::new(object),
                    heap_bytes: 0,
                }),
            }),
        }
    }

    /// Records the heap bytes that were counted when the object was decoded. The handle must not be shared yet.
    pub(crate) fn counted(mut self, heap_bytes: usize) -> Self {
        let inner = Arc::get_mut(&mut self.inner);
        if let Some(Body::Live(live)) = inner.map(|inner| &mut inner.body) {
            live.heap_bytes = u32::try_from(heap_bytes).unwrap_or(u32::MAX);
        }
        self
    }

    /// Estimates the memory of the object with its handle, in bytes; see
    /// [`StoreSample::rest_bytes`](crate::metrics::StoreSample::rest_bytes) for what is included.
    pub fn rest_bytes(&self) -> u64 {
        let handle = COUNTS_BYTES + size_of::<Inner<K>>() + self.inner.name.as_str().len();
        (handle + self.inner.body.size()) as u64
    }

    /// Returns the bytes that all objects of the cache share; `None` if they share nothing.
    pub(crate) fn shared_bytes(&self) -> Option<u64> {
        self.inner.body.shared_size().map(|size| size as u64)
    }

    /// Returns the JSON that the cache stores for the object: what the server sent, without pruned fields.
    ///
    /// A packed cache decompresses it, and a lazy one copies it; nothing is decoded. `None` if the object is stored
    /// decoded, as in other caches and in a lazy cache after a read, or if it is broken.
    pub fn json(&self) -> Option<Vec<u8>> {
        self.with_encoded(|encoded| encoded.json().into_owned())
    }

    /// Calls `read` with the stored bytes, without a copy if they are not compressed.
    pub(crate) fn with_encoded<T>(&self, read: impl FnOnce(Encoded<'_>) -> T) -> Option<T> {
        self.inner.body.with_encoded(read)
    }

    fn with_body(
        name: ObjectName,
        identity: &Identity<'_>,
        wire_bytes: usize,
        body: Body<K>,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                name,
                revision: ResourceVersion::of(identity),
                wire_bytes: u32::try_from(wire_bytes).unwrap_or(u32::MAX),
                uid: UidHash::of(&identity.metadata.uid),
                body,
            }),
        }
    }

    pub(crate) fn from_broken(
        name: ObjectName,
        identity: &Identity<'_>,
        error: DecodeError,
    ) -> Self {
        let broken = Broken {
            uid: identity.metadata.uid.to_string(),
            labels: identity.label_map(),
            error,
        };
        Self::with_body(name, identity, 0, Body::Broken(Box::new(broken)))
    }
}

impl<K: Resource> Object<K> {
    /// Creates a handle to a decoded object.
    ///
    /// # Errors
    /// `metadata.name` is missing or empty, so the object has no key. The error returns the object.
    pub fn new(object: K) -> Result<Self, Nameless<K>> {
        let Some((name, revision)) = name_and_revision(&object) else {
            return Err(Nameless(Box::new(object)));
        };
        let uid = UidHash::of_object(&object);
        Ok(Self::identified(name, revision, uid, object, 0))
    }

    /// Returns `metadata.uid`; empty if the server sent none.
    pub fn uid(&self) -> &str {
        self.inner.body.uid()
    }

    /// Returns `metadata.labels`.
    pub fn labels(&self) -> Labels<'_> {
        self.inner.body.labels()
    }
}

/// Returns name and revision, or `None` without a name.
pub(crate) fn name_and_revision<K: Resource>(object: &K) -> Option<(ObjectName, ResourceVersion)> {
    let meta = object.meta();
    let name = meta.name.as_deref().filter(|name| !name.is_empty())?;
    let name = ObjectName::new(meta.namespace.as_deref(), name);
    let revision = ResourceVersion::from(meta.resource_version.as_deref().unwrap_or_default());
    Some((name, revision))
}

/// Prints identity and revision, but no content: an object may be a Secret.
impl<K> fmt::Debug for Object<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let broken = if self.broken().is_some() {
            " (broken)"
        } else {
            ""
        };
        write!(f, "{}@{}{broken}", self.inner.name, self.inner.revision)
    }
}

/// The object has no `metadata.name`; the error contains the object.
#[derive(thiserror::Error)]
#[error("an object without metadata.name has no key")]
pub struct Nameless<K>(pub Box<K>);

/// Prints nothing of the object, which may be a Secret.
impl<K> fmt::Debug for Nameless<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nameless")
    }
}

#[cfg(test)]
mod tests;
