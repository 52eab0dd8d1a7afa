//! One's own writes, laid over an informer's cache until it has caught up with them.
//!
//! - A read gives the newest of what the cache has and what was written here, by revision.
//! - What was deleted here is not read any more, whatever the cache still has.
//! - A write is let go of as soon as the cache has come as far: it has the write then, or something
//!   newer, or the object is gone. The cache's revision says so, so nothing has to be told of its
//!   events, and no write outlasts the news that its object was deleted. (With a
//!   [`DeltaFifo`](crate::queue::DeltaFifo), which runs ahead of the revision, it may by a moment.)
//! - Nothing stays longer than its time, and there is a bound to how many there are.
//! - [`MutationCache::lapsed`] reports the writes that ended without the cache having shown them:
//!   readers see another state then, and no event says so.
//!
//! Whoever can wait has it simpler with
//! [`wait_for_revision`](SharedInformer::wait_for_revision); this is for those who can't.
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

/// So many writes are kept by default, and as many deletions; `defaultMaxSize` of client-go's mutation
/// cache.
pub const CAPACITY: usize = 100;

/// How long a write or a deletion is kept by default at the longest; client-go takes as much when it is
/// told no time.
pub const TTL: Duration = Duration::from_secs(5 * 60);

/// Reads an informer's cache with one's own writes laid over it. Clones are the same overlay.
///
/// # What is shown
///
/// A write is shown as the server answered it, without the informer's transform, and also if the
/// informer's selector leaves it out, until the cache is past it.
///
/// A deletion hides the object of that uid; another of the same name is shown. It stays for its whole
/// time, for a write that was answered before it may come in after it, and is refused then.
///
/// When the server's revision goes backwards everything is let go of: the order by revision has ended.
///
/// # Bounds
///
/// Beyond its capacity it lets go of the oldest write, or deletion, and reads are the cache's again.
/// Time is tokio's; there is no task, and what has had its time stays in memory until the next call.
///
/// # Who decides by what is read here
///
/// A program that reads this overlay when an event wakes it also needs [`MutationCache::lapsed`]:
/// a write can end without an event.
#[doc(alias = "Overlay")]
#[derive_where(Clone, Debug)]
pub struct MutationCache<K> {
    informer: SharedInformer<K>,
    kind: Arc<str>,
    #[derive_where(skip(Debug))]
    shared: Arc<Shared<K>>,
}

/// What the clones of an overlay share.
struct Shared<K> {
    laid: Mutex<Laid<K>>,
    /// Notified when a name has lapsed, or the first write or deletion is laid over the cache, if there
    /// are listeners.
    changed: Notify,
}

struct Laid<K> {
    layer: Layer<K>,
    listeners: Listeners,
}

/// Settles the limits of a [`MutationCache`].
#[must_use]
#[derive_where(Debug)]
pub struct Builder<K> {
    informer: SharedInformer<K>,
    kind: Arc<str>,
    limits: Limits,
}

/// Why a write could not be laid over the cache.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PutError<K> {
    /// The object has no name.
    #[error(transparent)]
    Nameless(Nameless<K>),
    /// The object has no revision, or one without an order, so nobody can tell what is newer.
    #[error("{object:?} has no revision that can be compared")]
    NotComparable {
        /// What was written.
        object: Object<K>,
    },
}

impl<K> SharedInformer<K>
where
    K: Resource + Send + Sync + 'static,
{
    /// A reader of this informer's cache with one's own writes laid over it: at most [`CAPACITY`] of
    /// them, for at most [`TTL`]. [`MutationCache::builder`] sets other limits.
    #[doc(alias = "NewIntegerResourceVersionMutationCache")]
    pub fn overlay(&self) -> MutationCache<K> {
        MutationCache::builder(self).build()
    }
}

// === impl Builder ===

impl<K> Builder<K> {
    /// So many writes are kept, and as many deletions; at least one of each.
    pub fn capacity(mut self, objects: usize) -> Self {
        self.limits.capacity = objects.max(1);
        self
    }

    /// A write or a deletion is kept for so long at the most.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.limits.ttl = ttl;
        self
    }

    /// Shows a write only of what the cache has an object of: what was created is first read when the
    /// cache has it, so a new object is never read here before handlers can hear of it.
    #[doc(alias = "includeAdds")]
    pub fn without_adds(mut self) -> Self {
        self.limits.absent = Absent::Hidden;
        self
    }

    /// Makes the overlay.
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
    /// Begins an overlay over the cache of an informer.
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

    /// Lays an object over the cache, as the answer to a write returned it, and says its name. What is
    /// known to be older than the cache, than another write, or than a deletion is not taken, and need
    /// not be.
    ///
    /// # Errors
    /// [`PutError`]: it has no name, or no revision that can be compared.
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

    /// Hides the object of this name and uid from now on, for the server has deleted it. One that the
    /// server has only marked (it has finalizers or a grace period, and the answer is the object) is
    /// there still: such an answer is [`put`](MutationCache::put).
    #[doc(alias = "OnDelete")]
    pub fn delete(&self, name: &ObjectName, uid: impl Into<Arc<str>>) {
        let uid = uid.into();
        self.with(|layer, cache| layer.delete(name.clone(), uid, cache));
    }

    /// The object of this name.
    ///
    /// # Errors
    /// There is none, or its last state could not be decoded.
    pub fn get(&self, name: &ObjectName) -> Result<Arc<K>, GetError> {
        GetError::or_body(&self.kind, name, self.find(name))
    }

    /// The handle of this name, also if its last state could not be decoded.
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

    /// The objects with these labels, all of one moment, ordered by namespace and name.
    pub fn list(&self, selector: &Selector) -> Vec<Object<K>> {
        let (views, cache) = self.views();
        let matches = |object: &Object<K>| selector.matches(|key| object.labels().get(key));
        let cached = cache.iter().filter(|object| matches(object));
        merge(cached, &views, matches)
    }

    /// The objects that an index has under a value, in order. Of what was written here, the index's
    /// function is asked again.
    ///
    /// # Errors
    /// There is no such index.
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

    /// How many of the writes the cache has not caught up with.
    pub fn pending(&self) -> usize {
        self.with(Layer::pending)
    }

    /// The names of writes and deletions that lapsed from now on: they ended although the cache never
    /// showed them, so readers of the overlay see another state than before, and there may be no event
    /// for it. A program that reads the overlay adds each name to its work queue, or resyncs:
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
    /// - the cache is past its revision without having had the object: it was deleted before the cache
    ///   saw it, or the informer's selector leaves it out;
    /// - its time is up, or more writes than the capacity came after it;
    /// - the server's revision went backwards.
    ///
    /// A deletion lapses in the latter two ways, if the cache still has the object.
    ///
    /// A write does not lapse when the cache has it or a newer state of the name, when the cache has had
    /// its object and lost it, when a later write replaces it, or when [`MutationCache::delete`] ends it.
    /// Handlers receive an event in the first two cases. Where an object was created and deleted between
    /// two looks at the cache, handlers may have received events and the name is reported all the same.
    #[must_use]
    pub fn lapsed(&self) -> Lapsed {
        Lapsed::new(self.clone())
    }

    /// What differs from the cache, and the cache of that moment. No code of the user runs meanwhile.
    fn views(&self) -> (BTreeMap<ObjectName, View<K>>, Snapshot<K>) {
        self.with(|layer, cache| (layer.views(cache), cache.clone()))
    }

    /// Lets go of everything that has ended; when the next has had its time, if there is one.
    fn settle(&self) -> Option<Instant> {
        self.with(|layer, cache| {
            layer.settle(cache);
            layer.next_expiry()
        })
    }

    /// The snapshot is taken under the lock, so that nobody brings an older one after a newer one.
    fn with<R>(&self, act: impl FnOnce(&mut Layer<K>, &Snapshot<K>) -> R) -> R {
        let mut laid = self.shared.laid.lock();
        let Laid { layer, listeners } = &mut *laid;
        let cache = self.informer.indexer().snapshot();
        let was_empty = layer.is_empty();
        let result = act(layer, &cache);
        let (let_go, lapsed) = (std::mem::take(&mut layer.let_go), layer.take_lapsed());
        listeners.record(&lapsed);
        let begins = was_empty && !layer.is_empty();
        if !listeners.is_empty() && (begins || !lapsed.is_empty()) {
            self.shared.changed.notify_waiters();
        }
        drop(laid);
        // A type may have a destructor of the user's, which must not find the lock taken.
        drop(let_go);
        result
    }
}

/// What the cache has, but for what is seen otherwise, and in the same order what is seen instead.
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
