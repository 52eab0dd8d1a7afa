//! [`Object`] is a handle to one state of one Kubernetes object. The cache and the handlers share that state.
//!
//! Guarantees: a handle is cheap to clone, and the object's content never changes. Name, namespace, uid,
//! revision and labels are available without decoding. [`Object::get`] returns the whole object as an `Arc`,
//! or an error if the object failed to decode.
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

/// Identifies one source of an informer's objects. A source is one reflector with its own list and watch.
///
/// An informer of several namespaces has one source per namespace. A new list of one source never deletes the
/// objects of another source from the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(u32);

impl SourceId {
    /// Creates the identifier of the source with this number. An informer numbers its sources from 0, in the
    /// order in which they were added.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number that was passed to [`SourceId::new`].
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// A handle to the state of one Kubernetes object at one revision.
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
    /// The result of [`Object::wire_bytes`], at most `u32::MAX`.
    wire_bytes: u32,
    uid: UidHash,
    body: Body<K>,
}

impl<K> Object<K> {
    /// Returns the namespace and name, which identify the object in caches and queues.
    ///
    /// The uid is not part of the identity. A deletion and a recreation with the same name may therefore be
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
    /// A `DELETED` watch event contains the final state of an object. For that state, the result is the
    /// revision of the deletion.
    pub fn revision(&self) -> &ResourceVersion {
        &self.inner.revision
    }

    /// Returns the whole object. The returned `Arc` shares the object with the cache and with other readers.
    ///
    /// A lazy cache, which stores objects as bytes until the first read, decodes the object on the first
    /// call. A packed cache stores objects as compressed bytes, and decodes the object on each call.
    /// An exception is an object that was decoded recently and is still in memory.
    ///
    /// # Errors
    /// Returns an error if the object's bytes do not decode into `K`. A handler can receive this error only
    /// from a packed or lazy cache. With any other cache, the informer decodes an object before it delivers
    /// the object's event.
    pub fn get(&self) -> Result<Arc<K>, DecodeError> {
        self.inner.body.open(&self.inner.name, true)
    }

    /// Like [`Object::get`], but a lazy cache does not replace the stored bytes with the decoded object.
    pub(crate) fn peek(&self) -> Result<Arc<K>, DecodeError> {
        self.inner.body.open(&self.inner.name, false)
    }

    /// Returns a reference to the decoded object if the cache decoded the object before storing it.
    ///
    /// The result is `None` if decoding failed. It is also `None` in a packed or lazy cache, which stores
    /// objects as bytes, even after a read has decoded the object.
    pub fn live(&self) -> Option<&K> {
        self.inner.body.live()
    }

    /// Returns the decode error if the object failed to decode before this handle was created.
    ///
    /// A packed or lazy cache creates the handle first, and decodes the object on the first read. If decoding
    /// fails, the cache replaces the stored handle with a handle that returns the error. Handles that the
    /// cache returned earlier continue to return `None`.
    pub fn broken(&self) -> Option<&DecodeError> {
        self.inner.body.broken()
    }

    /// Returns whether the cache stores the object as compressed bytes, and decodes the object on reads.
    ///
    /// Returns `false` if [`broken`](Self::broken) returns an error.
    pub(crate) fn is_decoded_each_time(&self) -> bool {
        self.inner.body.is_decoded_each_time()
    }

    /// Returns whether the cache stores the object as compressed bytes, and has decoded it recently. Recently
    /// means that the cache still has a weak reference to the decoded object.
    pub(crate) fn was_just_decoded(&self) -> bool {
        self.inner.body.was_just_decoded()
    }

    /// Decodes a packed object, which a packed cache stores as compressed bytes. While the caller holds the
    /// result, [`Object::get`] returns it without decoding the object again.
    ///
    /// Returns `None` if the object is not packed, or if decoding fails.
    pub(crate) fn prefetched(&self) -> Option<Arc<K>> {
        self.inner.body.prefetched(&self.inner.name)
    }

    /// Returns whether `other` is the same state: same revision, epoch and uid hash.
    ///
    /// A restore of the server from a backup starts a new epoch.
    pub(crate) fn is_unchanged(&self, other: &Self) -> bool {
        let (revision, others) = (self.revision(), other.revision());
        let has_same_revision = !revision.is_unset() && revision == others;
        has_same_revision
            && revision.epoch() == others.epoch()
            && self.uid_hash().may_be(other.uid_hash())
    }

    /// Returns this state with the revision's epoch set to `epoch`.
    pub(crate) fn in_epoch(mut self, epoch: Epoch) -> Self {
        if self.revision().epoch() != epoch {
            let Inner { revision, .. } = Arc::make_mut(&mut self.inner);
            *revision = std::mem::take(revision).in_epoch(epoch);
        }
        self
    }

    /// Returns the hash of the uid that the server sent, even if a transform changes the uid.
    pub(crate) fn uid_hash(&self) -> UidHash {
        self.inner.uid
    }

    /// Returns whether both handles point to the same object state in memory. The method compares addresses,
    /// not content.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns the number of bytes that the server sent for the object, in JSON or protobuf.
    ///
    /// If the object was loaded from a saved cache file at a warm start, the result is the object's size in
    /// that file. The result is 0 if the object failed to decode, or if the program created the object.
    pub fn wire_bytes(&self) -> u64 {
        self.inner.wire_bytes.into()
    }

    /// Creates a handle to a decoded object.
    ///
    /// The handle stores `name`, `revision` and `uid` separately, because a transform may have changed them
    /// in `object`.
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

    /// Stores `heap_bytes`, the heap size of the decoded object, in the object's body.
    ///
    /// Has no effect if the handle has clones, or if the cache stores the object as bytes.
    pub(crate) fn counted(mut self, heap_bytes: usize) -> Self {
        let inner = Arc::get_mut(&mut self.inner);
        if let Some(Body::Live(live)) = inner.map(|inner| &mut inner.body) {
            live.heap_bytes = u32::try_from(heap_bytes).unwrap_or(u32::MAX);
        }
        self
    }

    /// Returns an estimate of the memory that the object and its handle use, in bytes. See
    /// [`StoreSample::rest_bytes`](crate::metrics::StoreSample::rest_bytes) for what the estimate includes.
    pub fn rest_bytes(&self) -> u64 {
        let handle = COUNTS_BYTES + size_of::<Inner<K>>() + self.inner.name.as_str().len();
        (handle + self.inner.body.size()) as u64
    }

    /// Returns the size in bytes of the compression dictionaries and samples that all objects of a packed
    /// cache share.
    ///
    /// Returns `None` in other caches, and for a [broken](Self::broken) object.
    pub(crate) fn shared_bytes(&self) -> Option<u64> {
        self.inner.body.shared_size().map(|size| size as u64)
    }

    /// Returns the object as JSON, without the pruned fields and with the changes of the transform.
    ///
    /// Returns `None` if the object failed to decode, or if the cache stores no bytes of it. A packed cache
    /// stores an object's bytes in compressed form. A lazy cache stores the bytes until the first read. Other
    /// caches store no bytes.
    pub fn json(&self) -> Option<Vec<u8>> {
        self.with_encoded(|encoded| encoded.json().into_owned())
    }

    /// Calls `read` with the object's encoded, decompressed bytes, if the cache stores any.
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
    /// Returns an error if `metadata.name` is missing or empty. The error contains the object.
    pub fn new(object: K) -> Result<Self, Nameless<K>> {
        let Some((name, revision)) = name_and_revision(&object) else {
            return Err(Nameless(Box::new(object)));
        };
        let uid = UidHash::of_object(&object);
        Ok(Self::identified(name, revision, uid, object, 0))
    }

    /// Returns `metadata.uid`; the result is empty if the server sent no uid.
    pub fn uid(&self) -> &str {
        self.inner.body.uid()
    }

    /// Returns `metadata.labels`.
    pub fn labels(&self) -> Labels<'_> {
        self.inner.body.labels()
    }
}

/// Returns the object's namespaced name and revision, or `None` without a name.
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

/// Error of [`Object::new`] for an object without `metadata.name`. The error contains the rejected object.
#[derive(thiserror::Error)]
#[error("an object without metadata.name has no key")]
pub struct Nameless<K>(pub Box<K>);

/// Prints only the word `Nameless`, and not the object without a name, because that object may be a Secret.
impl<K> fmt::Debug for Nameless<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nameless")
    }
}

#[cfg(test)]
mod tests;
