//! Named indices: which values an object has, and which objects a value has.

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

/// The name of the index by namespace. Every store has it; it needs no function, for objects are
/// kept in the order of namespaces.
#[doc(alias = "NamespaceIndex")]
pub const NAMESPACE: &str = "namespace";

type IndexFunc<K> = Arc<dyn Fn(&Object<K>) -> Result<Vec<Arc<str>>, String> + Send + Sync>;

/// Index functions by name, to begin a store with or to add to one.
///
/// A function says which values an object has: none, one or many. It is called once per state of an
/// object. When it fails or panics, the object is left out of that index and reported; everything
/// else goes on.
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
    /// No index but [`NAMESPACE`], which is always there.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, for readers who look for it: the index by namespace is always there.
    #[doc(alias = "MetaNamespaceIndexFunc")]
    #[doc(alias = "NamespaceIndex")]
    pub fn by_namespace() -> Self {
        Self::new()
    }

    /// Adds an index over the values that `values` says an object has. One that has the name of a field
    /// also answers field selectors for it:
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

    /// Adds an index whose function may fail.
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

    /// Adds an index over what an object's handle says: name, namespace, revision, and what `values`
    /// makes of them. It needs no body.
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

    /// Adds an index over the value of one label; objects without it are not in it. It needs no body.
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

    /// Adds an index over the uids of all owners.
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

    /// Adds an index over the uid of the one owner that is the controller.
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

    /// The names, in the order in which they were added.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().map(|(name, _)| &**name)
    }
}

/// Stands for one index of one store: it can't be misspelt, and finds nothing once that index is
/// removed, not even another one of the same name.
#[derive(Clone, Debug)]
pub struct IndexToken(Arc<str>);

impl IndexToken {
    /// The index's name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// Whether they stand for the very same index.
impl PartialEq for IndexToken {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for IndexToken {}

/// What names an index: its name, or its [`IndexToken`].
pub trait IndexRef {
    /// The index's name.
    fn index_name(&self) -> &str;

    /// Whether this is the index whose name is kept here. A name means whichever index has it.
    fn refers_to(&self, name: &Arc<str>) -> bool {
        **name == *self.index_name()
    }

    /// What to say when a store has no such index.
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

/// A store has no such index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoSuchIndex {
    /// None has this name.
    #[error("index with name {0} does not exist")]
    Name(String),
    /// The index of this name that a token stands for is not there, whether or not another one has
    /// the name.
    #[error("the index {0} of this token was removed, or is of another store")]
    Token(String),
}

/// A store has an index of that name already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an index with name {0} exists already")]
#[non_exhaustive]
pub struct DuplicateIndex(pub String);

/// Why an index could not be removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotRemovable {
    /// There is none.
    #[error(transparent)]
    NoSuchIndex(#[from] NoSuchIndex),
    /// It is the one by namespace, which is the order in which objects are kept.
    #[error("the index by namespace can't be removed")]
    Namespace,
}

/// An index function could not say which values an object has; the object is missing from that
/// index, and only from that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object} is not in index {index}: {reason}")]
#[non_exhaustive]
pub struct IndexError {
    /// The index.
    pub index: Arc<str>,
    /// The object.
    pub object: ObjectName,
    /// What the function said.
    pub reason: String,
}

/// One index of one moment. It is a value of its own, so one can come and go while the entries stay.
#[derive_where(Clone)]
pub(crate) struct Index<K> {
    /// Its allocation is the index's identity, which tokens share.
    pub(super) name: Arc<str>,
    function: IndexFunc<K>,
    /// Which objects stand under which of its values.
    pub(super) placed: Postings,
}

impl<K> Index<K> {
    pub(super) fn new((name, function): (Arc<str>, IndexFunc<K>)) -> Self {
        Self {
            // The functions may be of several stores; an index is of one.
            name: Arc::from(&*name),
            function,
            placed: Postings::default(),
        }
    }

    pub(super) fn token(&self) -> IndexToken {
        IndexToken(Arc::clone(&self.name))
    }

    /// The values of an object, sorted, each once.
    ///
    /// # Errors
    /// What the function said, or that it panicked.
    pub(super) fn ask(&self, object: &Object<K>) -> Result<Values, IndexError> {
        let values = ask(|| (self.function)(object)).map_err(|reason| IndexError {
            index: Arc::clone(&self.name),
            object: object.object_name().clone(),
            reason: one_line(&reason, MESSAGE_BYTES),
        })?;
        Ok(sorted(values))
    }

    /// How many values there are, and how many pairs of a value and an object.
    pub(super) fn size(&self) -> IndexSample {
        let (values, entries) = self.placed.size();
        IndexSample {
            name: Arc::clone(&self.name),
            values,
            entries,
        }
    }
}

/// What an index function says, or that it panicked.
pub(crate) fn ask<V>(function: impl FnOnce() -> Result<V, String>) -> Result<V, String> {
    confined(function).unwrap_or_else(|Panicked| Err("the index function panicked".to_owned()))
}
