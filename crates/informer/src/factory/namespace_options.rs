//! What can be said of all informers of a type, and of one namespace.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use super::scope::{Level, Selection};
use crate::{decode::Transform, selector::Selector};

/// What is said of one namespace: of one type's objects there
/// ([`TypeOptions::namespaces_with`]; `T` is the type), or of all kinds
/// ([`FactoryBuilder::namespaces_with`](super::FactoryBuilder::namespaces_with); `T` is
/// `ObjectMeta`). What is not said is decided elsewhere, see [`TypeOptions`].
#[must_use]
pub struct NamespaceOptions<T> {
    selection: Selection,
    transform: Option<Transform<T>>,
}

/// What is said of all informers of one type
/// ([`FactoryBuilder::for_type`](super::FactoryBuilder::for_type)), controller-runtime's `ByObject`.
///
/// # What holds
///
/// Labels, fields and transforms are decided one by one, for each namespace. The first of these that
/// says anything holds; an empty selector says "all", a transform that does nothing says "none":
///
/// | | said by | of |
/// | --- | --- | --- |
/// | 1 | [`InformerOptions`](super::InformerOptions) | the one informer |
/// | 2 | [`TypeOptions::namespaces_with`] | the type in this namespace |
/// | 3 | [`TypeOptions`] | the type |
/// | 4 | [`FactoryBuilder::namespaces_with`](super::FactoryBuilder::namespaces_with) | all kinds in this namespace |
/// | 5 | [`FactoryBuilder::default_labels`](super::FactoryBuilder::default_labels), [`default_fields`](super::FactoryBuilder::default_fields) | all kinds |
///
/// Which namespaces there are is said by the first of 1, 3 and 4 that names any. The name `""` stands
/// for all namespaces that are not named beside it. The resync period is an informer's, so it is not
/// said by namespace: 1, 3, or [`default_resync`](super::FactoryBuilder::default_resync). The same goes
/// for [`consistency_check`](super::FactoryBuilder::consistency_check).
///
/// A type here is a Rust type, so `PartialObjectMeta<Pod>` is another one than `Pod`, and
/// `DynamicObject` is one, whatever its kinds. A kind that is in no namespace is concerned by 1, 3
/// and 5 only.
///
/// controller-runtime lets 4 win over 3 for a type whose options name no namespaces. Here nearer is
/// nearer.
#[doc(alias = "ByObject")]
#[must_use]
pub struct TypeOptions<K> {
    selection: Selection,
    namespaces: Option<BTreeMap<String, NamespaceOptions<K>>>,
    pub(super) resync: Option<Duration>,
    pub(super) consistency_check: Option<Duration>,
    transform: Option<Transform<K>>,
}

/// The transforms of a type, by where they hold.
pub(super) struct TypeTransforms<K> {
    pub(super) everywhere: Option<Transform<K>>,
    pub(super) by_namespace: BTreeMap<String, Transform<K>>,
}

impl<T> fmt::Debug for NamespaceOptions<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamespaceOptions")
            .field("labels", &self.selection.labels)
            .field("fields", &self.selection.fields)
            .finish_non_exhaustive()
    }
}

impl<T> Default for NamespaceOptions<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> NamespaceOptions<T> {
    /// Nothing special.
    pub fn new() -> Self {
        Self {
            selection: Selection::default(),
            transform: None,
        }
    }

    /// Only objects with these labels.
    pub fn labels(mut self, labels: Selector) -> Self {
        self.selection.labels = Some(labels);
        self
    }

    /// Only objects with these fields, for example `spec.nodeName=node-1`.
    pub fn fields(mut self, fields: impl Into<String>) -> Self {
        self.selection.fields = Some(fields.into());
        self
    }

    /// Changes every object, or its metadata, once, before cache and handlers see it.
    pub fn transform(mut self, transform: impl Fn(&mut T) + Send + Sync + 'static) -> Self {
        self.transform = Some(infallible(transform));
        self
    }
}

impl<K> fmt::Debug for TypeOptions<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypeOptions")
            .field("labels", &self.selection.labels)
            .field("fields", &self.selection.fields)
            .field("namespaces", &self.namespaces)
            .field("resync", &self.resync)
            .finish_non_exhaustive()
    }
}

impl<K> Default for TypeOptions<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> TypeOptions<K> {
    /// Nothing special.
    pub fn new() -> Self {
        Self {
            selection: Selection::default(),
            namespaces: None,
            resync: None,
            consistency_check: None,
            transform: None,
        }
    }

    /// Only objects with these labels.
    pub fn labels(mut self, labels: Selector) -> Self {
        self.selection.labels = Some(labels);
        self
    }

    /// Only objects with these fields, for example `spec.nodeName=node-1`.
    pub fn fields(mut self, fields: impl Into<String>) -> Self {
        self.selection.fields = Some(fields.into());
        self
    }

    /// Only these namespaces, whatever the factory's; none means all.
    pub fn namespaces<S: Into<String>>(self, namespaces: impl IntoIterator<Item = S>) -> Self {
        let namespaces = namespaces.into_iter();
        self.namespaces_with(namespaces.map(|name| (name, NamespaceOptions::new())))
    }

    /// Only these namespaces, each with options of its own.
    pub fn namespaces_with<S: Into<String>>(
        mut self,
        namespaces: impl IntoIterator<Item = (S, NamespaceOptions<K>)>,
    ) -> Self {
        let namespaces = namespaces.into_iter();
        let namespaces = namespaces.map(|(name, options)| (name.into(), options));
        self.namespaces = Some(namespaces.collect());
        self
    }

    /// The resync period; zero means none.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// How often the cache is compared with the server; zero means never.
    pub fn consistency_check(mut self, period: Duration) -> Self {
        self.consistency_check = Some(period);
        self
    }

    /// Changes every object once, before cache and handlers see it.
    #[doc(alias = "WithTransform")]
    pub fn transform(mut self, transform: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        self.transform = Some(infallible(transform));
        self
    }

    /// Says of a type what is said here; what is not said here stays as it was.
    pub(super) fn tell(self, level: &mut Level, transforms: &mut TypeTransforms<K>) {
        let Self {
            selection,
            namespaces,
            transform,
            ..
        } = self;
        let Selection { labels, fields } = selection;
        let everywhere = &mut level.everywhere;
        everywhere.labels = labels.or(everywhere.labels.take());
        everywhere.fields = fields.or(everywhere.fields.take());
        transforms.everywhere = transform.or(transforms.everywhere.take());
        if let Some(namespaces) = namespaces {
            let (selections, by_namespace) = split(namespaces);
            level.namespaces = Some(selections);
            transforms.by_namespace = by_namespace;
        }
    }
}

/// What is selected in each namespace, and what is done to the objects there.
pub(super) fn split<T>(
    namespaces: BTreeMap<String, NamespaceOptions<T>>,
) -> (BTreeMap<String, Selection>, BTreeMap<String, Transform<T>>) {
    let (mut selections, mut transforms) = (BTreeMap::new(), BTreeMap::new());
    for (name, options) in namespaces {
        transforms.extend(options.transform.map(|transform| (name.clone(), transform)));
        selections.insert(name, options.selection);
    }
    (selections, transforms)
}

fn infallible<T>(transform: impl Fn(&mut T) + Send + Sync + 'static) -> Transform<T> {
    Arc::new(move |object| {
        transform(object);
        Ok(())
    })
}
