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
mod head;
mod labels;
mod name;
mod opener;
mod revision;
mod timeline;
mod uid;

pub use self::{
    decode_error::DecodeError,
    labels::Labels,
    name::{NameError, ObjectName},
    revision::ResourceVersion,
};
pub(crate) use self::{
    head::{Head, HeadMetadata},
    opener::{Opener, PackOptions, Unfit},
    timeline::Timeline,
    uid::UidMark,
};

use std::{collections::BTreeMap, fmt, sync::Arc};

use kube_core::Resource;

use self::opener::PackedBody;

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
    Live(Arc<K>),
    Packed(PackedBody<K>),
    Broken(Box<Broken>),
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
                Body::Live(object) => Body::Live(Arc::clone(object)),
                Body::Packed(packed) => Body::Packed(packed.clone()),
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
    /// somebody else just had it.
    ///
    /// # Errors
    /// The [`DecodeError`] of an object whose bytes did not decode into `K`. Readers of a snapshot can
    /// meet one; handlers only with a packed cache, where nobody has looked before them.
    pub fn get(&self) -> Result<Arc<K>, DecodeError> {
        match &self.inner.body {
            Body::Live(object) => Ok(Arc::clone(object)),
            Body::Packed(packed) => packed.open(&self.inner.name),
            Body::Broken(broken) => Err(broken.error.clone()),
        }
    }

    /// The object by reference, if it is kept decoded and is good. In a packed cache none is.
    pub fn live(&self) -> Option<&K> {
        match &self.inner.body {
            Body::Live(object) => Some(object),
            Body::Packed(_) | Body::Broken(_) => None,
        }
    }

    /// Why the object has no body, if it is known to have none. What is packed is not known to.
    pub fn broken(&self) -> Option<&DecodeError> {
        match &self.inner.body {
            Body::Live(_) | Body::Packed(_) => None,
            Body::Broken(broken) => Some(&broken.error),
        }
    }

    /// How many bytes its packed body takes; `None` if it is kept in another form.
    #[cfg(test)]
    pub(crate) fn packed_bytes(&self) -> Option<usize> {
        match &self.inner.body {
            Body::Packed(packed) => Some(packed.size()),
            Body::Live(_) | Body::Broken(_) => None,
        }
    }

    /// Packs its body anew, if it was packed with what is no longer the best.
    pub(crate) fn repack(&self) {
        if let Body::Packed(packed) = &self.inner.body {
            packed.repack();
        }
    }

    /// Whether the other is the same state by its revision, of the same object by its uid, and heard on
    /// the same timeline: a server that was put back gives revisions anew. Objects without a revision are
    /// never known to be.
    pub(crate) fn is_unchanged(&self, other: &Self) -> bool {
        let (revision, others) = (self.revision(), other.revision());
        let has_same_revision = !revision.is_unset() && revision == others;
        has_same_revision
            && revision.timeline() == others.timeline()
            && self.uid_mark().may_be(other.uid_mark())
    }

    /// The same state, heard on this timeline.
    pub(crate) fn on(mut self, timeline: Timeline) -> Self {
        if self.revision().timeline() != timeline {
            let Inner { revision, .. } = Arc::make_mut(&mut self.inner);
            *revision = std::mem::take(revision).on(timeline);
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
                body: Body::Live(Arc::new(object)),
            }),
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
        Self {
            inner: Arc::new(Inner {
                name,
                revision: head.revision(),
                wire_bytes: u32::try_from(wire_bytes).unwrap_or(u32::MAX),
                uid: UidMark::of(&head.metadata.uid),
                body: Body::Packed(opener.body(&head.metadata.uid, head.labels(), json)),
            }),
        }
    }

    /// The same state, packed if it was kept decoded and can be written as JSON. Uid and labels are those
    /// that it has now.
    pub(crate) fn pack(self, opener: &Arc<Opener<K>>) -> Self {
        let Body::Live(object) = &self.inner.body else {
            return self;
        };
        let Some(json) = opener.encode(object) else {
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
            body: Body::Packed(opener.body(&head.metadata.uid, head.labels(), &json)),
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
            Body::Live(object) => object.meta().uid.as_deref().unwrap_or_default(),
            Body::Packed(packed) => packed.uid(),
            Body::Broken(broken) => &broken.uid,
        }
    }

    /// `metadata.labels`.
    pub fn labels(&self) -> Labels<'_> {
        match &self.inner.body {
            Body::Live(object) => Labels::of_map(object.meta().labels.as_ref()),
            Body::Packed(packed) => packed.labels(),
            Body::Broken(broken) => Labels::of_map(Some(&broken.labels)),
        }
    }
}

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

/// A deletion, as queues carry it and handlers hear it.
#[doc(alias = "DeletedFinalStateUnknown")]
#[doc(alias = "DeletedObject")]
#[derive(Debug)]
pub enum Deleted<K> {
    /// The server told of the deletion: this is the last state, at the revision of the deletion.
    Known(Object<K>),
    /// The deletion was missed (the watch was down) and found out by a relist.
    #[doc(alias = "DeletedFinalStateUnknown")]
    FinalStateUnknown {
        /// Which object is gone.
        name: ObjectName,
        /// The last state anybody here knew; it may be stale. A handler always gets one.
        last_known: Option<Object<K>>,
    },
}

impl<K> Clone for Deleted<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Known(object) => Self::Known(object.clone()),
            Self::FinalStateUnknown { name, last_known } => Self::FinalStateUnknown {
                name: name.clone(),
                last_known: last_known.clone(),
            },
        }
    }
}

impl<K> Deleted<K> {
    /// Which object is gone; never fails.
    #[doc(alias = "DeletionHandlingMetaNamespaceKeyFunc")]
    #[doc(alias = "DeletionHandlingObjectToName")]
    #[doc(alias = "GetObjectName")]
    #[doc(alias = "GetKey")]
    pub fn object_name(&self) -> &ObjectName {
        match self {
            Self::Known(object) => object.object_name(),
            Self::FinalStateUnknown { name, .. } => name,
        }
    }

    /// The last state: the final one, or the last one known.
    #[doc(alias = "OptionalObj")]
    pub fn object(&self) -> Option<&Object<K>> {
        match self {
            Self::Known(object) => Some(object),
            Self::FinalStateUnknown { last_known, .. } => last_known.as_ref(),
        }
    }

    /// Whether the deletion was missed, so that [`Deleted::object`] may be stale.
    #[doc(alias = "FinalStateUnknown")]
    pub fn is_final_state_unknown(&self) -> bool {
        matches!(self, Self::FinalStateUnknown { .. })
    }
}

/// What a store already has, lent to a queue for the time of one `replace` or `resync`.
#[doc(alias = "KeyListerGetter")]
#[doc(alias = "KnownObjects")]
#[doc(alias = "KeyLister")]
#[doc(alias = "KeyGetter")]
pub trait Known<K> {
    /// The newest state kept under a name, with the source that brought it.
    #[doc(alias = "GetByKey")]
    fn known(&self, name: &ObjectName) -> Option<(SourceId, Object<K>)>;

    /// Visits everything kept, in the order of names.
    #[doc(alias = "ListKeys")]
    fn for_each(&self, visit: &mut dyn FnMut(SourceId, &ObjectName, &Object<K>));
}

/// Nothing is known.
impl<K> Known<K> for () {
    fn known(&self, _: &ObjectName) -> Option<(SourceId, Object<K>)> {
        None
    }

    fn for_each(&self, _: &mut dyn FnMut(SourceId, &ObjectName, &Object<K>)) {}
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
