//! The handle that every later stage holds: one [`Object`] per object of the cluster.
//!
//! A handle is cheap to clone, can't change what it points at, and answers for name, namespace,
//! uid, revision and labels at once. Its body comes from [`Object::get`], as an `Arc` or, for an
//! object that could not be decoded, as the error that says why.
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

/// Tells the sources of one informer apart: one per reflector.
///
/// An informer over several namespaces has one source per namespace; a relist of one of them deletes
/// only what that one brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(u32);

impl SourceId {
    /// The source with this number, counted from 0 in the order in which an informer was given them.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number that [`SourceId::new`] was given.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// One object of the cluster, as every stage and every reader holds it.
///
/// Cloning costs one reference count. The content never changes: a newer state of the same object
/// is another `Object` under the same [`ObjectName`].
#[derive_where(Clone)]
pub struct Object<K> {
    inner: Arc<Inner<K>>,
}

#[derive_where(Clone)]
struct Inner<K> {
    name: ObjectName,
    revision: ResourceVersion,
    /// How many bytes the server sent for it; zero if it did not come from there.
    wire_bytes: u32,
    uid: UidHash,
    body: Body<K>,
}

impl<K> Object<K> {
    /// Name and namespace: the identity of the object in caches and queues. Kubernetes' uid is not
    /// part of it, so delete and recreate may appear as one update.
    #[doc(alias = "MetaNamespaceKeyFunc")]
    #[doc(alias = "MetaObjectToName")]
    #[doc(alias = "ObjectToName")]
    pub fn object_name(&self) -> &ObjectName {
        &self.inner.name
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.inner.name.name()
    }

    /// `metadata.namespace`; `None` for cluster-scoped objects.
    pub fn namespace(&self) -> Option<&str> {
        self.inner.name.namespace()
    }

    /// `metadata.resourceVersion`. The last state of a deleted object carries the revision of the
    /// deletion when the watch told it.
    pub fn revision(&self) -> &ResourceVersion {
        &self.inner.revision
    }

    /// The object itself, shared with the cache. In a packed cache it is decoded for this, unless
    /// somebody else just had it; in a lazy one if nobody has ever asked for it.
    ///
    /// # Errors
    /// The [`DecodeError`] of an object whose bytes did not decode into `K`. Readers of a snapshot can
    /// meet one; handlers only with a packed or lazy cache, where nobody has looked before them.
    pub fn get(&self) -> Result<Arc<K>, DecodeError> {
        self.inner.body.open(&self.inner.name, true)
    }

    /// The same for one look at everything: what nothing has read before is not kept decoded for it.
    pub(crate) fn peek(&self) -> Result<Arc<K>, DecodeError> {
        self.inner.body.open(&self.inner.name, false)
    }

    /// The object by reference, if it is kept decoded and is good. In a packed or lazy cache none is,
    /// whoever has read it.
    pub fn live(&self) -> Option<&K> {
        self.inner.body.live()
    }

    /// Why the object has no body, if that was known when this handle was made. A packed or lazy cache
    /// knows it once the object was read: a handle that it gives out afterwards returns the reason, the
    /// handle that was read does not; [`Object::get`] of either does.
    pub fn broken(&self) -> Option<&DecodeError> {
        self.inner.body.broken()
    }

    /// Whether each read decodes it, unless it was decoded a moment ago.
    pub(crate) fn is_decoded_each_time(&self) -> bool {
        self.inner.body.is_decoded_each_time()
    }

    /// Whether such an object was decoded, and few others since.
    pub(crate) fn was_just_decoded(&self) -> bool {
        self.inner.body.was_just_decoded()
    }

    /// Decodes such an object for a reader that is about to read it, while the result is held. If it does not
    /// decode, the reader is told then.
    pub(crate) fn prefetched(&self) -> Option<Arc<K>> {
        self.inner.body.prefetched(&self.inner.name)
    }

    /// Whether the other is the same state by its revision, of the same object by its uid, and of the same
    /// epoch: a server that was restored gives revisions out again. An object without a revision never is.
    pub(crate) fn is_unchanged(&self, other: &Self) -> bool {
        let (revision, others) = (self.revision(), other.revision());
        let has_same_revision = !revision.is_unset() && revision == others;
        has_same_revision
            && revision.epoch() == others.epoch()
            && self.uid_hash().may_be(other.uid_hash())
    }

    /// The same state, in this epoch.
    pub(crate) fn in_epoch(mut self, epoch: Epoch) -> Self {
        if self.revision().epoch() != epoch {
            let Inner { revision, .. } = Arc::make_mut(&mut self.inner);
            *revision = std::mem::take(revision).in_epoch(epoch);
        }
        self
    }

    /// What is kept of the uid that it had when the server sent it.
    pub(crate) fn uid_hash(&self) -> UidHash {
        self.inner.uid
    }

    /// Whether two handles point at the very same state, by address.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// How many bytes of JSON the server sent for it, or, after a warm start, how many it takes in the saved
    /// file; 0 if it is broken, or did not come from a server.
    pub fn wire_bytes(&self) -> u64 {
        self.inner.wire_bytes.into()
    }

    /// Wraps an object under the identity that it had when the server sent it, as so many bytes.
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

    /// The same, of which its decoding has counted so many bytes beyond itself. Others may not have it yet.
    pub(crate) fn counted(mut self, heap_bytes: usize) -> Self {
        let inner = Arc::get_mut(&mut self.inner);
        if let Some(Body::Live(live)) = inner.map(|inner| &mut inner.body) {
            live.heap_bytes = u32::try_from(heap_bytes).unwrap_or(u32::MAX);
        }
        self
    }

    /// How many bytes it takes in memory, about, with its handle: see
    /// [`StoreSample::rest_bytes`](crate::metrics::StoreSample::rest_bytes) for what is counted.
    pub fn rest_bytes(&self) -> u64 {
        let handle = COUNTS_BYTES + size_of::<Inner<K>>() + self.inner.name.as_str().len();
        (handle + self.inner.body.size()) as u64
    }

    /// What all objects of its cache share takes so many bytes; `None` if they share nothing.
    pub(crate) fn shared_bytes(&self) -> Option<u64> {
        self.inner.body.shared_size().map(|size| size as u64)
    }

    /// The JSON that the cache keeps of it, which is what the server sent without the pruned fields: decompressed
    /// for this in a packed cache, copied in a lazy one. Nothing is decoded.
    ///
    /// `None` if the object is kept decoded, as in other caches and in a lazy one once it was read, or if it is
    /// broken.
    pub fn json(&self) -> Option<Vec<u8>> {
        self.with_encoded(|encoded| encoded.json().into_owned())
    }

    /// Reads the bytes that the cache keeps of it in their place.
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
    /// Wraps a decoded object.
    ///
    /// # Errors
    /// [`Nameless`], with the object, when `metadata.name` is missing or empty: such an object can't
    /// be kept under any key.
    pub fn new(object: K) -> Result<Self, Nameless<K>> {
        let Some((name, revision)) = name_and_revision(&object) else {
            return Err(Nameless(Box::new(object)));
        };
        let uid = UidHash::of_object(&object);
        Ok(Self::identified(name, revision, uid, object, 0))
    }

    /// `metadata.uid`, empty when the server sent none.
    pub fn uid(&self) -> &str {
        self.inner.body.uid()
    }

    /// `metadata.labels`.
    pub fn labels(&self) -> Labels<'_> {
        self.inner.body.labels()
    }
}

/// Name and revision, if there is a name.
pub(crate) fn name_and_revision<K: Resource>(object: &K) -> Option<(ObjectName, ResourceVersion)> {
    let meta = object.meta();
    let name = meta.name.as_deref().filter(|name| !name.is_empty())?;
    let name = ObjectName::new(meta.namespace.as_deref(), name);
    let revision = ResourceVersion::from(meta.resource_version.as_deref().unwrap_or_default());
    Some((name, revision))
}

/// Shows identity and revision, never content: an object may be a Secret.
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

/// An object without `metadata.name`; given back to whoever offered it.
#[derive(thiserror::Error)]
#[error("an object without metadata.name has no key")]
pub struct Nameless<K>(pub Box<K>);

/// Shows nothing of the object, which may be a Secret.
impl<K> fmt::Debug for Nameless<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Nameless")
    }
}

#[cfg(test)]
mod tests;
