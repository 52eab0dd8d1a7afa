//! Gives access to the informers of a factory without knowledge of the Rust types of their objects.
//!
//! [`AnyInformer`] reports which objects an informer covers, in which form its cache stores them, its status
//! and its memory use. It gives no access to the objects.

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

/// An informer of a factory, independent of the Rust type of its objects.
///
/// [`SharedInformerFactory::informers`] returns values of this trait. Such a value keeps the informer's cache
/// in memory, as a clone of the [`SharedInformer`] does.
///
/// [`SharedInformerFactory::informers`]: super::SharedInformerFactory::informers
pub trait AnyInformer: Any + Send + Sync + fmt::Debug + Sealed {
    /// Returns the informer's name, which logs and metrics contain.
    fn name(&self) -> &str;

    /// Returns the group, version, kind and plural name of the informer's objects.
    fn kind(&self) -> &ApiResource;

    /// Returns which objects the informer covers, and which fields of each object its cache stores.
    ///
    /// Returns `None` for an informer that the program created itself and passed to
    /// [`informer_for`](super::SharedInformerFactory::informer_for) or
    /// [`adopt`](super::SharedInformerFactory::adopt).
    fn coverage(&self) -> Option<&Coverage>;

    /// Returns a reader of the informer's status, which includes the progress of each list and watch.
    fn status(&self) -> StatusReader;

    /// Returns the memory use of the informer's cache.
    ///
    /// The method visits every object in the cache, which takes some milliseconds per 100,000 objects.
    fn memory(&self) -> Memory;

    /// Returns the status of the informer's handlers and subscriptions, in the order of registration.
    fn handlers(&self) -> Vec<HandlerStatus>;

    /// Returns a future that waits until the informer has started and synced.
    ///
    /// See [`SharedInformer::wait_for_sync`].
    fn wait_for_sync(&self) -> WaitForSync;

    /// Returns whether the informer has ended.
    fn is_stopped(&self) -> bool;
}

/// Supertrait that prevents implementations of [`AnyInformer`] outside this library.
#[expect(
    unnameable_types,
    reason = "nothing outside of the library is to implement what it seals"
)]
pub trait Sealed {}

/// The objects that an informer covers, and the fields of each object that the informer's cache stores.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Coverage {
    /// One section per covered namespace, ordered by name. There is at least one section.
    ///
    /// A section whose `namespace` is `None` covers all namespaces that no other section names. The coverage
    /// of a cluster-scoped kind has only such a section.
    pub sections: Vec<CoveredNamespace>,
    /// Whether the informer requests and caches only the metadata of the objects.
    pub is_metadata_only: bool,
    /// Form in which the cache stores each object.
    pub representation: Representation,
    /// Fields that the cache stores, in addition to the labels and the fields that identify an object.
    ///
    /// `None` if the cache stores all fields except those in `pruned_fields`.
    pub kept_fields: Option<Vec<FieldPath>>,
    /// Fields that the informer removes from each object before it stores the object.
    pub pruned_fields: Vec<FieldPath>,
}

/// The selectors of an informer for one namespace, or for all namespaces that [`Coverage::sections`] does not
/// name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoveredNamespace {
    /// Name of the namespace. `None` means all namespaces that [`Coverage::sections`] does not name.
    pub namespace: Option<String>,
    /// Label selector of the informer in this namespace. The empty selector selects all objects.
    pub labels: Selector,
    /// Field selector of the informer in this namespace. The empty string selects all objects.
    pub fields: String,
}

/// Form in which a cache stores an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Representation {
    /// The cache stores the object as a value of its Rust type.
    #[default]
    Decoded,
    /// The cache stores the bytes that the server sent for the object. The first read of the object decodes
    /// these bytes.
    Lazy,
    /// The cache stores the object as compressed JSON or protobuf. Each read decompresses and decodes the
    /// object.
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

pub(super) struct Registered<K> {
    pub(super) informer: SharedInformer<K>,
    pub(super) kind: ApiResource,
    pub(super) coverage: Option<Coverage>,
    /// Options that the program passed in the call that created the informer, without the factory's defaults.
    ///
    /// `None` for an informer that the program created itself and passed to the factory.
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
