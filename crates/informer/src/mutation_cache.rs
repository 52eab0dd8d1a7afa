//! Defines an overlay that adds a program's own writes to an informer's cache, until the cache contains them.
//!
//! - A read compares the revisions of the cached state and of the local write, and returns the newer one.
//! - A read does not return an object whose deletion was recorded with [`MutationCache::delete`], even if the
//!   cache still contains it.
//! - A write is dropped when the revision of the cache reaches the write's revision, or when the cache
//!   removes the object. The cache then contains the write or a newer state, unless the object was deleted
//!   or the informer's selector excludes it.
//! - Writes and deletions have a maximum lifetime, and their numbers are limited.
//! - [`MutationCache::lapsed`] reports each write or deletion that was dropped although the cache has not
//!   applied this change. Reads then return the cached state again, and handlers may receive no event for
//!   this change.
//!
//! If the caller can wait for the cache, [`wait_for_revision`](SharedInformer::wait_for_revision) is simpler.
//!
//! ```no_run
//! # use k8s_openapi::api::core::v1::Pod;
//! # use kube_informer::{Object, SharedInformer};
//! # async fn example(
//! #     pods: SharedInformer<Pod>, api: kube_client::Api<Pod>, pod: Pod,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! let overlay = pods.overlay();
//! let written = api.replace("mypod", &Default::default(), &pod).await?;
//! let revision = written.metadata.resource_version.clone();
//! let name = overlay.put(written)?;
//! assert_eq!(overlay.get(&name)?.metadata.resource_version, revision); // or newer
//! # Ok(()) }
//! ```

mod lapsed;
mod layer;

pub use self::lapsed::Lapsed;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use derive_where::derive_where;
use kube_core::Resource;
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use self::{
    lapsed::Listeners,
    layer::{Absent, Layer, Limits, View},
};
use crate::{
    indexer::{IndexRef, NoSuchIndex, Snapshot},
    lister::GetError,
    object::{Nameless, Object, ObjectName},
    selector::Selector,
    shared_informer::SharedInformer,
};

/// Default maximum number of writes in an overlay. Deletions are counted separately, with the same maximum.
///
/// Equal to client-go's `defaultMaxSize`.
pub const CAPACITY: usize = 100;

/// Default maximum time for which an overlay keeps a write or a deletion. Equal to client-go's default.
pub const TTL: Duration = Duration::from_secs(5 * 60);

/// Reads an informer's cache together with the program's own writes. Clones share the same writes.
///
/// # Visibility
///
/// A read returns a write in the state that the server returned to the program, without the informer's
/// transform. A write is visible even if the informer's selector excludes it. The overlay drops the write
/// when the cache has reached the write's revision or has removed the object, or earlier because of the
/// limits below.
///
/// After a deletion, reads do not return the object with the deleted uid. If the cache contains an object
/// with the same name and another uid, reads return that object. The overlay keeps a deletion after the cache
/// has applied it, until the deletion's lifetime ends. During this time, the overlay ignores new writes of
/// the deleted uid.
///
/// If the server's revision decreases after a restore, all writes and deletions are dropped, because
/// revisions before and after the restore are not comparable.
///
/// # Limits
///
/// A write or deletion expires after its lifetime, which is [`TTL`] by default. The capacity limits the
/// number of writes and, separately, the number of deletions. When one number exceeds the capacity, the
/// overlay drops the oldest write or the oldest deletion, respectively. After a write or deletion expires or
/// is dropped, reads return the cached state again.
///
/// Lifetimes are measured with tokio's clock. There is no background task. Expired writes and deletions stay
/// in memory until the next call of a method of the overlay.
///
/// # Event-driven programs
///
/// A program that reads this overlay in response to events also needs [`MutationCache::lapsed`], because
/// handlers may receive no event when a write is dropped.
#[doc(alias = "Overlay")]
#[derive_where(Clone, Debug)]
pub struct MutationCache<K> {
    informer: SharedInformer<K>,
    kind: Arc<str>,
    #[derive_where(skip(Debug))]
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    laid: Mutex<Laid<K>>,
    /// Wakes the [`Lapsed`] streams when the overlay drops a write or deletion although the cache has not
    /// applied this change.
    ///
    /// Also wakes the streams when an empty overlay receives a write or deletion, because the streams must
    /// then wait until this change expires.
    changed: Notify,
}

struct Laid<K> {
    layer: Layer<K>,
    listeners: Listeners,
}

/// Builder of a [`MutationCache`]. Sets the capacity, the maximum lifetime of writes and deletions, and
/// whether a created object is visible before the informer's cache contains the object.
#[must_use]
#[derive_where(Debug)]
pub struct Builder<K> {
    informer: SharedInformer<K>,
    kind: Arc<str>,
    limits: Limits,
}

/// The reason why a write was not added to an overlay.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PutError<K> {
    /// The object has no name.
    #[error(transparent)]
    Nameless(Nameless<K>),
    /// The object has no revision, or its revision is not a positive number. The overlay can't compare such
    /// an object with the cached state.
    #[error("{object:?} has no revision that can be compared")]
    NotComparable {
        /// The object that was not added.
        object: Object<K>,
    },
}

impl<K> SharedInformer<K>
where
    K: Resource + Send + Sync + 'static,
{
    /// Returns an overlay of the program's own writes over this informer's cache, with the default limits
    /// [`CAPACITY`] and [`TTL`].
    ///
    /// [`MutationCache::builder`] sets other limits.
    #[doc(alias = "NewIntegerResourceVersionMutationCache")]
    pub fn overlay(&self) -> MutationCache<K> {
        MutationCache::builder(self).build()
    }
}

// === impl Builder ===

impl<K> Builder<K> {
    /// Sets the maximum number of writes in the overlay, which is also the maximum number of deletions.
    /// Writes and deletions are counted separately.
    ///
    /// A capacity of zero counts as one.
    pub fn capacity(mut self, objects: usize) -> Self {
        self.limits.capacity = objects.max(1);
        self
    }

    /// Sets the maximum time for which the overlay keeps a write or a deletion.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.limits.ttl = ttl;
        self
    }

    /// Configures reads to ignore a write while the cache has no object with the same name.
    ///
    /// A created object thus becomes visible only when the cache receives the object.
    #[doc(alias = "includeAdds")]
    pub fn without_adds(mut self) -> Self {
        self.limits.absent = Absent::Hidden;
        self
    }

    /// Creates the overlay.
    pub fn build(self) -> MutationCache<K> {
        let laid = Laid {
            layer: Layer::new(self.limits),
            listeners: Listeners::default(),
        };
        MutationCache {
            informer: self.informer,
            kind: self.kind,
            shared: Arc::new(Shared {
                laid: Mutex::new(laid),
                changed: Notify::new(),
            }),
        }
    }
}

// === impl MutationCache ===

impl<K> MutationCache<K>
where
    K: Resource + Send + Sync + 'static,
{
    /// Returns a builder of an overlay over the cache of an informer.
    #[doc(alias = "NewIntegerResourceVersionMutationCache")]
    pub fn builder(informer: &SharedInformer<K>) -> Builder<K> {
        Builder {
            informer: informer.clone(),
            kind: Arc::from(informer.kind()),
            limits: Limits {
                capacity: CAPACITY,
                ttl: TTL,
                absent: Absent::Shown,
                sources: informer.sources(),
            },
        }
    }

    /// Adds an object to the overlay, in the state that the server returned for a write request. Returns the
    /// object's name.
    ///
    /// The object is not added if the cache or the overlay has a newer state. A write is also ignored while
    /// the overlay contains a deletion of the object; see [`delete`](MutationCache::delete).
    ///
    /// # Errors
    /// Returns [`PutError`] if the object has no name, or if its revision is missing or is not a positive
    /// number.
    #[doc(alias = "Mutation")]
    pub fn put(&self, written: K) -> Result<ObjectName, PutError<K>> {
        let object = Object::new(written).map_err(PutError::Nameless)?;
        if !object.revision().is_comparable() {
            return Err(PutError::NotComparable { object });
        }
        let name = object.object_name().clone();
        self.with(|layer, cache| layer.put(object, cache));
        Ok(name)
    }

    /// Records a deletion. Reads then no longer return the object with this name and uid.
    ///
    /// Call this method after the server has deleted the object. If the object has finalizers or a grace
    /// period, the server does not delete the object. It sets `metadata.deletionTimestamp` and returns the
    /// changed object. Pass this object to [`put`](MutationCache::put) instead.
    #[doc(alias = "OnDelete")]
    pub fn delete(&self, name: &ObjectName, uid: impl Into<Arc<str>>) {
        let uid = uid.into();
        self.with(|layer, cache| layer.delete(name.clone(), uid, cache));
    }

    /// Returns the newest state of the object with this name, from the overlay or the cache.
    ///
    /// # Errors
    /// Returns an error if neither the overlay nor the cache contains the object, if the overlay contains a
    /// deletion of the cached object, or if the newest state failed to decode.
    pub fn get(&self, name: &ObjectName) -> Result<Arc<K>, GetError> {
        GetError::or_body(&self.kind, name, self.find(name))
    }

    /// Returns a handle to the newest state of the object with this name, from the overlay or the cache.
    ///
    /// The newest state may be one that failed to decode. Returns `None` if the overlay and the cache do not
    /// contain the object, or if the overlay contains a deletion of the cached object.
    #[doc(alias = "GetByKey")]
    pub fn find(&self, name: &ObjectName) -> Option<Object<K>> {
        let (seen, cached) = self.with(|layer, cache| {
            let seen = layer.view(name, cache);
            (seen, cache.get(name).cloned())
        });
        match seen {
            View::Cache => cached,
            View::Written(object) => Some(object),
            View::Gone => None,
        }
    }

    /// Returns the objects of the overlay and the cache that match a label selector, ordered by namespace and
    /// name.
    ///
    /// If the overlay and the cache contain the same object, the result contains only the newer state. All
    /// cached objects are from one snapshot.
    pub fn list(&self, selector: &Selector) -> Vec<Object<K>> {
        let (views, cache) = self.views();
        let matches = |object: &Object<K>| selector.matches(|key| object.labels().get(key));
        let cached = cache.iter().filter(|object| matches(object));
        merge(cached, &views, matches)
    }

    /// Returns the objects of the overlay and the cache that have this value in an index, ordered by
    /// namespace and name.
    ///
    /// # Errors
    /// Returns an error if the cache does not have this index.
    #[doc(alias = "ByIndex")]
    pub fn by_index(
        &self,
        index: &(impl IndexRef + ?Sized),
        value: &str,
    ) -> Result<Vec<Object<K>>, NoSuchIndex> {
        let (views, cache) = self.views();
        let cached = cache.by_index(index, value)?;
        Ok(merge(cached, &views, |object| {
            let values = cache.values_of(index, object).unwrap_or_default();
            values.iter().any(|found| **found == *value)
        }))
    }

    /// Returns the number of writes in the overlay that the cache does not contain yet.
    pub fn pending(&self) -> usize {
        self.with(Layer::pending)
    }

    /// Returns a stream of the names of objects whose write or deletion lapses after this call.
    ///
    /// A write or deletion lapses when the overlay drops it although the cache has not applied this change.
    /// Reads of the overlay then return another state than before, and handlers may receive no event for this
    /// change. A program that reads the overlay should therefore add each name to its work queue:
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kube_informer::{MutationCache, ObjectName, workqueue::RateLimitingQueue};
    /// # async fn example(overlay: MutationCache<Pod>, queue: RateLimitingQueue<ObjectName>) {
    /// let mut lapsed = overlay.lapsed();
    /// while let Some(name) = lapsed.next().await {
    ///     queue.add(name);
    /// }
    /// # }
    /// ```
    ///
    /// A write lapses in these cases:
    ///
    /// - The cache reaches the write's revision, and has not contained the object since the write. This
    ///   happens if the object was deleted before the cache received it, or if the informer's selector
    ///   excludes it.
    /// - The write's lifetime ends, or newer writes exceed the capacity.
    /// - The server's revision decreases after a restore.
    ///
    /// A deletion lapses in these cases, if the cache still contains the object:
    ///
    /// - The deletion's lifetime ends, or newer deletions exceed the capacity.
    /// - The server's revision decreases after a restore.
    ///
    /// A write does not lapse in these cases:
    ///
    /// - The cache contains the written state, or a newer state of an object with the same name. Handlers
    ///   receive an event.
    /// - The cache has removed the object. Handlers receive an event.
    /// - A later write of an object with the same name replaces the write.
    /// - [`MutationCache::delete`] drops the write.
    ///
    /// The overlay reads the cache at each call of its methods. If an object is created and deleted between
    /// two of these reads, the stream reports the object's name, although handlers may have received events.
    #[must_use]
    pub fn lapsed(&self) -> Lapsed {
        Lapsed::new(self.clone())
    }

    /// Returns a snapshot of the cache, and the views of all objects for which readers see another state than
    /// the cached one.
    fn views(&self) -> (BTreeMap<ObjectName, View<K>>, Snapshot<K>) {
        self.with(|layer, cache| (layer.views(cache), cache.clone()))
    }

    /// Drops expired writes and deletions, and writes whose revision the cache has reached.
    ///
    /// Returns the time at which the next write or deletion expires.
    fn settle(&self) -> Option<Instant> {
        self.with(|layer, cache| {
            layer.settle(cache);
            layer.next_expiry()
        })
    }

    /// Calls `act` with the overlay's writes and deletions, and with a snapshot of the cache.
    ///
    /// Each call receives a snapshot at least as new as the previous call's snapshot.
    fn with<R>(&self, act: impl FnOnce(&mut Layer<K>, &Snapshot<K>) -> R) -> R {
        let mut laid = self.shared.laid.lock();
        let Laid { layer, listeners } = &mut *laid;
        let cache = self.informer.indexer().snapshot();
        let was_empty = layer.is_empty();
        let result = act(layer, &cache);
        let (released, lapsed) = (std::mem::take(&mut layer.released), layer.take_lapsed());
        listeners.record(&lapsed);
        let begins = was_empty && !layer.is_empty();
        if !listeners.is_empty() && (begins || !lapsed.is_empty()) {
            self.shared.changed.notify_waiters();
        }
        drop(laid);
        // Dropped after the lock is released: a destructor of the user's type may call the overlay.
        drop(released);
        result
    }
}

/// Merges cached objects with `views`, ordered by namespace and name.
///
/// A view replaces or hides the cached object with the same name. `matches` filters only the objects in
/// `views`.
fn merge<'a, K: 'a>(
    cached: impl Iterator<Item = &'a Object<K>>,
    views: &BTreeMap<ObjectName, View<K>>,
    matches: impl Fn(&Object<K>) -> bool,
) -> Vec<Object<K>> {
    let mut merged: Vec<_> = cached
        .filter(|object| !views.contains_key(object.object_name()))
        .cloned()
        .collect();
    let before = merged.len();
    let written = views.values().filter_map(View::written);
    merged.extend(written.filter(|object| matches(object)).cloned());
    if merged.len() > before {
        merged.sort_by(|one, other| one.object_name().cmp(other.object_name()));
    }
    merged
}
