//! Defines the options that an informer can have for a single namespace.
//!
//! These options are selectors, a transform, and the options of list and watch requests. This module does not
//! resolve the precedence between options. The modules `scope` and `options` do.

use std::{collections::BTreeMap, sync::Arc};

use derive_where::derive_where;

use super::scope::{Selection, selection_methods};
use crate::decode::Transform;

/// Options of an informer for one of its namespaces, either for one type or for all kinds.
///
/// For [`InformerOptions::namespaces_with`], `T` is the type to which the options apply. For
/// [`FactoryBuilder::namespaces_with`], the options apply to all kinds, and `T` is `ObjectMeta`. If an option
/// is not set in this value, a less specific setting applies, as the table at [`InformerOptions`] states.
///
/// All namespaces of an informer share one queue and one cache. So the options for the queue, for storing and
/// saving objects, and for the resync cannot differ between namespaces.
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
    /// Creates options in which no option is set.
    pub fn new() -> Self {
        Self::default()
    }

    selection_methods!(selection);

    /// Sets a function that changes every received object of this namespace before it is stored or delivered.
    ///
    /// If `T` is `ObjectMeta`, the function changes the object's metadata.
    pub fn transform(mut self, transform: impl Fn(&mut T) + Send + Sync + 'static) -> Self {
        self.transform = Some(infallible(transform));
        self
    }
}

/// Splits the options of each namespace into a [`Selection`] and a transform.
///
/// The keys of both maps are namespaces. The second map contains only namespaces with a transform.
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
