//! What can be set for one namespace.

use std::{collections::BTreeMap, sync::Arc};

use derive_where::derive_where;

use super::scope::{Selection, selection_methods};
use crate::decode::Transform;

/// Options for one namespace: for one type's objects there ([`InformerOptions::namespaces_with`]; `T` is the
/// type), or for all kinds ([`FactoryBuilder::namespaces_with`]; `T` is `ObjectMeta`). An option that is not
/// set here is taken from the next row of the table at [`InformerOptions`].
///
/// A namespace has a source of its own, so it can have what [`InformerOptions`] have for a source: what is
/// selected, how it is requested, and a transform. How an informer queues, keeps, saves and resyncs its objects
/// is one for all of its namespaces, as are its queue and its cache.
///
/// [`InformerOptions`]: super::InformerOptions#which-option-holds
/// [`InformerOptions::namespaces_with`]: super::InformerOptions::namespaces_with
/// [`FactoryBuilder::namespaces_with`]: super::FactoryBuilder::namespaces_with
#[must_use]
#[derive_where(Debug, Default)]
pub struct NamespaceOptions<T> {
    selection: Selection,
    #[derive_where(skip(Debug))]
    transform: Option<Transform<T>>,
}

impl<T> NamespaceOptions<T> {
    /// Nothing is set.
    pub fn new() -> Self {
        Self::default()
    }

    selection_methods!(selection);

    /// Changes every object, or its metadata, once, before the cache and handlers receive it.
    pub fn transform(mut self, transform: impl Fn(&mut T) + Send + Sync + 'static) -> Self {
        self.transform = Some(infallible(transform));
        self
    }
}

/// What is selected in each namespace, and what is done to the objects there.
pub(super) fn split<T, S: Into<String>>(
    namespaces: impl IntoIterator<Item = (S, NamespaceOptions<T>)>,
) -> (BTreeMap<String, Selection>, BTreeMap<String, Transform<T>>) {
    let (mut selections, mut transforms) = (BTreeMap::new(), BTreeMap::new());
    for (name, options) in namespaces {
        let name = name.into();
        transforms.extend(options.transform.map(|transform| (name.clone(), transform)));
        selections.insert(name, options.selection);
    }
    (selections, transforms)
}

pub(super) fn infallible<T>(transform: impl Fn(&mut T) + Send + Sync + 'static) -> Transform<T> {
    Arc::new(move |object| {
        transform(object);
        Ok(())
    })
}
