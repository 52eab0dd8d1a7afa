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

mod decode_error;
mod deleted;
mod head;
mod known;
mod labels;
mod lazy;
mod name;
mod opener;
mod reading;
mod revision;
mod epoch;
mod uid;

pub use self::{
    decode_error::DecodeError,
    deleted::Deleted,
    known::Known,
    labels::Labels,
    name::{NameError, ObjectName},
    revision::ResourceVersion,
};
pub(crate) use self::{
    epoch::Epoch,
    head::{Head, HeadMetadata, Pairs},
    lazy::Lazy,
    opener::{Opener, PackOptions, Unfit},
    reading::{UnreadCount, UnreadMoment},
    uid::UidMark,
};

use std::{collections::BTreeMap, fmt, sync::Arc};

use kube_core::Resource;

use self::{lazy::LazyBody, opener::PackedBody};

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
pub struct Object<K> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    name: ObjectName,
    revision: ResourceVersion,
    /// How many bytes the server sent for it; zero if it did not come from there.
    wire_bytes: u32,
    uid: UidMark,
    body: Body<K>,
}

/// What a handle has of its object. No other stage looks at which it is.
enum Body<K> {
    Live(Live<K>),
    Packed(PackedBody<K>),
    Lazy(Arc<LazyBody<K>>),
    Broken(Box<Broken>),
}

struct Live<K> {
    object: Arc<K>,
    /// What it takes beyond itself, as far as its decoding could tell. It stands here because a packed body
    /// is larger, so a handle does not grow by it.
    heap_bytes: u32,
}

#[derive(Clone)]
struct Broken {
    uid: String,
    labels: BTreeMap<String, String>,
    error: DecodeError,
}

impl<K> Clone for Inner<K> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            revision: self.revision.clone(),
            wire_bytes: self.wire_bytes,
            uid: self.uid,
            body: match &self.body {
                Body::Live(live) => Body::Live(Live {
                    object: Arc::clone(&live.object),
                    heap_bytes: live.heap_bytes,
                }),
                Body::Packed(packed) => Body::Packed(packed.clone()),
                Body::Lazy(lazy) => Body::Lazy(Arc::clone(lazy)),
                Body::Broken(broken) => Body::Broken(broken.clone()),
            },
        }
    }
}

impl<K> Clone for Object<K> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
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
        match &self.inner.body {
            Body::Live(live) => Ok(Arc::clone(&live.object)),
            Body::Packed(packed) => packed.open(&self.inner.name),
            Body::Lazy(lazy) => lazy.open(&self.inner.name, true),
            Body::Broken(broken) => Err(broken.error.clone()),
        }
    }

    /// The same for one look at everything: what nobody has read is not kept decoded for it.
    pub(crate) fn glance(&self) -> Result<Arc<K>, DecodeError> {
        match &self.inner.body {
            Body::Lazy(lazy) => lazy.open(&self.inner.name, false),
            _ => self.get(),
        }
    }

    /// The object by reference, if it is kept decoded and is good. In a packed or lazy cache none is,
    /// whoever has read it.
    pub fn live(&self) -> Option<&K> {
        match &self.inner.body {
            Body::Live(live) => Some(&live.object),
            Body::Packed(_) | Body::Lazy(_) | Body::Broken(_) => None,
        }
    }

    /// Why the object has no body, if that was known when this handle was made. A packed or lazy cache
    /// knows it once the object was read: a handle that it gives out afterwards returns the reason, the
    /// handle that was read does not; [`Object::get`] of either does.
    pub fn broken(&self) -> Option<&DecodeError> {
        match &self.inner.body {
            Body::Live(_) | Body::Packed(_) | Body::Lazy(_) => None,
            Body::Broken(broken) => Some(&broken.error),
        }
    }

    pub(crate) fn is_packed(&self) -> bool {
        matches!(self.inner.body, Body::Packed(_))
    }

    /// Whether somebody has just had the object of a packed body.
    pub(crate) fn is_open(&self) -> bool {
        matches!(&self.inner.body, Body::Packed(packed) if packed.is_open())
    }

    /// The object of a packed body, for those who are about to ask for it; what they would have been told
    /// otherwise they are told then.
    pub(crate) fn open_ahead(&self) -> Option<Arc<K>> {
        match &self.inner.body {
            Body::Packed(packed) => packed.open_ahead(&self.inner.name).ok(),
            Body::Live(_) | Body::Lazy(_) | Body::Broken(_) => None,
        }
    }

    /// Whether its body is to be packed, and is not yet.
    pub(crate) fn is_pending(&self) -> bool {
        matches!(&self.inner.body, Body::Packed(packed) if packed.is_pending())
    }

    /// Packs its body, if that was put off.
    pub(crate) fn pack_now(&self) {
        if let Body::Packed(packed) = &self.inner.body {
            packed.pack_now();
        }
    }

    /// Packs its body anew, if it was packed with what is no longer the best.
    pub(crate) fn repack(&self) {
        if let Body::Packed(packed) = &self.inner.body {
            packed.repack();
        }
    }

    /// Whether the other is the same state by its revision, of the same object by its uid, and of the same
    /// epoch: a server that was restored gives revisions out again. An object without a revision never is.
    pub(crate) fn is_unchanged(&self, other: &Self) -> bool {
        let (revision, others) = (self.revision(), other.revision());
        let has_same_revision = !revision.is_unset() && revision == others;
        has_same_revision
            && revision.epoch() == others.epoch()
            && self.uid_mark().may_be(other.uid_mark())
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
    pub(crate) fn uid_mark(&self) -> UidMark {
        self.inner.uid
    }

    /// Whether two handles point at the very same state, by address.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// How many bytes the server sent for it, if it is a good state of an object that came from there;
    /// of one that was saved, how many bytes it takes there.
    pub(crate) fn wire_bytes(&self) -> u64 {
        self.inner.wire_bytes.into()
    }

    /// Wraps an object under the identity that it had when the server sent it, as so many bytes.
    pub(crate) fn identified(
        name: ObjectName,
        revision: ResourceVersion,
        uid: UidMark,
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

    /// What it takes, with its handle, in bytes: see
    /// [`StoreSample::rest_bytes`](crate::metrics::StoreSample::rest_bytes).
    pub(crate) fn rest_bytes(&self) -> u64 {
        let handle = COUNTS_BYTES + size_of::<Inner<K>>() + self.inner.name.as_str().len();
        let body = match &self.inner.body {
            Body::Live(live) => COUNTS_BYTES + size_of::<K>() + live.heap_bytes as usize,
            Body::Packed(packed) => packed.size() + packed.uid().len(),
            Body::Lazy(lazy) => COUNTS_BYTES + lazy.size() + lazy.uid().len(),
            Body::Broken(broken) => size_of::<Broken>() + broken.uid.len(),
        };
        (handle + body) as u64
    }

    /// What packs it takes so many bytes, together for all that are packed alike.
    pub(crate) fn packing_bytes(&self) -> Option<u64> {
        match &self.inner.body {
            Body::Packed(packed) => Some(packed.packing().size() as u64),
            Body::Live(_) | Body::Lazy(_) | Body::Broken(_) => None,
        }
    }

    /// Keeps the JSON of an object, whose identity this is, packed.
    pub(crate) fn packed(
        name: ObjectName,
        head: &Head<'_>,
        json: &[u8],
        wire_bytes: usize,
        opener: &Arc<Opener<K>>,
    ) -> Self {
        let body = Body::Packed(opener.body(&head.metadata.uid, head.labels(), json));
        Self::unread(name, head, wire_bytes, body)
    }

    /// The same, to be packed later.
    pub(crate) fn packed_later(
        name: ObjectName,
        head: &Head<'_>,
        json: &[u8],
        wire_bytes: usize,
        opener: &Arc<Opener<K>>,
    ) -> Self {
        let body = Body::Packed(opener.pending_body(&head.metadata.uid, head.labels(), json));
        Self::unread(name, head, wire_bytes, body)
    }

    /// Keeps the JSON of an object, whose identity this is, until somebody reads it.
    pub(crate) fn lazy(
        name: ObjectName,
        head: &Head<'_>,
        json: &[u8],
        wire_bytes: usize,
        lazy: &Arc<Lazy<K>>,
    ) -> Self {
        let body = Body::Lazy(lazy.body(&head.metadata.uid, head.labels(), json));
        Self::unread(name, head, wire_bytes, body)
    }

    fn unread(name: ObjectName, head: &Head<'_>, wire_bytes: usize, body: Body<K>) -> Self {
        Self {
            inner: Arc::new(Inner {
                name,
                revision: head.revision(),
                wire_bytes: u32::try_from(wire_bytes).unwrap_or(u32::MAX),
                uid: UidMark::of(&head.metadata.uid),
                body,
            }),
        }
    }

    /// The same state, packed if it was kept decoded and can be written as JSON. Uid and labels are those
    /// that it has now.
    pub(crate) fn pack(self, opener: &Arc<Opener<K>>) -> Self {
        let Body::Live(live) = &self.inner.body else {
            return self;
        };
        let Some(json) = opener.encode(&live.object) else {
            return self;
        };
        let Ok(head) = serde_json::from_slice::<Head<'_>>(&json) else {
            return self;
        };
        let inner = Inner {
            name: self.inner.name.clone(),
            revision: self.inner.revision.clone(),
            wire_bytes: self.inner.wire_bytes,
            uid: self.inner.uid,
            body: Body::Packed(opener.read_body(&head.metadata.uid, head.labels(), &json)),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    pub(crate) fn from_broken(name: ObjectName, head: &Head<'_>, error: DecodeError) -> Self {
        Self {
            inner: Arc::new(Inner {
                name,
                revision: head.revision(),
                wire_bytes: 0,
                uid: UidMark::of(&head.metadata.uid),
                body: Body::Broken(Box::new(Broken {
                    uid: head.metadata.uid.to_string(),
                    labels: head.label_map(),
                    error,
                })),
            }),
        }
    }
}

impl<K: Resource> Object<K> {
    /// Wraps a decoded object.
    ///
    /// # Errors
    /// [`Nameless`], with the object, when `metadata.name` is missing or empty: such an object can't
    /// be kept under any key.
    pub fn new(object: K) -> Result<Self, Nameless<K>> {
        let Some((name, revision)) = identity(&object) else {
            return Err(Nameless(Box::new(object)));
        };
        let uid = UidMark::of_object(&object);
        Ok(Self::identified(name, revision, uid, object, 0))
    }

    /// `metadata.uid`, empty when the server sent none.
    pub fn uid(&self) -> &str {
        match &self.inner.body {
            Body::Live(live) => live.object.meta().uid.as_deref().unwrap_or_default(),
            Body::Packed(packed) => packed.uid(),
            Body::Lazy(lazy) => lazy.uid(),
            Body::Broken(broken) => &broken.uid,
        }
    }

    /// `metadata.labels`.
    pub fn labels(&self) -> Labels<'_> {
        match &self.inner.body {
            Body::Live(live) => Labels::of_map(live.object.meta().labels.as_ref()),
            Body::Packed(packed) => packed.labels(),
            Body::Lazy(lazy) => lazy.labels(),
            Body::Broken(broken) => Labels::of_map(Some(&broken.labels)),
        }
    }
}

/// The counts that an `Arc` has beside what it points to.
const COUNTS_BYTES: usize = 2 * size_of::<usize>();

/// Name and revision, if there is a name.
pub(crate) fn identity<K: Resource>(object: &K) -> Option<(ObjectName, ResourceVersion)> {
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
