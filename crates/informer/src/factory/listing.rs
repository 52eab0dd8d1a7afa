//! Type-independent access to the informers of a factory.
//!
//! [`AnyInformer`] reports what an informer covers, how it keeps its objects, its status and its memory. It
//! gives no access to the objects.

use std::{any::Any, fmt};

use kube_core::{ApiResource, Resource};

use super::{
    options::InformerOptions,
    scope::{Scope, Section},
};
use crate::{
    metrics::Memory,
    processor::HandlerStatus,
    pruning::FieldPath,
    selector::Selector,
    shared_informer::{Keeping, SharedInformer},
    status::{StatusReader, WaitForSync},
};

/// An informer of a factory, independent of its type.
///
/// [`SharedInformerFactory::informers`] returns it. It keeps the informer's cache alive, as a clone of the
/// [`SharedInformer`] does.
///
/// [`SharedInformerFactory::informers`]: super::SharedInformerFactory::informers
pub trait AnyInformer: Any + Send + Sync + fmt::Debug + Sealed {
    /// Returns the informer's name, as in logs and metrics.
    fn name(&self) -> &str;

    /// Returns the kind of the informer's objects.
    fn kind(&self) -> &ApiResource;

    /// Returns which objects the informer covers, and which of their fields it keeps.
    ///
    /// Returns `None` for an informer that the program created itself
    /// ([`informer_for`](super::SharedInformerFactory::informer_for),
    /// [`adopt`](super::SharedInformerFactory::adopt)), because the factory does not know its sources.
    fn coverage(&self) -> Option<&Coverage>;

    /// Returns a reader of the informer's status, which includes the progress of its sources.
    fn status(&self) -> StatusReader;

    /// Returns the memory that the informer's cache uses.
    ///
    /// The method visits every object once, which takes some milliseconds per 100,000 objects.
    fn memory(&self) -> Memory;

    /// Returns the status of the informer's handlers and subscriptions, in the order of registration.
    ///
    /// The status contains the number of waiting events and how long they have waited.
    fn handlers(&self) -> Vec<HandlerStatus>;

    /// Waits until the informer has synced, even if its factory has not been started yet.
    ///
    /// See [`SharedInformer::wait_for_sync`].
    fn wait_for_sync(&self) -> WaitForSync;

    /// Returns whether the informer has ended.
    fn is_stopped(&self) -> bool;
}

/// Seals [`AnyInformer`], so that new methods are not a breaking change.
#[expect(
    unnameable_types,
    reason = "nothing outside of the library is to implement what it seals"
)]
pub trait Sealed {}

/// The objects that an informer covers, and the fields that it keeps of each object.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Coverage {
    /// The covered namespaces, at least one, ordered by name.
    ///
    /// A section whose namespace is `None` covers all namespaces that no other section names. A cluster-scoped
    /// kind has only this section.
    pub sections: Vec<CoveredNamespace>,
    /// Whether the informer keeps only the metadata of the objects.
    pub is_metadata_only: bool,
    /// How the cache keeps an object while no reader uses it.
    pub representation: Representation,
    /// If set, the informer keeps only these fields, labels, and the fields that identify an object.
    ///
    /// `None` if the informer keeps all fields that are not in `pruned_fields`.
    pub kept_fields: Option<Vec<FieldPath>>,
    /// Fields that the informer removes from each object.
    pub pruned_fields: Vec<FieldPath>,
}

/// The part of an informer's scope in one namespace, or in all namespaces that are not named.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoveredNamespace {
    /// Name of the namespace; `None` for all namespaces that no other section names.
    pub namespace: Option<String>,
    /// The label selector; empty selects all objects.
    pub labels: Selector,
    /// The field selector; empty selects all objects.
    pub fields: String,
}

/// How a cache keeps an object while no reader uses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Representation {
    /// The cache keeps a value of the object's Rust type.
    #[default]
    Decoded,
    /// The cache keeps the bytes that the server sent, until the first read decodes them.
    Lazy,
    /// The cache keeps compressed JSON.
    Packed,
}

impl Coverage {
    pub(super) fn new<K: Resource>(scope: &Scope, keeping: &Keeping<K>) -> Self {
        let Keeping { pruning, form, .. } = keeping;
        let (kept, pruned) = pruning.fields();
        Self {
            sections: scope.sections.iter().map(covered).collect(),
            is_metadata_only: K::metadata_api(),
            representation: if form.is_packed() {
                Representation::Packed
            } else if form.is_lazy() {
                Representation::Lazy
            } else {
                Representation::Decoded
            },
            kept_fields: kept.map(<[_]>::to_vec),
            pruned_fields: pruned.to_vec(),
        }
    }
}

fn covered(section: &Section) -> CoveredNamespace {
    let named = Some(&section.namespace).filter(|namespace| !namespace.is_empty());
    CoveredNamespace {
        namespace: named.cloned(),
        labels: section.labels.clone(),
        fields: section.fields.clone(),
    }
}

/// An informer and the factory's data about it.
pub(super) struct Registered<K> {
    pub(super) informer: SharedInformer<K>,
    pub(super) kind: ApiResource,
    pub(super) coverage: Option<Coverage>,
    /// The options of the first request; `None` if the program created the informer itself.
    pub(super) options: Option<InformerOptions<K>>,
}

impl<K> fmt::Debug for Registered<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyInformer")
            .field("name", &self.informer.name())
            .field("coverage", &self.coverage)
            .finish_non_exhaustive()
    }
}

impl<K> Sealed for Registered<K> {}

impl<K: Send + Sync + 'static> AnyInformer for Registered<K> {
    fn name(&self) -> &str {
        self.informer.name()
    }

    fn kind(&self) -> &ApiResource {
        &self.kind
    }

    fn coverage(&self) -> Option<&Coverage> {
        self.coverage.as_ref()
    }

    fn status(&self) -> StatusReader {
        self.informer.status()
    }

    fn memory(&self) -> Memory {
        self.informer.memory()
    }

    fn handlers(&self) -> Vec<HandlerStatus> {
        self.informer.handlers()
    }

    fn wait_for_sync(&self) -> WaitForSync {
        self.informer.wait_for_sync()
    }

    fn is_stopped(&self) -> bool {
        self.informer.is_stopped()
    }
}
