//! An overlay of a program's own writes over an informer's cache, until the cache contains them.
//!
//! - A read returns the newer of the cached state and the local write, by revision.
//! - An object that was deleted through the overlay is hidden, even if the cache still has it.
//! - A write is dropped when the cache's revision reaches it. The cache then has the write or a newer state, or
//!   the object is deleted. The overlay therefore needs no events, and drops a write no later than the cache
//!   receives the deletion of its object. With a [`DeltaFifo`](crate::queue::DeltaFifo) a write may stay a moment
//!   longer, because the cache's objects may be newer than its revision.
//! - Each write and deletion has a maximum lifetime, and their number is limited.
//! - [`MutationCache::lapsed`] reports the writes that the overlay dropped although the cache never contained
//!   them. Readers then see another state, possibly without an event.
//!
//! If the caller can wait, [`wait_for_revision`](SharedInformer::wait_for_revision) is simpler.
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

/// Default maximum number of writes, and also of deletions; equal to client-go's `defaultMaxSize`.
pub const CAPACITY: usize = 100;

/// Default maximum lifetime of a write or a deletion; equal to client-go's default.
pub const TTL: Duration = Duration::from_secs(5 * 60);

/// Reads an informer's cache and shows local writes over it; clones share the same overlay.
///
/// # Visibility
///
/// A write is visible as the server returned it, without the informer's transform, and even if the informer's
/// selector excludes it. It is visible until the cache has reached its revision.
///
/// A deletion hides the object with its uid; another object of the same name is visible. A deletion is kept
/// for its whole lifetime, to reject writes of that uid that are added after the deletion.
///
/// All writes and deletions are dropped when the server's revision goes backwards, because revisions before
/// and after the rollback are not comparable.
///
/// # Limits
///
/// Above its capacity, the overlay drops the oldest write or deletion, and reads return the cached state again.
/// Lifetimes use tokio's clock. There is no background task; expired entries stay in memory until the next call.
///
/// # Event-driven programs
///
/// A program that reads this overlay in response to events also needs [`MutationCache::lapsed`], because a write
/// can end without an event.
#[doc(alias = "Overlay")]
#[derive_where(Clone, Debug)]
pub struct MutationCache<K> {
    informer: SharedInformer<K>,
    kind: Arc<str>,
    #[derive_where(skip(Debug))]
    shared: Arc<Shared<K>>,
}

/// State shared by the clones of an overlay.
struct Shared<K> {
    laid: Mutex<Laid<K>>,
    /// Notified when a write lapses or the overlay gets its first entry, if there are [`Lapsed`] streams.
    changed: Notify,
}

struct Laid<K> {
    layer: Layer<K>,
    listeners: Listeners,
}

/// Builder of a [`MutationCache`], with its capacity, its maximum lifetime and the visibility of new objects.
#[must_use]
#[derive_where(Debug)]
pub struct Builder<K> {
    informer: SharedInformer<K>,
    kind: Arc<str>,
    limits: Limits,
}

/// Error of adding a write to the overlay.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PutError<K> {
    /// The object has no name.
    #[error(transparent)]
    Nameless(Nameless<K>),
    /// The object has no revision, or a revision without an order, so it can't be compared with the cache.
    #[error("{object:?} has no revision that can be compared")]
    NotComparable {
        /// The rejected object.
        object: Object<K>,
    },
}

impl<K> SharedInformer<K>
where
    K: Resource + Send + Sync + 'static,
{
    /// Returns an overlay of local writes over this informer's cache, with default limits.
    ///
    /// The limits are [`CAPACITY`] and [`TTL`]. [`MutationCache::builder`] sets other limits.
    #[doc(alias = "NewIntegerResourceVersionMutationCache")]
    pub fn overlay(&self) -> MutationCache<K> {
        MutationCache::builder(self).build()
    }
}

// === impl Builder ===

impl<K> Builder<K> {
    /// Sets the maximum number of writes, and also of deletions; each is at least one.
    pub fn capacity(mut self, objects: usize) -> Self {
        self.limits.capacity = objects.max(1);
        self
    }

    /// Sets the maximum lifetime of a write or a deletion.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.limits.ttl = ttl;
        self
    }

    /// Hides a write while the cache has no object of its name.
    ///
    /// A created object becomes visible when the cache has it, so it is never read here before handlers can
    /// receive its event.
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

    /// Adds an object, in the state that a write request returned, to the overlay, and returns its name.
    ///
    /// An object that is older than the cache, another write, or a deletion is ignored.
    ///
    /// # Errors
    /// [`PutError`]: the object has no name, or no revision that can be compared.
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

    /// Hides the object of this name and uid after the server has deleted it.
    ///
    /// If the object has finalizers or a grace period, the server only marks it as deleted and returns the object.
    /// Pass this object to [`put`](MutationCache::put) instead.
    #[doc(alias = "OnDelete")]
    pub fn delete(&self, name: &ObjectName, uid: impl Into<Arc<str>>) {
        let uid = uid.into();
        self.with(|layer, cache| layer.delete(name.clone(), uid, cache));
    }

    /// Returns the object of this name.
    ///
    /// # Errors
    /// The object does not exist, or its last state could not be decoded.
    pub fn get(&self, name: &ObjectName) -> Result<Arc<K>, GetError> {
        GetError::or_body(&self.kind, name, self.find(name))
    }

    /// Returns the object of this name as a handle, even if its last state could not be decoded.
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

    /// Returns the objects that match a label selector, from one snapshot, ordered by namespace and name.
    pub fn list(&self, selector: &Selector) -> Vec<Object<K>> {
        let (views, cache) = self.views();
        let matches = |object: &Object<K>| selector.matches(|key| object.labels().get(key));
        let cached = cache.iter().filter(|object| matches(object));
        merge(cached, &views, matches)
    }

    /// Returns the objects that have an index value, in order.
    ///
    /// The index's function is called for the writes in the overlay.
    ///
    /// # Errors
    /// The index does not exist.
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

    /// Returns the number of writes that the cache does not contain yet.
    pub fn pending(&self) -> usize {
        self.with(Layer::pending)
    }

    /// Returns a stream of the names of writes and deletions that lapse after this call.
    ///
    /// A write or deletion lapses when it ends although the cache never showed it. Readers of the overlay then see
    /// another state than before, possibly without an event. A program that reads the overlay adds each name to
    /// its work queue, or resyncs:
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
    /// A write lapses when
    ///
    /// - the cache passes its revision without having had the object: the object was deleted before the cache
    ///   received it, or the informer's selector excludes it;
    /// - its lifetime ends, or newer writes exceed the capacity;
    /// - the server's revision goes backwards.
    ///
    /// A deletion lapses in the last two cases, if the cache still has the object.
    ///
    /// A write does not lapse when
    ///
    /// - the cache has it, or a newer state of its name;
    /// - the cache has had its object and lost it;
    /// - a later write replaces it;
    /// - [`MutationCache::delete`] ends it.
    ///
    /// Handlers receive an event in the first two cases. If an object is created and deleted between two reads of
    /// the cache, its name is reported although handlers may have received events.
    #[must_use]
    pub fn lapsed(&self) -> Lapsed {
        Lapsed::new(self.clone())
    }

    /// Returns a snapshot of the cache, and the names for which the overlay differs from it. Calls no user
    /// code.
    fn views(&self) -> (BTreeMap<ObjectName, View<K>>, Snapshot<K>) {
        self.with(|layer, cache| (layer.views(cache), cache.clone()))
    }

    /// Drops all ended writes and deletions. Returns the next time at which an entry expires, if any.
    fn settle(&self) -> Option<Instant> {
        self.with(|layer, cache| {
            layer.settle(cache);
            layer.next_expiry()
        })
    }

    /// Calls `act` with the entries and a snapshot taken under the lock, so that snapshots never go back in
    /// time.
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

/// Returns the cached objects that `views` does not replace, and the matching local writes, in order.
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
