//! Defines the options of one informer, which can also be the defaults for all informers of a type.
//!
//! This module merges two sets of options by precedence, and compares the options of two requests for an
//! informer. It does not create the informer.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    namespace_options::{NamespaceOptions, infallible, split},
    scope::{Level, selection_methods},
};
use crate::{
    decode::Transform,
    pruning::Pruned,
    shared_informer::{Keeping, LoopOptions, keep_method, keeping_methods, loop_methods},
};
use derive_where::derive_where;

/// Type of the queue that stores the changes received by an informer until they are applied to the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueKind {
    /// The queue [`InOrder`](crate::queue::InOrder), which keeps every change in order of arrival.
    #[default]
    InOrder,
    /// The queue [`DeltaFifo`](crate::queue::DeltaFifo), which groups the changes of each object.
    DeltaFifo,
}

/// Options for one informer, or for all informers of a type.
///
/// [`SharedInformerFactory::informer_with`] takes the options of one informer. [`FactoryBuilder::for_type`]
/// takes the options of all informers of a type, as `ByObject` in controller-runtime does.
///
/// Requests for a type with different labels, fields or namespaces return different informers. If two
/// requests have equal labels, fields and namespaces but differ in another option, the later request returns
/// an error.
///
/// # Which option holds
///
/// The precedence is resolved separately for each option, and for the options in [`NamespaceOptions`] also
/// for each namespace. An empty selector counts as set and selects all objects. A transform that does nothing
/// counts as set and disables less specific transforms. The first row that sets the option applies:
///
/// | | set by | for |
/// | --- | --- | --- |
/// | 1 | [`InformerOptions::namespaces_with`] | the one informer in this namespace |
/// | 2 | [`InformerOptions`] of the request | the one informer |
/// | 3 | [`InformerOptions::namespaces_with`] in [`FactoryBuilder::for_type`] | the type in this namespace |
/// | 4 | [`FactoryBuilder::for_type`] | the type |
/// | 5 | [`FactoryBuilder::namespaces_with`] | all kinds in this namespace |
/// | 6 | [`FactoryBuilder`] | all kinds |
///
/// The informer's namespaces come from the first of the rows 2, 4 and 5 that sets namespaces. In a list of
/// namespaces, the name `""` means all namespaces that the list does not name. For a cluster-scoped kind,
/// only the rows 2, 4 and 6 apply.
///
/// In this table, a type is a Rust type. `DynamicObject` is one type, even for several kinds. An option for
/// `Pod` also applies to `Pruned<Pod>`, `PartialObjectMeta<Pod>` and `Pruned<PartialObjectMeta<Pod>>`, unless
/// the option is set for these types themselves. There are two exceptions:
///
/// - The options for storing objects ([`packed`](Self::packed), [`lazy`](Self::lazy), [`prune`](Self::prune),
///   [`warm_start`](Self::warm_start), [`detect_mutations`](Self::detect_mutations)) and the
///   [`name`](Self::name) apply only to the type for which they are set.
/// - A [`transform`](Self::transform) for `Pod` applies to `Pod` and `Pruned<Pod>`, because metadata alone is
///   not a `Pod`.
///
/// In controller-runtime, row 5 has precedence over row 4 for a type whose options name no namespaces. In
/// this library the more specific row 4 always has precedence.
///
/// [`SharedInformerFactory::informer_with`]: super::SharedInformerFactory::informer_with
/// [`FactoryBuilder`]: super::FactoryBuilder
/// [`FactoryBuilder::for_type`]: super::FactoryBuilder::for_type
/// [`FactoryBuilder::namespaces_with`]: super::FactoryBuilder::namespaces_with
#[doc(alias = "ByObject")]
#[must_use]
#[derive_where(Clone, Debug, Default)]
pub struct InformerOptions<K> {
    pub(super) name: Option<Arc<str>>,
    pub(super) level: Level,
    #[derive_where(skip(Debug))]
    pub(super) transforms: Transforms<K>,
    pub(super) queue: Option<QueueKind>,
    pub(super) loop_options: LoopOptions,
    #[derive_where(skip(Debug))]
    pub(super) keeping: Keeping<K>,
}

#[derive_where(Clone, Default)]
pub(super) struct Transforms<K> {
    pub(super) everywhere: Option<Transform<K>>,
    pub(super) by_namespace: BTreeMap<String, Transform<K>>,
}

impl<K> Transforms<K> {
    /// Returns the transform for a namespace, or else the one for all namespaces.
    pub(super) fn of(&self, namespace: &str) -> Option<&Transform<K>> {
        let here = self.by_namespace.get(namespace);
        here.or(self.everywhere.as_ref())
    }

    fn map<T>(&self, each: impl Fn(&Transform<K>) -> Option<Transform<T>>) -> Transforms<T> {
        let by_namespace = self.by_namespace.iter();
        let by_namespace = by_namespace.map(|(name, transform)| (name.clone(), each(transform)));
        Transforms {
            everywhere: self.everywhere.as_ref().and_then(&each),
            by_namespace: by_namespace
                .filter_map(|(name, transform)| Some((name, transform?)))
                .collect(),
        }
    }

    /// Returns the namespace and the address of each transform, to compare transforms. The namespace `None`
    /// means all namespaces.
    fn addresses(&self) -> impl Iterator<Item = (Option<&str>, usize)> {
        let everywhere = self.everywhere.iter().map(|transform| (None, transform));
        let by_namespace = self.by_namespace.iter();
        let by_namespace = by_namespace.map(|(name, transform)| (Some(&**name), transform));
        let all = everywhere.chain(by_namespace);
        all.map(|(name, transform)| (name, Arc::as_ptr(transform).addr()))
    }
}

impl<K> InformerOptions<K> {
    /// Creates options in which no option is set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the informer's name, which logs, errors and metrics contain.
    ///
    /// Several informers can have the same name. The default name consists of the kind and the scope, for
    /// example `pods in shop`.
    #[doc(alias = "InformerName")]
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    selection_methods!(level.everywhere);

    /// Limits the informer to these namespaces. An empty list means all namespaces.
    ///
    /// The name `""` stands for all namespaces that the list does not name.
    pub fn namespaces<S: Into<String>>(self, namespaces: impl IntoIterator<Item = S>) -> Self {
        let namespaces = namespaces.into_iter();
        self.namespaces_with(namespaces.map(|name| (name, NamespaceOptions::new())))
    }

    /// Limits the informer to these namespaces, each with its own options.
    ///
    /// The name `""` stands for all namespaces that the list does not name.
    pub fn namespaces_with<S: Into<String>>(
        mut self,
        namespaces: impl IntoIterator<Item = (S, NamespaceOptions<K>)>,
    ) -> Self {
        let (selections, by_namespace) = split(namespaces);
        self.level.namespaces = Some(selections);
        self.transforms.by_namespace = by_namespace;
        self
    }

    /// Sets the type of the queue between the informer's reflectors and its store.
    pub fn queue(mut self, queue: QueueKind) -> Self {
        self.queue = Some(queue);
        self
    }

    /// Sets a function that changes every received object before it is stored or delivered.
    #[doc(alias = "WithTransform")]
    pub fn transform(mut self, transform: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        self.transforms.everywhere = Some(infallible(transform));
        self
    }

    loop_methods!(loop_options);

    keeping_methods!(keeping);

    /// Returns these options, in which each unset option has its value from `general`.
    ///
    /// The namespaces and their [`NamespaceOptions`] are not merged. If `self` sets namespaces, those of
    /// `general` are ignored.
    pub(super) fn or(self, general: &Self) -> Self {
        let general = general.clone();
        let by_namespace = match self.level.namespaces {
            Some(_) => self.transforms.by_namespace,
            None => general.transforms.by_namespace,
        };
        Self {
            name: self.name.or(general.name),
            level: self.level.or(general.level),
            transforms: Transforms {
                everywhere: self.transforms.everywhere.or(general.transforms.everywhere),
                by_namespace,
            },
            queue: self.queue.or(general.queue),
            loop_options: self.loop_options.or(general.loop_options),
            keeping: self.keeping.or(&general.keeping),
        }
    }

    /// Converts options for the type `K` to options for `T`, another Rust type for the same kind.
    ///
    /// For example, `PartialObjectMeta<Pod>` inherits the options of `Pod`. The name and the options for
    /// storing objects are not inherited. `transform` returns `None` if `T` does not inherit a transform.
    pub(super) fn inherited<T>(
        &self,
        transform: impl Fn(&Transform<K>) -> Option<Transform<T>>,
    ) -> InformerOptions<T> {
        InformerOptions {
            level: self.level.clone(),
            transforms: self.transforms.map(transform),
            queue: self.queue,
            loop_options: self.loop_options,
            ..InformerOptions::new()
        }
    }

    /// Checks that a request with these options can share an informer that has the options `has`.
    ///
    /// # Errors
    /// Returns [`OptionsConflict`] with the first option that differs.
    pub(super) fn must_equal(&self, has: &Self, kind: &str) -> Result<(), OptionsConflict> {
        let (named, queue) = (&self.name, |of: &Self| of.queue.unwrap_or_default());
        let own = [
            ("name", named.is_some() && *named != has.name),
            ("queue", queue(self) != queue(has)),
            (
                "transform",
                !self.transforms.addresses().eq(has.transforms.addresses()),
            ),
        ];
        let mut own = own.into_iter();
        let differs = own.find_map(|(called, differs)| differs.then_some(called));
        let differs = differs.or_else(|| self.level.difference(&has.level));
        let differs = differs.or_else(|| self.loop_options.difference(&has.loop_options));
        match differs.or_else(|| self.keeping.difference(&has.keeping)) {
            Some(option) => Err(OptionsConflict::new(kind, option)),
            None => Ok(()),
        }
    }
}

impl<K> InformerOptions<Pruned<K>> {
    keep_method!(keeping);
}

/// Error of a request: the requested informer exists, but one of its options differs from the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the factory already has an informer of {kind} in this scope with another {option}; use the same options, or another factory"
)]
pub struct OptionsConflict {
    kind: String,
    option: &'static str,
}

impl OptionsConflict {
    pub(crate) fn new(kind: &str, option: &'static str) -> Self {
        Self {
            kind: kind.to_owned(),
            option,
        }
    }
}
