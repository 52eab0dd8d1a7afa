//! [`Object`] is a handle to one state of one Kubernetes object.
//!
//! Guarantees: a handle is cheap to clone, and the object in it never changes. Name, namespace, uid, revision
//! and labels are available without decoding. [`Object::get`] returns the whole object as an `Arc`, or the
//! error with which it failed to decode.
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

/// Identifies one source of an informer's objects: one reflector with its list and watch.
///
/// An informer of several namespaces has one source per namespace. A relist of one source deletes only objects
/// of that source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(u32);

impl SourceId {
    /// Creates the identifier of a source, from its number in the informer. Sources are numbered from 0 in
    /// the order in which they were added.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number that was passed to [`SourceId::new`].
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// A handle to one state of one Kubernetes object: the object at one revision.
///
/// Cloning increments one reference count. The content never changes: a newer state of the same object is
/// another `Object` with the same [`ObjectName`].
#[derive_where(Clone)]
pub struct Object<K> {
    inner: Arc<Inner<K>>,
}

#[derive_where(Clone)]
struct Inner<K> {
    name: ObjectName,
    revision: ResourceVersion,
    /// Number of bytes that the server sent for the object; 0 if it did not come from a server.
    wire_bytes: u32,
    uid: UidHash,
    body: Body<K>,
}

impl<K> Object<K> {
    /// Returns the namespace and name, which identify the object in caches and queues.
    ///
    /// The uid is not part of the identity, so a deletion and a recreation under the same name may be
    /// delivered as one update.
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
    /// If the watch reported the object's deletion, this is the revision of the deletion.
    pub fn revision(&self) -> &ResourceVersion {
        &self.inner.revision
    }

    /// Returns the whole object, shared with the cache.
    ///
    /// A packed cache decodes the object on each call, unless it was decoded recently or another reader still
    /// holds it. A lazy cache decodes the object on the first call.
    ///
    /// # Errors
    /// The object's bytes do not decode into `K`. A reader of a snapshot can see this error. A handler sees it only
    /// with a packed or lazy cache, because other caches decode objects before they deliver events.
    pub fn get(&self) -> Result<Arc<K>, DecodeError> {
        self.inner.body.open(&self.inner.name, true)
    }

    /// Like [`Object::get`], for a reader that visits all objects once: a lazy cache does not store the
    /// decoded object.
    pub(crate) fn peek(&self) -> Result<Arc<K>, DecodeError> {
        self.inner.body.open(&self.inner.name, false)
    }

    /// Returns a reference to the object, if the cache stores it decoded and it is not broken.
    ///
    /// The result is always `None` in a packed or lazy cache, even after the object was read.
    pub fn live(&self) -> Option<&K> {
        self.inner.body.live()
    }

    /// Returns the decode error of a broken object, if the error was known when this handle was created.
    ///
    /// In a packed or lazy cache the error is known after the first read: handles created afterwards return
    /// it here, earlier handles do not. [`Object::get`] returns it in both cases.
    pub fn broken(&self) -> Option<&DecodeError> {
        self.inner.body.broken()
    }

    /// Whether the cache decodes the object on each read, except shortly after another read: true in a packed
    /// cache.
    pub(crate) fn is_decoded_each_time(&self) -> bool {
        self.inner.body.is_decoded_each_time()
    }

    /// Whether the object is in a packed cache and was decoded recently.
    pub(crate) fn was_just_decoded(&self) -> bool {
        self.inner.body.was_just_decoded()
    }

    /// Decodes an object of a packed cache before it is read, and returns the decoded object; the caller
    /// keeps it until the read. Returns `None` in other caches, and if decoding fails; the read then returns
    /// the error.
    pub(crate) fn prefetched(&self) -> Option<Arc<K>> {
        self.inner.body.prefetched(&self.inner.name)
    }

    /// Whether `other` is the same state of the object: same revision, uid and epoch. A server that was
    /// restored from a backup reuses revisions, but in another epoch. An object without a revision never
    /// counts as unchanged.
    pub(crate) fn is_unchanged(&self, other: &Self) -> bool {
        let (revision, others) = (self.revision(), other.revision());
        let has_same_revision = !revision.is_unset() && revision == others;
        has_same_revision
            && revision.epoch() == others.epoch()
            && self.uid_hash().may_be(other.uid_hash())
    }

    /// Returns the same state with its revision in another epoch.
    pub(crate) fn in_epoch(mut self, epoch: Epoch) -> Self {
        if self.revision().epoch() != epoch {
            let Inner { revision, .. } = Arc::make_mut(&mut self.inner);
            *revision = std::mem::take(revision).in_epoch(epoch);
        }
        self
    }

    /// Returns the hash of the object's uid, as the server sent it.
    pub(crate) fn uid_hash(&self) -> UidHash {
        self.inner.uid
    }

    /// Whether two handles share one state in memory; compares addresses, not content.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns the number of JSON bytes that the server sent for the object.
    ///
    /// After a warm start the result is the object's size in the saved file. It is 0 if the object is broken,
    /// or does not come from a server.
    pub fn wire_bytes(&self) -> u64 {
        self.inner.wire_bytes.into()
    }

    /// Creates a handle to a decoded object, with the name, revision and uid that the server sent, before any
    /// transform.
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

    /// Stores the heap bytes that were counted when the object was decoded. The handle must not be shared
    /// yet.
    pub(crate) fn counted(mut self, heap_bytes: usize) -> Self {
        let inner = Arc::get_mut(&mut self.inner);
        if let Some(Body::Live(live)) = inner.map(|inner| &mut inner.body) {
            live.heap_bytes = u32::try_from(heap_bytes).unwrap_or(u32::MAX);
        }
        self
    }

    /// Estimates the memory of the object and its handle, in bytes; see
    /// [`StoreSample::rest_bytes`](crate::metrics::StoreSample::rest_bytes) for what is included.
    pub fn rest_bytes(&self) -> u64 {
        let handle = COUNTS_BYTES + size_of::<Inner<K>>() + self.inner.name.as_str().len();
        (handle + self.inner.body.size()) as u64
    }

    /// Returns the number of bytes that all objects of the cache share, such as dictionaries; `None` if they
    /// share nothing.
    pub(crate) fn shared_bytes(&self) -> Option<u64> {
        self.inner.body.shared_size().map(|size| size as u64)
    }

    /// Returns the JSON that the cache stores for the object: the JSON that the server sent, without pruned
    /// fields.
    ///
    /// A packed cache decompresses the JSON, and a lazy cache copies it; neither decodes it. The result is
    /// `None` if the object is broken or is stored decoded, as in other caches and in a lazy cache after a
    /// read.
    pub fn json(&self) -> Option<Vec<u8>> {
        self.with_encoded(|encoded| encoded.json().into_owned())
    }

    /// Calls `read` with the object's stored bytes, without a copy if they are not compressed. Returns `None`
    /// if the cache has no bytes of the object.
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
    /// `metadata.name` is missing or empty, so the object has no key. The error contains the object.
    pub fn new(object: K) -> Result<Self, Nameless<K>> {
        let Some((name, revision)) = name_and_revision(&object) else {
            return Err(Nameless(Box::new(object)));
        };
        let uid = UidHash::of_object(&object);
        Ok(Self::identified(name, revision, uid, object, 0))
    }

    /// Returns `metadata.uid`, which is empty if the server sent none.
    pub fn uid(&self) -> &str {
        self.inner.body.uid()
    }

    /// Returns `metadata.labels`.
    pub fn labels(&self) -> Labels<'_> {
        self.inner.body.labels()
    }
}

/// Returns the object's name and revision, or `None` if it has no name.
pub(crate) fn name_and_revision<K: Resource>(object: &K) -> Option<(ObjectName, ResourceVersion)> {
    let meta = object.meta();
    let name = meta.name.as_deref().filter(|name| !name.is_empty())?;
    let name = ObjectName::new(meta.namespace.as_deref(), name);
    let revision = ResourceVersion::from(meta.resource_version.as_deref().unwrap_or_default());
    Some((name, revision))
}

/// Prints name and revision, but no content, because an object may be a Secret.
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

/// The error for an object without `metadata.name`; it contains the object.
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
