//! What can be asked for of one informer of a factory.

use std::{fmt, sync::Arc, time::Duration};

use kube_core::Resource;
use serde::de::DeserializeOwned;

use super::scope::Selection;
use crate::{
    decode::Transform,
    mutation_detector::MutationDetector,
    object::PackOptions,
    pruning::{FieldPath, NotPrunable, Prunable, Pruned, Pruning, Storable},
    reflector::RollbackDetection,
    selector::Selector,
    warm_start::{SavedStore, Storing},
};

/// Which queue an informer works with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueKind {
    /// [`InOrder`](crate::queue::InOrder): every change, in order.
    #[default]
    InOrder,
    /// [`DeltaFifo`](crate::queue::DeltaFifo): per object.
    DeltaFifo,
}

/// Options of one informer. Labels, fields and namespaces belong to its identity: other ones are
/// another informer.
#[must_use]
pub struct InformerOptions<K> {
    pub(super) name: Option<Arc<str>>,
    pub(super) selection: Selection,
    pub(super) namespaces: Option<Vec<String>>,
    pub(super) resync: Option<Duration>,
    pub(super) queue: QueueKind,
    pub(super) batch_size: Option<usize>,
    pub(super) queue_capacity: Option<usize>,
    pub(super) transform: Option<Transform<K>>,
    /// Not every type has one.
    pub(super) mutation_detector: Option<fn() -> MutationDetector<K>>,
    pub(super) storing: Option<Storing<K>>,
    pub(super) consistency_check: Option<Duration>,
    pub(super) rollback_detection: Option<RollbackDetection>,
    pub(super) pruning: Pruning,
    pub(super) packing: Option<PackOptions<K>>,
    pub(super) is_lazy: bool,
}

impl<K> fmt::Debug for InformerOptions<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerOptions")
            .field("labels", &self.selection.labels)
            .field("fields", &self.selection.fields)
            .field("namespaces", &self.namespaces)
            .finish_non_exhaustive()
    }
}

impl<K> Clone for InformerOptions<K> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            selection: self.selection.clone(),
            namespaces: self.namespaces.clone(),
            resync: self.resync,
            queue: self.queue,
            batch_size: self.batch_size,
            queue_capacity: self.queue_capacity,
            transform: self.transform.clone(),
            mutation_detector: self.mutation_detector,
            storing: self.storing.clone(),
            consistency_check: self.consistency_check,
            rollback_detection: self.rollback_detection,
            pruning: self.pruning.clone(),
            packing: self.packing,
            is_lazy: self.is_lazy,
        }
    }
}

impl<K> Default for InformerOptions<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> InformerOptions<K> {
    /// Nothing special.
    pub fn new() -> Self {
        Self {
            name: None,
            selection: Selection::default(),
            namespaces: None,
            resync: None,
            queue: QueueKind::default(),
            batch_size: None,
            queue_capacity: None,
            transform: None,
            mutation_detector: None,
            storing: None,
            consistency_check: None,
            rollback_detection: None,
            pruning: Pruning::default(),
            packing: None,
            is_lazy: false,
        }
    }

    /// A name for logs, errors and metrics, which need not be unique; by default kind and scope, such as
    /// `pods in shop`.
    #[doc(alias = "InformerName")]
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Only objects with these labels, whatever is said of the type; the empty selector means all.
    pub fn labels(mut self, labels: Selector) -> Self {
        self.selection.labels = Some(labels);
        self
    }

    /// Only objects with these fields, for example `spec.nodeName=node-1`, whatever is said of the
    /// type; the empty text means all.
    pub fn fields(mut self, fields: impl Into<String>) -> Self {
        self.selection.fields = Some(fields.into());
        self
    }

    /// Only these namespaces, whatever the type's and the factory's; none means all, and so does `""`
    /// alone, which beside others means all others.
    pub fn namespaces<S: Into<String>>(mut self, namespaces: impl IntoIterator<Item = S>) -> Self {
        self.namespaces = Some(namespaces.into_iter().map(Into::into).collect());
        self
    }

    /// The resync period, whatever the factory's; zero means none.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// The queue between reflectors and store.
    pub fn queue(mut self, queue: QueueKind) -> Self {
        self.queue = queue;
        self
    }

    /// At most so many changes are applied at one go; see
    /// [`batch_size`](crate::shared_informer::Builder::batch_size) of the shared informer.
    pub fn batch_size(mut self, changes: usize) -> Self {
        self.batch_size = Some(changes);
        self
    }

    /// At most so many changes wait in the queue; see
    /// [`queue_capacity`](crate::shared_informer::Builder::queue_capacity) of the shared informer.
    pub fn queue_capacity(mut self, changes: usize) -> Self {
        self.queue_capacity = Some(changes);
        self
    }

    /// Changes every object once, before cache and handlers see it.
    pub fn transform(mut self, transform: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        self.transform = Some(Arc::new(move |object| {
            transform(object);
            Ok(())
        }));
        self
    }

    /// Cuts these fields out of every object before it is decoded; see
    /// [`prune`](crate::shared_informer::Builder::prune) of the shared informer.
    ///
    /// # Errors
    /// One of them can't be cut.
    pub fn prune(mut self, fields: impl IntoIterator<Item = FieldPath>) -> Result<Self, NotPrunable>
    where
        K: Prunable,
    {
        self.pruning.prune::<K>(fields)?;
        Ok(self)
    }

    /// Keeps the cache small, each object as compressed JSON; see
    /// [`packed`](crate::shared_informer::Builder::packed) of the shared informer.
    pub fn packed(mut self) -> Self
    where
        K: Storable,
    {
        self.packing = Some(PackOptions::default());
        self
    }

    /// Leaves objects undecoded until somebody reads them; see
    /// [`lazy`](crate::shared_informer::Builder::lazy) of the shared informer.
    pub fn lazy(mut self) -> Self {
        self.is_lazy = true;
        self
    }

    /// Begins with what was saved, if it fits, and saves at the end; see
    /// [`warm_start`](crate::warm_start). One [`SavedStore::in_directory`] serves all informers of a
    /// factory.
    pub fn warm_start(mut self, store: SavedStore) -> Self
    where
        K: Resource + Storable + DeserializeOwned,
    {
        self.storing = Some(Storing::new(store));
        self
    }

    /// How often the cache is compared with the server, whatever the type's and the factory's; zero
    /// means never. See [`consistency_check`](crate::shared_informer::Builder::consistency_check) of the
    /// shared informer.
    pub fn consistency_check(mut self, period: Duration) -> Self {
        self.consistency_check = Some(period);
        self
    }

    /// Whether the informer checks that the server has not gone back in time, whatever the factory's. See
    /// [`RollbackDetection`] for what it costs, and when it is in the way.
    pub fn rollback_detection(mut self, detection: RollbackDetection) -> Self {
        self.rollback_detection = Some(detection);
        self
    }

    /// Looks for objects that are changed in the cache; see
    /// [`detect_mutations`](crate::shared_informer::Builder::detect_mutations) of the shared informer.
    pub fn detect_mutations(mut self) -> Self
    where
        K: Clone + PartialEq,
    {
        self.mutation_detector = Some(MutationDetector::new);
        self
    }

    fn form(&self) -> Form {
        match (self.packing, self.is_lazy) {
            (Some(_), _) => Form::Packed,
            (None, true) => Form::Lazy,
            (None, false) => Form::Decoded,
        }
    }

    pub(super) fn comparable(&self) -> Comparable {
        Comparable {
            name: self.name.clone(),
            resync: self.resync,
            queue: self.queue,
            bounds: (self.batch_size, self.queue_capacity),
            transform: self
                .transform
                .as_ref()
                .map(|transform| Arc::as_ptr(transform).addr()),
            detects_mutations: self.mutation_detector.is_some(),
            saved: self.storing.as_ref().map(Storing::to_string),
            consistency_check: self.consistency_check,
            rollback_detection: self.rollback_detection,
            pruning: self.pruning.clone(),
            form: self.form(),
            constructed: false,
        }
    }
}

impl<K> InformerOptions<Pruned<K>> {
    /// Cuts everything out of every object before it is decoded but these fields, what says which object it
    /// is, and labels; see [`keep`](crate::shared_informer::Builder::keep) of the shared informer.
    pub fn keep(mut self, fields: impl IntoIterator<Item = FieldPath>) -> Self {
        self.pruning.keep(fields);
        self
    }
}

/// What a cache keeps of an object that nobody has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Decoded,
    Lazy,
    Packed,
}

/// The options that must be the same for everybody who shares an informer.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Comparable {
    /// Only if it is settled: a request without a name accepts any.
    name: Option<Arc<str>>,
    resync: Option<Duration>,
    queue: QueueKind,
    /// The size of a batch, and how much may wait.
    bounds: (Option<usize>, Option<usize>),
    /// Closures can't be compared; the same one is at the same address.
    transform: Option<usize>,
    detects_mutations: bool,
    /// Place and version of its saved store.
    saved: Option<String>,
    consistency_check: Option<Duration>,
    rollback_detection: Option<RollbackDetection>,
    pruning: Pruning,
    form: Form,
    /// Made by the user's own constructor or another factory, with options that nobody knows here.
    constructed: bool,
}

impl Comparable {
    pub(super) fn constructed() -> Self {
        Self {
            constructed: true,
            ..Self::default()
        }
    }

    pub(super) fn must_equal(&self, has: &Self, kind: &str) -> Result<(), OptionsConflict> {
        let wants_nothing = *self == Self::default();
        let has = &Self {
            name: has.name.clone().filter(|_| self.name.is_some()),
            ..has.clone()
        };
        if self == has || (has.constructed && wants_nothing) {
            return Ok(());
        }
        let option = if has.constructed {
            "constructor"
        } else if self.name != has.name {
            "name"
        } else if self.resync != has.resync {
            "resync period"
        } else if self.queue != has.queue {
            "queue"
        } else if self.bounds.0 != has.bounds.0 {
            "batch size"
        } else if self.bounds.1 != has.bounds.1 {
            "queue capacity"
        } else if self.transform != has.transform {
            "transform"
        } else if self.saved != has.saved {
            "saved store"
        } else if self.consistency_check != has.consistency_check {
            "consistency check"
        } else if self.rollback_detection != has.rollback_detection {
            "rollback detection"
        } else if self.pruning != has.pruning {
            "pruned fields"
        } else if self.form != has.form {
            match (self.form, has.form) {
                (Form::Packed, _) | (_, Form::Packed) => "packing",
                _ => "lazy decoding",
            }
        } else {
            "mutation detector"
        };
        Err(OptionsConflict {
            kind: kind.to_owned(),
            option,
        })
    }
}

/// There is an informer for the same kind and scope, but with another option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the informer of {kind} in this scope exists with another {option}")]
pub struct OptionsConflict {
    kind: String,
    option: &'static str,
}
