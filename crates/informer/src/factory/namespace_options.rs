//! Options that apply to one namespace.

use std::{collections::BTreeMap, sync::Arc};

use derive_where::derive_where;

use super::scope::{Selection, selection_methods};
use crate::decode::Transform;

/// Options for one namespace, of one type or of all kinds.
///
/// For one type, `T` is that type ([`InformerOptions::namespaces_with`]). For all kinds, `T` is `ObjectMeta`
/// ([`FactoryBuilder::namespaces_with`]). If an option is not set here, the next row of the table at
/// [`InformerOptions`] applies.
///
/// Each namespace has its own source, so it can have the options of a source: selectors, request options and a
/// transform. All namespaces of an informer share its queue and its cache, so they also share the options for
/// the queue, for keeping and saving objects, and for the resync.
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
    /// Returns options in which nothing is set.
    pub fn new() -> Self {
        Self::default()
    }

    selection_methods!(selection);

    /// Sets a function that changes each object, or its metadata, once before the cache and handlers receive
    /// it.
    pub fn transform(mut self, transform: impl Fn(&mut T) + Send + Sync + 'static) -> Self {
        self.transform = Some(infallible(transform));
        self
    }
}

/// Splits the options into the selection and the transform of each namespace.
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
