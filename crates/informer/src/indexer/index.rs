//! Defines the named indices of a store. An index maps objects to values, and values to objects.
//!
//! The index functions come from the program. If a function fails or panics for an object, the index omits
//! this object. This module does not decide when objects are indexed. The writer of the store does.

use std::{fmt, sync::Arc};

use derive_where::derive_where;
use kube_core::Resource;

use super::postings::{Postings, Values, sorted};
use crate::{
    limits::{MESSAGE_BYTES, one_line},
    metrics::IndexSample,
    object::{Object, ObjectName},
    panics::{Panicked, confined},
};

/// Name of the built-in index by namespace.
///
/// This index needs no function, because a store orders its objects by namespace.
#[doc(alias = "NamespaceIndex")]
pub const NAMESPACE: &str = "namespace";

type IndexFunc<K> = Arc<dyn Fn(&Object<K>) -> Result<Vec<Arc<str>>, String> + Send + Sync>;

/// A set of named index functions, from which a store creates its indices.
///
/// An index function returns the values of an object: none, one or many. It is called once for each new state
/// of an object. If the function fails or panics, the index omits the object, and the store reports an
/// [`IndexError`]. Other objects and indices are not affected.
#[doc(alias = "Indices")]
#[derive_where(Clone, Default)]
pub struct Indexers<K> {
    pub(super) functions: Vec<(Arc<str>, IndexFunc<K>)>,
}

impl<K> fmt::Debug for Indexers<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.functions.iter().map(|(name, _)| name))
            .finish()
    }
}

impl<K> Indexers<K> {
    /// Creates a set without index functions. Every store also has the built-in index [`NAMESPACE`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the same set as [`Indexers::new`], because every store has the index by namespace.
    ///
    /// In client-go, a program must add this index itself.
    #[doc(alias = "MetaNamespaceIndexFunc")]
    #[doc(alias = "NamespaceIndex")]
    pub fn by_namespace() -> Self {
        Self::new()
    }

    /// Adds an index with the name `name`, over the values that the function `values` returns for an object.
    ///
    /// An index that has the name of a field also serves field selectors for that field:
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kube_informer::Indexers;
    /// Indexers::new().with("spec.nodeName", |pod: &Pod| pod.spec.as_ref()?.node_name.clone());
    /// ```
    #[doc(alias = "IndexField")]
    #[doc(alias = "spec.nodeName")]
    #[doc(alias = "IndexFunc")]
    #[must_use]
    pub fn with<V>(self, name: &str, values: impl Fn(&K) -> V + Send + Sync + 'static) -> Self
    where
        V: IntoIterator,
        V::Item: Into<Arc<str>>,
    {
        self.try_with(name, move |object| Ok::<_, &str>(values(object)))
    }

    /// Adds an index with the name `name`, whose function `values` may fail.
    ///
    /// If the function fails for an object, the index omits the object, and the store reports an
    /// [`IndexError`].
    #[doc(alias = "IndexFunc")]
    #[must_use]
    pub fn try_with<V, E>(
        mut self,
        name: &str,
        values: impl Fn(&K) -> Result<V, E> + Send + Sync + 'static,
    ) -> Self
    where
        V: IntoIterator,
        V::Item: Into<Arc<str>>,
        E: ToString,
    {
        let function = move |object: &Object<K>| match object.get() {
            Err(_) => Ok(Vec::new()),
            Ok(whole) => match values(&whole) {
                Ok(values) => Ok(values.into_iter().map(Into::into).collect()),
                Err(error) => Err(error.to_string()),
            },
        };
        self.functions.push((Arc::from(name), Arc::new(function)));
        self
    }

    /// Adds an index with the name `name`, whose function `values` does not need the decoded object.
    ///
    /// The function can read an object's name, namespace, labels and revision without decoding the object. A
    /// packed or lazy cache stores objects as bytes. Such a cache decodes an object for this index only if
    /// the function calls [`Object::get`].
    #[must_use]
    pub fn with_metadata<V>(
        mut self,
        name: &str,
        values: impl Fn(&Object<K>) -> V + Send + Sync + 'static,
    ) -> Self
    where
        V: IntoIterator,
        V::Item: Into<Arc<str>>,
    {
        let function = move |object: &Object<K>| match object.broken() {
            Some(_) => Ok(Vec::new()),
            None => Ok(values(object).into_iter().map(Into::into).collect()),
        };
        self.functions.push((Arc::from(name), Arc::new(function)));
        self
    }

    /// Adds an index over the values of the label `key`. Objects without this label are not indexed.
    ///
    /// A packed or lazy cache, which decodes an object when it is read, does not decode objects for this
    /// index.
    #[must_use]
    pub fn with_label(self, name: &str, key: impl Into<String>) -> Self
    where
        K: Resource,
    {
        let key = key.into();
        self.with_metadata(name, move |object| {
            object.labels().get(&key).map(Arc::<str>::from)
        })
    }

    /// Adds an index over the uids of an object's owners, which are listed in `metadata.ownerReferences`.
    #[doc(alias = "OwnerReferences")]
    #[must_use]
    pub fn with_owners(self, name: &str) -> Self
    where
        K: Resource,
    {
        self.with(name, |object| {
            let owners = object.meta().owner_references.iter().flatten();
            owners
                .map(|owner| Arc::from(owner.uid.as_str()))
                .collect::<Vec<Arc<str>>>()
        })
    }

    /// Adds an index over the uid of an object's controller, which is the owner with `controller: true`.
    #[doc(alias = "GetControllerOf")]
    #[must_use]
    pub fn with_controller(self, name: &str) -> Self
    where
        K: Resource,
    {
        self.with(name, |object| {
            let mut owners = object.meta().owner_references.iter().flatten();
            let controller = owners.find(|owner| owner.controller == Some(true));
            controller.map(|owner| Arc::<str>::from(owner.uid.as_str()))
        })
    }

    /// Returns the names of the indices in this set, in the order in which they were added.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().map(|(name, _)| &**name)
    }
}

/// Identifies one index of one store.
///
/// After the index is removed, each look-up with the token fails, even if a new index has the same name.
#[derive(Clone, Debug)]
pub struct IndexToken(Arc<str>);

impl IndexToken {
    /// Returns the name of the index that this token identifies.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// Two tokens are equal if they identify the same index of the same store.
impl PartialEq for IndexToken {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for IndexToken {}

/// A reference to an index in a look-up: the name of the index, or its [`IndexToken`].
pub trait IndexRef {
    /// Returns the name of the index that this reference identifies.
    fn index_name(&self) -> &str;

    /// Returns whether this reference identifies the index whose name is `name`.
    ///
    /// A name is compared as text. An [`IndexToken`] is compared by the address of its `Arc`, because a token
    /// identifies only the index for which it was created.
    fn refers_to(&self, name: &Arc<str>) -> bool {
        **name == *self.index_name()
    }

    /// Returns the error of a look-up with this reference, for a store that does not have the index.
    fn not_found(&self) -> NoSuchIndex {
        NoSuchIndex::Name(self.index_name().to_owned())
    }
}

impl IndexRef for str {
    fn index_name(&self) -> &str {
        self
    }
}

impl IndexRef for String {
    fn index_name(&self) -> &str {
        self
    }
}

impl IndexRef for IndexToken {
    fn index_name(&self) -> &str {
        self.name()
    }

    fn refers_to(&self, name: &Arc<str>) -> bool {
        Arc::ptr_eq(&self.0, name)
    }

    fn not_found(&self) -> NoSuchIndex {
        NoSuchIndex::Token(self.name().to_owned())
    }
}

impl<I: IndexRef + ?Sized> IndexRef for &I {
    fn index_name(&self) -> &str {
        (**self).index_name()
    }

    fn refers_to(&self, name: &Arc<str>) -> bool {
        (**self).refers_to(name)
    }

    fn not_found(&self) -> NoSuchIndex {
        (**self).not_found()
    }
}

/// Error of a look-up: the store does not have the requested index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoSuchIndex {
    /// The store has no index with this name.
    #[error("index with name {0} does not exist")]
    Name(String),
    /// The index of the token was removed, or belongs to another store. The value is the name of that index.
    #[error("the index {0} of this token was removed, or belongs to another store")]
    Token(String),
}

/// Error of adding an index: an index with this name already exists.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an index with name {0} already exists; choose another name")]
#[non_exhaustive]
pub struct DuplicateIndex(pub String);

/// Error of removing an index: the reason why the index could not be removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotRemovable {
    /// The store does not have the requested index.
    #[error(transparent)]
    NoSuchIndex(#[from] NoSuchIndex),
    /// The requested index is the built-in index by namespace, which can't be removed.
    #[error("the index by namespace can't be removed: the store needs it")]
    Namespace,
}

/// Error of an index function for one object. The index omits this object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object} is not in index {index}: {reason}")]
#[non_exhaustive]
pub struct IndexError {
    /// Name of the index.
    pub index: Arc<str>,
    /// Name of the object that the index omits.
    pub object: ObjectName,
    /// Error text of the index function, or a note that the function panicked.
    pub reason: String,
}

#[derive_where(Clone)]
pub(crate) struct Index<K> {
    /// Name of the index. An [`IndexToken`] shares this string, and identifies the index by the string's
    /// address.
    pub(super) name: Arc<str>,
    function: IndexFunc<K>,
    /// For each value, the names of the objects that have this value.
    pub(super) postings: Postings,
}

impl<K> Index<K> {
    pub(super) fn new((name, function): (Arc<str>, IndexFunc<K>)) -> Self {
        Self {
            // A new allocation: several stores may use the same functions, but a token identifies an index
            // of one store by the address of the name.
            name: Arc::from(&*name),
            function,
            postings: Postings::default(),
        }
    }

    pub(super) fn token(&self) -> IndexToken {
        IndexToken(Arc::clone(&self.name))
    }

    /// Returns the object's values, sorted and without duplicates.
    ///
    /// # Errors
    /// Returns an error if the index function fails or panics.
    pub(super) fn ask(&self, object: &Object<K>) -> Result<Values, IndexError> {
        let values = ask(|| (self.function)(object)).map_err(|reason| IndexError {
            index: Arc::clone(&self.name),
            object: object.object_name().clone(),
            reason: one_line(&reason, MESSAGE_BYTES),
        })?;
        Ok(sorted(values))
    }

    pub(super) fn size(&self) -> IndexSample {
        let (values, entries) = self.postings.size();
        IndexSample {
            name: Arc::clone(&self.name),
            values,
            entries,
        }
    }
}

/// Calls an index function, and converts a panic to an error.
pub(crate) fn ask<V>(function: impl FnOnce() -> Result<V, String>) -> Result<V, String> {
    confined(function).unwrap_or_else(|Panicked| Err("the index function panicked".to_owned()))
}
