//! What can be set for one informer of a factory, or for all informers of a type.

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

/// Options for one informer ([`SharedInformerFactory::informer_with`]), or for all informers of a type
/// ([`FactoryBuilder::for_type`], controller-runtime's `ByObject`).
///
/// Labels, fields and namespaces decide which informer a request is for: other ones are another informer.
///
/// # Which option holds
///
/// Each option is decided on its own; those that [`NamespaceOptions`] have for each namespace. The first row in
/// which it is set holds; an empty selector selects everything, a transform that does nothing means none:
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
/// The namespaces themselves are those of the first of 2, 4 and 5 that names any. The name `""` stands for
/// all namespaces that are not named beside it. A kind that is in no namespace has 2, 4 and 6 only.
///
/// A type here is a Rust type; `DynamicObject` is one, whatever its kinds. What is set for `Pod` also holds
/// for `Pruned<Pod>`, `PartialObjectMeta<Pod>` and `Pruned<PartialObjectMeta<Pod>>`, where nothing is set for
/// these, except:
///
/// - how objects are kept ([`packed`](Self::packed), [`lazy`](Self::lazy), [`prune`](Self::prune),
///   [`warm_start`](Self::warm_start), [`detect_mutations`](Self::detect_mutations)) and the
///   [`name`](Self::name) belong to that type alone;
/// - a [`transform`](Self::transform) holds for `Pod` and `Pruned<Pod>`, since metadata alone are no `Pod`.
///
/// controller-runtime lets 5 win over 4 for a type whose options name no namespaces. Here nearer is nearer.
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

/// The transforms of a type, by where they hold.
#[derive_where(Clone, Default)]
pub(super) struct Transforms<K> {
    pub(super) everywhere: Option<Transform<K>>,
    pub(super) by_namespace: BTreeMap<String, Transform<K>>,
}

impl<K> Transforms<K> {
    /// That of a namespace, or else that of all.
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

    /// Closures can't be compared; the same one is at the same address.
    fn addresses(&self) -> impl Iterator<Item = (Option<&str>, usize)> {
        let everywhere = self.everywhere.iter().map(|transform| (None, transform));
        let by_namespace = self.by_namespace.iter();
        let by_namespace = by_namespace.map(|(name, transform)| (Some(&**name), transform));
        let all = everywhere.chain(by_namespace);
        all.map(|(name, transform)| (name, Arc::as_ptr(transform).addr()))
    }
}

impl<K> InformerOptions<K> {
    /// Nothing is set.
    pub fn new() -> Self {
        Self::default()
    }

    /// A name for logs, errors and metrics, which need not be unique; by default kind and scope, such as
    /// `pods in shop`.
    #[doc(alias = "InformerName")]
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    selection_methods!(level.everywhere);

    /// Only these namespaces; none means all, and so does `""` alone, which beside others means all others.
    pub fn namespaces<S: Into<String>>(self, namespaces: impl IntoIterator<Item = S>) -> Self {
        let namespaces = namespaces.into_iter();
        self.namespaces_with(namespaces.map(|name| (name, NamespaceOptions::new())))
    }

    /// Only these namespaces, each with options of its own.
    pub fn namespaces_with<S: Into<String>>(
        mut self,
        namespaces: impl IntoIterator<Item = (S, NamespaceOptions<K>)>,
    ) -> Self {
        let (selections, by_namespace) = split(namespaces);
        self.level.namespaces = Some(selections);
        self.transforms.by_namespace = by_namespace;
        self
    }

    /// The queue between reflectors and store.
    pub fn queue(mut self, queue: QueueKind) -> Self {
        self.queue = Some(queue);
        self
    }

    /// Changes every object once, before the cache and handlers receive it.
    #[doc(alias = "WithTransform")]
    pub fn transform(mut self, transform: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        self.transforms.everywhere = Some(infallible(transform));
        self
    }

    loop_methods!(loop_options);

    keeping_methods!(keeping);

    /// These, and for those that are not set the more `general` ones. A namespace's go with the namespaces.
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

    /// What these say of another type of the same kind.
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

    /// Whether someone who wants these can share an informer that `has` those. A request without a name
    /// accepts any.
    ///
    /// # Errors
    /// An option differs.
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

/// There is an informer for the same kind and scope, but with another option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the informer of {kind} in this scope exists with another {option}")]
pub struct OptionsConflict {
    kind: String,
    option: &'static str,
}

impl OptionsConflict {
    pub(super) fn new(kind: &str, option: &'static str) -> Self {
        Self {
            kind: kind.to_owned(),
            option,
        }
    }
}
