//! Defines the options of an informer's loop and of its cache. Macros generate the setters for all builders.
//!
//! The options of requests are defined in the module `reflector`.

use std::time::Duration;

use derive_where::derive_where;
use tokio::sync::Semaphore;

use crate::{
    controller::{Bounds, CHANNEL_CAPACITY},
    mutation_detector::MutationDetector,
    object::FormOptions,
    pruning::Pruning,
    queue::BATCH,
    reflector::options,
    warm_start::Storing,
};

options! {
    /// Options of an informer's loop: resync period, consistency check, batch size and queue capacity.
    LoopOptions {
        resync: Duration = Duration::ZERO, "resync period";
        consistency_check: Duration = Duration::ZERO, "consistency check";
        batch_size: usize = BATCH, "batch size";
        queue_capacity: usize = CHANNEL_CAPACITY, "queue capacity";
    }
}

impl LoopOptions {
    pub(super) fn bounds(&self) -> Bounds {
        Bounds {
            batch: self.batch_size().max(1),
            waiting: self.queue_capacity().clamp(1, Semaphore::MAX_PERMITS),
        }
    }
}

/// Generates the setters of [`LoopOptions`] in a builder.
///
/// The argument is the builder's field that contains the options, such as `defaults.loop_options`.
macro_rules! loop_methods {
    ($($path:ident).+) => {
        /// Sets the resync period, the interval at which handlers receive every object again. Zero, the
        /// default, disables resyncs.
        ///
        /// The period applies to handlers without a period of their own. Zero also disables the resyncs of
        /// handlers with a period of their own.
        #[doc(alias = "defaultResync")]
        pub fn resync(mut self, period: ::std::time::Duration) -> Self {
            self.$($path).+.resync = Some(period);
            self
        }

        /// Sets the maximum number of changes that the informer applies to the cache in one batch. A whole
        /// list is one change.
        ///
        /// The default is [`BATCH`](crate::queue::BATCH), and the minimum is 1. Between two batches, the
        /// informer can do other work, such as the registration of a handler. A queue that is set with
        /// [`queue`](crate::shared_informer::Builder::queue) can have an additional limit of its own.
        #[doc(alias = "PopBatch")]
        pub fn batch_size(mut self, changes: usize) -> Self {
            self.$($path).+.batch_size = Some(changes);
            self
        }

        /// Sets the maximum number of changes in the queue. The channel from the reflectors to the queue has
        /// a separate limit of the same number.
        ///
        /// Each limit applies to the changes of all sources together. The default is twice the default
        /// [`batch_size`](Self::batch_size), and the minimum is 1. When the queue and the channel are full,
        /// the reflector of each source keeps one more change, and stops reading from its list or watch.
        ///
        /// A whole list is one change. In a [`DeltaFifo`](crate::queue::DeltaFifo), a list is one change per
        /// object, and may exceed the limit.
        pub fn queue_capacity(mut self, changes: usize) -> Self {
            self.$($path).+.queue_capacity = Some(changes);
            self
        }

        /// Sets the period at which the informer compares the cache with the server. Zero, the default,
        /// disables this consistency check.
        ///
        /// The interval between two checks is random: between half the period and the whole period, and at
        /// least one second.
        ///
        /// The check finds changes that a watch did not deliver, for example because a proxy or the server
        /// lost an event, or because the server was restored from a backup. The check requests the metadata
        /// of the server's objects at the exact revision of the cache, and compares names, uids and
        /// revisions. Changes after that revision are therefore not reported as differences.
        ///
        /// A difference is reported to the log, to the error handler as
        /// [`Error::Inconsistent`](crate::reflector::Error::Inconsistent), and in
        /// [`Status::consistency`](crate::status::Status::consistency). The informer then lists all objects
        /// again. Handlers receive every object of that list, even if its uid and revision are unchanged,
        /// because a restored server can assign the same revision to another state.
        ///
        /// If the difference remains after the new list, the informer counts it in each check but does not
        /// report it again. The informer lists again after the first such check. The number of checks until
        /// the next list then doubles each time: 2, 4, 8, and so on, up to 64.
        ///
        /// # Cost
        /// Each check requests one metadata list per source, in pages of 500 objects. A server with
        /// Kubernetes 1.34 or later responds from snapshots in its watch cache. An older server reads etcd,
        /// so use a period of hours rather than minutes. In the informer, a check needs 8 bytes of memory per
        /// object, and delays no event.
        ///
        /// Checks run only while the cache is synced and the source has an open watch. A failed check is not
        /// retried before the next interval. A check fails if the server has compacted the cache's revision.
        ///
        /// Custom sources are compared too: see
        /// [`ListerWatcher::list_metadata`](crate::transport::ListerWatcher::list_metadata).
        #[doc(alias = "DetectCacheInconsistency")]
        #[doc(alias = "CheckDataConsistency")]
        pub fn consistency_check(mut self, period: ::std::time::Duration) -> Self {
            self.$($path).+.consistency_check = Some(period);
            self
        }
    };
}
pub(crate) use loop_methods;

/// Options for the objects in an informer's cache, such as the removed fields.
#[derive_where(Clone, Default)]
pub(crate) struct Keeping<K> {
    pub(crate) pruning: Pruning,
    pub(crate) form: FormOptions<K>,
    pub(crate) storing: Option<Storing<K>>,
    /// Function that creates the mutation detector; `None` if mutations are not detected.
    pub(crate) mutation_detector: Option<fn() -> MutationDetector<K>>,
}

impl<K> Keeping<K> {
    /// Returns `self` with the value from `general` for each option that is not set.
    pub(crate) fn or(self, general: &Self) -> Self {
        let general = general.clone();
        Self {
            pruning: if self.pruning == Pruning::default() {
                general.pruning
            } else {
                self.pruning
            },
            form: self.form.or(general.form),
            storing: self.storing.or(general.storing),
            mutation_detector: self.mutation_detector.or(general.mutation_detector),
        }
    }

    /// Returns the name of the first option that differs from `other`, if any.
    pub(crate) fn difference(&self, other: &Self) -> Option<&'static str> {
        let place = |of: &Self| of.storing.as_ref().map(Storing::to_string);
        let differ = [
            ("saved store", place(self) != place(other)),
            ("pruned fields", self.pruning != other.pruning),
            ("packing", self.form.is_packed() != other.form.is_packed()),
            ("lazy decoding", self.form.is_lazy() != other.form.is_lazy()),
            (
                "mutation detector",
                self.mutation_detector.is_some() != other.mutation_detector.is_some(),
            ),
        ];
        let mut differ = differ.into_iter();
        differ.find_map(|(called, differs)| differs.then_some(called))
    }
}

/// Generates the setters of [`Keeping`] in a builder.
///
/// The argument is the builder's field that contains the options.
macro_rules! keeping_methods {
    ($($path:ident).+) => {
        /// Sets the fields that are removed from every object before the object is decoded. A later call
        /// replaces the fields of an earlier call.
        ///
        /// A removed field costs almost no time and no memory. In contrast, a [`transform`](Self::transform)
        /// removes fields only after they are decoded.
        ///
        /// For a [`Pruned`](crate::pruning::Pruned) type, any field can be removed, except labels and the
        /// fields that identify the object. [`pruning`](crate::pruning) lists the requirements on the type.
        ///
        /// An update (PUT) of an object without its annotations deletes the annotations on the server. A
        /// program that removes annotations must write with patches.
        ///
        /// # Errors
        /// Returns an error if a field identifies the object or contains its labels. If the type is not
        /// [`Pruned`](crate::pruning::Pruned), also returns an error for a field that is neither
        /// `metadata.managedFields` nor `metadata.annotations` nor an individual annotation.
        pub fn prune(
            mut self,
            fields: impl IntoIterator<Item = crate::pruning::FieldPath>,
        ) -> Result<Self, crate::pruning::NotPrunable>
        where
            K: crate::pruning::Prunable,
        {
            self.$($path).+.pruning.prune::<K>(fields)?;
            Ok(self)
        }

        /// Keeps each object in compressed form, to reduce the memory of the cache.
        ///
        /// An object is stored as the differences from an earlier object that has the same labels, or is
        /// compressed with a dictionary of sampled objects. The dictionary is created when the cache has
        /// received 256 objects, or 1,024 objects while a list is in progress. Packed pods take about a
        /// thirtieth of the memory of decoded pods. Name, namespace, uid, revision and labels are kept
        /// uncompressed. Lists, selectors and indices that use only this metadata therefore decode nothing.
        ///
        /// [`Object::get`](crate::Object::get) decodes the object on each call, unless the decoded object is
        /// still in use or is one of the sixteen that were decoded last. Decoding a pod takes about 30 µs. A
        /// handler that uses only the object's name, such as [`enqueue`](crate::enqueue), decodes nothing.
        /// The old state in an update is decoded only if the handler reads it. A transform, or an index by a
        /// function of the whole object, decodes each new state. The result of a transform is encoded as JSON
        /// again.
        ///
        /// An object that fails to decode is detected on the first read. Until then, handlers receive the
        /// object like any other object. On the first read, `get` returns the error, and the informer reports
        /// it once, to the log and to the error handler. From then on, the object is counted in
        /// [`Status::broken`](crate::status::Status::broken). Each later
        /// [`Snapshot`](crate::indexer::Snapshot) of the cache omits it from iteration, counts and indices.
        /// The [guide](crate::guide#objects-that-cant-be-decoded) has a table of the differences from a cache
        /// of decoded objects.
        ///
        /// If new objects compress more than 1.5 times worse than the first objects of a dictionary, a new
        /// dictionary replaces the current one.
        #[cfg(feature = "packed")]
        pub fn packed(mut self) -> Self
        where
            K: crate::pruning::Storable,
        {
            self.$($path).+.form = crate::object::FormOptions::packed(None);
            self
        }

        /// Keeps objects [`packed`](Self::packed), and sets the number of received objects after which a
        /// dictionary is created. The minimum is 8.
        ///
        /// Use a smaller number for a small collection. Use a larger number if the first received objects do
        /// not resemble the later objects.
        ///
        /// The dictionary contains some of the received objects, evenly spread, usually with 24 to 48 KiB in
        /// total. Until the dictionary exists, the cache keeps objects uncompressed.
        ///
        /// Two rules change the required number of objects:
        /// - While a list is in progress, four times as many objects are required.
        /// - If the received objects have at least 8 MiB in total, at most 64 objects are required. This rule
        ///   takes precedence over the first one.
        #[cfg(feature = "packed")]
        pub fn packed_from(mut self, objects: usize) -> Self
        where
            K: crate::pruning::Storable,
        {
            self.$($path).+.form = crate::object::FormOptions::packed(Some(objects));
            self
        }

        /// Decodes each object on the first [`Object::get`](crate::Object::get), once for all readers.
        ///
        /// Before the first read, the cache keeps the bytes that the server sent. After the first read, the
        /// cache keeps the decoded object instead of the bytes. [`packed`](Self::packed) takes less memory,
        /// but more time if the same objects are read repeatedly.
        ///
        /// A read of the name, namespace, uid, revision or labels decodes nothing. An object that fails to
        /// decode is reported once, on the first read, and is counted in
        /// [`Status::broken`](crate::status::Status::broken) until a newer state arrives. A
        /// [`transform`](Self::transform), or an index by a function of the whole object, decodes every
        /// object on arrival. This option has no effect on a packed cache.
        pub fn lazy(mut self) -> Self {
            let form = &mut self.$($path).+.form;
            *form = form.or(crate::object::FormOptions::Lazy);
            self
        }

        /// Loads the cache from `store` when the informer starts, and saves the cache when the informer ends.
        /// A store that was saved from another server, kind or set of namespaces is not loaded.
        ///
        /// See [`warm_start`](crate::warm_start) for the guarantees.
        /// [`Status::warm_start`](crate::status::Status::warm_start) reports the result of the load. All
        /// informers of a factory can share one
        /// [`SavedStore::in_directory`](crate::warm_start::SavedStore::in_directory).
        ///
        /// Objects are written with the type's `Serialize` and read with its `Deserialize`. The two
        /// implementations must be inverse to each other.
        #[doc(alias = "initialState")]
        pub fn warm_start(mut self, store: crate::warm_start::SavedStore) -> Self
        where
            K: ::kube_core::Resource + crate::pruning::Storable + ::serde::de::DeserializeOwned,
        {
            self.$($path).+.storing = Some(crate::warm_start::Storing::new(store));
            self
        }

        /// Detects changes to cached objects, for types with interior mutability.
        ///
        /// The informer copies every state before readers can access it. It compares each state with its copy
        /// every second, and when the informer ends. A state that differs is reported once: to the log, to
        /// the error handler as [`Error::Mutated`](crate::reflector::Error::Mutated), and in
        /// [`Status::mutated`](crate::status::Status::mutated).
        ///
        /// The option is off by default, and is intended for tests: it doubles the memory of the cache, and
        /// runs the type's `Clone` and `PartialEq` in the informer's loop. Changes to data that a clone
        /// shares with its original, such as an `Arc` in a field, are not detected.
        #[doc(alias = "CacheMutationDetector")]
        #[doc(alias = "MutationDetector")]
        pub fn detect_mutations(mut self) -> Self
        where
            K: Clone + PartialEq,
        {
            self.$($path).+.mutation_detector = Some(crate::mutation_detector::MutationDetector::new);
            self
        }
    };
}
pub(crate) use keeping_methods;

/// Generates the setter `keep`, only for builders of [`Pruned`](crate::pruning::Pruned) types.
macro_rules! keep_method {
    ($($path:ident).+) => {
        /// Sets the only fields that are kept in every object. All other fields are removed before the object
        /// is decoded. A later call replaces the fields of an earlier call.
        ///
        /// Labels and the fields that identify the object are always kept. [`pruning`](crate::pruning)
        /// describes the combination with [`prune`](Self::prune) and the requirements on the type.
        ///
        /// Only builders of [`Pruned`](crate::pruning::Pruned) types have this method. If a client wrote an
        /// object without the removed fields to the server, the server would delete these fields. Therefore,
        /// `Pruned` types do not implement `Serialize`. For other types, a call does not compile:
        ///
        /// ```compile_fail,E0599
        /// use k8s_openapi::api::core::v1::Pod;
        /// use kube_informer::shared_informer::Builder;
        /// fn names(pods: Builder<Pod>) -> Builder<Pod> {
        ///     pods.keep([])
        /// }
        /// ```
        pub fn keep(mut self, fields: impl IntoIterator<Item = crate::pruning::FieldPath>) -> Self {
            self.$($path).+.pruning.keep(fields);
            self
        }
    };
}
pub(crate) use keep_method;
