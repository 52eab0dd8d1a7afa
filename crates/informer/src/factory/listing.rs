//! The informers of a factory, whatever their types: what each covers, how it keeps its objects, what it is
//! doing and what it costs.

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

/// One informer of a factory, whatever its type; from [`SharedInformerFactory::informers`]. It keeps the
/// informer's cache, as a clone of the [`SharedInformer`] does.
///
/// [`SharedInformerFactory::informers`]: super::SharedInformerFactory::informers
pub trait AnyInformer: Any + Send + Sync + fmt::Debug + Sealed {
    /// Its name, as in logs and metrics.
    fn name(&self) -> &str;

    /// The kind of its objects.
    fn kind(&self) -> &ApiResource;

    /// Which objects it covers and what it keeps of each; `None` of an informer that the program made itself
    /// ([`informer_for`](super::SharedInformerFactory::informer_for),
    /// [`adopt`](super::SharedInformerFactory::adopt)), whose sources can do anything.
    fn coverage(&self) -> Option<&Coverage>;

    /// What it is doing, and up to where its sources have come.
    fn status(&self) -> StatusReader;

    /// What its cache takes; goes through the objects once, some milliseconds per 100,000 of them.
    fn memory(&self) -> Memory;

    /// Its handlers and subscriptions, with what waits for each and for how long, in the order in which they
    /// were added.
    fn handlers(&self) -> Vec<HandlerStatus>;

    /// Waits until it has synced, also if its factory has not been started yet; see
    /// [`SharedInformer::wait_for_sync`].
    fn wait_for_sync(&self) -> WaitForSync;

    /// Whether it has ended.
    fn is_stopped(&self) -> bool;
}

/// What can be named only here: [`AnyInformer`] grows with the library, so nothing else implements it.
#[expect(
    unnameable_types,
    reason = "nothing outside of the library is to implement what it seals"
)]
pub trait Sealed {}

/// Which objects an informer covers, and what it keeps of each.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Coverage {
    /// At least one, by name. One whose namespace is `None` covers all namespaces that no other one has; a kind
    /// that is in no namespace has that one alone.
    pub sections: Vec<CoveredNamespace>,
    /// Whether it has the metadata of the objects only.
    pub is_metadata_only: bool,
    /// How it keeps an object that is not being read.
    pub representation: Representation,
    /// The only fields that it keeps, beside those that identify an object, and labels; `None` if it keeps all
    /// that are not in `pruned_fields`.
    pub kept_fields: Option<Vec<FieldPath>>,
    /// The fields that it drops.
    pub pruned_fields: Vec<FieldPath>,
}

/// What an informer covers of one namespace, or of all that are not named.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoveredNamespace {
    /// `None` for all namespaces that no other section has.
    pub namespace: Option<String>,
    /// Only objects with these labels; an empty selector means all.
    pub labels: Selector,
    /// Only objects with these fields; empty means all.
    pub fields: String,
}

/// How a cache keeps an object that is not being read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Representation {
    /// As a value of its Rust type.
    #[default]
    Decoded,
    /// As the bytes that the server sent, until it is read for the first time.
    Lazy,
    /// As compressed JSON.
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

/// An informer with what the factory knows of it.
pub(super) struct Registered<K> {
    pub(super) informer: SharedInformer<K>,
    pub(super) kind: ApiResource,
    pub(super) coverage: Option<Coverage>,
    /// As they were requested; `None` if the program made the informer itself.
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
