//! What can be set about one informer beside its requests: how its loop works, and what it keeps of each
//! object. Each option is defined here and nowhere else; every builder has its setter.

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
    /// How an informer's loop works.
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

/// The setters of [`LoopOptions`], for a builder that has them at this path.
macro_rules! loop_methods {
    ($($path:ident).+) => {
        /// After this period handlers that set no other receive every object again, and the informer looks which
        /// handlers are due; zero, the default, means never, also for a handler that sets a period of its own.
        #[doc(alias = "defaultResync")]
        pub fn resync(mut self, period: ::std::time::Duration) -> Self {
            self.$($path).+.resync = Some(period);
            self
        }

        /// At most this many changes are applied to the cache in one batch, before the informer looks for
        /// anything else to do; by default [`BATCH`](crate::queue::BATCH), at least 1. A whole list is one
        /// change. A queue given with [`queue`](crate::shared_informer::Builder::queue) has a batch size of its
        /// own beside that.
        #[doc(alias = "PopBatch")]
        pub fn batch_size(mut self, changes: usize) -> Self {
            self.$($path).+.batch_size = Some(changes);
            self
        }

        /// At most this many changes wait in the queue, and as many on their way to it, for all sources
        /// together; by default two batches, at least 1. Then each source holds one more, and reads no further
        /// from its list or watch. A whole list is one change, on a [`DeltaFifo`](crate::queue::DeltaFifo) one
        /// for each of its objects, however many that makes.
        ///
        /// Changes wait for long only behind a full
        /// [`ListenerBuffer::Block`](crate::shared_informer::ListenerBuffer).
        pub fn queue_capacity(mut self, changes: usize) -> Self {
            self.$($path).+.queue_capacity = Some(changes);
            self
        }

        /// Compares the cache with the server regularly, after half this period to a whole one (a second at
        /// least); zero, the default, means never.
        ///
        /// A watch tells what changes, so what it fails to tell stays wrong: an event that a proxy or a server
        /// has lost, a server that was restored from a backup. A check asks for the metadata of what the server
        /// had at the very revision that the cache is of, and compares names, uids and revisions; so what
        /// changes meanwhile is no difference. If there is one, it is reported (to the log, to the error
        /// handler as [`Error::Inconsistent`](crate::reflector::Error::Inconsistent), and in
        /// [`Status::consistency`](crate::status::Status::consistency)), and everything is listed anew.
        /// Handlers hear of all of it, also of what looks as it was: after the restore of a backup another
        /// state can have the same uid and revision. A difference that is the same after that list is counted,
        /// not told again, and listed for after 1, 2, 4, … 64 checks and then once in 64: the list may have
        /// lost the same as the watch, or the object may be one that can't be kept.
        ///
        /// This is the only way to find a server that was restored from a backup and had come as far as the
        /// cache before it was asked for anything, and it takes at least one object that is missing, surplus,
        /// or of another uid or revision. If all of them are the same, nothing can tell.
        ///
        /// # Cost
        /// A list of metadata per period and source, in pages of 500. A server with snapshots in its watch
        /// cache (Kubernetes 1.34) answers it from there, an older one from etcd, so think of hours rather than
        /// minutes. Here it costs a pointer for each object while the check lasts, and nothing else: a check
        /// delays no event. It takes place only while the cache is synced and its source watches, and one that
        /// fails is not repeated before its next turn. A revision that the server has compacted can't be
        /// checked; bookmarks, which come each minute, keep the cache's revision young.
        ///
        /// A source of one's own is compared too: see
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

/// What an informer keeps of each object, in which form, and where it saves them.
#[derive_where(Clone, Default)]
pub(crate) struct Keeping<K> {
    pub(crate) pruning: Pruning,
    pub(crate) form: FormOptions<K>,
    pub(crate) storing: Option<Storing<K>>,
    /// Not every type has one.
    pub(crate) mutation_detector: Option<fn() -> MutationDetector<K>>,
}

impl<K> Keeping<K> {
    /// These, and for those that are not set the more `general` ones.
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

    /// What the first option that differs is called.
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

/// The setters of [`Keeping`], for a builder of objects of type `K` that has it at this path.
macro_rules! keeping_methods {
    ($($path:ident).+) => {
        /// Cuts these fields out of every object before it is decoded, so that they cost next to nothing; a
        /// [`transform`](Self::transform) that drops them costs what making them did. The last call counts.
        ///
        /// Of objects of a [`Pruned`](crate::pruning::Pruned) type any field can be cut, but for those that say which
        /// object it is, and labels; [`pruning`](crate::pruning) says what that asks of the type.
        ///
        /// # Errors
        /// One of those; and of any other type another field than `metadata.managedFields` or
        /// `metadata.annotations`, or one of the annotations: an object that lacks anything else would destroy
        /// it when it is written back.
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

        /// Keeps the cache small: each object as the JSON that the server sent, compressed with a dictionary
        /// that is made once there are 256 of them, within a list 1,024; of pods it takes about a tenth of what
        /// they take decoded. Name, namespace, uid, revision and labels are kept beside it, so listing,
        /// selectors and indices by metadata need nothing else.
        ///
        /// An object is decoded each time that [`Object::get`](crate::Object::get) is called, unless it is in use
        /// or one of the last sixteen; of a pod that takes some 30 µs. Handlers that only want to
        /// know which object it is, such as those that [`enqueue`](crate::enqueue) its name, and `old` of an
        /// update that is not read, cost none of it; an index by a function of the whole object, and a
        /// transform, decode each state that comes, and with a transform what it makes is written as JSON
        /// again. Everything else is as without.
        ///
        /// An object that does not decode is noticed when it is first read, not when it arrives: `get` fails,
        /// and the failure is reported once (to the log and to the error handler). From then on the object is
        /// broken as in any cache: counted in [`Status::broken`](crate::status::Status::broken), and left out
        /// of the snapshots that are taken afterwards. Handlers receive such a state like any other. The
        /// [guide](crate::guide#objects-that-cant-be-decoded) has a table of the differences.
        ///
        /// Making a dictionary takes some 20 ms of pods, once, and again when what is written no longer fits
        /// it (the last thousand states took half as much again as the first).
        #[cfg(feature = "packed")]
        pub fn packed(mut self) -> Self
        where
            K: crate::pruning::Storable,
        {
            self.$($path).+.form = crate::object::FormOptions::packed(None);
            self
        }

        /// The same with dictionaries that are made once there are this many objects, at least 8: fewer than
        /// [`packed`](Self::packed) waits for, where there are not that many, or more, where those of many
        /// kinds of content come one kind after the other. Of all of them 64 make it, as far apart as they can
        /// be. Until there are this many, and in a list four times as many, all are kept as they came.
        #[cfg(feature = "packed")]
        pub fn packed_from(mut self, objects: usize) -> Self
        where
            K: crate::pruning::Storable,
        {
            self.$($path).+.form = crate::object::FormOptions::packed(Some(objects));
            self
        }

        /// Leaves objects as the bytes that the server sent until they are read: an object is decoded the first
        /// time that [`Object::get`](crate::Object::get) is called, once for all readers, and kept decoded from
        /// then on. So an object that is not read costs no more than its bytes, and one that is read costs as
        /// much as without; [`packed`](Self::packed) takes less memory, and more time for those who read the
        /// same object again and again.
        ///
        /// What needs no body is as with [`packed`](Self::packed), and so is an object that does not decode: it
        /// is reported once, when it is first read, and broken until its next state. A
        /// [`transform`](Self::transform), or an index by a function of the whole object, reads each state that
        /// comes, so with one every object is decoded at once. Of a packed cache objects are not decoded before
        /// they are read anyway, and this changes nothing there.
        pub fn lazy(mut self) -> Self {
            let form = &mut self.$($path).+.form;
            *form = form.or(crate::object::FormOptions::Lazy);
            self
        }

        /// Begins with what was saved, if it fits, and saves at the end: see
        /// [`warm_start`](crate::warm_start) for what it promises.
        /// [`Status::warm_start`](crate::status::Status::warm_start) says how the start came out. One
        /// [`SavedStore::in_directory`](crate::warm_start::SavedStore::in_directory) serves all informers of a
        /// factory.
        ///
        /// The objects are written and read by the type's `Serialize` and `Deserialize`, which must be each
        /// other's inverse.
        #[doc(alias = "initialState")]
        pub fn warm_start(mut self, store: crate::warm_start::SavedStore) -> Self
        where
            K: ::kube_core::Resource + crate::pruning::Storable + ::serde::de::DeserializeOwned,
        {
            self.$($path).+.storing = Some(crate::warm_start::Storing::new(store));
            self
        }

        /// Looks for objects that are changed in the cache, for types with interior mutability: every state is
        /// copied before anyone sees it, and compared each second of tokio's clock and at the end. One that
        /// differs is reported once: to the log, to the error handler as
        /// [`Error::Mutated`](crate::reflector::Error::Mutated), and in
        /// [`Status::mutated`](crate::status::Status::mutated).
        ///
        /// Off by default, and meant for tests: it doubles the memory of the cache, and `Clone` and `PartialEq`
        /// of the type run in the informer's loop. What a clone shares with its original (an `Arc` in a field)
        /// can't be seen to change.
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

/// The setter that only builders of [`Pruned`](crate::pruning::Pruned) types have.
macro_rules! keep_method {
    ($($path:ident).+) => {
        /// Cuts everything out of every object before it is decoded but these fields, what says which object it
        /// is, and labels; [`pruning`](crate::pruning) says how that goes with [`prune`](Self::prune), and what
        /// it asks of the type. The last call counts.
        ///
        /// Only a [`Pruned`](crate::pruning::Pruned) type has this, since such an object must not be written back:
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
